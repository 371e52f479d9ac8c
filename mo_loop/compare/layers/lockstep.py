"""Runs an ONNX model and its IR side by side, node by node of the ONNX model, and compares the values that both sides
have.

A graph of the model runs in parts of a few nodes (onnx_side.py); after each, the values of the IR that contain its
tensors are computed (ir_side.py) and compared. The IR computes each of them from the values of ONNX Runtime for the
tensors before it, so that a piece lies between tensors that both sides have, and no difference grows. A Loop, Scan or
If that has a counterpart is driven on both sides, iteration by iteration; one without a counterpart (unrolled, fused
with its neighbours) is a piece. Values that nothing reads any more are dropped where memory is short.

The first difference ends the comparison (findings.py). With a Heat it continues, and each side keeps its own values; a
branch that only one side takes and iterations that only one side runs are then not compared, and a layer that OpenVINO
does not run ends it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from mo_loop.compare.layers.findings import Different, Findings, PieceFindings, Spot
from mo_loop.compare.layers.ir_side import IrFrame, IrRunError, controls_for, counterpart
from mo_loop.compare.layers.loop_runs import IrLoop, OnnxLoop
from mo_loop.compare.layers.onnx_side import OnnxError, OnnxFrame, OnnxPlan
from mo_loop.compare.layers.rounding import Source, changed, is_close, unit_of
from mo_loop.compare.layers.tensor_differences import BODY_INPUT, BRANCH, COUNT, MODEL_OUTPUT, OUTPUT
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import main_graph
from mo_loop.graph import Value
from mo_loop.ops.base import Constant
from mo_loop.ops.control import If, Iteration
from mo_loop.support.workers import report_stage

UNITS = 4
"""The change of the states before several steps of a loop, in units in the last place of their types: what amplifies
rounding in each step amplifies larger changes beyond any use."""


class Lockstep:
    """One comparison. With `samples`, some iterations of a loop are enough where its outputs agree."""

    def __init__(
        self, model: OnnxModel, findings: Findings, *, memory: int, one_by_one: bool = False, samples: bool = False
    ) -> None:
        self.model = model
        self.samples = samples and findings.is_forced and not one_by_one
        self.findings = findings
        self.ir = findings.ir
        self.memory = memory
        self.one_by_one = one_by_one
        self._frames: list[OnnxFrame] = []
        findings.run = self._advance

    def run(self, feeds: Mapping[str, Any], ir_feeds: Mapping[Value, Any]) -> PieceFindings:
        """All that is found up to the first difference."""
        plan = OnnxPlan(main_graph(self.model), self.model, frozenset(feeds))
        ir = IrFrame(self.findings.side, self.ir, ir_feeds)
        # The conversion made constants of some inputs.
        index, given = self.findings.side.index(self.ir), feeds.keys() | plan.constants.keys()
        found = {name: index.get(((), name), ()) for name in plan.graph.input_names if name not in given}
        frozen = {name: each.node.array for name in found for each in found[name] if isinstance(each.node, Constant)}
        frame = OnnxFrame(plan, {**frozen, **feeds}, ir=ir)
        frame.agreed.update(frame.values)
        frame.cut.update(frame.values)
        try:
            self._nodes(frame)
            self._model_outputs(frame, ir)
        except Different as ended:
            return self.findings.result(ended.difference)
        return self.findings.result(None)

    # -- one graph

    def _nodes(self, frame: OnnxFrame) -> None:
        """Run all nodes of a graph on both sides."""
        plan, place = frame.plan, 0
        self._frames.append(frame)
        while place < len(plan.nodes):
            end = place + 1
            if plan.is_driven(place):
                (self._if if plan.nodes[place].op_type == "If" else self._loop)(frame, place)
            elif plan.function(place) is not None:
                self._call(frame, place)
            else:
                # Both sides hold each of the next tensors, and the runtime copies it.
                budget = max(self.memory - self._alive(), self.memory // 8) // 6
                end = frame.compute(place, -1 if self.one_by_one else budget)
            names = [(each, name) for each in range(place, end) for name in plan.nodes[each].output if name]
            computed = self._compute_together(frame, [name for _, name in names])
            for each, name in names:
                if name in frame.values:
                    self.findings.agrees(Spot(frame, each, name, OUTPUT), computed)
            self._release(frame, end)
            place = end
        self._frames.pop()

    def _release(self, frame: OnnxFrame, end: int) -> None:
        """Forget what no node reads any more. A piece is computed once more for its tolerance: while there is memory,
        the values that it begins with are kept."""
        if self.findings.is_forced and self._alive() < self.memory // 2:
            return
        frame.release(end)
        if frame.ir is not None:
            frame.ir.release()

    def _alive(self) -> int:
        return sum(each.size + (0 if each.ir is None else each.ir.size) for each in self._frames)

    def _call(self, frame: OnnxFrame, place: int) -> None:
        plan = frame.plan.bodies(place)["function"]
        outer = dict(zip(plan.graph.input_names, frame.plan.nodes[place].input, strict=False))
        outer = {name: given for name, given in outer.items() if given}
        values = {name: frame.get(given) for name, given in outer.items()}
        inner = OnnxFrame(plan, values, at=frame.at, ir=frame.ir)
        inner.recorded = frame.recorded
        inner.agreed.update(name for name, given in outer.items() if frame.has_agreed(given))
        inner.sources = {name: (frame, given) for name, given in outer.items()}
        self._nodes(inner)
        frame.define(place, [inner.get(name) for name in plan.graph.output_names])

    # -- control flow

    def _if(self, frame: OnnxFrame, place: int) -> None:
        node, spot, ir = frame.plan.nodes[place], Spot(frame, place), frame.ir
        attribute = "then_branch" if np.asarray(frame.get(node.input[0])).reshape(-1)[0] else "else_branch"
        found = counterpart(frame.ir, frame.plan.origin(place), lambda each: isinstance(each, If))
        if found is not None:
            holder, layer = found
            ir = self._tried(spot, lambda: holder.enter(layer))
            taken = "then_branch" if ir.graph is layer.then_body else "else_branch"
            if taken != attribute:
                text = f"ONNX Runtime takes {attribute}, OpenVINO {taken}"
                self.findings.found(Spot(frame, place, value=layer.outputs[0]), BRANCH, text)
                ir = None
        plan = frame.plan.bodies(place)[attribute]
        inner = OnnxFrame(plan, {}, frame, ir=ir)
        self._nodes(inner)
        frame.define(place, [inner.get(name) for name in plan.graph.output_names])

    def _loop(self, frame: OnnxFrame, place: int) -> None:
        loop, spot, origin = OnnxLoop(frame, place), Spot(frame, place), frame.plan.origin(place)
        found = counterpart(frame.ir, origin, lambda each: isinstance(each, Iteration) and each.steps == 1)
        if found is None and self._of_steps(loop):
            return
        other: IrLoop | None = None
        if found is not None and loop.goes_on():
            holder, layer = found
            other = self._tried(spot, lambda: IrLoop(holder, layer))
            holder.driven.add(layer)
        states = None if other is None or not self._ends_agree(loop) else self._states(loop, other)
        if other is not None and states is not None:
            self._some_iterations(loop, other, states)
            other = None  # its outputs are those of the whole loop
        while True:
            if other is not None and other.goes_on() != loop.goes_on():
                self._other_count(loop, other)
                other = None
            if not loop.goes_on():
                break
            self._iteration(loop, other)
        if other is not None:
            self._tried(spot, other.finish)
        frame.define(place, loop.outputs())

    def _iteration(self, loop: OnnxLoop, other: IrLoop | None) -> None:
        """The next iteration of both sides, or of ONNX alone."""
        now = Spot(loop.frame, loop.place, at=loop.at)
        inner = loop.begin()
        inner.sources = loop.sources()
        inner.ir = None if other is None else self._tried(now, other.begin)
        if self.findings.heat is not None and other is not None:
            outputs = [(loop.plan.scope, name) for name in loop.plan.graph.output_names]
            inner.recorded = self.findings.heat.iteration(other.node, loop.count, outputs)
        self._compare_body_inputs(loop.frame, loop.place, inner)
        self._nodes(inner)
        loop.end(inner)
        if inner.cut.issuperset(inner.plan.graph.output_names):
            inner.sources = {}  # nothing begins before this iteration
        if other is not None and inner.ir is not None:
            self._tried(now, partial(other.end, inner.ir))

    # -- loops of which some iterations are compared

    def _ends_agree(self, loop: OnnxLoop) -> bool:
        """Whether some iterations of a loop are enough: both sides have equal outputs where they run all of it at once,
        so that no iteration has a fault that its outputs show."""
        if not self.samples:
            return False
        with suppress(OnnxError, IrRunError):
            values = loop.frame.run(loop.place)
            pairs = [(values[name], *pair) for name in values for pair in loop.frame.counterparts(name)]
            return bool(pairs) and all(is_close(each, holder.get(value)) for each, holder, value in pairs)
        return False

    def _states(self, loop: OnnxLoop, other: IrLoop) -> dict[Value, str] | None:
        """The input of the body of ONNX that each state of the IR is; None if one is not, or several loops of the IR
        have a part of the iterations each."""
        known, scope = loop.inputs(), loop.plan.scope
        found = {
            value: each.output for value in other.states for each in value.origins
            if each.scope == scope and isinstance(known.get(each.output), np.ndarray)
        }
        loops = self._loops_of(loop)
        return found if len(loops) == 1 and found.keys() == other.states.keys() else None

    def _loops_of(self, loop: OnnxLoop) -> list[Any]:
        """The loops of the IR for one of the model."""
        controls = controls_for(self.ir, loop.frame.plan.origin(loop.place))
        return [each for each in controls if isinstance(each, Iteration)]

    def _some_iterations(self, loop: OnnxLoop, other: IrLoop, states: Mapping[Value, str]) -> None:
        """Compare the iterations 0, 1, 2, 4, 8 and so on, and the last one; ONNX runs those between alone."""
        last = loop
        while loop.goes_on():
            last = loop.resumed(loop.states)
            if loop.is_sampled():
                self._sampled(loop, other, states)
            else:
                self._step(loop)
        if not last.is_sampled():  # the condition ended the loop
            self._sampled(last, other, states)

    def _sampled(self, loop: OnnxLoop, other: IrLoop, states: Mapping[Value, str]) -> None:
        inputs = loop.inputs()
        other.resume(loop.count, {value: inputs[name] for value, name in states.items()})
        self._iteration(loop, other)
        if other.goes_on() != loop.goes_on():
            self._other_count(loop, other)

    def _tried(self, spot: Spot, action: Any) -> Any:
        """Run `action` of the IR for a node with bodies; an error of the runtime is a difference of this node."""
        try:
            return action()
        except IrRunError as error:
            raise self.findings.failed(error, spot) from error

    def _other_count(self, loop: OnnxLoop, other: IrLoop) -> None:
        frame, place = loop.frame, loop.place
        if self.findings.is_forced and len(self._loops_of(loop)) > 1:
            return  # each has a part of the iterations: together they are one piece
        ends, continues = ("OpenVINO", "ONNX Runtime") if loop.goes_on() else ("ONNX Runtime", "OpenVINO")
        text = f"{ends} ends the loop after {loop.count} iterations, {continues} continues"
        self.findings.found(Spot(frame, place, at=loop.at, value=other.node.outputs[0]), COUNT, text)

    # -- loops with several steps in each iteration of the IR

    def _of_steps(self, loop: OnnxLoop) -> bool:
        """Compare a loop that has several steps in each iteration of the IR; False if there is none, or the states of
        both cannot be matched.

        The tensors inside have no counterparts, so an iteration of the IR is one piece, whose results are its states.
        """
        frame, place = loop.frame, loop.place
        if not self.findings.is_forced or not loop.goes_on():
            return False
        origin = frame.plan.origin(place)
        found = counterpart(frame.ir, origin, lambda each: isinstance(each, Iteration) and each.steps > 1)
        if found is None:
            return False
        holder, layer = found
        try:
            other = IrLoop(holder, layer)
        except IrRunError:
            return False
        outputs = dict(zip(loop.states, loop.node.output, strict=False))
        entries = {entry.parameter.name: entry for entry in layer.back_edges if entry.parameter.name in outputs}
        others = [state for name, state in loop.states.items() if name not in entries]
        if not entries or any(not isinstance(each, np.ndarray) or unit_of(each.dtype) for each in others):
            return False
        holder.driven.add(layer)
        kept, some = {entry.result for entry in layer.output_map}, self._ends_agree(loop)
        while loop.goes_on() and other.goes_on():
            now, before = Spot(frame, place, at=loop.at), loop.resumed(loop.states)
            inner = None if some and not other.is_sampled() else self._tried(now, other.begin)
            self._advance(loop, layer.steps)
            if inner is None:
                other.count += 1
            else:
                self._tried(now, partial(other.end, inner))
            is_whole = loop.count - before.count == layer.steps
            for name, entry in entries.items() if inner is not None else ():
                # If nothing reads the last value of a state, the IR computes steps after the last one.
                if is_whole or entry.result in kept:
                    expected, actual = loop.states[name], np.asarray(other.states[entry.parameter.output])
                    if actual.size == np.size(expected):
                        actual = actual.reshape(np.shape(expected))
                    state = OnnxFrame(frame.plan, {outputs[name]: expected}, frame, at=now.at)
                    state.again[outputs[name]] = partial(self._again, loop, before, name)
                    spot = Spot(frame, place, outputs[name], inner=state, ir=holder, value=layer.outputs[0])
                    self.findings.compare(spot, expected, actual)
            other.resume(other.count, {entry.parameter.output: loop.states[name] for name, entry in entries.items()})
        if not some and not other.goes_on():  # else the IR continues, which its outputs show
            self._tried(Spot(frame, place), other.finish)
        before = loop.resumed(loop.states)
        self._advance(loop)  # the IR has these steps after the loop
        frame.define(place, loop.outputs())
        frame.again |= {output: partial(self._again, loop, before, name) for name, output in outputs.items() if output}
        return True

    def _advance(self, loop: OnnxLoop, steps: int | None = None) -> None:
        """Run iterations of a loop of ONNX alone, at most as many as `steps`."""
        last = None if steps is None else loop.count + steps
        while loop.goes_on() and loop.count != last:
            self._step(loop)

    def _step(self, loop: OnnxLoop) -> None:
        inner = loop.begin()
        self._nodes(inner)
        loop.end(inner)

    def _again(self, loop: OnnxLoop, before: OnnxLoop, state: str, random: Source) -> Any:
        """A state after the steps of a loop since `before`, from states that are changed."""
        states = {
            name: changed(value, random, UNITS * unit_of(value.dtype)) if isinstance(value, np.ndarray) else value
            for name, value in before.states.items()
        }
        once_more = before.resumed(states)
        while once_more.count < loop.count:
            self._step(once_more)
        return once_more.states[state]

    # -- comparing

    def _compare_body_inputs(self, frame: OnnxFrame, place: int, inner: OnnxFrame) -> None:
        for name in inner.plan.graph.input_names:
            spot = Spot(frame, place, name, BODY_INPUT, inner)
            if name not in inner.values or not self.findings.agrees(spot):
                continue
            for holder, value in inner.counterparts(name) if self.findings.is_forced else ():
                holder.force({value: inner.values[name]})
                inner.cut.add(name)

    def _compute_together(self, frame: OnnxFrame, names: Sequence[str]) -> dict[Value, Any]:
        """Compute the tensors of a part at once; those that fail are left out, and are computed where this counts."""
        if frame.ir is None:
            return {}
        when = "".join(f", iteration {number} of {path}" for path, number in frame.at)
        first = Spot(frame, -1, names[0]).path if names else ""
        report_stage(f"computing {first}{when}")
        wanted: dict[IrFrame, dict[Value, str]] = {}
        for name in names:
            for holder, value in frame.counterparts(name):
                wanted.setdefault(holder, {})[value] = name
        computed: dict[Value, Any] = {}
        is_forced = self.findings.is_forced  # then nodes that read the values get the numbers of ONNX Runtime
        for holder, values in wanted.items():
            given = {value: frame.values.get(name) if is_forced else None for value, name in values.items()
                     if not isinstance(value.node, Constant)}
            for part in (given, *({value: array} for value, array in given.items())):
                with suppress(IrRunError):
                    computed |= holder.need_apart(part)
                    if part is given:
                        break
            if is_forced:
                frame.cut.update(name for value, name in values.items() if value in computed)
        return computed

    def _model_outputs(self, frame: OnnxFrame, ir: IrFrame) -> None:
        """The outputs of the model, which may be connected to other values than those that were compared."""
        results = {name: result for result in self.ir.results for name in (*result.output_names, *result.value.names)}
        for name in frame.plan.graph.output_names:
            expected = frame.values.get(name)
            if name not in results or expected is None or isinstance(expected, list):
                continue
            place, value = frame.plan.makers.get(name, -1), results[name].value
            actual = self._tried(Spot(frame, place), partial(ir.get, value))
            self.findings.compare(Spot(frame, place, name, MODEL_OUTPUT, ir=ir, value=value), expected, actual)
