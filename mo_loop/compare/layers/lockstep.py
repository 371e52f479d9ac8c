"""Runs an ONNX model and its IR side by side, node by node of the ONNX model, and compares the values that both sides
have.

A graph of the model runs in parts (onnx_side.py); after each, the values of the IR that contain its tensors are
computed (ir_side.py) and compared. The IR computes each of them from the values of ONNX Runtime for the tensors before
it, so that a piece lies between tensors that both sides have, and no difference grows. A Loop, Scan or If that
has a counterpart is driven on both sides, iteration by iteration; one without a counterpart (unrolled, fused with its
neighbours) is a piece. Values that nothing reads any more are dropped where memory is short.

The first difference ends the comparison (findings.py). With a Heat it continues, and each side keeps its own values; a
branch that only one side takes and iterations that only one side runs are then not compared, and a layer that OpenVINO
does not run ends it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any

from mo_loop.compare.layers.findings import Different, Findings, Iterations, Spot
from mo_loop.compare.layers.heat import Heat
from mo_loop.compare.layers.ir_loops import IrLoop, counterpart, loops_for
from mo_loop.compare.layers.ir_side import IrFrame, IrRunError, IrSide
from mo_loop.compare.layers.layer_difference import BODY_INPUT, BRANCH, COUNT, MODEL_OUTPUT, OUTPUT, LayerDifference
from mo_loop.compare.layers.loops_of_steps import LoopOfSteps
from mo_loop.compare.layers.onnx_loops import OnnxLoop, OnnxMap, branch_of, outputs_of_no_iterations
from mo_loop.compare.layers.onnx_side import OnnxFrame, OnnxPlan
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import main_graph
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.origin import Origin
from mo_loop.ops.base import Constant
from mo_loop.ops.control import If, Iteration
from mo_loop.support.workers import report_stage


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
        heat: Heat | None = None,
    ) -> None:
        self.model = model
        self.ir = graph
        self.memory = memory
        self.side = side
        self.one_by_one = one_by_one
        self.heat = heat
        self.findings = Findings(graph, side, (rtol, atol), lambda body: self._nodes(body, None, ()), heat)
        self._frames: list[Any] = []

    def run(self, feeds: Mapping[str, Any], ir_feeds: Mapping[Value, Any]) -> LayerDifference | None:
        """The first difference; None if all tensors agree."""
        graph = main_graph(self.model)
        plan = OnnxPlan(graph, self.model, frozenset(feeds))
        ir = IrFrame(self.side, self.ir, ir_feeds)
        values = {**self._frozen(plan, feeds), **feeds}
        frame = OnnxFrame(plan, values)
        frame.agreed.update(values)
        frame.cut.update(values)
        try:
            self._nodes(frame, ir, ())
            self._model_outputs(frame, ir)
        except Different as found:
            return found.difference
        return self.findings.answer

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
                    end = plan.end_of_piece(frame, place, self._budget())
                frame.compute(place, end)
            self._compare_outputs(frame, ir, range(place, end), at)
            self._release(frame, ir, end)
            place = end
        del self._frames[-2:]

    def _release(self, frame: OnnxFrame, ir: IrFrame | None, end: int) -> None:
        """Forget what no node reads any more. A piece is computed once more for its tolerance: while there is memory,
        the values that it begins with are kept."""
        if self.findings.is_forced and self._alive() < self.memory // 2:
            return
        frame.release(end)
        if ir is not None:
            ir.release()

    def _alive(self) -> int:
        return sum(each.size for each in self._frames if each is not None)

    def _budget(self) -> int:
        """The bytes that the tensors of the next piece may have: both sides hold each, and the runtime copies it."""
        return max(self.memory - self._alive(), self.memory // 8) // 6

    def _call(self, frame: OnnxFrame, ir: IrFrame | None, place: int, at: Iterations) -> None:
        node, plan = frame.plan.nodes[place], frame.plan.called_plan(place)
        names = plan.graph.input_names
        given = {inner: frame.get(outer) for inner, outer in zip(names, node.input, strict=False) if outer}
        inner = OnnxFrame(plan, given)
        inner.agreed.update(name for name, outer in zip(names, node.input, strict=False) if frame.has_agreed(outer))
        inner.sources = {name: (frame, outer) for name, outer in zip(names, node.input, strict=False) if outer}
        self._nodes(inner, ir, at)
        _define(frame, place, [inner.get(name) for name in plan.graph.output_names])

    # -- control flow

    def _driven(self, frame: OnnxFrame, ir: IrFrame | None, place: int, at: Iterations) -> None:
        node = frame.plan.nodes[place]
        kind, spot = If if node.op_type == "If" else Iteration, Spot(frame, place, at)
        found = None if ir is None else counterpart(ir, frame.plan.origin(place), kind)
        (self._if if kind is If else self._loop)(spot, ir, found)

    def _if(self, spot: Spot, ir: IrFrame | None, found: tuple[IrFrame, Any] | None) -> None:
        frame, place = spot.frame, spot.place
        attribute = branch_of(frame, place)
        plan = frame.plan.body(place, attribute)
        inner_ir = ir
        if found is not None:
            holder, node = found
            inner_ir = branch = self._tried(spot, lambda: holder.enter(node))
            taken = "then_branch" if branch.graph is node.then_body else "else_branch"
            if taken != attribute:
                text = f"ONNX Runtime takes {attribute}, OpenVINO {taken}"
                self.findings.found(spot, "", BRANCH, text, (node, 0))
                inner_ir = None
        inner = OnnxFrame(plan, {}, frame)
        self._nodes(inner, inner_ir, spot.at)
        _define(frame, place, [inner.get(name) for name in plan.graph.output_names])

    def _loop(self, spot: Spot, ir: IrFrame | None, found: tuple[IrFrame, Any] | None) -> None:
        frame, place = spot.frame, spot.place
        node = frame.plan.nodes[place]
        loop = OnnxMap(frame, place) if node.op_type == "SequenceMap" else OnnxLoop(frame, place)
        if found is None and isinstance(loop, OnnxLoop) and self._of_steps(spot, ir, loop):
            return
        other: IrLoop | None = None
        if found is not None and loop.goes_on():
            holder, layer = found
            other = self._tried(spot, lambda: IrLoop(holder, layer))
            holder.driven.add(layer)
        path = frame.plan.graph.path_of(node)
        while True:
            goes = loop.goes_on()
            if other is not None and other.goes_on() != goes:
                self._other_count(spot, loop, goes, other.node)
                other = None  # its outputs are those of the whole loop
            if not goes:
                break
            now = Spot(frame, place, (*spot.at, (path, loop.count)))
            inner = loop.begin()
            inner.sources = loop.sources()
            inner_ir = None if other is None else self._tried(now, other.begin)
            with self._recorded(other, loop, inner):
                self._compare_body_inputs(now, inner, inner_ir)
                self._nodes(inner, inner_ir, now.at)
            loop.end(inner)
            if inner.cut.issuperset(inner.plan.graph.output_names):
                inner.sources = {}  # nothing begins before this iteration
            if other is not None:
                assert inner_ir is not None
                self._tried(now, partial(other.end, inner_ir))
        if other is not None:
            self._tried(spot, other.finish)
        if loop.count or isinstance(loop, OnnxMap):
            outputs = loop.outputs()
        else:
            found_there = [self._in_ir(frame, ir, name) for name in node.output]
            outputs = outputs_of_no_iterations(frame, place, loop, found_there)
        _define(frame, place, outputs)

    def _of_steps(self, spot: Spot, ir: IrFrame | None, loop: OnnxLoop) -> bool:
        """Compare a loop that has several steps in each iteration of the IR; False if there is none."""
        if ir is None or not self.findings.is_forced or not loop.goes_on():
            return False
        frame, place = spot.frame, spot.place
        found = counterpart(ir, frame.plan.origin(place), Iteration, several=True)
        if found is None:
            return False
        holder, layer = found
        assert isinstance(layer, Iteration)
        try:
            other = IrLoop(holder, layer)
        except IrRunError:
            return False
        steps = LoopOfSteps.of(loop, other)
        if steps is None:
            return False
        holder.driven.add(layer)

        def run(inner: OnnxFrame) -> None:
            self._nodes(inner, None, spot.at)

        path = frame.plan.graph.path_of(frame.plan.nodes[place])
        while steps.goes_on():
            now = Spot(frame, place, (*spot.at, (path, loop.count)))
            self._tried(now, lambda: steps.advance(run))
            for number, expected, actual, again in steps.states(run):
                name = frame.plan.nodes[place].output[number]
                self.findings.compare_state(now, name, expected, actual, again, (holder, layer))
            steps.begin_at_states()
        if not other.goes_on():  # else the IR continues, which its outputs show
            self._tried(spot, other.finish)
        steps.rest(run)
        _define(frame, place, loop.outputs())
        frame.again.update(steps.again(run))
        return True

    def _recorded(
        self, other: IrLoop | None, loop: OnnxLoop | OnnxMap, inner: OnnxFrame
    ) -> AbstractContextManager[None]:
        """Record comparisons as those of an iteration of the loop."""
        if self.heat is None or other is None:
            return nullcontext()
        plan = inner.plan
        return self.heat.iteration(other.node, loop.count, [(plan.scope, name) for name in plan.graph.output_names])

    def _in_ir(self, frame: OnnxFrame, ir: IrFrame | None, name: str) -> Any:
        """The array that the IR has for a tensor; None if it has none."""
        for holder, value in ir.find((frame.plan.scope, name)) if ir is not None and name else ():
            try:
                return holder.get(value)
            except IrRunError:
                continue
        return None

    def _tried(self, spot: Spot, action: Any) -> Any:
        """Run `action` of the IR for a node with bodies; an error of the runtime is a difference of this node."""
        try:
            return action()
        except IrRunError as error:
            raise self.findings.failed(error, spot, "") from error

    def _other_count(self, spot: Spot, loop: OnnxLoop | OnnxMap, goes: bool, node: Node) -> None:
        frame, place = spot.frame, spot.place
        if self.findings.is_forced and loops_for(self.ir, frame.plan.origin(place)) > 1:
            return  # each has a part of the iterations: together they are one piece
        now = Spot(frame, place, (*spot.at, (frame.plan.graph.path_of(frame.plan.nodes[place]), loop.count)))
        ends, continues = ("OpenVINO", "ONNX Runtime") if goes else ("ONNX Runtime", "OpenVINO")
        text = f"{ends} ends the loop after {loop.count} iterations, {continues} continues"
        self.findings.found(now, "", COUNT, text, (node, 0))

    # -- comparing

    def _compare_body_inputs(self, spot: Spot, inner: OnnxFrame, ir: IrFrame | None) -> None:
        for name in inner.plan.graph.input_names:
            if name in inner.values and self.findings.agrees(spot, name, inner, ir, BODY_INPUT):
                inner.agreed.add(name)
                self._begin_at(inner, ir, name)

    def _compare_outputs(self, frame: OnnxFrame, ir: IrFrame | None, places: range, at: Iterations) -> None:
        names = [(place, name) for place in places for name in frame.plan.nodes[place].output if name]
        computed: dict[Value, Any] = {}
        if ir is not None:
            computed = self._compute_together(frame, ir, [name for _, name in names], at)
        for place, name in names:
            spot = Spot(frame, place, at)
            if name in frame.values and self.findings.agrees(spot, name, frame, ir, OUTPUT, computed):
                frame.agreed.add(name)

    def _begin_at(self, frame: OnnxFrame, ir: IrFrame | None, name: str) -> None:
        """Give the values of the IR that contain a tensor the numbers of ONNX Runtime, for the pieces after it."""
        if not self.findings.is_forced or ir is None:
            return
        for holder, value in ir.find((frame.plan.scope, name)):
            holder.force({value: frame.values[name]})
            frame.cut.add(name)

    def _compute_together(
        self, frame: OnnxFrame, ir: IrFrame, names: Sequence[str], at: Iterations
    ) -> dict[Value, Any]:
        """Compute the tensors of a part at once. If that fails, each is computed alone, where the error counts.

        Returns the results of pieces, where the next ones begin with those of ONNX Runtime.
        """
        wanted: dict[IrFrame, dict[Value, str]] = {}
        when = "".join(f", iteration {number} of {path}" for path, number in at)
        report_stage(f"computing {Origin(frame.plan.scope, output=names[0]).path if names else ''}{when}")
        for name in names:
            for holder, value in ir.find((frame.plan.scope, name)):
                wanted.setdefault(holder, {})[value] = name
        computed: dict[Value, Any] = {}
        for holder, values in wanted.items():
            if self.findings.is_forced:
                computed.update(self._apart(frame, holder, values))
                continue
            with suppress(IrRunError):
                holder.need(list(values))
        return computed

    def _apart(self, frame: OnnxFrame, holder: IrFrame, values: Mapping[Value, str]) -> dict[Value, Any]:
        """Compute values, each from those of ONNX Runtime before it; with an error, each is computed alone."""
        varying = {value: name for value, name in values.items() if not isinstance(value.node, Constant)}
        given = {value: frame.values.get(name) for value, name in varying.items()}
        try:
            computed = holder.need_apart(given)
        except IrRunError:
            computed = {}
            for value, array in given.items():
                with suppress(IrRunError):
                    computed.update(holder.need_apart({value: array}))
        frame.cut.update(values[value] for value in computed)
        return computed

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
            spot, value = Spot(frame, makers.get(name, -1)), result.value
            actual = self._tried(spot, partial(ir.get, value))
            self.findings.compare(spot, (plan.scope, name), expected, actual, (ir, value), MODEL_OUTPUT)


def _define(frame: OnnxFrame, place: int, outputs: Sequence[Any]) -> None:
    """Give the outputs of a node their values."""
    names = frame.plan.nodes[place].output
    frame.values.update({name: value for name, value in zip(names, outputs, strict=False) if name})
