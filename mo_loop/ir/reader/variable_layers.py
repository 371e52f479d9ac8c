"""The variables of an IR file: the layers that read and assign each of them, by its id, in the model and its bodies.

    found = variables(net)["pastpresent"]
    found.reads, found.assigns            # [(net, layer)]
    require_consistent(net)               # IrError for a variable that is read but never assigned, or has two types

ReadValue-6 declares the type of its variable; an Assign has the id alone. The operations of opset 3 declare no type: it
is that of the port.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mo_loop.graph.types import BY_PRECISION
from mo_loop.ir.reader.numbers import parse_shape
from mo_loop.ir.reader.records import Layer, Net, Port, shortened

READ, ASSIGN = "ReadValue", "Assign"
CODE = "ML256"

Dims = tuple[int, ...] | None
"""-1 for an unknown dimension, None for an unknown rank."""


@dataclass
class Variable:
    """One variable. A net and a layer in it for each ReadValue and each Assign."""

    id: str
    reads: list[tuple[Net, Layer]] = field(default_factory=list)
    assigns: list[tuple[Net, Layer]] = field(default_factory=list)


def variables(net: Net) -> dict[str, Variable]:
    """The variables by id, in the order of the file."""
    found: dict[str, Variable] = {}
    stack = [net]
    while stack:
        here = stack.pop()
        for layer in here.layers:
            if layer.type in (READ, ASSIGN) and "variable_id" in layer.data:
                known = found.setdefault(layer.data["variable_id"], Variable(layer.data["variable_id"]))
                (known.reads if layer.type == READ else known.assigns).append((here, layer))
        stack += reversed([body for layer in here.layers for body in layer.bodies.values()])
    return found


def require_consistent(net: Net) -> dict[str, Variable]:
    """`variables`, if each is read and assigned, with one type; IrError otherwise."""
    found = variables(net)
    for each in found.values():
        name = shortened(repr(each.id), 60)
        if not each.assigns:
            raise each.reads[0][1].wrong(f"nothing assigns the variable {name} that it reads", CODE)
        if not each.reads:
            raise each.assigns[0][1].wrong(f"nothing reads the variable {name} that it assigns", CODE)
        first, *others = [(layer, *declared(layer)) for _, layer in each.reads]
        # An Assign has no type of its own: what it stores is its input.
        stored = [(layer, *_of_port(layer.inputs[0])) for _, layer in each.assigns if layer.inputs]
        for layer, dtype, dims in (*others, *stored):
            if dtype != first[1] or not _fit(dims, first[2]):
                other = f"{_text(*first[1:])} in layer {shortened(first[0].id, 40)}"
                raise layer.wrong(f"the variable {name} is {_text(dtype, dims)} here, and {other}", CODE)
    return found


def declared(layer: Layer) -> tuple[str, Dims]:
    """The element type and the dimensions of the variable that a ReadValue reads."""
    if "variable_type" not in layer.data or "variable_shape" not in layer.data:
        return _of_port(layer.outputs[0]) if layer.outputs else ("dynamic", None)
    try:
        shape = parse_shape(layer.data["variable_shape"])
    except ValueError as error:
        raise layer.wrong(f"the attribute variable_shape is not a shape: {error}") from None
    dims = None if shape is None else tuple(dim if isinstance(dim, int) else -1 for dim in shape)
    return layer.data["variable_type"], dims


def shape_text(layer: Layer) -> str:
    """The shape of its variable, as `variable_shape` spells it."""
    if "variable_shape" in layer.data:
        return layer.data["variable_shape"]
    dims = declared(layer)[1]
    return "..." if dims is None else ",".join(str(dim) if dim >= 0 else "?" for dim in dims)


def _of_port(port: Port) -> tuple[str, Dims]:
    """The type of a port; without dimensions it is a scalar or of unknown rank."""
    known = BY_PRECISION.get(port.precision)
    return known.name if known else port.precision.lower(), port.dims or None


def _fit(one: Dims, other: Dims) -> bool:
    """Whether a tensor can have both shapes."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(a < 0 or b < 0 or a == b for a, b in zip(one, other, strict=True))


def _text(dtype: str, dims: Dims) -> str:
    return dtype + ("[...]" if dims is None else f"[{','.join(str(dim) if dim >= 0 else '?' for dim in dims)}]")
