"""Candidate: a model that may be the answer, with its inputs; and smaller ones.

    candidate = Candidate(proto.SerializeToString(), sets)
    candidate.size                        # Size(sets=1, bodies=2, nodes=12, ...): compared in this order
    candidate_of(changed, sets)           # of a message

Smaller candidates have fewer outputs and nodes, a body in place of its Loop, Scan or If, and smaller numbers:

    with_nodes(candidate, 0, [3, 4])      # of the main graph, whose number is 0
    unwrapped(candidate, 1)               # the first body in place of its node
    shortened(candidate, 224, 2)          # dimensions of 2 in place of 224
"""

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.compare.input_sets.given import save
from mo_loop.compare.oracle import graph_edits
from mo_loop.compare.oracle.checked_oracle import values_of_sets
from mo_loop.frontend.node_order import NamesRead, names_defined_in
from mo_loop.frontend.onnx_graphs import label, operator_of
from mo_loop.support.files import write_whole

Feeds = Mapping[str, Any]


class Size(NamedTuple):
    """The size of a candidate; a smaller one is smaller in the first number that differs.

    `bodies` are graphs in nodes; `nodes` are those of all graphs without Identity, `all_nodes` with it; `content`
    counts weights that are not filled with one number, `elements` all numbers of weights and inputs; `counts` is the
    sum of all integers that can be trip counts.
    """

    sets: int
    bodies: int
    nodes: int
    all_nodes: int
    outputs: int
    content: int
    elements: int
    counts: int


@dataclass(frozen=True)
class Candidate:
    """A serialised model and sets of its inputs."""

    model: bytes
    sets: tuple[Feeds, ...] = ()

    @cached_property
    def proto(self) -> Any:
        """The model as a message; it is not to be changed."""
        return self.copy()

    def copy(self) -> Any:
        """The model as a message of its own."""
        return onnx.load_from_string(self.model)

    @property
    def graphs(self) -> list[Any]:
        """The main graph and all bodies, outer ones first; a body is known by its place here."""
        return list(graph_edits.graphs_in(self.proto.graph))

    def __reduce__(self) -> Any:
        return Candidate, (self.model, self.sets)  # a worker needs nothing that is computed from them

    @cached_property
    def values(self) -> list[Feeds]:
        """All tensors of the main graph for each set of inputs, as far as ONNX Runtime gives them in a worker."""
        try:
            return isolated(recorded, self) if self.sets else []
        except IsolatedError:  # only inputs and constants have known values then
            return [dict(feeds) for feeds in self.sets]

    @cached_property
    def types(self) -> list[dict[str, Any]]:
        """The TypeProto of each tensor that ONNX types, for each graph."""
        typed, found = self.proto, list[dict[str, Any]]()
        with suppress(Exception), warnings.catch_warnings(action="ignore"):  # for example, an unknown domain
            typed = onnx.shape_inference.infer_shapes(typed, data_prop=True)
        for graph in graph_edits.graphs_in(typed.graph):
            ports = (*graph.value_info, *graph.output, *graph.input)
            found.append({each.name: each.type for each in ports if each.type.WhichOneof("value")})
            for each in graph.initializer:
                found[-1][each.name] = helper.make_tensor_type_proto(each.data_type, each.dims)
        return found

    @cached_property
    def size(self) -> Size:
        """The size of the candidate."""
        nodes = [node for graph in self.graphs for node in graph.node]
        tensors = (each for graph in self.graphs for each in graph_edits.tensors_in(graph))
        weights = map(numbers_of, tensors)  # one copy at a time
        rows = [(not is_plain(each), each.size, each.item() if is_count(each) else 0) for each in weights]
        values = [each for feeds in self.sets[:1] for each in arrays_of(feeds)]
        rows += [(False, each.size, each.item() if is_count(each) else 0) for each in values]
        return Size(
            len(self.sets), len(self.graphs) - 1, sum(node.op_type != "Identity" for node in nodes), len(nodes),
            len(self.proto.graph.output), *(sum(row[place] for row in rows) for place in range(3)),
        )

    def sizes(self) -> dict[str, int]:
        """The numbers that are shown: the nodes, and the bytes of the initializers of all graphs."""
        weights = [each for graph in self.graphs for each in graph.initializer]
        count = sum(len(each.raw_data) or 4 * int(np.prod(each.dims)) for each in weights)
        return {"nodes": self.size.all_nodes, "weight_bytes": count}

    def __str__(self) -> str:
        return "{nodes} nodes, {weight_bytes} bytes of weights".format(**self.sizes())

    def save(self, path: Path) -> None:
        """Write the model, and its inputs next to it."""
        write_whole(path, self.model)
        for number, feeds in enumerate(self.sets):
            name = path.stem if len(self.sets) == 1 else f"{path.stem}-{number}"
            save(path.with_name(f"{name}.npz"), feeds.items())


