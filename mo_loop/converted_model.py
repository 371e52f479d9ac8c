"""A converted model, or one that was read from IR: the class Model, how it is read and written on the local disk."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from mo_loop import text_library
from mo_loop.conversion import phase, told_of_failures
from mo_loop.conversion_info import size_rows
from mo_loop.conversion_limits import Limits, writing_within
from mo_loop.errors import InputError
from mo_loop.graph import DataFile, ElementType, Graph, Shape, Value
from mo_loop.ir.bin import Weights
from mo_loop.ir.pair import draft_pair, new_pair
from mo_loop.ir.xml import XmlWriter, in_memory
from mo_loop.ops.base import Constant
from mo_loop.printable import html_text, printable
from mo_loop.support.files import keep_sources
from mo_loop.support.process_memory import paused_collector
from mo_loop.transforms.manager import Observer


class Port(str):
    """An input or output of a Model: its name, a string with the type and shape of the tensor as attributes.

    Attributes:
        names: All names of the tensor.
        type: Its element type (`mo_loop.graph.types`); None if it is not known, or the value is not a tensor.
        shape: Its dimensions, ints and symbols; None if the rank is not known.
        type_text: Both as text, `f32[1,3,?,?]`.
    """

    names: tuple[str, ...]
    type: ElementType | None
    shape: Shape
    type_text: str

    @classmethod
    def of(cls, name: str, value: Value) -> Port:
        """The port `name` of this value."""
        port = cls(name)
        port.names = tuple(value.names) or (name,)
        port.type, port.shape, port.type_text = value.type.dtype, value.shape, str(value.type)
        return port

    @property
    def name(self) -> str:
        """The name as a plain string."""
        return str(self)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.type_text}>"


class Model:
    """A converted model, or a model read from IR. `graph` is ready to be saved or run.

    It can be pickled, with all weights; `copy.deepcopy` returns a copy that shares them.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def inputs(self) -> list[Port]:
        """The inputs, in the order of the ONNX model."""
        return [Port.of(parameter.name, parameter.output) for parameter in self.graph.parameters]

    @property
    def outputs(self) -> list[Port]:
        """The outputs, in the order of the ONNX model."""
        # Older IR names the tensor that a Result reads, not the Result.
        return [
            Port.of((result.output_names or result.value.names or (result.name,))[0], result.value)
            for result in self.graph.results
        ]

    def to_openvino(self) -> Any:
        """The model as an `openvino.Model`, made in memory. InputError if the package openvino is missing."""
        try:
            import openvino
        except ImportError as error:
            raise InputError(
                "the package openvino cannot be imported", why=str(error), code="ML203",
                hint="pip install openvino",
            ) from error
        with writing_within(self.graph.remaining, _size_of(_data_files(self.graph))):
            xml, data = in_memory(self.graph)
        core = openvino.Core()
        text_library.add_to(core, xml)
        return core.read_model(xml, data)

    def _repr_html_(self) -> str:
        """A table for notebooks: inputs, outputs, control flow, and which sizes of inputs may change."""
        kinds = Counter(type(node).__name__ for scope in self.graph.scopes() for node in scope.nodes_with_bodies())
        sizes = self.graph.rt_info.get("sizes") or {}
        rows = {
            "inputs": list(map(_row, self.inputs)), "outputs": list(map(_row, self.outputs)),
            "control flow": [", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"],
            "sizes": size_rows(sizes) or ["not recorded"],
        }
        cells = "".join(
            f"<tr><th>{title}</th><td>{'<br>'.join(map(html_text, map(printable, _few(lines))))}</td></tr>"
            for title, lines in rows.items()
        )
        return f"<table><caption>{html_text(printable(self.graph.name))}</caption>{cells}</table>"

    def __repr__(self) -> str:
        return f"Model({self.graph.name!r}, inputs={self.inputs}, outputs={self.outputs})"


