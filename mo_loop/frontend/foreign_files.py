"""Recognises model files of other formats, with advice how to get an ONNX model from each.

>>> kind_of(b"GGUF" + bytes(60)).what
'a GGUF file'
>>> kind_of(b"hello")

The first bytes identify the format. Where formats share them (all protobuf messages are alike), the first fields of
the message identify it, and after those the suffix of the file name.
"""

import io
import re
from pathlib import Path
from typing import NamedTuple

HEAD = 1 << 16
"""The number of bytes that are read from a file."""


class Foreign(NamedTuple):
    """The format of a file, as in "model.onnx is {what}, not an ONNX model", and what to do."""

    what: str
    hint: str


_PYTORCH = "export it from Python: torch.onnx.export(model, inputs, 'model.onnx')"
_TENSORFLOW = (
    "convert it first: python -m tf2onnx.convert --output model.onnx and --graphdef, --saved-model or --tflite"
)
_KERAS = "export it from Python: model.export('model.onnx', format='onnx'), or convert it with tf2onnx"
_DOWNLOAD = "download the file itself, not the page that shows it"
_UNPACK = "unpack it and give the .onnx file inside"
_WEIGHTS = "it holds weights and no graph: load them in the framework they come from and export that model to ONNX"

PYTORCH_ZIP = Foreign("a PyTorch file (weights or TorchScript in a zip)", _PYTORCH)
PICKLE = Foreign("a Python pickle, as PyTorch saves models", _PYTORCH)
SAVED_MODEL = Foreign("a TensorFlow SavedModel", _TENSORFLOW)
GRAPH_DEF = Foreign("a TensorFlow graph (frozen GraphDef)", _TENSORFLOW)
PADDLE = Foreign("a PaddlePaddle model", "convert it first: paddle2onnx --model_dir ... --save_file model.onnx")
CORE_ML = Foreign("a Core ML model", "export the model that it was made of to ONNX")
ARCHIVE = Foreign("an archive", _UNPACK)

_STARTS: tuple[tuple[int, bytes, Foreign], ...] = (
    (0, b"version https://git-lfs", Foreign("a Git LFS pointer, the file itself was not fetched", "run: git lfs pull")),
    (0, b"\x89HDF\r\n\x1a\n", Foreign("an HDF5 file, as Keras saves models", _KERAS)),
    (0, b"GGUF", Foreign("a GGUF file", _WEIGHTS)),
    (4, b"TFL3", Foreign("a TensorFlow Lite model", _TENSORFLOW)),
    (4, b"ORTM", Foreign("an ONNX Runtime model (.ort)", "give the .onnx file that it was made of")),
    (0, b"\x1f\x8b", Foreign("compressed with gzip", _UNPACK)),
    (0, b"\xfd7zXZ", Foreign("compressed with xz", _UNPACK)),
    (0, b"BZh", Foreign("compressed with bzip2", _UNPACK)),
    (0, b"\x28\xb5\x2f\xfd", Foreign("compressed with zstd", _UNPACK)),
    (0, b"7z\xbc\xaf\x27\x1c", Foreign("a 7z archive", _UNPACK)),
    (257, b"ustar", Foreign("a tar archive", _UNPACK)),
    (0, b"\x93NUMPY", Foreign("a numpy array", "give the .onnx file of the model")),
)
"""Offset, the bytes at it, and the format that they identify."""

_ENDINGS = {
    ".pt": PICKLE, ".pth": PICKLE, ".pt2": PYTORCH_ZIP, ".ckpt": PICKLE, ".pb": GRAPH_DEF, ".tflite": _STARTS[3][2],
    ".pdmodel": PADDLE, ".pdiparams": PADDLE, ".mlmodel": CORE_ML, ".mlpackage": CORE_ML,
    ".caffemodel": Foreign("a Caffe model", "convert it to ONNX first"),
    ".prototxt": Foreign("a Caffe model", "convert it to ONNX first"),
    ".engine": Foreign("a TensorRT engine", "give the .onnx file that it was made of"),
    ".pkl": PICKLE,
}


def kind_of(data: bytes, path: Path | None = None) -> Foreign | None:
    """The format of a file that begins with `data`; None if it is not known.

    `path` is the file, if there is one: the names of the members of an archive are read from it.
    """
    for place, bytes_, kind in _STARTS:
        if data[place : place + len(bytes_)] == bytes_:
            return kind
    if data.startswith(b"PK\x03\x04"):
        return _archive(data, path)
    if re.match(rb"\x80[\x02-\x05]", data):
        return PICKLE
    if data[8:10] == b'{"' and 2 <= int.from_bytes(data[:8], "little") < 1 << 32:
        return Foreign("a safetensors file", _WEIGHTS)
    return _text(data) or _message(data) or (None if path is None else _ENDINGS.get(path.suffix.lower()))


