"""Candidate: a model that may be the answer, with its inputs.

    candidate = Candidate(proto.SerializeToString(), sets)
    candidate.size                        # Size(sets=1, bodies=2, nodes=12, ...): compared in this order
    candidate_of(changed, sets)           # of a message
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.helper import make_tensor_type_proto

from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.compare.input_sets.given import save
from mo_loop.compare.oracle.checked_oracle import values_of_sets
from mo_loop.compare.oracle.graph_edits import graphs_in, keep, names_needed, tensors_in, with_all_outputs
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
        return list(graphs_in(self.proto.graph))

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
    def types(self) -> list[Mapping[str, Any]]:
        """The TypeProto of each tensor that ONNX types, for each graph."""
        typed, found = self.proto, list[Mapping[str, Any]]()
        with suppress(Exception), warnings.catch_warnings(action="ignore"):  # for example, an unknown domain
            typed = onnx.shape_inference.infer_shapes(typed, data_prop=True)
        for graph in graphs_in(typed.graph):
            ports = (*graph.value_info, *graph.output, *graph.input)
            weights = {each.name: make_tensor_type_proto(each.data_type, each.dims) for each in graph.initializer}
            found.append({each.name: each.type for each in ports if each.type.WhichOneof("value")} | weights)
        return found

    @cached_property
    def size(self) -> Size:
        """The size of the candidate."""
        nodes = [node for graph in self.graphs for node in graph.node]
        weights = (numbers_of(each) for graph in self.graphs for each in tensors_in(graph))  # one copy at a time
        rows = [(not is_plain(each), each.size, each.item() if is_count(each) else 0) for each in weights]
        values = [each for feeds in self.sets[:1] for each in arrays_of(feeds)]
        rows += [(False, each.size, each.item() if is_count(each) else 0) for each in values]
        return Size(
            len(self.sets), len(self.graphs) - 1, sum(node.op_type != "Identity" for node in nodes), len(nodes),
            len(self.proto.graph.output), *(sum(row[place] for row in rows) for place in range(3)),
        )  # fmt: skip

    @property
    def weight_bytes(self) -> int:
        """The bytes of the initializers of all graphs."""
        return sum(len(each.raw_data) or 4 * int(np.prod(each.dims))
                   for graph in self.graphs for each in graph.initializer)  # fmt: skip

    def sizes(self) -> dict[str, int]:
        """The numbers that are shown."""
        return {"nodes": self.size.all_nodes, "weight_bytes": self.weight_bytes}

    def __str__(self) -> str:
        return f"{self.size.all_nodes} nodes, {self.weight_bytes} bytes of weights"

    def save(self, path: Path) -> None:
        """Write the model, and its inputs next to it."""
        write_whole(path, self.model)
        for number, feeds in enumerate(self.sets):
            name = path.stem if len(self.sets) == 1 else f"{path.stem}-{number}"
            save(path.with_name(f"{name}.npz"), feeds.items())


def recorded(candidate: Candidate) -> list[Feeds]:
    """All tensors of the main graph for each set of inputs. Runs native code: call it in a worker process."""
    proto = with_all_outputs(candidate.proto)
    constants = {each.name: numbers_of(each) for each in proto.graph.initializer}
    return [
        {**constants, **feeds, **{name: value for name, value in found if isinstance(value, np.ndarray)}}
        for feeds, found in zip(candidate.sets, values_of_sets(proto, candidate.sets), strict=True)
    ]


def candidate_of(proto: Any, sets: Iterable[Feeds]) -> Candidate:
    """The candidate of a changed message: without unused weights, functions, declared types and documentation.

    Each set keeps the values of the inputs that are left.
    """
    for graph in graphs_in(proto.graph):
        keep(graph.initializer, names_needed(graph))
        for part in (graph, *graph.node):
            part.doc_string = ""
            del part.metadata_props[:]
        del graph.value_info[:]
    keep(proto.graph.input, names_needed(proto.graph))
    functions = list(proto.functions)
    called = {(node.domain, node.op_type) for graph in (*graphs_in(proto.graph), *functions) for node in graph.node}
    for function in [each for each in functions if (each.domain, each.name) not in called]:
        proto.functions.remove(function)
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
