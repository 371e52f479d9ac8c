"""`mo-loop convert` on files that are not models and on invalid graphs: the messages, and files that do not change."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mo_loop.api import convert_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.errors import InputError, MoLoopError, UsageError
from tests.harness import floats, parsed

from .commands import PLAIN, PYTORCH, assert_clear, assert_fails, assert_untouched, body, convert, saved

# -- files that are not models


def garbage(seed: int) -> bytes:
    """Some random bytes."""
    rng = np.random.default_rng(seed)
    return bytes(rng.integers(0, 256, int(rng.integers(1, 400)), np.uint8))


def truncated(share: float) -> Callable[[], bytes]:
    """The beginning of a model."""

    def make() -> bytes:
        data = (PYTORCH / "decoder.onnx").read_bytes()
        return data[: int(share * len(data))]

    return make


FILES: dict[str, tuple[bytes | Callable[[], bytes], str]] = {
    "empty": (b"", "is empty"),
    "text": (b"hello, this is no model\n" * 9, "not an ONNX model"),
    "json": (b'{"graph": {}}', "not an ONNX model"),
    "LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
    "zip": (b"PK\x03\x04" + bytes(64), "not an ONNX model"),
    "zeros": (bytes(64), "not an ONNX model"),
    "tensor": (numpy_helper.from_array(floats(4), "t").SerializeToString(), "not an ONNX model"),
    "no graph": (onnx.ModelProto(ir_version=8).SerializeToString(), "holds no graph"),
    **{f"truncated at {share}": (truncated(share), "") for share in (0.1, 0.5, 0.9, 0.999)},
    **{f"random {seed}": (garbage(seed), "") for seed in range(12)},
}


@pytest.mark.parametrize("name", FILES)
def test_other_files(name: str, tmp_path: Path, old_pair: Path) -> None:
    content, said = FILES[name]
    source = tmp_path / "model.onnx"
    source.write_bytes(content if isinstance(content, bytes) else content())
    done = convert(source, "-o", old_pair)
    assert_fails(done, said)
    assert done.stdout == ""
    assert_untouched(old_pair)


def test_missing_file_and_folder(tmp_path: Path, old_pair: Path) -> None:
    for source, said in ((tmp_path / "gone.onnx", "does not exist"), (tmp_path, "is a folder")):
        done = convert(source, "-o", old_pair)
        assert_fails(done, said, kept=old_pair)


def test_an_ir_in_place_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text("<net/>")
    done = convert(tmp_path / "model.xml", "-o", tmp_path / "model.xml")
    assert done.returncode == 2 and "give an .onnx file: an IR needs no conversion" in done.stderr


@pytest.mark.parametrize("seed", range(60))
def test_damaged_models(seed: int) -> None:
    """A model with some bytes changed converts or is refused with a clear error."""
    names = ("decoder", "loop_if_loop", "scan_reverse_dynamo", "if_shapes")
    data = bytearray((PYTORCH / f"{names[seed % len(names)]}.onnx").read_bytes())
    rng = np.random.default_rng(seed)
    for _ in range(int(rng.integers(1, 6))):
        data[rng.integers(len(data))] = rng.integers(256)
    assert isolated(exit_code_of, bytes(data)) in (0, 2, 3)


def exit_code_of(model: bytes) -> int:
    """The exit code of a conversion in memory."""
    try:
        convert_model(model).to_openvino()
    except MoLoopError as error:
        return error.exit_code
    return 0


# -- graphs that are broken


def wrong_axis() -> onnx.ModelProto:
    """A Softmax whose axis is given as a float."""
    made = parsed("main (float[3] x) => (float[3] y) { [here] y = Softmax <axis = 0> (x) }")
    made.graph.node[0].attribute[0].CopyFrom(helper.make_attribute("axis", 0.5))
    return made


BROKEN: dict[str, tuple[str | Callable[[], onnx.ModelProto], list[str]]] = {
    "undefined name": (body("[here] t = Add (s, ghost)"), ["Add", "opset 18", "'ghost'", "loop/step/here"]),
    "undefined output": (PLAIN.replace("y = Neg", "z = Neg"), ["nothing defines 'y'"]),
    "circle": (PLAIN.replace("Add (x, w)", "Add (x, y)"), ["cycle", "one", "two"]),
    "circle in a body": (body("[p] u = Add (s, t) [q] t = Neg (u)"), ["cycle", "p, q", "loop/step"]),
    "missing attribute": (body("[here] t = Cast (s)"), ["Cast", "opset 18", "'to'", "loop/step/here"]),
    "attributes of several versions": (
        body("[here] t = Dropout <ratio = 0.5, is_test = 1, seed = 7> (s)"),
        ["Dropout", "opset 18", "has no attribute", "loop/step/here"]),
    "attribute of another kind": (wrong_axis, ["Softmax", "opset 18", "'axis'", "here"]),
    "too many inputs": (body("[here] t = Neg (s, s)"), ["Neg", "opset 18", "at most 1", "loop/step/here"]),
    "too few inputs": (body("[here] t = Add (s)"), ["Add", "opset 18", "loop/step/here"]),
    "too many outputs": (body("[here] t, u = Neg (s) v = Abs (u)"), ["Neg", "opset 18", "'u'", "loop/step/here"]),
    "no inputs at all": (body("[here] t = Concat <axis = 0> ()"), ["Concat", "opset 18", "loop/step/here"]),
    "shapes that do not fit": (
        body("[here] t = Add (s, k)").replace("(bool d, float[3] t)", "(bool d, float[3] t) <float[2] k = {1.0, 2.0}>"),
        ["Add", "opset 18", "f32[3]", "f32[2]", "loop/step/here"]),
    "element types that do not fit": (body("[here] t = Add (s, i)"), ["Add", "f32[3]", "i64[]", "loop/step/here"]),
    "two nodes of one output": (
        body("u = Neg (s) v = Abs (u) u = Abs (s) t = Add (v, u)"), ["two nodes make 'u'", "loop"]),
    "too few body inputs": (
        body("t = Neg (c)").replace("int64 i, bool c, float[3] s", "int64 i, bool c"),
        ["Loop", "opset 18", "inputs of the body is 2", "loop"]),
    "too few body outputs": (body("").replace(", float[3] t", ""), ["Loop", "opset 18", "too few values: 1", "loop"]),
    "outputs of a loop": (body("t = Neg (s)").replace("] y =", "] z, y ="), ["Loop", "opset 18", "'y'", "loop"]),
    "branches of different number": (
        """main (float[3] x, bool f) => (float[3] y) { [choice] y = If (f) <
          then_branch = a () => (float[3] p, float[3] q) { p = Neg (x) q = Abs (x) },
          else_branch = b () => (float[3] r) { r = Neg (x) }> }""", ["If", "opset 18", "then_branch (2)", "choice"]),
    "body that is missing": (
        'main (float[3] x, int64 n) => (float[3] y) { [loop] y = Loop (n, "", x) }',
        ["Loop", "opset 18", "'body'", "loop"]),
    "scan of different lengths": (
        """main (float[2,3] a, float[4,3] b) => (float[T,3] y) {
          [scan] y = Scan <num_scan_inputs = 2, body = step (float[3] p, float[3] q) => (float[3] r) {
            r = Add (p, q) }> (a, b) }""", ["Scan", "opset 18", "different lengths", "scan"]),
    "too few weights": (lambda: _with_short_weight(parsed(PLAIN)), ["'w'", "f32[3]"]),
}


def _with_short_weight(model: onnx.ModelProto) -> onnx.ModelProto:
    del model.graph.initializer[0].float_data[2:]
    return model


@pytest.mark.parametrize("name", BROKEN)
def test_broken_graphs(name: str, tmp_path: Path, old_pair: Path) -> None:
    """The message names the node, the path, the operator set and the reason."""
    made, said = BROKEN[name]
    source = saved(parsed(made) if isinstance(made, str) else made(), tmp_path)
    done = convert(source, "-o", old_pair)
    assert_fails(done)
    missing = [each for each in said if each not in done.stderr]
    assert not missing, done.stderr
    assert done.stderr.count("where:") <= 1
    assert_untouched(old_pair)


def test_traceback_on_request(tmp_path: Path, old_pair: Path) -> None:
    source = saved(parsed(body("[here] t = Add (s, ghost)")), tmp_path)
    plain, debug = convert(source, "-o", old_pair), convert(source, "-o", old_pair, "--debug")
    assert (plain.returncode, debug.returncode) == (2, 2)
    assert_clear(plain.stderr)
    assert "Traceback (most recent call last)" in debug.stderr and debug.stderr.endswith(plain.stderr)
    assert_untouched(old_pair)


@pytest.mark.parametrize(("domain", "opset", "said"), [
    ("", None, "imports no operator set of ONNX"), ("com.example", 1, "imports no operator set of ONNX"),
    ("", 0, "opset 0, which does not exist"), ("ai.onnx", -1, "opset -1, which does not exist"),
    ("", 999, "opset 999"),
])
def test_unknown_opsets_are_refused(tmp_path: Path, old_pair: Path, domain: str, opset: int | None, said: str) -> None:
    made = parsed(PLAIN)
    del made.opset_import[:]
    if opset is not None:
        made.opset_import.append(helper.make_opsetid(domain, opset))
    done = convert(saved(made, tmp_path), "-o", old_pair)
    assert_fails(done, said, kept=old_pair)


def test_a_model_without_outputs_is_refused_unless_outputs_are_named(tmp_path: Path, old_pair: Path) -> None:
    made = parsed(PLAIN)
    name = made.graph.output[0].name
    del made.graph.output[:]
    source = saved(made, tmp_path)
    done = convert(source, "-o", old_pair)
    assert_fails(done, "ML220: the model has no outputs", repr(name), kept=old_pair)
    with pytest.raises(UsageError, match="output has no name"):
        convert_model(source, output=[])
    assert [each.name for each in convert_model(source, output=[name]).graph.results]


def test_to_openvino_without_the_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    model = convert_model(parsed(PLAIN))
    monkeypatch.setitem(sys.modules, "openvino", None)  # makes the import fail
    with pytest.raises(InputError) as raised:
        model.to_openvino()
    assert (raised.value.code, raised.value.exit_code) == ("ML203", 2)
    assert "the package openvino cannot be imported" in str(raised.value)
    assert raised.value.hint == "pip install openvino"


def test_unsupported(tmp_path: Path, old_pair: Path) -> None:
    source = saved(parsed(body("[here] t = odd.Op (s)"), odd=1), tmp_path)
    done = convert(source, "-o", old_pair)
    assert_fails(done, "odd::Op", "loop/step/here", code=3, kept=old_pair)
