"""Runs `mo-loop` with any arguments, in this process or as the installed command."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from mo_loop.cli import main

COMMAND = Path(sys.executable).with_name("mo-loop")


def mo_loop(
    *arguments: object, cwd: Path | None = None, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `mo-loop ARGUMENTS` in this process; returns exit code, stdout and stderr."""
    return in_process(*arguments, cwd=cwd, stdin=stdin, env=environment)


def in_process(
    *arguments: object, cwd: Path | None = None, stdin: bytes = b"", env: Mapping[str, str | None] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command in this process; an exception that it does not catch fails the test. None removes a variable."""
    command = [*map(str, arguments)]
    with contextlib.chdir(cwd or Path.cwd()):
        done = CliRunner().invoke(main, command, input=stdin, env=env)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(command, done.exit_code, done.stdout, done.stderr)


def installed(
    *arguments: object, cwd: Path | None = None, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the installed command in a process of its own; `environment` is added to that of the tests."""
    done: Any = subprocess.run(
        [str(COMMAND), *map(str, arguments)], input=stdin, capture_output=True, cwd=cwd, timeout=120,
        env={**os.environ, **environment},
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
