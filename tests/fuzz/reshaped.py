"""Runs an IR that is given other sizes, also on other releases of OpenVINO, whose environments have no onnx."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.runtime import compile_model, read_ir, reshape
from mo_loop.compare.results.array_comparison import Named

NUMBERS, BATCH, UNKNOWN, BOUNDS = "reshape", "set_batch", "unknown", "bounds"


def run_reshaped(path: Path, way: str, feeds: Mapping[str, Any], before: Mapping[str, tuple[int, ...]]) -> Named:
    """The results of an IR that was given the sizes of `feeds`."""
    model = read_ir(path)
    ports = {name: port for port in model.inputs for name in port.get_names()}
    known = {name: np.shape(array) for name, array in feeds.items() if name in ports}
    if way == BATCH:
        import openvino

        for name in known:
            ports[name].get_node().set_layout(openvino.Layout("N..."))
        openvino.set_batch(model, next(iter(known.values()))[0])
    else:
        reshape(model, {name: _sizes(way, shape, before[name]) for name, shape in known.items()})
    compiled = compile_model(model)
    compiled.run(feeds)
    return compiled.run(feeds)


def _sizes(way: str, shape: tuple[int, ...], before: tuple[int, ...]) -> list[Any]:
    """The sizes of an input as this way gives them."""
    if way == UNKNOWN:
        return [(0, None)] * len(shape)
    if way == BOUNDS:
        return [(min(a, b) // 2, 2 * max(a, b)) for a, b in zip(shape, before, strict=True)]
    return list(shape)
