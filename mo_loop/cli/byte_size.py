"""The type of options that are a number of bytes."""

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
