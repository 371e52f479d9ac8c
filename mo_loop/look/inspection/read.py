"""inspect: the inspection of a file. Its content decides the format: XML is IR, anything else ONNX.

    inspection = inspect("model.onnx")
    inspection.operators, inspection.scopes, inspection.control        # nothing is translated, no tensor is read

Of an IR it reads the .xml, and only constants of a few bytes of the .bin.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.errors import FileError
from mo_loop.frontend.external_files import byte_count
from mo_loop.frontend.model import ModelSource, OnnxModel, check_names_on_error, opened
from mo_loop.frontend.onnx_graphs import external_tensors
from mo_loop.ir.reader.layer_types import VariableLayers, declared, shape_text, variables
from mo_loop.ir.reader.parse import records
from mo_loop.look.inspection import description
from mo_loop.look.inspection.contents import controls, starts
from mo_loop.look.records.data import Data
from mo_loop.look.records.of_graph import flat, number, shape_of, structure_of_layers
from mo_loop.look.records.of_onnx import structure_of_onnx, tensor_size
from mo_loop.look.records.opening import kind_of
from mo_loop.look.records.structure import IR, ONNX, Item, Ref, ScopeRecord, Structure, result_port, tensor_port
from mo_loop.support.process_memory import paused_collector


def inspect(source: ModelSource, *, allow_external: Sequence[str] = ()) -> description.Inspection:
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
    return inspect_part(source, allow_external)


def inspect_part(source: ModelSource, allow_external: Sequence[str], **chosen: Any) -> description.Inspection:
    """The same for a part of a model: `chosen` has the scope, depth and operator, as the function `skeleton`.

    Raises:
        UsageError: the model does not have the scope, or this does not have the operator.
    """
    with paused_collector():
        path = Path(source) if isinstance(source, str | os.PathLike) else None
        kind = ONNX if path is None else kind_of(path)
        if path is not None and kind == IR:
            return _of_ir(path, chosen)
        try:
            model = opened(source, allow_external)
            with check_names_on_error(model.proto):
                inspection = _of_onnx(model, chosen)
                json.dumps(inspection.to_dict())  # fails if a name is not UTF-8
            return inspection
        except FileError as error:
            if kind == ONNX or error.code != "ML214":  # not an ONNX model
                raise
            raise error.at(hint="if it is a file of --dump, add --graph or --nodes") from error.__cause__


def _of_onnx(model: OnnxModel, chosen: dict[str, Any]) -> description.Inspection:
    """The inspection of an ONNX model, convertible or not. Types are those that the model declares."""
    proto = model.proto
    structure = structure_of_onnx(model, model.path or "model", weights=False)
    called = (item.called for scope in structure.scopes() for item in scope.items) if structure.functions else ()
    calls = Counter(called)
    return _with_contents(
        structure,
        chosen,
        file=structure.source,
        file_bytes=os.stat(model.path).st_size if model.path else proto.ByteSize(),
        name=model.name,
        ir_version=proto.ir_version,
        producer=f"{proto.producer_name} {proto.producer_version}".strip(),
        opsets={domain or "ai.onnx": version for domain, version in model.opsets.items()},
        metadata={entry.key: entry.value for entry in proto.metadata_props},
        functions=[
            description.Function(
                name, len(scope.nodes), calls[name], [each.port().name for each in scope.parameters],
                [each.name for each in scope.results],
            )
            for name, scope in structure.functions.items()
        ],
        external=list(_external(model)),
    )


def _with_contents(structure: Structure, chosen: dict[str, Any], **facts: Any) -> description.Inspection:
    """An inspection with these facts, and the contents of the chosen part of the structure."""
    found, operator = _operators(structure, chosen.get("scope")), chosen.get("operator")
    if operator is not None and operator not in {each.name for each in found}:
        raise description.unknown("operator", operator, [each.name for each in found])
    return description.Inspection(
        format=structure.kind.lower(),
        inputs=[each.port() for each in structure.main.parameters],
        outputs=list(map(result_port, structure.main.results)),
        operators=[each for each in found if operator in (None, each.name)],
        scopes=_scope_sizes(structure, **chosen),
        control=controls(structure, **chosen),
        **facts,
    )


# -- operators and scopes


def _operators(structure: Structure, scope: str | None = None) -> list[description.Operator]:
    """All operators, the most frequent first; a constant counts once for each operator that reads it, those of a scope
    without their constants: only the whole model has all of these."""
    found: dict[str, description.Operator] = {}
    seen: set[tuple[str, int]] = set()
    for each in (each for start in starts(structure, scope) for each in start.all()):
        for name, refs in _computed(each, structure.kind):
            operator = found.setdefault(name, description.Operator(name))
            operator.count += 1
            for ref in refs if scope is None else ():
                if ref is not None and ref.item.operator == "Convert":  # of a compressed constant
                    ref = ref.item.input(0)
                if ref is not None and ref.item.data is not None and (name, id(ref.item)) not in seen:
                    seen.add((name, id(ref.item)))
                    operator.elements += ref.item.data.elements
                    operator.bytes += ref.item.data.nbytes
    return sorted(found.values(), key=lambda each: (-each.count, each.name))


def _scope_sizes(
    structure: Structure, scope: str | None = None, depth: int | None = None, operator: str | None = None
) -> list[description.ScopeSize]:
    """The graphs, outer before inner; the arguments are those of the function `skeleton`."""
    found = []
    for each in (each for start in starts(structure, scope) for each in start.all(depth)):
        counts = Counter(name for name, _ in _computed(each, structure.kind) if operator in (None, name))
        if counts or operator is None:
            data = [item.data for item in each.constants if item.data is not None]
            found.append(description.ScopeSize(
                each.text, each.kind, len(each.nodes), len(each.constants), sum(one.elements for one in data),
                sum(one.nbytes for one in data), dict(counts.most_common()),
            ))
    return found


def _computed(scope: ScopeRecord, format_: str) -> Iterator[tuple[str, list[Ref | None]]]:
    """The operator and the inputs of the nodes or layers of the file; an IR has its outputs as layers."""
    yield from ((item.operator, item.inputs) for item in scope.items if item.made_of is not None)
    if format_ == IR:
        yield from (("Result", [result.ref]) for result in scope.results)


# -- files


def _external(model: OnnxModel) -> Iterator[description.ExternalFile]:
    found: dict[str, description.ExternalFile] = {}
    for _, tensor in external_tensors(model):
        info = {entry.key: entry.value for entry in tensor.external_data}
        location = info.get("location", "")
        if location not in found:
            identity = None
            with suppress(FileError):  # a file that a conversion would not read has no size
                identity = model.files.at(location, tensor.name).identity
            found[location] = description.ExternalFile(location, 0, 0, None if identity is None else identity.size)
        found[location].tensors += 1
        offset = max(byte_count(info.get("offset"), 0), 0)
        found[location].needed = max(found[location].needed, offset + tensor_size(tensor)[1])
    yield from found.values()


_LOOKED_AT = 1 << 22
"""The number of elements of a constant above which its values are not compared with each other."""


def _of_ir(path: Path, chosen: dict[str, Any]) -> description.Inspection:
    """Inspect the IR at `path`. Raises FileError, IrError and UnsupportedError as `records` does."""
    net, version = records(path)
    given = net.rt_info.pop("sizes", None)
    structure = structure_of_layers(net, path)
    weights = path.with_suffix(".bin")
    metadata = structure.metadata
    layers = [each.made_of for scope in structure.scopes() for each in scope.entries]
    constants = [layer for layer in layers if layer.type == "Const"]
    needed = max((number(layer, "offset") + number(layer, "size") for layer in constants), default=0)
    size = os.path.getsize(weights) if os.path.isfile(weights) else None  # opening a pipe would wait forever
    external = [description.ExternalFile(weights.name, len(constants), needed, size)] if constants else []
    items = {id(item.made_of): item for scope in structure.scopes() for item in scope.items}
    versions = Counter(layer.version for layer in layers)
    return _with_contents(
        structure,
        chosen,
        file=os.fspath(path),
        file_bytes=path.stat().st_size,
        name=net.name,
        ir_version=version,
        producer=metadata.get("Runtime_version") or metadata.get("MO_version") or "",
        opsets=dict(sorted(versions.items())),
        metadata=metadata,
        external=external,
        states=[_state(each, items) for each in variables(net).values()],
        sizes=dict(flat(given)) if isinstance(given, dict) else {},
    )


# -- variables


def _state(found: "VariableLayers", items: dict[int, Item]) -> description.VariableFacts:
    read, assigned = ([layer.where for _, layer in ends] for ends in (found.reads, found.assigns))
    if not found.reads:
        return description.VariableFacts(found.id, "?", None, description.Initial("none"), read, assigned)
    layer = found.reads[0][1]
    initial = _initial(items[id(layer)])
    return description.VariableFacts(found.id, declared(layer)[0], shape_of(shape_text(layer)), initial, read, assigned)


def _initial(item: Item) -> description.Initial:
    """The value of the variable before it is assigned: the input of its ReadValue."""
    ref = item.input(0)
    if ref is None:
        return description.Initial("none")
    port = tensor_port(ref)
    seen: list[Item] = []
    while ref is not None and ref.item.operator in ("Convert", "Broadcast", "Tile") and ref.item not in seen:
        seen.append(ref.item)
        ref = ref.item.input(0)
    if ref is None or ref.item.data is None:
        return description.Initial("computed", "", port.type, port.shape)
    kind = "constant" if all(each.operator == "Convert" for each in seen) else "computed"
    return description.Initial(kind, _uniform(ref.item.data), port.type, port.shape)


def _uniform(data: Data) -> str:
    """The value of all elements of a constant: "zeros", or the number; empty if they differ or cannot be read."""
    values = data.array(_LOOKED_AT)
    if values is None or not values.size or values.dtype.kind == "O":
        return ""
    cells = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
    if not (cells == cells[0]).all():
        return ""
    return str(int(values[0]) if values.dtype.kind in "biu" else values[0]) if cells[0].any() else "zeros"
