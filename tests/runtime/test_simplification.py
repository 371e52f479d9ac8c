"""Simplification of random graphs keeps the numbers; the runtime gives the same numbers for downgraded operations."""

import re
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import named
from mo_loop.graph.types import BY_NAME as BY_NAME
from mo_loop.graph.types import boolean, f32, f64, i64
from mo_loop.graph.verifier import invariants
from mo_loop.ops.base import Constant, Op, Parameter, Result
from mo_loop.text import parse, to_text
from mo_loop.transforms.common.nop_elimination import NopElimination
from mo_loop.transforms.common.simplification import ConstantsReduce as ConstantsReduce
from mo_loop.transforms.common.simplification import ReshapeToSqueeze
from mo_loop.transforms.common.simplification import SharedOpOptimization as SharedOpOptimization
from mo_loop.transforms.downgrade import (
    BitwiseNotDecomposition as BitwiseNotDecomposition,
)
from mo_loop.transforms.downgrade import (
    Downgrade,
)
from mo_loop.transforms.downgrade import (
    GroupNormalizationDecomposition as GroupNormalizationDecomposition,
)
from mo_loop.transforms.downgrade import (
    SoftSignDecomposition as SoftSignDecomposition,
)
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.runtime.local.elementwise_layers import AbsToMaximum as AbsToMaximum
from mo_loop.transforms.runtime.memory_copies import ReshapeReturnedInputs as ReshapeReturnedInputs
from tests.cases import read_cases
from tests.harness import check_graph, floats
from tests.texts import texts

TEXTS = texts(__file__)

SIZES = ({"N": 2, "M": 3}, {"N": 1, "M": 1}, {"N": 3, "M": 1})
"""The sizes of the symbols of the random graphs."""


def computed(graph: Graph, feeds: list[Any]) -> list[Any]:
    """The results of a graph without bodies, computed in numpy."""
    values: dict[Value, Any] = dict(zip((each.output for each in graph.parameters), feeds, strict=True))
    for node in graph.ordered():
        if isinstance(node, Parameter | Result):
            continue
        assert isinstance(node, Op)
        inputs = [None if value is None else values[value] for value in node.inputs]
        made = np.array(inputs[0].shape) if isinstance(node, ops.ShapeOf) else node.evaluate(*inputs)
        assert made is not NotImplemented, node
        results = made if isinstance(made, tuple) else (made,)
        values.update(zip(node.outputs, results, strict=True))
    return [values[each.value] for each in graph.results]


# -- random steps: mostly such as change nothing


def transposed(x: Value, r: Random) -> Any:
    order = list(range(x.type.rank))
    if r.random() < 0.7:
        r.shuffle(order)
    return ops.Transpose(x, order)


def reshaped(x: Value, r: Random) -> Any:
    dims = [dim if isinstance(dim, int) else 0 for dim in x.type.dims]
    choice = r.randrange(4)
    if choice == 0:
        return ops.Reshape(x, [-1])
    if choice == 1:
        return ops.Reshape(x, ops.ShapeOf(x))
    if choice == 2:
        return ops.Reshape(x, dims, special_zero=True)
    if dims and dims[-1] == 4:
        return ops.Reshape(x, [*([0] * (len(dims) - 1)), 2, 2], special_zero=True)
    return ops.Reshape(x, [-1, 2] if r.random() < 0.3 and 4 in dims else [-1, 1])


def ones_put_in(x: Value, r: Random) -> Any:
    return ops.Unsqueeze(x, [r.randrange(x.type.rank + 1)]) if x.type.rank < 6 else x


def ones_taken_out(x: Value, r: Random) -> Any:
    ones = [axis for axis, dim in enumerate(x.type.dims) if dim == 1]
    return ops.Squeeze(x, sorted(r.sample(ones, r.randrange(1, len(ones) + 1)))) if ones else x


