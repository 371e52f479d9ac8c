"""The state file of a batch, as tests look at it and change it."""

import json
from pathlib import Path
from typing import Any

from mo_loop.batching.outputs import HEAD


def entries_in(path: Path) -> dict[str, Any]:
    """The entries of the file by the names of the outputs, in the order of its lines."""
    head, *lines = path.read_bytes().splitlines(keepends=True)
    assert head == HEAD
    return dict(map(json.loads, lines))


def write_entries(path: Path, entries: dict[str, Any]) -> None:
    """Replace the file."""
    path.write_bytes(HEAD + b"".join(json.dumps(each).encode() + b"\n" for each in entries.items()))
