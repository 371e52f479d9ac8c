"""ExternalFiles: decides which files the tensors of a model may lie in, and opens them.

    files = ExternalFiles("models", allowed=["/data/weights"])
    files.at("model.data", "w")                               # a DataFile, or a FileError

A file is read if all of these hold:

- its path without links is below the model's folder, and the location has no link in it;
- or the model is in a cache of Hugging Face (models--org--name/snapshots/revision), and a link leads to a file directly
  in the folder `blobs` of this cache;
- or its path without links is below a folder that the caller allows: links and absolute paths are then fine;
- it is a regular file, which is seen from the open file, and has no other name (hard link), unless its folder is
  allowed: a second name can be that of any file of the same disk.

No link is followed while it is opened. Where the system can, each folder is opened within the one before. `tensor_from`
reads the data of a TensorProto, in the message or in such a file.
"""

import math
import os
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop.conversion_limits import budget
from mo_loop.errors import FileError, ModelError, TypeError_
from mo_loop.frontend.strip_weights import OWN_FILE
from mo_loop.graph import ElementType, boolean, c64, c128, f32, f64, from_onnx, i64, require_sizes, string, u32, u64
from mo_loop.graph.tensor import FLAGS, NO_LINK, ArrayTensor, DataFile, FileIdentity, FileTensor, Tensor
from mo_loop.support.files import file_kind
from mo_loop.support.packed_arrays import unpack

_CACHES = ("models--", "datasets--", "spaces--")
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_HAS_FOLDERS = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd


class ExternalFiles:
    """The files of the data of one model. Each location is decided and opened once."""

    def __init__(self, folder: str | None, own: DataFile | None = None, allowed: Sequence[str] = ()) -> None:
        """`folder` is that of the model, None for one in memory; `own` the model's file, which holds data that is not
        loaded; `allowed` are folders with files that may be read too."""
        self.folder = folder
        self.own = own
        self.allowed = tuple(os.path.realpath(each) for each in allowed)
        self._root = None if folder is None else os.path.realpath(folder)
        self._known: dict[str, DataFile] = {}

    def at(self, location: str, tensor: str) -> DataFile:
        """The file at a location, which tensor `tensor` names.

        Raises:
            FileError: the file is missing, is not a regular file, or may not be read.
        """
        if location == OWN_FILE and self.own is not None:
            return self.own
        found = self._known.get(location)
        if found is None:
            found = self._known[location] = self._found(location, tensor)
        return found

    @property
    def opened(self) -> list[str]:
        """The paths of the files of external data that were found so far."""
        return [file.path for file in self._known.values()]

    def _found(self, location: str, tensor: str) -> DataFile:
        root = self._root
        if root is None:
            raise FileError(
                f"the weights are in {location!r}, but a model in memory has no folder",
                code="ML215",
                hint="convert from the path of the .onnx file, or name the folder of its data: external_data_dir=",
            )
        if not location or "\0" in location or (os.name == "nt" and ":" in os.path.splitdrive(location)[1]):
            raise _outside(location, None)
        try:
            path = os.path.join(root, location)
            plain, real = os.path.normpath(path), os.path.realpath(path)
        except UnicodeEncodeError as error:
            raise FileError(
                f"the external data {location!r} cannot be read", code="ML212",
                why=f"the locale's encoding of file names ({error.encoding}) does not have all of its letters",
                hint="set PYTHONUTF8=1, or a locale with UTF-8 such as LC_ALL=C.UTF-8",
            ) from None
        except (OSError, ValueError):
            raise _outside(location, None) from None
        base = next((each for each in self.allowed if _is_below(real, each)), None)
        is_allowed = base is not None
        if base is None:
            base = self._base(location, plain, real, root)
        return _checked(base, real, location, tensor, is_allowed)

    @staticmethod
    def _base(location: str, plain: str, real: str, root: str) -> str:
        """The folder that a file must not leave: that of the model, or the blobs of its cache."""
        if os.path.isabs(location) or not _is_below(plain, root):
            raise _outside(location, real)
        if _is_below(real, root):
            if os.path.normcase(real) != os.path.normcase(plain):
                raise FileError(
                    f"external data {location!r} is a link, or is reached through one", code="ML271",
                    why="through a link, a model from another person can read other files of the machine",
                    hint=f"replace the link with the file, or {_allow(real)}",
                )
            return root
        blobs = _blobs(root)
        if blobs is None or os.path.dirname(real) != blobs:
            raise _outside(location, real)
        return blobs


