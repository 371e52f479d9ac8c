"""What limits a comparison with ONNX Runtime, in sentences for the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np

from mo_loop.compare.oracle.oracle import ONNX_RUNTIME, exact_operators
from mo_loop.compare.oracle.oracle_errors import NOTED, OracleError, errors_in
from mo_loop.compare.results.array_comparison import Named
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import all_graphs


def notes_about(path: Path, model: OnnxModel, oracle: str, expected: Iterable[Named]) -> Iterator[str]:
    """`oracle` computed the `expected` outputs of the model at `path`."""
    exact = exact_operators(str(path))
    if exact and oracle == ONNX_RUNTIME:
        yield (
            f"{', '.join(exact)}: products of u8 and s8 saturate in ONNX Runtime on processors without VNNI, except "
            "with weights that are constants"
        )
    for path_of_node, error in _noted(model) if oracle == ONNX_RUNTIME else ():
        yield f"{path_of_node}: in ONNX Runtime {error.sentence}"
    values = [value for named in expected for _, value in named if isinstance(value, np.ndarray)]
    floats = [value for value in values if value.dtype.kind == "f" and value.size]
    if floats and all(np.isnan(value).all() for value in floats):
        yield "every expected number is NaN, so the comparison shows little: give other inputs"


def _noted(model: OnnxModel) -> Iterator[tuple[str, OracleError]]:
    """The nodes that ONNX Runtime computes wrongly, and that no one else computes."""
    release = version("onnxruntime")
    for graph in all_graphs(model):
        for error, node in errors_in(graph.nodes):
            if error.treatment == NOTED and error.is_in(release):
                yield graph.path_of(node), error
