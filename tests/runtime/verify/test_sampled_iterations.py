"""Which iterations of a loop are compared: all, or some of a loop whose outputs agree."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop.api import save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.layers import assign_origins, compared, lockstep
from mo_loop.compare.verifying import verify
from mo_loop.conversion import Conversion
from mo_loop.converted_model import Model, read_model
from mo_loop.options import ConvertOptions
from mo_loop.transforms.config import PassConfig
from tests.harness import parsed

FAULT = 57
"""The only iteration with a fault, whose factor is another one in the IR."""

ONE_STEP = """main (float[4] x) => (float[4] y)
  <int64 n = {100}, int64 one = {57}, float gain = {%s}, float b = {0.5}> {
  [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
    d = Identity (c) t = %s (v) s = Add (t, b) is = Equal (i, one)
    [if] w = If (is) <then_branch = yes () => (float[4] p) { [gain] p = Mul (s, gain) },
                      else_branch = no () => (float[4] q) { q = Identity (s) }> }> }"""

PLAIN = """main (float[4] x) => (float[4] y) <int64 n = {100}, float b = {0.5}> {
  [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
    d = Identity (c) t = Sin (v) w = Add (t, b) }> }"""

WHILE = """main (float[4] x) => (float[4] y) <float b = {1}, float most = {98.5}> {
  [loop] y = Loop ("", "", x) <body = step (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
    w = Add (v, b) m = ReduceMax <keepdims = 0> (w) d = Less (m, most) }> }"""

X = np.linspace(0.0, 0.1, 4, dtype=np.float32)


def written(model: onnx.ModelProto, path: Path, *without: str) -> Path:
    """The IR of a model, converted without these passes."""
    config = PassConfig()
    config.disable(*without)
    save_model(Model(Conversion(ConvertOptions(config=config)).run(model.SerializeToString())), path)
    return path


@pytest.mark.parametrize("layers", [False, True])
def test_a_fault_of_one_of_a_hundred_iterations_is_named(tmp_path: Path, layers: bool) -> None:
    right, wrong = (parsed(ONE_STEP % (gain, "Identity")) for gain in ("1.5", "1.6"))
    onnx.save(right, tmp_path / "m.onnx")
    ir = written(wrong, tmp_path / "wrong.xml", "StepsPerIteration")
    report = verify(tmp_path / "m.onnx", ir, inputs=[{"x": X}], layers=layers)
    assert report.verdict == "differs"
    assert (report.layers.iterations, report.layers.node) == ((("loop", FAULT),), "gain")


def test_a_fault_that_fades_before_the_end_is_found_with_all_iterations(tmp_path: Path) -> None:
    right, wrong = (parsed(ONE_STEP % (gain, "Sin")) for gain in ("1.5", "1.6"))
    onnx.save(right, tmp_path / "m.onnx")
    ir = written(wrong, tmp_path / "wrong.xml", "StepsPerIteration")
    assert verify(tmp_path / "m.onnx", ir, inputs=[{"x": X}]).verdict == "agrees"
    report = verify(tmp_path / "m.onnx", ir, inputs=[{"x": X}], layers=True)
    assert (report.verdict, report.layers.iterations) == ("differs", (("loop", FAULT),))


def counted(model: bytes, ir: str, samples: bool) -> tuple[list[int], Any]:
    """The iterations that the IR runs, and the findings."""
    counts: list[int] = []

    class Counted(lockstep.IrLoop):
        def begin(self) -> Any:
            counts.append(self.count)
            return super().begin()

    graph = read_model(ir).graph
    assign_origins(graph, model)
    before, lockstep.IrLoop = lockstep.IrLoop, Counted  # type: ignore[misc]  # in a process of its own
    try:
        return counts, compared(model, graph, {"x": X}, samples=samples)
    finally:
        lockstep.IrLoop = before  # type: ignore[misc]


@pytest.mark.parametrize(("text", "count"), [(PLAIN, 100), (WHILE, 99)])
def test_of_a_loop_whose_outputs_agree_nine_of_a_hundred_iterations_are_compared(
    tmp_path: Path, text: str, count: int
) -> None:
    model, ir = parsed(text), tmp_path / "m.xml"
    written(model, ir, "StepsPerIteration")
    counts, found = isolated(counted, model.SerializeToString(), str(ir), True)
    assert counts == [0, 1, 2, 4, 8, 16, 32, 64, count - 1]
    assert found.difference is None and not found.undecided
    counts, every = isolated(counted, model.SerializeToString(), str(ir), False)
    assert counts == list(range(count))
    assert every.count == found.count


def test_of_several_steps_in_each_iteration_some_are_compared(tmp_path: Path) -> None:
    model, ir = parsed(PLAIN.replace("{100}", "{200}")), tmp_path / "m.xml"
    written(model, ir)
    counts, found = isolated(counted, model.SerializeToString(), str(ir), True)
    every, _ = isolated(counted, model.SerializeToString(), str(ir), False)
    assert every == list(range(len(every))) and len(every) < 200
    assert counts == [0, 1, 2, 4, 8, every[-1]] and found.difference is None
