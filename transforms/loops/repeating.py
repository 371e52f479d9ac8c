"""Loops with several steps of a body in one iteration.

for i in range(q k + r): s = f(s, X[i])
->  for i in range(q): s = f(f(s, X[k i]), X[k i + 1])              `repeat`: k = 2, and r copies of f after it
->  for i in range(ceil(n / k)):                                    `repeat_while_active`: n is known at run time
        s = f(s, X[k i])
        s = Select(k i + 1 < n, f(s, X[min(k i + 1, n - 1)]), s)    without Select if the final s is not read

copies = BodyCopies(loop, graph, {x: whole})       # invariant Parameters of the body, and their values in `graph`
first = copies.add({s: start, piece: x0})          # a copy; returns the values of the Results, by Result
second = copies.add({s: first[next_s], piece: x1})
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mo_loop.graph.dimension import low
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import boolean, i32, i64
from mo_loop.ops.control import Iteration, Loop, TensorIterator
from mo_loop.ops.movement import FAR
from mo_loop.ops.port_map import Concatenated, Final, Invariant, Merged, Sliced
from mo_loop.transforms.loops.pieces import (
    as_number,
    as_steps,
    in_order,
    is_widened,
    keep_slice_axes,
    last_piece,
    last_pieces,
    may_run_once,
    number_of_steps,
    one_piece,
    part_of,
    put_in_place,
)
from mo_loop.transforms.port_maps import add_input, drop_unused_ports
from mo_loop.transforms.vocabulary import Constant, F, Graph, Node, Parameter, Result, Value, ops

Results = dict[Node, Value]
"""The values of the Results of a body, by Result."""


class BodyCopies:
    """Copies the nodes of a body into a graph, constants once. A name means one tensor, so the copies have none."""

    def __init__(self, node: Iteration, graph: Graph, fixed: Mapping[Node, Value]) -> None:
        self._body, self._graph, self._fixed = node.body, graph, fixed
        inner = [each for each in self._body.ordered() if not isinstance(each, Parameter | Result)]
        self._constants: dict[Value, Value] = {}
        graph.adopt(self._body, dict.fromkeys(each for each in inner if isinstance(each, Constant)), self._constants)
        self._nodes = dict.fromkeys(each for each in inner if not isinstance(each, Constant))

    def add(self, bindings: Mapping[Node, Value]) -> Results:
        """One more copy; `bindings` are the values of the Parameters that are not the same in every copy."""
        bound = {**self._fixed, **bindings}
        values = self._constants | {parameter.output: value for parameter, value in bound.items()}
        self._graph.adopt(self._body, self._nodes, values)
        for each in self._nodes:
            for output in each.outputs:
                values[output].names = values[output].origins = ()
        for parameter in bound:
            for reader in [use.node for use in parameter.output.uses if use.node in self._nodes]:
                self._graph.touch(values[reader.outputs[0]].node)
        return {result: values[result.value] for result in self._body.results}


Values = dict[Any, Value]
"""Values by Parameter of the former body."""


class _Steps:
    """The body of `count` steps of `node`, under construction."""

    def __init__(self, node: Iteration, count: int) -> None:
        self.node, self.count = node, count
        self.graph = Graph(node.body.name)
        self.graph.rt_info = dict(node.body.rt_info)
        self.index: Parameter | None = None
        self.ports: list[tuple[Invariant | Merged | Sliced, Value]] = []
        self.fixed: Values = {}
        self.states: Values = {}
        self.apart: list[Values] = [{} for _ in range(count)]
        self.rounds: list[Results] = []

    def parameter(self, like: Parameter, type_: Any) -> Parameter:
        return Parameter(graph=self.graph, type=type_, name=like.name)

    def carry(self, entry: Invariant | Merged, value: Value) -> None:
        """An input that enters as it did before."""
        made = self.parameter(entry.parameter, entry.parameter.output.type)
        self.ports.append((replace(entry, parameter=made), value))
        known = self.fixed if isinstance(entry, Invariant) else self.states
        known[entry.parameter] = made.output

    def places(self) -> Value:
        """The numbers of the steps, a vector."""
        self.index = Parameter(graph=self.graph, dtype=i64, shape=())
        return (self.index * self.count) + np.arange(self.count)

    def give(self, parameter: Parameter, pieces: Sequence[Value]) -> None:
        """Set the value of a Parameter in each step."""
        for known, piece in zip(self.apart, pieces, strict=True):
            known[parameter] = piece

    def give_numbers(self, places: Value) -> None:
        """The steps read their numbers from a vector."""
        iteration = self.node.iteration if isinstance(self.node, Loop) else None
        if iteration is not None:
            self.give(iteration, [as_number(each, iteration.output) for each in _split(places, 0, self.count)])

    def maps(self, last: Mapping[Any, Value]) -> dict[str, Any]:
        """The body with both port maps; the former Results have the values `last`."""
        made: dict[Any, Result] = {}

        def result(entry: Merged | Final) -> Result:
            if entry.result not in made:
                made[entry.result] = Result(last[entry.result])
            return made[entry.result]

        inputs = [replace(each, result=result(each)) if isinstance(each, Merged) else each for each, _ in self.ports]
        outputs = [
            self._one_piece(entry) if isinstance(entry, Concatenated) else replace(entry, result=result(entry))
            for entry in self.node.output_map
        ]
        return {"body": self.graph, "input_map": tuple(inputs), "output_map": tuple(outputs)}

    def _one_piece(self, entry: Concatenated) -> Concatenated:
        pieces = in_order([each[entry.result] for each in self.rounds], entry)
        if is_widened(entry):
            return replace(entry, result=Result(F.Concat(*pieces, axis=entry.axis + 1)))
        return one_piece(F.Concat(*pieces, axis=entry.axis), entry)

    def outputs(self, loop: Iteration) -> list[Value]:
        """The outputs of the new loop as the former one had them."""
        values = list(loop.outputs)
        for place, entry in enumerate(self.node.output_map):
            if isinstance(entry, Concatenated) and self.node.outputs[place].is_used:
                values[place] = as_steps(values[place], entry, self.count, moved=not is_widened(entry))
        return values

    @property
    def inputs(self) -> list[Value]:
        return [value for _, value in self.ports]


def repeat(node: Iteration, steps: int, count: int) -> None:
    """Replace a loop of `count` iterations by one with `steps` steps in each; the last ones follow it."""
    new, rest = _Steps(node, steps), count % steps
    for entry, value in node.fed:
        if not isinstance(entry, Sliced):
            new.carry(entry, value)
            continue
        piece = entry.parameter.output.type
        block = new.parameter(entry.parameter, piece.with_size(entry.axis, steps))
        new.give(entry.parameter, in_order(_split(block.output, entry.axis, steps), entry))
        whole = part_of(value, entry, 0, count - rest, count)
        new.ports.append((replace(entry, parameter=block, stride=steps * entry.stride, part_size=steps), whole))
    if isinstance(node, Loop) and node.iteration is not None:
        new.give_numbers(new.places())
    states, copies = new.states, BodyCopies(node, new.graph, new.fixed)
    for known in new.apart:
        new.rounds.append(copies.add({**states, **known}))
        states = {entry.parameter: new.rounds[-1][entry.result] for entry in node.back_edges}
    made = new.maps(new.rounds[-1])
    keep_slice_axes(new.graph, new.graph.ordered())
    begun = [Final(each.result) for each in made["input_map"] if isinstance(each, Merged) and rest]
    made["output_map"] += tuple(each for each in dict.fromkeys(begun) if each not in made["output_map"])
    loop: Iteration
    if isinstance(node, Loop):
        condition = Result(F.Constant(True, graph=new.graph, dtype=boolean))
        trip = Constant(count // steps, graph=node.graph, dtype=i64)
        loop = Loop(trip, node.inputs[1], *new.inputs, name=node.name, iteration=new.index, condition=condition, **made)
    else:
        loop = TensorIterator(*new.inputs, name=node.name, **made)
    loop.steps = steps
    outputs = new.outputs(loop)
    if not rest:
        put_in_place(node, loop, outputs)
        return
    made_states = dict(zip(made["output_map"], loop.outputs, strict=True))
    merged = [entry.parameter for entry, _ in node.fed if isinstance(entry, Merged)]
    states = {parameter: made_states[final] for parameter, final in zip(merged, begun, strict=True)}
    rounds = _last_steps(node, states, count - rest, count)
    values = []
    for entry, output in zip(node.output_map, outputs, strict=False):
        pieces = [each[entry.result] for each in rounds]
        if isinstance(entry, Concatenated):
            pieces = [F.Concat(*in_order([output, *pieces], entry), axis=entry.axis)]
        values.append(pieces[-1])
    put_in_place(node, loop, values)


def _last_steps(node: Iteration, states: Values, start: int, count: int) -> list[Results]:
    """Copies of the body outside the loop, for the steps from `start` on."""
    rounds: list[Results] = []
    copies = BodyCopies(node, node.graph, {entry.parameter: x for entry, x in node.fed if isinstance(entry, Invariant)})
    for step in range(start, count):
        known: Values = {
            entry.parameter: part_of(value, entry, step, step + 1, count)
            for entry, value in node.fed if isinstance(entry, Sliced)
        }
        if isinstance(node, Loop) and node.iteration is not None:
            known[node.iteration] = as_number(F.Constant(step, graph=node.graph, dtype=i64), node.iteration.output)
        rounds.append(copies.add({**states, **known}))
        states = {entry.parameter: rounds[-1][entry.result] for entry in node.back_edges}
    return rounds


def repeat_while_active(node: Iteration, steps: int, *, has_limit: bool) -> None:
    """Replace a loop by one of `steps` steps in each iteration, which change no state after the last step.

    `steps` is a power of two. Without `has_limit` only the condition ends the loop.
    """
    new = _Steps(node, steps)
    at = places = new.places()
    active: list[Value] = []
    trip = number_of_steps(node) if has_limit else None
    if trip is not None:
        limit = Parameter(graph=new.graph, dtype=i64, shape=())
        last = limit - 1
        at = F.Minimum(places, last)
        # The runtime compares integers as floats, which have the sign of every difference. The GPU device subtracts in
        # floats too, which have -2^31 as an integer of 32 bits, but not 2^31 - 1.
        active = _split(F.Less(places - limit, 0), 0, steps)
    for entry, value in node.fed:
        if not isinstance(entry, Sliced):
            new.carry(entry, value)
            continue
        whole = new.parameter(entry.parameter, value.type.without_known())
        where = at if entry.stride > 0 else last - at
        new.give(entry.parameter, _split(F.Gather(whole, where, entry.axis), entry.axis, steps))
        new.ports.append((Invariant(whole), value))
    if trip is not None:
        new.ports.append((Invariant(limit), trip))
    new.give_numbers(at)
    runs_once = trip is not None and low(node.count) < 1 and may_run_once(node)
    kept, goes, done = _active_steps(new, active, places, may_not_start=runs_once)
    made = new.maps(kept)
    if done is not None:
        counted = Merged(Parameter(graph=new.graph, dtype=i64, shape=()), Result(F.Squeeze(done, [0])))
        new.ports.append((counted, F.Constant(0, graph=node.graph, dtype=i64)))
        made["input_map"] += (counted,)
        made["output_map"] += (Final(counted.result),)
    always = F.Constant(True, graph=node.graph, dtype=boolean)
    count, go = node.operands[:2] if isinstance(node, Loop) else (None, always)
    if trip is not None and done is not None and goes is not None:
        # The runtime would reserve the concatenated outputs of all steps, of which there may be few.
        goes = goes & F.Less(F.Multiply(new.index, steps) - limit + steps, 0)
        go = go & F.Greater(trip, 0)
        count = F.Constant(-1, graph=node.graph, dtype=i64)
    elif trip is not None:
        count = ((F.Maximum(trip, 1) if runs_once else trip) + (steps - 1)) // steps
    condition = Result(F.Constant(True, graph=new.graph, dtype=boolean) if goes is None else goes)
    keep_slice_axes(new.graph, new.graph.ordered())
    loop = Loop(
        count, go, *new.inputs, name=node.name, iteration=new.index, condition=condition,
        starts=runs_once or low(node.count) > 0,
        none_below_zero=trip is None and isinstance(node, Loop) and node.none_below_zero, **made,
    )
    loop.steps = steps
    values = new.outputs(loop)
    others = last_pieces(node)
    for place, other in others.items():
        values[place] = last_piece(node, place, other, values[other], trip, may_not_start=runs_once)
    end = trip if done is None else values.pop()
    end = None if end is None else F.Unsqueeze(end, [0])
    for place, entry in enumerate(node.output_map):
        if isinstance(entry, Concatenated) and end is not None:
            values[place] = _cut(values[place], entry, end)
    put_in_place(node, loop, values)
    if others:
        drop_unused_ports(loop)


def reads_of_index(node: Iteration) -> list[ops.Gather]:
    """X[i], where i is the iteration number, of tensors X from outside."""
    iteration = node.iteration if isinstance(node, Loop) else None
    if iteration is None:
        return []
    outer = {entry.parameter.output for entry in node.input_map if isinstance(entry, Invariant)}
    numbers = [iteration.output]
    reads = []
    for number in numbers:
        for use in number.uses:
            if isinstance(use.node, ops.Gather) and use.port == 1 and use.node.operands[0] in outer:
                reads.append(use.node)
            elif isinstance(use.node, ops.SameElements | ops.Convert) and use.node.output.dtype in (i32, i64):
                numbers.append(use.node.output)
    return [each for each in reads if not each.batch_dims and _axis(each) is not None]


def read_as_slices(node: Iteration, reads: Sequence[ops.Gather]) -> None:
    """Make slices of the ports of the reads that `reads_of_index` gives; X may have more slices than the loop has
    steps."""
    outer = {entry.parameter.output: value for entry, value in node.fed if isinstance(entry, Invariant)}
    for read in reads:
        whole, index = read.operands[:2]
        axis = normalise_axis(_axis(read) or 0, whole.type.rank)
        piece = Parameter(graph=node.body, type=whole.type.with_size(axis, 1))
        add_input(node, Sliced(piece, axis), outer[whole])
        read.output.replace_with(piece.output if index.rank else F.Squeeze(piece.output, [axis]))
    drop_unused_ports(node)


def _axis(read: ops.Gather) -> int | None:
    known = read.operands[2].type.integers
    return None if known is None else known[0]


def _active_steps(
    new: _Steps, active: Sequence[Value], places: Value, *, may_not_start: bool
) -> tuple[Results, Value | None, Value | None]:
    """All steps. Returns the values of the last active one; if the condition may end the loop, whether it continues;
    and then the number of steps so far, if there are concatenated outputs.

    The first step is active, unless it `may_not_start`: there is no other iteration without one. A state whose final
    value is not read may have any value after the last step.
    """
    node, states = new.node, new.states
    copies = BodyCopies(node, new.graph, new.fixed)
    wanted: dict[Node, None] = {each.result: None for each in node.back_edges}
    final = final_results(node)
    wanted |= dict.fromkeys(final)
    condition = node.condition if isinstance(node, Loop) and not node.continues_always else None
    is_counted = condition is not None and any(isinstance(each, Concatenated) for each in node.output_map)
    numbers = _split(places + 1, 0, new.count) if is_counted else []
    done = numbers[0] if numbers else None
    kept: Results = {}
    goes: Value | None = None
    for step, known in enumerate(new.apart):
        now = copies.add({**states, **known})
        new.rounds.append(now)
        if step == 0:
            kept = {each: now[each] for each in wanted}
            for entry in node.back_edges if may_not_start else ():
                if entry.result in final:
                    kept[entry.result] = _chosen(active[0], now[entry.result], states[entry.parameter])
        else:
            masks = [each for each in (goes, active[step] if active else None) if each is not None]
            mask = F.LogicalAnd(*masks) if len(masks) == 2 else masks[0]
            kept = {
                each: _chosen(mask, now[each], former) if each in final else now[each] for each, former in kept.items()
            }
            done = None if done is None else _chosen(mask, numbers[step], done)
        if condition is not None:
            here = now[condition]
            goes = here if goes is None else goes & here
        states = {entry.parameter: kept[entry.result] for entry in node.back_edges}
    return kept, goes, done


def final_results(node: Iteration) -> dict[Result, None]:
    """The Results whose values of the last step are read after the loop, except from another output."""
    others = last_pieces(node)
    return {
        each.result: None for place, each in enumerate(node.output_map)
        if isinstance(each, Final) and place not in others
    }


def _chosen(mask: Value, new: Value, old: Value) -> Value:
    if new is old:
        return new
    return F.Select(ops.Reshape(mask, []) if new.rank == 0 and mask.rank else mask, new, old)


def _cut(output: Value, entry: Concatenated, count: Value) -> Value:
    """A concatenated output without the pieces of steps after the last one of `count`, a vector."""
    if entry.stride < 0:
        start = F.Barrier(F.Gather(output.sizes, [entry.axis], 0) - count, hides="bounds")
        return F.Slice(output, start, [FAR], [1], [entry.axis])
    # If the end had bounds, the runtime could take the Slice for the whole; GuardZeroTrips takes one to a Barrier for
    # its own.
    return F.Slice(output, [0], F.Maximum(F.Barrier(count, hides="bounds"), 0), [1], [entry.axis])


def _split(block: Value, axis: int, count: int) -> list[Value]:
    return list(ops.Split(block, axis, num_splits=count).outputs)
