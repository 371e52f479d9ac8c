"""Lists the external data files of a model, and makes other programs read the files that a conversion would read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mo_loop.errors import ConversionErrors, FileError, InputError, ModelError, MoLoopError
from mo_loop.frontend.external_files import ExternalFiles, range_of, tensor_from
from mo_loop.frontend.model import OnnxModel, opened
from mo_loop.frontend.onnx_graphs import OnnxGraph, all_graphs, tensor_protos
from mo_loop.frontend.strip_weights import OWN_FILE
from mo_loop.graph.data_file import DataFile
from mo_loop.graph.origin import Origin
from mo_loop.graph.tensor import Tensor

_EXTERNAL = 1  # TensorProto.EXTERNAL
LARGEST = (1 << 31) - (1 << 16)
"""Bytes of a ModelProto that can be written and read."""


def external_files(path: str, allowed: Sequence[str] = ()) -> list[DataFile]:
    """The files of external data of the model at `path`, each once, sorted.

    Files that are missing or may not be read are left out: the conversion reports them.

    Raises:
        FileError: the file cannot be read, or is not an ONNX model.
    """
    model = opened(path, allowed)
    found = {}
    for _, tensor in _external(model):
        try:
            file = model.files.at(location_of(tensor), tensor.name)
        except FileError:
            continue
        found[file.path] = file
    return [found[path] for path in sorted(found)]


def external_ranges(path: str | os.PathLike[str]) -> list[tuple[str, list[tuple[int, int]]]]:
    """The locations of the external data of the model at `path`, and the bytes that its tensors read there: from, to.

    The files need not exist. A tensor whose range or type is not valid has none: the conversion reports it.

    Raises:
        FileError: the file cannot be read, or is not an ONNX model.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for _, tensor in _external(opened(path)):
        ranges = found.setdefault(location_of(tensor), [])
        with suppress(MoLoopError, OverflowError):
            ranges.append(range_of(tensor))
    return list(found.items())


def require_external_data(model: OnnxModel) -> None:
    """Raise the errors of all tensors whose external data cannot be read: ONNX Runtime and onnx open these files
    without the rules of `ExternalFiles`.

    Raises:
        FileError: a file is missing, is too short, or may not be read.
        ModelError: the data does not fit the declared type and shape.
        ConversionErrors: several of these errors, grouped.
    """
    _data_of(_external(model), model)


def needs_permission(model: OnnxModel) -> bool:
    """Whether external data is read only because its folder is allowed: ONNX Runtime may refuse it."""
    files = ExternalFiles(model.files.folder)
    try:
        for _, tensor in _external(model):
            files.at(location_of(tensor), tensor.name)
    except FileError:
        return True
    return False


def with_data(model: OnnxModel) -> Any:
    """A copy of the ModelProto with all data in it, read by the rules of `ExternalFiles`.

    Raises:
        InputError: the data has more than 2 GB, which a message cannot hold; or an error of `require_external_data`.
    """
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model.proto)
    functions = {(each.domain, each.name, getattr(each, "overload", "")): each for each in copy.functions}
    tensors = list(_external(replace(model, proto=copy, functions=functions), own=True))
    data = _data_of(tensors, model)
    if copy.ByteSize() + sum(each.nbytes for each in data) > LARGEST:
        raise InputError(
            "the model has more than 2 GB", why="all of it has to be in one message", code="ML204",
            hint="cut it first: mo-loop convert --input, --output show where",
        )  # fmt: skip
    for (_, proto), tensor in zip(tensors, data, strict=True):
        proto.ClearField("external_data")
        proto.ClearField("data_location")
        proto.raw_data = b"".join(tensor.blocks())
    return copy


def _data_of(tensors: Iterable[tuple[OnnxGraph, Any]], model: OnnxModel) -> list[Tensor]:
    """The data of tensors of the graphs; the errors are those of `require_external_data`."""
    data, errors = [], []
    for graph, tensor in tensors:
        try:
            data.append(tensor_from(tensor, model.files))
        except (FileError, ModelError) as error:
            errors.append(error.at(Origin(graph.scope, output=tensor.name)))
    if errors:
        raise errors[0] if len(errors) == 1 else ConversionErrors(errors)
    return data


def location_of(tensor: Any) -> str:
    """The location of a tensor's external data; the last one counts, as in onnx."""
    return next((str(entry.value) for entry in reversed(tensor.external_data) if entry.key == "location"), "")


def _external(model: OnnxModel, *, own: bool = False) -> Iterator[tuple[OnnxGraph, Any]]:
    """The tensors whose data is in other files, with `own` also those whose data is left in the file of the model, each
    with its graph."""
    for graph in all_graphs(model):
        for tensor in tensor_protos(graph):
            if tensor.data_location == _EXTERNAL and (own or location_of(tensor) != OWN_FILE):
                yield graph, tensor
