"""Random graphs without control flow: layers of networks, movements of elements, and shapes computed at run time.

    case = draw(seed=1, index=7)
    case.model, case.sets            an onnx.ModelProto, inputs by name

Every node reads a value of the graph, mostly the last one, so that operators meet in orders and with ranks, sizes and
axes that no exporter writes on purpose, but optimisation produces. The optimisations of the runtime depend on such
neighbours.
"""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import helper

from tests.fuzz.graphs.graph import FLOAT, Dim, Graph
from tests.fuzz.graphs.steps import step

SIZES = ({"N": 2, "M": 3}, {"N": 1, "M": 5}, {"N": 4, "M": 1})


@dataclass
class Case:
    """One model with sets of inputs."""

    name: str
    model: Any
    sets: list[dict[str, Any]]

    @property
    def facts(self) -> str:
        """The operators in the order of execution."""
        return " ".join(node.op_type for node in self.model.graph.node)


def draw(seed: int, index: int) -> Case:
    """Model number `index` of a seed."""
    choices, numbers = random.Random(f"graphs/{seed}/{index}"), np.random.default_rng([seed, index])
    graph = Graph(choices, numbers)
    is_static, is_image = choices.random() < 0.4, choices.random() < 0.4
    graph.input(_image(choices, is_static) if is_image else _shape(choices, is_static, choices.choice((1, 2, 3, 3, 4))))
    if choices.random() < 0.5:
        first = graph.inputs[0].shape
        graph.input(first if choices.random() < 0.5 else _shape(choices, is_static, choices.choice((1, 2, 3))))
    if choices.random() < 0.2:
        graph.input(graph.inputs[0].shape, np.int64)
    for _ in range(choices.randint(3, 10)):
        step(graph)
    return Case(f"{seed}-{index}", _model(graph), [_feeds(graph, sizes) for sizes in SIZES[: 1 if is_static else None]])


def _shape(choices: random.Random, is_static: bool, rank: int) -> tuple[Dim, ...]:
    sizes: tuple[Dim, ...] = (1, 2, 3, 4, 4, 6, 8) if is_static else (1, 2, 3, 4, 6, "N", "M", "N")
    return tuple(choices.choice(sizes) for _ in range(rank))


def _image(choices: random.Random, is_static: bool) -> tuple[Dim, ...]:
    has_size = is_static or choices.random() < 0.6
    size: tuple[Dim, Dim] = choices.choice(((4, 4), (5, 6), (1, 1), (1, 4))) if has_size else ("N", "M")
    return choices.choice((1, 2) if is_static else (1, 2, "N")), choices.choice((1, 2, 3, 4, 8)), *size


def _model(graph: Graph) -> Any:
    inner = [each for each in graph.values if each not in graph.inputs]
    outputs = [each for each in inner if each.name not in graph.used]
    again = [each for each in inner if each.name in graph.used]
    if again and graph.choices.random() < 0.35:
        outputs.append(graph.choices.choice(again))
    infos = [
        [helper.make_tensor_value_info(each.name, helper.np_dtype_to_tensor_dtype(np.dtype(each.kind)), each.shape)
         for each in values]
        for values in (graph.inputs, outputs)
    ]  # fmt: skip
    made = helper.make_graph(graph.nodes, "g", *infos, graph.constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _feeds(graph: Graph, sizes: dict[str, int]) -> dict[str, Any]:
    found = {}
    for each in graph.inputs:
        shape = [size if isinstance(size, int) else sizes[size] for size in each.shape]
        is_float = each.kind == FLOAT
        drawn = graph.numbers.standard_normal(shape) if is_float else graph.numbers.integers(-6, 7, shape)
        found[each.name] = np.asarray(drawn, each.kind)
    return found
