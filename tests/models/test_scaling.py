"""The work grows as the number of parts: no structure that a file can have takes quadratic time.

The lines of Python that a conversion executes are counted, so that other work of the machine does not matter. Four
times the parts take up to four times the lines; a quadratic step takes sixteen times as many.
"""

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
from tests.costs import executed_lines

BOUND = 5.5

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = ("x", FLOAT, [2, 3])

def model(nodes: list[Any], initializers: Sequence[Any] = (), inputs: Any = (X,), outputs: Any = ("y",),
          functions: Any = ()) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "main", [helper.make_tensor_value_info(*each) for each in inputs],
                              [onnx.ValueInfoProto(name=each) for each in outputs], list(initializers))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9)


def chain(operators: list[str], count: int, more: Callable[[int], list[str]] = lambda _: [], **given: Any) -> list[Any]:
    """Each node reads the one before."""
    return [
        helper.make_node(operators[i % len(operators)], [f"t{i}" if i else "x", *more(i)],
                         [f"t{i + 1}" if i < count - 1 else "y"],
                         **{key: value[i % len(value)] for key, value in given.items()})
        for i in range(count)
    ]


def constant(name: str, value: Any) -> Any:
    return numpy_helper.from_array(np.asarray(value), name)


def numbers(count: int, equal: bool = False) -> list[Any]:
    """Initializers w0, w1, ..."""
    return [constant(f"w{i}", np.float32([3 if equal else i])) for i in range(count)]


def names(count: int) -> list[str]:
    return [f"y{i}" for i in range(count)]


def readers(operator: str, count: int) -> onnx.ModelProto:
    return model([helper.make_node(operator, ["x"], [name]) for name in names(count)], outputs=names(count))


def outputs_of_one_split(count: int) -> onnx.ModelProto:
    node = helper.make_node("Split", ["x"], names(count), axis=0, num_outputs=count)
    return model([node], inputs=[("x", FLOAT, [count])], outputs=names(count))


def slices(count: int) -> onnx.ModelProto:
    parts = [f"t{i}" for i in range(count)]
    nodes = [helper.make_node("Slice", ["x", "a", "b"], [part]) for part in parts]
    nodes.append(helper.make_node("Concat", parts, ["y"], axis=0))
    return model(nodes, [constant("a", np.int64([0])), constant("b", np.int64([1]))])


def unknown_attributes(count: int) -> onnx.ModelProto:
    made = model(chain(["Relu"], 1))
    made.graph.node[0].attribute.extend(helper.make_attribute(f"a{i}", 1) for i in range(count))
    return made


def symbols(count: int) -> onnx.ModelProto:
    inputs = [X, *((f"x{i}", FLOAT, [f"n{i}", 3]) for i in range(count))]
    return model(chain(["Concat"], count, lambda i: [f"x{i}"], axis=[0]), inputs=inputs)


def branches(count: int) -> onnx.ModelProto:
    def branch(operator: str, i: int) -> Any:
        name = f"{operator}{i}"
        nodes = [helper.make_node(operator, ["x"], [name])]
        return helper.make_graph(nodes, name, [], [onnx.ValueInfoProto(name=name)])

    nodes = [helper.make_node("If", ["c"], [name], then_branch=branch("Exp", i), else_branch=branch("Neg", i))
             for i, name in enumerate(names(count))]
    return model(nodes, inputs=[X, ("c", BOOL, [])], outputs=names(count))


def branches_of_different_ranks(count: int) -> onnx.ModelProto:
    nodes = []
    for i in range(count):
        held, made = f"t{i}" if i else "x", [f"{name}{i}" for name in ("flat", "same", "r", "e")]
        bodies = [
            helper.make_graph([helper.make_node(operator, [held, *more], [name])], name, [],
                              [onnx.ValueInfoProto(name=name)])
            for operator, more, name in (("Reshape", ["flat"], made[0]), ("Neg", [], made[1]))
        ]
        nodes += [helper.make_node("If", ["c"], [made[2]], then_branch=bodies[0], else_branch=bodies[1]),
                  helper.make_node("Exp", [made[2]], [made[3]]),
                  helper.make_node("Reshape", [made[3], "shape"], [f"t{i + 1}" if i < count - 1 else "y"])]
    constants = [constant("flat", np.int64([6])), constant("shape", np.int64([2, 3]))]
    return model(nodes, constants, inputs=[X, ("c", BOOL, [])])


