"""Candidate: a model that may be the answer, with its inputs.

    candidate = Candidate(proto.SerializeToString(), sets)
    candidate.size                        # Size(nodes=12, weights=3400, iterations ...): compared in this order
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mo_loop.compare.oracle.graph_edits import graphs_in, replace_entries, sweep
from mo_loop.frontend.node_order import NamesRead
from mo_loop.frontend.onnx_graphs import body_protos
from mo_loop.support.files import write_whole

Feeds = Mapping[str, Any]


class Size(NamedTuple):
    """The size of a candidate; a smaller one is smaller in the first number that differs.

    `bodies` are graphs in nodes; `nodes` are those of all graphs without Identity, `all_nodes` with it; `content`
    counts weights that are not filled with one number, `elements` all numbers of weights and inputs.
    """

    bodies: int
    nodes: int
    all_nodes: int
    outputs: int
    content: int
    elements: int


@dataclass(frozen=True)
class Candidate:
    """A serialised model and sets of its inputs."""

    model: bytes
    sets: tuple[Feeds, ...] = ()

    @cached_property
    def proto(self) -> Any:
        """The model as a message; it is not to be changed."""
        import onnx

        return onnx.load_from_string(self.model)

    def copy(self) -> Any:
        """The model as a message of its own."""
        import onnx

        return onnx.load_from_string(self.model)

    @cached_property
    def size(self) -> Size:
        """The size of the candidate."""
        found = list(graphs(self.proto))
        nodes = [node for graph in found for node in graph.node]
        weights = [each for graph in found for each in graph.initializer]
        weights += [each.t for node in nodes for each in node.attribute if each.HasField("t")]
        elements = sum(int(np.prod(each.dims)) for each in weights)
        return Size(
            len(found) - 1, sum(node.op_type != "Identity" for node in nodes), len(nodes),
            len(self.proto.graph.output), sum(not is_plain(each) for each in weights),
            elements + sum(int(np.size(value)) for feeds in self.sets[:1] for value in feeds.values()),
        )  # fmt: skip

    @property
    def weight_bytes(self) -> int:
        """The bytes of the initializers of all graphs."""
        return sum(len(each.raw_data) or 4 * int(np.prod(each.dims))
                   for graph in graphs(self.proto) for each in graph.initializer)  # fmt: skip

    def sizes(self) -> dict[str, int]:
        """The numbers that are shown."""
        return {"nodes": self.size.all_nodes, "weight_bytes": self.weight_bytes}

    def __str__(self) -> str:
        return f"{self.size.all_nodes} nodes, {self.weight_bytes} bytes of weights"

    def save(self, path: Path) -> None:
        """Write the model, and its inputs next to it."""
        from mo_loop.compare.input_sets.given import save

        write_whole(path, self.model)
        for number, feeds in enumerate(self.sets):
            name = path.stem if len(self.sets) == 1 else f"{path.stem}-{number}"
            save(path.with_name(f"{name}.npz"), feeds.items())


def made(proto: Any, sets: Sequence[Feeds]) -> Candidate:
    """The candidate of a changed message: without unused weights, functions, declared types and documentation.

    Each set keeps the values of the inputs that are left.
    """
    strip(proto)
    names = {each.name for each in proto.graph.input}
    return Candidate(
        proto.SerializeToString(),
        tuple({name: value for name, value in feeds.items() if name in names} for feeds in sets),
    )


def graphs(proto: Any) -> Iterator[Any]:
    """The main graph and all bodies, outer ones first."""
    return graphs_in(proto.graph)


def is_plain(tensor: Any) -> bool:
    """Whether all elements are the same, or there is at most one."""
    import onnx

    if int(np.prod(tensor.dims)) <= 1:
        return True
    try:
        array = onnx.numpy_helper.to_array(tensor)
    except (TypeError, ValueError):  # weights in other files
        return False
    return bool((array == array.reshape(-1)[:1]).all())


def names_needed(graph: Any) -> set[str]:
    """The names that the nodes and outputs of a graph read, bodies included."""
    names = NamesRead()
    return {each.name for each in graph.output}.union(*(names.of_node(node) for node in graph.node))


def strip(proto: Any) -> None:
    """Remove the parts that do not affect the numbers."""
    for graph in graphs(proto):
        needed = names_needed(graph)
        for entries in (graph.initializer, *([graph.input] if graph is proto.graph else [])):
            for each in [entry for entry in entries if entry.name not in needed]:
                entries.remove(each)
        del graph.value_info[:]
        graph.doc_string = ""
        for node in graph.node:
            node.doc_string = ""
            if hasattr(node, "metadata_props"):
                del node.metadata_props[:]
    called = {(node.domain, node.op_type) for graph in graphs(proto) for node in graph.node}
    called |= {(node.domain, node.op_type) for function in proto.functions for node in function.node}
    for function in [each for each in proto.functions if (each.domain, each.name) not in called]:
        proto.functions.remove(function)
    proto.doc_string = ""
    del proto.metadata_props[:]


Place = tuple[tuple[int, int], ...]
"""The place of a body: for each level the number of the node and that of the body in it."""


def recorded(candidate: Candidate) -> list[Feeds]:
    """All tensors of the main graph for each set of inputs, as far as ONNX Runtime gives them."""
    import onnx

    from mo_loop.compare.oracle.checked_oracle import Oracle

    proto = candidate.copy()
    names = [name for node in proto.graph.node for name in node.output if name]
    del proto.graph.output[:]
    proto.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in dict.fromkeys(names))
    constants = {each.name: onnx.numpy_helper.to_array(each) for each in proto.graph.initializer}
    oracle = Oracle(proto.SerializeToString())
    found: list[Feeds] = []
    for feeds in candidate.sets:
        inner = {name: value for name, value in oracle.run(feeds) if isinstance(value, np.ndarray)}
        found.append({**constants, **feeds, **inner})
    return found


def inferred(proto: Any) -> dict[tuple[Place, str], Any]:
    """The TypeProto of each tensor that ONNX types, by the place of its graph and its name."""
    import onnx

    try:
        with warnings.catch_warnings(action="ignore"):
            typed = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    except Exception:  # an operator of another domain, or a model that contradicts itself
        typed = proto
    found: dict[tuple[Place, str], Any] = {}
    pending: list[tuple[Place, Any]] = [((), typed.graph)]
    while pending:
        path, graph = pending.pop()
        for each in (*graph.value_info, *graph.output, *graph.input):
            if each.type.WhichOneof("value"):
                found[path, each.name] = each.type
        for each in graph.initializer:
            found[path, each.name] = onnx.helper.make_tensor_type_proto(each.data_type, each.dims)
        for number, node in enumerate(graph.node):
            pending += [((*path, (number, place)), body) for place, body in enumerate(body_protos(node))]
    return found


def graph_at(proto: Any, path: Place) -> Any:
    """The graph at a place."""
    graph = proto.graph
    for number, place in path:
        graph = list(body_protos(graph.node[number]))[place]
    return graph


def places(proto: Any) -> list[Place]:
    """The places of all bodies, outer ones first."""
    found: list[Place] = []
    pending: list[Place] = [()]
    while pending:
        path = pending.pop(0)
        for number, node in enumerate(graph_at(proto, path).node):
            inner = [(*path, (number, place)) for place, _ in enumerate(body_protos(node))]
            found += inner
            pending += inner
    return found


def likely_shape(type_: Any) -> tuple[int, ...] | None:
    """The shape of a TypeProto, with 1 for dimensions that are not known; None if the rank is not known."""
    if type_ is None or type_.WhichOneof("value") != "tensor_type" or not type_.tensor_type.HasField("shape"):
        return None
    return tuple(each.dim_value if each.HasField("dim_value") else 1 for each in type_.tensor_type.shape.dim)


def with_outputs(candidate: Candidate, kept: Collection[str]) -> Candidate:
    """The candidate with these outputs, and the nodes that they need."""
    proto = candidate.copy()
    for each in [entry for entry in proto.graph.output if entry.name not in kept]:
        proto.graph.output.remove(each)
    sweep(proto.graph)
    return made(proto, candidate.sets)


def with_nodes(
    candidate: Candidate, kept: Sequence[int], values: Sequence[Feeds], types: Mapping[tuple[Place, str], Any]
) -> Candidate | None:
    """The candidate with these nodes of its main graph; None if a value that they read is not known.

    A value that no node reads any more becomes an output, so that its faults stay visible.
    """
    import onnx

    proto = candidate.copy()
    graph = proto.graph
    nodes = [graph.node[number] for number in kept]
    defined = {name for node in nodes for name in node.output if name}
    present = defined | {each.name for each in (*graph.input, *graph.initializer)}
    names = NamesRead()
    read = [name for node in nodes for name in sorted(names.of_node(node))]
    for name in dict.fromkeys(read):
        if name in present:
            continue
        if not all(name in each for each in values) or not (values or _is_tensor(types.get(((), name)))):
            return None
        entry = graph.input.add(name=name)
        entry.type.CopyFrom(_type(types.get(((), name)), [each[name] for each in values]))
        present.add(name)
    before = {each.name: each for each in graph.output}
    outputs = [before[name] for name in before if name in defined]
    used = set(read)
    free = [name for node in nodes for name in node.output if name and name not in used and name not in before]
    entries = [*outputs, *(onnx.helper.make_empty_tensor_value_info(name) for name in free)]
    replace_entries(graph.output, [_copy(each, types.get(((), each.name))) for each in entries])
    replace_entries(graph.node, nodes)
    if not graph.output:
        return None
    sets = [{**each, **feeds} for feeds, each in zip(candidate.sets, values, strict=True)]
    return made(proto, sets or candidate.sets)


def _copy(entry: Any, type_: Any) -> Any:
    import onnx

    found = onnx.ValueInfoProto()
    found.CopyFrom(entry)
    if type_ is not None and not found.type.WhichOneof("value"):
        found.type.CopyFrom(type_)
    return found


def _is_tensor(declared: Any) -> bool:
    return declared is not None and declared.WhichOneof("value") == "tensor_type"


def _type(declared: Any, arrays: Sequence[Any]) -> Any:
    """The inferred type; without one the type of the arrays, whose dimensions are known where all agree."""
    import onnx

    if _is_tensor(declared):
        return declared
    first = np.asarray(arrays[0])
    shapes = [np.shape(each) for each in arrays]
    dims: list[int | None] = [
        size if all(len(each) > place and each[place] == size for each in shapes) else None
        for place, size in enumerate(first.shape)
    ]
    return onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(first.dtype), dims)
