"""Maps layer types and versions to operation classes, and parses their attributes.

The attributes in a file must be exactly those of the class. An attribute that the class lacks would be lost. One that
the file lacks has the default of the specification, which the class may not have.

The variables of an IR file: the layers that read and assign each of them, by its id, in the model and its bodies.

    found = variables(net)["pastpresent"]
    found.reads, found.assigns            # [(net, layer)]
    require_consistent(net)               # IrError for a variable that is read but never assigned, or read as two types

ReadValue-6 declares the type of its variable; an Assign has the id alone. The operations of opset 3 declare no type: it
is that of the port. A layer without the attributes of its operation is refused, too: none of them has a default.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, get_args, get_origin

from mo_loop import ops
from mo_loop.graph import BY_IR_NAME, BY_PRECISION, ElementType, Shape, TensorType, Value
from mo_loop.ir.reader.layer_records import Layer, LayerPort, Net, integer, parse_shape, shortened, shown
from mo_loop.ir.xml import nearest_single
from mo_loop.ops.base import Constant, Identity, Op, Parameter, Result
from mo_loop.ops.control import Control
from mo_loop.ops.front import Opaque, element_type

_OWN_WAY = (Parameter, Result, Constant, Control, Opaque)  # the reader makes these itself
_SHADOWED = (Identity,)  # written as a Convert to the same type, and read as that


@cache
def classes() -> dict[tuple[str, str], type[Op]]:
    """(type, version) -> class."""
    found: dict[tuple[str, str], type[Op]] = {}
    for name in dir(ops):
        cls = getattr(ops, name)
        if not isinstance(cls, type) or not issubclass(cls, Op) or cls.abstract or not cls.opset:
            continue
        if not issubclass(cls, (*_OWN_WAY, *_SHADOWED)):
            found[cls.type, cls.opset_name] = cls
    return found


def attributes_of(cls: type[Op], raw: dict[str, str]) -> dict[str, Any]:
    """The attributes of `cls` from their text. Raises ValueError if the class cannot represent them."""
    texts = cls.from_xml(raw)
    if texts.keys() != cls.attributes.keys():
        raise ValueError(f"attributes {sorted(texts)} for {cls.__name__}")
    return {key: parsed(text, cls._kinds[key]) for key, text in texts.items()}


def declared_type(layer: Layer, symbol: str = "") -> TensorType:
    """The type that a Parameter declares; its unknown dimensions are named with the prefix `symbol`, if it is given."""
    text, name = layer.data.get("shape"), layer.data.get("element_type", "")
    if text is None or not name:
        raise layer.wrong("a Parameter needs the attributes shape and element_type")
    try:
        shape: Shape = parse_shape(text, symbol)
    except ValueError as error:
        raise layer.wrong(f"the attribute shape is {shown(text)}, which is not a shape: {error}") from None
    dtype = BY_IR_NAME.get(name) or element_type(layer.outputs[0].precision if layer.outputs else name.upper(), name)
    return TensorType(dtype, shape)


def parsed(text: str, kind: Any) -> Any:
    """The inverse of the writer's `spelled`, for an attribute of that kind. Raises ValueError for other text."""
    if kind is bool:
        return _truth(text)
    if kind is int:
        return integer(text)
    if kind is float:
        return _number(text)
    if kind is str:
        return text
    if kind is ElementType:
        if text not in BY_IR_NAME:
            raise ValueError(f"element type {shown(text)}")
        return BY_IR_NAME[text]
    if get_origin(kind) is Literal:
        choices = {choice.casefold(): choice for choice in get_args(kind)}
        if text.casefold() not in choices:
            raise ValueError(f"{text!r} is not one of {get_args(kind)}")
        return choices[text.casefold()]
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return tuple(parsed(each.strip(), item) for each in text.split(",")) if text.strip() else ()
    if kind is tuple and (shape := parse_shape(text)) is not None:
        return shape
    raise ValueError(f"no text is of the kind {kind}")