def recorded(candidate: Candidate) -> list[Feeds]:
    """All tensors of the main graph for each set of inputs. Runs native code: call it in a worker process."""
    proto = graph_edits.with_all_outputs(candidate.proto)
    constants = {each.name: numbers_of(each) for each in proto.graph.initializer}
    return [
        {**constants, **feeds, **{name: value for name, value in found if isinstance(value, np.ndarray)}}
        for feeds, found in zip(candidate.sets, values_of_sets(proto, candidate.sets), strict=True)
    ]


def candidate_of(proto: Any, sets: Iterable[Feeds]) -> Candidate:
    """The candidate of a changed message: without unused weights, functions, declared types and documentation.

    Each set keeps the values of the inputs that are left.
    """
    for graph in graph_edits.graphs_in(proto.graph):
        graph_edits.keep(graph.initializer, graph_edits.names_needed(graph))
        for part in (graph, *graph.node):
            part.doc_string = ""
            del part.metadata_props[:]
        del graph.value_info[:]
    graph_edits.keep(proto.graph.input, graph_edits.names_needed(proto.graph))
    graphs = (*graph_edits.graphs_in(proto.graph), *proto.functions)
    called = {(node.domain, node.op_type) for graph in graphs for node in graph.node}
    functions = [each for each in proto.functions if (each.domain, each.name) in called]
    graph_edits.replace_entries(proto.functions, functions)
    proto.doc_string = ""
    del proto.metadata_props[:]
    names = {each.name for each in proto.graph.input}
    kept = [{name: value for name, value in feeds.items() if name in names} for feeds in sets]
    return Candidate(proto.SerializeToString(), tuple(kept))


def numbers_of(tensor: Any) -> np.ndarray:
    """The numbers of a TensorProto; those of one that is not valid are not known, and empty."""
    try:
        return numpy_helper.to_array(tensor)
    except (TypeError, ValueError):
        return np.empty(0)


def arrays_of(feeds: Feeds) -> Iterator[np.ndarray]:
    """The arrays of a set, those of sequences one by one."""
    for value in feeds.values():
        yield from map(np.asarray, value if isinstance(value, list) else [value])


def is_plain(array: np.ndarray) -> bool:
    """Whether all elements are the same, or there is at most one."""
    return array.size <= 1 or bool((array == array.reshape(-1)[:1]).all())


def is_count(array: np.ndarray) -> bool:
    """Whether an array can be a trip count."""
    return array.dtype.kind in "iu" and array.size == 1


def with_outputs(candidate: Candidate, kept: Collection[str]) -> Candidate:
    """The candidate with these outputs, and the nodes that they need."""
    proto = candidate.copy()
    graph_edits.keep(proto.graph.output, kept)
    graph_edits.sweep(proto.graph)
    return candidate_of(proto, candidate.sets)


# -- fewer nodes


def with_nodes(candidate: Candidate, number: int, kept: Sequence[int]) -> Candidate | None:
    """The candidate with these nodes of the graph of this number; None if nothing can replace the results of others."""
    proto, nodes = candidate.copy(), candidate.graphs[number].node
    graph = list(graph_edits.graphs_in(proto.graph))[number]
    graph_edits.replace_entries(graph.node, [nodes[place] for place in kept])
    if number:
        removed = [nodes[place] for place in sorted({*range(len(nodes))}.difference(kept))]
        return candidate_of(proto, candidate.sets) if _closed(graph, removed, candidate.types[number]) else None
    sets = [{**each, **feeds} for feeds, each in zip(candidate.sets, candidate.values, strict=True)]
    return candidate_of(proto, sets) if _opened(graph, candidate) else None


