"""The findings of a comparison, tensor by tensor: those that agree, those that are not compared, the first difference.

The first difference ends the comparison (Different). With a Heat it continues past it, and every comparison is recorded
there: each side keeps its own values.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from mo_loop.compare.layers.answer import (
    is_close,
    is_overwritten,
    layers_of,
    message,
    other_weights,
    steps_of,
    uncompared,
)
from mo_loop.compare.layers.distance import Distance, distance
from mo_loop.compare.layers.heat import Heat
from mo_loop.compare.layers.ir_loops import as_element
from mo_loop.compare.layers.ir_side import IrFrame, IrRunError, IrSide, Key
from mo_loop.compare.layers.layer_difference import (
    BRANCH,
    COUNT,
    FAILED,
    OUTPUT,
    Elements,
    LayerDifference,
    elements_of,
)
from mo_loop.compare.layers.onnx_side import OnnxFrame
from mo_loop.compare.results.array_comparison import ATOL, RTOL, SMALL_FLOAT, ArrayComparison, compare, is_limited
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.origin import Origin
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Control

Iterations = tuple[tuple[str, int], ...]
"""The path and the iteration of each enclosing loop."""

MISSING = "have no counterpart in the IR: they were fused, removed, or are in a loop that the IR does not have"
LISTS = "are sequences or optionals"
SURELY_CLOSE = 0.999
"""The multiple of the tolerance up to which rounding does not change whether two arrays agree."""

NOT_ALONE = "cannot be computed by OpenVINO apart from their neighbours"


class Different(Exception):
    """The first difference; the comparison ends."""

    def __init__(self, difference: LayerDifference) -> None:
        super().__init__(str(difference))
        self.difference = difference


class Findings:
    """The findings of one comparison so far."""

    def __init__(
        self, graph: Graph, side: IrSide, tolerances: tuple[float | None, float | None], heat: Heat | None = None
    ) -> None:
        """`graph` is that of the IR."""
        self.ir = graph
        self.side = side
        self.tolerances = tolerances
        self.heat = heat
        self.compared: set[Key] = set()
        self.missed: dict[Key, str] = {}
        self._first: LayerDifference | None = None
        self._vanishing: LayerDifference | None = None
        self._limited: dict[str, None] = {}

    @property
    def answer(self) -> LayerDifference | None:
        """The first difference; else the first one that vanishes; None if all tensors agree."""
        return self._first or self._vanishing

    # -- comparing

    def agrees(
        self, frame: OnnxFrame, place: int, name: str, inner: OnnxFrame, ir: IrFrame | None, role: str, at: Iterations
    ) -> bool:
        """Whether a tensor of `inner` was compared and agrees; a difference belongs to the node `place` of `frame`."""
        key = (inner.plan.scope, name)
        expected = inner.values[name]
        found = [] if ir is None else ir.find(key)
        if expected is None or isinstance(expected, list):
            self.missed.setdefault(key, LISTS)
            return False
        was_compared, agrees = False, True
        for holder, value in found:
            if isinstance(value.node, Constant) and key in self.compared:
                was_compared = True
                continue
            try:
                actual = holder.get(value)
            except IrRunError as error:
                if error.stage == "compile":
                    self.missed.setdefault(key, NOT_ALONE)
                    continue
                raise self.failed(error, frame, place, name, at, role) from error
            if is_overwritten(actual) and role == OUTPUT:
                with suppress(IrRunError):
                    actual = holder.compute_alone(value)
            actual = as_element(value, actual, expected)
            agrees = self.compare(frame, place, key, expected, actual, (holder, value), role, at) and agrees
            was_compared = True
        if was_compared:
            self.compared.add(key)
            self.missed.pop(key, None)
        elif key not in self.compared:
            self.missed.setdefault(key, MISSING)
        return was_compared and agrees

    def compare(
        self, frame: OnnxFrame, place: int, key: Key, expected: Any, actual: Any, where: tuple[IrFrame, Value],
        role: str, at: Iterations,
    ) -> bool:  # fmt: skip
        """Whether a tensor agrees, after the comparison was recorded.

        The first one that differs is computed once more, apart from its neighbours: a wrong layer can overwrite values
        that are computed together with it. If the tensor is right alone, it is the answer only if no other one differs.
        """
        holder, value = where
        if self.heat is not None:
            measured = self._measured(expected, actual)
            if measured.worst <= SURELY_CLOSE or self._first is not None:
                self.heat.add(value, key, measured)
                return measured.worst <= 1
        result = self._different(key[1], expected, actual)
        if result is not None and role == OUTPUT and not isinstance(value.node, Constant | Parameter | Control):
            with suppress(IrRunError):
                alone = holder.compute_alone(value)
                again = self._different(key[1], expected, alone)
                if again is None and self._vanishing is None:
                    kind, text, elements = self._told(result, expected, actual)
                    seen = self._difference(frame, place, key[1], kind, text, at, role, elements)
                    self._vanishing = replace(seen, vanishes=True)
                result, actual = again, alone
        if self.heat is not None:
            self.heat.add(value, key, self._measured(expected, actual))
        if result is None:
            return True
        kind, text, elements = self._told(result, expected, actual)
        self.found(frame, place, key[1], kind, text, at, (value.node, value.index), role, elements)
        return False

    def _different(self, name: str, expected: Any, actual: Any) -> ArrayComparison | None:
        """The difference of two arrays; None if they agree."""
        rtol, atol = self.tolerances
        if is_close(expected, actual, RTOL if rtol is None else rtol, ATOL if atol is None else atol):
            return None
        result = compare(expected, actual, name, rtol=rtol, atol=atol)
        if result or (result.kind == "shape" and _are_empty(expected, actual)):
            return None
        if result.kind == "values" and is_limited(expected, actual):
            self._limited[name] = None
            return None
        return result

    def _measured(self, expected: Any, actual: Any) -> Distance:
        """The distance of two arrays; 0 for those that are equal for `_different`."""
        found = distance(expected, actual, *self.tolerances)
        if found.worst > 1 and (_are_empty(expected, actual) or is_limited(expected, actual)):
            return Distance(0.0, size=found.size)
        return found

    def _elements(self, expected: Any, actual: Any) -> Elements:
        array = np.asarray(expected)
        usual = (RTOL, ATOL) if array.dtype.itemsize > 2 else (SMALL_FLOAT, SMALL_FLOAT)
        rtol, atol = (
            default if given is None else given for given, default in zip(self.tolerances, usual, strict=True)
        )
        return elements_of(expected, actual, rtol, atol)

    # -- the answer

    def found(
        self, frame: OnnxFrame, place: int, name: str, kind: str, text: str, at: Iterations, where: tuple[Node, int],
        role: str = OUTPUT, elements: Elements | None = None,
    ) -> None:  # fmt: skip
        """Keep the first difference, and end the comparison if differences are not recorded."""
        if self._first is None:
            self._first = self._difference(frame, place, name, kind, text, at, role, elements)
            if self.heat is not None:
                self.heat.begin(*where, str(self._first))
        if self.heat is None:
            raise Different(self._first)
        if kind in (COUNT, BRANCH):
            path = frame.plan.graph.path_of(frame.plan.nodes[place])
            self.heat.notes[f"{path}: {text}. Work that only one side does is not compared."] = None

    def failed(
        self, error: IrRunError, frame: OnnxFrame, place: int, name: str, at: Iterations, role: str = OUTPUT
    ) -> Different:
        """The difference of a part that OpenVINO does not run; it ends the comparison."""
        difference = self._difference(frame, place, name, FAILED, f"OpenVINO: {error}", at, role)
        if self.heat is not None:
            self.heat.notes[f"The comparison ends at {difference.brief}."] = None
        return Different(self._first or difference)

    def _told(self, result: ArrayComparison, expected: Any, actual: Any) -> tuple[str, str, Elements | None]:
        """The kind of a difference, its description, and the elements that differ."""
        elements = self._elements(expected, actual) if result.kind == "values" else None
        return result.kind, message(result, elements), elements

    def _difference(
        self, frame: OnnxFrame, place: int, name: str, kind: str, text: str, at: Iterations, role: str = OUTPUT,
        elements: Elements | None = None,
    ) -> LayerDifference:  # fmt: skip
        plan = frame.plan
        node = plan.nodes[place] if place >= 0 else None
        origin = plan.origin(place) if node is not None else Origin(plan.scope)
        reads = sorted(plan.reads[place]) if node is not None else []
        weights = list(other_weights(frame, reads, self.ir, self.side, self.tolerances))
        if self.heat is not None:
            for key, value, measured in weights:
                self.heat.add(value, key, measured)
        return LayerDifference(
            kind, text, origin.scope, origin.node, origin.operator, name or next(iter(node.output if node else ()), ""),
            role, at, elements,
            agreeing=tuple(each for each in reads if frame.has_agreed(each)),
            differing_weights=tuple(dict.fromkeys(name for (_, name), _, _ in weights)),
            between=tuple(uncompared(frame, place)) if place >= 0 else (),
            became=tuple(layers_of(self.ir, origin)),
            limited=tuple(self._limited),
            steps=steps_of(self.ir, origin),
            compared=len(self.compared),
            not_compared=dict(Counter(self.missed.values())),
        )  # fmt: skip


def _are_empty(expected: Any, actual: Any) -> bool:
    """Two results without elements: ONNX Runtime gives 0 where a loop without iterations leaves a size unknown."""
    return np.size(expected) == 0 and np.size(actual) == 0
