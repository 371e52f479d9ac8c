"""Operations at the lowest opset that expresses them."""

from __future__ import annotations

from typing import Any, ClassVar

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.ops.base import Op
from mo_loop.transforms.pattern import Match, any_input, wrap_type
from mo_loop.transforms.predicates import Predicate
from mo_loop.transforms.rewrite import MatcherPass


class LowerOpset(MatcherPass):
    """An operation  ->  the same operation of an older opset, with the same inputs and the attributes that it has"""

    older: ClassVar[type[Op]]

    def matched(self, match: Match) -> bool:
        node: Any = match.root
        kept = {name: value for name, value in node.attribute_values().items() if name in self.older.attributes}
        return self.replace(match, self.older(*node.inputs, **kept))


def _are_counts(value: Value) -> bool:
    integers = value.type.integers
    return integers is not None and min(integers, default=0) >= 0


class ConvertPad12ToPad1(LowerOpset):
    """Pad-12 with constant widths, none negative  ->  Pad-1"""

    older = ops.Pad
    counts = Predicate("known integers of at least 0", _are_counts)
    pattern = wrap_type(ops.Pad12, any_input(), any_input(counts), any_input(counts), ...)


class ConvertScatterElementsUpdate12ToScatterElementsUpdate3(LowerOpset):
    """ScatterElementsUpdate-12 without a reduction  ->  ScatterElementsUpdate-3"""

    older = ops.ScatterElementsUpdate
    pattern = wrap_type(ops.ScatterElementsUpdate12, attributes={"reduction": "none"})


class ConvertScatterNDUpdate15ToScatterNDUpdate3(LowerOpset):
    """ScatterNDUpdate-15 without a reduction  ->  ScatterNDUpdate-4 (v3 in the C++ API of OpenVINO)"""

    older = ops.ScatterNDUpdate
    pattern = wrap_type(ops.ScatterNDUpdate15, attributes={"reduction": "none"})


class ConvertTopK11ToTopK3(LowerOpset):
    """TopK-11 that need not be stable  ->  TopK-3"""

    older = ops.TopK
    pattern = wrap_type(ops.TopK11, attributes={"stable": False})


class ConvertMaxPool14ToMaxPool8(LowerOpset):
    """MaxPool-14 without the rounding type ceil_torch  ->  MaxPool-8"""

    older = ops.MaxPool8
    pattern = wrap_type(ops.MaxPool14, attributes={"rounding_type": lambda rounding: rounding != "ceil_torch"})


class ConvertAvgPool14ToAvgPool1(LowerOpset):
    """AvgPool-14 without the rounding type ceil_torch  ->  AvgPool-1"""

    older = ops.AvgPool
    pattern = wrap_type(ops.AvgPool14, attributes={"rounding_type": lambda rounding: rounding != "ceil_torch"})


class ConvertROIAlign9To3(LowerOpset):
    """ROIAlign-9 of aligned mode asymmetric  ->  ROIAlign-3"""

    older = ops.ROIAlign
    pattern = wrap_type(ops.ROIAlign9, attributes={"aligned_mode": "asymmetric"})
