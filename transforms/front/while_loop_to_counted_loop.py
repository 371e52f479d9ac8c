"""While loops that count up to a limit, and computation that gives the same result in every iteration."""

import math
from functools import reduce

from mo_loop.graph.dimension import Dimension, least, low
from mo_loop.graph.types import boolean, i32, i64, string
from mo_loop.ops.control import Control, Iteration, Loop
from mo_loop.ops.port_map import Invariant, Merged
from mo_loop.transforms.port_maps import ENDLESS, drop_unused_inputs, iteration_number
from mo_loop.transforms.total_operations import is_total
from mo_loop.transforms.vocabulary import Constant, F, Node, Op, Parameter, Result, Use, Value, node_pass, ops


@node_pass((Loop,), bodies="last")
def WhileLoopToCountedLoop(node: Loop) -> str:
    """j = a; while j < n: ...; j = j + 1  ->  for i in range(n - a): j = i + a

    Requires that a is a known integer, n is invariant, no other condition ends the loop, and the execution condition is
    the same comparison. TensorFlow writes loops over sequences in this form and compares floats. Then n must be a
    dimension, because floats are exact integers only up to 2^24. Readers of j read the iteration number instead, so
    that later passes recognise slices.

    A condition i < n of the number of the iteration that ends gives max(n, 0) + 1 iterations, or fewer by the trip
    count.
    """
    trip, go = node.operands[:2]
    if node.continues_always:
        return "its condition is always true"
    parts = _parts(node.condition.value)
    limits = [_limit_of_iteration(node, each) for each in parts]
    counted = [_counted(node, part) for part, known in zip(parts, limits, strict=True) if known is None]
    if not counted:
        return _end_behind_limit(node, [each for each in limits if each is not None])
    if None in counted:
        return "its condition is not a conjunction of counters below invariant limits"
    (entry, start, limit), *others = [each for each in counted if each is not None]
    ends: list[tuple[Value | int, int]] = [(other_limit, other_start) for _, other_start, other_limit in others]
    ends += [(each, 0) for each in limits if each is not None]  # i + 1 < n says that i < n
    if not all(_is_same(limit, start, *each) for each in ends):
        return "its counters are not proven to reach their limits in the same iteration"
    if not _begins_below_limit(go, start, limit):
        return "its execution condition is not proven to be the same comparison"
    if not _is_endless_or(trip, _sum(limit, -start)):
        return "its trip count may end it earlier"
    for counter, first, _ in [(entry, start, limit), *others]:
        _read_iteration(node, counter, first)
    _count(node, start, limit)
    return ""


def _end_behind_limit(node: Loop, limits: list[Value | int]) -> str:
    """Continue while i < n  ->  trip count min(max(n, 0), M - 1) + 1: n + 1 may be beyond 64 bits"""
    graph, trip = node.graph, node.operands[0]
    is_endless = _is_endless_or(trip, None)
    if not is_endless and not node.none_below_zero:
        return "its trip count may mean no limit"
    node.starts = node.starts or low(node.count) > 0
    numbers = [each for each in (_sum(limit, 0) for limit in limits) if isinstance(each, int)]
    lasts = [_outside(node, each).astype(i64) for each in limits]
    if len(numbers) == len(limits):
        lasts = [F.Constant(min(*numbers, ENDLESS - 1), graph=graph, dtype=i64)]
    last = F.Maximum(reduce(F.Minimum, lasts), 0)
    last = last if last.rank == 0 else last.reshape([])
    graph.set_input(node, 0, F.Minimum(last, ENDLESS - 1 if is_endless else trip - 1) + 1)
    node.body.set_input(node.condition, 0, F.Constant(True, graph=node.body, dtype=boolean))
    return ""


def _parts(condition: Value) -> list[Value]:
    """The operands of a conjunction."""
    value = _plain(condition)
    if not isinstance(value.node, ops.LogicalAnd):
        return [value]
    return [part for each in value.node.operands for part in _parts(each)]


def _compared(condition: Value) -> tuple[Value, Value] | None:
    """The operands a and b of a < b."""
    node = _plain(condition).node
    if not isinstance(node, ops.Less | ops.Greater):
        return None
    a, b = node.operands
    return (a, b) if isinstance(node, ops.Less) else (b, a)


def _counted(node: Loop, condition: Value) -> tuple[Merged, int, Value] | None:
    """The counter j, its initial value, and the outer integer n of j + 1 < n."""
    compared = _compared(condition)
    counter = None if compared is None else _counter(node, compared[0])
    limit = None if compared is None else _limit(node, compared[1])
    if compared is None or counter is None or limit is None:
        return None
    return None if compared[0].dtype.is_float and limit.type.known is None else (*counter, limit)


