"""`mo-loop convert --sequence-io packed`: sequences as inputs and outputs of a converted model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mo_loop
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import run_ir
from tests.harness import floats, parsed

from .commands import assert_fails, convert, ended, saved

TURNED = """
main (seq(float[?,3]) s, int64 k, float[3] x) => (seq(float[?,3]) t, int64 n, float[?,3] one) {
  one = SequenceAt (s, k) bigger = Add (one, x) s1 = SequenceErase (s, k) t = SequenceInsert (s1, bigger)
  n = SequenceLength (t)
}"""

MAPPED = """
main (seq(float[?,?]) s, float f) => (seq(float[?,?]) t, seq(int64[2]) shapes) {
  t, shapes = SequenceMap (s, f) <body = each (float[?,?] e, float g) => (float[?,?] r, int64[2] l) {
    r = Mul (e, g) l = Shape (e)
  }>
}"""


def expected(model: bytes, feeds: dict[str, Any]) -> dict[str, Any]:
    """The results of ONNX Runtime; a sequence is a list."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    given = {name: value if isinstance(value, list) else np.asarray(value) for name, value in feeds.items()}
    return dict(zip(names, session.run(names, given), strict=True))


def packed(feeds: dict[str, Any]) -> dict[str, Any]:
    """The inputs in the form of the converted model."""
    found: dict[str, Any] = {}
    for name, value in feeds.items():
        if isinstance(value, list):
            value = mo_loop.pack_sequence(value, rank=2, dtype=np.float32)
            found[f"{name}.data"], found[f"{name}.shapes"] = value
        else:
            found[name] = value
    return found


def ragged(*rows: int, columns: int = 3) -> list[np.ndarray]:
    return [floats(each, columns, seed=each) for each in rows]


@pytest.mark.parametrize(("text", "sets"), [
    pytest.param(
        TURNED,
        [
            {"s": ragged(2, 1, 4), "k": np.int64(1), "x": floats(3)},
            {"s": ragged(3), "k": np.int64(0), "x": floats(3, seed=1)},
            {"s": ragged(1, 2, 3, 4, 5, 6), "k": np.int64(-2), "x": floats(3, seed=2)},
            {"s": ragged(0, 2), "k": np.int64(0), "x": floats(3)},
        ], id="places"),
    pytest.param(
        MAPPED,
        [
            {"s": [floats(2, 3), floats(1, 5), floats(4, 1)], "f": np.float32(2)},
            {"s": [floats(7, 2)], "f": np.float32(-0.5)},
            {"s": [], "f": np.float32(1)},
        ], id="any_shape"),
])
def test_sequences_as_inputs_and_outputs(text: str, sets: list[dict[str, Any]], tmp_path: Path) -> None:
    model = parsed(text)
    target = tmp_path / "m.xml"
    done = convert(saved(model, tmp_path), "-o", target, "--sequence-io", "packed")
    assert (done.returncode, done.stderr) == (0, "")
    for feeds, found in zip(sets, isolated(run_ir, str(target), [packed(each) for each in sets]), strict=True):
        values = dict(found)
        for name, wanted in isolated(expected, model.SerializeToString(), feeds).items():
            if not isinstance(wanted, list):
                np.testing.assert_allclose(values[name], wanted, rtol=1e-6)
                continue
            items = mo_loop.unpack_sequence(values[f"{name}.data"], values[f"{name}.shapes"])
            assert [each.shape for each in items] == [each.shape for each in wanted]
            for item, each in zip(items, wanted, strict=True):
                assert item.dtype == each.dtype
                np.testing.assert_allclose(item, each, rtol=1e-6)


def test_without_the_option_the_error_names_it(tmp_path: Path) -> None:
    done = convert(saved(parsed(TURNED), tmp_path), "-o", tmp_path / "m.xml")
    assert_fails(done, "ML310", "--sequence-io packed", code=3)
    assert not (tmp_path / "m.xml").exists()


def test_elements_of_unknown_rank_need_a_shape(tmp_path: Path) -> None:
    text = "main (seq(float[]) s) => (float[?] y) { y = ConcatFromSequence <axis=0> (s) }"
    model = parsed(text)
    model.graph.input[0].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    source, target = saved(model, tmp_path), tmp_path / "m.xml"
    assert "--input 's[?,?]'" in ended(convert(source, "-o", target, "--sequence-io", "packed"), 3).stderr
    done = convert(source, "-o", target, "--sequence-io", "packed", "--input", "s[?]")
    assert (done.returncode, done.stderr) == (0, "")
    items = [floats(2), floats(5, seed=1)]
    data, shapes = mo_loop.pack_sequence(items)
    [found] = isolated(run_ir, str(target), [{"s.data": data, "s.shapes": shapes}])
    np.testing.assert_array_equal(found[0][1], np.concatenate(items))
