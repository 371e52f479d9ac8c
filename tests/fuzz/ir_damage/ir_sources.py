"""The pairs of .xml and .bin that are damaged: small ones, with every layer that the writer writes."""

import tarfile
from functools import cache
from pathlib import Path

ARCHIVE = Path(__file__).with_name("pairs.tar.xz")


@cache
def pairs() -> tuple[tuple[str, bytes, bytes], ...]:
    """(name, .xml, .bin) of each pair."""
    with tarfile.open(ARCHIVE) as archive:
        files = {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]
    names = [name.removesuffix(".xml") for name in files if name.endswith(".xml")]
    return tuple((name, files[f"{name}.xml"], files[f"{name}.bin"]) for name in names)
