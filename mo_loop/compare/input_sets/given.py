"""Inputs and outputs in files: the values of `--input-data`, and the files of `--save`.

    read_sets(["inputs.npz"], model)        # arrays by the name of their input
    read_sets(["x=x.npy"], model)           # one array; without a name that of the next input which has none
    read_sets(["test_data_set_0"], model)   # input_0.pb, input_1.pb: in the order of the inputs, or by their own names
    save(Path("set.npz"), [("x", array)])

A sequence `s` is in two arrays of an .npz: `s.data`, all elements flattened and concatenated, and `s.shapes`.
"""

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.verify_options import Feeds
from mo_loop.errors import FileError, UsageError
from mo_loop.frontend.model import OnnxModel
from mo_loop.support.files import write_whole
from mo_loop.support.packed_arrays import pack_sequence, unpack_sequence


def read_sets(inputs: Sequence[Any], model: OnnxModel, names: Sequence[str] | None = None) -> list[tuple[str, Feeds]]:
    """(name, arrays) of each set in `inputs`: arrays by name, then those of files, in the types of the model.

    Files .npy that follow each other are one set; a folder may have several sets. `names` are the inputs that need a
    value, in order; by default those of the model.

    Raises:
        FileError: a file does not exist, or is not of the kind that its name has.
        UsageError: an input has no value, or a set is neither a path nor arrays by name.
    """
    names = input_names(model) if names is None else names
    arrays = [each for each in inputs if isinstance(each, Mapping)]
    found = [(f"given {place}", dict(each)) for place, each in enumerate(arrays)]
    for each in inputs:
        if isinstance(each, str | os.PathLike):
            _add_file(found, os.fspath(each), names)
        elif not isinstance(each, Mapping):
            raise UsageError(
                f"a set of inputs is of type {type(each).__name__}", hint="give the path of a file, or arrays by name"
            )
    for text, feeds in found:
        missing = [name for name in names if name not in feeds]
        if missing:
            has = ", ".join(map(str, feeds)) if any(name not in names for name in feeds) else ""
            raise UsageError(
                f"{text} has no value for the input {missing[0]!r}", why=has and f"it has {has}",
                hint=f"the inputs are {', '.join(names)}",
            )
    return [(name, _typed_set(feeds, model.proto.graph.input)) for name, feeds in found]


def _add_file(found: list[tuple[str, Feeds]], text: str, names: Sequence[str]) -> None:
    """Add the sets of a file or folder, which can have the name of an input and `=` before its path."""
    name, equals, file = text.rpartition("=")
    if not equals or Path(text).exists():
        name, file = "", text
    path = Path(file)
    if path.is_dir():
        found += [(str(each), _read_protos(each, names)) for each in _data_sets(path)]
    elif path.suffix != ".npy":
        found.append((text, _read_arrays(path)))
    else:
        if not found or not found[-1][0].endswith(".npy") or (name and name in found[-1][1]):
            found.append((text, {}))
        known = found[-1][1]
        free = [each for each in names if each not in known]
        if not free:
            raise UsageError(f"{text}: the model has {len(names)} inputs, and all have a value")
        known[name or free[0]] = array = _loaded(path)
        if not isinstance(array, np.ndarray):
            raise FileError(f"{path} is not one array", hint="give an .npy file", code="ML214")
        found[-1] = (text, known)


def take_outputs(text: str, feeds: Feeds, model: OnnxModel) -> Feeds:
    """The outputs that a set has in addition to its inputs: arrays of an .npz, or output_0.pb if `text` is a folder."""
    entries = model.proto.graph.output
    found = {each.name: feeds.pop(each.name) for each in entries if each.name in feeds}
    if text and Path(text).is_dir():
        found = _read_protos(Path(text), [each.name for each in entries], "output")
    return _typed_set(found, entries)


def read_outputs(texts: Iterable[Any], model: OnnxModel, count: int) -> list[Feeds]:
    """The outputs that are expected for each of `count` sets: arrays by name, .npz files or folders with output_0.pb.

    Raises:
        FileError: as `read_sets`.
        UsageError: their number is not that of the sets, or one of them has no output of the model.
    """
    found: list[Feeds] = []
    for text in texts:
        path = "" if isinstance(text, Mapping) else os.fspath(text)
        feeds = dict(text) if not path else {} if Path(path).is_dir() else _read_arrays(Path(path))
        outputs = take_outputs(path, feeds, model)
        if not outputs:
            listed = ", ".join(each.name for each in model.proto.graph.output)
            raise UsageError(f"{path or 'a set'} has no output of the model", hint=f"the outputs are {listed}")
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
            known: Feeds = {} if value else {"rank": 1, "dtype": np.float32}
            plain[f"{name}.data"], plain[f"{name}.shapes"] = pack_sequence(value, **known)
        elif value is not None:
            plain[name] = np.asarray(value)
    for name, array in plain.items():
        if array.dtype.kind == "O":  # strings of numpy's own type: a file without pickled objects has no others
            text = [each.decode() if isinstance(each, bytes) else str(each) for each in array.ravel().tolist()]
            plain[name] = np.array(text, dtype=np.str_).reshape(array.shape)
    data = io.BytesIO()
    np.savez_compressed(data, **plain)
    write_whole(path, data.getvalue())


def _typed_set(feeds: Mapping[str, Any], entries: Iterable[Any]) -> Feeds:
    """Arrays of types that numpy lacks, which files store as bytes, in the types that the model declares."""
    from onnx import helper

    types = {}
    for each in entries:
        proto = each.type
        while (kind := proto.WhichOneof("value")) in ("sequence_type", "optional_type"):
            proto = getattr(proto, kind).elem_type
        if kind == "tensor_type":
            types[each.name] = helper.tensor_dtype_to_np_dtype(proto.tensor_type.elem_type)
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


# -- files


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
    for name in [name.removesuffix(".shapes") for name in arrays if name.endswith(".shapes")]:
        if f"{name}.data" in arrays:
            arrays[name] = unpack_sequence(arrays.pop(f"{name}.data"), arrays.pop(f"{name}.shapes"))
    return arrays


def _loaded(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise FileError(f"the file {path} does not exist", code="ML210", hint="check the path") from None
    except Exception as error:  # those of numpy and zipfile share no base class
        text = (str(error).splitlines() or [type(error).__name__])[0]
        raise FileError(
            f"{path} is not a file of arrays", why="it is neither .npy nor .npz" if "pickle" in text else text,
            hint="give .npz or .npy files, or a folder with input_0.pb", code="ML214",
        ) from None


def _data_sets(folder: Path) -> list[Path]:
    """The folder itself, or those below it, that have input_0.pb."""
    found = [each for each in (folder, *sorted(folder.glob("*"))) if (each / "input_0.pb").is_file()]
    if not found:
        raise FileError(
            f"{folder} has no inputs", why="neither it nor a folder in it has a file input_0.pb",
            hint="give a folder in the layout of ONNX's tests: test_data_set_0/input_0.pb", code="ML214",
        )
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
    )
    for kind, value_of in readers:
        with suppress(Exception):  # those of protobuf, onnx and numpy share no base class
            proto = kind.FromString(data)
            if kind is onnx.TensorProto and not proto.data_type:
                continue
            if kind is onnx.TensorProto and proto.data_location == onnx.TensorProto.EXTERNAL:
                break
            return proto.name, value_of(proto)
    raise FileError(
        f"{path} is not a tensor of ONNX", why="it cannot be parsed, or has its values in another file", code="ML214"
    )
