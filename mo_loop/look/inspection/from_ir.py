"""inspect_ir: the inspection of an IR. It reads the .xml, and only constants of a few bytes of the .bin."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mo_loop.ir.reader.layer_records import Layer, Net
from mo_loop.ir.reader.parse import records
from mo_loop.look.inspection.contents import controls, operators, scope_sizes
from mo_loop.look.inspection.description import ExternalFile, Inspection
from mo_loop.look.inspection.states_of_ir import states_of
from mo_loop.look.records.of_graph import flat
from mo_loop.look.records.of_layers import number, structure_of_layers
from mo_loop.look.records.structure import IR, OutputRecord, Ref
from mo_loop.look.records.tensor_ports import TensorPort, tensor_port


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
        inputs=[tensor_port(Ref(each, 0)) for each in structure.main.parameters],
        outputs=[_output(each) for each in structure.main.results],
        operators=operators(structure),
        scopes=scope_sizes(structure),
        control=controls(structure.main, IR),
        external=external,
        states=states_of(structure),
        sizes=dict(flat(given)) if isinstance(given, dict) else {},
    )


def _layers(net: Net) -> Iterator[Layer]:
    for layer in net.layers:
        yield layer
        for body in layer.bodies.values():
            yield from _layers(body)


def _output(result: OutputRecord) -> TensorPort:
    port = tensor_port(result.ref)
    return TensorPort(result.name, port.type, port.shape)


def _file_size(path: Path) -> int | None:
    """The size of a regular file; None if there is none: opening a pipe would wait forever."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
