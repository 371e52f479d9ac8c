"""Opens an ONNX model: from a path, an open file, bytes, or a ModelProto in memory.

ONNX's protobuf messages are imported without the rest of the onnx package, whose import takes as long as a small
conversion. Whatever needs more (schemas, shape inference, the checker) imports onnx itself. The classes are those of
the package: protobuf makes one for each message of a process.

Finds names in a model that are not UTF-8: protobuf returns such a string as bytes and raises no error.

A check of every string of a large model would take a tenth of the conversion time. So the graph is checked instead,
and the strings of the model only after an error.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from mo_loop.errors import FileError, ModelError, MoLoopError, UnsupportedError, UsageError
from mo_loop.frontend.external_files import ExternalFiles
from mo_loop.frontend.foreign_files import HEAD, kind_of, kind_of_folder, missing_bytes
from mo_loop.frontend.strip_weights import strip_weights
from mo_loop.graph import DataFile, FileIdentity, Graph
from mo_loop.printable import did_you_mean
from mo_loop.support.files import refuse_device

if TYPE_CHECKING:
    import onnx

ModelSource: TypeAlias = "str | os.PathLike[str] | BinaryIO | bytes | onnx.ModelProto"
"""An ONNX model: the path of its file, an open binary file, the bytes of one, or a message."""

Folder = str | os.PathLike[str] | None

LARGE = 1 << 24
"""The file size, in bytes, above which the weights stay in the file."""


OLDEST_OPSET = 26
"""The newest opset of onnx 1.21, the oldest package that pyproject.toml allows: every package knows it."""


@cache
def messages() -> ModuleType:
    """A module with ModelProto, GraphProto and so on."""
    package = find_spec("onnx")
    for folder in (package and package.submodule_search_locations) or ():
        path = Path(folder, "onnx_ml_pb2.py")
        spec = spec_from_file_location(f"{__package__}.onnx_ml_pb2", path) if path.is_file() else None
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    import onnx  # in an archive, or a package without this module

    return onnx


def newest_opset(opset: int) -> int:
    """The newest opset of the installed package, or an older one that is not below `opset`."""
    if opset <= OLDEST_OPSET:
        return OLDEST_OPSET
    import onnx

    return onnx.defs.onnx_opset_version()


@dataclass
class OnnxModel:
    """A loaded model. `path` is its file, None for a model in memory; `files` are those of external data."""

    proto: Any
    path: str | None
    files: ExternalFiles
    name: str
    opsets: dict[str, int] = field(default_factory=dict)
    functions: dict[tuple[str, str, str], Any] = field(default_factory=dict)


def load(
    source: Any, allowed: Sequence[str] = (), data_folder: Folder = None, *, lists_in_file: bool = False
) -> OnnxModel:
    """Open `source`: a path, the bytes of a model, a binary file, or an `onnx.ModelProto`.

    `allowed` are folders outside that of the model whose files may hold data (`ExternalFiles`), `data_folder` is the
    folder of the data of a model that is in no file. With `lists_in_file`, AttributeReader alone can read the lists of
    trees in a large file.

    Raises:
        UsageError: `data_folder` is given for a model in a file.
        FileError: the file does not exist, cannot be read, or is not an ONNX model.
        ModelError: the model does not import an opset of ONNX, or imports one that is not known.
    """
    model = opened(source, allowed, data_folder, lists_in_file=lists_in_file)
    require_opset(model)
    return model


def require_opset(model: OnnxModel) -> None:
    """Raise ModelError unless the model imports a known opset."""
    proto = model.proto
    # Of the default domain, versions below 1 have an error of their own.
    odd = [domain for domain, version in model.opsets.items() if version >= 2**31 or (domain and version < 0)]
    if odd:
        version = model.opsets[odd[0]]
        raise ModelError(f"the model imports version {version} of the domain {odd[0]!r}", code="ML221", hint=_IMPORT)
    if "" not in model.opsets:
        model.opsets[""] = 1  # IR versions 1 and 2 have no import list: they use opset 1
        if proto.ir_version >= 3 and any(node.domain in ("", "ai.onnx") for node in proto.graph.node):
            raise ModelError(
                "the model imports no operator set of ONNX", code="ML221",
                why="operators mean different things in different sets", hint=_IMPORT,
            )
    opset = model.opsets[""]
    newest = newest_opset(opset)
    if opset < 1:
        raise ModelError(
            f"the model imports opset {opset}, which does not exist", why="the first one is 1", code="ML221",
            hint=f"export the model again, or {_IMPORT}",
        )
    if opset > newest:
        raise ModelError(
            f"the model uses opset {opset}, but the installed onnx package supports opsets up to {newest}",
            code="ML222", hint="install a newer onnx package, or export the model with an older opset",
        )


_IMPORT = 'set the one it was made with: model.opset_import.append(onnx.helper.make_opsetid("", 17))'


def opened(
    source: Any, allowed: Sequence[str] = (), data_folder: Folder = None, *, lists_in_file: bool = False
) -> OnnxModel:
    """`source` without a check of its opset. FileError and UsageError as for `load`."""
    own: DataFile | None = None
    file = folder = None
    if isinstance(source, messages().ModelProto):
        proto, name = source, source.graph.name or "model"
    elif isinstance(source, bytes | bytearray | memoryview):
        proto, name = _parse(bytes(source), "the given bytes"), "model"
    elif hasattr(source, "read"):
        proto, name, folder = _parse(_content(source), "the given file"), "model", _folder_of(source)
    elif not isinstance(source, str | os.PathLike):
        raise UsageError(
            f"{_kind(source)} is not an ONNX model",
            hint="give a path, an open binary file, the bytes of a file, or an onnx.ModelProto",
        )
    else:
        path = Path(source)
        data, own = _read(path, lists_in_file)
        proto, name = _parse(data, path.name, path), path.stem
        file, folder = str(path), str(path.parent)
    if data_folder is not None:
        if folder is not None:
            raise UsageError(
                "external_data_dir is given for a model in a file", why="its data are in the folder of the file",
                hint="omit it, or trust another folder: allow_external",
            )
        folder = os.fspath(data_folder)
    model = OnnxModel(proto, file, ExternalFiles(folder, own, allowed), proto.graph.name or name)
    for entry in proto.opset_import:
        model.opsets["" if entry.domain == "ai.onnx" else entry.domain] = entry.version
    for function in proto.functions:
        domain = "" if function.domain == "ai.onnx" else function.domain
        model.functions[domain, function.name, getattr(function, "overload", "")] = function
    return model


def _kind(value: Any) -> str:
    """The description of a value in a message: `123, of type int`, or the type alone where the value has no short text.
    """
    name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return f"{value!r}, of type {name}," if isinstance(value, int | float | None) else f"an object of type {name}"


def _content(file: Any) -> bytes:
    """The bytes of an open file from its current position."""
    data = file.read()
    if not isinstance(data, bytes):
        raise FileError(
            "the open file is not in binary mode", why=f"read() returns {type(data).__name__}", code="ML212",
            hint='open it with mode "rb"',
        )
    return data


def _folder_of(file: Any) -> str | None:
    """The folder of the external data of an open file; None for a file in memory."""
    name = getattr(file, "name", None)
    return str(Path(name).parent) if isinstance(name, str | os.PathLike) and os.path.isfile(name) else None


def _read(path: Path, lists_in_file: bool) -> tuple[bytes, DataFile | None]:
    """The model in a file, and the file, if the data of the model's tensors stay in it."""
    try:
        if path.is_dir():
            raise _folder(path)
        refuse_device(path)
        with open(path, "rb") as file:
            found = FileIdentity.of(file.fileno())
            if found is None or found.size <= LARGE:
                return file.read(), None
            return strip_weights(file, path.name, lists=lists_in_file), DataFile(
                os.path.realpath(path), found, path.name
            )
    except FileNotFoundError:
        names = sorted(each.name for each in path.parent.glob("*.onnx"))[:1000]
        hint = did_you_mean(path.name, names, "check the path", 0.8)
        raise FileError(f"the file {path} does not exist", code="ML210", hint=hint) from None
    except FileError as error:
        if error.code == "ML214":
            raise _other_kind(path.name, path) or error from None
        raise
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or 0)
        raise FileError(
            f"{path} cannot be read", why=reason, hint="check who may read the file", code="ML212"
        ) from None


