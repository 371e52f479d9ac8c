"""`mo-loop convert` as a user runs it: its files and its messages."""

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
from onnx import numpy_helper

from mo_loop.api import convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import run_ir
from tests.harness import check, floats, parsed, with_weights

from .commands import LOOP, PYTORCH, convert, ended, run, saved


def test_both_files_and_a_summary(tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "decoder.xml"
    done = run(PYTORCH / "decoder.onnx", "-o", target)
    assert (done.returncode, done.stderr) == (0, "")
    xml, data, *rows = done.stdout.splitlines()
    assert xml.startswith(str(target)) and data.startswith(str(target.with_suffix(".bin")))
    assert [row.split()[0] for row in rows] == ["operations", "weights", "control", "sizes", "target", "time"]
    assert "unchanged (f32 stays f32" in done.stdout and "1 Loop -> Loop, 1 If removed" in done.stdout
    assert sorted(path.name for path in target.parent.iterdir()) == ["decoder.bin", "decoder.xml"]
    isolated(run_ir, str(target), [])


def test_relative_paths(plain: Path) -> None:
    done = run(plain.name, "-o", "m.xml", cwd=plain.parent)
    assert done.returncode == 0 and (plain.parent / "m.xml").exists() and (plain.parent / "m.bin").exists()


def test_an_old_pair_is_replaced(plain: Path, old_pair: Path) -> None:
    assert convert(plain, "-o", old_pair).returncode == 0 and old_pair.read_bytes().startswith(b"<?xml")
    assert sorted(path.name for path in old_pair.parent.iterdir()) == ["model.bin", "model.xml"]


def test_warnings_are_printed_once_on_stderr(tmp_path: Path) -> None:
    """A body is translated several times until the types of its states are stable; each warning is printed once."""
    text = LOOP.replace("float[3] s", "x").replace("float[3] t", "t").replace("float[3] y", "float[R] y")
    source = saved(parsed(text.replace("BODY", "t = Concat <axis = 0> (x, x)")), tmp_path)
    done = run(source, "-o", tmp_path / "m.xml")
    assert done.returncode == 0 and done.stderr == "warning: loop/step: 'x' hides an outer value of that name\n"


def test_warnings_of_one_code_are_one_line_with_their_number_and_places(tmp_path: Path) -> None:
    """JSON has each of them."""
    model = parsed("main (float[2] x) => (float[2] y) { a = Exp (x) b = Neg (a) y = Abs (b) }")
    model.graph.value_info.extend(onnx.helper.make_tensor_value_info(name, 1, [4]) for name in "ab")
    done = convert(saved(model, tmp_path), "-o", tmp_path / "made.xml", "--format", "json")
    texts = [f"{name} is declared as f32[4], but it is f32[2]" for name in "ab"]
    assert json.loads(done.stdout)["warnings"] == texts
    assert done.stderr == f"warning: {texts[0]} (2 times, with other names or numbers): a (Exp), b (Neg)\n"


def test_half_precision(tmp_path: Path) -> None:
    """The .bin has half the size, also for weights in bodies, and numbers stay close."""
    weight = floats(64, 64, seed=3) / 8
    made = parsed("""
        main (float[1,64] x, int64 n) => (float[1,64] y) {
          h = MatMul (x, outer)
          [loop] y = Loop (n, "", h) <body = step (int64 i, bool c, float[1,64] s) => (bool d, float[1,64] t) {
            d = Identity (c) u = MatMul (s, inner) t = Tanh (u) }> }""")
    body = made.graph.node[1].attribute[0].g
    with_weights(made, outer=weight)
    body.initializer.append(numpy_helper.from_array(floats(64, 64, seed=4) / 8, "inner"))
    source = saved(made, tmp_path)
    for name, flags in (("full", []), ("half", ["--compress-to-fp16"])):
        ended(convert(source, "-o", tmp_path / f"{name}.xml", *flags))
    full, half = ((tmp_path / f"{name}.bin").stat().st_size for name in ("full", "half"))
    assert full >= 2 * weight.nbytes and half < 0.52 * full
    feeds = [{"x": floats(1, 64, seed=n), "n": n} for n in (3, 0, 1)]
    check(made, *feeds, compress_to_fp16=True, rtol=1e-2, atol=1e-2)
    check(made, *feeds)


def test_kinds_of_sources(plain: Path, tmp_path: Path) -> None:
    """A path, a str, bytes and a ModelProto give the same files."""
    proto = onnx.load(plain)
    found = set()
    for source in (plain, str(plain), plain.read_bytes(), proto):
        save_model(convert_model(source), tmp_path / "m.xml")
        found.add(((tmp_path / "m.xml").read_bytes(), (tmp_path / "m.bin").read_bytes()))
    assert len(found) == 1


def in_memory(source: str, feeds: list[dict[str, Any]]) -> list[Any]:
    """The results of to_openvino(), without a file."""
    from mo_loop.compare.execution.runtime import compile_model

    compiled = compile_model(convert_model(source).to_openvino())
    return [compiled.run(each) for each in feeds]


def test_model_in_memory(tmp_path: Path) -> None:
    source = PYTORCH / "for_trip_count.onnx"
    save_model(convert_model(source), tmp_path / "m.xml")
    feeds = [{"x": floats(2, 4), "count": np.array(count)} for count in (3, 0)]
    found = isolated(in_memory, str(source), feeds)
    wanted = isolated(run_ir, str(tmp_path / "m.xml"), feeds)
    for left, right in zip(found, wanted, strict=True):
        assert [name for name, _ in left] == [name for name, _ in right]
        assert all(np.array_equal(a, b) for (_, a), (_, b) in zip(left, right, strict=True))


def test_help() -> None:
    shown = ended(convert("--help-all"))
    for option in ("--input", "--output", "--compress-to-fp16", "--dump", "--debug"):
        assert option in click.unstyle(shown.stdout)
