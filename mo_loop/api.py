"""The functions of the package: `convert_model`, `read_model` and `save_model`, and the class Model.

    model = convert_model("model.onnx")
    save_model(model, "model.xml")

The conversion itself is in mo_loop/conversion.py. The command line has the same options.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from mo_loop.batching.storage.locations import Location, is_url, location_of
from mo_loop.conversion import Conversion, phase, told_of_failures
from mo_loop.conversion_limits import Limits, writing_within
from mo_loop.errors import InputError, UsageError
from mo_loop.graph import Graph, Value
from mo_loop.graph.data_file import DataFile
from mo_loop.graph.shape import Shape
from mo_loop.graph.types import ElementType
from mo_loop.ir.bin import Weights
from mo_loop.ir.pair import draft_pair, new_pair
from mo_loop.ir.xml import XmlWriter, in_memory
from mo_loop.ops.base import Constant, Result
from mo_loop.options import ConvertOptions
from mo_loop.support.files import keep_sources
from mo_loop.support.garbage_collection import paused_collector
from mo_loop.support.signatures import made_of, takes

if TYPE_CHECKING:
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
        return [Port.of(_output_name(result), result.value) for result in self.graph.results]

    def to_openvino(self) -> Any:
        """The model as an `openvino.Model`, made in memory. InputError if the package openvino is missing."""
        try:
            import openvino
        except ImportError as error:
            raise InputError(
                "the package openvino cannot be imported", why=str(error), code="ML203",
                hint="pip install openvino",
            ) from error  # fmt: skip
        with writing_within(self.graph.remaining, _size_of(_data_files(self.graph))):
            xml, data = in_memory(self.graph)
        return openvino.Core().read_model(xml, data)

    def __repr__(self) -> str:
        return f"Model({self.graph.name!r}, inputs={self.inputs}, outputs={self.outputs})"


@dataclass(frozen=True, kw_only=True)
class ConvertArguments(ConvertOptions):
    """The arguments of `convert_model` besides the source: the options, and these."""

    # fmt: off
    compress_to_fp16: bool = field(default=False, init=False)
    """This is an argument of `save_model`."""
    dump: str | os.PathLike[str] | None = field(default=None, metadata={
        "text": "A folder for the graph as loaded, what each pass changes, and a page that shows it (docs/dump.md).",
    })
    observers: Iterable[Observer] = field(default=(), metadata={
        "text": "Called with a `mo_loop.transforms.manager.Step` after every pass, and with a "
        "`mo_loop.transforms.manager.Phase` when another part of the conversion begins and when it has ended.",
    })
    stop_after: str | None = field(default=None, metadata={
        "text": "The name of the last pass to run. For debugging: the runtime needs the later passes.",
    })
    check_passes: bool | None = field(default=None, metadata={
        "text": "Check the invariants of the graph after every pass that changes it; slow.",
    })
    # fmt: on


@takes(ConvertArguments)
def convert_model(source: Any, **arguments: Any) -> Model:
    """Convert an ONNX model.

    Args:
        source: Path or URL of an .onnx file, an open binary file, the bytes of one, or an `onnx.ModelProto`. A model
            at a URL is copied to the local disk, where it stays as long as the returned Model or a copy of it.
        arguments: The options, which follow.

    Returns:
        The converted model, for `save_model` or `Model.to_openvino`.

    Raises:
        InputError: the file, the model or an argument is wrong.
        UnsupportedError: the IR cannot express a part of the model; several errors are one ConversionErrors.
        LimitError: the conversion exceeds one of `limits`.
    """
    options = made_of(ConvertArguments, arguments, "convert_model")
    observers = list(options.observers)
    if options.dump is not None:
        from mo_loop.look.dump import Dumper

        observers.insert(0, Dumper(options.dump))
    conversion = Conversion(options, observers, stop_after=options.stop_after, check_passes=options.check_passes)
    if is_url(source):
        return _converted_at_url(conversion, location_of(source))
    return Model(conversion.run(source))


def _converted_at_url(conversion: Conversion, where: Location) -> Model:
    """The model at a URL; its files are removed with the last copy of the Model."""
    from mo_loop.batching.storage.scratch import Scratch
    from mo_loop.batching.storage.staging import staged

    with ExitStack() as stack:
        here = stack.enter_context(staged(where, Scratch()))
        model = Model(conversion.run(str(here.path)))
        model.graph.sources = urls = _Urls(here.urls)
        weakref.finalize(urls, stack.pop_all().close)
    return model


class _Urls(list[str]):
    """The URLs of the files of a model, which its copies share: as long as one of them exists, the files do."""


def read_model(
    xml_path: str | os.PathLike[str], weights: str | os.PathLike[str] | None = None, *,
    limits: Limits | Mapping[str, Any] | None = None,
) -> Model:  # fmt: skip
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


def _output_name(result: Result) -> str:
    """The names of the outputs. Older IR names the tensor that a Result reads, not the Result."""
    names: Sequence[str] = result.output_names or result.value.names or (result.name,)
    return names[0]


def save_model(
    model: Model, xml_path: str | os.PathLike[str], compress_to_fp16: bool = False, *,
    observers: Sequence[Observer] = (), durable: bool = False,
) -> None:  # fmt: skip
    """Write a model as IR: the .xml, and the .bin of the same name.

    Both files are written under temporary names and renamed at the end: after an error, older files are unchanged.

    Args:
        model: The result of `convert_model` or `read_model`.
        xml_path: The path or URL of the .xml.
        compress_to_fp16: Store f32 weights as f16. By default, numbers stay exact.
        observers: Are called with a Phase when compressing and writing begin and end.
        durable: Return when the files are on the disk (fsync).

    Raises:
        UsageError: an output is a file that the model was read from.
        FileError: a file cannot be written, or one with weights of the model has changed.
        LimitError: the .bin has more bytes, or the conversion takes longer, than the limits of the conversion allow.
    """
    if not isinstance(model, Model):
        name = f"{type(model).__module__}.{type(model).__qualname__}"
        is_of_openvino = name.startswith("openvino.")
        raise UsageError(
            f"save_model got an object of type {name}", why="it writes a result of convert_model or read_model",
            hint="openvino.save_model writes a model of OpenVINO" if is_of_openvino else "",
        )  # fmt: skip
    write_model(model, xml_path, compress_to_fp16, observers, durable=durable)


def write_model(
    model: Model, xml_path: str | os.PathLike[str], compress_to_fp16: bool, observers: Sequence[Observer], *,
    durable: bool,
) -> tuple[int, int]:  # fmt: skip
    """The same as `save_model`; returns the bytes of the .xml and of the .bin."""
    if is_url(xml_path):
        return _save_at_url(model, location_of(str(xml_path)), compress_to_fp16, observers)
    path = Path(xml_path)
    files = _data_files(model.graph)
    sources = (*model.graph.sources, *(file.path for file in files))
    keep_sources((path, path.with_suffix(".bin")), sources, "give the output another name")
    with paused_collector(), told_of_failures(observers):
        _save(model.graph, files, new_pair(path, durable=durable), compress_to_fp16, observers)
        return path.stat().st_size, path.with_suffix(".bin").stat().st_size


def _save_at_url(
    model: Model, where: Location, compress_to_fp16: bool, observers: Sequence[Observer]
) -> tuple[int, int]:
    from mo_loop.batching.storage.scratch import Scratch
    from mo_loop.batching.storage.staging import local_name
    from mo_loop.batching.storage.uploading import upload_pair

    if where.suffix != ".xml":
        raise UsageError(f"the output {where.name!r} does not end in .xml", hint="name it, for example, model.xml")
    keep_sources((where, where.with_suffix(".bin")), model.graph.sources, "give the output another name")
    with Scratch().room(where, 0) as room:
        draft = room.folder / local_name(where)
        sizes = write_model(model, draft, compress_to_fp16, observers, durable=False)
        upload_pair(draft, where)
        return sizes


def compressed(graph: Graph, observers: Sequence[Observer] = ()) -> Graph:
    """A copy whose weights are stored as f16, as `save_model` writes it."""
    from mo_loop.transforms.common.compress_float_constants import CompressFloatConstants

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
) -> None:  # fmt: skip
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
