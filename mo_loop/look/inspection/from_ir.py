"""inspect_ir: the inspection of an IR. It reads the .xml, and only constants of a few bytes of the .bin."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mo_loop.ir.reader.layer_records import Layer, Net
from mo_loop.ir.reader.layer_types import VariableLayers, declared, shape_text, variables
from mo_loop.ir.reader.parse import records
from mo_loop.look.inspection.contents import controls, operators, scope_sizes
from mo_loop.look.inspection.description import ExternalFile, Initial, Inspection, VariableFacts
from mo_loop.look.records.data import Data
from mo_loop.look.records.of_graph import flat, number, shape_of, structure_of_layers
from mo_loop.look.records.structure import IR, Item, result_port, tensor_port

_LOOKED_AT = 1 << 22
"""The number of elements of a constant above which its values are not compared with each other."""


def inspect_ir(path: Path) -> Inspection:
    """Inspect the IR at `path`. Raises FileError, IrError and UnsupportedError as `records` does."""
    net, version = records(path)
    given = net.rt_info.pop("sizes", None)
    structure = structure_of_layers(net, path)
    weights = path.with_suffix(".bin")
    metadata = structure.metadata
    layers = list(_layers(net))
    constants = [layer for layer in layers if layer.type == "Const"]
    needed = max((number(layer, "offset") + number(layer, "size") for layer in constants), default=0)
    external = [ExternalFile(weights.name, len(constants), needed, _file_size(weights))] if constants else []
    items = {id(item.made_of): item for scope in structure.scopes() for item in scope.items}
    versions = Counter(layer.version for layer in layers)
    return Inspection(
        file=os.fspath(path),
        format="ir",
        file_bytes=path.stat().st_size,
        name=net.name,
        ir_version=version,
        producer=metadata.get("Runtime_version") or metadata.get("MO_version") or "",
        opsets=dict(sorted(versions.items())),
        metadata=metadata,
        inputs=[each.port() for each in structure.main.parameters],
        outputs=list(map(result_port, structure.main.results)),
        operators=operators(structure),
        scopes=scope_sizes(structure),
        control=controls(structure.main, IR),
        external=external,
        states=[_state(each, items) for each in variables(net).values()],
        sizes=dict(flat(given)) if isinstance(given, dict) else {},
    )


def _layers(net: Net) -> Iterator[Layer]:
    for layer in net.layers:
        yield layer
        for body in layer.bodies.values():
            yield from _layers(body)


def _file_size(path: Path) -> int | None:
    """The size of a regular file; None if there is none: opening a pipe would wait forever."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


# -- variables


def _state(found: VariableLayers, items: dict[int, Item]) -> VariableFacts:
    read, assigned = ([layer.where for _, layer in ends] for ends in (found.reads, found.assigns))
    if not found.reads:
        return VariableFacts(found.id, "?", None, Initial("none"), read, assigned)
    layer = found.reads[0][1]
    initial = _initial(items[id(layer)])
    return VariableFacts(found.id, declared(layer)[0], shape_of(shape_text(layer)), initial, read, assigned)


def _initial(item: Item) -> Initial:
    """The value of the variable before it is assigned: the input of its ReadValue."""
    ref = item.input(0)
    if ref is None:
        return Initial("none")
    port = tensor_port(ref)
    seen: list[Item] = []
    while ref is not None and ref.item.operator in ("Convert", "Broadcast", "Tile") and ref.item not in seen:
        seen.append(ref.item)
        ref = ref.item.input(0)
    is_computed = any(each.operator != "Convert" for each in seen)
    data = None if ref is None else ref.item.data
    value = "" if data is None else _uniform(data)
    return Initial("computed" if is_computed or data is None else "constant", value, port.type, port.shape)


def _uniform(data: Data) -> str:
    """The value of all elements of a constant: "zeros", or the number; empty if they differ or cannot be read."""
    values = data.array(_LOOKED_AT)
    if values is None or not values.size or values.dtype.kind == "O":
        return ""
    cells = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
    if not (cells == cells[0]).all():
        return ""
    if not cells[0].any():
        return "zeros"
    return str(int(values[0]) if values.dtype.kind in "biu" else values[0])
