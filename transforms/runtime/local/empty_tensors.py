"""Tensors without elements that the runtime computes wrongly, or does not compile."""

from collections.abc import Sequence

import numpy as np

from mo_loop.graph.shape import assume_fixed, normalise_axis, of_declared_sizes
from mo_loop.graph.types import i64, string
from mo_loop.target import CRASH, Gap
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.predicates import type_matches
from mo_loop.transforms.replace import drop_dead, move_readers
from mo_loop.transforms.runtime.local.rule import rule
from mo_loop.transforms.vocabulary import Constant, F, Identity, Node, Result, Value, is_static, ops, source_of


@rule(wrap_type(ops.Concat), "`Broadcast` of a zero to the summed shape", Gap(
    "empty-concat", "`Concat` ignores inputs with a dimension of 0, for every axis",
))
def EmptyConcatToBroadcast(node: ops.Concat) -> Node | None:
    """Concat(a : [0,?], b : [0,2], axis 1)  ->  Broadcast(0, [0, n + 2]), where n is the size of a along the axis"""
    output = node.output
    if output.rank is None or output.dtype is string:
        return None
    axis = normalise_axis(node.axis, output.rank)
    if 0 not in (*output.type.dims[:axis], *output.type.dims[axis + 1 :]):
        return None
    values = node.operands
    return _of_nothing(node, [_size(values if at == axis else values[:1], at) for at in range(output.rank)])


@rule(
    wrap_type((ops.View, ops.Gather)), "`Broadcast` of a zero to the shape",
    Gap(
        "unsqueeze-of-nothing",
        "`Unsqueeze` and `Squeeze` of a tensor with a dimension that is 0 before run time make 0 of the dimensions "
        "that are not known, and a `Reshape` to computed sizes and 0 fails",
    ),
    Gap(
        "one-size-of-nothing",
        "a `Reshape` of a tensor with a dimension of 0 that changes one size known only at run time does nothing",
        since="2025.0.0",
    ),
)
def EmptySqueezeToBroadcast(node: ops.View | ops.Gather) -> Node | None:
    """Unsqueeze(x : [0,N], 0)  ->  Broadcast(0, [1, 0, n]), where n is the size of x along its axis 1; so Squeeze
    Reshape(x : [N,M,0], [n, 0])  ->  Broadcast(0, [n, 0])
    Reshape(x : [N,0], [2 n, 0])  ->  Broadcast(0, [2 n, 0]): the runtime takes the one unknown size for that of x
    Gather(x : [0,N,4], i, 2)  ->  Broadcast(0, [0, n]): the runtime ends the process if n is known
    """
    x, output = node.operands[0], node.output
    if x.shape is None or output.dtype is string or 0 not in (output.shape or ()):
        return None
    if is_static(output.shape) or output.shape == x.shape:
        return None
    pattern = node.operands[1] if isinstance(node, ops.Reshape) else None
    computed = () if pattern is None or pattern.type.known is None else tuple(pattern.type.known)
    found: list[tuple[Value | None, int]] = []  # a tensor of sizes, and a place in it; a size
    start = 0
    for place, dim in enumerate(output.type.dims):
        if isinstance(dim, int):
            found.append((None, dim))
        elif dim in x.shape[start:]:
            at = x.shape.index(dim, start)
            found.append((x.sizes, at))
            start = at + 1
        elif pattern is not None and computed[place : place + 1] == (dim,):
            found.append((pattern, place))
        else:
            return None
    sizes = [
        F.Constant([at], graph=node.graph, dtype=i64) if tensor is None else F.Gather(tensor, [at], np.array(0))
        for tensor, at in found
    ]
    return _of_nothing(node, sizes)


def _of_nothing(node: Node, sizes: Sequence[Value]) -> Node:
    """A tensor without elements, of sizes that are tensors [1]."""
    zero = F.Constant(np.zeros(()), graph=node.graph, dtype=node.outputs[0].dtype)
    return ops.Broadcast(zero, F.Concat(*sizes, axis=0))


def _size(values: Sequence[Value], at: int) -> Value:
    """The sum [1] of the sizes along the dimension `at`."""
    dims = [value.type.dims[at] for value in values]
    total = sum(dim for dim in dims if isinstance(dim, int))
    size: Value = F.Constant([total], graph=values[0].graph, dtype=i64)
    for value, dim in zip(values, dims, strict=True):
        if not isinstance(dim, int):
            found = F.Gather(value.sizes, [at], np.array(0))
            size = size + found if total or len(values) > 1 else found
    return size


@rule(wrap_type(ops.Broadcast), "a constant of the broadcast shape", Gap(
    "broadcast-of-empty-constant",
    "`Broadcast` of a tensor of known shape without elements to a known shape crashes the process that reads or "
    "compiles the model", severity=CRASH,
))
def EmptyBroadcastToConstant(node: ops.Broadcast) -> Node | None:
    """Broadcast(x : [1,0], [3,1,0])  ->  a Constant [3,1,0]"""
    output = node.output
    x = node.operands[0]
    if not is_static(x.shape) or 0 not in x.type.dims or not is_static(of_declared_sizes(output.shape)):
        return None
    assume_fixed(output.type.dims)
    return Constant(np.zeros(output.type.dims), graph=node.graph, dtype=output.dtype)


@rule(
    wrap_type((Constant, Identity), when=type_matches(i64)), "`Broadcast` to sizes known only at run time",
    Gap(
        "empty-constant-output", "a constant of i64 without elements as a model output crashes the process",
        severity=CRASH, until="2024.6.0",
    ),
    bodies="never",
)
def EmptyOutputsToBroadcast(node: Constant | Identity) -> Node | None:
    """a model output that is an i64 Constant without elements  ->  Broadcast(0, its shape), where zeros are computed

    The runtime converts the constant from i32 and crashes when it compiles that.
    """
    value = node.output
    results = [use for use in value.uses if isinstance(use.node, Result)]
    source = source_of(value, Identity)
    if not results or not isinstance(source.node, Constant) or 0 not in source.type.dims:
        return None
    zero, shape = (Constant(each, graph=node.graph, dtype=i64) for each in (0, value.type.dims))
    move_readers(value, F.Broadcast(zero, F.Barrier(shape, hides="value")), results)
    drop_dead([node])
    return node
