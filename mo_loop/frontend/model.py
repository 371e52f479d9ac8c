"""Opening an ONNX model: from a file, from bytes or from a ModelProto in memory."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mo_loop.errors import FileError, ModelError, UnsupportedError
from mo_loop.frontend.thin import thin

LARGE = 1 << 20
"""Bytes of a file above which its weights are left in it."""


@dataclass
class OnnxModel:
    """A loaded model. `path` is its file and `folder` where external data lies; None for a model in memory."""

    proto: Any
    path: str | None
    folder: str | None
    name: str
    opsets: dict[str, int] = field(default_factory=dict)
    functions: dict[tuple[str, str, str], Any] = field(default_factory=dict)


def load(source: Any) -> OnnxModel:
    """Open `source`: a path, the bytes of a model, or an `onnx.ModelProto`.

    Raises:
        FileError: there is no such file, it cannot be read, or it is not an ONNX model.
        ModelError: the model says nothing about its operator sets.
    """
    import onnx

    path: Path | None = None
    if isinstance(source, onnx.ModelProto):
        proto, name = source, source.graph.name or "model"
    elif isinstance(source, bytes):
        proto, name = _parse(source, "the given bytes"), "model"
    else:
        path = Path(source)
        proto, name = _parse(_read(path), path.name), path.stem
    own, folder = (None, None) if path is None else (str(path), str(path.parent))
    model = OnnxModel(proto, own, folder, proto.graph.name or name)
    for entry in proto.opset_import:
        model.opsets["" if entry.domain == "ai.onnx" else entry.domain] = entry.version
    if "" not in model.opsets:
        model.opsets[""] = 1  # IR version 1 and 2 had no import list: opset 1 is meant
        if proto.ir_version >= 3 and not model.opsets.keys() - {""} and len(proto.graph.node):
            raise ModelError(
                "the model imports no operator set", code="ML221",
                hint='give it one: model.opset_import.append(onnx.helper.make_opsetid("", 17))',
            )  # fmt: skip
    newest = onnx.defs.onnx_opset_version()
    if model.opsets[""] > newest:
        raise ModelError(
            f"the model uses opset {model.opsets['']}, the installed onnx package knows up to {newest}",
            code="ML222", hint="install a newer onnx package, or export the model with an older opset",
        )  # fmt: skip
    for function in proto.functions:
        domain = "" if function.domain == "ai.onnx" else function.domain
        model.functions[domain, function.name, getattr(function, "overload", "")] = function
    return model


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise FileError(f"{path} is a folder, not an ONNX file", code="ML211")
        return thin(str(path)) if path.stat().st_size > LARGE else path.read_bytes()
    except FileNotFoundError:
        raise FileError(f"there is no file {path}", code="ML210", hint="check the path") from None
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or 0)
        raise FileError(f"{path} cannot be read: {reason}", code="ML212") from None


def _parse(data: bytes, what: str) -> Any:
    import onnx
    from google.protobuf.message import DecodeError

    proto = onnx.ModelProto()
    if not data:
        raise FileError(f"{what} is empty", code="ML214")
    if data.startswith(b"version https://git-lfs"):
        raise FileError(f"{what} is a Git LFS pointer, not a model", code="ML214", hint="run: git lfs pull")
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        if "MaxDepth" in str(error):
            raise UnsupportedError(f"{what} nests its bodies too deeply to be read", code="ML312") from None
        raise FileError(
            f"{what} is not an ONNX model", code="ML214",
            hint="mo-loop reads .onnx files, as exported by PyTorch, tf2onnx ...",
        ) from None  # fmt: skip
    if not proto.HasField("graph") or not (proto.ir_version or proto.opset_import):
        raise FileError(f"{what} is not an ONNX model: it holds no graph", code="ML214")
    return proto
