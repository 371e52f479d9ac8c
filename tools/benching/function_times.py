"""Times functions of the library: the sides of the rows of tools/bench.py that start no command.

    python tools/benching/function_times.py fusions 5       one JSON document: the seconds of five runs of each side

Each row has two sides. The input of a run is made again for each run and not timed; runs alternate; the garbage
collector is paused as in a conversion. rounds.py starts this file in a process for each row, so that it stays small.
"""

import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.types import boolean, f32, i64
from mo_loop.ops.port_map import Branched, Concatenated, Final, Invariant, Merged, Selected
from mo_loop.support.process_memory import paused_collector
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.pattern import Match, any_input, wrap_type
from mo_loop.transforms.pipelines import default_pipeline
from mo_loop.transforms.predicates import consumers_count
from mo_loop.transforms.replace import copy_runtime_info, replace_node
from mo_loop.transforms.rewrite import GraphRewrite, MatcherPass

FUSIONS = 25_000
SMALL, LARGE = 3_000, 100_000


@dataclass(frozen=True)
class Timed:
    """One side: `prepare` makes the input of `run`, and is not timed. The ratio is per unit of `units`."""

    name: str
    prepare: Callable[[], Any]
    run: Callable[[Any], None]
    units: int = 1


# -- 25,000 fusions of three nodes, by the engine and by a loop


class GateFusion(MatcherPass):
    """x * Sigmoid(-x)  ->  HSwish(x), not a true equation: only the work matters"""

    def __init__(self) -> None:
        super().__init__()
        self.x = any_input()
        self.gate = wrap_type(ops.Sigmoid, wrap_type(ops.Negative, self.x), when=consumers_count(1))
        self.register_matcher(wrap_type(ops.Multiply, self.x, self.gate), self.fuse)

    def fuse(self, match: Match) -> bool:
        return self.replace(match, ops.HSwish(match[self.x]))


def gates() -> Graph:
    """x -> x * Sigmoid(-x) -> ReLU -> ..., 100,000 nodes"""
    graph = Graph("gates")
    x = ops.Parameter(dtype=f32, shape=(2, 3), graph=graph, name="x").output
    for number in range(FUSIONS):
        x = ops.ReLU(ops.Multiply(x, ops.Sigmoid(ops.Negative(x)), name=f"gate_{number}")).output
    ops.Result(x, names=("y",))
    return graph


def fuse_by_engine(graph: Graph) -> None:
    Manager([GateFusion()]).run(graph)
    assert len(graph.of(ops.HSwish)) == FUSIONS


def fuse_by_hand(graph: Graph) -> None:
    for node in graph.of(ops.Multiply):
        x, gate = node.inputs
        if x is None or gate is None or type(gate.node) is not ops.Sigmoid or gate.only_use is None:
            continue
        inner = gate.node.inputs[0]
        if inner is None or type(inner.node) is not ops.Negative or inner.node.inputs[0] is not x:
            continue
        new = ops.HSwish(x)
        copy_runtime_info([node, gate.node, inner.node], new)
        replace_node(node, new)
    graph.validate()
    assert len(graph.of(ops.HSwish)) == FUSIONS


# -- forty matchers without a match, and one


class Never(MatcherPass):
    """one operation over another, where the graph has no such pair"""

    def __init__(self, root: type[Node], inner: type[Node]) -> None:
        super().__init__()
        self.register_matcher(wrap_type(root, wrap_type(inner)), self.fail)

    def fail(self, match: Match) -> bool:
        raise AssertionError(f"{match.root!r} matched")


THERE = (ops.Multiply, ops.Sigmoid, ops.Negative, ops.ReLU)
ELSEWHERE = (ops.Add, ops.Exp, ops.Log, ops.Sin, ops.Cos, ops.Tan, ops.Abs, ops.Floor, ops.Sqrt, ops.Sign, ops.Tanh)


def forty() -> list[MatcherPass]:
    """Ten matchers whose roots are operations of the graph, thirty whose roots are others."""
    near = [Never(THERE[number % 4], ELSEWHERE[number]) for number in range(10)]
    far = [Never(ELSEWHERE[number % 11], (*THERE, *ELSEWHERE)[number % 15]) for number in range(30)]
    return [*near, *far]


# -- the whole pipeline on graphs of two sizes


