"""ONNX's protobuf messages without the rest of the onnx package, whose import takes as long as a small conversion.

Whatever needs more (schemas, shape inference, the checker) imports onnx itself. The classes are those of the package:
protobuf makes one for each message of a process.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

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
