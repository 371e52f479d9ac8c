"""Models written as text, and converted models held against ONNX Runtime.

    model = parsed('''
        main (float[N] x, int64 n) => (float[N] y) {
          y = Loop (n, "", x) <body = step (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
            d = Identity (c)
            t = Add (s, s)
          }>
        }''')
    check(model, {"x": x, "n": 3}, {"x": x, "n": 0})

The text is that of onnx.parser. What is native (ONNX Runtime, OpenVINO) runs in a worker process: a crash there is a
failed test, not the end of all.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser

from mo_loop.api import convert_model, save_model
from mo_loop.verify.compare import compare_all
from mo_loop.workers import Pool

Feeds = Mapping[str, Any]
Named = list[tuple[str, Any]]


def parsed(text: str, opset: int = 18, **domains: int) -> onnx.ModelProto:
    """A ModelProto from the text of its graph and functions; `domains` are imported besides ONNX's own."""
    imports = ", ".join(f'"{domain}": {version}' for domain, version in {"": opset, **domains}.items())
    return onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]>\n{text}")


def check(
    model: Any,
    *feeds: Feeds,
    expected: Sequence[Named] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    compress_to_fp16: bool = False,
    **arguments: Any,
) -> None:
    """Convert, save, compile once, run all `feeds` forwards and backwards on that one compiled model, compare.

    `expected` replaces ONNX Runtime; `arguments` go to convert_model. AssertionError when a number differs.
    """
    sets = [{name: np.asarray(value) for name, value in each.items()} for each in feeds] or [{}]
    order = [*range(len(sets)), *reversed(range(len(sets)))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        save_model(convert_model(model, **arguments), path, compress_to_fp16=compress_to_fp16)
        wanted = expected if expected is not None else native("oracle", _source(model), sets)
        found = native("run_ir", str(path), [sets[number] for number in order])
    wrong = []
    for number, actual in zip(order, found, strict=True):
        differences = compare_all(wanted[number], actual, rtol=rtol, atol=atol)
        wrong += [f"set {number}: {each}" for each in differences if not each]
    assert not wrong, "\n".join(wrong)


def oracle(source: str | bytes, sets: Sequence[Feeds]) -> list[Named]:
    """What ONNX Runtime computes for each set of inputs."""
    from mo_loop.verify.oracle import OnnxRuntime

    runtime = OnnxRuntime(source)
    return [runtime.run(feeds) for feeds in sets]


def run_ir(path: str, sets: Sequence[Feeds]) -> list[Named]:
    """What the IR computes for each set of inputs, on one compiled model."""
    from mo_loop.verify.runtime import compile_ir

    compiled = compile_ir(path)
    return [compiled.run(feeds) for feeds in sets]


def native(function: str, *arguments: Any) -> Any:
    """Call a function of this module in a worker process. AssertionError when it raises, crashes or hangs."""
    outcome = _pool().call((function, arguments))
    assert outcome.ok, f"{function}: {outcome.status}: {outcome.message}\n{outcome.detail}"
    return outcome.value


def call(module: str, function: str, *arguments: Any) -> Any:
    """Call a function of a test module: `native("call", __name__, "f", ...)`."""
    return getattr(import_module(module), function)(*arguments)


def serve(task: tuple[str, Sequence[Any]]) -> Any:
    """What the worker runs."""
    function, arguments = task
    return globals()[function](*arguments)


@functools.cache
def _pool() -> Pool:
    return Pool(f"{__name__}:serve", limit=120)


def _source(model: Any) -> str | bytes:
    if isinstance(model, onnx.ModelProto):
        data: bytes = model.SerializeToString()
        return data
    return model if isinstance(model, bytes) else str(model)


def floats(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Random numbers of a normal distribution, as float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
