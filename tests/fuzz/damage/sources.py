"""The models that are damaged: small ones, of every operator."""

import tarfile
from functools import cache
from pathlib import Path

ARCHIVE = Path(__file__).with_name("sources.tar.xz")


@cache
def models() -> tuple[tuple[str, bytes], ...]:
    """The models with their names."""
    with tarfile.open(ARCHIVE) as archive:
        return tuple((entry.name, archive.extractfile(entry).read()) for entry in archive)  # type: ignore[union-attr]
