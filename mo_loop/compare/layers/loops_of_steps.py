"""A loop of the IR with several steps in each iteration, compared with as many iterations of the loop of ONNX.

    steps = LoopOfSteps.of(onnx_loop, ir_loop)              # None if the states of both cannot be matched
    while steps.goes_on():
        steps.advance(run)                                  # `run` computes one iteration of ONNX
        for place, expected, actual, again in steps.states(run):
            ...
        steps.begin_at_states()                             # the next iteration of the IR begins with those of ONNX
    steps.rest(run)                                         # the steps that the IR has after the loop

The tensors inside have no counterparts, so an iteration of the IR is one piece. Its tolerance is found by computing its
steps once more from states that are changed by a few units in the last place: what amplifies rounding in each step
amplifies larger changes beyond any use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mo_loop.compare.layers.ir_loops import IrLoop
from mo_loop.compare.layers.onnx_loops import OnnxLoop
from mo_loop.compare.layers.onnx_side import OnnxFrame
from mo_loop.compare.layers.piece_tolerance import Source, changed, unit_of
from mo_loop.ops.port_map import Merged

UNITS = 4
"""The change of states, in units in the last place of their types."""

Run = Callable[[OnnxFrame], None]
Again = Callable[[Source], Any]


class LoopOfSteps:
    """One run. `entries` are the states of the IR by their place among those of ONNX."""

    def __init__(self, loop: OnnxLoop, other: IrLoop, entries: dict[int, Merged]) -> None:
        self._loop, self._other, self._entries = loop, other, entries
        self._begin: tuple[list[Any], int] = (list(loop.states), loop.count)

    @classmethod
    def of(cls, loop: OnnxLoop, other: IrLoop) -> LoopOfSteps | None:
        """Both loops; None if a state of ONNX that is a tensor of numbers has no state of its name in the IR."""
        merged = {entry.parameter.name: entry for entry in other.node.input_map if isinstance(entry, Merged)}
        entries = {}
        for place, (name, state) in enumerate(zip(loop.state_names, loop.states, strict=False)):
            if name in merged:
                entries[place] = merged[name]
            elif not isinstance(state, np.ndarray) or unit_of(state.dtype):
                return None
        return cls(loop, other, entries) if entries else None

    def goes_on(self) -> bool:
        """Whether both have another iteration."""
        return self._loop.goes_on() and self._other.goes_on()

    def advance(self, run: Run) -> None:
        """One iteration of the IR, and its steps in ONNX."""
        inner = self._other.begin()
        self._begin = list(self._loop.states), self._loop.count
        for _ in range(self._other.node.steps):
            if self._loop.goes_on():
                _step(self._loop, run)
        self._other.end(inner)

    def states(self, run: Run) -> Iterator[tuple[int, Any, Any, Again]]:
        """The place, the value of ONNX, that of the IR, and the computation of the value from changed states."""
        node = self._other.node
        is_whole = self._loop.count - self._begin[1] == node.steps
        kept = {entry.result for entry in node.output_map}
        for place, entry in self._entries.items():
            if not is_whole and entry.result not in kept:
                continue  # nothing reads its last value, so the IR computes steps after the last one
            expected, actual = self._loop.states[place], np.asarray(self._other.state(entry))
            if actual.shape != np.shape(expected) and actual.size == np.size(expected):
                actual = actual.reshape(np.shape(expected))
            yield place, expected, actual, self._again(place, run)

    def begin_at_states(self) -> None:
        """Let the next iteration of the IR begin with the states of ONNX."""
        for place, entry in self._entries.items():
            self._other.set_state(entry, self._loop.states[place])

    def rest(self, run: Run) -> None:
        """The iterations of ONNX that are not in the loop of the IR: it has their steps after the loop."""
        self._begin = list(self._loop.states), self._loop.count
        while self._loop.goes_on():
            _step(self._loop, run)

    def again(self, run: Run) -> dict[str, Again]:
        """The computations of the final states, by the outputs of the node."""
        return {name: self._again(place, run) for place, name in enumerate(self._loop.node.output)
                if name and place < len(self._loop.states)}  # fmt: skip

    def _again(self, place: int, run: Run) -> Again:
        states, count = self._begin
        steps = self._loop.count - count

        def computed(random: Source) -> Any:
            loop = self._loop.resumed([_changed(each, random) for each in states], count)
            for _ in range(steps):
                _step(loop, run)
            return loop.states[place]

        return computed


def _step(loop: OnnxLoop, run: Run) -> None:
    frame = loop.begin()
    run(frame)
    loop.end(frame)


def _changed(value: Any, random: Source) -> Any:
    return changed(value, random, UNITS * unit_of(value.dtype)) if isinstance(value, np.ndarray) else value
