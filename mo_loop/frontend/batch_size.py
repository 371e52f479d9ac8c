"""--batch: sets the batch size of every input before the translation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from mo_loop.errors import UsageError
from mo_loop.frontend.cut import Cut, Start
from mo_loop.frontend.model import OnnxModel
from mo_loop.graph.types import OptionalType, TensorType
from mo_loop.preprocessing.layout import Layout
from mo_loop.preprocessing.per_input import PerInput


@dataclass
class BatchCut(Cut):
    """A cut whose inputs have the batch size `batch`: in the dimension N of their layout, else in the first one.

    An input whose layout has no N has no batch. Without a layout, a static first dimension other than 0 or 1 may not be
    a batch, so it is refused.
    """

    batch: int = 1
    layouts: PerInput[tuple[Layout | None, Layout]] | None = None

    def parameters(self, model: OnnxModel) -> Iterator[Start]:
        starts = list(super().parameters(model))
        open_ = [start for start in starts if start.value is None]
        said = self.layouts.among([{start.name} for start in open_]) if self.layouts else {}
        types = {start.name: self._typed(start, said.get(place)) for place, start in enumerate(open_)}
        if all(types[start.name] is start.type for start in open_):
            raise UsageError(f"--batch {self.batch} changes no input: it is their batch size already")
        for start in starts:
            yield start._replace(type=types.get(start.name, start.type))

    why_changed: ClassVar[str] = "--batch gives inputs another size"

    def changed_shapes(self, model: OnnxModel) -> str:
        before = {start.name: start.type for start in super().parameters(model)}
        changed = [start.name for start in self.parameters(model) if start.type is not before[start.name]]
        return ", ".join(f"{name} as {before[name]}" for name in changed)

    def _typed(self, start: Start, said: tuple[Layout | None, Layout] | None) -> Any:
        """The type with the batch size; the same object where nothing changes."""
        type_ = start.type.element if isinstance(start.type, OptionalType) else start.type
        if not isinstance(type_, TensorType) or type_.shape is None:
            what = "its rank is unknown" if isinstance(type_, TensorType) else f"it is a {type_}"
            raise self._refused(start.name, what, "give its shape with --input instead")
        axis: int | None = 0
        if said is not None:
            layout = said[0] or said[1]
            if not layout.fits(type_.rank):
                raise UsageError(f"the layout {layout} does not fit the input {start.name!r}: {type_}")
            axis = layout.axis("N", len(type_.shape))
        elif not type_.shape:
            hint = f"if only this one is a scalar, declare it: --layout '{start.name}([])'"
            raise self._refused(start.name, "it is a scalar, without dimensions", hint)
        elif type_.shape[0] not in (0, 1, self.batch) and isinstance(type_.shape[0], int):
            hint = f"if it is, declare it: --layout '{start.name}(n...)'; else give the shapes with --input"
            raise self._refused(start.name, f"its first dimension, {type_.shape[0]}, need not be a batch", hint)
        if axis is None or type_.shape[axis] == self.batch:
            return start.type
        shape = (*type_.shape[:axis], self.batch, *type_.shape[axis + 1 :])
        changed = TensorType(type_.dtype, shape)
        return OptionalType(changed) if isinstance(start.type, OptionalType) else changed

    def _refused(self, name: str, why: str, hint: str) -> UsageError:
        return UsageError(f"--batch {self.batch} cannot be set on the input {name!r}: {why}", hint=hint)
