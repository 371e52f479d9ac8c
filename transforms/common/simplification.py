"""Constants computed at conversion, Reshapes that only remove or only add dimensions of 1, constants with equal
contents, and nodes that compute the same value.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, get_args, get_origin

import numpy as np

from mo_loop.graph.tensor import SAMPLE, FileTensor, Tensor
from mo_loop.graph.types import ElementType
from mo_loop.transforms.folding import ConstantFolder, FoldingLimits, Skipped, fold_constants
from mo_loop.transforms.pattern import Match, any_input, wrap_type
from mo_loop.transforms.predicates import has_static_rank
from mo_loop.transforms.replace import absorb, replace_output
from mo_loop.transforms.rewrite import MatcherPass
from mo_loop.transforms.vocabulary import Constant, FunctionPass, Graph, Op, Parameter, Result, ones_among, ops


@dataclass(eq=False)
class ConstantFolding(FunctionPass):
    """f(constants)  ->  constant, and any value that inference knows completely  ->  constant

    A value of static shape without elements is known completely. Folding it is necessary: Gather, Broadcast and other
    operations of the runtime divide by zero when they are compiled for it. `transforms/folding.py` decides which nodes
    stay because their result is too large. Each of them is logged at DEBUG and listed in `skipped`, which describes the
    last run.

    Args:
        growth: how many times as large the results may be as the constants that disappear.
        allowance: bytes that any node may make.
        large: bytes above which nothing is computed in memory.
    """

    bodies = "last"

    growth: float = FoldingLimits.growth
    allowance: int = FoldingLimits.allowance
    large: int = FoldingLimits.large
    skipped: list[Skipped] = field(default_factory=list, init=False)
    _depth: int = field(default=0, init=False)

    def run(self, graph: Graph) -> bool:
        if not self._depth:
            self.skipped = []
        self._depth += 1
        try:
            return super().run(graph)
        finally:
            self._depth -= 1

    def run_on_graph(self, graph: Graph) -> bool:
        folding = ConstantFolder(FoldingLimits(self.growth, self.allowance, self.large), self.leaves, self.accept)
        changed = fold_constants(graph, folding)
        self.at = None
        for node, skip in folding.skipped:
            from logging import getLogger  # it takes 1% of a small conversion to load

            self.skipped.append(skip)
            getLogger(__name__).debug("%s", skip)
            self.refuse(node, skip.reason)
        return changed


@dataclass(eq=False)
class ConstantFoldingAfterLoops(ConstantFolding):
    """as ConstantFolding, for the values that are known once passes have taken work out of loops

    It has a name of its own, so that options about ConstantFolding mean the pass before UnrollLoops.
    """


class ReshapeToSqueeze(MatcherPass):
    """Reshape(x : [N,1,3]) to [N,3]  ->  Squeeze(x, [1]); to [N,1,1,3]  ->  Unsqueeze(x, [1])

    All other dimensions must be proven equal and in the same order. The axes are constants then: the computation of the
    shape disappears, and inference knows more. A Reshape that does both, or neither, stays. Reshapes in bodies stay
    too: the runtime knows fewer ranks in a body than this converter proves, and reads the rank of a Reshape off its
    pattern.
    """

    bodies = "never"

    x = any_input(has_static_rank())
    pattern = wrap_type(ops.Reshape, x, any_input(), when=has_static_rank())

    def matched(self, match: Match) -> bool:
        x = match[self.x]
        before, after = x.type.dims, match.root.output.type.dims
        gone = ones_among(before, after)
        if gone:
            return self.replace(match, ops.Squeeze(x, gone))
        new = ones_among(after, before)
        return bool(new) and self.replace(match, ops.Unsqueeze(x, new))


class ConstantsReduce(FunctionPass):
    """a = Constant 1.0, b = Constant 1.0  ->  a = Constant 1.0, and the readers of b read a

    Two constants of one graph are equal if type, shape and bytes are equal (-0.0 differs from 0.0). Constants of more
    than SAMPLE bytes are not read: they are equal if they are the same tensor or the same span of a file. The .bin file
    holds equal contents once in any case; this pass makes the inputs of equal nodes equal, for SharedOpOptimization.

    The oldest constant stays and takes over tensor names and rt_info; the friendly names of the others are lost. A
    constant that a Result returns is not merged, because it has the name of the output.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        returned = {result.value for result in graph.results}
        first: dict[Hashable, Constant] = {}
        changed = False
        for constant in graph.of(Constant):
            if constant.output in returned:
                continue
            tensor = constant.tensor
            survivor = first.setdefault((tensor.dtype, tensor.shape, _content(tensor)), constant)
            if survivor is constant or self.leaves(constant):
                continue
            self.accept(constant)
            absorb(survivor, constant)
            changed = True
        self.at = None
        return changed


