"""The findings of a comparison, tensor by tensor: those that agree, those that are not compared, the first difference.

The first difference ends the comparison (Different). With a Heat it continues past it, and every comparison is recorded
there: each side keeps its own values. Without one, each piece of the IR begins with the values of ONNX Runtime, and is
compared with the tolerance of the piece (rounding.py), or with the one that is given.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mo_loop.compare.layers.ir_side import IrRunError, IrSide, Key, as_element, controls_for, is_for
from mo_loop.compare.layers.onnx_side import Iterations, OnnxFrame, piece_model
from mo_loop.compare.layers.rounding import DRAWS, Run, Undecided, base_tolerance, changed, error_of_oracle, is_beyond
from mo_loop.compare.layers.tensor_differences import (
    BRANCH,
    COUNT,
    FAILED,
    OUTPUT,
    Elements,
    Heat,
    LayerDifference,
    elements_of,
    is_overwritten,
    message,
)
from mo_loop.compare.oracle.oracle import RANDOM_OPERATORS
from mo_loop.compare.results.array_comparison import ArrayComparison, compare, largest_number
from mo_loop.compare.results.report import DIFFERS, NOT_DECIDED
from mo_loop.frontend.onnx_graphs import label
from mo_loop.graph import Graph, Value
from mo_loop.look.diagnostics.ir_checks import loses_nan
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Control, Iteration
from mo_loop.origin import Origin
from mo_loop.support.traversal import reached

CALM = 1000.0
"""A loop that moves by less than this part of what the loop of the model does computes something else."""

HALF = 2.0**-10
"""The relative distance of numbers in f16."""

MISSING = "have no counterpart in the IR: they were fused, removed, or are in a loop that the IR does not have"
LISTS = "are sequences, optionals, or integers of fewer than 8 bits"
PACKED = ("int2", "int4", "uint1", "uint2", "uint4")
"""Types whose elements share bytes, which the arrays of ONNX Runtime do not show."""

NOT_ALONE = "cannot be computed by OpenVINO apart from their neighbours"

NOT_REPRODUCED = (
    "No tensor differs when inner tensors become outputs: the difference comes from work of the runtime on the whole "
    "model, such as fusing layers or computing in place."
)
UNKNOWN = "the pieces are not compared: "


@dataclass
class PieceFindings:
    """The result of comparing all pieces, with one set of inputs or several: the first difference, or None.

    `undecided` has tensors of which the comparison shows nothing, with the reason, `lost_nan` the layers in which the
    runtime has numbers for NaN, `inexact` tensors of which OpenVINO has the exact numbers, with the largest error of
    ONNX Runtime, `count` is the number of tensors that were compared. `piece` is the piece that differs, as a model
    with its inputs, if it is wanted.
    """

    difference: LayerDifference | None = None
    undecided: dict[str, str] = field(default_factory=dict)
    lost_nan: dict[str, None] = field(default_factory=dict)
    inexact: dict[str, float] = field(default_factory=dict)
    count: int = 0
    piece: tuple[bytes, Mapping[str, Any]] | None = None

    @property
    def open_ones(self) -> list[str]:
        """Sentences about the tensors that could not be compared."""
        return [f"{name}: {why}" if name else why for name, why in self.undecided.items()]

    @property
    def status(self) -> str:
        """The verdict in a word."""
        return DIFFERS if self.difference is not None else NOT_DECIDED if self.undecided else "agrees"

    @property
    def answer(self) -> LayerDifference | str:
        """The difference; without one, what follows for an IR whose outputs differ."""
        return self.difference or (f"{UNKNOWN}{'; '.join(self.open_ones)}" if self.undecided else NOT_REPRODUCED)

    def as_json(self) -> dict[str, Any]:
        """All but the difference, which the report has as `layers`."""
        return {"status": self.status, "undecided": self.open_ones, "lost_nan": list(self.lost_nan),
                "inexact": list(self.inexact), "compared": self.count}


@dataclass(frozen=True)
class Spot:
    """A tensor, and the node to which a difference of it belongs: that at `place` in the graph of `frame` (-1: none).

    A tensor that is not in the same graph is in the body whose frame is `inner`. `at` are the iterations around it, by
    default those of its frame. `value` is that of the IR with it, or an output of the layer for the node, in `ir`.
    """

    frame: OnnxFrame
    place: int
    name: str = ""
    role: str = OUTPUT
    inner: OnnxFrame | None = None
    at: Iterations | None = None
    ir: Any = None
    value: Any = None

    @property
    def holder(self) -> OnnxFrame:
        """The frame of the tensor."""
        return self.inner or self.frame

    @property
    def key(self) -> Key:
        """The scope and the name of the tensor."""
        return self.holder.plan.scope, self.name

    @property
    def path(self) -> str:
        """The path of the tensor."""
        return Origin(self.holder.plan.scope, output=self.name).path


class Different(Exception):
    """The first difference; the comparison ends."""

    def __init__(self, difference: LayerDifference) -> None:
        super().__init__(str(difference))
        self.difference = difference


@dataclass
class Findings:
    """The findings of one comparison so far. `ir` is the graph of the IR; `pieces` takes what is found, with
    `keeps_piece` also the piece that differs."""

    ir: Graph
    side: IrSide
    tolerances: tuple[float | None, float | None]
    heat: Heat | None = None
    keeps_piece: bool = False
    pieces: PieceFindings = field(default_factory=PieceFindings)
    run: Run = field(init=False)
    """Runs the iterations of a loop of the ONNX model, which the comparison sets."""
    _compared: set[Key] = field(default_factory=set)
    _missed: dict[Key, str] = field(default_factory=dict)
    _first: LayerDifference | None = None
    _vanishing: LayerDifference | None = None
    _limited: dict[str, None] = field(default_factory=dict)

    @property
    def is_forced(self) -> bool:
        """Whether each piece of the IR begins with the values of ONNX Runtime."""
        return self.heat is None

    @property
    def _is_of_piece(self) -> bool:
        """Whether the tolerance is that of the rounding in a piece."""
        return self.is_forced and self.tolerances == (None, None)

    def result(self, ended: LayerDifference | None) -> PieceFindings:
        """All that was found. The difference is the one that `ended` the comparison; else the first one; else the first
        one that vanishes."""
        self.pieces.difference = ended or self._first or self._vanishing
        self.pieces.count = max(self.pieces.count, len(self._compared))
        return self.pieces

    # -- comparing

    def agrees(self, spot: Spot, computed: Mapping[Value, Any] | None = None) -> bool:
        """Whether a tensor was compared and agrees, which its frame then notes.

        `computed` has the results of pieces where the next ones begin with other values.
        """
        key, expected = spot.key, spot.holder.values[spot.name]
        node = spot.frame.plan.nodes[spot.place]
        # Dropout draws numbers in training, which an input tells.
        is_random = node.op_type in RANDOM_OPERATORS or (node.op_type == "Dropout" and len(node.input) > 2)
        if spot.role == OUTPUT and is_random:
            self.pieces.undecided.setdefault(spot.path, "its numbers are drawn at random")
            return False
        if expected is None or isinstance(expected, list) or np.asarray(expected).dtype.name in PACKED:
            self._missed.setdefault(key, LISTS)
            return False
        found = []
        for holder, value in spot.holder.counterparts(spot.name):
            if isinstance(value.node, Constant) and key in self._compared:
                found.append(True)
                continue
            try:
                actual = computed[value] if computed and value in computed else holder.get(value)
            except IrRunError as error:
                if error.stage != "compile":
                    raise self.failed(error, spot) from error
                self._missed.setdefault(key, NOT_ALONE)
                continue
            if is_overwritten(actual) and spot.role == OUTPUT:
                with suppress(IrRunError):
                    actual = holder.compute_alone(value)
            pair = replace(spot, ir=holder, value=value)
            found.append(self.compare(pair, expected, as_element(value, actual, expected)))
        if found:
            self._compared.add(key)
            self._missed.pop(key, None)
        elif key not in self._compared:
            self._missed.setdefault(key, MISSING)
        if found and all(found):
            spot.holder.agreed.add(spot.name)
        return bool(found) and all(found)

    def compare(self, spot: Spot, expected: Any, actual: Any) -> bool:
        """Whether a tensor agrees, after the comparison was recorded.

        The first one that differs is computed once more, apart from its neighbours: a wrong layer can overwrite values
        that are computed together with it. If the tensor is right alone, it is the answer only if no other one differs.
        """
        ir, value = spot.ir, spot.value
        result, is_first = self._compared_arrays(spot, expected, actual), self._first is None
        is_alone = spot.role != OUTPUT or isinstance(value.node, Constant | Parameter | Control)
        if not result and is_first and not is_alone:
            with suppress(IrRunError):
                alone = ir.compute_alone(value)
                again = self._compared_arrays(spot, expected, alone)
                if again and self._vanishing is None:
                    seen = self._difference(spot, *self._told(result, expected, actual))
                    self._vanishing = replace(seen, vanishes=True)
                result, actual = again, alone
                if self.is_forced:
                    ir.force({value: expected})
        if self.heat is not None:
            self.heat.add(value, spot.key, result, spot.holder.recorded)
        if not result and is_first:
            if self.keeps_piece and self.pieces.piece is None:
                self.pieces.piece = piece_model(spot.frame, spot.place, spot.name)
            self.found(spot, *self._told(result, expected, actual))
        return bool(result)

    def _compared_arrays(self, spot: Spot, expected: Any, actual: Any) -> ArrayComparison:
        """The comparison of two arrays. They are equal where nothing follows from their difference."""
        rtol, atol = self.tolerances
        if self._is_of_piece:
            rtol, atol = base_tolerance(np.asarray(expected).dtype, largest_number(expected))
        result = compare(expected, actual, spot.name, rtol=rtol, atol=atol)
        if not result and self._is_of_piece:
            actual = self._with_nan(spot, expected, actual)
            result = compare(expected, actual, spot.name, rtol=rtol, atol=atol)
        if result:
            return result
        is_known = result.kind == "shape" and np.size(expected) == 0 == np.size(actual)
        if result.kind == "values" and _equal_in_32_bits(expected, actual):
            self._limited[spot.name] = None
            is_known = True
        if not is_known and self._is_of_piece and result.kind == "values":
            is_number = np.asarray(expected).dtype.kind not in "OSUc"
            is_known = is_number and not self._is_wrong(spot, expected, actual)
        return ArrayComparison(spot.name, size=result.size) if is_known else result

    def _is_wrong(self, spot: Spot, expected: Any, actual: Any) -> bool:
        """Whether neither the rounding of the piece nor an error of ONNX Runtime explains a difference; if nothing
        follows from it, it is noted."""
        # Weights that are stored as f16 are products of weights, which the model does not have.
        coarsest = HALF if any("decompression" in node.rt_info for node in spot.ir.piece(spot.value)) else 0.0
        try:
            is_wrong = is_beyond(self.run, spot.holder, spot.name, expected, actual, coarsest)
            error = error_of_oracle(spot.holder, spot.name, expected, actual) if is_wrong else 0.0
            if error:
                self.pieces.inexact[spot.name] = max(error, self.pieces.inexact.get(spot.name, 0.0))
            return is_wrong and not error
        except Undecided as error:
            if _is_calm(spot, error.moved, actual):
                return True
            self.pieces.undecided.setdefault(spot.path, str(error))
            return False

    def _with_nan(self, spot: Spot, expected: Any, actual: Any) -> Any:
        """The array of the IR, with NaN where the runtime is known to lose it (ML505)."""
        left, right = np.asarray(expected), np.asarray(actual)
        if left.shape != right.shape or left.dtype.kind not in "fV" or right.dtype.kind not in "fV":
            return actual
        lost = np.isnan(left) & ~np.isnan(right)
        if not lost.any():
            return actual
        losing = [node.path for node in spot.ir.piece(spot.value) if node.outputs and loses_nan(node)]
        self.pieces.lost_nan.update(dict.fromkeys(losing))
        return np.where(lost, left, right) if losing else actual

    # -- the answer

    def found(self, spot: Spot, kind: str, text: str, elements: Elements | None = None) -> None:
        """Keep the first difference, and end the comparison if differences are not recorded."""
        if self._first is None:
            self._first = self._difference(spot, kind, text, elements)
            if self.heat is not None and self.heat.first is None:
                self.heat.first = spot.value.node, spot.value.index, str(self._first)
        if self.heat is None:
            raise Different(self._first)
        if kind in (COUNT, BRANCH):
            path = spot.frame.plan.origin(spot.place).path
            self.heat.notes[f"{path}: {text}. Work that only one side does is not compared."] = None

    def failed(self, error: IrRunError, spot: Spot) -> Different:
        """The difference of a part that OpenVINO does not run; it ends the comparison."""
        difference = self._difference(spot, FAILED, f"OpenVINO: {error}")
        if self.heat is not None:
            self.heat.notes[f"The comparison ends at {difference.brief}."] = None
        return Different(self._first or difference)

    def _told(self, result: ArrayComparison, expected: Any, actual: Any) -> tuple[str, str, Elements | None]:
        """The kind of a difference, its description, and the elements that differ."""
        elements = elements_of(expected, actual, *self.tolerances) if result.kind == "values" else None
        return result.kind, message(result, elements), elements

    def _difference(self, spot: Spot, kind: str, text: str, elements: Elements | None = None) -> LayerDifference:
        frame, place, plan = spot.frame, spot.place, spot.frame.plan
        node = plan.nodes[place] if place >= 0 else None
        origin = plan.origin(place) if node is not None else Origin(plan.scope)
        reads = sorted(plan.reads[place]) if node is not None else []
        weights = list(_other_weights(frame, reads, self.ir, self.side, self.tolerances))
        if self.heat is not None:
            for key, value, measured in weights:
                self.heat.add(value, key, measured)

        def uncompared(reader: int) -> list[int]:
            return plan.makers_before(reader, frame.agreed)

        between = [] if node is None else sorted(reached(uncompared(place), uncompared))
        loops = [each for each in controls_for(self.ir, origin) if isinstance(each, Iteration)]
        layers = (each for scope in self.ir.scopes() for each in scope.ordered() if is_for(each, origin))
        became = [each for each in layers if not isinstance(each, Constant) and each.outputs]
        return LayerDifference(
            kind, text, origin.scope, origin.node, origin.operator,
            spot.name or next(iter(node.output if node else ()), ""), spot.role,
            spot.holder.at if spot.at is None else spot.at, elements,
            agreeing=tuple(each for each in reads if frame.has_agreed(each)),
            differing_weights=tuple(dict.fromkeys(name for (_, name), _, _ in weights)),
            between=tuple(f"{label(plan.nodes[each])} ({plan.nodes[each].op_type})" for each in between),
            became=tuple(f"{each.path} ({getattr(each, 'type', type(each).__name__)})" for each in became),
            limited=tuple(self._limited),
            steps=max((loop.steps for loop in loops), default=1),
            compared=len(self._compared),
            not_compared=dict(Counter(self._missed.values())),
        )


def _other_weights(
    frame: OnnxFrame, names: Iterable[str], graph: Graph, side: IrSide, tolerances: tuple[float | None, float | None]
) -> Iterator[tuple[Key, Value, ArrayComparison]]:
    """The constants of the IR that hold an initializer or Constant node among `names` with other values."""
    for name in names:
        held = frame.constant(name)
        if held is None:
            continue
        key, expected = (held[0].scope, name), held[0].array(name)
        for value in (value for each in graph.scopes() for value in side.index(each).get(key, ())):
            if not isinstance(value.node, Constant) or np.shape(expected) != np.shape(value.node.array):
                continue  # a constant of another shape was prepared for another layer
            found = compare(expected, value.node.array.astype(expected.dtype), rtol=tolerances[0], atol=tolerances[1])
            if not found:
                yield key, value, found


def _is_calm(spot: Spot, moved: float, actual: Any) -> bool:
    """Whether a loop of the model amplifies changes of its inputs, and what the IR has for it does not."""
    frame = spot.holder
    place = frame.plan.makers.get(spot.name, -1)
    if place < 0 or frame.plan.nodes[place].op_type not in ("Loop", "Scan") or spot.name in frame.again:
        return False
    if not spot.ir.piece(spot.value):
        return True  # it is an input
    changes = [partial(changed, random=np.random.default_rng(seed)) for seed in range(DRAWS)]
    with suppress(IrRunError):
        arrays = spot.ir.computed_from(spot.value, changes)
        apart = [np.abs(each.astype(np.float64) - actual).max(initial=0.0) for each in arrays]
        return bool(CALM * max(apart) < moved)
    return False


def _equal_in_32_bits(expected: Any, actual: Any) -> bool:
    """Whether integers are equal where 32 bits hold those of ONNX: what the device computes with others has no use."""
    left = np.asarray(expected)
    if left.dtype not in (np.int64, np.uint64):
        return False
    held = left == np.clip(left, 0 if left.dtype == np.uint64 else -(1 << 31), (1 << 31) - 1)
    return bool(not held.all() and np.array_equal(left[held], np.asarray(actual)[held]))
