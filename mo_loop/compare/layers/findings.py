"""The findings of a comparison, tensor by tensor: those that agree, those that are not compared, the first difference.

The first difference ends the comparison (Different). With a Heat it continues past it, and every comparison is recorded
there: each side keeps its own values. Without one, each piece of the IR begins with the values of ONNX Runtime, and is
compared with the tolerance of the piece (piece_tolerance.py), or with the one that is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mo_loop.compare.layers.heat import Distance, Heat, distance
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
    is_overwritten,
    layers_of,
    message,
    other_weights,
    steps_of,
    uncompared,
)
from mo_loop.compare.layers.onnx_side import OnnxFrame
from mo_loop.compare.layers.piece_model import piece_model
from mo_loop.compare.layers.piece_tolerance import DRAWS, PieceTolerance, Run, base_tolerance, changed
from mo_loop.compare.layers.piece_tolerance import RTOL as PIECE_RTOL
from mo_loop.compare.oracle.oracle_errors import RANDOM_OPERATORS
from mo_loop.compare.results.array_comparison import ArrayComparison, compare, is_limited, largest_number
from mo_loop.diagnostics.ir_checks import loses_nan
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.origin import Origin
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Control

Iterations = tuple[tuple[str, int], ...]
"""The path and the iteration of each enclosing loop."""

CALM = 1000.0
"""A loop that moves by less than this part of what the loop of the model does computes something else."""

HALF = 2.0**-10
"""The relative distance of numbers in f16."""

MISSING = "have no counterpart in the IR: they were fused, removed, or are in a loop that the IR does not have"
LISTS = "are sequences, optionals, or integers of fewer than 8 bits"
PACKED = ("int2", "int4", "uint1", "uint2", "uint4")
"""Types whose elements share bytes, which the arrays of ONNX Runtime do not show."""

SURELY_CLOSE = 0.999
"""The multiple of the tolerance up to which rounding does not change whether two arrays agree."""

TINY = 1e-30
"""An absolute tolerance that divides no zero by zero."""

NOT_ALONE = "cannot be computed by OpenVINO apart from their neighbours"


@dataclass(frozen=True)
class Spot:
    """The node to which a difference belongs, by its number in a graph (-1: none), and the iterations around it."""

    frame: OnnxFrame
    place: int
    at: Iterations = ()


class Different(Exception):
    """The first difference; the comparison ends."""

    def __init__(self, difference: LayerDifference) -> None:
        super().__init__(str(difference))
        self.difference = difference


class Findings:
    """The findings of one comparison so far."""

    def __init__(
        self, graph: Graph, side: IrSide, tolerances: tuple[float | None, float | None], run: Run,
        heat: Heat | None = None,
    ) -> None:  # fmt: skip
        """`graph` is that of the IR; `run` computes a body of the ONNX model."""
        self.ir = graph
        self.side = side
        self.tolerances = tolerances
        self.heat = heat
        self.compared: set[Key] = set()
        self.missed: dict[Key, str] = {}
        self._first: LayerDifference | None = None
        self._vanishing: LayerDifference | None = None
        self._limited: dict[str, None] = {}
        self.undecided: dict[str, str] = {}
        """Tensors of which the comparison shows nothing, with the reason."""
        self.lost_nan: dict[str, None] = {}
        """Layers in which the runtime has numbers where ONNX has NaN."""
        self._tolerance = PieceTolerance(run)
        self.keeps_piece = False
        self.piece: tuple[bytes, Mapping[str, Any]] | None = None
        """The piece that differs, as a model with its inputs."""

    @property
    def is_forced(self) -> bool:
        """Whether each piece of the IR begins with the values of ONNX Runtime."""
        return self.heat is None

    @property
    def answer(self) -> LayerDifference | None:
        """The first difference; else the first one that vanishes; None if all tensors agree."""
        return self._first or self._vanishing

    # -- comparing

    def agrees(
        self, spot: Spot, name: str, inner: OnnxFrame, ir: IrFrame | None, role: str,
        computed: Mapping[Value, Any] | None = None,
    ) -> bool:  # fmt: skip
        """Whether a tensor of `inner` was compared and agrees.

        `computed` has the results of pieces where the next ones begin with other values.
        """
        key = (inner.plan.scope, name)
        expected = inner.values[name]
        found = [] if ir is None else ir.find(key)
        if role == OUTPUT and _is_random(spot.frame.plan.nodes[spot.place]):
            self.undecided.setdefault(Origin(*key[:1], output=name).path, "its numbers are drawn at random")
            return False
        if expected is None or isinstance(expected, list) or np.asarray(expected).dtype.name in PACKED:
            self.missed.setdefault(key, LISTS)
            return False
        was_compared, agrees = False, True
        for holder, value in found:
            if isinstance(value.node, Constant) and key in self.compared:
                was_compared = True
                continue
            try:
                actual = computed[value] if computed and value in computed else holder.get(value)
            except IrRunError as error:
                if error.stage == "compile":
                    self.missed.setdefault(key, NOT_ALONE)
                    continue
                raise self.failed(error, spot, name, role) from error
            if is_overwritten(actual) and role == OUTPUT:
                with suppress(IrRunError):
                    actual = holder.compute_alone(value)
            actual = as_element(value, actual, expected)
            agrees = self.compare(spot, key, expected, actual, (holder, value), role, inner) and agrees
            was_compared = True
        if was_compared:
            self.compared.add(key)
            self.missed.pop(key, None)
        elif key not in self.compared:
            self.missed.setdefault(key, MISSING)
        return was_compared and agrees

    def compare(
        self, spot: Spot, key: Key, expected: Any, actual: Any, where: tuple[IrFrame, Value], role: str,
        inner: OnnxFrame | None = None,
    ) -> bool:  # fmt: skip
        """Whether a tensor of `inner` (by default the graph of the node) agrees, after the comparison was recorded.

        The first one that differs is computed once more, apart from its neighbours: a wrong layer can overwrite values
        that are computed together with it. If the tensor is right alone, it is the answer only if no other one differs.
        """
        holder, value = where
        if self.heat is not None:
            measured = self._measured(expected, actual)
            if measured.worst <= SURELY_CLOSE or self._first is not None:
                self.heat.add(value, key, measured)
                return measured.worst <= 1
        held = inner or spot.frame
        result = self._different(held, key[1], expected, actual, where)
        if result is not None and role == OUTPUT and not isinstance(value.node, Constant | Parameter | Control):
            with suppress(IrRunError):
                alone = holder.compute_alone(value)
                again = self._different(held, key[1], expected, alone, where)
                if again is None and self._vanishing is None:
                    kind, text, elements = self._told(result, expected, actual)
                    seen = self._difference(spot, key[1], kind, text, role, elements)
                    self._vanishing = replace(seen, vanishes=True)
                result, actual = again, alone
                if self.is_forced:
                    holder.force({value: expected})
        if self.heat is not None:
            self.heat.add(value, key, self._measured(expected, actual))
        if result is None:
            return True
        if self.keeps_piece and self.piece is None:
            self.piece = piece_model(spot.frame, spot.place, key[1])
        kind, text, elements = self._told(result, expected, actual)
        self.found(spot, key[1], kind, text, (value.node, value.index), role, elements)
        return False

    def compare_state(
        self, spot: Spot, name: str, expected: Any, actual: Any, again: Callable[[Any], Any],
        where: tuple[IrFrame, Node],
    ) -> None:  # fmt: skip
        """Compare the state of a loop after some steps, which `again` computes from changed states."""
        holder, layer = where
        state = OnnxFrame(spot.frame.plan, {name: expected}, spot.frame)
        state.again[name] = again
        result = self._different(state, name, expected, actual, (holder, layer.outputs[0]))
        if result is not None:
            kind, text, elements = self._told(result, expected, actual)
            self.found(spot, name, kind, text, (layer, 0), OUTPUT, elements)

    def _different(
        self, frame: OnnxFrame, name: str, expected: Any, actual: Any, where: tuple[IrFrame, Value]
    ) -> ArrayComparison | None:
        """The difference of two arrays; None if they agree, or nothing follows from the comparison."""
        rtol, atol = self.tolerances
        of_piece = self.is_forced and (rtol, atol) == (None, None)
        quick = (PIECE_RTOL, TINY) if of_piece else (rtol, atol)
        if distance(expected, actual, *quick).worst <= SURELY_CLOSE:
            return None
        if of_piece:
            rtol, atol = base_tolerance(np.asarray(expected).dtype, largest_number(expected))
            actual = self._with_nan(expected, actual, where)
        result = compare(expected, actual, name, rtol=rtol, atol=atol)
        if result or (result.kind == "shape" and _are_empty(expected, actual)):
            return None
        if result.kind == "values" and (is_limited(expected, actual) or _equal_in_32_bits(expected, actual)):
            self._limited[name] = None
            return None
        if of_piece and result.kind == "values" and np.asarray(expected).dtype.kind not in "OSUc":
            return self._beyond(frame, name, expected, actual, result, where)
        return result

    def _beyond(
        self, frame: OnnxFrame, name: str, expected: Any, actual: Any, result: ArrayComparison,
        where: tuple[IrFrame, Value],
    ) -> ArrayComparison | None:  # fmt: skip
        """The difference, unless the rounding of the piece explains it, or is so large that nothing follows."""
        beyond = self._tolerance.beyond(frame, name, expected, actual, HALF if self._is_half(where) else 0.0)
        if beyond is not None and beyond.undecided and self._is_calm(frame, name, beyond.moved, actual, where):
            return result
        if beyond is not None and beyond.undecided:
            self.undecided.setdefault(Origin(frame.plan.scope, output=name).path, beyond.undecided)
            return None
        return None if beyond is None else result

    @staticmethod
    def _is_calm(
        frame: OnnxFrame, name: str, moved: float, actual: Any, where: tuple[IrFrame, Value]
    ) -> bool:
        """Whether a loop of the model amplifies changes of its inputs, and what the IR has for it does not."""
        place = frame.plan.makers.get(name, -1)
        if place < 0 or frame.plan.nodes[place].op_type not in ("Loop", "Scan") or name in frame.again:
            return False
        if not where[0].piece(where[1]):
            return True  # it is an input
        changes = [partial(changed, random=np.random.default_rng(seed)) for seed in range(DRAWS)]
        with suppress(IrRunError):
            arrays = where[0].computed_from(where[1], changes)
            apart = [np.abs(each.astype(np.float64) - actual).max(initial=0.0) for each in arrays]
            return bool(CALM * max(apart) < moved)
        return False

    @staticmethod
    def _is_half(where: tuple[IrFrame, Value]) -> bool:
        """Whether the piece has weights that are stored as f16: products of weights, which the model does not have."""
        holder, value = where
        return any("decompression" in node.rt_info for node in holder.piece(value))

    def _with_nan(self, expected: Any, actual: Any, where: tuple[IrFrame, Value]) -> Any:
        """The array of the IR, with NaN where the runtime is known to lose it (ML505)."""
        left, right = np.asarray(expected), np.asarray(actual)
        if left.shape != right.shape or left.dtype.kind not in "fV" or right.dtype.kind not in "fV":
            return actual
        lost = np.isnan(left) & ~np.isnan(right)
        if not lost.any():
            return actual
        holder, value = where
        losing = [node.path for node in holder.piece(value) if node.outputs and loses_nan(node)]
        self.lost_nan.update(dict.fromkeys(losing))
        return np.where(lost, left, right) if losing else actual

    def _measured(self, expected: Any, actual: Any) -> Distance:
        """The distance of two arrays; 0 for those that are equal for `_different`."""
        found = distance(expected, actual, *self.tolerances)
        if found.worst > 1 and (_are_empty(expected, actual) or is_limited(expected, actual)):
            return Distance(0.0, size=found.size)
        return found

    # -- the answer

    def found(
        self, spot: Spot, name: str, kind: str, text: str, where: tuple[Node, int], role: str = OUTPUT,
        elements: Elements | None = None,
    ) -> None:  # fmt: skip
        """Keep the first difference, and end the comparison if differences are not recorded."""
        if self._first is None:
            self._first = self._difference(spot, name, kind, text, role, elements)
            if self.heat is not None:
                self.heat.begin(*where, str(self._first))
        if self.heat is None:
            raise Different(self._first)
        if kind in (COUNT, BRANCH):
            path = spot.frame.plan.graph.path_of(spot.frame.plan.nodes[spot.place])
            self.heat.notes[f"{path}: {text}. Work that only one side does is not compared."] = None

    def failed(self, error: IrRunError, spot: Spot, name: str, role: str = OUTPUT) -> Different:
        """The difference of a part that OpenVINO does not run; it ends the comparison."""
        difference = self._difference(spot, name, FAILED, f"OpenVINO: {error}", role)
        if self.heat is not None:
            self.heat.notes[f"The comparison ends at {difference.brief}."] = None
        return Different(self._first or difference)

    def _told(self, result: ArrayComparison, expected: Any, actual: Any) -> tuple[str, str, Elements | None]:
        """The kind of a difference, its description, and the elements that differ."""
        elements = elements_of(expected, actual, *self.tolerances) if result.kind == "values" else None
        return result.kind, message(result, elements), elements

    def _difference(
        self, spot: Spot, name: str, kind: str, text: str, role: str = OUTPUT, elements: Elements | None = None
    ) -> LayerDifference:
        frame, place, plan = spot.frame, spot.place, spot.frame.plan
        node = plan.nodes[place] if place >= 0 else None
        origin = plan.origin(place) if node is not None else Origin(plan.scope)
        reads = sorted(plan.reads[place]) if node is not None else []
        weights = list(other_weights(frame, reads, self.ir, self.side, self.tolerances))
        if self.heat is not None:
            for key, value, measured in weights:
                self.heat.add(value, key, measured)
        return LayerDifference(
            kind, text, origin.scope, origin.node, origin.operator, name or next(iter(node.output if node else ()), ""),
            role, spot.at, elements,
            agreeing=tuple(each for each in reads if frame.has_agreed(each)),
            differing_weights=tuple(dict.fromkeys(name for (_, name), _, _ in weights)),
            between=tuple(uncompared(frame, place)) if place >= 0 else (),
            became=tuple(layers_of(self.ir, origin)),
            limited=tuple(self._limited),
            steps=steps_of(self.ir, origin),
            compared=len(self.compared),
            not_compared=dict(Counter(self.missed.values())),
        )  # fmt: skip


def _is_random(node: Any) -> bool:
    """Whether a node draws numbers; Dropout does in training, which an input tells."""
    return node.op_type in RANDOM_OPERATORS or (node.op_type == "Dropout" and len(node.input) > 2)


def _equal_in_32_bits(expected: Any, actual: Any) -> bool:
    """Whether integers are equal where 32 bits hold those of ONNX: what the device computes with others has no use."""
    left = np.asarray(expected)
    if left.dtype not in (np.int64, np.uint64):
        return False
    held = left == np.clip(left, 0 if left.dtype == np.uint64 else -(1 << 31), (1 << 31) - 1)
    return bool(not held.all() and np.array_equal(left[held], np.asarray(actual)[held]))


def _are_empty(expected: Any, actual: Any) -> bool:
    """Two results without elements: ONNX Runtime gives 0 where a loop without iterations leaves a size unknown."""
    return np.size(expected) == 0 and np.size(actual) == 0
