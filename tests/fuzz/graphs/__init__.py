"""Random graphs without control flow: layers of networks, movements of elements, and shapes computed at run time.

    case = draw(seed=1, index=7)
    case.model, case.sets            an onnx.ModelProto, inputs by name
    draw(1, 7, "views")              a graph of one of the patterns (patterns.py)

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
from tests.fuzz.graphs.patterns import EXACT, PATTERNS
from tests.fuzz.graphs.steps import step

SIZES = ({"N": 2, "M": 3}, {"N": 1, "M": 5}, {"N": 4, "M": 1})


@dataclass
class Case:
    """One model with sets of inputs."""

    name: str
    model: Any
    sets: list[dict[str, Any]]
    is_exact: bool = False
    """Whether every bit of the results counts, and the quantisation is exact."""

    @property
    def facts(self) -> str:
        """The operators in the order of execution."""
        return " ".join(node.op_type for node in self.model.graph.node)


def draw(seed: int, index: int, pattern: str = "") -> Case:
    """Model number `index` of a seed: of any layers, or of a pattern."""
    if pattern:
        return _of_pattern(seed, index, pattern)
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


def _of_pattern(seed: int, index: int, pattern: str) -> Case:
    graph = Graph(random.Random(f"{pattern}/{seed}/{index}"), np.random.default_rng([seed, index]))
    PATTERNS[pattern](graph)
    sets = [_feeds(graph, sizes) for sizes in SIZES]
    model = _in_branches(_model(graph)) if graph.chance(0.25) else _model(graph)
    return Case(f"{pattern}-{seed}-{index}", model, sets, is_exact=pattern in EXACT)


def _in_branches(model: Any) -> Any:
    """The same nodes in both branches of an If, of which one negates signed results; the numbers decide."""
    graph, names = model.graph, [each.name for each in model.graph.output]
    signed = {each.name for each in graph.output
              if helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type).kind != "u"}
    ends = [
        [helper.make_node(op if name in signed else "Identity", [name], [f"{name}_{op}"]) for name in names]
        for op in ("Identity", "Neg")
    ]
    branches = [
        helper.make_graph([*graph.node, *nodes], "branch", [], [
            helper.make_empty_tensor_value_info(each.output[0]) for each in nodes], graph.initializer)
        for nodes in ends
    ]
    nodes = [
        helper.make_node("Cast", [graph.input[0].name], ["numbers"], to=1),
        helper.make_node("ReduceMean", ["numbers"], ["mean"], keepdims=0),
        helper.make_node("Greater", ["mean", "half"], ["is_large"]),
        helper.make_node("If", ["is_large"], [f"{name}_chosen" for name in names], then_branch=branches[0],
                         else_branch=branches[1]),
    ]
    results = [helper.make_tensor_value_info(f"{each.name}_chosen", each.type.tensor_type.elem_type, None)
               for each in graph.output]
    made = helper.make_graph(nodes, "g", graph.input, results, [helper.make_tensor("half", 1, [], [0.5])])
    return helper.make_model(made, opset_imports=model.opset_import, ir_version=model.ir_version)


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
    ]
    made = helper.make_graph(graph.nodes, "g", *infos, graph.constants)
    opsets = [helper.make_opsetid("", graph.opset)]
    if any(node.domain for node in graph.nodes):
        opsets.append(helper.make_opsetid("ai.onnx.ml", 3))
    return helper.make_model(made, opset_imports=opsets, ir_version=9 if graph.opset < 21 else 10)


def _feeds(graph: Graph, sizes: dict[str, int]) -> dict[str, Any]:
    found = {}
    for each in graph.inputs:
        shape = [size if isinstance(size, int) else sizes[size] for size in each.shape]
        is_float = each.kind == FLOAT
        if each.name in graph.filled:
            drawn = graph.filled[each.name](shape)
        else:
            drawn = graph.numbers.standard_normal(shape) if is_float else graph.numbers.integers(-6, 7, shape)
        found[each.name] = np.asarray(drawn, each.kind)
    return found
