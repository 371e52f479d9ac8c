"""Info and Stamp: facts that distinguish contents of a file or object. Nothing is imported for a path."""

from __future__ import annotations

from dataclasses import dataclass

Ranges = tuple[tuple[int, int], ...]
"""Pairs of the first byte and the byte after the last one."""


@dataclass(frozen=True, slots=True)
class Info:
    """The facts that a store gives about an object: its size in bytes, and its ETag or checksum; empty if the store has
    none."""

    size: int
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Size in bytes and SHA-256 of a file that was read.

    An object at a URL has a tag too, if its store has one. `ranges` are those of external data that was read in part:
    the hash is that of these bytes.
    """

    size: int
    sha256: str
    tag: str = ""
    ranges: Ranges | None = None

    @property
    def info(self) -> Info:
        """Size and tag."""
        return Info(self.size, self.tag)
