"""The sizes of `--sizes`, in the syntax of `--input`: those that the inputs of an IR are given before it runs.

    new_sizes("x[8,3,320..640,?]", model, ir)           # {"x": (8, 3, (320, 640), (0, None))}
    sizes_text((8, 3, (320, 640), (0, None)))           # "[8,3,320..640,?]"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mo_loop.api import Model
from mo_loop.compare.input_sets.generated import shapes_of
from mo_loop.compare.input_sets.given import input_names
from mo_loop.compare.results.verify_settings import Size
from mo_loop.errors import UsageError
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.input_text import KEEP, InputEntry
from mo_loop.frontend.model import OnnxModel
from mo_loop.graph.dimension import Dimension, high, low


def new_sizes(given: Any, model: OnnxModel, ir: Model) -> dict[str, tuple[Size, ...]]:
    """The sizes of each input that `given` names, in any form of `--input`.

    Raises:
        UsageError: a name is not that of an input, an entry has more or less than sizes, or a rank is another one.
    """
    shapes = shapes_of(ir)
    found = {}
    for name, entry in (Cut.of(model, given, None).inputs or {}).items():
        if name not in input_names(model):
            raise UsageError(f"{name!r} is not an input of the model", hint=f"inputs: {', '.join(input_names(model))}")
        if entry != InputEntry(name, entry.shape) or entry.shape is KEEP:
            raise UsageError(f"--sizes needs the sizes of {name!r}, and nothing else", hint=f"for example {name}[8,3]")
        shape = shapes.get(name)
        if shape is not None and len(shape) != len(entry.shape):
            raise UsageError(
                f"--sizes has {len(entry.shape)} sizes for {name!r}", why=f"the input has {len(shape)} dimensions",
                hint="give a size for each; the rank of an input does not change",
            )  # fmt: skip
        found[name] = tuple(map(_size, entry.shape))
    return found


def _size(dim: Dimension) -> Size:
    return dim if isinstance(dim, int) else (low(dim), high(dim))


def sizes_text(sizes: Sequence[Size]) -> str:
    """Sizes as `--sizes` writes them."""
    return f"[{','.join(map(_text, sizes))}]"


def _text(size: Size) -> str:
    if isinstance(size, int):
        return str(size)
    least, most = size
    return "?" if (least, most) == (0, None) else f"{least}..{'' if most is None else most}"
