"""Values whose rank differs between iterations, branches or runs: the lower one gets leading axes of size 1.

    Loop(s = [1]: ..)  s: []  ->  [1]        the state is carried as [1]; its least rank is 0
    Loop(s = [3]: ..)  s: [2,3]  ->  [?,3]   the state is carried as [1,3] first; its least rank is 1
    Squeeze(x: [N, 1])        ->  [N]        without axes; its least rank is 0, for N may be 1
    Squeeze(x: [N, 1, M])     ->  [N, M]     without axes; SQUEEZED, for any size may be 1

The IR has one rank for each value: the widest one. The elements are the same, in the same order. Such a value has an
entry in `Scope.least_ranks`, the least rank that it can have in ONNX. An operator may read it if its result has the
same elements whatever the rank is, or if ONNX has the operator for the widest rank alone: then the result is exact, or
has a least rank itself. All others need a rank that the model declares (`decided`), or are refused.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mo_loop.errors import UnsupportedError
from mo_loop.frontend.registry import FAMILIES, is_elementwise, ports_of_one_rank
from mo_loop.frontend.scope import Doubts, Scope
from mo_loop.graph import TensorType, Value
from mo_loop.graph.dimension import Dimension, may_be_one
from mo_loop.ops import functional as ops

MOST = 4
"""The most axes that a state gets: a body that adds one in every iteration is refused."""

REDUCTIONS = frozenset(name for name in FAMILIES["reduction"].split() if name.startswith("Reduce"))
"""Reductions, of all axes unless they are given."""

ONE_ELEMENT = {"SequenceAt": (1,), "SequenceInsert": (2,), "SequenceErase": (1,), "Range": (0, 1, 2)}
"""Inputs of one element, which may have any rank."""

VECTORS = {
    "ConstantOfShape": (0,), "Expand": (1,), "Gather": (0,), "Hardmax": (0,), "LogSoftmax": (0,),
    "LpNormalization": (0,), "MatMul": (0, 1), "Reshape": (1,), "Slice": (0, 1, 2, 3, 4), "Softmax": (0,),
    "Split": (0, 1), "Squeeze": (0, 1), "Tile": (1,), "TopK": (0, 1), "Unsqueeze": (1,),
    **dict.fromkeys(REDUCTIONS, (1,)),
}
"""Inputs that cannot be scalars: one of rank 1 has this rank in every run that succeeds."""

ALONG_AN_AXIS = {
    "ArgMax": 0, "ArgMin": 0, "Gather": 0, "Hardmax": -1, "LayerNormalization": -1, "LogSoftmax": -1,
    "LpNormalization": -1, "Softmax": -1, "Split": 0, "TopK": -1,
}
"""Operators along one axis of the first input, and the default of it since opset 13."""

SQUEEZED = -1
"""In place of a least rank: ONNX has all sizes of the value but those of 1, which may be anywhere."""

FIXED_RANK = -2


def with_equal_ranks(a: Any, b: Any, *, by_ones: bool = False) -> tuple[Any, Any]:
    """Two types with the wider rank of both, the other one with leading sizes of 1; with `by_ones`, only if the wider
    one has these sizes too, else the types."""
    if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.shape is None or b.shape is None:
        return a, b
    rank = max(len(a.shape), len(b.shape))
    return _padded(a, b.shape, rank, by_ones), _padded(b, a.shape, rank, by_ones)


def _padded(type_: TensorType, other: Sequence[Dimension], rank: int, by_ones: bool) -> TensorType:
    shape: Any = type_.shape
    missing = rank - len(shape)
    if not missing or (by_ones and any(dim != 1 for dim in other[:missing])):
        return type_
    return TensorType(type_.dtype, (*[1] * missing, *shape))


def with_rank(value: Value, rank: int | None) -> Value:
    """The value with leading axes of size 1, so that it has this rank."""
    if rank is None or value.rank is None or value.rank >= rank:
        return value
    return ops.Unsqueeze(value, list(range(rank - value.rank)))


def shown_least(value: Value, least: Mapping[Value, int]) -> int:
    """The least rank of a value for a message."""
    surely = sum(dim != 1 and not may_be_one(dim) for dim in value.type.dims)
    return surely if least[value] == SQUEEZED else least[value]


def least_rank(value: Value, least: Mapping[Value, int]) -> int:
    """The least rank that a tensor of known rank can have."""
    return least.get(value, len(value.type.dims))


def decided(value: Value, least: int, rank: int) -> Value | None:
    """The value with this rank, which the model declares: the runtime refuses sizes with which ONNX has another one.
    None if its sizes do not show the rank."""
    dims = value.type.dims
    ones = [axis for axis, dim in enumerate(dims) if dim == 1 or may_be_one(dim)]
    if least != SQUEEZED:  # a leading size of 1 may be one of the value
        ones = ones[:1] if ones[:1] == [0] and dims[0] != 1 and rank == len(dims) else []
    surely = len(dims) - len(ones)
    if not ones or not surely <= rank <= len(dims):
        return None
    if rank == surely:
        return ops.Squeeze(value, ones)
    sizes = value.sizes
    others = np.array([axis not in ones for axis in range(len(dims))])
    places = ops.NonZero(ops.NotEqual(sizes, 1) | others).reshape([-1])
    # With more or fewer sizes the number of elements is another one, and the runtime refuses it.
    known = ops.Concat([1], ops.Gather(sizes, places, 0), np.full(rank, 2), axis=0)
    # Without the leading 1, or with a Squeeze of it, the runtime makes a vector of any number of elements.
    return ops.Gather(ops.Reshape(value, known[: rank + 1].reshape([rank + 1])), 0, 0)


def least_after(
    op: str, inputs: Sequence[Value | None], attributes: Mapping[str, Any], least: Mapping[Value, int], opset: int
) -> int | None:
    """The least rank of the results of an operator that reads such values; None if their rank is always the same.

    Raises:
        UnsupportedError: the elements or the shape of the result depend on the ranks.
    """
    inputs = inputs[:1] if op == "CastLike" else inputs  # the second input gives the type alone
    read = {port: value for port, value in enumerate(inputs) if value is not None and value in least}
    given = [value for value in inputs if value is not None]
    if all(port in ONE_ELEMENT.get(op, ()) for port in read):
        return None
    if _needs_widest(op, read, given, attributes, least):
        return None
    if is_elementwise(op) and opset >= 7 and all(value.rank is not None for value in given):
        squeezed = [value for value in given if least.get(value) == SQUEEZED]
        if not squeezed:
            return max(least_rank(value, least) for value in given)
        if all(value.rank == 0 or (value in squeezed and value.shape == squeezed[0].shape) for value in given):
            return SQUEEZED
    if list(read) == [0]:
        found = _after_data(op, given, attributes, least[given[0]], opset)
        if found is not None:
            return None if found == FIXED_RANK else found
    if op == "Gather" and list(read) == [1] and attributes.get("axis", 0) == 0 and given[0].rank is not None:
        return given[0].rank - 1 + least[given[1]]
    port, value = next(iter(read.items()))
    raise varying(f"{op} reads input {port}", value, least)


def _needs_widest(
    op: str, read: Mapping[int, Value], given: Sequence[Value], attributes: Mapping[str, Any],
    least: Mapping[Value, int],
) -> bool:
    """Whether ONNX has the operator only for the widest rank of each value that it reads."""
    ranks = {value.rank for value in read.values()}
    if ranks == {1} and (op == "Concat" or read.keys() <= set(VECTORS.get(op, ()))):
        return True
    if op == "Transpose":
        return ranks == {len(attributes.get("perm", ()))}
    ports = ports_of_one_rank(op)  # if one of them has the widest rank in every run, so have the others
    others = {value.rank for value in given if value not in least}
    return len(ports) > 1 and read.keys() <= set(ports) and others == ranks


def _after_data(op: str, given: Sequence[Value], attributes: Mapping[str, Any], lowest: int, opset: int) -> int | None:
    """The least rank of the result if the first input has this one, FIXED_RANK if its rank is always the same; None if
    the result depends on the rank."""
    data, *rest = given
    is_one = all(dim == 1 for dim in data.type.dims)
    has_axes = bool(rest) or "axes" in attributes
    if op == "Size" or (op == "Flatten" and is_one) or (op == "Squeeze" and not has_axes):
        return FIXED_RANK  # the translator of Squeeze finds the rank
    if op in ("Compress", "Unique") and attributes.get("axis") is None:
        return FIXED_RANK
    if op == "Clip":
        return lowest
    if op == "Reshape":
        pattern = attributes["shape"] if "shape" in attributes else rest[0].constant
        return FIXED_RANK if pattern is not None and 0 not in list(pattern) else None
    keeps = attributes.get("keepdims", 1)
    if lowest == SQUEEZED and (op not in REDUCTIONS or has_axes or keeps):
        return None
    if op in REDUCTIONS and not has_axes:
        return lowest if keeps or attributes.get("noop_with_empty_axes", 0) else FIXED_RANK
    if op in REDUCTIONS or op == "Unsqueeze":
        axes = attributes["axes"] if "axes" in attributes else rest[0].constant
        return None if axes is None else _after_axes(op, [int(each) for each in axes], lowest, is_one, keeps)
    if op in ALONG_AN_AXIS:
        axis = attributes.get("axis", ALONG_AN_AXIS[op] if opset >= 13 else 0)
        if not -lowest <= axis < 0:
            return None
        if op == "Gather":
            return None if rest[0].rank is None else lowest - 1 + rest[0].rank
        return lowest - (op in ("ArgMax", "ArgMin") and not keeps)
    if op == "MatMul" and rest[0].rank is not None:
        return _after_product(max(lowest, 1), rest[0].rank)
    if op == "Expand" and rest[0].rank == 1 and isinstance(rest[0].type.dims[0], int):
        return max(lowest, rest[0].type.dims[0])
    return None


def _after_product(lowest: int, other: int) -> int | None:
    """The least rank of a matrix product with a second factor of this rank; None if it depends on the rank."""
    if other <= 2:
        return lowest - (other == 1)
    return max(lowest, other) if lowest >= 2 else None


def _after_axes(op: str, axes: list[int], lowest: int, is_one: bool, keeps: bool) -> int | None:
    """The least rank after a reduction along `axes`, or after an Unsqueeze; None if it depends on the rank.

    Axes from the end are the same for every rank.
    """
    rank = lowest + len(axes) if op == "Unsqueeze" else lowest
    are_from_end = axes and all(-rank <= each < 0 for each in axes)
    if op == "Unsqueeze":
        return rank if are_from_end or is_one or axes == list(range(len(axes))) else None
    return rank - (0 if keeps else len(axes)) if are_from_end else None


def varying(reader: str, value: Value, least: Mapping[Value, int]) -> UnsupportedError:
    """The error for an operator that reads a value of several ranks and depends on the rank."""
    return UnsupportedError(
        f"{reader}, whose rank is {shown_least(value, least)} to {value.rank}, depending on the run",
        why="the IR has one rank for a value, and the result depends on it", code="ML328",
        hint="reshape the value in the model, so that it has one rank",
    )


def of_declared_rank(value: Value, name: str, scope: Scope, doubts: Doubts) -> Value:
    """The value called `name`; if its rank differs between runs, with the declared one, where its sizes show it."""
    least = scope.least_ranks.get(value)
    rank = None if least is None else _declared(name, scope)  # which reads the whole graph
    made = None if least is None or rank is None else decided(value, least, rank)
    if made is None:
        return value
    doubts.declared_rank(scope.path, name, rank)
    return made


def of_declared_ranks(
    values: Iterable[Value | None], names: Iterable[str], scope: Scope, doubts: Doubts
) -> list[Value | None]:
    """The inputs of a node with the declared ranks."""
    return [value and of_declared_rank(value, name, scope, doubts) for value, name in zip(values, names, strict=True)]


def output_of_one_rank(name: str, scope: Scope, doubts: Doubts) -> Value:
    """An output of the model; if its rank differs between runs, with the declared rank, else with the widest one."""
    value = scope[name]
    least = scope.least_ranks.get(value)
    if least is None:
        return value
    rank, dims, lowest = _declared(name, scope), value.type.dims, shown_least(value, scope.least_ranks)
    widest = len(dims)
    if rank is not None and lowest <= rank < widest:
        extra = list(range(widest - rank))
        if least == SQUEEZED:
            value = decided(value, least, rank) or value
        elif all(dim == 1 or may_be_one(dim) for dim in dims[: len(extra)]):
            value = ops.Squeeze(value, extra)  # the runtime refuses another size
    doubts.output_rank(name, lowest, widest, len(value.type.dims))
    return value


def _declared(name: str, scope: Scope | None) -> int | None:
    """The rank that the nodes or the declarations of this graph, or of one around it, give to a name."""
    while scope is not None:
        found = scope.ranks.of(name) if scope.ranks is not None else None
        if found is not None:
            return found.rank
        name, scope = scope.aliases.get(name, name), scope.outer
    return None