def kind_of_folder(path: Path) -> Foreign | None:
    """The format of a folder that was given as a model; None if it is not known."""
    if (path / "saved_model.pb").exists():
        return Foreign("a TensorFlow SavedModel (a folder)", _TENSORFLOW)
    if path.suffix == ".mlpackage":
        return CORE_ML
    if (path / "__model__").exists() or list(path.glob("*.pdmodel")):
        return Foreign("the folder of a PaddlePaddle model", PADDLE.hint)
    return None


def _archive(data: bytes, path: Path | None) -> Foreign:
    """The format of a zip archive, from the names of its members."""
    import zipfile  # rare, and its modules take 2 ms of the start

    try:
        with zipfile.ZipFile(io.BytesIO(data) if path is None else path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        names = [name.decode("utf-8", "replace") for name in re.findall(rb"PK\x03\x04.{26}([\w./-]{3,})", data, re.S)]
    if any(re.search(r"(^|/)(data\.pkl|archive_format|models/model\.json)", name) for name in names):
        return PYTORCH_ZIP
    if any(name.endswith(".weights.h5") for name in names):
        return Foreign("a Keras model (.keras)", _KERAS)
    if any(name.endswith(".npy") for name in names):
        return Foreign("an archive of numpy arrays (.npz)", "give the .onnx file of the model")
    inside = next((name for name in names if name.endswith(".onnx")), None)
    return Foreign("a zip archive", _UNPACK if inside is None else f"unpack it: it holds {inside}")


def _text(data: bytes) -> Foreign | None:
    """The text formats."""
    start = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<!-- html")):
        return Foreign("an HTML page, the result of a failed download", _DOWNLOAD)
    if start.startswith(b"<?xml") or start.startswith(b"<net"):
        is_ir = b"<net " in start
        what = "OpenVINO IR already, which needs no conversion" if is_ir else "an XML file"
        return Foreign(what, "read it with the runtime: openvino.Core().read_model" if is_ir else _DOWNLOAD)
    return Foreign("JSON", "give the .onnx file of the model") if re.match(rb'[{\[]\s*["{\[\]}]', start) else None


# -- protobuf: a sequence of fields, each a key (number and wire type) and a value


def _message(data: bytes) -> Foreign | None:
    """The format of a protobuf message, from its first fields."""
    first = _field(data, 0)
    if first is None:
        return None
    number, value, end = first
    if number == 1 and isinstance(value, bytes):
        return _first_message(value)
    second = _field(data, end)
    if number != 1 or second is None or second[0] != 2 or not isinstance(second[1], bytes):
        return None
    if value == 1 and b"serve" in second[1][:4096] + data[-4096:]:
        return SAVED_MODEL
    inner = _field(second[1], 0)
    # In ModelProto this field is the name of the producer, in Core ML a description whose fields are features.
    return CORE_ML if inner is not None and inner[0] in (1, 10) and isinstance(inner[1], bytes) else None


def _first_message(value: bytes) -> Foreign | None:
    """A message whose field 1 is a message: NodeDef (name, op) or BlockDesc (index, parent)."""
    first = _field(value, 0)
    second = None if first is None else _field(value, first[2])
    if first is None or second is None or (first[0], second[0]) != (1, 2):
        return None
    if isinstance(second[1], bytes) and re.fullmatch(rb"[A-Z]\w+", second[1]):
        return GRAPH_DEF
    return PADDLE if first[1] == 0 and isinstance(second[1], int) else None


def _field(data: bytes, start: int) -> tuple[int, int | bytes, int] | None:
    """The field at `start`: number, value (cut short where the data ends), and where it ends."""
    key, place = _varint(data, start)
    if key is None or not key >> 3:
        return None
    if key & 7 == 0:
        value, place = _varint(data, place)
        return None if value is None else (key >> 3, value, place)
    if key & 7 != 2:
        return None
    size, place = _varint(data, place)
    return None if size is None else (key >> 3, data[place : place + size], place + size)


def _varint(data: bytes, place: int) -> tuple[int | None, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            return None, place
        value |= (data[place] & 0x7F) << shift
        place += 1
        if data[place - 1] < 0x80:
            return value, place
    return None, place


_NUMBERS = (1, 5)
"""The fields of a ModelProto that are numbers: IR version and model version."""


def missing_bytes(data: bytes, size: int) -> int:
    """The least number of bytes missing from an ONNX model of `size` bytes that begins with `data`; 0 if unknown.

    It is 0 as well for data that does not begin like an ONNX model: with the IR version, then fields of ModelProto.
    """
    place = count = 0
    while place < len(data):
        field = _field(data, place)
        if field is None or field[0] > 25 or isinstance(field[1], int) is not (field[0] in _NUMBERS):
            return 0
        if count == 0 and field[0] != 1:
            return 0
        place, count = field[2], count + 1
    return max(place - size, 0) if count > 1 else 0
