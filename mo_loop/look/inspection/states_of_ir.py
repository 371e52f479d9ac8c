"""The variables of an IR as records: id, type, initial value, and where each is read and assigned.

Only the constants of initial values are read from the .bin, up to `_LOOKED_AT` elements.
"""

from __future__ import annotations

import numpy as np

from mo_loop.ir.reader.variable_layers import VariableLayers, declared, shape_text, variables
from mo_loop.look.inspection.description import Initial, VariableFacts
from mo_loop.look.records.data import Data
from mo_loop.look.records.of_layers import shape_of
from mo_loop.look.records.structure import Item, Structure
from mo_loop.look.records.tensor_ports import tensor_port

_LOOKED_AT = 1 << 22
"""The number of elements of a constant above which its values are not compared with each other."""


def states_of(structure: Structure) -> list[VariableFacts]:
    """The variables in the order of the file, of a structure that was made of layers."""
    items = {id(item.made_of): item for scope in structure.scopes() for item in scope.items}
    return [_state(each, items) for each in variables(structure.made_of).values()]


def _state(found: VariableLayers, items: dict[int, Item]) -> VariableFacts:
    read, assigned = ([layer.where for _, layer in ends] for ends in (found.reads, found.assigns))
    if not found.reads:
        return VariableFacts(found.id, "?", None, Initial("none"), read, assigned)
    layer = found.reads[0][1]
    initial = _initial(items[id(layer)])
    return VariableFacts(found.id, declared(layer)[0], shape_of(shape_text(layer)), initial, read, assigned)


def _initial(item: Item) -> Initial:
    """The value of the variable before it is assigned: the input of its ReadValue."""
    ref = item.input(0)
    if ref is None:
        return Initial("none")
    port = tensor_port(ref)
    seen: list[Item] = []
    while ref is not None and ref.item.operator in ("Convert", "Broadcast", "Tile") and ref.item not in seen:
        seen.append(ref.item)
        ref = ref.item.input(0)
    is_computed = any(each.operator != "Convert" for each in seen)
    data = None if ref is None else ref.item.data
    value = "" if data is None else _uniform(data)
    return Initial("computed" if is_computed or data is None else "constant", value, port.type, port.shape)


def _uniform(data: Data) -> str:
    """The value of all elements of a constant: "zeros", or the number; empty if they differ or cannot be read."""
    values = data.array(_LOOKED_AT)
    if values is None or not values.size or values.dtype.kind == "O":
        return ""
    cells = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
    if not (cells == cells[0]).all():
        return ""
    if not cells[0].any():
        return "zeros"
    return str(int(values[0]) if values.dtype.kind in "biu" else values[0])
