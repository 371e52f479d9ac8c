"""ONNX to OpenVINO IR, at home with loops.

    import mo_loop
    model = mo_loop.convert_model("model.onnx")
    mo_loop.save_model(model, "model.xml")

Names load on first use: importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mo_loop.api import Model as Model
    from mo_loop.api import convert_model as convert_model
    from mo_loop.api import read_model as read_model
    from mo_loop.api import save_model as save_model
    from mo_loop.errors import MoLoopError as MoLoopError
    from mo_loop.extensions import Extensions as Extensions
    from mo_loop.graph import Graph as Graph
    from mo_loop.graph import Node as Node
    from mo_loop.graph import Value as Value
    from mo_loop.packed_sequences import pack_sequence as pack_sequence
    from mo_loop.packed_sequences import unpack_sequence as unpack_sequence

_HOME = {
    "Model": "mo_loop.api",
    "convert_model": "mo_loop.api",
    "read_model": "mo_loop.api",
    "save_model": "mo_loop.api",
    "pack_sequence": "mo_loop.packed_sequences",
    "unpack_sequence": "mo_loop.packed_sequences",
    "MoLoopError": "mo_loop.errors",
    "Extensions": "mo_loop.extensions",
    "Graph": "mo_loop.graph",
    "Node": "mo_loop.graph",
    "Value": "mo_loop.graph",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"mo_loop has no {name}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
