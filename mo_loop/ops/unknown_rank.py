"""What a user can declare when the rank of a tensor is not known.

advice(value)     # declare the dimensions of the input; if there are three: --input "x[?,?,?]"
"""

from collections.abc import Iterator

from mo_loop.graph import Value
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Constant, Parameter

EXPORT = "declare the shapes of the inputs, or export with fixed ranks"


def advice(value: Value) -> str:
    """Which inputs of the model to declare, with the option written out."""
    found = list(dict.fromkeys(_options(value, set())))
    return "; ".join(found) if found else EXPORT


def _options(value: Value, seen: set[Value]) -> Iterator[str]:
    """An option for each input of the model on which the rank depends."""
    stack = [value]
    while stack:
        each = stack.pop()
        node = each.node
        if each in seen or isinstance(node, Constant) or not isinstance(each.type, TensorType):
            continue
        seen.add(each)
        if isinstance(node, Parameter):
            if node.graph.owner is None and each.type.rank is None:
                yield f'declare the dimensions of the input; if there are three: --input "{node.name}[?,?,?]"'
            elif node.graph.owner is None and each.type.rank == 1 and not isinstance(each.type.dims[0], int):
                yield f'declare how many elements the input has; if there are three: --input "{node.name}[3]"'
            continue
        stack += [source for source in node.inputs if source is not None and _decides(source, each)]


def _decides(source: Value, result: Value) -> bool:
    """Whether the rank of a result may depend on a source: on its rank, or on the number of its elements."""
    type_ = source.type
    if not isinstance(type_, TensorType) or type_.rank is None:
        return True
    is_float = type_.dtype is not None and type_.dtype.is_float
    return type_.rank == 1 and not isinstance(type_.dims[0], int) and not is_float
