"""Fewer nodes in bodies, bodies in place of their Loop, Scan or If, and smaller numbers.

An output of a removed node of a body is replaced by one of its inputs with the same type and shape, or by a constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from mo_loop.compare.oracle.graph_edits import rename_reads, replace_entries
from mo_loop.compare.reducing.candidate import (
    Candidate,
    Place,
    graph_at,
    graphs,
    is_plain,
    likely_shape,
    made,
    names_needed,
)
from mo_loop.frontend.node_order import names_defined_in
from mo_loop.frontend.onnx_graphs import body_protos, operator_of

_BOOL = 9  # TensorProto.BOOL
Types = Mapping[tuple[Place, str], Any]


def without_body_nodes(candidate: Candidate, path: Place, removed: Collection[int], types: Types) -> Candidate | None:
    """The candidate without these nodes of a body; None if nothing can replace their outputs."""
    proto = candidate.copy()
    graph = graph_at(proto, path)
    gone = [node for number, node in enumerate(graph.node) if number in removed]
    kept = [node for number, node in enumerate(graph.node) if number not in removed]
    given = {name: node for node in gone for name in node.output if name}
    other: dict[str, str] = {}
    for node in gone:  # in order, so that a replacement that is itself removed has its own
        for name in node.output:
            if name:
                other[name] = _alike(name, node, path, types, other)
    replace_entries(graph.node, kept)
    needed = names_needed(graph)
    for name in [each for each in given if each in needed]:
        if not other[name]:
            other[name] = _constant(graph, name, types.get((path, name)))
        if not other[name]:
            return None
    outputs = [each.name for each in graph.output]
    for name, instead in other.items():
        if instead and instead != name:
            _rename(graph, name, instead)
    for entry, name in zip(graph.output, outputs, strict=True):
        if name in given and other[name] != name:
            # A body must not return an input, or one value twice.
            entry.name = name
            graph.node.add(op_type="Identity", input=[other[name]], output=[name])
    return made(proto, candidate.sets)


def _alike(name: str, node: Any, path: Place, types: Types, other: Mapping[str, str]) -> str:
    """An input of the node whose type and shape may be those of the output `name`; empty if there is none."""
    wanted = types.get((path, name))
    if wanted is not None and wanted.tensor_type.elem_type == _BOOL:
        return ""  # the condition of a loop must not stay true
    for each in node.input:
        found = other.get(each, each)
        if found and _may_be_alike(wanted, types.get((path, each))):
            return found
    return ""


def _may_be_alike(one: Any, other: Any) -> bool:
    """Whether two types have the same elements, and shapes that do not contradict each other."""
    if any(each is None or each.WhichOneof("value") != "tensor_type" for each in (one, other)):
        return False
    if one.tensor_type.elem_type != other.tensor_type.elem_type:
        return False
    if not (one.tensor_type.HasField("shape") and other.tensor_type.HasField("shape")):
        return True
    dims = [list(each.tensor_type.shape.dim) for each in (one, other)]
    return len(dims[0]) == len(dims[1]) and all(
        left.dim_value == right.dim_value or not (left.HasField("dim_value") and right.HasField("dim_value"))
        for left, right in zip(*dims, strict=True)
    )


def _constant(graph: Any, name: str, type_: Any) -> str:
    """The name of a new constant with the type of a tensor; empty if its shape is not known."""
    import onnx

    shape = likely_shape(type_)
    if shape is None:
        return ""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(type_.tensor_type.elem_type)
    if dtype.kind not in "fiub":
        return ""
    array = np.zeros(shape, dtype) if dtype.kind == "b" else np.ones(shape, dtype)
    graph.initializer.append(onnx.numpy_helper.from_array(array, f"{name} (constant)"))
    return f"{name} (constant)"


def _rename(graph: Any, old: str, new: str) -> None:
    """Let every reader of a name read another one, and outputs of the graph have it."""
    rename_reads(graph, old, new)
    for entry in graph.output:
        entry.name = new if entry.name == old else entry.name


# -- a body in place of its node


def unwrapped(candidate: Candidate, path: Place) -> Iterator[Candidate]:
    """The candidate with the body at this place instead of its Loop, Scan or If.

    The body of a loop is its first iteration.
    """
    proto = candidate.copy()
    outer = graph_at(proto, path[:-1])
    number, place = path[-1]
    node = outer.node[number]
    body = list(body_protos(node))[place]
    kind = operator_of(node)
    opset = next((each.version for each in proto.opset_import if each.domain in ("", "ai.onnx")), 1)
    if kind not in ("Loop", "Scan", "If") or (kind == "Scan" and opset < 9):  # Scan-8 has a batch
        return
    inline = _Inline(outer, node, body, opset)
    if kind == "Loop":
        inline.loop()
    elif kind == "Scan":
        inline.scan()
    else:
        inline.branch()
    nodes = [*outer.node[:number], *inline.nodes, *outer.node[number + 1 :]]
    replace_entries(outer.node, nodes)
    outer.initializer.extend(inline.initializers)
    _join(outer, {name for node in inline.body.node for name in node.output}, [*inline.before, *inline.after])
    yield made(proto, candidate.sets)


def _join(graph: Any, made: set[str], added: Collection[Any]) -> None:
    """Remove the Identity nodes among `added`: readers take their inputs, and nodes that make one of `made` the names
    of outputs."""
    outputs = {each.name for each in graph.output}
    for node in [each for each in added if each.op_type == "Identity"]:
        (target,) = node.output
        (own,) = [each for each in graph.node if target in each.output]
        source = own.input[0]
        if target in outputs and source not in made:
            continue
        graph.node.remove(own)
        if target not in outputs:
            rename_reads(graph, target, source)
            continue
        made.discard(source)
        rename_reads(graph, source, target)
        for each in graph.node:
            each.output[:] = [target if name == source else name for name in each.output]


class _Inline:
    """The nodes of a body with names that are new in the outer graph."""

    def __init__(self, outer: Any, node: Any, body: Any, opset: int) -> None:
        import copy

        self.node = node
        self._opset = opset
        self.body = copy.deepcopy(body)
        taken = names_defined_in(outer)
        self.before: list[Any] = []
        self.after: list[Any] = []
        self.initializers: list[Any] = []
        for name in sorted(names_defined_in(self.body)):
            if name in taken:
                self._rename(name, f"{node.name or node.op_type}/{name}")
        self.initializers += self.body.initializer

    @property
    def nodes(self) -> list[Any]:
        """All nodes in order."""
        return [*self.before, *self.body.node, *self.after]

    def loop(self) -> None:
        """Iteration 0 of a Loop."""
        names = [each.name for each in self.body.input]
        self._constant(names[0], np.array(0, np.int64))
        self._constant(names[1], np.array(True))
        states = len(names) - 2
        for name, given in zip(names[2:], self.node.input[2:], strict=True):
            self._same(self.before, given, name)
        ends = [each.name for each in self.body.output][1:]
        for place, (name, given) in enumerate(zip(self.node.output, ends, strict=False)):
            if not name:
                continue
            if place < states:
                self._same(self.after, given, name)
                continue
            self._unsqueeze(given, name)

    def scan(self) -> None:
        """The first element of every scanned input of a Scan along axis 0."""
        import onnx

        count = next(each.i for each in self.node.attribute if each.name == "num_scan_inputs")
        names = [each.name for each in self.body.input]
        states = len(names) - count
        for place, (name, given) in enumerate(zip(names, self.node.input, strict=True)):
            if place < states:
                self._same(self.before, given, name)
                continue
            index = f"{name} (index)"
            self._constant(index, np.array(0, np.int64))
            self.before.append(onnx.helper.make_node("Gather", [given, index], [name], axis=0))
        for place, (name, given) in enumerate(zip(self.node.output, self.body.output, strict=False)):
            if not name:
                continue
            if place < states:
                self._same(self.after, given.name, name)
                continue
            self._unsqueeze(given.name, name)

    def branch(self) -> None:
        """A branch of an If."""
        for name, given in zip(self.node.output, self.body.output, strict=True):
            if name:
                self._same(self.after, given.name, name)

    def _rename(self, old: str, new: str) -> None:
        body = self.body
        for entry in (*body.input, *body.initializer):
            if entry.name == old:
                entry.name = new
        for node in body.node:
            for place, each in enumerate(node.output):
                if each == old:
                    node.output[place] = new
        _rename(body, old, new)

    def _unsqueeze(self, source: str, target: str) -> None:
        """Add the dimension that a concatenated output has after one iteration."""
        import onnx

        if self._opset < 13:
            self.after.append(onnx.helper.make_node("Unsqueeze", [source], [target], axes=[0]))
            return
        axes = f"{target} (axes)"
        self._constant(axes, np.array([0], np.int64))
        self.after.append(onnx.helper.make_node("Unsqueeze", [source, axes], [target]))

    def _constant(self, name: str, array: Any) -> None:
        import onnx

        self.initializers.append(onnx.numpy_helper.from_array(array, name))

    def _same(self, nodes: list[Any], source: str, target: str) -> None:
        import onnx

        nodes.append(onnx.helper.make_node("Identity", [source], [target]))


def lengths(candidate: Candidate) -> list[int]:
    """The sizes of dimensions above 1, the most frequent last."""
    found: Counter[int] = Counter()
    for graph in graphs(candidate.proto):
        found.update(dim for each in graph.initializer for dim in each.dims if dim > 1)
    for feeds in candidate.sets:
        found.update(dim for value in feeds.values() for dim in np.shape(value) if dim > 1)
    return sorted(found, key=lambda size: (found[size], size))


def shortened(candidate: Candidate, old: int, new: int) -> Candidate:
    """The candidate with dimensions of `new` elements instead of `old`."""
    proto = candidate.copy()
    for graph in graphs(proto):
        for each in (*graph.input, *graph.output):
            kind = each.type.tensor_type
            for dim in kind.shape.dim if kind.HasField("shape") else ():
                if dim.dim_value == old:
                    dim.dim_value = new
        for tensor in (*graph.initializer, *(a.t for node in graph.node for a in node.attribute if a.HasField("t"))):
            _set(tensor, lambda array: _cut(array, old, new))
    sets = [
        {name: value if isinstance(value, list) else _cut(np.asarray(value), old, new) for name, value in each.items()}
        for each in candidate.sets
    ]
    return made(proto, sets)


def with_fewer_iterations(candidate: Candidate) -> Iterator[Candidate]:
    """The candidate with a smaller value of an integer scalar, an input or a constant: most often a trip count."""
    for name in {name: None for feeds in candidate.sets for name in feeds}:
        arrays = [np.asarray(feeds[name]) for feeds in candidate.sets]
        if not all(each.dtype.kind in "iu" and each.size == 1 and each.item() > 1 for each in arrays):
            continue
        for count in (1, 2, 3):
            sets = [{**feeds, name: np.minimum(feeds[name], count).astype(np.asarray(feeds[name]).dtype)}
                    for feeds in candidate.sets]  # fmt: skip
            yield Candidate(candidate.model, tuple(sets))
    for place, graph in enumerate(graphs(candidate.proto)):
        for number, tensor in enumerate(graph.initializer):
            if tensor.data_type == 7 and int(np.prod(tensor.dims)) == 1:
                for count in (1, 2, 3):
                    proto = candidate.copy()
                    own = list(graphs(proto))[place].initializer[number]
                    _set(own, lambda array, count=count: np.minimum(array, count))
                    yield made(proto, candidate.sets)


def plainer_weights(candidate: Candidate) -> Iterator[Candidate]:
    """The candidate with one weight without content: all ones, or random numbers of a fixed seed."""
    for place, graph in enumerate(graphs(candidate.proto)):
        for number, tensor in enumerate(graph.initializer):
            if is_plain(tensor) or tensor.data_type not in (1, 10, 11):
                continue
            for change in (np.ones_like, _random):
                proto = candidate.copy()
                _set(list(graphs(proto))[place].initializer[number], change)
                yield made(proto, candidate.sets)


def _random(array: np.ndarray) -> np.ndarray:
    # Quarters between -1 and 1: a few bytes in any text.
    return (np.random.default_rng(0).integers(-4, 5, array.shape) / 4).astype(array.dtype)


def _cut(array: np.ndarray, old: int, new: int) -> np.ndarray:
    if array.dtype.kind in "iu" and array.ndim <= 1 and array.size <= 8:  # a shape, an axis length, an end of a slice
        return np.where(array == old, np.array(new, array.dtype), array) if array.size else array
    return array[tuple(slice(0, new) if dim == old else slice(None) for dim in array.shape)]


def _set(tensor: Any, change: Any) -> None:
    """Replace the data of a TensorProto."""
    import onnx

    try:
        array = onnx.numpy_helper.to_array(tensor)
    except (TypeError, ValueError):  # weights in other files
        return
    changed = np.asarray(change(array))
    if changed.shape != array.shape or not np.array_equal(changed, array):
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(changed).reshape(changed.shape), tensor.name))
