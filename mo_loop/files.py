"""write_whole: writes a file completely or not at all.

    write_whole(Path("graph.dot"), to_dot(graph))

The content is written under another name in the same folder, and renamed at the end.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mo_loop.errors import FileError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `content`, text as UTF-8; missing folders above `path` are created.

    Raises:
        FileError: the file cannot be written; an existing file is unchanged.
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
            f"{path} cannot be written", why=reason, hint="no file was changed; give another path", code="ML219"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