def neutral(x: Value, r: Random) -> Any:
    cls, number = r.choice([(ops.Add, 0), (ops.Subtract, 0), (ops.Multiply, 1), (ops.Divide, 1), (ops.Power, 1)])
    dims = [dim if isinstance(dim, int) and r.random() < 0.5 else 1 for dim in x.type.dims[r.randrange(3) :]]
    if r.random() < 0.1:
        dims = [3, *([1] * x.type.rank)]
    other = Constant(np.full(dims, number, np.float32), graph=x.graph)
    return cls(other, x) if cls in (ops.Add, ops.Multiply) and r.random() < 0.5 else cls(x, other)


def sliced(x: Value, r: Random) -> Any:
    axis = r.randrange(x.type.rank) if x.type.rank else None
    if axis is None:
        return x
    return ops.Slice(x, [r.choice([0, 0, 0, -1])], [r.choice([2**31 - 1, 4, 4, 1])], [1], [axis])


def padded(x: Value, r: Random) -> Any:
    zeros = [0] * x.type.rank
    return ops.Pad(x, zeros, [int(r.random() < 0.1) for _ in zeros], 0.0)


def joined(x: Value, r: Random) -> Any:
    return ops.Concat(*[x] * r.choice([1, 1, 2]), axis=r.randrange(x.type.rank)) if x.type.rank else x


def cut(x: Value, r: Random) -> Any:
    if not x.type.rank:
        return x
    axis = r.randrange(x.type.rank)
    return ops.VariadicSplit(x, axis, [-1]) if r.random() < 0.5 else ops.Split(x, axis, num_splits=1)


def repeated(x: Value, r: Random) -> Any:
    return ops.Tile(x, [1 if r.random() < 0.9 else 2 for _ in x.type.dims])


def spread(x: Value, r: Random) -> Any:
    return ops.Broadcast(x, r.choice([ops.ShapeOf(x), [1], [4]]), mode="bidirectional")


def picked(x: Value, r: Random) -> Any:
    places = [(axis, dim) for axis, dim in enumerate(x.type.dims) if isinstance(dim, int) and dim > 0]
    if not places:
        return x
    axis, dim = r.choice(places)
    indices = list(range(dim))
    if r.random() < 0.3:
        r.shuffle(indices)
    return ops.Gather(x, indices, axis)


def reduced(x: Value, r: Random) -> Any:
    cls = r.choice([ops.ReduceSum, ops.ReduceMean, ops.ReduceMax, ops.ReduceMin, ops.ReduceProd, ops.ReduceL1])
    axes = [axis for axis, dim in enumerate(x.type.dims) if dim == 1 or r.random() < 0.1]
    return cls(x, np.array(axes, np.int64), keep_dims=r.random() < 0.8)


def converted(x: Value, r: Random) -> Any:
    return ops.Convert(ops.Convert(x, destination_type=r.choice([f64, f32, i64])), destination_type=f32)


def chosen(x: Value, r: Random) -> Any:
    condition = Constant(np.array(r.choice([[True], [False], [True]])), graph=x.graph, dtype=boolean)
    return ops.Select(condition, x, ops.Negative(x))


def limited(x: Value, r: Random) -> Any:
    low = float(r.randrange(-4, 3))
    return r.choice([ops.ReLU, lambda v: ops.Maximum(v, v), lambda v: ops.Clamp(v, min=low, max=low + 3)])(x)


STEPS: tuple[Callable[[Value, Random], Any], ...] = (
    transposed, transposed, reshaped, reshaped, ones_put_in, ones_taken_out, neutral, neutral, sliced, padded, joined,
    cut, repeated, spread, picked, reduced, converted, chosen, limited,
)


def random_graph(seed: int) -> Graph:
    """Steps one after another, sometimes from an earlier value; the last value and some others are returned."""
    r = Random(seed)
    graph = Graph(f"random {seed}")
    x = Parameter(graph=graph, dtype=f32, shape=(named("N"), 1, 4, named("M"))).output
    values = [x, ops.Negative(x).output]
    for _ in range(14):
        source = values[-1] if r.random() < 0.8 else r.choice(values)
        made = r.choice(STEPS)(source, r)
        values.append(made if isinstance(made, Value) else made.outputs[0])
        rank = values[-1].rank
        if rank is None or rank > 7:
            values[-1] = source
    for value in dict.fromkeys((values[-1], *r.sample(values[1:], 2))):
        Result(value)
    graph.sweep()
    graph.validate()
    return graph


