"""The variables of an IR as records: id, type, initial value, and where each is read and assigned.

Only the constants of initial values are read from the .bin, up to `_LOOKED_AT` bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.graph.types import BY_NAME
from mo_loop.ir.reader.numbers import integer
from mo_loop.ir.reader.records import Layer, Net
from mo_loop.ir.reader.records import LayerPort as IrPort
from mo_loop.ir.reader.variable_layers import VariableLayers as Found
from mo_loop.ir.reader.variable_layers import declared, shape_text, variables
from mo_loop.look.inspection.description import Initial, Variable
from mo_loop.look.inspection.ir_ports import port_of, shape_of

_LOOKED_AT = 1 << 24
"""The size of a constant above which its values are not compared with each other."""

Producer = Callable[[Layer, str | None], tuple[Layer, IrPort | None] | None]
"""What feeds an input of a layer, by its label."""


def states_of(net: Net, weights: Path, producers: Callable[[Net], Producer]) -> list[Variable]:
    """The variables in the order of the file. `producers` gives the edges of a net."""
    return [_state(each, weights, producers) for each in variables(net).values()]


def _state(found: Found, weights: Path, producers: Callable[[Net], Producer]) -> Variable:
    read, assigned = ([layer.where for _, layer in ends] for ends in (found.reads, found.assigns))
    if not found.reads:
        return Variable(found.id, "?", None, Initial("none"), read, assigned)
    net, layer = found.reads[0]
    initial = _initial(layer, producers(net), weights)
    return Variable(found.id, declared(layer)[0], shape_of(shape_text(layer)), initial, read, assigned)


def _initial(layer: Layer, producer: Producer, weights: Path) -> Initial:
    """What the variable has before it is assigned: the input of its ReadValue."""
    fed = producer(layer, layer.inputs[0].label) if layer.inputs else None
    if fed is None:
        return Initial("none")
    made, port = fed
    type_ = port_of("", port)
    constant, is_computed = _constant(made, producer)
    value = "" if constant is None else _uniform(constant, weights)
    return Initial("computed" if is_computed or constant is None else "constant", value, type_.type, type_.shape)


def _constant(layer: Layer, producer: Producer) -> tuple[Layer | None, bool]:
    """The constant whose values an initial value has, and whether its shape is computed."""
    is_computed = False
    while layer.type in ("Convert", "Broadcast", "Tile") and layer.inputs:
        is_computed = is_computed or layer.type != "Convert"
        fed = producer(layer, layer.inputs[0].label)
        if fed is None:
            return None, is_computed
        layer = fed[0]
    return (layer if layer.type == "Const" else None), is_computed


def _uniform(layer: Layer, weights: Path) -> str:
    """The value of all elements of a Const as text: "zeros", or the number; empty if they differ or cannot be read."""
    dtype = BY_NAME.get(layer.data.get("element_type", ""))
    try:
        offset, size = (integer(layer.data.get(key, ""), 0) for key in ("offset", "size"))
    except ValueError:
        return ""
    if dtype is None or dtype.bits < 8 or dtype.kind == "string" or not weights.is_file():
        return ""
    if not 0 < size <= _LOOKED_AT or size % (dtype.bits // 8):
        return ""
    try:
        with open(os.fspath(weights), "rb") as file:
            file.seek(offset)
            values: Any = np.frombuffer(file.read(size), dtype.numpy)
    except (OSError, ValueError):
        return ""
    cells = values.view(np.uint8).reshape(len(values), -1)
    if cells.nbytes != size or not (cells == cells[0]).all():
        return ""
    if not cells[0].any():
        return "zeros"
    return str(int(values[0]) if values.dtype.kind in "biu" else values[0])