def _limit_of_iteration(node: Loop, condition: Value) -> Value | int | None:
    """The outer integer n of i < n, where i is the number of the iteration that ends."""
    compared = _compared(condition)
    if compared is None or node.iteration is None or _plain(compared[0]) is not node.iteration.output:
        return None
    number = compared[1].constant
    if number is not None and number.size == 1 and number.dtype.kind == "f" and abs(number) < 2**24:
        return math.ceil(number.reshape(()))
    limit = _limit(node, compared[1])
    return None if limit is None or (compared[0].dtype.is_float and limit.type.known is None) else limit


def _is_same(limit: Value, start: int, other: Value | int, other_start: int) -> bool:
    """Whether limit - start equals other - other_start."""
    count = _sum(limit, -start)
    return (other is limit and other_start == start) or (count is not None and _sum(other, -other_start) == count)


def _plain(value: Value) -> Value:
    """The integer before conversions and reshapes that do not change it."""
    while isinstance(value.node, ops.SameElements | ops.Convert):
        source = value.node.operands[0]
        if isinstance(value.node, ops.Convert) and not (source.dtype in (i32, i64) or source.dtype is boolean):
            break
        if isinstance(value.node, ops.Convert) and not (value.dtype in (i32, i64) or value.dtype.bits >= 32):
            break
        value = source
    return value


def _counter(node: Loop, value: Value) -> tuple[Merged, int] | None:
    """The state j whose next value j + 1 is `value`, and its initial value."""
    step = _plain(value)
    if not isinstance(step.node, ops.Add) or step.dtype not in (i32, i64):
        return None
    initial = {entry.parameter.output: (entry, first) for entry, first in node.fed if isinstance(entry, Merged)}
    for port in (0, 1):
        state, one = step.node.operands[port], step.node.operands[1 - port]
        if state not in initial or one.type.integers != (1,) or state.shape not in ((), (1,)):
            continue
        entry, first = initial[state]
        known = first.type.integers
        if known is not None and len(known) == 1 and _plain(entry.result.value) is step:
            return entry, known[0]
    return None


def _limit(node: Loop, value: Value) -> Value | None:
    """The outer integer that `value` is, or a Constant of the body."""
    value = _plain(value)
    for entry, outer in node.fed:
        if isinstance(entry, Invariant) and entry.parameter.output is value:
            value = _plain(outer)
            return value if _is_number(value) else None
    return value if isinstance(value.node, Constant) and _is_number(value) else None


def _is_number(value: Value) -> bool:
    return value.dtype in (i32, i64) and value.shape in ((), (1,))


def _sum(value: Value | int, number: int) -> Dimension | None:
    if isinstance(value, int):
        return value + number
    known = value.type.known
    return None if known is None else known.reshape(-1)[0] + number


def _begins_below_limit(go: Value, start: int, limit: Value) -> bool:
    """Whether the loop begins if and only if start < limit."""
    count = _sum(limit, -start)
    if go.type.integers == (1,):
        return count is not None and least(count) >= 1
    for part in _parts(go):
        a, b = _compared(part) or (None, None)
        first = None if a is None else a.constant
        if b is None or first is None or first.size != 1 or not float(first.reshape(())).is_integer():
            return False
        if not _is_same(limit, start, _plain(b), int(first.reshape(()))):
            return False
    return True


def _is_endless_or(trip: Value, count: Dimension | None) -> bool:
    number = _sum(trip, 0)
    return number is not None and (number == count or (isinstance(number, int) and (number < 0 or number >= ENDLESS)))


def _count(node: Loop, start: int, limit: Value) -> None:
    graph, body = node.graph, node.body
    limit = _outside(node, limit)
    trip = limit if start == 0 else limit - start
    count = _sum(limit, -start)
    if count is None or least(count) < 0:  # a constant below 0 would mean no limit
        trip = F.Maximum(trip, 0)
    graph.set_input(node, 0, trip)
    graph.set_input(node, 1, F.Constant(True, graph=graph, dtype=boolean))
    body.set_input(node.condition, 0, F.Constant(True, graph=body, dtype=boolean))


def _outside(node: Loop, limit: Value | int) -> Value:
    """A limit in the graph of the loop."""
    if isinstance(limit, int):
        return F.Constant(limit, graph=node.graph, dtype=i64)
    return F.Constant(limit.node.tensor, graph=node.graph) if isinstance(limit.node, Constant) else limit


