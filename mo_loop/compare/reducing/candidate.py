"""Candidate: a model that may be the answer, with its inputs.

    candidate = Candidate(proto.SerializeToString(), sets)
    candidate.size                        # Size(nodes=12, weights=3400, iterations ...): compared in this order
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mo_loop.frontend.onnx_graphs import body_protos
from mo_loop.support.files import write_whole

Feeds = Mapping[str, Any]


class Size(NamedTuple):
    """The size of a candidate; a smaller one is smaller in the first number that differs.

    `bodies` are graphs in nodes; `nodes` are those of all graphs without Identity, `all_nodes` with it; `outputs`, and
    `ports` of control flow, are those that a reader must examine; `content` counts weights that are not filled with one
    number, `elements` all numbers of weights and inputs.
    """

    bodies: int
    nodes: int
    all_nodes: int
    outputs: int
    ports: int
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
            len(self.proto.graph.output), sum(len(node.input) + len(node.output) for node in nodes if bodies_of(node)),
            sum(not is_plain(each) for each in weights),
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
    pending = [proto.graph]
    while pending:
        graph = pending.pop(0)
        yield graph
        pending += [body for node in graph.node for body in body_protos(node)]


def bodies_of(node: Any) -> list[Any]:
    """The bodies of a node."""
    return list(body_protos(node))


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
    needed = {each.name for each in graph.output}
    for node in graph.node:
        needed.update(node.input)
        for body in body_protos(node):
            needed |= names_needed(body)
    return needed


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