def _content(tensor: Tensor) -> Hashable:
    if tensor.nbytes <= SAMPLE:
        return tensor.sample()
    return (tensor.path, tensor.offset) if isinstance(tensor, FileTensor) else tensor


NEVER_MERGED = (Parameter, Result, Constant, ops.Control, ops.Failed, ops.Barrier)
"""Equal constants are one node already, after ConstantsReduce; two Barriers keep two values apart."""


class SharedOpOptimization(FunctionPass):
    """a = f(x), b = f(x)  ->  a = f(x), and the readers of b read a

    Two nodes of one graph are equal if class, inputs and attributes are equal, they have inputs, and they draw no
    random numbers. The first in topological order stays. It takes over the tensor names and rt_info of the other, and
    its name if the other has the name of a model output. If both have the name of a model output, both stay.

    Each graph is traversed once: a chain of equal nodes is merged from its beginning. Afterwards an input may have more
    readers than before, so this pass runs before the passes that keep shared memory from being overwritten.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        outputs = {result.value for result in graph.results if result.output_names}
        first: dict[Hashable, Op] = {}
        changed = False
        for node in list(graph.ordered()):
            cls: Any = type(node)
            if not node.inputs or not _is_pure(cls):
                continue
            assert isinstance(node, Op)
            survivor = first.setdefault(_key(node), node)
            if survivor is node or self.leaves(node):
                continue
            if any(a in outputs and b in outputs for a, b in zip(survivor.outputs, node.outputs, strict=True)):
                self.refuse(node, "both nodes have the name of a model output")
                continue
            self.accept(node)
            for old, new in zip(node.outputs, survivor.outputs, strict=True):
                if old in outputs:  # of the model: it becomes that output of `survivor`, with the same name
                    replace_output(old, new)
                    outputs.add(new)
            absorb(survivor, node)
            changed = True
        self.at = None
        return changed


@cache
def _is_pure(cls: Any) -> bool:
    return issubclass(cls, Op) and not cls.random and not issubclass(cls, NEVER_MERGED)


def _key(node: Op) -> Hashable:
    """Equal for nodes that compute the same value. Values compare by identity."""
    cls: Any = type(node)
    if not cls.attributes:
        return cls, len(node.outputs), node.inputs
    store = node.__dict__
    values = [store[name] for name in cls.attributes]
    attributes = tuple(values) if _are_plain(cls) else tuple(map(_frozen, values))
    return cls, len(node.outputs), node.inputs, attributes


_PLAIN = (str, int, bool, ElementType, tuple[int, ...], tuple[int, ...] | None, int | None)


@cache
def _are_plain(cls: Any) -> bool:
    """Whether attributes of these kinds are equal only if they are the same."""
    kinds = [kind for kind in cls._kinds.values() if kind not in _PLAIN]
    return all(get_origin(kind) is Literal and all(isinstance(each, str) for each in get_args(kind)) for kind in kinds)


def _frozen(value) -> Hashable:
    """An attribute as a hashable object. It compares bits, not numbers: 0.0 differs from -0.0, and 1 from true."""
    if isinstance(value, str | None):
        return value
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.hasobject:
            return "objects", array.shape, tuple(_frozen(each) for each in array.flat)
        return "array", array.dtype, array.shape, array.tobytes()
    if isinstance(value, float):
        return "float", value.hex()
    if isinstance(value, tuple | list):
        return "list", tuple(_frozen(each) for each in value)
    if isinstance(value, dict):
        return "dict", frozenset((key, _frozen(each)) for key, each in value.items())
    try:
        hash(value)
    except TypeError:
        return "object", id(value)
    return type(value), value
