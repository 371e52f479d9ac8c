"""Whether `mo_loop.verify` fails a planted fault, and passes a planted rounding and a right model.

    what, verdict, message = fault_verdict((1, 3))          # fault 3 of `planted` with seed 1
    what, verdict, message = rounding_verdict((1, 3))       # an IR that adds in another order, or has weights in f16
    what, verdict, message = right_verdict((1, 3))          # a random model with control flow, rightly converted
    verdict, message = model_verdict(("m.onnx", 0, None))   # a right model, with inputs of seed 0

A rounding is an IR that computes the same in exact arithmetic: sums in another order, `(x + b / w) * w` for
`x * w + b`, weights in f16. Its networks are deep, wide, or end in differences of almost equal sums.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from mo_loop.api import Model, convert_model, save_model
from mo_loop.compare.results.array_comparison import AMPLIFIED
from mo_loop.compare.verifying import verify
from mo_loop.errors import MoLoopError, NotComparableError
from mo_loop.support.workers import report_stage
from tests.fuzz.control_flow.generator import generate
from tests.fuzz.planted.judging import UNSEEN, numbered, showing
from tests.models.sources import registry_kinds

FAILS, PASSES = "fails", "passes"
AGREES, ROUNDS, NO_INPUTS = "agrees", "passes by rounding", "no inputs"
NOT_COMPARED = "not compared"

REORDERED, FUSED, HALF = KINDS = ("reordered sum", "fused multiply-add", "f16 weights")


def fault_verdict(task: tuple[int, ...]) -> tuple[str, str, str]:
    """(description, verdict, message) of a fault, with the set of inputs of a third number, or the first for which the
    fault changes an output. Runs native code."""
    each = numbered(*task[:2])
    what = f"{each.name}, {each.fault.kind} at {each.fault.path} ({each.fault.change})"
    feeds = each.feeds[task[2]] if task[2:] else showing(each)
    if feeds is None:
        return what, UNSEEN, ""
    report_stage("verify")
    with tempfile.TemporaryDirectory() as name:
        path, ir = Path(name, "model.onnx"), Path(name, "model.xml")
        onnx.save(each.declared, path)
        save_model(Model(each.fault.graph), ir)
        return what, *_verdict(path, ir, feeds)


def rounding_verdict(task: tuple[int, int]) -> tuple[str, str, str]:
    """(description, verdict, message) of a rounding. Runs native code."""
    seed, number = task
    kind, model, other = rounding(seed, number)
    with tempfile.TemporaryDirectory() as name:
        path, ir = Path(name, "model.onnx"), Path(name, "other.xml")
        onnx.save(model, path)
        save_model(convert_model(other), ir, compress_to_fp16=kind == HALF)
        x = np.random.default_rng((seed, number, 1)).standard_normal((4, 64)).astype(np.float32)
        return f"{kind} {seed}-{number}", *_verdict(path, ir, {"x": x})


def right_verdict(task: tuple[int, int]) -> tuple[str, str, str]:
    """(description, verdict, message) of a random model that is converted rightly. Runs native code."""
    seed, number = task
    what = f"random {seed}-{number}"
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "model.onnx")
        onnx.save(generate(seed, number).declared, path)
        return what, *_verdict(path)


def model_verdict(task: tuple[str, int, str | None]) -> tuple[str, str]:
    """(verdict, message) of a right model without given inputs: the file or the name of its kind, the seed of the
    inputs, and the interpreter of the OpenVINO release that runs the IR, None for the installed one."""
    name, seed, python = task
    with tempfile.TemporaryDirectory() as folder:
        path = Path(name)
        if name in registry_kinds.KINDS:
            path = Path(folder, "model.onnx")
            onnx.save(registry_kinds.KINDS[name](), path)
        try:
            report = verify(path, seed=seed, python=python)
        except NotComparableError as error:
            return NO_INPUTS, f"{error.code}: {error.message}: {error.why}"
    side = report.sides[0]
    text = f"{len(report.sets)} sets, {len(side.rows)} rows; {' | '.join(report.notes)}"
    if not report.passed:
        differing = "; ".join(str(row.result) for row in side.worst if not row.result)
        return side.status, f"{side.message} {differing}; {text}"
    roundings = [str(row.result) for row in side.worst if row.result.kind == AMPLIFIED]
    return (ROUNDS, "; ".join(roundings)) if roundings else (AGREES, text)


def _verdict(path: Path, ir: Path | None = None, *sets: Any) -> tuple[str, str]:
    try:
        report = verify(path, ir, inputs=sets)
    except MoLoopError as error:  # ONNX Runtime does not run it, or it is not converted
        return NOT_COMPARED, f"{error.code}: {error.message}: {error.why}"
    rows = report.sides[0].worst
    text = "; ".join(str(row.result) for row in rows if not row.result or row.result.kind == AMPLIFIED)
    return PASSES if report.passed else FAILS, text or report.sides[0].message


def rounding(seed: int, number: int) -> tuple[str, onnx.ModelProto, onnx.ModelProto]:
    """The kind, a model, and one that is equal to it but for rounding."""
    rng = np.random.default_rng((seed, number))
    kind = KINDS[number % len(KINDS)]
    model, other = _Network(), _Network()
    width = 64
    for _ in range(int(rng.integers(1, 6))):
        wide = int(rng.choice([16, 64, 256, 1024]))
        weight = (rng.standard_normal((width, wide)) / np.sqrt(width)).astype(np.float32)
        scale = (rng.uniform(0.5, 2, wide) * rng.choice([-1, 1], wide)).astype(np.float32)
        bias = rng.standard_normal(wide).astype(np.float32)
        order = rng.permutation(width)
        model.product(weight)
        other.product(weight, order if kind == REORDERED else None)
        model.scaled(scale, bias)
        other.scaled(scale, bias, as_quotient=kind == FUSED)
        activation = str(rng.choice(["Tanh", "Relu", "Sigmoid"]))
        model.add(activation)
        other.add(activation)
        width = wide
    if rng.random() < 0.5:  # almost equal sums
        weight = (100 * rng.standard_normal((width, 8))).astype(np.float32)
        close = (weight * (1 + 1e-4 * rng.standard_normal((width, 8)))).astype(np.float32)
        order = rng.permutation(width)
        model.difference(weight, close)
        other.difference(weight, close, order if kind == REORDERED else None)
    return kind, model.made(), other.made()


class _Network:
    """A chain of layers on `x`."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._weights: dict[str, np.ndarray] = {}
        self._value = "x"

    def add(self, operator: str, *constants: np.ndarray, value: str = "", **attributes: Any) -> str:
        """A node with the last value, or another one, as its first input."""
        names = []
        for constant in constants:
            names.append(f"w{len(self._weights)}")
            self._weights[names[-1]] = constant
        result = f"v{len(self._nodes)}"
        self._nodes.append(onnx.helper.make_node(operator, [value or self._value, *names], [result], **attributes))
        self._value = result
        return result

    def product(self, weight: np.ndarray, order: np.ndarray | None = None, value: str = "") -> str:
        """A product; with `order` the sum is in another order."""
        if order is None:
            return self.add("MatMul", weight, value=value)
        return self.add("MatMul", weight[order], value=self.add("Gather", order, value=value, axis=1))

    def scaled(self, scale: np.ndarray, bias: np.ndarray, as_quotient: bool = False) -> None:
        """x * scale + bias, or (x + bias / scale) * scale."""
        steps = (("Add", bias / scale), ("Mul", scale)) if as_quotient else (("Mul", scale), ("Add", bias))
        for operator, constant in steps:
            self.add(operator, constant)

    def difference(self, left: np.ndarray, right: np.ndarray, order: np.ndarray | None = None) -> None:
        """The difference of two products."""
        value = self._value
        first = self.product(left, order, value)
        second = self.product(right, order, value)
        self._nodes.append(onnx.helper.make_node("Sub", [first, second], ["d"]))
        self._value = "d"

    def made(self) -> onnx.ModelProto:
        kind, make = onnx.TensorProto.FLOAT, onnx.helper.make_tensor_value_info
        weights = [numpy_helper.from_array(value, name) for name, value in self._weights.items()]
        self._nodes.append(onnx.helper.make_node("Identity", [self._value], ["y"]))
        graph = onnx.helper.make_graph(
            self._nodes, "g", [make("x", kind, ["B", 64])], [make("y", kind, None)], weights
        )
        return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
