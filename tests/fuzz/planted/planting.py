"""Faults planted in converted graphs, for the tests of comparisons.

    fault = plant(graph, random.Random(3))          # None if the graph has no place for one
    fault.graph                                     # a copy of the graph with the fault; `graph` is unchanged
    fault.kind, fault.scope, fault.layer            # "axis", ("loop", "body"), "softmax": the names of the written IR

    for each in planted(100, seed=7):               # converted models with control flow, kinds and depths in turn
        each.model, each.feeds, each.graph, each.fault

A fault leaves the graph valid: types are inferred again, and element types and ranks of all values stay. It is put
where it usually changes the results; whether it does for certain inputs, only running shows.
"""

import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.parser import parse_model

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import MoLoopError
from mo_loop.graph import Graph, Node
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.ir.xml import layer_names, layer_order
from mo_loop.ops.base import Constant
from mo_loop.ops.control import If, Iteration
from mo_loop.ops.port_map import Concatenated, Sliced
from tests.fuzz.control_flow.generator import generate
from tests.harness import keeping_loops

WEIGHT, BACK_EDGE, AXIS, SLICE = KINDS = ("weight", "back edge", "axis", "reversed slice")

DEEPEST = 3

AXIS_INPUTS = {
    ops.Gather: 2, ops.CumSum: 1, ops.ReduceSum: 1, ops.ReduceMean: 1, ops.ReduceMax: 1, ops.ReduceMin: 1,
    ops.ReduceProd: 1, ops.ReduceL1: 1, ops.ReduceL2: 1,
}
"""Operation -> the input that holds its axis, or axes."""


@dataclass(frozen=True)
class Fault:
    """A fault in `graph`. `scope` has the name of each enclosing layer, followed by the tag of its body in the IR.

    `layer` is the name of the changed layer, of a port map that of the layer with the body. `readers` are the layers
    that read a changed constant. `change` says what was changed, `origin` is the path of the ONNX node.
    """

    graph: Graph
    kind: str
    scope: tuple[str, ...]
    layer: str
    change: str
    readers: tuple[str, ...] = ()
    origin: str = ""

    @property
    def depth(self) -> int:
        """The number of bodies that enclose the layer."""
        return len(self.scope) // 2

    @property
    def path(self) -> str:
        return "/".join((*self.scope, self.layer))


