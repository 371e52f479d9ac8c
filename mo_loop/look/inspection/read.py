"""inspect: the inspection of a file. Its content decides the format: XML is IR, anything else ONNX."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mo_loop.errors import FileError
from mo_loop.frontend.external_files import byte_count
from mo_loop.frontend.model import OnnxModel, check_names_on_error, opened
from mo_loop.frontend.onnx_graphs import all_graphs, tensor_protos
from mo_loop.frontend.strip_weights import OWN_FILE
from mo_loop.look.inspection.contents import controls, operators, scope_sizes
from mo_loop.look.inspection.description import ExternalFile, Function, Inspection
from mo_loop.look.records.of_onnx import structure_of_onnx, tensor_size
from mo_loop.look.records.opening import kind_of
from mo_loop.look.records.structure import IR, ONNX, result_port
from mo_loop.support.process_memory import paused_collector

_EXTERNAL = 1  # TensorProto.EXTERNAL


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
        try:
            return _inspect_onnx(source, allow_external)
        except FileError as error:
            if kind == ONNX or error.code != "ML214":  # not an ONNX model
                raise
            raise error.at(hint="if it is a file of --dump, add --graph or --nodes") from error.__cause__


def _inspect_onnx(source: Any, allowed: Sequence[str]) -> Inspection:
    """Inspect an ONNX model, convertible or not. Types are those that the model declares.

    Raises FileError as `opened` does, and ModelError for names that are not UTF-8.
    """
    model = opened(source, allowed)
    with check_names_on_error(model.proto):
        inspection = _inspection(model)
        json.dumps(inspection.to_dict())  # fails if a name is not UTF-8
    return inspection


def _inspection(model: OnnxModel) -> Inspection:
    proto = model.proto
    structure = structure_of_onnx(model, model.path or "model", weights=False)
    called = (item.called for scope in structure.scopes() for item in scope.items) if structure.functions else ()
    calls = Counter(called)
    return Inspection(
        file=structure.source,
        format="onnx",
        file_bytes=os.stat(model.path).st_size if model.path else proto.ByteSize(),
        name=model.name,
        ir_version=proto.ir_version,
        producer=f"{proto.producer_name} {proto.producer_version}".strip(),
        opsets={domain or "ai.onnx": version for domain, version in model.opsets.items()},
        metadata={entry.key: entry.value for entry in proto.metadata_props},
        inputs=[each.port() for each in structure.main.parameters],
        outputs=list(map(result_port, structure.main.results)),
        operators=operators(structure),
        scopes=scope_sizes(structure),
        control=[each for start in (structure.main, *structure.functions.values()) for each in controls(start, ONNX)],
        functions=[
            Function(
                name, len(scope.nodes), calls[name], [each.port().name for each in scope.parameters],
                [each.name for each in scope.results],
            )
            for name, scope in structure.functions.items()
        ],
        external=list(_external(model)),
    )


def _external(model: OnnxModel) -> Iterator[ExternalFile]:
    found: dict[str, ExternalFile] = {}
    for tensor in (tensor for scope in all_graphs(model) for tensor in tensor_protos(scope)):
        if tensor.data_location != _EXTERNAL:
            continue
        info = {entry.key: entry.value for entry in tensor.external_data}
        location = info.get("location", "")
        if location == OWN_FILE:
            continue
        if location not in found:
            found[location] = ExternalFile(location, 0, 0, _file_size(model, location, tensor.name))
        found[location].tensors += 1
        offset = max(byte_count(info.get("offset"), 0), 0)
        found[location].needed = max(found[location].needed, offset + tensor_size(tensor)[1])
    yield from found.values()


def _file_size(model: OnnxModel, location: str, tensor: str) -> int | None:
    """The bytes of an external file; None for one that a conversion would not read."""
    try:
        file = model.files.at(location, tensor)
    except FileError:
        return None
    return None if file.identity is None else file.identity.size
