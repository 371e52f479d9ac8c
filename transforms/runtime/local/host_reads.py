"""Values that the GPU device reads in its host code, and its own count of iterations."""

from mo_loop.graph.types import boolean
from mo_loop.ops.control import Loop, TensorIterator
from mo_loop.ops.port_map import Sliced
from mo_loop.target import ERROR, GPU
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.runtime.local.rule import rule
from mo_loop.transforms.vocabulary import Constant, F, Gap, Node, Parameter, Value, integers, ops, source_of


@rule(wrap_type((ops.Add, ops.Subtract)), "`1 + i`", Gap(
    "gpu-iteration-plus-one",
    "`i + 1` or `i - -1` of the iteration number in a `Loop` with a concatenated output does not compile: the device "
    "adds the same node to the body, and one of them is removed",
    severity=ERROR, device=GPU,
))
def AddIterationToOne(node: ops.Add | ops.Subtract) -> Node | None:
    """i + 1  ->  1 + i, and i - (-1) likewise, where i is the iteration number"""
    owner, number = node.graph.owner, node.operands[0]
    step = 1 if isinstance(node, ops.Add) else -1
    if not isinstance(owner, Loop) or number.node is not owner.iteration or integers(node, 1) != (step,):
        return None
    return ops.Add(Constant(abs(node.operands[1].node.array), graph=node.graph), number)


SIZES = {ops.Slice: (1, 2, 3), ops.Tile: (1,), ops.Broadcast: (1,), ops.Pad: (1, 2), ops.If: (0,), Loop: (0, 1)}
"""Operations with inputs that the host code reads, and the ports of these inputs."""


@rule(wrap_type(tuple(SIZES)), "`max(p, p)`", Gap(
    "gpu-size-from-piece",
    "a bound of `Slice`, a size of `Tile` or `Broadcast`, an amount of `Pad`, or a condition, which is a piece of a "
    "`Split`, a constant `Slice` or a loop that the device unrolls, has the number of the first piece: pieces are "
    "views, and their offsets are not read",
    device=GPU,
))
def CopyPiecesOfSizes(node: Node) -> Node | None:
    """Slice(x, 0, Split(ends)[1])  ->  Slice(x, 0, max(p, p)) with p = Split(ends)[1]"""
    changed = False
    for port in next(ports for kind, ports in SIZES.items() if isinstance(node, kind)):
        value = node.inputs[port] if port < len(node.inputs) else None
        if value is not None and _is_view_of_piece(value):
            copy = F.LogicalOr(value, value) if value.dtype is boolean else F.Maximum(value, value)
            node.graph.set_input(node, port, copy)
            changed = True
    return node if changed else None


def _is_view_of_piece(value: Value) -> bool:
    """Whether the memory of `value` is a part of that of another tensor, not at its begin."""
    source = source_of(value, (ops.Squeeze, ops.Unsqueeze, ops.Reshape))
    made, owner = source.node, source.graph.owner
    if isinstance(made, ops.Split | ops.VariadicSplit):
        return source.index > 0
    if isinstance(made, ops.Slice):
        return integers(made, 1) is not None and any(integers(made, 1) or ())
    return isinstance(made, Parameter) and isinstance(owner, TensorIterator) and any(
        isinstance(each, Sliced) and each.parameter is made for each in owner.input_map
    )
