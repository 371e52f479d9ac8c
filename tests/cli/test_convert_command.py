"""`mo-loop convert` as a user runs it: what it writes, what it says, and what it leaves alone when it fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import helper, numpy_helper
from support import check, floats, native, parsed

from mo_loop.cli import main
from mo_loop.convert import convert_model, save_model
from mo_loop.errors import FileError, MoLoopError, UsageError
from mo_loop.ir import xml as writer
from mo_loop.text import parse, to_text

PYTORCH = Path(__file__).parents[1] / "models" / "pytorch"

PLAIN = """
main (float[3] x) => (float[3] y) <float[3] w = {1.0, 2.0, 3.0}> { [one] a = Add (x, w) [two] y = Neg (a) }"""

LOOP = """
main (float[3] x, int64 n) => (float[3] y) {
  [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
    d = Identity (c) BODY }> }"""


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "mo_loop", "convert", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)


def invoke(*arguments: object) -> Any:
    """The command in this process, which is faster."""
    return CliRunner().invoke(main, ["convert", *map(str, arguments)])


def saved(model: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    """The model as a file."""
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return saved(parsed(PLAIN), tmp_path)


@pytest.fixture
def old_pair(tmp_path: Path) -> Path:
    """The .xml of a pair that an earlier conversion wrote."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "model.xml").write_bytes(b"<old/>")
    (folder / "model.bin").write_bytes(b"old weights")
    return folder / "model.xml"


def assert_untouched(xml: Path) -> None:
    """The old pair is as it was, and nothing stands beside it."""
    assert xml.read_bytes() == b"<old/>"
    assert xml.with_suffix(".bin").read_bytes() == b"old weights"
    assert sorted(path.name for path in xml.parent.iterdir()) == ["model.bin", "model.xml"]


def assert_clear(stderr: str) -> None:
    """One message, its code first, without a traceback."""
    assert stderr.startswith("error: ML"), stderr
    assert stderr.count("error: ") == 1
    assert "Traceback" not in stderr and 'File "' not in stderr
    assert "bug of mo-loop" not in stderr


# -- what works


