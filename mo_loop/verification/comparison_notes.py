"""What limits a comparison with ONNX Runtime, in sentences for the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import all_graphs, operator_of
from mo_loop.verification.compare import Named
from mo_loop.verification.oracle import ONNX_RUNTIME, exact_operators


def notes_about(path: Path, model: OnnxModel, oracle: str, expected: Iterable[Named]) -> Iterator[str]:
    """`oracle` computed the `expected` outputs of the model at `path`."""
    exact = exact_operators(str(path))
    if exact and oracle == ONNX_RUNTIME:
        yield (
            f"{', '.join(exact)}: products of u8 and s8 saturate in ONNX Runtime on processors without VNNI, except "
            "with weights that are constants"
        )
    for name in returned_inputs(model):
        yield (
            f"{name}: a body of Scan returns one of its inputs, for which ONNX Runtime can give memory that was "
            "never written"
        )
    for name in numbers_for_labels(model):
        yield f"{name}: ONNX Runtime returns 0 and 1 in place of the labels of two classes if leaves vote for both"
    values = [value for named in expected for _, value in named if isinstance(value, np.ndarray)]
    floats = [value for value in values if value.dtype.kind == "f" and value.size]
    if floats and all(np.isnan(value).all() for value in floats):
        yield "every expected number is NaN, so the comparison shows little: give other inputs"


def returned_inputs(model: OnnxModel) -> list[str]:
    """The Scan nodes whose body returns one of its inputs."""
    found = []
    for graph in all_graphs(model):
        for node in graph.nodes:
            if operator_of(node) != "Scan":
                continue
            bodies = list(graph.bodies(node))
            if any(set(body.input_names) & set(body.output_names) for body in bodies):
                found.append(graph.path_of(node))
    return found


def numbers_for_labels(model: OnnxModel) -> list[str]:
    """The ensembles of two classes, other than 0 and 1, whose leaves vote for both."""
    found = []
    for graph in all_graphs(model):
        for node in graph.nodes:
            if node.op_type != "TreeEnsembleClassifier":
                continue
            numbers = {each.name: each.ints for each in node.attribute if each.ints}
            labels = list(numbers.get("classlabels_int64s", ()))
            if len(labels) == 2 and labels != [0, 1] and {0, 1} <= set(numbers.get("class_ids", ())):
                found.append(graph.path_of(node))
    return found