def _folder(path: Path) -> FileError:
    kind = kind_of_folder(path)
    if kind is not None:
        return FileError(f"{path} is not an ONNX model", why=f"it looks like {kind.what}", hint=kind.hint, code="ML211")
    inside = sorted(each.name for each in path.glob("*.onnx"))
    hint = f"did you mean {path / inside[0]}?" if inside else "give the .onnx file itself"
    return FileError(f"{path} is a folder, not an ONNX file", hint=hint, code="ML211")


def _other_kind(what: str, path: Path | None, data: bytes = b"") -> FileError | None:
    """The error for a file, or bytes, that is truncated or has another format; None if neither is certain."""
    head, size = data[:HEAD], len(data)
    if path is not None:
        with open(path, "rb") as file:
            head, size = file.read(HEAD), os.fstat(file.fileno()).st_size
    missing = missing_bytes(head, size)
    if missing:
        return FileError(
            f"{what} is truncated", why=f"it has {size} bytes and lacks at least {missing} more",
            hint="download or copy it again", code="ML214",
        )
    kind = kind_of(head, path)
    if kind is None:
        return None
    return FileError(f"{what} is not an ONNX model", why=f"it looks like {kind.what}", hint=kind.hint, code="ML214")


_EXPORTED = "give an .onnx file, as torch.onnx.export, tf2onnx and others write it"


