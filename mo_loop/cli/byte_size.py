"""Numbers of bytes: the type of options, and how one is shown.

    sized(12_345)                        # 12.3 kB
"""

from __future__ import annotations

import re
from typing import Any

import click


class ByteSize(click.ParamType):
    """A number of bytes: 4G, 512M, 1.5GiB. K, M, G and T are powers of 1024."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,6})?)\s*([KMGT]?)(?:i?B)?", value.strip(), re.IGNORECASE)
        if found is None or not float(found[1]):
            self.fail(f"{value!r} is not a size; write, for example, 4G", param, ctx)
        return int(float(found[1]) * 1024 ** ("KMGT".index(found[2].upper()) + 1 if found[2] else 0))


def sized(count: int) -> str:
    """A number of bytes with a unit: 999 B, 12.3 kB, 4.2 MB, 1.0 GB."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 999.95:
            break
        size, unit = size / 1000, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
