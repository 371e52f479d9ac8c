"""Converts ONNX models, with their control flow, to OpenVINO IR.

    import mo_loop
    model = mo_loop.convert_model("model.onnx")
    mo_loop.save_model(model, "model.xml")

Each name loads its module on first use: importing the package costs nothing.
"""

import os
from typing import TYPE_CHECKING

from mo_loop.support.lazy_names import lazy_names
from mo_loop.version import __version__

if TYPE_CHECKING:
    from mo_loop.api import Model as Model
    from mo_loop.api import Port as Port
    from mo_loop.api import batch as batch
    from mo_loop.api import check as check
    from mo_loop.api import convert_model as convert_model
    from mo_loop.api import read_model as read_model
    from mo_loop.api import save_model as save_model
    from mo_loop.compare.reducing import reduce as reduce
    from mo_loop.compare.verifying import verify as verify
    from mo_loop.errors import MoLoopError as MoLoopError
    from mo_loop.extensions import Extensions as Extensions
    from mo_loop.graph import Graph as Graph
    from mo_loop.graph import Node as Node
    from mo_loop.graph import Value as Value
    from mo_loop.look.differences.comparing import diff as diff
    from mo_loop.look.inspection.read import inspect as inspect
    from mo_loop.look.layer_map import LayerMap as LayerMap
    from mo_loop.look.layer_map import layer_map as layer_map
    from mo_loop.look.viewing import Page as Page
    from mo_loop.look.viewing import view as view
    from mo_loop.options import ConvertOptions as ConvertOptions
    from mo_loop.support.packed_arrays import pack_sequence as pack_sequence
    from mo_loop.support.packed_arrays import unpack_sequence as unpack_sequence

_NAMES = {
    "mo_loop.api": ("Model", "Port", "batch", "check", "convert_model", "read_model", "save_model"),
    "mo_loop.compare.reducing": ("reduce",),
    "mo_loop.look.differences.comparing": ("diff",),
    "mo_loop.look.inspection.read": ("inspect",),
    "mo_loop.look.layer_map": ("LayerMap", "layer_map"),
    "mo_loop.options": ("ConvertOptions",),
    "mo_loop.errors": ("MoLoopError",),
    "mo_loop.extensions": ("Extensions",),
    "mo_loop.graph": ("Graph", "Node", "Value"),
    "mo_loop.support.packed_arrays": ("pack_sequence", "unpack_sequence"),
    "mo_loop.compare.verifying": ("verify",),
    "mo_loop.look.viewing": ("Page", "view"),
}

__all__ = ["__version__", *(name for names in _NAMES.values() for name in names)]

_HERE = os.path.dirname(__file__)
if not os.path.isdir(os.path.join(_HERE, "transforms")):  # an sdist, or no symbolic links: it is next to this package
    __path__.append(os.path.dirname(os.path.realpath(_HERE)))

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(globals(), _NAMES)
