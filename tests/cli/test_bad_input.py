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
from tests.harness import floats, parsed, raised

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


def short_weight() -> onnx.ModelProto:
    """A weight with fewer elements than its shape."""
    made = parsed(PLAIN)
    del made.graph.initializer[0].float_data[2:]
    return made


BROKEN: dict[str, tuple[Callable[[], onnx.ModelProto], list[str]]] = {
    "attribute of another kind": (wrong_axis, ["Softmax", "opset 18", "'axis'", "here"]),
    "too few weights": (short_weight, ["'w'", "f32[3]"]),
}
"""Others are in tests/cli/recorded/broken.txt."""


@pytest.mark.parametrize("name", BROKEN)
def test_broken_graphs(name: str, tmp_path: Path, old_pair: Path) -> None:
    """The message names the node, the path, the operator set and the reason."""
    made, said = BROKEN[name]
    source = saved(made(), tmp_path)
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
    raised(UsageError, convert_model, source, output=[], match="output has no name")
    assert [each.name for each in convert_model(source, output=[name]).graph.results]


def test_to_openvino_without_the_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    model = convert_model(parsed(PLAIN))
    monkeypatch.setitem(sys.modules, "openvino", None)  # makes the import fail
    caught = raised(InputError, model.to_openvino)
    assert (caught.code, caught.exit_code) == ("ML203", 2)
    assert "the package openvino cannot be imported" in str(caught)
    assert caught.hint == "pip install openvino"