def calls_of_a_function(count: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Exp", ["a"], ["t"]), helper.make_node("Neg", ["t"], ["b"])]
    function = helper.make_function("local", "f", ["a"], ["b"], nodes, [helper.make_opsetid("", 18)])
    return model(chain(["f"], count, domain=["local"]), functions=[function])


def functions(count: int) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", 18)]
    made = [helper.make_function("local", f"f{i}", ["a"], ["b"], [helper.make_node("Exp", ["a"], ["b"])], opsets)
            for i in range(count)]
    return model(chain([f"f{i}" for i in range(count)], count, domain=["local"]), functions=made)


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
    )
    return helper.make_node("Loop", ["n", "", *["x"] * states], [f"y{number}_{i}" for i in range(states)], body=body)


def loops(nodes: list[Any], outputs: list[str]) -> onnx.ModelProto:
    return model(nodes, inputs=[X, ("n", INT64, [])], outputs=outputs)


MODELS: dict[str, tuple[Callable[[int], onnx.ModelProto], int]] = {
    "equal_activations": (lambda count: model(chain(["Relu"], count)), 5000),
    # whether constants determine what each one reads is asked
    "absolute_values": (lambda count: model(chain(["Abs", "Tanh"], count)), 2000),
    "identities": (lambda count: model(chain(["Identity"], count)), 6000),
    "casts": (lambda count: model(chain(["Cast"], count, to=[TensorProto.DOUBLE, FLOAT])), 1200),
    "transposes": (lambda count: model(chain(["Transpose"], count, perm=[[1, 0]])), 1000),
    "different_activations": (lambda count: model(chain(["Exp", "Sigmoid", "Tanh"], count)), 1200),
    "equal_names_of_nodes": (lambda count: model(chain(["Exp"], count, name=["same", "same_1"])), 1000),
    "readers_of_one_tensor": (lambda count: readers("Exp", count), 1000),
    "outputs_of_one_tensor": (lambda count: readers("Identity", count), 1000),
    "slices": (slices, 600),
    "concats": (lambda count: model([helper.make_node("Concat", ["x"] * count, ["y"], axis=0)]), 6000),
    "outputs_of_one_split": (outputs_of_one_split, 2000),
    "initializers": (lambda count: model(chain(["Add"], count, lambda i: [f"w{i}"]), numbers(count)), 800),
    "equal_initializers": (lambda count: model(chain(["Max"], count, lambda i: [f"w{i}"]), numbers(count, True)), 500),
    "unread_initializers": (lambda count: model(chain(["Relu"], 1), numbers(count)), 20000),
    "unknown_attributes": (unknown_attributes, 20000),
    "symbols": (symbols, 400),
    "branches": (branches, 50),
    "branches_of_different_ranks": (branches_of_different_ranks, 60),
    "calls_of_a_function": (calls_of_a_function, 600),
    "functions": (functions, 1500),
    "products_with_residual_connections": (products_with_residual_connections, 1500),
    "states_of_a_loop": (lambda count: loops([loop(count)], [f"y0_{i}" for i in range(count)]), 150),
    "loops": (lambda count: loops([loop(1, i) for i in range(count)], [f"y{i}_0" for i in range(count)]), 30),
}
"""Models that are converted with a number of parts and with a quarter of them."""


def lines(task: tuple[str, Path]) -> tuple[int, int]:
    """The lines of Python that conversions of the smaller and of the larger model execute."""
    name, folder = task
    made, count = MODELS[name]

    def converted(parts: int) -> int:
        source = made(parts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return executed_lines(lambda: save_model(convert_model(source), folder / "model.xml"))[1]

    converted(count // 20)  # imports what it needs
    return converted(count // 4), converted(count)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """A process in which no other test has filled a cache."""
    made = Pool("tests.models.test_scaling:lines", limit=600)
    yield made
    made.close()


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", MODELS)
def test_four_times_the_parts_take_four_times_the_lines(name: str, pool: Pool, tmp_path: Path) -> None:
    outcome = pool.call((name, tmp_path))
    assert outcome.ok, outcome.message
    small, large = outcome.value
    assert large < BOUND * small, f"{MODELS[name][1]} parts take {large / small:.1f} times the lines of a quarter"