def _checked(base: str, path: str, location: str, tensor: str, is_allowed: bool) -> DataFile:
    """The file, with the identity that the open file has."""
    try:
        descriptor = _opened(base, path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileError(
            f"the external data {location!r} is missing", code="ML217",
            why="the file does not exist", hint="keep the data files next to the .onnx file",
        ) from None
    except _OtherKindError as error:
        raise _other_kind(location, str(error)) from None
    except OSError as error:
        raise FileError(
            f"the external data {location!r} cannot be read", code="ML212",
            why=error.strerror or str(error), hint="check who may read the file",
        ) from None
    try:
        found, names = FileIdentity.of(descriptor), os.fstat(descriptor).st_nlink
    finally:
        os.close(descriptor)
    if found is None:
        raise _other_kind(location, "another kind of file")
    if names > 1 and not is_allowed:
        raise FileError(
            f"external data {location!r} is a file with {names} names (hard links)", code="ML271",
            why="one of them can be a file that the model must not read",
            hint=f"put a copy of the file in its place, or {_allow(path)}",
        )
    return DataFile(path, found, os.path.basename(location))


class _OtherKindError(OSError):
    """The file is not a regular one."""


def _opened(base: str, path: str) -> int:
    """A descriptor of the regular file at `path` below the folder `base`; no link is followed."""
    if not _HAS_FOLDERS:
        _require_regular(os.stat(path, follow_symlinks=False))
        return os.open(path, FLAGS)
    folder = os.open(base, _FOLDER)
    try:
        *folders, name = os.path.relpath(path, base).split(os.sep)
        for each in folders:
            inner = os.open(each, _FOLDER | NO_LINK, dir_fd=folder)
            os.close(folder)
            folder = inner
        _require_regular(os.stat(name, dir_fd=folder, follow_symlinks=False))  # opening a device can have an effect
        return os.open(name, FLAGS | NO_LINK, dir_fd=folder)
    finally:
        os.close(folder)


def _require_regular(found: os.stat_result) -> None:
    if kind := file_kind(found):
        raise _OtherKindError(kind)


def _is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it; both are absolute and have no links."""
    path, folder = os.path.normcase(path), os.path.normcase(folder)
    try:
        return os.path.commonpath([path, folder]) == folder
    except ValueError:  # another drive
        return False


def _blobs(root: str) -> str | None:
    """The folder of the files of the cache of Hugging Face in which the folder `root` is; None if it is in none."""
    parts = root.split(os.sep)
    for place in range(len(parts) - 2, 0, -1):
        if parts[place] == "snapshots" and parts[place - 1].startswith(_CACHES):
            blobs = os.sep.join([*parts[:place], "blobs"])
            return blobs if os.path.realpath(blobs) == blobs else None
    return None


def _outside(location: str, path: str | None) -> FileError:
    hint = "move the data file below the folder of the model"
    return FileError(
        f"external data {location!r} lies outside the model's folder", code="ML216",
        why="the model could read any file of this machine",
        hint=hint if path is None else f"{hint}, or {_allow(path)}",
    )


def _other_kind(location: str, what: str) -> FileError:
    return FileError(
        f"external data {location!r} is {what}, not a regular file", code="ML272",
        hint="save the model again, with its data in files",
    )


def _allow(path: str) -> str:
    """The option with which the file at `path` is read."""
    return f"trust its folder: --allow-external {shlex.quote(os.path.dirname(path) or path)}"


_EXTERNAL = 1  # TensorProto.EXTERNAL

_STRING_CELL = 64
"""Bytes in memory for each string of a tensor: its place in the array, and in the lists from which it is written."""


IN_MEMORY = ExternalFiles(None)
"""A model that has no folder."""


def tensor_from(proto: Any, files: ExternalFiles = IN_MEMORY) -> Tensor:
    """The data of a TensorProto, in the message or in one of `files`.

    Raises:
        ModelError: the data does not fit the declared type and shape.
        FileError: an external file is missing, is too short, or may not be read.
    """
    dtype = from_onnx(proto.data_type)
    shape = tuple(proto.dims)
    try:
        require_sizes(shape)
    except TypeError_ as error:
        raise ModelError(f"tensor {proto.name!r}: {error.message}", code="ML225") from None
    if proto.data_location == _EXTERNAL:
        return _external(proto, dtype, shape, files)
    return ArrayTensor(_values(proto, dtype, shape), dtype)


def _values(proto: Any, dtype: ElementType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    count = math.prod(shape)
    if dtype is string:
        flat = np.empty(len(proto.string_data), object)
        flat[:] = list(proto.string_data)
    elif proto.HasField("raw_data"):
        data = proto.raw_data
        if len(data) != dtype.size_of(count):
            raise _misfit(proto, f"{len(data)} bytes", dtype, shape)
        if dtype.bits >= 8:
            return np.frombuffer(data, dtype.numpy, count).reshape(shape)
        flat = unpack(data, count, dtype.bits, dtype.numpy)
    else:
        flat = _typed_field(proto, dtype, shape)
    if flat.size != count:
        raise _misfit(proto, f"{flat.size} values", dtype, shape)
    return flat.reshape(shape)


def _typed_field(proto: Any, dtype: ElementType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The values of float_data, int32_data and other typed fields. int32_data has 16-bit floats and 8-bit types too."""
    if dtype is f32:
        return np.array(proto.float_data, np.float32)
    if dtype is f64:
        return np.array(proto.double_data, np.float64)
    if dtype is i64:
        return np.array(proto.int64_data, np.int64)
    if dtype in (u32, u64):
        return np.array(proto.uint64_data, np.uint64).astype(dtype.numpy)
    if dtype in (c64, c128):
        parts = np.array(proto.float_data if dtype is c64 else proto.double_data, np.dtype(f"f{dtype.bits // 16}"))
        if parts.size % 2:
            raise _misfit(proto, f"{parts.size} halves", dtype, shape)
        return parts.view(dtype.numpy)
    raw = np.array(proto.int32_data, np.int32)
    if dtype is boolean:
        return raw.astype(np.bool_)
    if dtype.bits < 8:
        count = math.prod(shape)
        if raw.size != dtype.size_of(count):  # one item of the field is a whole byte: several values
            raise _misfit(proto, f"{raw.size} bytes", dtype, shape)
        return unpack(raw.astype(np.uint8).tobytes(), count, dtype.bits, dtype.numpy)
    if dtype.is_float:
        return raw.astype(np.uint16 if dtype.bits == 16 else np.uint8).view(dtype.numpy)
    return raw.astype(dtype.numpy)


def _misfit(proto: Any, got: str, dtype: ElementType, shape: tuple[int, ...]) -> ModelError:
    return ModelError(f"tensor {proto.name!r} has {got} in place of the data of {dtype}{list(shape)}", code="ML225")


def _external(proto: Any, dtype: ElementType, shape: tuple[int, ...], files: ExternalFiles) -> Tensor:
    if dtype is string:
        raise ModelError(f"tensor {proto.name!r} has strings outside the model", code="ML225")
    info = {entry.key: entry.value for entry in proto.external_data}
    location = info.get("location", "")
    file = files.at(location, proto.name)
    assert file.identity is not None
    available, need = file.identity.size, dtype.size_of(math.prod(shape))
    offset, length = byte_count(info.get("offset"), 0), byte_count(info.get("length"), need)
    if length != need or offset < 0 or offset + need > available:
        if file is files.own:
            raise _misfit(proto, f"{info.get('length')} bytes", dtype, shape)
        if length == need and offset >= 0:
            raise FileError(
                f"the external data {location!r} ends before the weights in it",
                why=f"the file has {available} bytes", hint="copy the data file again", code="ML213",
            )
        raise FileError(
            f"the external data {location!r} has no {need} bytes at {info.get('offset', 0)} for tensor {proto.name!r}",
            why=f"the file has {available} bytes", hint="copy the data file again", code="ML213",
        )
    return FileTensor(file, offset, dtype, shape)


def range_of(proto: Any) -> tuple[int, int]:
    """The start and the end of the data of a tensor in its external file. UnsupportedError for an unknown type."""
    info = {entry.key: entry.value for entry in proto.external_data}
    offset = byte_count(info.get("offset"), 0)
    return offset, offset + from_onnx(proto.data_type).size_of(math.prod(proto.dims))


def byte_count(text: str | None, default: int) -> int:
    """A number of bytes that the model gives for external data, of any size; -1 for other text."""
    if text is None:
        return default
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 100 else -1


def dense_from_sparse(proto: Any, files: ExternalFiles = IN_MEMORY) -> Tensor:
    """The dense tensor of a SparseTensorProto: indices are linear ([n]) or one row of coordinates each ([n, rank])."""
    shape = tuple(proto.dims)
    values = tensor_from(proto.values, files)
    indices = tensor_from(proto.indices, files).array()
    rows = np.array([shape] if indices.ndim == 2 else [math.prod(shape)], np.float64)
    # numpy would accept an index below 0, and broadcast a single value to all indices
    fits = indices.dtype == np.int64 and indices.ndim in (1, 2) and values.shape == indices.shape[:1]
    if indices.ndim == 2:
        fits = fits and indices.shape[1] == len(shape)
    if not fits or any(dim < 0 for dim in shape) or np.any(indices < 0) or np.any(indices >= rows):
        raise ModelError(f"sparse tensor {proto.values.name!r} has indices that do not fit {shape}", code="ML225")
    cell = values.dtype.numpy.itemsize if values.dtype.bits else _STRING_CELL
    budget().fold(cell * math.prod(shape), f"the sparse tensor {proto.values.name[:40]!r}")
    try:
        dense = np.zeros(shape, values.dtype.numpy) if values.dtype.bits else np.full(shape, b"", object)
    except (MemoryError, ValueError):
        raise ModelError(f"sparse tensor {proto.values.name!r} of shape {shape} is too large", code="ML225") from None
    if indices.ndim == 2:
        dense[tuple(indices.T)] = values.array()
    else:
        dense.reshape(-1)[indices] = values.array()
    return ArrayTensor(dense, values.dtype)
