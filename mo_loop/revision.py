"""The code of the running mo_loop, more precisely than its version.

    commit()                 the commit of the checkout, or of the repository from which pip installed; "unknown"
    package_digest()         a hash of the code, which also changes where a checkout has changes that no commit has

The two functions read files, so only commands that show or compare versions call them.
"""

import functools
import os
from contextlib import suppress
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


@functools.cache
def commit() -> str:
    """The first 12 digits of the commit, or "unknown"."""
    return (_of_checkout(FOLDER.parent / ".git") or _of_installation() or "unknown")[:12]


def _of_checkout(place: Path) -> str:
    """The commit of a checkout, without git: HEAD has it, or names a file that has it, or a line of packed-refs."""
    with suppress(OSError, UnicodeDecodeError):
        if place.is_file():  # of a worktree: "gitdir: folder"
            place = (place.parent / place.read_text("utf-8").partition(":")[2].strip()).resolve()
        common = place
        with suppress(OSError):
            common = place / (place / "commondir").read_text("utf-8").strip()
        head = (place / "HEAD").read_text("utf-8").strip()
        name = head.removeprefix("ref: ")
        if name == head:
            return head
        with suppress(OSError):
            return (common / name).read_text("utf-8").strip()
        lines = (common / "packed-refs").read_text("utf-8").splitlines()
        return next((line.partition(" ")[0] for line in lines if line.endswith(f" {name}")), "")
    return ""


def _of_installation() -> str:
    """The commit of the URL from which pip installed the package; its metadata has it (PEP 610)."""
    import json
    from importlib import metadata  # it takes a third of the time of `mo-loop --version`, in a checkout too

    with suppress(metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        text = metadata.distribution("mo_loop").read_text("direct_url.json")
        return str(json.loads(text or "{}")["vcs_info"]["commit_id"])
    return ""


@functools.cache
def package_digest() -> str:
    """A hash of the names and contents of all files of the package but compiled ones, as hexadecimal digits."""
    from hashlib import sha256

    found = sha256()
    for folder, folders, names in os.walk(FOLDER, followlinks=True):
        folders[:] = sorted(each for each in folders if each != "__pycache__")
        for name in sorted(names):
            content = Path(folder, name).read_bytes()
            found.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
    return found.hexdigest()
