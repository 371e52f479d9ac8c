"""Types and shapes in an IR file as the records of an inspection."""

from __future__ import annotations

from mo_loop.graph.shape import MOST_DIMENSIONS
from mo_loop.graph.types import BY_PRECISION
from mo_loop.ir.reader.numbers import integer
from mo_loop.ir.reader.records import LayerPort as IrPort
from mo_loop.look.inspection.description import Port, Shape


def port_of(name: str, port: IrPort | None) -> Port:
    """The record of a port of the file."""
    if port is None:
        return Port(name)
    known = BY_PRECISION.get(port.precision)
    return Port(name, known.name if known else port.precision, [dim if dim >= 0 else "?" for dim in port.dims])


def shape_of(text: str) -> Shape:
    """A shape as an attribute spells it: `1,?,2..5`, `...` for an unknown rank."""
    if text.strip() == "...":
        return None
    dims = [each.strip() for each in text.strip().strip("[]").split(",") if each.strip()]
    return [_dim(each) for each in dims] if len(dims) <= MOST_DIMENSIONS else None


def _dim(text: str) -> int | str:
    try:
        dim = integer(text, -1)
    except ValueError:
        return text
    return dim if dim >= 0 else "?"