def plant(graph: Graph, rng: random.Random, kind: str = "", depth: int | None = None) -> Fault | None:
    """One fault in a copy of `graph`; `kind` and `depth` restrict the choice. The kinds and depths that the graph has
    places for are equally likely."""
    places = [place for place in _places(graph) if kind in ("", place.kind) and depth in (None, len(place.scope) // 2)]
    groups: dict[tuple[str, int], list[_Place]] = {}
    for place in places:
        groups.setdefault((place.kind, len(place.scope) // 2), []).append(place)
    order = sorted(groups)
    rng.shuffle(order)
    for key in order:
        group = groups[key]
        rng.shuffle(group)
        for place in group[:8]:
            fault = _tried(graph, place, rng.randrange(1 << 30))
            if fault is not None:
                return fault
    return None


@dataclass(frozen=True)
class Planted:
    """An ONNX model with input sets, its graph, and a fault in a copy of the graph. `declared` is the same model in a
    form that ONNX Runtime runs."""

    name: str
    model: ModelProto
    declared: ModelProto
    feeds: Sequence[Mapping[str, Any]]
    graph: Graph
    fault: Fault


def planted(count: int, seed: int) -> Iterator[Planted]:
    """`count` faults in converted models: random ones, and every other one with bodies nested to a depth of 1 to 3.

    Of the kinds and depths that a model has places for, the one with the fewest faults so far is taken.
    """
    seen: Counter[tuple[str, int]] = Counter()
    index = -1
    while seen.total() < count:
        index += 1
        rng = random.Random(f"{seed}:{index}")
        if index % 2:
            name, model, feeds = f"nested {seed}-{index}", *nested(rng, 1 + index // 2 % DEEPEST)
            declared = model
        else:
            case = generate(seed, index)
            name, model, declared, feeds = f"random {case.name}", case.model, case.declared, case.feeds
        graph = converted(model)
        if graph is None:
            continue
        keys = {(place.kind, len(place.scope) // 2) for place in _places(graph)}
        for kind, depth in sorted(keys, key=lambda key: (seen[key], key))[:2]:
            fault = plant(graph, rng, kind, depth)
            if fault is not None:
                seen[kind, depth] += 1
                yield Planted(name, model, declared, feeds, graph, fault)
                break


def converted(model: ModelProto) -> Graph | None:
    """The graph of a model with the loops that it has; None if it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return convert_model(model, config=keeping_loops()).graph
        except MoLoopError:
            return None


# -- models with nested bodies


def nested(rng: random.Random, depth: int) -> tuple[ModelProto, list[dict[str, Any]]]:
    """A model with bodies nested to `depth`, and four input sets: Loop, Scan and If in random order, each with
    weights and a Softmax, the loops with two states and slices."""
    lines = _level(rng, "x", "y", depth, 0)
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
        main (float[3,4] x, float[T,3,4] z, int64 n) => (float[3,4] out) {{
          {lines}
          out = Add (x, y)
        }}"""
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    feeds = [
        {
            "x": numbers.normal(size=(3, 4)).astype(np.float32),
            "z": numbers.normal(size=(length, 3, 4)).astype(np.float32),
            "n": np.array(trips, np.int64),
        }
        for length, trips in ((3, 4), (4, 3), (2, 2), (5, 3))
    ]
    return parse_model(text), feeds


def _level(rng: random.Random, source: str, result: str, depth: int, level: int) -> str:
    """Lines that compute `result` of `source`, both [3,4], with one control-flow node and those below it."""
    n = f"{result}{level}"
    weights = ", ".join(f"{rng.uniform(-1, 1):.3f}" for _ in range(12))
    own = f"""w{n} = Constant <value = float[3,4] {{{weights}}}> ()
        m{n} = Mul ({source}, w{n})
        g{n} = Softmax <axis = {rng.choice((-2, -1, 0, 1))}> (m{n})
        k{n} = Sub (m{n}, g{n})"""
    if level == depth:
        return f"{own}\n {result} = Tanh (k{n})"
    kind = rng.choice(("Loop", "Scan", "If"))
    if kind == "If":
        return f"""{own}
        zero{n} = Constant <value_float = 0.0> ()
        sum{n} = ReduceSum <keepdims = 0> (k{n})
        c{n} = Greater (sum{n}, zero{n})
        [if_{n}] {result} = If (c{n}) <
          then_branch = then_{n} () => (float[3,4] t{n}) {{ {_level(rng, f"k{n}", f"t{n}", depth, level + 1)} }},
          else_branch = else_{n} () => (float[3,4] e{n}) {{ {_level(rng, f"m{n}", f"e{n}", depth, level + 1)} }}>"""
    inner = _level(rng, f"a{n}", f"r{n}", depth, level + 1)
    body = f"""{inner}
        b{n} = Sub (r{n}, s{n})
        u{n} = Mul (b{n}, a{n})"""
    states = f"float[3,4] s{n}, float[3,4] t{n}"
    if kind == "Loop":
        loop = f"""[loop_{n}] f{n}, h{n}, o{n} = Loop (n, "", k{n}, {source}) <
          body = body_{n} (int64 i{n}, bool c{n}, {states}) =>
            (bool d{n}, float[3,4] b{n}, float[3,4] u{n}, float[3,4] r{n}) {{
              d{n} = Identity (c{n})
              zero{n} = Constant <value_int = 0> ()
              piece{n} = Gather <axis = 0> (z, zero{n})
              a{n} = Add (t{n}, piece{n})
              {body}
            }}>"""
    else:
        direction = rng.randint(0, 1)
        loop = f"""[scan_{n}] f{n}, h{n}, o{n} = Scan (k{n}, {source}, z) <
          num_scan_inputs = 1, scan_input_directions = [{direction}],
          body = body_{n} ({states}, float[3,4] piece{n}) => (float[3,4] b{n}, float[3,4] u{n}, float[3,4] r{n}) {{
              a{n} = Add (t{n}, piece{n})
              {body}
            }}>"""
    return f"""{own}
        {loop}
        first{n} = Constant <value_int = 0> ()
        sums{n} = CumSum (o{n}, first{n})
        last{n} = ReduceMax <axes = [0], keepdims = 0> (sums{n})
        j{n} = Sub (f{n}, h{n})
        {result} = Sub (j{n}, last{n})"""


# -- places


@dataclass(frozen=True)
class _Place:
    """A place for a fault: the layer by the path of its graph and its number there."""

    kind: str
    graphs: tuple[tuple[int, int], ...]
    """For each level the number of the layer with the body, and that of the body."""
    number: int
    scope: tuple[str, ...]
    layer: str
    readers: tuple[str, ...]
    apply: Callable[[Any, random.Random], str]
    """Changes the node; returns what was changed."""


def _places(graph: Graph) -> list[_Place]:
    found: list[_Place] = []
    stack: list[tuple[Graph, tuple[tuple[int, int], ...], tuple[str, ...]]] = [(graph, (), ())]
    while stack:
        here, path, scope = stack.pop()
        order = layer_order(here)
        names = dict(zip(order, layer_names(order), strict=True))
        for number, node in enumerate(order):
            for kind, apply in _faults_of(node):
                readers = (use.node for use in node.output.uses) if isinstance(node, Constant) else ()
                found.append(
                    _Place(kind, path, number, scope, names[node], tuple(names[each] for each in readers), apply)
                )
            tags = ("then_body", "else_body") if isinstance(node, If) else ("body",)
            for place, (tag, body) in enumerate(zip(tags, node.bodies, strict=False)):
                stack.append((body, (*path, (number, place)), (*scope, names[node], tag)))
    return [place for place in found if len(place.graphs) <= DEEPEST]


def _tried(graph: Graph, place: _Place, seed: int) -> Fault | None:
    """The fault in a copy; None if the copy is invalid, or its values have other element types or ranks."""
    copy = graph.clone()
    node = _node_at(copy, place)
    before = _kinds_of_values(copy)
    try:
        change = place.apply(node, random.Random(seed))
        copy.validate()
    except MoLoopError:
        return None
    if not change or _kinds_of_values(copy) != before:
        return None
    return Fault(copy, place.kind, place.scope, place.layer, change, place.readers, node.origin.path)


def _node_at(graph: Graph, place: _Place) -> Node:
    for number, body in place.graphs:
        graph = layer_order(graph)[number].bodies[body]
    return layer_order(graph)[place.number]


def _kinds_of_values(graph: Graph) -> list[tuple[Any, int | None]]:
    """Element type and rank of the outputs of all nodes that were there before: constants are not counted."""
    found: list[tuple[Any, int | None]] = []
    stack = [graph]
    while stack:
        here = stack.pop()
        for node in here.ordered():
            if not isinstance(node, Constant):
                found += [(value.type.dtype, value.rank) for value in node.outputs]
            stack += node.bodies
    return found


# -- faults


def _faults_of(node: Any) -> Iterator[tuple[str, Callable[[Any, random.Random], str]]]:
    if isinstance(node, Constant):
        if node.tensor.dtype.is_float and node.tensor.dtype.bits in (16, 32, 64) and node.tensor.size:
            yield WEIGHT, _change_weight
        return
    if isinstance(getattr(node, "axis", None), int) and node.outputs:
        yield AXIS, _move_axis
    port = AXIS_INPUTS.get(type(node))
    if port is not None and _axis_input(node, port) is not None:
        yield AXIS, _move_axis_input
    if not isinstance(node, Iteration):
        return
    for first, second in combinations(
        [place for place, each in enumerate(node.input_map) if hasattr(each, "result")], 2
    ):
        if _exchangeable(node.input_map[first], node.input_map[second]) and node.count not in (0, 1):
            yield BACK_EDGE, _Exchange(first, second)
    for side in ("input_map", "output_map"):
        for place, entry in enumerate(getattr(node, side)):
            if isinstance(entry, Sliced | Concatenated) and node.count not in (0, 1):
                yield SLICE, _Reverse(side, place)
                yield AXIS, _MoveSlice(side, place)


def _change_weight(node: Constant, rng: random.Random) -> str:
    array = np.array(node.array)
    place = rng.randrange(array.size)
    old = array.flat[place]
    array.flat[place] = (
        np.asarray(1, array.dtype) if not np.isfinite(old) else old + (1 + abs(old)) * rng.choice((-1, 1))
    )
    node.__dict__["tensor"] = ArrayTensor(array, node.tensor.dtype)
    return f"element {place}: {old} -> {array.flat[place]}"


def _neighbour(axis: int, rank: int | None, rng: random.Random) -> int | None:
    """The axis before or after; None if there is no other."""
    if rank is None or not -rank <= axis < rank:
        return None
    least, limit = (-rank, 0) if axis < 0 else (0, rank)
    others = [each for each in (axis - 1, axis + 1) if least <= each < limit]
    return rng.choice(others) if others else None


def _move_axis(node: Any, rng: random.Random) -> str:
    old, new = node.axis, _neighbour(node.axis, node.inputs[0].rank, rng)
    if new is None:
        return ""
    node.axis = new
    return f"axis {old} -> {new}"


def _axis_input(node: Any, port: int) -> int | None:
    """The one axis that an input holds."""
    value = node.inputs[port] if port < len(node.inputs) else None
    if value is None or not isinstance(value.node, Constant) or value.node.tensor.size != 1:
        return None
    return int(value.node.array.reshape(-1)[0])


def _move_axis_input(node: Any, rng: random.Random) -> str:
    port = AXIS_INPUTS[type(node)]
    old = _axis_input(node, port)
    assert old is not None
    new = _neighbour(old, node.inputs[0].rank, rng)
    if new is None:
        return ""
    before = node.inputs[port].node
    constant = Constant(np.full(before.array.shape, new, before.array.dtype), graph=node.graph, name=before.name)
    constant.origins = before.origins
    node.graph.set_input(node, port, constant.output)
    if not before.is_used:
        node.graph.remove(before)
    return f"axis {old} -> {new}"


def _exchangeable(first: Any, second: Any) -> bool:
    """Whether two states of one type get different next values."""
    one, other = first.result.value, second.result.value
    types = [each.parameter.output.type for each in (first, second)]
    return (
        one is not other
        and types[0].dtype is types[1].dtype
        and types[0].shape == types[1].shape
        and (one.dtype is other.dtype and one.rank == other.rank)
    )


@dataclass(frozen=True)
class _Exchange:
    """Exchanges the next values of two states."""

    first: int
    second: int

    def __call__(self, node: Any, rng: random.Random) -> str:
        entries = list(node.input_map)
        one, other = entries[self.first], entries[self.second]
        entries[self.first], entries[self.second] = replace(one, result=other.result), replace(other, result=one.result)
        node.input_map = tuple(entries)
        return f"back edges of inputs {self.first} and {self.second} exchanged"


@dataclass(frozen=True)
class _Reverse:
    """Reverses the order of the slices of an input, or of the values of a concatenated output."""

    side: str
    place: int

    def __call__(self, node: Any, rng: random.Random) -> str:
        entries = list(getattr(node, self.side))
        old = entries[self.place]
        new = replace(old, start=old.end, end=old.start, stride=-old.stride)
        entries[self.place] = new
        setattr(node, self.side, tuple(entries))
        return f"{self.side} {self.place}: stride {old.stride} -> {new.stride}"


@dataclass(frozen=True)
class _MoveSlice:
    """Slices or concatenates along the axis before or after."""

    side: str
    place: int

    def __call__(self, node: Any, rng: random.Random) -> str:
        entries = list(getattr(node, self.side))
        old = entries[self.place]
        value = old.parameter.output if isinstance(old, Sliced) else old.result.value
        new = _neighbour(old.axis, value.rank, rng)
        if new is None:
            return ""
        entries[self.place] = replace(old, axis=new)
        setattr(node, self.side, tuple(entries))
        return f"{self.side} {self.place}: axis {old.axis} -> {new}"
