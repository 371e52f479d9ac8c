"""The graph: nodes, values and uses in the form of networkx, with types, shapes, constant data and origins.

The names that nearly every module needs are here; the modules have the others.
"""

from mo_loop.graph.dimension import Assumption, Dim, Dimension, Symbol, fresh, high, low, now
from mo_loop.graph.graph import Graph
from mo_loop.graph.node import Node, Use, Value, type_of
from mo_loop.graph.shape import (
    Shape,
    assume_equal,
    assume_fixed,
    assume_least,
    broadcast,
    element_count,
    is_static,
    normalise_axis,
    of_declared_sizes,
    require_computable,
    require_sizes,
)
from mo_loop.graph.tensor import ArrayTensor, DataFile, DeferredTensor, FileIdentity, FileTensor, Tensor, same_bytes
from mo_loop.graph.types import (
    BY_IR_NAME,
    BY_NAME,
    BY_PRECISION,
    UNKNOWN,
    ElementType,
    OptionalType,
    SequenceType,
    TensorType,
    bf16,
    boolean,
    c64,
    c128,
    f16,
    f32,
    f64,
    from_numpy,
    from_onnx,
    i4,
    i8,
    i16,
    i32,
    i64,
    name_of,
    string,
    u2,
    u4,
    u8,
    u32,
    u64,
)

__all__ = (
    "BY_IR_NAME", "BY_NAME", "BY_PRECISION", "UNKNOWN", "ArrayTensor", "Assumption", "DataFile", "DeferredTensor",
    "Dim", "Dimension", "ElementType", "FileIdentity", "FileTensor", "Graph", "Node", "OptionalType", "SequenceType",
    "Shape", "Symbol", "Tensor", "TensorType", "Use", "Value", "assume_equal", "assume_fixed", "assume_least", "bf16",
    "boolean", "broadcast", "c64", "c128", "element_count", "f16", "f32", "f64", "fresh", "from_numpy", "from_onnx",
    "high", "i4", "i8", "i16", "i32", "i64", "is_static", "low", "name_of", "normalise_axis", "now",
    "of_declared_sizes", "require_computable", "require_sizes", "same_bytes", "string", "type_of", "u2", "u4", "u8",
    "u32", "u64",
)
