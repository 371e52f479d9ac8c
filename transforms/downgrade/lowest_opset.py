"""Operations at the lowest opset that expresses them."""

from __future__ import annotations

from typing import Any

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.ops.base import Op
from transforms.pattern import Match, any_input, wrap_type
from transforms.predicates import Check, Predicate
from transforms.rewrite import MatcherPass


class LowerOpset(MatcherPass):
    """An operation  ->  the same operation of an older opset, with the same inputs and the attributes that it has"""

    def lower(self, old: type[Op], new: type[Op], *inputs: Any, when: Check | None = None, **attributes: Any) -> None:
        """`when` and `attributes` (of `old`, by name) say where both operations compute the same."""

        def callback(match: Match) -> bool:
            node: Any = match.root
            kept = {name: value for name, value in node.attribute_values().items() if name in new.attributes}
            return self.replace(match, new(*node.inputs, **kept))

        self.register_matcher(wrap_type(old, *inputs, when=when, attributes=attributes), callback)


def _are_counts(value: Value) -> bool:
    integers = value.type.integers
    return integers is not None and min(integers, default=0) >= 0


class ConvertPad12ToPad1(LowerOpset):
    """Pad-12 with constant widths, none negative  ->  Pad-1"""

    def __init__(self) -> None:
        super().__init__()
        counts = Predicate("known integers of at least 0", _are_counts)
        self.lower(ops.Pad12, ops.Pad, any_input(), any_input(counts), any_input(counts), ...)


class ConvertScatterElementsUpdate12ToScatterElementsUpdate3(LowerOpset):
    """ScatterElementsUpdate-12 without a reduction  ->  ScatterElementsUpdate-3"""

    def __init__(self) -> None:
        super().__init__()
        self.lower(ops.ScatterElementsUpdate12, ops.ScatterElementsUpdate, reduction="none")


class ConvertScatterNDUpdate15ToScatterNDUpdate3(LowerOpset):
    """ScatterNDUpdate-15 without a reduction  ->  ScatterNDUpdate-4 (v3 in the C++ API of OpenVINO)"""

    def __init__(self) -> None:
        super().__init__()
        self.lower(ops.ScatterNDUpdate15, ops.ScatterNDUpdate, reduction="none")


class ConvertTopK11ToTopK3(LowerOpset):
    """TopK-11 that need not be stable  ->  TopK-3"""

    def __init__(self) -> None:
        super().__init__()
        self.lower(ops.TopK11, ops.TopK, stable=False)


class ConvertMaxPool14ToMaxPool8(LowerOpset):
    """MaxPool-14 without the rounding type ceil_torch  ->  MaxPool-8"""

    def __init__(self) -> None:
        super().__init__()
        self.lower(ops.MaxPool14, ops.MaxPool8, rounding_type=lambda rounding: rounding != "ceil_torch")


class ConvertAvgPool14ToAvgPool1(LowerOpset):
    """AvgPool-14 without the rounding type ceil_torch  ->  AvgPool-1"""

    def __init__(self) -> None:
        super().__init__()
        self.lower(ops.AvgPool14, ops.AvgPool, rounding_type=lambda rounding: rounding != "ceil_torch")


class ConvertROIAlign9To3(LowerOpset):
    """ROIAlign-9 of aligned mode asymmetric  ->  ROIAlign-3"""

    def __init__(self) -> None:
        super().__init__()
        self.lower(ops.ROIAlign9, ops.ROIAlign, aligned_mode="asymmetric")
