"""One file, written whole or not at all.

    write_whole(Path("graph.dot"), to_dot(graph))

The content grows under another name beside its place and is moved there at the end.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mo_loop.errors import FileError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `content`, text as UTF-8; folders above `path` are made.

    Raises:
        FileError: the file cannot be written; what was there is as it was.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", errors="backslashreplace")
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(data)
        os.replace(draft, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(
            f"{path} cannot be written", why=reason, hint="nothing was changed; give another place", code="ML219"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
