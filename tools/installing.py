"""Steps of making an environment for another release or device: packages of PyPI and of the system, and programs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path


class NotPossible(Exception):
    """This machine cannot have the environment, for a reason."""


def require_linux(what: str) -> None:
    """NotPossible if this is not Linux on x86-64, which `what` needs."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        raise NotPossible(f"{what} needs Linux on x86-64")


def write_program(path: Path, script: str) -> None:
    """Write an executable script of the shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}", encoding="utf-8")
    path.chmod(0o755)


def install(python: str, *packages: str) -> None:
    """Install packages of PyPI into the environment of an interpreter."""
    run(python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *packages)


def install_from_debian(*packages: str) -> None:
    """Install packages of the system. NotPossible where it is not Debian, or this process may not."""
    if not shutil.which("apt-get") or os.geteuid():
        raise NotPossible(f"it needs {', '.join(packages)}: install them, or run this as root on Debian")
    run("apt-get", "update", "-qq")
    run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)


def run(*command: str) -> None:
    """NotPossible with what the command printed if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        raise NotPossible(f"{' '.join(command[:4])} ...: {said[-1]}")
