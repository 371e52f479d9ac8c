"""The peak of memory is that of this process alone."""

import subprocess
import sys

import pytest

from mo_loop.support.process_memory import peak_memory

LARGE = 256 << 20

CHILD = "from mo_loop.support.process_memory import peak_memory; print(peak_memory())"

PARENT = f"""
import subprocess, sys
from mo_loop.support.process_memory import peak_memory
held = b"x" * {LARGE}
own = peak_memory()
child = subprocess.run([sys.executable, "-c", {CHILD!r}], capture_output=True, text=True, check=True)
print(own, child.stdout)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell the peak of memory this way")
def test_a_program_does_not_show_the_memory_of_the_one_that_started_it() -> None:
    """On Linux ru_maxrss does: small conversions started by a large process seemed to need 600 MB."""
    done = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True, check=True)
    own, child = map(int, done.stdout.split())
    assert own > LARGE and 0 < child < LARGE / 2


def test_a_system_that_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory() == 0