def _read_iteration(node: Loop, entry: Merged, start: int) -> None:
    """Readers of the counter, except its own increment, read the iteration number."""
    state = entry.parameter.output
    step = _plain(entry.result.value).node
    readers = [use for use in state.uses if use.node is not step]
    if not readers:
        return
    value = iteration_number(node).astype(state.dtype)
    value = value if start == 0 else value + start
    if value.shape != state.shape:
        value = F.Reshape(value, list(state.type.dims))
    for reader, port in readers:
        node.body.set_input(reader, port, value)


STAY = (ops.Parameter, ops.Result, Control, ops.Barrier, ops.Failed, ops.Opaque, ops.ReadValue)

ENLARGE = (ops.Broadcast, ops.Tile)
"""Operations that are cheap and have large results."""


@node_pass((Iteration,))
def HoistInvariants(node: Iteration) -> str:
    """body(s, v): s + f(v), where v is invariant  ->  w = f(v) before the loop; body(s, w): s + w

    Nodes that depend only on invariant inputs and constants are computed before the loop; the result becomes an
    invariant input. Inner bodies come first, so that a node can leave several loops. Random operations, control flow
    and constants stay.

    If a loop may run zero times, only nodes that cannot fail on any data are moved: element-wise operations (except
    integer division), matrix products, reductions, and changes of shape, order and type, if the shapes are proven to
    fit. Indices, and patterns or axes known only at run time, stay.

    Some nodes are not moved as the last ones before the body, because that would save nothing: Broadcast and Tile,
    arithmetic on shapes (inference uses their values in the body), and values that leave the body directly.
    """
    moved = _invariant_nodes(node)
    border = _border(moved)
    if not border:
        return "no node that could be moved out of the body is invariant"
    _move(node, moved, border)
    return ""


def _invariant_nodes(node: Iteration) -> dict[Node, bool]:
    """The nodes that could be computed before the loop, in order; True for those that read an invariant input."""
    entries = {entry.parameter for entry in node.input_map if isinstance(entry, Invariant)}
    may_not_run = low(node.count) < 1
    found: dict[Node, bool] = {}
    for each in node.body.ordered():
        if isinstance(each, Constant):
            found[each] = False
            continue
        if not isinstance(each, Op) or isinstance(each, STAY) or each.random or each.is_kept or not each.inputs:
            continue
        producers = [value.node for value in each.operands]
        if not all(producer in entries or producer in found for producer in producers):
            continue
        if not may_not_run or is_total(each):
            found[each] = any(producer in entries or found.get(producer, False) for producer in producers)
    return found


def _border(moved: dict[Node, bool]) -> dict[Value, list[Use]]:
    """The values that enter the body, with their readers there.

    Nodes that are not worth moving are removed from `moved`, unless another moved node reads them: then they are
    computed in both places, as constants are.
    """
    border: dict[Value, list[Use]] = {}
    staying: set[Node] = set()
    for node, depends in reversed(list(moved.items())):
        inside = any(use.node in moved for output in node.outputs for use in output.uses)
        left = [use for output in node.outputs for use in output.uses if use.node not in moved or use.node in staying]
        if depends and (not left or _is_worth_an_input(node, left)):
            readers = {output: [use for use in output.uses if use in left] for output in node.outputs}
            border |= {output: uses for output, uses in readers.items() if uses}
            continue
        staying.add(node)
        if not inside:
            del moved[node]
    return dict(reversed(border.items()))


def _is_worth_an_input(node: Node, readers: list[Use]) -> bool:
    if isinstance(node, ENLARGE) or any(isinstance(reader, Result) for reader, _ in readers):
        return False
    used = (output for output in node.outputs if output.is_used)
    return all(each.shape is not None and each.dtype is not string and each.known is None for each in used)


def _move(node: Iteration, moved: dict[Node, bool], border: dict[Value, list[Use]]) -> None:
    outer, body = node.graph, node.body
    values: dict[Value, Value] = {
        entry.parameter.output: value for entry, value in node.fed if isinstance(entry, Invariant)
    }
    outer.adopt(body, moved, values)
    entries = []
    for output, readers in border.items():
        parameter = Parameter(graph=body, type=output.type)
        for reader, port in readers:
            body.set_input(reader, port, parameter.output)
        entries.append(Invariant(parameter))
    node.input_map = (*node.input_map, *entries)
    outer.set_inputs(node, [*node.inputs, *(values[output] for output in border)])
    body.sweep()
    drop_unused_inputs(node)