@pytest.mark.parametrize("first", range(0, 150, 30))
def test_random_graphs_give_the_same_numbers(first: int) -> None:
    compared = sum(_compared(seed) for seed in range(first, first + 30))
    assert compared > 60, "too few of the sizes fit the graphs to show anything"


def _compared(seed: int) -> int:
    """The number of sizes with the same numbers, without those that the original graph does not accept."""
    graph = random_graph(seed)
    simpler = graph.clone()
    Manager([NopElimination(), ReshapeToSqueeze()]).run(simpler)
    assert not invariants(simpler)
    compared = 0
    for sizes in SIZES:
        feed = np.random.default_rng(seed).standard_normal((sizes["N"], 1, 4, sizes["M"])).astype(np.float32)
        try:
            wanted = computed(graph, [feed])
        except ValueError:
            continue
        compared += 1
        for a, b in zip(wanted, computed(simpler, [feed]), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"seed {seed}, {sizes}\n{to_text(graph)}\n{to_text(simpler)}")
    return compared


def test_random_graphs_become_smaller() -> None:
    """Without it, the test above would pass if nothing ever changed."""
    before = after = 0
    for seed in range(30):
        graph = random_graph(seed)
        before += len(graph)
        NopElimination().run(graph)
        graph.sweep()
        after += len(graph)
    assert after < 0.7 * before


# -- on the runtime


def rewritten(text: str, *passes: Any) -> str:
    """The graph of `text` after passes that must change it."""
    graph = parse(text)
    for each in passes:
        assert each.run(graph)
        graph.validate()
    assert not invariants(graph)
    return to_text(graph)


JOINS = TEXTS["joins"]


def test_older_operations_on_the_runtime() -> None:
    older = rewritten("""
        %x = Parameter : f32[N,4]  %i = Parameter : i64[1,4]
        %p = Pad12(%x, [0, 1], [2, 0], 0.5)  %e = Pad12(%p, [1, 0], [0, 2]) {pad_mode: edge}
        %s = ScatterElementsUpdate12(%x, %i, [[1.0, 2.0, 3.0, 4.0]], 0)
        %t = ScatterNDUpdate15(%s, [[0]], [[5.0, 6.0, 7.0, 8.0]])  %v, %k = TopK11(%x, 2) {axis: 1, mode: min}
        Result(%e)  Result(%s)  Result(%t)  Result(%v)  Result(%k)""", Downgrade())
    assert not re.search(r"Pad12|Update12|Update15|TopK11", older)

    def oracle(x: Any, i: Any) -> list[Any]:
        padded = np.pad(x, ((0, 2), (1, 0)), constant_values=0.5)
        put = x.copy()
        np.put_along_axis(put, i, np.array([[1, 2, 3, 4]], np.float32), 0)
        first = put.copy()
        first[0] = [5, 6, 7, 8]
        order = np.argsort(x, axis=1)[:, :2]
        return [np.pad(padded, ((1, 0), (0, 2)), "edge"), put, first, np.take_along_axis(x, order, 1), order]

    feeds = [(floats(rows, 4, seed=rows), np.array([[0, rows - 1, 0, rows - 1]])) for rows in (2, 3)]
    check_graph(older, *feeds, oracle=oracle)


def test_a_disabled_downgrade_runs_if_it_is_enabled() -> None:
    text = "%x = Parameter : f32[N]\n%y = SoftSign(%x)\nResult(%y)"
    for wanted in (False, True):
        graph = parse(text)
        manager = Manager([Downgrade()])
        if wanted:
            manager.config.enable("SoftSignDecomposition")
        assert manager.run(graph) is wanted
        assert bool(graph.of(ops.SoftSign)) is not wanted


read_cases(globals())
