"""The nodes of a model as a table, one line each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from mo_loop.cli.output import painted
from mo_loop.look.inspection.contents import NodeRow
from mo_loop.look.records.structure import TensorPort
from mo_loop.printable import printable
from mo_loop.text.spelling import quoted

HEADS = ("scope", "name", "operator", "inputs", "outputs")

_SEPARATORS = re.compile('[ ,"]')

WIDEST = 40
"""The widest column; a longer cell moves the rest of its line."""


def node_table(rows: Iterable[NodeRow]) -> Iterator[str]:
    """The lines. Names are complete, so that they can be copied."""
    lines = [HEADS, *map(_cells, rows)]
    widths = [min(max(map(len, column)), WIDEST) for column in zip(*lines, strict=True)]
    yield painted(_line(HEADS, widths), bold=True)
    for line in lines[1:]:
        yield _line(line, widths)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cells(row: NodeRow) -> tuple[str, ...]:
    return (
        _name(row.scope) if row.scope else "(main)", _name(row.name) if row.name else "", _name(row.operator),
        ", ".join(map(_name, row.inputs)), ", ".join(map(_port, row.outputs)),
    )  # fmt: skip


def _port(port: TensorPort) -> str:
    name = _name(port.name)
    return name if not port.is_known else f"{name} {printable(str(port))}"


def _name(text: str) -> str:
    """A name; quoted as in JSON if it is empty, or would run into the text around it."""
    return text if text.isprintable() and text and not _SEPARATORS.search(text) else quoted(text)