def _opened(graph: Any, candidate: Candidate) -> bool:
    """Make an input of each tensor that no node of a main graph makes any more, and an output of each that none reads,
    so that its faults stay visible; whether the inputs have values, and there are outputs."""
    names, types = NamesRead(), candidate.types[0]
    read = set[str]().union(*map(names.of_node, graph.node))
    for name in sorted(read - names_defined_in(graph)):
        arrays, type_ = [each[name] for each in candidate.values if name in each], types.get(name)
        if len(arrays) < len(candidate.sets):
            return False
        if type_ is None or not type_.HasField("tensor_type"):
            if not arrays:
                return False
            shapes = zip(*(each.shape for each in arrays), strict=False)
            sizes = [sizes[0] if len(set(sizes)) == 1 else None for sizes in shapes]
            type_ = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(arrays[0].dtype), sizes)
        graph.input.add(name=name, type=type_)
    made = dict.fromkeys(name for node in graph.node for name in node.output if name)
    graph_edits.keep(graph.output, made)
    free = made.keys() - read - {each.name for each in graph.output}
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in made if name in free)
    for each in graph.output:
        if each.name in types and not each.type.WhichOneof("value"):
            each.type.CopyFrom(types[each.name])
    return bool(graph.output)


def _closed(graph: Any, removed: Sequence[Any], types: Mapping[str, Any]) -> bool:
    """Let the readers of removed nodes of a body read an input of the node that may have the type and shape of the
    result, or else a constant; whether there is one for each."""
    others: dict[str, str] = {}
    kinds = {name: each.tensor_type.elem_type for name, each in types.items()}
    for node in removed:  # in order, so that an input that is itself removed has its own
        for name in filter(None, node.output):
            # Booleans are not alike: the condition of a loop must not stay true.
            kind = None if kinds.get(name) in (0, onnx.TensorProto.BOOL) else kinds.get(name)
            alike = [each for each in node.input if kind is not None and kinds.get(each) == kind
                     and graph_edits.may_agree(graph_edits.sizes_of(types[name]), graph_edits.sizes_of(types[each]))]
            others[name] = next(filter(None, (others.get(each, each) for each in alike)), "")
    needed = graph_edits.names_needed(graph)
    others = {name: others[name] or _constant(graph, name, types.get(name)) for name in others if name in needed}
    graph_edits.rename(graph, others, ports=False)
    for each in [each.name for each in graph.output if each.name in others]:
        # A body must not return an input, or one value twice.
        graph.node.add(op_type="Identity", input=[others[each]], output=[each])
    return all(others.values())


def _constant(graph: Any, name: str, type_: Any) -> str:
    """The name of a new constant with the type of a tensor; empty if the rank is not known, or numpy lacks the type."""
    sizes = graph_edits.sizes_of(type_)
    if sizes is None:
        return ""
    dtype = helper.tensor_dtype_to_np_dtype(type_.tensor_type.elem_type)
    if dtype.kind not in "fiub":
        return ""
    array = np.full([1 if size is None else size for size in sizes], dtype.kind != "b", dtype)
    graph.initializer.append(numpy_helper.from_array(array, f"{name} (constant)"))
    return f"{name} (constant)"


# -- a body in place of its node


def unwrapped(candidate: Candidate, number: int) -> Candidate | None:
    """The candidate with the body of this number in place of its Loop, Scan or If; that of a loop is its first
    iteration. None for other nodes."""
    proto = candidate.copy()
    outer, node, body = list(graph_edits.bodies_in(proto.graph))[number - 1]
    kind = operator_of(node)
    opset = next((each.version for each in proto.opset_import if each.domain in ("", "ai.onnx")), 1)
    if kind not in ("Loop", "Scan", "If") or (kind == "Scan" and opset < 9):  # Scan-8 has a batch
        return None
    taken, zero = names_defined_in(outer), np.int64(0)
    defined = [name for name in names_defined_in(body) if name and name in taken]
    graph_edits.rename(body, {name: f"{label(node)}/{name}" for name in defined})
    inputs, results = [each.name for each in body.input], [each.name for each in body.output]
    constants: dict[str, Any] = {}
    if kind == "Loop":
        constants, results = {inputs[0]: zero, inputs[1]: True}, results[1:]
    scanned = len(inputs) - next((each.i for each in node.attribute if each.name == "num_scan_inputs"), 0)
    names = dict(zip(inputs[len(constants) : scanned], node.input[len(constants) :], strict=False))
    states = len(results) if kind == "If" else len(names)
    nodes = []
    for name, source in zip(inputs[scanned:], node.input[scanned:], strict=False):
        constants[f"{name} (index)"] = zero
        nodes.append(helper.make_node("Gather", [source, f"{name} (index)"], [name], axis=0))
    nodes += body.node
    made = {name for each in body.node for name in each.output}
    for place, (name, result) in enumerate(zip(node.output, results, strict=False)):
        if not name:
            continue
        if place < states and result in made:
            names[result] = name
            made.discard(result)
        elif place < states:
            nodes.append(helper.make_node("Identity", [result], [name]))
        elif opset < 13:  # a concatenated output, with its dimension after one iteration
            nodes.append(helper.make_node("Unsqueeze", [result], [name], axes=[0]))
        else:
            constants[f"{name} (axes)"] = [zero]
            nodes.append(helper.make_node("Unsqueeze", [result, f"{name} (axes)"], [name]))
    graph_edits.replace_entries(body.node, nodes)
    graph_edits.rename(body, names)
    outer.initializer.extend(body.initializer)
    outer.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items())
    outer_nodes = [new for each in outer.node for new in (body.node if each is node else [each])]
    graph_edits.replace_entries(outer.node, outer_nodes)
    graph_edits.sweep(outer)
    return candidate_of(proto, candidate.sets)