def mixed(nodes: int) -> Graph:
    """Ordinary operations, and in every hundred nodes of all scopes a Loop and an If."""
    graph = Graph("mixed")
    x = ops.Parameter(dtype=f32, shape=(2, 4), graph=graph, name="x").output
    trip = ops.Parameter(dtype=i64, shape=(), graph=graph, name="n").output
    flag = ops.Parameter(dtype=boolean, shape=(), graph=graph, name="flag").output
    for number in range(nodes // 100):
        x = _branches(flag, _loop(trip, _layers(number, x)))
    ops.Result(x, names=("y",))
    return graph


def _layers(number: int, x: Value) -> Value:
    for layer in range(9):
        share = number + layer / 9  # no two constants alike
        product = ops.MatMul(x, ops.Constant([[share] * 4] * 4, graph=x.graph, dtype=f32))
        total = ops.Add(product, ops.Constant([share] * 4, graph=x.graph, dtype=f32))
        x = ops.Reshape(ops.Tanh(ops.ReLU(total)), [2, 4]).output
    return x


def _loop(trip: Value, x: Value) -> Value:
    """s = s + x, n times; the last s and the sum of all"""
    body = Graph("step")
    state, other = (ops.Parameter(dtype=f32, shape=(2, 4), graph=body) for _ in range(2))
    following = ops.Result(ops.Add(state, other))
    row = ops.Result(ops.Unsqueeze(ops.Tanh(state), 0))
    go = ops.Result(ops.Constant(True, graph=body))
    go_on = ops.Constant(True, graph=x.graph)
    loop = ops.Loop(
        trip, go_on, x, ops.Abs(x), body=body, condition=go,
        input_map=(Merged(state, following), Invariant(other)),
        output_map=(Final(following), Concatenated(row, 0)),
    )
    return ops.Add(loop.outputs[0], ops.ReduceSum(loop.outputs[1], [0])).output


def _branches(flag: Value, x: Value) -> Value:
    """Abs(x) or -x"""
    bodies = Graph("yes"), Graph("no")
    ends = [ops.Parameter(dtype=f32, shape=(2, 4), graph=body) for body in bodies]
    results = ops.Result(ops.Abs(ends[0])), ops.Result(ops.Negative(ends[1]))
    return ops.If(
        flag, x, then_body=bodies[0], else_body=bodies[1],
        input_map=(Branched(*ends),), output_map=(Selected(*results),),
    ).output


def run_pipeline(graphs: Sequence[Graph]) -> None:
    for graph in graphs:
        Manager(default_pipeline()).run(graph)


# -- the rows


def fusions() -> tuple[Timed, Timed]:
    return Timed("mo-loop", gates, fuse_by_engine), Timed("by hand", gates, fuse_by_hand)


def matchers() -> tuple[Timed, Timed]:
    graph = gates()
    many, one = GraphRewrite(forty()), GraphRewrite([Never(ops.ReLU, ops.Exp)])
    return Timed("mo-loop", lambda: graph, many.run), Timed("one", lambda: graph, one.run)


def flat() -> tuple[Timed, Timed]:
    run_pipeline([mixed(100)])  # modules are loaded before the measurement

    def large() -> list[Graph]:
        return [mixed(LARGE)]

    def small() -> list[Graph]:
        return [mixed(SMALL) for _ in range(10)]  # one alone is too short to be measured

    return Timed("mo-loop", large, run_pipeline, LARGE), Timed("3,000 nodes", small, run_pipeline, 10 * SMALL)


ROWS: dict[str, Callable[[], tuple[Timed, Timed]]] = {"fusions": fusions, "matchers": matchers, "flat": flat}


def inference(model: str, repetitions: int) -> list[float]:
    """Seconds of wall time, as those of the command that it is held against, to infer every node of `model` anew."""
    from mo_loop.frontend.cut import Cut
    from mo_loop.frontend.model import load
    from mo_loop.frontend.translate import translate

    source = load(model)
    graph = translate(source, Cut.of(source, None, None))
    found = []
    for _ in range(repetitions):
        for node in graph:
            graph.touch(node)
        found.append(timed(time.perf_counter, graph.validate))
    return found


def timed(clock: Callable[[], float], function: Callable[..., Any], *arguments: Any) -> float:
    start = clock()
    function(*arguments)
    return clock() - start


def seconds(sides: tuple[Timed, Timed], repetitions: int) -> dict[str, list[float]]:
    """The runs of both sides, in turns. In CPU time: they have one thread, and the machine may have more to do."""
    found: dict[str, list[float]] = {side.name: [] for side in sides}
    for repetition in range(repetitions):
        for side in sides if repetition % 2 == 0 else reversed(sides):
            gc.collect()  # garbage of the last run
            found[side.name].append(timed(time.process_time, side.run, side.prepare()))
    return found


def main(arguments: list[str]) -> None:
    name, repetitions = arguments[0], int(arguments[1])
    with paused_collector():
        if name == "inference":
            found = {"mo-loop": inference(arguments[2], repetitions)}
            units = {"mo-loop": 1}
        else:
            sides = ROWS[name]()
            found = seconds(sides, repetitions)
            units = {side.name: side.units for side in sides}
    print(json.dumps({"seconds": found, "units": units}))


if __name__ == "__main__":
    main(sys.argv[1:])
