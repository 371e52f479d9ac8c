"""Sliding windows: the attributes that all operators with one share, and their form over some dimensions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mo_loop.frontend.vocabulary import Attributes, ModelError
from mo_loop.ops.ranges import Indices, Positives

# VALID is explicit padding by 0: with VALID, the runtime rounds down even if ceil_mode is set.
_AUTO_PADS = {
    "NOTSET": "explicit", "": "explicit", "VALID": "explicit", "SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower",
}  # fmt: skip


@dataclass(frozen=True)
class Window:
    """Strides, pads and dilations, one for each spatial dimension."""

    strides: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    dilations: tuple[int, ...]
    auto_pad: str

    @property
    def count(self) -> int:
        """The number of spatial dimensions."""
        return len(self.strides)

    @property
    def is_dilated(self) -> bool:
        return any(each != 1 for each in self.dilations)

    def reach(self, kernel: Sequence[int]) -> list[int]:
        """The number of elements that the window spans in each dimension."""
        return [(length - 1) * dilation + 1 for length, dilation in zip(kernel, self.dilations, strict=True)]

    def attributes(self) -> dict[str, Any]:
        """The attributes of the IR operations."""
        return {"strides": self.strides, "pads_begin": self.begin, "pads_end": self.end, "auto_pad": self.auto_pad}


@dataclass(frozen=True)
class WindowAttributes(Attributes):
    """The attributes of an operator with a sliding window, with ONNX's defaults."""

    auto_pad: str = "NOTSET"
    dilations: Positives | None = None
    pads: Indices | None = None
    strides: Positives | None = None

    def over(self, count: int) -> Window:
        """The window over `count` dimensions; ModelError if a list has another length."""
        if self.auto_pad not in _AUTO_PADS:
            known = ", ".join(filter(None, _AUTO_PADS))
            raise ModelError(f"auto_pad {self.auto_pad!r}: ONNX defines {known}", code="ML227")
        if count < 1:
            raise ModelError("a window over no dimensions", code="ML227")
        both = _listed(self.pads if self.auto_pad in ("NOTSET", "") else None, 2 * count, 0, "pads")
        steps, gaps = _listed(self.strides, count, 1, "strides"), _listed(self.dilations, count, 1, "dilations")
        return Window(steps, both[:count], both[count:], gaps, _AUTO_PADS[self.auto_pad])


def _listed(given: Sequence[int] | None, count: int, default: int, name: str) -> tuple[int, ...]:
    if not given:
        return (default,) * count
    if len(given) != count:
        raise ModelError(f"{name} has {len(given)} entries, not {count}", code="ML227")
    return tuple(given)
