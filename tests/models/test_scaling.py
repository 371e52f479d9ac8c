"""The time grows as the number of parts: no structure that a file can have takes quadratic time.

The time is CPU time, and only the smallest of several measurements counts, so that other work of the machine does not
matter. Four times the parts take four times as long, and up to twice of that where the smaller model fits the caches
of the processor and the larger does not. A quadratic step takes sixteen times as long.
"""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mo_loop.api import convert_model, save_model
from mo_loop.support.workers import Pool

BOUND = 8.0
TRIES = 4

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = ("x", FLOAT, [2, 3])

Model = Callable[[int], onnx.ModelProto]
MODELS: dict[str, tuple[Model, int]] = {}


def of_size(count: int) -> Callable[[Model], Model]:
    """Register a model that is converted with half of `count` and with twice as many parts."""

    def registered(made: Model) -> Model:
        MODELS[made.__name__] = (made, count)
        return made

    return registered


def model(
    nodes: list[Any], initializers: Sequence[Any] = (), inputs: Any = (X,), outputs: Any = ("y",), functions: Any = ()
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes, "main", [helper.make_tensor_value_info(*each) for each in inputs],
        [onnx.ValueInfoProto(name=each) for each in outputs], list(initializers),
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9)


def chain(operators: list[str], count: int, more: Callable[[int], list[str]] = lambda _: [], **given: Any) -> list[Any]:
    """Each node reads the one before."""
    return [
        helper.make_node(
            operators[i % len(operators)], [f"t{i}" if i else "x", *more(i)], [f"t{i + 1}" if i < count - 1 else "y"],
            **{key: value[i % len(value)] for key, value in given.items()},
        )
        for i in range(count)
    ]  # fmt: skip


def constant(name: str, value: Any) -> Any:
    return numpy_helper.from_array(np.asarray(value), name)


@of_size(5000)
def equal_activations(count: int) -> onnx.ModelProto:
    return model(chain(["Relu"], count))


@of_size(2000)
def absolute_values(count: int) -> onnx.ModelProto:
    """Whether constants determine what each one reads is asked."""
    return model(chain(["Abs", "Tanh"], count))


@of_size(6000)
def identities(count: int) -> onnx.ModelProto:
    return model(chain(["Identity"], count))


@of_size(1200)
def casts(count: int) -> onnx.ModelProto:
    return model(chain(["Cast"], count, to=[TensorProto.DOUBLE, FLOAT]))


@of_size(1000)
def transposes(count: int) -> onnx.ModelProto:
    return model(chain(["Transpose"], count, perm=[[1, 0]]))


@of_size(1200)
def different_activations(count: int) -> onnx.ModelProto:
    return model(chain(["Exp", "Sigmoid", "Tanh"], count))


@of_size(1000)
def equal_names_of_nodes(count: int) -> onnx.ModelProto:
    return model(chain(["Exp"], count, name=["same", "same_1"]))


@of_size(1000)
def readers_of_one_tensor(count: int) -> onnx.ModelProto:
    names = [f"y{i}" for i in range(count)]
    return model([helper.make_node("Exp", ["x"], [name]) for name in names], outputs=names)


@of_size(1000)
def outputs_of_one_tensor(count: int) -> onnx.ModelProto:
    names = [f"y{i}" for i in range(count)]
    return model([helper.make_node("Identity", ["x"], [name]) for name in names], outputs=names)


@of_size(600)
def slices(count: int) -> onnx.ModelProto:
    names = [f"t{i}" for i in range(count)]
    nodes = [helper.make_node("Slice", ["x", "a", "b"], [name]) for name in names]
    nodes.append(helper.make_node("Concat", names, ["y"], axis=0))
    return model(nodes, [constant("a", np.int64([0])), constant("b", np.int64([1]))])


@of_size(6000)
def concats(count: int) -> onnx.ModelProto:
    return model([helper.make_node("Concat", ["x"] * count, ["y"], axis=0)])


@of_size(2000)
def outputs_of_one_split(count: int) -> onnx.ModelProto:
    names = [f"y{i}" for i in range(count)]
    node = helper.make_node("Split", ["x"], names, axis=0, num_outputs=count)
    return model([node], inputs=[("x", FLOAT, [count])], outputs=names)


@of_size(800)
def initializers(count: int) -> onnx.ModelProto:
    weights = [constant(f"w{i}", np.float32([i])) for i in range(count)]
    return model(chain(["Add"], count, lambda i: [f"w{i}"]), weights)


@of_size(500)
def equal_initializers(count: int) -> onnx.ModelProto:
    weights = [constant(f"w{i}", np.float32([3])) for i in range(count)]
    return model(chain(["Max"], count, lambda i: [f"w{i}"]), weights)


@of_size(20000)
def unread_initializers(count: int) -> onnx.ModelProto:
    return model(chain(["Relu"], 1), [constant(f"w{i}", np.float32([i])) for i in range(count)])


@of_size(20000)
def unknown_attributes(count: int) -> onnx.ModelProto:
    made = model(chain(["Relu"], 1))
    made.graph.node[0].attribute.extend(helper.make_attribute(f"a{i}", 1) for i in range(count))
    return made


@of_size(400)
def symbols(count: int) -> onnx.ModelProto:
    inputs = [X, *((f"x{i}", FLOAT, [f"n{i}", 3]) for i in range(count))]
    return model(chain(["Concat"], count, lambda i: [f"x{i}"], axis=[0]), inputs=inputs)


