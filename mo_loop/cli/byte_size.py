"""sized: a number of bytes for people."""

from __future__ import annotations


def sized(count: int) -> str:
    """A number of bytes with a unit: 999 B, 12.3 kB, 4.2 MB, 1.0 GB."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 999.95:
            break
        size, unit = size / 1000, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
