"""inspect: the inspection of a file. Its content decides the format: XML is IR, anything else ONNX."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mo_loop.errors import FileError
from mo_loop.look.inspection.description import Inspection
from mo_loop.look.records.opening import kind_of
from mo_loop.look.records.structure import IR, ONNX
from mo_loop.support.garbage_collection import paused_collector


def inspect(source: Any, *, allow_external: Sequence[str] = ()) -> Inspection:
    """List the contents of a model: inputs, outputs, operators, bodies, control flow, states. It reads no weights.

    Args:
        source: The path of an .onnx file or of the .xml of an IR; an ONNX model also as bytes or a ModelProto.
        allow_external: More folders whose files may hold external data.

    Returns:
        The contents; the report has `text()` and `to_dict()`.

    Raises:
        FileError: the file cannot be read, or is of another kind.
        IrError: the model breaks a rule of the IR that the inspection relies on.
        UnsupportedError: the IR is of another version, or bodies are nested too deeply to be read.
    """
    with paused_collector():
        kind = kind_of(Path(source)) if isinstance(source, str | os.PathLike) else ONNX
        if kind == IR:
            from mo_loop.look.inspection.from_ir import inspect_ir

            return inspect_ir(Path(source))
        from mo_loop.look.inspection.from_onnx import inspect_onnx

        try:
            return inspect_onnx(source, allow_external)
        except FileError as error:
            if kind == ONNX or error.code != "ML214":  # not an ONNX model
                raise
            raise error.at(hint="if it is a file of --dump, add --graph or --nodes") from error.__cause__