def test_both_files_and_a_summary(tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "decoder.xml"
    done = run(PYTORCH / "decoder.onnx", "-o", target)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    assert done.stdout.startswith(str(target)) and "1 Loop" in done.stdout
    assert sorted(path.name for path in target.parent.iterdir()) == ["decoder.bin", "decoder.xml"]
    native("run_ir", str(target), [])


def test_relative_paths(plain: Path) -> None:
    done = run(plain.name, "-o", "m.xml", cwd=plain.parent)
    assert done.returncode == 0
    assert (plain.parent / "m.xml").exists() and (plain.parent / "m.bin").exists()


def test_an_old_pair_is_replaced(plain: Path, old_pair: Path) -> None:
    assert invoke(plain, "-o", old_pair).exit_code == 0
    assert old_pair.read_bytes().startswith(b"<?xml")
    assert sorted(path.name for path in old_pair.parent.iterdir()) == ["model.bin", "model.xml"]


def test_warnings_are_told_once_on_stderr(tmp_path: Path) -> None:
    """A body is translated several times while its states settle; what is odd about it is said once."""
    text = LOOP.replace("float[3] s", "x").replace("float[3] t", "t").replace("float[3] y", "float[R] y")
    source = saved(parsed(text.replace("BODY", "t = Concat <axis = 0> (x, x)")), tmp_path)
    done = run(source, "-o", tmp_path / "m.xml")
    assert done.returncode == 0
    assert done.stderr == "warning: loop/step: 'x' hides an outer value of that name\n"


def test_cuts(plain: Path, tmp_path: Path) -> None:
    assert invoke(plain, "-o", tmp_path / "a.xml", "--output", "a").exit_code == 0
    assert native("run_ir", str(tmp_path / "a.xml"), [{"x": np.zeros(3, np.float32)}])[0][0][0] == "a"
    with pytest.raises(MoLoopError):  # the element type of `a` is not declared
        convert_model(plain, input="a")
    check(plain, {"x": floats(3)}, expected=[[("a", floats(3) + np.float32([1, 2, 3]))]], output=["a"], rtol=1e-6)
    wrong = invoke(plain, "-o", tmp_path / "b.xml", "--output", "aa")
    assert wrong.exit_code == 2
    assert "did you mean 'a'?" in wrong.stderr


def test_input_shapes() -> None:
    made = parsed("main (float[N, M] x) => (float[N, M] y) { y = Neg (x) }")
    converted = convert_model(made, input={"x": [2, None]})
    assert str(converted.graph.parameters[0].output.type) == "f32[2,?]"
    with pytest.raises(UsageError):
        convert_model(made, input={"x": [2, "no name"]})


def test_half_precision(tmp_path: Path) -> None:
    """The .bin is halved, also for weights in bodies, and numbers stay close."""
    weight = floats(64, 64, seed=3) / 8
    made = parsed("""
        main (float[1,64] x, int64 n) => (float[1,64] y) {
          h = MatMul (x, outer)
          [loop] y = Loop (n, "", h) <body = step (int64 i, bool c, float[1,64] s) => (bool d, float[1,64] t) {
            d = Identity (c) u = MatMul (s, inner) t = Tanh (u) }> }""")
    body = made.graph.node[1].attribute[0].g
    made.graph.initializer.append(numpy_helper.from_array(weight, "outer"))
    body.initializer.append(numpy_helper.from_array(weight.T.copy(), "inner"))
    source = saved(made, tmp_path)
    for name, flags in (("full", []), ("half", ["--compress-to-fp16"])):
        done = invoke(source, "-o", tmp_path / f"{name}.xml", *flags)
        assert done.exit_code == 0, done.stderr
    full, half = ((tmp_path / f"{name}.bin").stat().st_size for name in ("full", "half"))
    assert full >= 2 * weight.nbytes
    assert half < 0.52 * full
    feeds = [{"x": floats(1, 64, seed=n), "n": n} for n in (3, 0, 1)]
    check(made, *feeds, compress_to_fp16=True, rtol=1e-2, atol=1e-2)
    check(made, *feeds)


def test_kinds_of_sources(plain: Path, tmp_path: Path) -> None:
    """A path, its text, bytes and a ModelProto give the same files."""
    proto = onnx.load(plain)
    found = set()
    for source in (plain, str(plain), plain.read_bytes(), proto):
        save_model(convert_model(source), tmp_path / "m.xml")
        found.add(((tmp_path / "m.xml").read_bytes(), (tmp_path / "m.bin").read_bytes()))
    assert len(found) == 1


def in_memory(source: str, feeds: list[dict[str, Any]]) -> list[Any]:
    """to_openvino() without a file."""
    from mo_loop.verify.runtime import compile_model

    compiled = compile_model(convert_model(source).to_openvino())
    return [compiled.run(each) for each in feeds]


def test_model_in_memory(tmp_path: Path) -> None:
    source = PYTORCH / "for_trip_count.onnx"
    save_model(convert_model(source), tmp_path / "m.xml")
    feeds = [{"x": floats(2, 4), "count": np.array(count)} for count in (3, 0)]
    found = native("call", __name__, "in_memory", str(source), feeds)
    wanted = native("run_ir", str(tmp_path / "m.xml"), feeds)
    for left, right in zip(found, wanted, strict=True):
        assert [name for name, _ in left] == [name for name, _ in right]
        assert all(np.array_equal(a, b) for (_, a), (_, b) in zip(left, right, strict=True))


def test_dump(tmp_path: Path) -> None:
    """Numbered files for each step that changed something; the text is read back."""
    steps = tmp_path / "steps"
    assert invoke(PYTORCH / "for_break.onnx", "-o", tmp_path / "m.xml", "--dump", steps).exit_code == 0
    names = sorted(path.name for path in steps.iterdir())
    stems = sorted({name.rpartition(".")[0] for name in names})
    assert stems[0] == "000_loaded" and len(stems) > 3
    assert [int(stem[:3]) for stem in stems] == list(range(len(stems)))
    assert names == sorted(f"{stem}.{ending}" for stem in stems for ending in ("txt", "dot", "json"))
    for stem in stems:
        text = (steps / f"{stem}.txt").read_text(encoding="utf-8")
        assert to_text(parse(text)) == text
        assert json.loads((steps / f"{stem}.json").read_text(encoding="utf-8"))["nodes"]
        assert (steps / f"{stem}.dot").read_text(encoding="utf-8").startswith("digraph")
    last = (steps / f"{stems[-1]}.txt").read_text(encoding="utf-8")
    converted = convert_model(PYTORCH / "for_break.onnx")
    assert to_text(converted.graph) == last


# -- files that are no models


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
    done = invoke(source, "-o", old_pair)
    assert done.exit_code == 2
    assert_clear(done.stderr)
    assert said in done.stderr and done.stdout == ""
    assert_untouched(old_pair)


def test_missing_file_and_folder(tmp_path: Path, old_pair: Path) -> None:
    for source, said in ((tmp_path / "gone.onnx", "there is no file"), (tmp_path, "is a folder")):
        done = run(source, "-o", old_pair)
        assert done.returncode == 2
        assert_clear(done.stderr)
        assert said in done.stderr
        assert_untouched(old_pair)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_models(seed: int) -> None:
    """Some bytes of a model changed: a clear refusal or a model, never a stumble."""
    names = ("decoder", "loop_if_loop", "scan_reverse_dynamo", "if_shapes")
    data = bytearray((PYTORCH / f"{names[seed % len(names)]}.onnx").read_bytes())
    rng = np.random.default_rng(seed)
    for _ in range(int(rng.integers(1, 6))):
        data[rng.integers(len(data))] = rng.integers(256)
    try:
        convert_model(bytes(data)).to_openvino  # noqa: B018  (a model is as good as a refusal)
    except MoLoopError as error:
        assert error.exit_code in (2, 3), error


# -- graphs that are broken


def body(text: str) -> str:
    """The loop above with the last statements of its body."""
    return LOOP.replace("BODY", text)


def wrong_axis() -> onnx.ModelProto:
    """A Softmax whose axis is given as a float."""
    made = parsed("main (float[3] x) => (float[3] y) { [here] y = Softmax <axis = 0> (x) }")
    made.graph.node[0].attribute[0].CopyFrom(helper.make_attribute("axis", 0.5))
    return made


BROKEN: dict[str, tuple[str | Callable[[], onnx.ModelProto], list[str]]] = {
    "undefined name": (body("[here] t = Add (s, ghost)"), ["Add", "opset 18", "'ghost'", "loop/step/here"]),
    "undefined output": (PLAIN.replace("y = Neg", "z = Neg"), ["nothing defines 'y'"]),
    "circle": (PLAIN.replace("Add (x, w)", "Add (x, y)"), ["circle", "one", "two"]),
    "circle in a body": (body("[p] u = Add (s, t) [q] t = Neg (u)"), ["circle", "p, q", "loop/step"]),
    "missing attribute": (body("[here] t = Cast (s)"), ["Cast", "opset 18", "'to'", "loop/step/here"]),
    "unknown attribute": (body("[here] t = Neg <odd = 1> (s)"), ["Neg", "opset 18", "'odd'", "loop/step/here"]),
    "attribute of another kind": (wrong_axis, ["Softmax", "opset 18", "'axis'", "here"]),
    "too many inputs": (body("[here] t = Neg (s, s)"), ["Neg", "opset 18", "at most 1", "loop/step/here"]),
    "too few inputs": (body("[here] t = Add (s)"), ["Add", "opset 18", "loop/step/here"]),
    "too many outputs": (body("[here] t, u = Neg (s) v = Abs (u)"), ["Neg", "opset 18", "'u'", "loop/step/here"]),
    "no inputs at all": (body("[here] t = Concat <axis = 0> ()"), ["Concat", "opset 18", "loop/step/here"]),
    "shapes that do not fit": (
        body("[here] t = Add (s, k)").replace("(bool d, float[3] t)", "(bool d, float[3] t) <float[2] k = {1.0, 2.0}>"),
        ["Add", "opset 18", "f32[3]", "f32[2]", "loop/step/here"],
    ),
    "element types that do not fit": (body("[here] t = Add (s, i)"), ["Add", "f32[3]", "i64[]", "loop/step/here"]),
    "two nodes of one output": (body("u = Neg (s) u = Abs (s) t = Add (s, u)"), ["two nodes make 'u'", "loop"]),
    "too few body inputs": (
        body("t = Neg (c)").replace("int64 i, bool c, float[3] s", "int64 i, bool c"),
        ["Loop", "opset 18", "2 inputs", "loop"],
    ),
    "too few body outputs": (body("").replace(", float[3] t", ""), ["Loop", "opset 18", "returns 1", "loop"]),
    "outputs of a loop": (body("t = Neg (s)").replace("] y =", "] z, y ="), ["Loop", "opset 18", "'y'", "loop"]),
    "branches of different number": (
        """main (float[3] x, bool f) => (float[3] y) { [choice] y = If (f) <
          then_branch = a () => (float[3] p, float[3] q) { p = Neg (x) q = Abs (x) },
          else_branch = b () => (float[3] r) { r = Neg (x) }> }""",
        ["If", "opset 18", "returns 2", "choice"],
    ),
    "body that is missing": (
        "main (float[3] x, int64 n) => (float[3] y) { [loop] y = Loop (n, \"\", x) }",
        ["Loop", "opset 18", "'body'", "loop"],
    ),
    "scan of different lengths": (
        """main (float[2,3] a, float[4,3] b) => (float[T,3] y) {
          [scan] y = Scan <num_scan_inputs = 2, body = step (float[3] p, float[3] q) => (float[3] r) {
            r = Add (p, q) }> (a, b) }""",
        ["Scan", "opset 18", "different lengths", "scan"],
    ),
    "too few weights": (
        lambda: _with_short_weight(parsed(PLAIN)),
        ["'w'", "f32[3]"],
    ),
}


def _with_short_weight(model: onnx.ModelProto) -> onnx.ModelProto:
    del model.graph.initializer[0].float_data[2:]
    return model


@pytest.mark.parametrize("name", BROKEN)
def test_broken_graphs(name: str, tmp_path: Path, old_pair: Path) -> None:
    """The message names node, place, operator set and reason."""
    made, said = BROKEN[name]
    source = saved(parsed(made) if isinstance(made, str) else made(), tmp_path)
    done = invoke(source, "-o", old_pair)
    assert done.exit_code == 2, done.stderr
    assert_clear(done.stderr)
    missing = [each for each in said if each not in done.stderr]
    assert not missing, done.stderr
    assert done.stderr.count("where:") <= 1
    assert_untouched(old_pair)


def test_traceback_on_request(tmp_path: Path, old_pair: Path) -> None:
    source = saved(parsed(body("[here] t = Add (s, ghost)")), tmp_path)
    plain, debug = run(source, "-o", old_pair), run(source, "-o", old_pair, "--debug")
    assert (plain.returncode, debug.returncode) == (2, 2)
    assert_clear(plain.stderr)
    assert "Traceback (most recent call last)" in debug.stderr
    assert debug.stderr.endswith(plain.stderr)
    assert_untouched(old_pair)


def test_no_opset(tmp_path: Path, old_pair: Path) -> None:
    made = parsed(PLAIN)
    del made.opset_import[:]
    for opset, said in ((None, "imports no operator set"), (999, "opset 999")):
        if opset:
            made.opset_import.append(helper.make_opsetid("", opset))
        done = invoke(saved(made, tmp_path), "-o", old_pair)
        assert done.exit_code == 2
        assert_clear(done.stderr)
        assert said in done.stderr
        assert_untouched(old_pair)


def test_unsupported(tmp_path: Path, old_pair: Path) -> None:
    source = saved(parsed(body("[here] t = odd.Op (s)"), odd=1), tmp_path)
    done = run(source, "-o", old_pair)
    assert done.returncode == 3
    assert_clear(done.stderr)
    assert "odd::Op" in done.stderr and "loop/step/here" in done.stderr
    assert_untouched(old_pair)


# -- places that cannot be written to


@pytest.mark.parametrize("name", ["model.bin", "model", "model.onnx", "model.XML"])
def test_output_that_is_no_xml(name: str, plain: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    content = plain.read_bytes()
    done = invoke(plain, "-o", tmp_path / name)
    assert done.exit_code == 2
    assert_clear(done.stderr)
    assert sorted(tmp_path.iterdir()) == before and plain.read_bytes() == content


def test_folder_that_is_a_file(plain: Path, old_pair: Path) -> None:
    done = run(plain, "-o", old_pair / "model.xml")
    assert done.returncode == 2
    assert_clear(done.stderr)
    assert "ML218" in done.stderr
    assert_untouched(old_pair)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is unwritable for this user")
def test_unwritable_folder(plain: Path, old_pair: Path) -> None:
    old_pair.parent.chmod(0o500)
    try:
        done = run(plain, "-o", old_pair)
        assert done.returncode == 2
        assert_clear(done.stderr)
        assert_untouched(old_pair)
    finally:
        old_pair.parent.chmod(0o700)


def test_file_that_cannot_be_made(plain: Path, old_pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an unwritable folder looks like to the program, whoever runs the tests."""

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    done = invoke(plain, "-o", old_pair)
    assert done.exit_code == 2
    assert_clear(done.stderr)
    assert "Permission denied" in done.stderr
    assert_untouched(old_pair)


@pytest.mark.parametrize("taken", ["model.xml", "model.bin"])
def test_folder_in_the_place_of_a_file(taken: str, plain: Path, tmp_path: Path) -> None:
    """The other file of the pair is not changed either."""
    folder = tmp_path / "out"
    (folder / taken).mkdir(parents=True)
    (folder / taken / "inside").write_text("kept")
    other = folder / ("model.bin" if taken == "model.xml" else "model.xml")
    other.write_bytes(b"old")
    done = invoke(plain, "-o", folder / "model.xml")
    assert done.exit_code == 2
    assert_clear(done.stderr)
    assert other.read_bytes() == b"old" and (folder / taken / "inside").read_text() == "kept"
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("odd"), KeyboardInterrupt()])
def test_error_while_writing(
    error: BaseException, plain: Path, old_pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the files is written by then."""
    original = writer.XmlWriter._layer
    written: list[object] = []

    def failing(self: Any, *arguments: Any) -> None:
        written.append(arguments)
        if len(written) == 3:
            raise error
        original(self, *arguments)

    monkeypatch.setattr(writer.XmlWriter, "_layer", failing)
    with pytest.raises(FileError if isinstance(error, OSError) else type(error)):
        save_model(convert_model(plain), old_pair)
    assert len(written) == 3
    assert_untouched(old_pair)


def test_error_while_moving(plain: Path, old_pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The .bin is in its place already when the .xml cannot be moved: it goes back."""
    replace = os.replace

    def failing(source: Any, target: Any) -> None:
        if Path(target) == old_pair and ".tmp" in str(source):
            raise OSError(5, "Input/output error", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(FileError) as caught:
        save_model(convert_model(plain), old_pair)
    assert caught.value.code == "ML218"
    assert_untouched(old_pair)


def save_apart(folder: Path, location: str) -> None:
    """m.onnx, its weights in a file of their own."""
    made = parsed(PLAIN)
    made.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.arange(3, dtype=np.float32), "w"))
    onnx.save(made, folder / "m.onnx", save_as_external_data=True, location=location, size_threshold=0)


def test_weights_of_the_model_are_not_overwritten(tmp_path: Path) -> None:
    """External data may lie exactly where the .bin would go."""
    save_apart(tmp_path, "m.bin")
    data = (tmp_path / "m.bin").read_bytes()
    done = invoke(tmp_path / "m.onnx", "-o", tmp_path / "m.xml")
    assert done.exit_code == 2
    assert_clear(done.stderr)
    assert (tmp_path / "m.bin").read_bytes() == data
    assert not (tmp_path / "m.xml").exists()


def test_source_gone_before_the_end(tmp_path: Path) -> None:
    """Weights are read when they are written; the message names what is missing."""
    save_apart(tmp_path, "w.data")
    converted = convert_model(tmp_path / "m.onnx")
    (tmp_path / "w.data").unlink()
    with pytest.raises(FileError) as caught:
        save_model(converted, tmp_path / "m.xml")
    assert "w.data" in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx"]


def test_usage() -> None:
    """Click's own errors are of exit code 2 as well, and --help says what there is."""
    assert invoke().exit_code == 2
    assert invoke("a.onnx").exit_code == 2
    assert invoke("a.onnx", "-o", "b.xml", "--no-such-option").exit_code == 2
    shown = invoke("--help")
    assert shown.exit_code == 0
    for option in ("--input", "--output", "--compress-to-fp16", "--dump", "--debug"):
        assert option in click.unstyle(shown.stdout)
