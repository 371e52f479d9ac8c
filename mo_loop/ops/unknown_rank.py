"""Advice for tensors whose rank is not known, or depends on a condition: the declarations that a user can add.

advice(value)        # declare the dimensions of the input; if there are three: --input "x[?,?,?]"
decision(condition)  # give the condition a constant value: --freeze "sr=VALUE"
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from mo_loop.graph import Node, TensorType, Value, element_count
from mo_loop.ops.base import Parameter
from mo_loop.ops.control import Control
from mo_loop.ops.views import ShapeOf
from mo_loop.support.traversal import reached

EXPORT = "export the model with fixed ranks"

SAME_RANK = "make both branches return the same rank"

MOST_FROZEN = 16

_NOTHING: Mapping[Node, Value] = MappingProxyType({})


def advice(value: Value, captured: Mapping[Node, Value] = _NOTHING) -> str:
    """The inputs of the model to declare, with the option written out.

    `captured` has the outer values of Parameters of bodies that have no owner yet.
    """
    found = list(dict.fromkeys(_options(value, captured)))
    return "; ".join(found) if found else EXPORT


def decision(condition: Value, captured: Mapping[Node, Value] = _NOTHING) -> str:
    """The inputs of the model that decide a condition: if they are frozen, or have a known shape, it is constant."""
    found = list(dict.fromkeys(_deciding(condition, captured)))
    is_known = bool(found) and all(found)
    return f"give the condition a constant value ({', '.join(found)}), or {SAME_RANK}" if is_known else SAME_RANK


def _options(value: Value, captured: Mapping[Node, Value]) -> Iterator[str]:
    """An option for each input of the model on which the rank depends."""

    def sources(each: Value) -> list[Value]:
        if not isinstance(each.type, TensorType):
            return []
        if isinstance(each.node, Parameter):
            return _outer(each.node, captured)
        return [source for source in each.node.operands if _decides(source, each)]

    for each in reached([value], sources):
        name, type_ = each.node.name, each.type
        if not _is_input(each.node) or not isinstance(type_, TensorType):
            continue
        if type_.rank is None:
            yield f'declare the dimensions of the input; if there are three: --input "{name}[?,?,?]"'
        elif type_.rank == 1 and not isinstance(type_.dims[0], int):
            yield f'declare how many elements the input has; if there are three: --input "{name}[3]"'


def _deciding(condition: Value, captured: Mapping[Node, Value]) -> Iterator[str]:
    """An option for each input on which the condition depends; an empty one for data."""

    def sources(item: tuple[Value, bool]) -> list[tuple[Value, bool]]:
        node = item[0].node
        values = _outer(node, captured) if isinstance(node, Parameter) else node.operands
        return [(each, item[1] or isinstance(node, ShapeOf)) for each in values]

    for each, of_shape in reached([(condition, False)], sources):
        if not _is_input(each.node):
            continue
        count = element_count(each.shape)
        is_few = isinstance(count, int) and count <= MOST_FROZEN  # others are data, which no caller freezes
        frozen = f'--freeze "{each.node.name}=VALUE"' if is_few else ""
        yield f'--input "{each.node.name}[SIZES]"' if of_shape else frozen


def _is_input(node: Node) -> bool:
    """Whether it is an input of the model, and not of a body; a body that is being translated has no owner."""
    return isinstance(node, Parameter) and node.graph.owner is None and not node.graph.scope


def _outer(node: Parameter, captured: Mapping[Node, Value]) -> list[Value]:
    if _is_input(node):
        return []
    owner = node.graph.owner
    outer = owner.outer(node) if isinstance(owner, Control) else captured.get(node)
    return [] if outer is None else [outer]


def _decides(source: Value, result: Value) -> bool:
    """Whether the rank of a result may depend on a source: on its rank, or on the number of its elements."""
    if source.rank is None:
        return True
    is_float = source.dtype is not None and source.dtype.is_float
    return source.rank == 1 and not isinstance(source.type.dims[0], int) and not is_float
