"""The installed command, as a shell calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).with_name("mo-loop")


def mo_loop(
    *arguments: object, cwd: Path | None = None, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """What `mo-loop ARGUMENTS` prints and returns; `environment` is added to that of the tests."""
    done: Any = subprocess.run(
        [str(COMMAND), *map(str, arguments)], input=stdin, capture_output=True, cwd=cwd, timeout=120,
        env={**os.environ, **environment},
    )  # fmt: skip
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