# -- smaller numbers


def lengths(candidate: Candidate) -> list[int]:
    """The sizes of dimensions above 1, the most frequent last."""
    shapes = [each.dims for graph in candidate.graphs for each in graph.initializer]
    shapes += [each.shape for feeds in candidate.sets for each in arrays_of(feeds)]
    found = Counter(size for shape in shapes for size in shape if size > 1)
    return sorted(found, key=lambda size: (found[size], size))


def shortened(candidate: Candidate, old: int, new: int) -> Candidate:
    """The candidate with dimensions of `new` elements instead of `old`."""
    proto = candidate.copy()
    for graph in graph_edits.graphs_in(proto.graph):
        for dim in (dim for each in (*graph.input, *graph.output) for dim in each.type.tensor_type.shape.dim):
            if dim.dim_value == old:
                dim.dim_value = new
        for tensor in graph_edits.tensors_in(graph):
            _set(tensor, _cut(numbers_of(tensor), old, new))
    sets = [
        {name: value if isinstance(value, list) else _cut(np.asarray(value), old, new) for name, value in each.items()}
        for each in candidate.sets
    ]
    return candidate_of(proto, sets)


def with_simpler_numbers(candidate: Candidate) -> Iterator[Candidate]:
    """The candidate with at most 1, 2 or 3 iterations, or with one weight without content: all ones, or random numbers
    of a fixed seed."""
    for name in dict.fromkeys(name for feeds in candidate.sets for name in feeds):
        if all(isinstance(feeds[name], np.ndarray) and is_count(feeds[name]) for feeds in candidate.sets):
            for change in _FEWER:
                sets = tuple({**feeds, name: np.asarray(change(feeds[name]))} for feeds in candidate.sets)
                yield Candidate(candidate.model, sets)
    for number, graph in enumerate(candidate.graphs):
        for place, tensor in enumerate(graph.initializer):
            array = numbers_of(tensor)
            changes = _FEWER if array.dtype == np.int64 and is_count(array) else ()
            for change in _PLAINER if array.dtype.kind == "f" and not is_plain(array) else changes:
                proto = candidate.copy()
                _set(list(graph_edits.graphs_in(proto.graph))[number].initializer[place], np.asarray(change(array)))
                yield candidate_of(proto, candidate.sets)


def _random(array: np.ndarray) -> np.ndarray:
    # Quarters between -1 and 1: a few bytes in any text.
    return (np.random.default_rng(0).integers(-4, 5, array.shape) / 4).astype(array.dtype)


_FEWER: tuple[Callable[[Any], Any], ...] = tuple(partial(np.minimum, count) for count in (1, 2, 3))
_PLAINER: tuple[Callable[[Any], Any], ...] = np.ones_like, _random


def _cut(array: np.ndarray, old: int, new: int) -> np.ndarray:
    if array.dtype.kind in "iu" and array.ndim <= 1 and array.size <= 8:  # a shape, an axis length, an end of a slice
        return np.where(array == old, np.array(new, array.dtype), array) if array.size else array
    return array[tuple(slice(0, new) if dim == old else slice(None) for dim in array.shape)]


def _set(tensor: Any, array: np.ndarray) -> None:
    """Replace the numbers of a TensorProto."""
    before = numbers_of(tensor)
    if array.shape != before.shape or not np.array_equal(array, before):
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
