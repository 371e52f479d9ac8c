"""The attributes that all operators with a sliding window share, with ONNX's defaults."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mo_loop.frontend.vocabulary import ModelError

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
    def is_dilated(self) -> bool:
        return any(each != 1 for each in self.dilations)

    def reach(self, kernel: Sequence[int]) -> list[int]:
        """The number of elements that the window spans in each dimension."""
        return [(length - 1) * dilation + 1 for length, dilation in zip(kernel, self.dilations, strict=True)]

    def attributes(self) -> dict[str, Any]:
        """The attributes of the IR operations."""
        return {"strides": self.strides, "pads_begin": self.begin, "pads_end": self.end, "auto_pad": self.auto_pad}


def window(
    count: int,
    *,
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
) -> Window:
    """The attributes of a window over `count` dimensions; ModelError if a list has another length."""
    if auto_pad not in _AUTO_PADS:
        raise ModelError(f"auto_pad {auto_pad!r}: ONNX defines {', '.join(filter(None, _AUTO_PADS))}", code="ML227")
    if count < 1:
        raise ModelError("a window over no dimensions", code="ML227")
    mode = _AUTO_PADS[auto_pad]
    both = _listed(pads if auto_pad in ("NOTSET", "") else None, 2 * count, 0, "pads")
    steps, gaps = _listed(strides, count, 1, "strides"), _listed(dilations, count, 1, "dilations")
    return Window(steps, both[:count], both[count:], gaps, mode)


def _listed(given: Sequence[int] | None, count: int, default: int, name: str) -> tuple[int, ...]:
    if not given:
        return (default,) * count
    if len(given) != count:
        raise ModelError(f"{name} has {len(given)} entries, not {count}", code="ML227")
    return tuple(given)
