"""Advice for tensors whose rank is not known, or depends on a condition: the declarations that a user can add.

advice(value)        # declare the dimensions of the input; if there are three: --input "x[?,?,?]"
decision(condition)  # give the condition a constant value: --freeze "sr=VALUE"
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from mo_loop.graph import Node, Value
from mo_loop.graph.shape import element_count
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Control
from mo_loop.ops.views import ShapeOf

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
    stack, seen = [value], set()
    while stack:
        each = stack.pop()
        node = each.node
        if each in seen or isinstance(node, Constant) or not isinstance(each.type, TensorType):
            continue
        seen.add(each)
        if isinstance(node, Parameter) and not _is_input(node):
            stack += _outer(node, captured)
        elif isinstance(node, Parameter):
            if each.type.rank is None:
                yield f'declare the dimensions of the input; if there are three: --input "{node.name}[?,?,?]"'
            elif each.type.rank == 1 and not isinstance(each.type.dims[0], int):
                yield f'declare how many elements the input has; if there are three: --input "{node.name}[3]"'
        else:
            stack += [source for source in node.inputs if source is not None and _decides(source, each)]


def _deciding(condition: Value, captured: Mapping[Node, Value]) -> Iterator[str]:
    """An option for each input on which the condition depends; an empty one for data."""
    stack, seen = [(condition, False)], set()
    while stack:
        each, of_shape = stack.pop()
        node = each.node
        if (each, of_shape) in seen:
            continue
        seen.add((each, of_shape))
        if isinstance(node, Parameter) and not _is_input(node):
            stack += [(outer, of_shape) for outer in _outer(node, captured)]
        elif isinstance(node, Parameter) and of_shape:
            yield f'--input "{node.name}[SIZES]"'
        elif isinstance(node, Parameter):
            count = element_count(each.shape) if isinstance(each.type, TensorType) else None
            is_few = isinstance(count, int) and count <= MOST_FROZEN  # others are data, which no caller freezes
            yield f'--freeze "{node.name}=VALUE"' if is_few else ""
        else:
            is_shape = of_shape or isinstance(node, ShapeOf)
            stack += [(source, is_shape) for source in node.inputs if source is not None]


def _is_input(node: Parameter) -> bool:
    """Whether it is an input of the model, and not of a body; a body that is being translated has no owner."""
    return node.graph.owner is None and not node.graph.scope


def _outer(node: Parameter, captured: Mapping[Node, Value]) -> list[Value]:
    owner = node.graph.owner
    outer = owner.outer(node) if isinstance(owner, Control) else captured.get(node)
    return [] if outer is None else [outer]


def _decides(source: Value, result: Value) -> bool:
    """Whether the rank of a result may depend on a source: on its rank, or on the number of its elements."""
    type_ = source.type
    if not isinstance(type_, TensorType) or type_.rank is None:
        return True
    is_float = type_.dtype is not None and type_.dtype.is_float
    return type_.rank == 1 and not isinstance(type_.dims[0], int) and not is_float
