"""Runs an ONNX model and its IR side by side, node by node of the ONNX model, and compares what both sides have.

A graph runs in pieces (onnx_side.py); after each, the values of the IR that contain its tensors are computed
(ir_side.py) and compared. A Loop, Scan or If that has a counterpart is driven on both sides, iteration by iteration;
one without a counterpart (unrolled, fused with its neighbours) runs on both sides as a whole, and its outputs are
compared. Values that nothing reads any more are dropped, so that the memory is that of a few pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import main_graph
from mo_loop.graph import Graph, Value
from mo_loop.graph.origin import Origin
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Control, If, Iteration
from mo_loop.verification.compare import ATOL, RTOL, SMALL_FLOAT, compare, is_limited
from mo_loop.verification.layers.answer import (
    is_close,
    is_overwritten,
    layers_of,
    message,
    other_weights,
    uncompared,
)
from mo_loop.verification.layers.counterparts import counterpart
from mo_loop.verification.layers.ir_loops import IrLoop, as_element
from mo_loop.verification.layers.ir_side import IrError, IrFrame, IrSide
from mo_loop.verification.layers.layer_difference import (
    BODY_INPUT,
    BRANCH,
    COUNT,
    FAILED,
    MODEL_OUTPUT,
    OUTPUT,
    Elements,
    LayerDifference,
    elements_of,
)
from mo_loop.verification.layers.onnx_loops import BatchedScan, OnnxLoop, OnnxMap, branch_of, outputs_of_no_iterations
from mo_loop.verification.layers.onnx_side import OnnxFrame, OnnxPlan
from mo_loop.verification.layers.sizes import Sizes
from mo_loop.workers import report_stage

Iterations = tuple[tuple[str, int], ...]
Found = list[tuple[IrFrame, Value]]

MISSING = "have no counterpart in the IR: they were fused, removed, or are in a loop that the IR does not have"
LISTS = "are sequences or optionals"
NOT_ALONE = "cannot be computed by OpenVINO apart from their neighbours"


class _Different(Exception):
    """The first difference."""

    def __init__(self, difference: LayerDifference) -> None:
        super().__init__(str(difference))
        self.difference = difference


class Lockstep:
    """One comparison."""

    def __init__(
        self,
        model: OnnxModel,
        graph: Graph,
        *,
        rtol: float | None,
        atol: float | None,
        memory: int,
        side: IrSide,
        one_by_one: bool = False,
    ) -> None:
        self.model = model
        self.ir = graph
        self.tolerances = rtol, atol
        self.memory = memory
        self.side = side
        self.one_by_one = one_by_one
        self.compared: set[tuple[tuple[str, ...], str]] = set()
        self.missed: dict[tuple[tuple[str, ...], str], str] = {}
        self._frames: list[Any] = []
        self._vanishing: LayerDifference | None = None
        self._limited: dict[str, None] = {}

    def run(self, feeds: Mapping[str, Any], ir_feeds: Mapping[Value, Any]) -> LayerDifference | None:
        """The first difference; None if all tensors agree."""
        graph = main_graph(self.model)
        plan = OnnxPlan(graph, self.model, frozenset(feeds))
        ir = IrFrame(self.side, self.ir, ir_feeds)
        values = {**self._frozen(plan, feeds), **feeds}
        frame = OnnxFrame(plan, values)
        for name in values:
            frame.agreed.add(name)
        try:
            self._nodes(frame, ir, ())
            self._model_outputs(frame, ir)
        except _Different as found:
            return found.difference
        return self._vanishing

    def _frozen(self, plan: OnnxPlan, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """The values of inputs that the conversion made constants."""
        index = self.side.index(self.ir)
        found = {}
        for name in plan.graph.input_names:
            held = [value.node for value in index.get(((), name), ()) if isinstance(value.node, Constant)]
            if name not in feeds and name not in plan.constants and held:
                found[name] = held[0].array
        return found

    # -- one graph

    def _nodes(self, frame: OnnxFrame, ir: IrFrame | None, at: Iterations) -> None:
        """Run all nodes of a graph on both sides; `ir` is None if the IR has no graph for it."""
        plan = frame.plan
        self._frames += [frame, ir]
        place = 0
        while place < len(plan.nodes):
            end = place + 1
            if plan.is_driven(place):
                self._driven(frame, ir, place, at)
            elif plan.function(place) is not None:
                self._call(frame, ir, place, at)
            else:
                if not self.one_by_one:
                    end = plan.end_of_piece(frame, place, Sizes(plan, ir, self._budget()).fits)
                frame.compute(place, end)
            self._compare_outputs(frame, ir, range(place, end), at)
            frame.release(end)
            if ir is not None:
                ir.release()
            place = end
        del self._frames[-2:]

    def _budget(self) -> int:
        """The bytes that the tensors of the next piece may have: both sides hold each, and the runtime copies it."""
        alive = sum(each.size for each in self._frames if each is not None)
        return max(self.memory - alive, self.memory // 8) // 6

    def _call(self, frame: OnnxFrame, ir: IrFrame | None, place: int, at: Iterations) -> None:
        node, plan = frame.plan.nodes[place], frame.plan.called_plan(place)
        names = plan.graph.input_names
        given = {inner: frame.get(outer) for inner, outer in zip(names, node.input, strict=False) if outer}
        inner = OnnxFrame(plan, given)
        inner.agreed.update(name for name, outer in zip(names, node.input, strict=False) if frame.has_agreed(outer))
        self._nodes(inner, ir, at)
        _define(frame, place, [inner.get(name) for name in plan.graph.output_names])

    # -- control flow

    def _driven(self, frame: OnnxFrame, ir: IrFrame | None, place: int, at: Iterations) -> None:
        node = frame.plan.nodes[place]
        if node.op_type == "Scan" and frame.plan.graph.opsets.get("", 1) < 9:
            self._batched_scan(frame, place, at)
            return
        kind = If if node.op_type == "If" else Iteration
        found = None if ir is None else counterpart(ir, frame.plan.origin(place), kind)
        if node.op_type == "If":
            self._if(frame, ir, place, found, at)
        else:
            self._loop(frame, ir, place, found, at)

    def _if(
        self, frame: OnnxFrame, ir: IrFrame | None, place: int, found: tuple[IrFrame, Any] | None, at: Iterations
    ) -> None:
        attribute = branch_of(frame, place)
        plan = frame.plan.body(place, attribute)
        inner_ir = ir
        if found is not None:
            holder, node = found
            branch = self._tried(frame, place, at, lambda: holder.enter(node))
            taken = "then_branch" if branch.graph is node.then_body else "else_branch"
            if taken != attribute:
                text = f"ONNX Runtime takes {attribute}, OpenVINO {taken}"
                raise _Different(self._difference(frame, place, "", BRANCH, text, at))
            inner_ir = branch
        inner = OnnxFrame(plan, {}, frame)
        self._nodes(inner, inner_ir, at)
        _define(frame, place, [inner.get(name) for name in plan.graph.output_names])

    def _loop(
        self, frame: OnnxFrame, ir: IrFrame | None, place: int, found: tuple[IrFrame, Any] | None, at: Iterations
    ) -> None:
        node = frame.plan.nodes[place]
        loop = OnnxMap(frame, place) if node.op_type == "SequenceMap" else OnnxLoop(frame, place)
        other: IrLoop | None = None
        if found is not None and loop.goes_on():
            holder, layer = found
            other = self._tried(frame, place, at, lambda: IrLoop(holder, layer))
            holder.driven.add(layer)
        path = frame.plan.graph.path_of(node)
        while True:
            goes = loop.goes_on()
            if other is not None and other.goes_on() != goes:
                raise _Different(self._other_count(frame, place, loop, goes, at))
            if not goes:
                break
            now = (*at, (path, loop.count))
            inner = loop.begin()
            inner_ir = None if other is None else self._tried(frame, place, now, other.begin)
            self._compare_body_inputs(frame, place, inner, inner_ir, now)
            self._nodes(inner, inner_ir, now)
            loop.end(inner)
            if other is not None:
                self._end(other, inner_ir, frame, place, now)
        if other is not None:
            self._tried(frame, place, at, other.finish)
        if loop.count or isinstance(loop, OnnxMap):
            outputs = loop.outputs()
        else:
            found_there = [self._in_ir(frame, ir, name) for name in node.output]
            outputs = outputs_of_no_iterations(frame, place, loop, found_there)
        _define(frame, place, outputs)

    def _in_ir(self, frame: OnnxFrame, ir: IrFrame | None, name: str) -> Any:
        """The array that the IR has for a tensor; None if it has none."""
        for holder, value in ir.find((frame.plan.scope, name)) if ir is not None and name else ():
            try:
                return holder.get(value)
            except IrError:
                continue
        return None

    def _batched_scan(self, frame: OnnxFrame, place: int, at: Iterations) -> None:
        """A Scan of opset 8: only its outputs are compared."""
        scan = BatchedScan(frame, place)
        samples = []
        for sample in range(len(scan.lengths)):
            loop = scan.sample(frame, place, sample)
            while loop.goes_on():
                inner = loop.begin()
                self._nodes(inner, None, at)
                loop.end(inner)
            samples.append(loop.outputs())
        _define(frame, place, scan.outputs(samples))

    def _end(self, other: IrLoop, inner: IrFrame | None, frame: OnnxFrame, place: int, at: Iterations) -> None:
        assert inner is not None
        self._tried(frame, place, at, lambda: other.end(inner))

    def _tried(self, frame: OnnxFrame, place: int, at: Iterations, action: Any) -> Any:
        """What the IR does for a node with bodies; an error of the runtime is a difference of this node."""
        try:
            return action()
        except IrError as error:
            raise _Different(self._difference(frame, place, "", FAILED, f"OpenVINO: {error}", at)) from error

    def _other_count(
        self, frame: OnnxFrame, place: int, loop: OnnxLoop | OnnxMap, goes: bool, at: Iterations
    ) -> LayerDifference:
        now = (*at, (frame.plan.graph.path_of(frame.plan.nodes[place]), loop.count))
        ends, goes_on = ("OpenVINO", "ONNX Runtime") if goes else ("ONNX Runtime", "OpenVINO")
        text = f"{ends} ends the loop after {loop.count} iterations, {goes_on} goes on"
        return self._difference(frame, place, "", COUNT, text, now)

    # -- comparing

    def _compare_body_inputs(
        self, frame: OnnxFrame, place: int, inner: OnnxFrame, ir: IrFrame | None, at: Iterations
    ) -> None:
        for name in inner.plan.graph.input_names:
            if name in inner.values and self._agrees(frame, place, name, inner, ir, BODY_INPUT, at):
                inner.agreed.add(name)

    def _compare_outputs(self, frame: OnnxFrame, ir: IrFrame | None, places: range, at: Iterations) -> None:
        names = [(place, name) for place in places for name in frame.plan.nodes[place].output if name]
        if ir is not None:
            self._compute_together(frame, ir, [name for _, name in names], at)
        for place, name in names:
            if name in frame.values and self._agrees(frame, place, name, frame, ir, OUTPUT, at):
                frame.agreed.add(name)

    def _compute_together(self, frame: OnnxFrame, ir: IrFrame, names: Sequence[str], at: Iterations) -> None:
        """Compute the tensors of a piece at once. If that fails, each is computed alone, where the error counts."""
        wanted: dict[IrFrame, list[Value]] = {}
        when = "".join(f", iteration {number} of {path}" for path, number in at)
        report_stage(f"computing {Origin(frame.plan.scope, output=names[0]).path if names else ''}{when}")
        for name in names:
            for holder, value in ir.find((frame.plan.scope, name)):
                wanted.setdefault(holder, []).append(value)
        for holder, values in wanted.items():
            try:
                holder.need(values)
            except IrError:
                continue

    def _agrees(
        self, frame: OnnxFrame, place: int, name: str, inner: OnnxFrame, ir: IrFrame | None, role: str, at: Iterations
    ) -> bool:
        """Whether a tensor of `inner` was compared; `frame` and `place` are the node to which a difference belongs."""
        key = (inner.plan.scope, name)
        expected = inner.values[name]
        found = [] if ir is None else ir.find(key)
        if expected is None or isinstance(expected, list):
            self.missed.setdefault(key, LISTS)
            return False
        was_compared = False
        for holder, value in found:
            if isinstance(value.node, Constant) and key in self.compared:
                was_compared = True
                continue
            try:
                actual = holder.get(value)
            except IrError as error:
                if error.stage == "compile":
                    self.missed.setdefault(key, NOT_ALONE)
                    continue
                text = f"OpenVINO: {error}"
                raise _Different(self._difference(frame, place, name, FAILED, text, at, role)) from error
            if is_overwritten(actual) and role == OUTPUT:
                with suppress(IrError):
                    actual = holder.compute_alone(value)
            try:
                self._compare(frame, place, name, expected, as_element(value, actual, expected), role, at)
            except _Different as different:
                self._confirm(different, frame, place, name, expected, (holder, value), role, at)
            was_compared = True
        if was_compared:
            self.compared.add(key)
            self.missed.pop(key, None)
        elif key not in self.compared:
            self.missed.setdefault(key, MISSING)
        return was_compared

    def _confirm(
        self, different: _Different, frame: OnnxFrame, place: int, name: str, expected: Any,
        where: tuple[IrFrame, Value], role: str, at: Iterations,
    ) -> None:  # fmt: skip
        """Compare a tensor that differs once more, computed apart from its neighbours.

        A wrong layer can overwrite what is computed together with it. If the tensor is right alone, the difference is
        the answer only if no other one follows.
        """
        holder, value = where
        if role != OUTPUT or isinstance(value.node, Constant | Parameter | Control):
            raise different
        try:
            array = holder.compute_alone(value)
        except IrError:
            raise different from None
        self._compare(frame, place, name, expected, array, role, at)
        self._vanishing = self._vanishing or replace(different.difference, vanishes=True)

    def _compare(
        self, frame: OnnxFrame, place: int, name: str, expected: Any, actual: Any, role: str, at: Iterations
    ) -> None:
        rtol, atol = self.tolerances
        if is_close(expected, actual, RTOL if rtol is None else rtol, ATOL if atol is None else atol):
            return
        result = compare(expected, actual, name, rtol=rtol, atol=atol)
        if result or (result.kind == "shape" and _are_empty(expected, actual)):
            return
        if result.kind == "values" and is_limited(expected, actual):
            self._limited[name] = None
            return
        elements = self._elements(expected, actual) if result.kind == "values" else None
        text = message(result, elements)
        raise _Different(self._difference(frame, place, name, result.kind, text, at, role, elements))

    def _elements(self, expected: Any, actual: Any) -> Elements:
        array = np.asarray(expected)
        usual = (RTOL, ATOL) if array.dtype.itemsize > 2 else (SMALL_FLOAT, SMALL_FLOAT)
        rtol, atol = (
            default if given is None else given for given, default in zip(self.tolerances, usual, strict=True)
        )
        return elements_of(expected, actual, rtol, atol)

    def _model_outputs(self, frame: OnnxFrame, ir: IrFrame) -> None:
        """The outputs of the model, which may be connected to other values than those that were compared."""
        plan = frame.plan
        makers = {name: place for place, node in enumerate(plan.nodes) for name in node.output}
        results = {name: result for result in self.ir.results for name in (*result.output_names, *result.value.names)}
        for name in plan.graph.output_names:
            result = results.get(name)
            expected = frame.values.get(name)
            if result is None or expected is None or isinstance(expected, list):
                continue
            place = makers.get(name, -1)
            actual = self._tried(frame, place, (), lambda value=result.value: ir.get(value))
            self._compare(frame, place, name, expected, actual, MODEL_OUTPUT, ())

    # -- the answer

    def _difference(
        self, frame: OnnxFrame, place: int, name: str, kind: str, text: str, at: Iterations, role: str = OUTPUT,
        elements: Elements | None = None,
    ) -> LayerDifference:  # fmt: skip
        plan = frame.plan
        node = plan.nodes[place] if place >= 0 else None
        origin = plan.origin(place) if node is not None else Origin(plan.scope)
        reads = sorted(plan.reads[place]) if node is not None else []
        return LayerDifference(
            kind, text, origin.scope, origin.node, origin.operator, name or next(iter(node.output if node else ()), ""),
            role, at, elements,
            agreeing=tuple(each for each in reads if frame.has_agreed(each)),
            differing_weights=tuple(other_weights(frame, reads, self.ir, self.side, self.tolerances)),
            between=tuple(uncompared(frame, place)) if place >= 0 else (),
            became=tuple(layers_of(self.ir, origin)),
            limited=tuple(self._limited),
            compared=len(self.compared),
            not_compared=dict(Counter(self.missed.values())),
        )  # fmt: skip


def _define(frame: OnnxFrame, place: int, outputs: Sequence[Any]) -> None:
    """Give the outputs of a node their values."""
    names = frame.plan.nodes[place].output
    frame.values.update({name: value for name, value in zip(names, outputs, strict=False) if name})


def _are_empty(expected: Any, actual: Any) -> bool:
    """Two results without elements: ONNX Runtime gives 0 where a loop without iterations leaves a size unknown."""
    return np.size(expected) == 0 and np.size(actual) == 0