@of_size(50)
def branches(count: int) -> onnx.ModelProto:
    def branch(operator: str, i: int) -> Any:
        name = f"{operator}{i}"
        nodes = [helper.make_node(operator, ["x"], [name])]
        return helper.make_graph(nodes, name, [], [onnx.ValueInfoProto(name=name)])

    names = [f"y{i}" for i in range(count)]
    nodes = [
        helper.make_node("If", ["c"], [name], then_branch=branch("Exp", i), else_branch=branch("Neg", i))
        for i, name in enumerate(names)
    ]
    return model(nodes, inputs=[X, ("c", BOOL, [])], outputs=names)


@of_size(60)
def branches_of_different_ranks(count: int) -> onnx.ModelProto:
    nodes = []
    for i in range(count):
        held, made = f"t{i}" if i else "x", [f"{name}{i}" for name in ("flat", "same", "r", "e")]
        bodies = [
            helper.make_graph(
                [helper.make_node(operator, [held, *more], [name])], name, [], [onnx.ValueInfoProto(name=name)]
            )
            for operator, more, name in (("Reshape", ["flat"], made[0]), ("Neg", [], made[1]))
        ]
        nodes += [
            helper.make_node("If", ["c"], [made[2]], then_branch=bodies[0], else_branch=bodies[1]),
            helper.make_node("Exp", [made[2]], [made[3]]),
            helper.make_node("Reshape", [made[3], "shape"], [f"t{i + 1}" if i < count - 1 else "y"]),
        ]
    constants = [constant("flat", np.int64([6])), constant("shape", np.int64([2, 3]))]
    return model(nodes, constants, inputs=[X, ("c", BOOL, [])])


@of_size(600)
def calls_of_a_function(count: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Exp", ["a"], ["t"]), helper.make_node("Neg", ["t"], ["b"])]
    function = helper.make_function("local", "f", ["a"], ["b"], nodes, [helper.make_opsetid("", 18)])
    return model(chain(["f"], count, domain=["local"]), functions=[function])


@of_size(1500)
def functions(count: int) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", 18)]
    made = [
        helper.make_function("local", f"f{i}", ["a"], ["b"], [helper.make_node("Exp", ["a"], ["b"])], opsets)
        for i in range(count)
    ]
    return model(chain([f"f{i}" for i in range(count)], count, domain=["local"]), functions=made)


@of_size(1500)
def products_with_residual_connections(count: int) -> onnx.ModelProto:
    """Each Softsign is replaced, after which nothing is known of the values before the next product."""
    nodes = []
    for i in range(count // 3):
        nodes += [
            helper.make_node("MatMul", [f"t{i}" if i else "x", "w"], [f"p{i}"]),
            helper.make_node("Softsign", [f"p{i}"], [f"s{i}"]),
            helper.make_node("Add", [f"s{i}", f"t{i}" if i else "x"], [f"t{i + 1}" if i < count // 3 - 1 else "y"]),
        ]
    return model(nodes, [constant("w", np.eye(3, dtype=np.float32))])


def loop(states: int, number: int = 0) -> Any:
    values = [helper.make_tensor_value_info(f"s{i}", FLOAT, None) for i in range(states)]
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]),
         *(helper.make_node("Exp", [f"s{i}"], [f"t{i}"]) for i in range(states))], "body",
        [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("c", BOOL, []), *values],
        [onnx.ValueInfoProto(name="d"), *(onnx.ValueInfoProto(name=f"t{i}") for i in range(states))],
    )  # fmt: skip
    return helper.make_node("Loop", ["n", "", *["x"] * states], [f"y{number}_{i}" for i in range(states)], body=body)


@of_size(150)
def states_of_a_loop(count: int) -> onnx.ModelProto:
    return model([loop(count)], inputs=[X, ("n", INT64, [])], outputs=[f"y0_{i}" for i in range(count)])


@of_size(30)
def loops(count: int) -> onnx.ModelProto:
    nodes = [loop(1, number) for number in range(count)]
    return model(nodes, inputs=[X, ("n", INT64, [])], outputs=[f"y{number}_0" for number in range(count)])


def seconds(made: onnx.ModelProto, folder: Path) -> float:
    """The CPU time of a conversion; the collector does not look at what earlier tests of the process made."""
    gc.collect()
    gc.freeze()
    try:
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            save_model(convert_model(made), folder / "model.xml")
        return time.process_time() - start
    finally:
        gc.unfreeze()


def ratios(task: tuple[str, Path]) -> list[float]:
    """How much longer the larger model takes, by the smallest times so far, until that is below the bound."""
    name, folder = task
    made, count = MODELS[name]
    small, large = made(count // 2), made(2 * count)
    seconds(made(count // 20), folder)  # imports what it needs
    shortest = [float("inf")] * 2
    found: list[float] = []
    while len(found) < TRIES and (not found or found[-1] >= BOUND):
        shortest = [min(best, seconds(each, folder)) for best, each in zip(shortest, (small, large), strict=True)]
        found.append(shortest[1] / shortest[0])
    return found


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """A process that does not hold what thousands of tests left: there, larger models take longer to find memory."""
    made = Pool("tests.models.test_scaling:ratios", limit=120)
    yield made
    made.close()


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", MODELS)
def test_four_times_the_parts_take_four_times_the_time(name: str, pool: Pool, tmp_path: Path) -> None:
    outcome = pool.call((name, tmp_path))
    assert outcome.ok, outcome.message
    _, count = MODELS[name]
    found = outcome.value
    assert found[-1] < BOUND, f"{2 * count} parts take quadratic time, ratios to {count // 2} {found}"
