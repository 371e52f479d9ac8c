"""Tables as plain text, one line a row: what files and pipes get.

>>> print(aligned([("pass", "ms"), ("Fold", "1.25"), ("LoopToTI", "0.5")], right=(1,)))
pass        ms
Fold      1.25
LoopToTI   0.5
"""

from __future__ import annotations

from collections.abc import Sequence

from mo_loop.support.printable import printable


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = (), indent: str = "") -> str:
    """Columns as wide as their widest cell; those numbered in `right` are aligned to the right.

    Cells are printed without control characters, and each row is one line.
    """
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)
