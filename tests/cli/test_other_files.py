"""Files of other programs given as a model: the messages name the format and what to do."""

import gzip
import io
import json
import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from mo_loop.api import convert_model
from mo_loop.frontend.foreign_files import kind_of, missing_bytes
from mo_loop.frontend.model import LARGE
from tests.harness import floats, parsed, with_weights

from .commands import PLAIN, PYTORCH, assert_clear, assert_fails, assert_untouched, convert, ended, in_process, saved


def zipped(*names: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in names:
            archive.writestr(name, b"content")
    return made.getvalue()


def tarred() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("model.onnx"), io.BytesIO())
    return made.getvalue()


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """A protobuf message of short fields."""
    made = b""
    for number, value in fields:
        if isinstance(value, int):
            made += bytes([number << 3, value])
        else:
            made += bytes([number << 3 | 2, len(value)]) + value
    return made


def numpy_file() -> bytes:
    made = io.BytesIO()
    np.save(made, np.arange(3))
    return made.getvalue()


SAFE = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
NODE = message((1, b"x"), (2, b"Placeholder"))
BLOCK = message((1, 0), (2, 0), (3, b"\x0a\x01x"))

OTHERS: dict[str, tuple[str, bytes, str, str]] = {
    "PyTorch zip": ("m.pt", zipped("m/data.pkl", "m/data/0"), "PyTorch", "torch.onnx.export"),
    "PyTorch export": ("m.pt2", zipped("m/archive_format", "m/models/model.json"), "PyTorch", "torch.onnx.export"),
    "pickle": ("m.pth", pickle.dumps({"w": 1}), "pickle", "torch.onnx.export"),
    "Keras archive": ("m.keras", zipped("config.json", "model.weights.h5"), "Keras", "model.export"),
    "HDF5": ("m.h5", b"\x89HDF\r\n\x1a\n" + bytes(90), "HDF5", "model.export"),
    "frozen TensorFlow": ("m.pb", message((1, NODE), (1, NODE)), "frozen GraphDef", "tf2onnx"),
    "SavedModel": ("saved_model.pb", message((1, 1), (2, message((1, b"\x22\x05serve")))), "SavedModel", "tf2onnx"),
    "TFLite": ("m.tflite", b"\x1c\0\0\0TFL3" + bytes(50), "TensorFlow Lite", "tf2onnx"),
    "safetensors": ("m.safetensors", len(SAFE).to_bytes(8, "little") + SAFE + bytes(4), "safetensors", "holds weights"),
    "GGUF": ("m.gguf", b"GGUF\x03\0\0\0" + bytes(50), "GGUF", "holds weights"),
    "IR": ("m.xml", b'<?xml version="1.0"?>\n<net name="m" version="11">\n</net>', "OpenVINO IR already", "read_model"),
    "other XML": ("m.onnx", b'<?xml version="1.0"?><Error/>', "an XML file", "download"),
    "Paddle": ("m.pdmodel", message((1, BLOCK)), "PaddlePaddle", "paddle2onnx"),
    "Core ML": ("m.mlmodel", message((1, 8), (2, message((1, message((1, b"in")))))), "Core ML", "ONNX"),
    "ORT": ("m.ort", b"\x1c\0\0\0ORTM" + bytes(50), "ONNX Runtime model", ".onnx file"),
    "zip": ("m.onnx", zipped("readme.txt", "inner/model.onnx"), "a zip archive", "it holds inner/model.onnx"),
    "npz": ("m.onnx", zipped("w.npy"), "numpy arrays", ".onnx"),
    "tar": ("m.onnx", tarred(), "tar archive", "unpack"),
    "gzip": ("m.onnx", gzip.compress(b"x" * 99), "gzip", "unpack"),
    "numpy": ("m.onnx", numpy_file(), "numpy array", ".onnx file"),
    "HTML": ("m.onnx", b"\n<!DOCTYPE html><html>404</html>", "HTML page", "download"),
    "JSON": ("m.onnx", b'{"error": "not found"}', "JSON", ".onnx file"),
    "LFS pointer": (
        "m.onnx", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "LFS", "git lfs pull"),
    "TensorRT by its name": ("m.engine", b"ptrt" + bytes(40), "TensorRT", ".onnx file"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_format_is_named(name: str, tmp_path: Path, old_pair: Path) -> None:
    file, content, kind, hint = OTHERS[name]
    source = tmp_path / file
    source.write_bytes(content)
    done = convert(source, "-o", old_pair)
    assert_fails(done)
    what, why, help_ = done.stderr.splitlines()
    assert what == f"error: ML214: {file} is not an ONNX model"
    assert why.startswith("  why:   it looks like ") and kind in why
    assert help_.startswith("  help:  ") and hint in help_
    assert_untouched(old_pair)


def test_the_format_of_large_files_is_named(tmp_path: Path) -> None:
    """Large files are searched, not read: a code path of its own."""
    source = tmp_path / "m.pt"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02.")
        archive.writestr("m/data/0", bytes(2 * LARGE))
    done = convert(source, "-o", tmp_path / "m.xml")
    assert done.returncode == 2 and "a PyTorch file" in done.stderr
    assert_clear(done.stderr)


@pytest.mark.parametrize(("inside", "said"), [
    (["saved_model.pb", "variables/x"], "SavedModel (a folder)"),
    (["__model__"], "PaddlePaddle"),
    (["model.onnx", "config.json"], "did you mean"),
    (["readme.txt"], "give the .onnx file itself"),
])
def test_folders(inside: list[str], said: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    for name in inside:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    done = convert(folder, "-o", tmp_path / "m.xml")
    assert done.returncode == 2 and said in done.stderr
    assert_clear(done.stderr)


def weighty() -> onnx.ModelProto:
    """A model of more than a megabyte with embedded weights."""
    made = with_weights("main (float[N,600] x) => (float[N,600] y) { y = MatMul (x, w) }", w=floats(600, 600))
    return made


@pytest.mark.parametrize(
    "make", [lambda: (PYTORCH / "decoder.onnx").read_bytes(), lambda: weighty().SerializeToString()]
)
@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
def test_truncated_files(make: Callable[[], bytes], share: float, tmp_path: Path, old_pair: Path) -> None:
    data = make()
    source = tmp_path / "m.onnx"
    source.write_bytes(data[: int(share * len(data))])
    done = convert(source, "-o", old_pair)
    assert_fails(done, "m.onnx is truncated", f"it has {int(share * len(data))} bytes")
    assert "download or copy it again" in done.stderr
    assert_untouched(old_pair)


@pytest.mark.parametrize("path", sorted(PYTORCH.glob("*.onnx")), ids=lambda path: path.stem)
def test_models_are_not_taken_for_another_format(path: Path) -> None:
    """The messages about broken files would be wrong for intact ones."""
    data = path.read_bytes()
    assert missing_bytes(data, len(data)) == 0 and kind_of(data) is None


def test_missing_data_file(tmp_path: Path, old_pair: Path) -> None:
    onnx.save(weighty(), tmp_path / "m.onnx", save_as_external_data=True, location="w.data")
    size = (tmp_path / "w.data").stat().st_size
    with open(tmp_path / "w.data", "r+b") as file:
        file.truncate(size - 4)
    done = convert(tmp_path / "m.onnx", "-o", old_pair)
    assert done.returncode == 2 and "'w.data' ends before" in done.stderr and "help:" in done.stderr
    (tmp_path / "w.data").unlink()
    done = convert(tmp_path / "m.onnx", "-o", old_pair)
    assert done.returncode == 2 and "'w.data' is missing" in done.stderr and "next to the" in done.stderr
    assert_clear(done.stderr)
    assert_untouched(old_pair)


def test_the_extension_does_not_matter(tmp_path: Path) -> None:
    """A model is read with any extension."""
    assert convert_model(saved(parsed(PLAIN), tmp_path, "model.pt")).outputs == ["y"]


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="there is no such file")
def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    done = convert("/proc/self/mem", "-o", tmp_path / "m.xml")
    assert_fails(done)
    assert done.stderr.startswith("error: ML212: /proc/self/mem cannot be read\n  why:   Input/output error\n  help:  ")


def test_a_missing_file_of_many_weights_is_one_error(tmp_path: Path) -> None:
    """Of nodes of several operators, and in all commands that read weights; each error of several begins with `error:`.
    """
    weights = [numpy_helper.from_array(np.ones((4, 4), np.float32), f"w{n}") for n in range(40)]
    nodes = " ".join(f"t{n + 1} = {('MatMul', 'Add')[n % 2]} (t{n}, w{n})" for n in range(40))
    text = f'<ir_version: 9, opset_import: ["": 18]> m (float[4, 4] t0) => (float[4, 4] t40) {{ {nodes} }}'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(weights)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    (tmp_path / "w.data").unlink()
    path = tmp_path / "m.onnx"
    for arguments in (
        ["convert", path, "-o", tmp_path / "m.xml"], ["verify", path], ["diff", path, path],
        ["reduce", path, "-o", tmp_path / "s.onnx", "--if", "differs"],
    ):
        done = ended(in_process(*arguments), 2)
        lines = done.stderr.splitlines()
        assert [line for line in lines if not line.startswith("  ")] == [
            "error: ML217: the external data 'w.data' is missing (40 times)"
        ], arguments
    text = "a (float[4] x) => (float[4] y, float[4] z) { y = One (x) z = Two (x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> {text}'), tmp_path / "m.onnx")
    lines = convert(tmp_path / "m.onnx", "-o", tmp_path / "m.xml").stderr.splitlines()
    assert [line.partition(":")[0] for line in lines if not line.startswith("  ")] == ["error", "error"]