ROWS = 12
"""The number of inputs or outputs that a notebook shows."""


def _row(port: Port) -> str:
    return f"{port.name}: {port.type_text}"


def _few(lines: list[str]) -> list[str]:
    return lines if len(lines) <= ROWS else [*lines[: ROWS - 1], f"and {len(lines) - ROWS + 1} more"]


def read_model(
    xml_path: str | os.PathLike[str], weights: str | os.PathLike[str] | None = None, *,
    limits: Limits | Mapping[str, Any] | None = None,
) -> Model:
    """Read OpenVINO IR of version 10 or 11.

    Constants stay in the .bin until they are needed. Unknown operations, and operations whose types in the file differ
    from the inferred ones, are kept unchanged.

    Args:
        xml_path: The path of the .xml.
        weights: The path of the .bin; by default it has the name of the .xml.
        limits: Those of `convert_model`.

    Returns:
        The model, as `convert_model` returns one.

    Raises:
        InputError: a file is missing, is not IR, or breaks a rule of the format.
        UnsupportedError: the IR has another version, or a part of it cannot be read.
        LimitError: the IR exceeds one of `limits`.
    """
    from mo_loop.ir.reader import read

    with paused_collector():
        return Model(read(Path(xml_path), None if weights is None else Path(weights), Limits.of(limits)))


def write_pair(
    model: Model, path: Path, compress_to_fp16: bool = False, observers: Sequence[Observer] = (), *,
    durable: bool = False,
) -> tuple[int, int]:
    """Write a model as IR on the local disk, as `save_model` does; returns the bytes of the .xml and of the .bin."""
    files = _data_files(model.graph)
    sources = (*model.graph.sources, *(file.path for file in files))
    keep_sources((path, path.with_suffix(".bin")), sources, "give the output another name")
    with paused_collector(), told_of_failures(observers):
        _save(model.graph, files, new_pair(path, durable=durable), compress_to_fp16, observers)
        return path.stat().st_size, path.with_suffix(".bin").stat().st_size


def compressed(graph: Graph, observers: Sequence[Observer] = ()) -> Graph:
    """A copy whose weights are stored as f16, as `save_model` writes it."""
    from mo_loop.transforms.low_precision.compress_weights import CompressFloatConstants

    with phase("compressing", observers, graph) as compressing:
        graph = compressing.graph = graph.clone()
        halving = CompressFloatConstants()
        halving.run(graph)
        graph.validate()
        compressing.subject = halving.counts
        parameters = graph.rt_info.get("conversion_parameters", {})
        graph.rt_info["conversion_parameters"] = {**parameters, "compress_to_fp16": "True"}
    return graph


def save_draft(graph: Graph, path: Path, compress_to_fp16: bool) -> None:
    """Write a pair that `mo_loop.ir.pair.move_pair` moves to its place, in a folder of this process."""
    _save(graph, _data_files(graph), draft_pair(path), compress_to_fp16, ())


def _save(
    graph: Graph, files: Sequence[DataFile], pair: AbstractContextManager[tuple[BinaryIO, TextIO]],
    compress_to_fp16: bool, observers: Sequence[Observer],
) -> None:
    with writing_within(graph.remaining, _size_of(files)):
        if compress_to_fp16:
            graph = compressed(graph, observers)
        with phase("writing", observers, graph) as writing, pair as (data, xml):
            writing.subject = weights = Weights(data)
            XmlWriter(xml, weights).write(graph)
            for file in files:
                file.require_unchanged()


def _data_files(graph: Graph) -> list[DataFile]:
    """The files that hold weights of the model."""
    tensors = (node.tensor for scope in graph.scopes() for node in scope.of(Constant))
    return list(dict.fromkeys(file for tensor in tensors for file in tensor.files))


def _size_of(files: Iterable[DataFile]) -> int:
    """The bytes of all files."""
    return sum(file.identity.size for file in files if file.identity is not None)