def _parse(data: bytes, what: str, path: Path | None = None) -> Any:
    from google.protobuf.message import DecodeError

    proto = messages().ModelProto()
    if not data:
        raise FileError(f"{what} is empty", why="it has no bytes", hint="download or copy it again", code="ML214")
    try:
        proto.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError) as error:  # the second one from the implementation in Python
        if "MaxDepth" in str(error):
            raise UnsupportedError(f"{what} nests its bodies too deeply to be read", code="ML312") from None
        raise _other_kind(what, path, data) or FileError(
            f"{what} is not an ONNX model", why="its bytes are not an ONNX message: it is damaged or of another format",
            hint=_EXPORTED, code="ML214",
        ) from None
    if not proto.HasField("graph") or not (proto.ir_version or proto.opset_import):
        raise _other_kind(what, path, data) or FileError(
            f"{what} is not an ONNX model", why="it holds no graph", hint=_EXPORTED, code="ML214"
        )
    return proto


_MESSAGE, _STRING = 11, 9  # FieldDescriptor.TYPE_*


@contextmanager
def check_names_on_error(proto: Any) -> Iterator[None]:
    """Turn an unexpected error in the block into a ModelError if a name of the model is not UTF-8."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, MoLoopError) or error.exit_code == 4:
            require_utf8_names(proto)
        raise


def require_utf8_names(proto: Any) -> None:
    """Raise ModelError if a string of the message is not UTF-8."""
    for found in _strings(proto):
        if isinstance(found, bytes):
            raise ModelError(f"the name {found!r} is not UTF-8 text", hint="the file may be damaged: copy it again")


def has_utf8_names(graph: Graph) -> bool:
    """Whether all names in a graph and its bodies are str."""
    for scope in graph.scopes():
        names = [scope.name, *(text for pair in scope.rt_info.get("framework", {}).items() for text in pair)]
        for node in scope.ordered():
            names.append(node.name)
            for value in node.outputs:
                names.extend(value.names)
        try:
            "".join(names)  # a fifth of the time of a question for each name
        except TypeError:
            return False
    return True


def _strings(message: Any) -> Iterator[Any]:
    for descriptor, value in message.ListFields():
        repeated = not hasattr(value, "ListFields") and not isinstance(value, str | bytes | int | float)
        if descriptor.type == _STRING:
            yield from value if repeated else (value,)
        elif descriptor.type == _MESSAGE:
            for each in value if repeated else (value,):
                yield from _strings(each)
