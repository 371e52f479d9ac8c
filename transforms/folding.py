"""Computes nodes whose inputs are constant with the numpy implementation of each operation.

    [2, 3] -> Convert to f32 -> * 0.5            computed now: a new constant of 8 bytes
    f16[4096,4096] -> Convert to f32             stays: the file would hold 64 MiB instead of 32
    f64[4096,4096] -> Convert to f32 -> * 0.5    64 MiB that are computed in blocks while the .bin file is written
    0.0 -> Broadcast to [4096,4096]              stays: 64 MiB instead of 20 bytes

Growth. The results of a node are at most `growth` times as large as the constants that disappear with it, or at most
`allowance` bytes. A constant that other nodes read stays, so it is not included. With a growth of 4 booleans and
bytes become 32-bit numbers, while fills, tables and outer products stay; the allowance lets arithmetic on shapes and
small fills be computed. Identity, Reshape, Squeeze and Unsqueeze make no new bytes.

Weights. Results of more than `large` bytes do not grow at all: their `growth` is 1. A Convert to a wider type only adds
bytes: above the allowance it stays, and the runtime keeps the narrow constant. A Convert that is marked as
decompression stays whatever its size. Where more than `large` bytes are read or made, element-wise operations are
computed in blocks while the .bin file is written, and a Reshape of a span of a file is another span; every other
operation (Transpose, Gather, 4-bit data) stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.conversion_limits import budget
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import assume_fixed, element_count, is_static
from mo_loop.graph.tensor import ArrayTensor, DeferredTensor, Tensor
from mo_loop.graph.types import ElementType, string
from mo_loop.ops.arithmetic import Binary, Classification, Convert, Unary
from mo_loop.ops.base import Constant, Op, Parameter, Result, SameElements
from mo_loop.ops.control import Control
from mo_loop.transforms.total_operations import is_right_without_elements

Step = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]

UNTOUCHED = (Constant, Parameter, Result, Control)

ELEMENT_BY_ELEMENT = (Convert, Unary, Binary, Classification)
"""Operations that can be computed block by block, given one large constant and others of one element."""


@dataclass(frozen=True)
class FoldingLimits:
    """The limits of constant folding.

    Args:
        growth: how many times as large the results may be as the constants that disappear.
        allowance: bytes that any node may make.
        large: bytes above which nothing is computed in memory.
    """

    growth: float = 4
    allowance: int = 1 << 16
    large: int = 1 << 20


@dataclass(frozen=True)
class Skipped:
    """A node of constants that is not folded. `read` and `made` are bytes; `made` is None if the size is unknown."""

    path: str
    type: str
    reason: str
    read: int
    made: int | None

    def __str__(self) -> str:
        made = "?" if self.made is None else self.made
        return f"{self.path} ({self.type}) is not folded, {self.read} -> {made} bytes: {self.reason}"


class ComputedTensor(DeferredTensor):
    """The tensor `source` with `steps` applied to each of its blocks in turn; the last step gives `dtype`.

    The steps are a flat list: a chain of nodes may be longer than calls can be nested.
    """

    __slots__ = ("source", "steps")

    def __init__(self, source: Tensor, steps: tuple[Step, ...], dtype: ElementType, shape: tuple[int, ...]) -> None:
        super().__init__(dtype, shape, self._computed, source.files)
        self.source = source
        self.steps = steps

    def _computed(self) -> Iterator[bytes]:
        for piece in self.source.pieces():
            values = np.frombuffer(piece, self.source.dtype.numpy)
            for step in self.steps:
                values = step(values)
            yield values.tobytes()

    def reshaped(self, shape: tuple[int, ...]) -> Tensor:
        return ComputedTensor(self.source, self.steps, self.dtype, shape)


class Left(Exception):
    """Raised with the reason why a node is not folded."""


def fold_constants(graph: Graph, folding: ConstantFolder | None = None) -> bool:
    """Fold one graph without its bodies, again until nothing changes; True if anything changed."""
    changed = False
    folding = ConstantFolder() if folding is None else folding
    within = budget()
    while folding.run(graph):  # then shapes may be known, and constants may have only one reader left
        changed = True
        graph.sweep()
        graph.validate()
        within.check_time()
    return changed


def fold_all_scopes(graph: Graph) -> bool:
    """Fold a graph, then its bodies; True if anything changed."""
    changed = fold_constants(graph)
    for node in graph.nodes_with_bodies():
        for body in node.bodies:
            changed = fold_all_scopes(body) or changed
    return changed


class ConstantFolder:
    """One traversal of a graph. `skipped` holds the nodes that the last traversal did not fold.

    A node is folded unless `leaves` returns True; `accept` is called with each folded node.
    """

    def __init__(
        self,
        limits: FoldingLimits = FoldingLimits(),  # immutable
        leaves: Callable[[Node], bool] = lambda node: False,
        accept: Callable[[Node], object] = lambda node: None,
    ) -> None:
        self._limits = limits
        self._leaves = leaves
        self._accept = accept
        self.skipped: list[tuple[Op, Skipped]] = []

    def run(self, graph: Graph) -> bool:
        """Fold each node of one graph once; True if anything changed."""
        changed = False
        self.skipped = []
        computed = frozenset(filter(_is_computed, graph.classes))
        for node in list(graph.ordered()):
            if type(node) not in computed:
                continue
            assert isinstance(node, Op)
            if not _is_foldable(node):
                continue
            used = [output for output in node.outputs if output.is_used]
            if not used or self._leaves(node):
                continue
            try:
                tensors = self._tensors(node, used)
            except Left as left:
                self._skip(node, used, str(left))
                continue
            self._accept(node)
            for output, tensor in zip(used, tensors, strict=True):
                _replace(output, tensor)
            changed = True
        return changed

    def _skip(self, node: Op, used: Sequence[Value], reason: str) -> None:
        read = sum(value.node.tensor.nbytes for value in _constants(node))
        self.skipped.append((node, Skipped(node.path, node.type, reason, read, _size(node, used))))

    def _tensors(self, node: Op, used: Sequence[Value]) -> list[Tensor]:
        """The data of the used outputs; Left if the node stays."""
        if isinstance(node, Convert) and "decompression" in node.rt_info:
            raise Left("marked as decompression")
        if all(_is_known(output) for output in used):
            return [_known(output) for output in used]
        made = _size(node, used)
        if made is None:
            raise Left("the size of the result is unknown")
        if isinstance(node, SameElements):  # the .bin file holds the bytes once
            return [_constants(node)[0].node.tensor.reshaped(node.output.type.dims)]
        self._limit_growth(node, made)
        if max(made, *(value.node.tensor.nbytes for value in _constants(node))) > self._limits.large:
            return [_deferred(node)]
        budget().fold(made)
        return _computed(node, used)

    def _limit_growth(self, node: Op, made: int) -> None:
        if made <= self._limits.allowance:
            return
        given_up = sum(value.node.tensor.nbytes for value in _constants(node) if value.only_use is not None)
        growth = self._limits.growth if made <= self._limits.large else 1
        if made > growth * given_up:
            raise Left(f"more than {growth:g} times the {given_up} bytes of constants that only it reads")
        if isinstance(node, Convert) and made > _constants(node)[0].node.tensor.nbytes:
            raise Left("the narrower constant and its Convert are smaller")


def _constants(node: Op) -> list[Any]:
    return [value for value in node.operands if isinstance(value.node, Constant)]


def _is_foldable(node: Op) -> bool:
    """Whether all inputs are constants, or inference knows all outputs that are read."""
    for value in node.inputs:  # loops, because generators take twice as long, and this runs for every node
        if value is not None and not isinstance(value.node, Constant):
            break
    else:
        if node.inputs:
            return True
    for output in node.outputs:  # noqa: SIM110
        if output.is_used and not _is_known(output):
            return False
    return True


def _is_computed(cls: type[Node]) -> bool:
    """Whether nodes of this class can be replaced by their results."""
    return issubclass(cls, Op) and not issubclass(cls, UNTOUCHED) and not cls.random


def _is_known(output: Value) -> bool:
    """Whether inference knows all elements, also if there are none.

    Assumption if there are none and a size is open, for operations without elements that the runtime computes wrongly.
    """
    type_ = output.type
    if type_.known is not None and type_.integers is not None:
        return True
    if type_.shape is None or 0 not in type_.shape:
        return False
    if not is_right_without_elements(output.node):
        assume_fixed(type_.shape)
    return is_static(type_.shape)


def _known(output: Value) -> Tensor:
    numbers = output.type.integers
    values = np.zeros(output.type.dims) if numbers is None else np.array(numbers).reshape(output.type.known.shape)
    return _tensor(values, output)


def _size(node: Op, used: Sequence[Value]) -> int | None:
    """The bytes of the used outputs; None if shapes or types are unknown."""
    total = 0
    for output in used:
        count = element_count(output.shape) if output.dtype else None
        if not isinstance(count, int):
            return None
        total += output.dtype.size_of(count) if output.dtype is not string else count * (4 + _longest(node))
    return total


def _longest(node: Op) -> int:
    """The length of the longest string among the inputs."""
    arrays = [value.node.array for value in _constants(node) if value.dtype is string]
    return max((len(item) for array in arrays for item in array.flat), default=0)


def _computed(node: Op, used: Sequence[Value]) -> list[Tensor]:
    """The results in memory."""
    inputs: tuple[Any, ...] = node.inputs
    result = _evaluated(node, [None if value is None else value.node.array for value in inputs])
    results = result if isinstance(result, tuple) else (result,)
    return [_tensor(results[output.index], output) for output in used]


def _evaluated(node: Op, arrays: Sequence[Any]) -> Any:
    try:
        result = node.evaluate(*arrays)
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        raise Left(f"numpy refuses it: {error}") from error
    if result is NotImplemented:
        raise Left("numpy cannot compute it for these inputs")
    return result


def _tensor(array: Any, output: Value) -> Tensor:
    return ArrayTensor(np.asarray(array).astype(output.dtype.numpy), output.dtype)


def _deferred(node: Op) -> Tensor:
    """The result of a large constant, computed in blocks while it is written."""
    large = [port for port, value in enumerate(node.inputs) if value is not None and element_count(value.shape) != 1]
    if not isinstance(node, ELEMENT_BY_ELEMENT) or len(large) != 1:
        raise Left("it is too large to be computed in memory, and not element-wise")
    (port,) = large
    # Divide, Mod and Power refuse some divisors and exponents, which would be found only while writing.
    if port and isinstance(node, Binary) and type(node).evaluate is not Binary.evaluate:
        raise Left("it is too large to be searched for values that numpy refuses")
    source: Tensor = _constants(node)[port].node.tensor
    dtype = node.output.dtype
    if source.dtype.bits < 8 or dtype.bits < 8:
        raise Left(f"large tensors of {source.dtype} and {dtype} are not computed in blocks")
    arrays = [None if value.node.tensor is source else value.node.array.reshape(-1) for value in _constants(node)]

    def step(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        given = [values if array is None else array for array in arrays]
        return np.asarray(_evaluated(node, given)).astype(dtype.numpy, copy=False)

    step(np.zeros(0, source.dtype.numpy))  # an operation that numpy refuses fails without elements as well
    if isinstance(source, ComputedTensor):
        return ComputedTensor(source.source, (*source.steps, step), dtype, node.output.type.dims)
    return ComputedTensor(source, (step,), dtype, node.output.type.dims)


def _replace(output: Value, tensor: Tensor) -> None:
    constant = Constant(tensor, graph=output.graph, name=output.node.name)
    constant.rt_info.update(output.node.rt_info)
    constant.origins = output.node.origins
    constant.output.take_names(output)
    output.replace_with(constant.output)
