"""Passes that replace an operation by older ones, so that older runtimes can read the file.

    class SoftSignDecomposition(MatcherPass):
        \"\"\"SoftSign-9: softsign(x)  ->  x / (1 + |x|)\"\"\"

        enabled_by_default = False

        x = any_input()
        pattern = wrap_type(ops.SoftSign, x)

There are two kinds of passes in this module.

- The same operation of an older opset, where nothing that is new in the newer one is used: `ConvertPad12ToPad1`, named
  after both operations and opsets. The result is the same, so these passes are part of every
  conversion. They run after constants are folded (then it is known whether a pad is negative) and before the passes
  that look for forms which the runtime computes wrongly (these passes look for the older operation).
- A composition of older operations: `SoftSignDecomposition`, named after the operation that it replaces. It takes more
  nodes and may round differently, so it has `enabled_by_default = False`: a user whose runtime is older calls
  `config.enable("SoftSignDecomposition")`.

`Downgrade` runs both kinds in one traversal.

The first line of each pass names the operation and opset that it removes. No pass makes a node of a newer opset.

`newer_uses` finds what remains: the features of a graph that the oldest supported release lacks, and the first release
that has each.

    for each in newer_uses(graph):
        print(each.text, each.release, each.origin)          # a conversion to u2, (2026, 4), Origin("y")

Measured on the CPU device of all releases of `mo_loop.target`. Passes lower features that have an older form
(those of this module, `WidenTwoBitConstants`); these remain.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mo_loop.graph.types import ElementType, boolean, f4e2m1, f8e4m3, f8e5m2, f8e8m0, i4, string, u2, u4
from mo_loop.origin import Origin
from mo_loop.target import OLDEST, Release
from mo_loop.transforms.function_pass import named_pass
from mo_loop.transforms.pattern import Match, any_input, wrap_type
from mo_loop.transforms.predicates import Predicate, has_static_rank
from mo_loop.transforms.rewrite import GraphRewrite, MatcherPass, passes_in
from mo_loop.transforms.vocabulary import Constant, F, Graph, Node, Op, Parameter, Result, Value, ops


class LowerOpset(MatcherPass):
    """An operation  ->  the same operation of an older opset, with the same inputs and the attributes that it has"""

    older: ClassVar[type[Op]]

    def matched(self, match: Match) -> bool:
        node: Any = match.root
        kept = {name: value for name, value in node.attribute_values().items() if name in self.older.attributes}
        return self.replace(match, self.older(*node.inputs, **kept))


lowering = partial(named_pass, LowerOpset)
"""The LowerOpset with a name and a docstring, of a `pattern`, to the class `older`."""

COUNTS = Predicate(
    "known integers of at least 0", lambda v: v.type.integers is not None and min(v.type.integers, default=0) >= 0
)
NO_REDUCTION: dict[str, Any] = {"reduction": "none"}
OLD_ROUNDING: dict[str, Any] = {"rounding_type": lambda rounding: rounding != "ceil_torch"}

ConvertPad12ToPad1 = lowering(
    "ConvertPad12ToPad1", "Pad-12 with constant widths, none negative  ->  Pad-1", older=ops.Pad,
    pattern=wrap_type(ops.Pad12, any_input(), any_input(COUNTS), any_input(COUNTS), ...),
)
ConvertScatterElementsUpdate12ToScatterElementsUpdate3 = lowering(
    "ConvertScatterElementsUpdate12ToScatterElementsUpdate3",
    "ScatterElementsUpdate-12 without a reduction  ->  ScatterElementsUpdate-3", older=ops.ScatterElementsUpdate,
    pattern=wrap_type(ops.ScatterElementsUpdate12, attributes=NO_REDUCTION),
)
ConvertScatterNDUpdate15ToScatterNDUpdate3 = lowering(
    "ConvertScatterNDUpdate15ToScatterNDUpdate3",
    "ScatterNDUpdate-15 without a reduction  ->  ScatterNDUpdate-4 (v3 in the C++ API of OpenVINO)",
    older=ops.ScatterNDUpdate, pattern=wrap_type(ops.ScatterNDUpdate15, attributes=NO_REDUCTION),
)
ConvertTopK11ToTopK3 = lowering(
    "ConvertTopK11ToTopK3", "TopK-11 that need not be stable  ->  TopK-3", older=ops.TopK,
    pattern=wrap_type(ops.TopK11, attributes={"stable": False}),
)
ConvertMaxPool14ToMaxPool8 = lowering(
    "ConvertMaxPool14ToMaxPool8", "MaxPool-14 without the rounding type ceil_torch  ->  MaxPool-8", older=ops.MaxPool8,
    pattern=wrap_type(ops.MaxPool14, attributes=OLD_ROUNDING),
)
ConvertAvgPool14ToAvgPool1 = lowering(
    "ConvertAvgPool14ToAvgPool1", "AvgPool-14 without the rounding type ceil_torch  ->  AvgPool-1", older=ops.AvgPool,
    pattern=wrap_type(ops.AvgPool14, attributes=OLD_ROUNDING),
)
ConvertROIAlign9To3 = lowering(
    "ConvertROIAlign9To3", "ROIAlign-9 of aligned mode asymmetric  ->  ROIAlign-3", older=ops.ROIAlign,
    pattern=wrap_type(ops.ROIAlign9, attributes={"aligned_mode": "asymmetric"}),
)


class SoftSignDecomposition(MatcherPass):
    """SoftSign-9: softsign(x)  ->  x / (1 + |x|)"""

    enabled_by_default = False

    pattern = wrap_type(ops.SoftSign)

    def matched(self, match: Match) -> bool:
        x = match.root.operands[0]
        size = ops.Abs(x)
        divisor = ops.Add(size, 1.0)
        return self.replace(match, ops.Divide(x, divisor), also=[size, divisor])


class GroupNormalizationDecomposition(MatcherPass):
    """GroupNormalization-12 of x : [N,C,...]  ->  MVN(x as [N,groups,-1]) in the shape of x, * scale + bias per channel

    The runtime refuses GroupNormalization in bodies; this form runs everywhere. Dimensions of 0 are not allowed.
    """

    enabled_by_default = False

    x, scale, bias = any_input(has_static_rank()), any_input(), any_input()
    pattern = wrap_type(ops.GroupNormalization, x, scale, bias)

    def matched(self, match: Match) -> bool:
        x, node = match[self.x], match.root
        assert isinstance(node, ops.GroupNormalization)
        groups = ops.Reshape(x, [0, node.num_groups, -1], special_zero=True)
        normal = ops.MVN(groups, [2], eps=node.epsilon, eps_mode="INSIDE_SQRT")
        whole = ops.Reshape(normal, x.sizes)
        scaled = ops.Multiply(whole, _along_channels(match[self.scale], x.type.rank))
        shifted = ops.Add(scaled, _along_channels(match[self.bias], x.type.rank))
        return self.replace(match, shifted, also=[groups, normal, whole, scaled])


def _along_channels(vector: Value, rank: int) -> Value:
    """A vector [C] as [C, 1, ...], which broadcasts over the rest of [N, C, ...]."""
    return F.Unsqueeze(vector, list(range(1, rank - 1))) if rank > 2 else vector


def _is_exact(value: Value) -> bool:
    dtype = value.dtype
    if dtype.kind == "uint":
        return 8 <= dtype.bits < 32
    return dtype is boolean or (dtype.kind == "int" and dtype.bits >= 8)


class BitwiseNotDecomposition(MatcherPass):
    """BitwiseNot-13: not x  ->  -1 - x, or for unsigned types max - x, or for booleans LogicalNot(x)

    Unsigned types of 32 and 64 bits stay: the runtime reads their constants as signed numbers of 32 bits.
    """

    enabled_by_default = False

    x = any_input(Predicate("booleans, or integers whose largest value the runtime can hold", _is_exact))
    pattern = wrap_type(ops.BitwiseNot, x)

    def matched(self, match: Match) -> bool:
        x = match[self.x]
        if x.dtype is boolean:
            return self.replace(match, ops.LogicalNot(x))
        all_ones = F.Constant(np.array(-1), graph=x.graph, dtype=x.dtype)  # of an unsigned type the largest number
        return self.replace(match, ops.Subtract(all_ones, x))


DOWNGRADES = passes_in(globals())
"""All passes above, in their order."""


class Downgrade(GraphRewrite):
    """f of opset n  ->  f of an older opset; with an enabled decomposition  ->  older operations"""

    def __init__(self) -> None:
        super().__init__(each() for each in DOWNGRADES)


OPSETS: dict[Release, int] = {(2024, 6): 15, (2026, 0): 16}
"""Release -> its newest opset, where it has changed."""

INPUTS: dict[ElementType, Release] = {
    f8e4m3: (2025, 0), f8e5m2: (2025, 0), f4e2m1: (2025, 2), f8e8m0: (2025, 2), u2: (2026, 0),
}
"""Element type -> the first release that runs a model with an input of this type."""

CONSTANTS: dict[ElementType, Release] = {u2: (2025, 3)}
"""Element type -> the first release that reads constants of this type; the ones before permute the elements."""

RETURNED_CONSTANTS: dict[ElementType, Release] = {i4: (2026, 0), u4: (2026, 0), u2: (2026, 0)}
"""Element type -> the first release that returns constants of this type; the ones before permute the elements."""

_MAPPED: Release = (2025, 1)
"""The first release of openvino_tokenizers that reads the attributes of CharsMapNormalization; others join spaces."""

_TYPED = (Parameter, Constant, ops.Convert, ops.Pad, ops.CharsMapNormalization)
"""Operations that some releases have for fewer types or attributes."""

_NEWER_CONSTANTS = CONSTANTS.keys() | RETURNED_CONSTANTS.keys()

CONVERSIONS: dict[ElementType, Release] = {u2: (2026, 4)}
"""Element type -> the first release that converts to this type."""

PADS: dict[ElementType, Release] = {string: (2026, 2)}
"""Element type -> the first release that compiles a Pad of this type."""


@dataclass(frozen=True)
class NewerUse:
    """A part of a graph that runs on `release` and later ones only."""

    text: str
    release: Release
    origin: Origin


def newer_uses(graph: Graph) -> Iterator[NewerUse]:
    """Everything in the graph and its bodies that OLDEST does not run."""
    for scope in graph.scopes():
        newer = {cls for cls in scope.classes if issubclass(cls, Op) and cls.opset > OPSETS[OLDEST]}
        classes = newer.union(cls for cls in scope.classes if issubclass(cls, _TYPED))
        for node in scope.ordered():
            if type(node) not in classes or (type(node) is Constant and node.tensor.dtype not in _NEWER_CONSTANTS):
                continue
            for text, release in _needs(node):
                if release > OLDEST:
                    yield NewerUse(text, release, node.origin)


def _needs(node: Node) -> Iterator[tuple[str, Release]]:
    if isinstance(node, Op) and node.opset > OPSETS[OLDEST]:
        found = next((release for release, opset in OPSETS.items() if opset >= node.opset), None)
        if found is not None:
            yield f"{node.type} of opset {node.opset}", found
    if isinstance(node, Parameter) and node.graph.owner is None:
        yield from _listed("an input of", node, INPUTS)
    elif isinstance(node, Constant):
        yield from _listed("a constant of", node, CONSTANTS)
        if any(isinstance(use.node, Result) for use in node.output.uses):
            yield from _listed("a returned constant of", node, RETURNED_CONSTANTS)
    elif isinstance(node, ops.Convert):
        yield from _listed("a conversion to", node, CONVERSIONS)
    elif isinstance(node, ops.Pad):
        yield from _listed("a Pad of type", node, PADS)
    elif isinstance(node, ops.CharsMapNormalization):
        yield "the operation CharsMapNormalization", _MAPPED


def _listed(text: str, node: Node, releases: dict[ElementType, Release]) -> Iterator[tuple[str, Release]]:
    dtype = node.outputs[0].dtype
    if dtype in releases:
        yield f"{text} {dtype}", releases[dtype]
