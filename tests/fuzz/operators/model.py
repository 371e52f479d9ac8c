"""A drawn node as an ONNX model, and its inputs in each set.

An input of the node is a model input, a constant, or computed from model inputs so that inference knows no dimension:

    reshaped   Reshape(x_flat[N], x_shape)            sliced   Slice(x_whole, 0.., x_ends)
    selected   Gather(x_whole, Reshape(NonZero(x_mask), [-1])) along one axis

A dimension that differs between the sets is symbolic. Tensors of 4 bits enter and leave the model as 8 bits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .draw import Node, Port
from .kernels import split

Arrays = dict[str, Any]
FOUR_BITS = ("int4", "uint4")


class Model:
    """Nodes, initializers and the values of the model inputs, one dict per set."""

    def __init__(self, sets: Sequence[Node]) -> None:
        self.sets = sets
        self.first = sets[0]
        self.nodes: list[Any] = []
        self.constants: Arrays = {}
        self.feeds: list[Arrays] = [{} for _ in sets]
        self.fixed: set[str] = set()
        self.inner = [self._source(index, port) for index, port in enumerate(self.first.ports)]

    def proto(self, outputs: Sequence[Any] | None = None) -> Any:
        """The ModelProto; `outputs` are (name, ONNX element type, rank); without them the outputs have no type."""
        from onnx import TensorProto, helper, numpy_helper

        first = self.first
        narrow = first.narrow
        inner = [f"{name}_narrow" if name and narrow else name for name in first.outputs]
        domain, op = split(first.op)
        node = helper.make_node(op, self.inner, inner, name="node", domain=domain, **first.attributes)
        nodes = [*self.nodes, node]
        wanted = [name for name in first.outputs if name]
        if narrow:
            nodes += [helper.make_node("Cast", [f"{name}_narrow"], [name], to=TensorProto.INT8) for name in wanted]
        ends = ([helper.make_empty_tensor_value_info(name) for name in wanted] if outputs is None
                else [helper.make_tensor_value_info(name, kind, [None] * rank) for name, kind, rank in outputs])
        ports = []
        for name in self.feeds[0]:
            arrays = [feeds[name] for feeds in self.feeds]
            dtype = arrays[0].dtype
            kind = TensorProto.STRING if dtype.kind == "O" else helper.np_dtype_to_tensor_dtype(dtype)
            ports.append(helper.make_tensor_value_info(name, kind, self._dims(name, arrays, name in self.fixed)))
        constants = [numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        graph = helper.make_graph(nodes, "main", ports, ends, constants)
        opsets = [helper.make_opsetid("", first.opset)]
        version = max(8, helper.find_min_ir_version_for(opsets, True))
        if domain:
            opsets.append(helper.make_opsetid(domain, 1))
        return helper.make_model(graph, opset_imports=opsets, ir_version=version)

    def known(self, index: int) -> tuple[int | None, ...]:
        """The dimensions of a port that are known at conversion; None for an unknown one."""
        port = self.first.ports[index]
        if port is None or port.given in ("constant", "node"):
            return () if port is None else port.shape
        name = self.inner[index]
        plain = next((each for each in (name, f"{name}_wide") if each in self.feeds[0]), None)
        if plain is None:
            return (None,) * port.rank
        dims = self._dims(plain, [feeds[plain] for feeds in self.feeds], plain in self.fixed)
        return tuple(dim if isinstance(dim, int) else None for dim in dims)

    def _dims(self, name: str, arrays: Sequence[Any], fixed: bool) -> list[Any]:
        """Sizes, and symbols for those that differ; in symbolic models about half of the others are symbols, too."""
        dims: list[Any] = []
        for axis, size in enumerate(arrays[0].shape):
            differs = any(each.shape[axis] != size for each in arrays)
            some = self.first.every or (axis + len(arrays[0].shape) + size) % 2 == 0
            named = self.first.symbolic and not fixed and some
            dims.append(f"{name}_{axis}" if differs or named else size)
        return dims

    def _source(self, index: int, port: Port | None) -> str:
        """The name of a port in the inputs of the node."""
        if port is None:
            return ""
        name = f"x{index}"
        arrays = [each.ports[index].array for each in self.sets]  # type: ignore[union-attr]
        self.fixed.update([name, f"{name}_wide"] if port.fixed else [], (f"{name}_shape", f"{name}_ends"))
        way = _WAYS.get(port.given)
        if way is None or not self._is_possible(port.given, arrays):
            self._plain(name, port.given, arrays)
            return name
        way(self, name, arrays)
        return name

    def _is_possible(self, given: str, arrays: Sequence[Any]) -> bool:
        if given == "reshaped":
            # Before opset 14 a 0 in the pattern copies a dimension.
            return self.first.opset >= 14 or (self.first.opset >= 5 and all(each.size for each in arrays))
        return self.first.opset >= 10

    def _plain(self, name: str, given: str, arrays: Sequence[Any]) -> None:
        from onnx import helper, numpy_helper

        if given == "constant":
            self.constants[name] = arrays[0]
        elif arrays[0].dtype.name in FOUR_BITS:
            self._feed(f"{name}_wide", [each.astype(np.int8) for each in arrays])
            self._add("Cast", [f"{name}_wide"], name, to=helper.np_dtype_to_tensor_dtype(arrays[0].dtype))
        elif given == "node":
            value = numpy_helper.from_array(arrays[0], name)
            self.nodes.append(helper.make_node("Constant", [], [name], value=value))
        else:
            self._feed(name, arrays)

    def _feed(self, name: str, arrays: Sequence[Any]) -> None:
        for feeds, array in zip(self.feeds, arrays, strict=True):
            feeds[name] = array

    def _add(self, op: str, inputs: list[str], output: str, **attributes: Any) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))

    def reshaped(self, name: str, arrays: Sequence[Any]) -> None:
        """Computed from a flat tensor."""
        self._feed(f"{name}_flat", [each.reshape(-1) for each in arrays])
        self._feed(f"{name}_shape", [np.array(each.shape, np.int64) for each in arrays])
        allowed = {"allowzero": 1} if self.first.opset >= 14 else {}
        self._add("Reshape", [f"{name}_flat", f"{name}_shape"], name, **allowed)

    def sliced(self, name: str, arrays: Sequence[Any]) -> None:
        """Computed from a larger tensor."""
        self._feed(f"{name}_whole", [np.pad(each, [(0, 1)] * each.ndim) for each in arrays])
        self._feed(f"{name}_ends", [np.array(each.shape, np.int64) for each in arrays])
        self.constants[f"{name}_starts"] = np.zeros(arrays[0].ndim, np.int64)
        self._add("Slice", [f"{name}_whole", f"{name}_starts", f"{name}_ends"], name)

    def selected(self, name: str, arrays: Sequence[Any]) -> None:
        """Computed by the rows of a mask."""
        axis = len(arrays) % arrays[0].ndim
        wholes, masks = [], []
        for array in arrays:
            length = array.shape[axis]
            mask = np.arange(length + 1) != length // 2
            rows = np.zeros((*array.shape[:axis], length + 1, *array.shape[axis + 1 :]), array.dtype)
            rows[(slice(None),) * axis + (mask,)] = array
            wholes.append(rows)
            masks.append(mask)
        self._feed(f"{name}_whole", wholes)
        self._feed(f"{name}_mask", masks)
        self.constants[f"{name}_row"] = np.array([-1], np.int64)
        self._add("NonZero", [f"{name}_mask"], f"{name}_places")
        self._add("Reshape", [f"{name}_places", f"{name}_row"], f"{name}_rows")
        self._add("Gather", [f"{name}_whole", f"{name}_rows"], name, axis=axis)


_WAYS = {"reshaped": Model.reshaped, "sliced": Model.sliced, "selected": Model.selected}
