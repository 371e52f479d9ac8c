"""Inputs and outputs in files: the values of `--input-data`, and the files of `--save`.

    given_sets(["inputs.npz"], names)       # arrays by the name of their input
    given_sets(["x=x.npy"], names)          # one array; without a name that of the next input which has none
    given_sets(["test_data_set_0"], names)  # input_0.pb, input_1.pb: in the order of the inputs, or by their own names
    save(Path("set.npz"), [("x", array)])

A sequence `s` is in two arrays of an .npz: `s.data`, all elements flattened and concatenated, and `s.shapes`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.errors import FileError, UsageError
from mo_loop.frontend.model import OnnxModel
from mo_loop.support.files import write_whole
from mo_loop.support.packed_sequences import pack_sequence, unpack_sequence

Feeds = dict[str, Any]


def given_sets(texts: Iterable[str], names: Sequence[str]) -> list[tuple[str, Feeds]]:
    """(name, arrays) of each set. Files .npy that follow each other are one set; a folder may have several sets.

    `names` are the inputs of the model, in order.

    Raises:
        FileError: a file does not exist, or is not of the kind that its name has.
        UsageError: a name is not that of an input.
    """
    found: list[tuple[str, Feeds]] = []
    for text in texts:
        name, path = _named(text)
        if path.suffix == ".npy":
            if not found or not found[-1][0].endswith(".npy") or (name and name in found[-1][1]):
                found.append((text, {}))
            known = found[-1][1]
            free = [each for each in names if each not in known]
            if not free:
                raise UsageError(f"{text}: the model has {len(names)} inputs, and all have a value")
            known[name or free[0]] = _read_array(path)
            found[-1] = (text, known)
        elif path.is_dir():
            found += [(str(each), _read_protos(each, names)) for each in _data_sets(path)]
        else:
            found.append((text, _read_arrays(path)))
    for text, feeds in found:
        _require_inputs(text, feeds, names)
    return found


def read_sets(
    inputs: Sequence[Any], model: OnnxModel, names: Sequence[str] | None = None
) -> list[tuple[str, Feeds]]:
    """(name, arrays) of each set in `inputs`: arrays by name, then those of files, in the types of the model.

    `names` are the inputs that need a value, in order; by default those of the model.

    Raises:
        FileError: as `given_sets`.
        UsageError: an input has no value, or a set is neither a path nor arrays by name.
    """
    names = input_names(model) if names is None else names
    types = {each.name: _numpy_type(each.type) for each in model.proto.graph.input}
    arrays = [each for each in inputs if isinstance(each, Mapping)]
    paths = [each for each in inputs if not isinstance(each, Mapping)]
    for each in paths:
        if not isinstance(each, str | os.PathLike):
            raise UsageError(
                f"a set of inputs is of type {type(each).__name__}", hint="give the path of a file, or arrays by name"
            )
    sets = [(f"given {place}", dict(each)) for place, each in enumerate(arrays)]
    for text, feeds in sets:
        _require_inputs(text, feeds, names)
    sets += given_sets([os.fspath(each) for each in paths], names)
    return [(name, _typed_set(feeds, types)) for name, feeds in sets]


def take_outputs(text: str, feeds: Feeds, model: OnnxModel) -> Feeds:
    """The outputs that a set has in addition to its inputs: arrays of an .npz, or output_0.pb if `text` is a folder."""
    types = {each.name: _numpy_type(each.type) for each in model.proto.graph.output}
    found = {name: feeds.pop(name) for name in types if name in feeds}
    if text and Path(text).is_dir():
        found = _read_protos(Path(text), list(types), "output")
    return _typed_set(found, types)


def read_outputs(texts: Iterable[Any], model: OnnxModel, count: int) -> list[Feeds]:
    """The outputs that are expected for each of `count` sets: arrays by name, .npz files or folders with output_0.pb.

    Raises:
        FileError: as `given_sets`.
        UsageError: their number is not that of the sets, or one of them has no output of the model.
    """
    names = [each.name for each in model.proto.graph.output]
    found: list[Feeds] = []
    for text in texts:
        if isinstance(text, Mapping):
            outputs = take_outputs("", dict(text), model)
        elif Path(text).is_dir():
            outputs = take_outputs(os.fspath(text), {}, model)
        else:
            outputs = take_outputs("", _read_arrays(Path(text)), model)
        if not outputs:
            which = "a set" if isinstance(text, Mapping) else os.fspath(text)
            raise UsageError(f"{which} has no output of the model", hint=f"the outputs are {', '.join(names)}")
        found.append(outputs)
    if len(found) != count:
        text = f"{len(found)} sets of expected outputs for {count} sets of inputs"
        raise UsageError(text, hint="give one for each, in their order")
    return found


def input_names(model: OnnxModel) -> list[str]:
    """The inputs that need a value: those that no initializer gives one."""
    constants = {each.name for each in model.proto.graph.initializer}
    return [each.name for each in model.proto.graph.input if each.name not in constants]


def save(path: Path, arrays: Iterable[tuple[str, Any]]) -> None:
    """Write an .npz. FileError if it cannot be written."""
    plain: Feeds = {}
    for name, value in arrays:
        if isinstance(value, list):
            plain[f"{name}.data"], plain[f"{name}.shapes"] = _packed(value)
        elif value is not None:
            plain[name] = _storable(np.asarray(value))
    data = io.BytesIO()
    np.savez_compressed(data, **plain)
    write_whole(path, data.getvalue())


def _typed_set(feeds: Mapping[str, Any], types: Mapping[str, Any]) -> Feeds:
    """Arrays of types that numpy lacks, which files store as bytes, in the numpy `types` of their inputs."""
    return {name: _typed(value, types.get(name)) for name, value in feeds.items()}


def _typed(value: Any, dtype: Any) -> Any:
    if isinstance(value, list):
        return [_typed(each, dtype) for each in value]
    if value is None:  # an optional that is absent
        return None
    value = np.asarray(value)
    if dtype is not None and value.dtype.kind == "V" and value.dtype.itemsize == np.dtype(dtype).itemsize:
        return value.view(dtype)
    return value


def _numpy_type(proto: Any) -> Any:
    from onnx import helper

    kind = proto.WhichOneof("value")
    while kind in ("sequence_type", "optional_type"):
        proto = getattr(proto, kind).elem_type
        kind = proto.WhichOneof("value")
    return helper.tensor_dtype_to_np_dtype(proto.tensor_type.elem_type) if kind == "tensor_type" else None


def _named(text: str) -> tuple[str, Path]:
    """The name before the last `=` of a text that is not the path of a file."""
    name, equals, path = text.rpartition("=")
    return (name, Path(path)) if equals and not Path(text).exists() else ("", Path(text))


def _require_inputs(text: str, feeds: Feeds, names: Sequence[str]) -> None:
    unknown = [name for name in feeds if name not in names]
    missing = [name for name in names if name not in feeds]
    if unknown and missing:
        raise UsageError(
            f"{text} has no value for the input {missing[0]!r}", why=f"it has {', '.join(map(str, feeds))}",
            hint=f"the inputs are {', '.join(names)}",
        )  # fmt: skip
    if missing:
        raise UsageError(f"{text} has no value for the input {missing[0]!r}", hint=f"inputs: {', '.join(names)}")


# -- files


def _read_array(path: Path) -> np.ndarray:
    found = _loaded(path)
    if not isinstance(found, np.ndarray):
        raise FileError(f"{path} is not one array", hint="give an .npy file", code="ML214")
    return found


def _read_arrays(path: Path) -> Feeds:
    found = _loaded(path)
    if isinstance(found, np.ndarray):
        raise FileError(
            f"{path} has one array without a name", hint="give an .npz file, or NAME=FILE.npy", code="ML214"
        )
    with found:
        try:
            arrays = {name: found[name] for name in found.files}
        except Exception as error:  # those of numpy, zipfile and its decompressors share no base class
            raise FileError(f"{path} cannot be read", why=str(error), hint="write it again", code="ML212") from None
    lists = [name.removesuffix(".shapes") for name in arrays if name.endswith(".shapes")]
    for name in lists:
        if f"{name}.data" in arrays:
            arrays[name] = unpack_sequence(arrays.pop(f"{name}.data"), arrays.pop(f"{name}.shapes"))
    return arrays


def _loaded(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise FileError(f"the file {path} does not exist", code="ML210", hint="check the path") from None
    except Exception as error:  # those of numpy and zipfile share no base class
        raise FileError(
            f"{path} is not a file of arrays", why=(str(error).splitlines() or [type(error).__name__])[0],
            hint="give .npz or .npy files, or a folder with input_0.pb", code="ML214",
        ) from None  # fmt: skip


def _data_sets(folder: Path) -> list[Path]:
    """The folder itself, or those below it, that have input_0.pb."""
    found = [each for each in (folder, *sorted(folder.glob("*"))) if (each / "input_0.pb").is_file()]
    if not found:
        raise FileError(
            f"{folder} has no inputs", why="neither it nor a folder in it has a file input_0.pb",
            hint="give a folder in the layout of ONNX's tests: test_data_set_0/input_0.pb", code="ML214",
        )  # fmt: skip
    return found


def _read_protos(folder: Path, names: Sequence[str], kind: str = "input") -> Feeds:
    """The tensors of a folder of this kind, by the names that the files have, else in the order of `names`."""
    feeds: Feeds = {}
    for place, name in enumerate(names):
        path = folder / f"{kind}_{place}.pb"
        if not path.is_file():
            break
        own, value = _read_proto(path)
        feeds[own if own in names and own not in feeds else name] = value
    return feeds


def _read_proto(path: Path) -> tuple[str, Any]:
    """The name and value of a TensorProto, SequenceProto or OptionalProto; the file does not have the kind."""
    import onnx

    data = path.read_bytes()
    readers = (
        (onnx.TensorProto, onnx.numpy_helper.to_array), (onnx.SequenceProto, onnx.numpy_helper.to_list),
        (onnx.OptionalProto, onnx.numpy_helper.to_optional),
    )  # fmt: skip
    for kind, value_of in readers:
        proto = kind()
        try:
            proto.ParseFromString(data)
            if kind is onnx.TensorProto and not proto.data_type:
                continue
            if kind is onnx.TensorProto and proto.data_location == onnx.TensorProto.EXTERNAL:
                break
            return proto.name, value_of(proto)
        except Exception:  # those of protobuf, onnx and numpy share no base class
            continue
    raise FileError(
        f"{path} is not a tensor of ONNX", why="it cannot be parsed, or has its values in another file", code="ML214"
    )


def _packed(items: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    if not items:
        return np.zeros(0, np.float32), np.zeros((0, 1), np.int64)
    data, shapes = pack_sequence(items)
    return _storable(data), shapes


def _storable(array: np.ndarray) -> np.ndarray:
    """Strings of numpy's own type: a file without pickled objects has no others."""
    if array.dtype.kind != "O":
        return array
    text = [each.decode() if isinstance(each, bytes) else str(each) for each in array.ravel().tolist()]
    return np.array(text, dtype=np.str_).reshape(array.shape)
