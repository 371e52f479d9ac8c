"""`mo-loop completion`: the script for a shell, and the answers to the shell."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mo_loop.cli import COMMANDS, SHELLS

INSTALLED = Path(sys.executable).with_name("mo-loop")


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run([str(INSTALLED), *arguments], capture_output=True, text=True, env=environment, timeout=60)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_calls_the_command(shell: str) -> None:
    assert f"_MO_LOOP_COMPLETE={shell}_complete" in run("completion", shell).stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_accepts_the_script() -> None:
    script = run("completion", "bash").stdout
    found = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stderr) == (0, "")


def test_commands_are_completed() -> None:
    found = run(_MO_LOOP_COMPLETE="bash_complete", COMP_WORDS="mo-loop ", COMP_CWORD="1").stdout.split()
    assert {each.removeprefix("plain,") for each in found} == set(COMMANDS)


def test_options_are_completed() -> None:
    found = run(_MO_LOOP_COMPLETE="bash_complete", COMP_WORDS="mo-loop convert --out", COMP_CWORD="2").stdout.split()
    assert {"plain,--output", "plain,--output-model"} <= set(found)


def test_an_unknown_shell_is_refused() -> None:
    found = run("completion", "tcsh")
    assert found.returncode == 2 and "'tcsh' is not one of" in found.stderr