def _number(text: str) -> float:
    """A number of up to nine digits means the nearest f32."""
    value = float(text)
    single = nearest_single(value)
    return single if f"{single:.9g}" == text else value


def _truth(text: str) -> bool:
    word = text.casefold()
    if word not in ("true", "false", "1", "0"):
        raise ValueError(f"{text!r} is neither true nor false")
    return word in ("true", "1")


READ, ASSIGN = "ReadValue", "Assign"
CODE = "ML256"
TYPED = ("variable_id", "variable_type", "variable_shape")
"""The attributes of ReadValue-6."""
UNTYPED = "opset3"
"""The version whose operations declare no type."""

Dims = tuple[int, ...] | None
"""-1 for an unknown dimension, None for an unknown rank."""


@dataclass
class VariableLayers:
    """One variable. A net and a layer in it for each ReadValue and each Assign."""

    id: str
    reads: list[tuple[Net, Layer]] = field(default_factory=list)
    assigns: list[tuple[Net, Layer]] = field(default_factory=list)


def variables(net: Net) -> dict[str, VariableLayers]:
    """The variables by id, in the order of the file."""
    found: dict[str, VariableLayers] = {}
    for here, layer in _layers(net):
        if "variable_id" in layer.data:
            known = found.setdefault(layer.data["variable_id"], VariableLayers(layer.data["variable_id"]))
            (known.reads if layer.type == READ else known.assigns).append((here, layer))
    return found


def _layers(net: Net) -> Iterator[tuple[Net, Layer]]:
    """The layers that read or assign a variable, those of bodies after those of the graph around them."""
    stack = [net]
    while stack:
        here = stack.pop()
        yield from ((here, layer) for layer in here.layers if layer.type in (READ, ASSIGN))
        stack += reversed([body for layer in here.layers for body in layer.bodies.values()])


def require_consistent(net: Net) -> dict[str, VariableLayers]:
    """`variables`, if each is read, with one type, and assigned; IrError otherwise."""
    for _, layer in _layers(net):
        _require_attributes(layer)
    found = variables(net)
    for each in found.values():
        name = shortened(repr(each.id), 60)
        if not each.assigns:
            raise each.reads[0][1].wrong(f"nothing assigns the variable {name} that it reads", CODE)
        if not each.reads:
            raise each.assigns[0][1].wrong(f"nothing reads the variable {name} that it assigns", CODE)
        for _, layer in each.reads[1:]:
            _require_type(each, layer, *declared(layer))
    return found


def _require_attributes(layer: Layer) -> None:
    """Raise IrError if a layer lacks an attribute that has no default."""
    needed = TYPED if layer.type == READ and layer.version != UNTYPED else TYPED[:1]
    lacking = [key for key in needed if key not in layer.data]
    if lacking:
        raise layer.wrong(f"a {layer.type} of {layer.version} needs the attribute {lacking[0]}")


def require_stored(variable: VariableLayers, layer: Layer, value: Value) -> None:
    """Raise IrError if an Assign stores a value of another type than its variable, whatever its input port has."""
    shape = value.shape
    dims = None if shape is None else tuple(dim if isinstance(dim, int) else -1 for dim in shape)
    _require_type(variable, layer, value.dtype.name, dims)


def _require_type(variable: VariableLayers, layer: Layer, dtype: str, dims: Dims) -> None:
    """Raise IrError if the layer has another type than the first ReadValue of the variable."""
    first = variable.reads[0][1]
    known = declared(first)
    if dtype != known[0] or not _fit(dims, known[1]):
        here = f"the variable {shortened(repr(variable.id), 60)} is {_text(dtype, dims)} here"
        raise layer.wrong(f"{here}, and {_text(*known)} in layer {shortened(first.id, 40)}", CODE)


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


def _of_port(port: LayerPort) -> tuple[str, Dims]:
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
