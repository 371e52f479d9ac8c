"""Fewer outputs and nodes of the main graph: an output of a removed node becomes an input, with the value that it had.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from mo_loop.compare.oracle.graph_edits import replace_entries, sweep
from mo_loop.compare.reducing.candidate import Candidate, Feeds, made
from mo_loop.compare.reducing.inner_values import Path
from mo_loop.frontend.names_read import NamesRead


def with_outputs(candidate: Candidate, kept: Collection[str]) -> Candidate:
    """The candidate with these outputs, and the nodes that they need."""
    proto = candidate.copy()
    for each in [entry for entry in proto.graph.output if entry.name not in kept]:
        proto.graph.output.remove(each)
    sweep(proto.graph)
    return made(proto, candidate.sets)


def with_nodes(
    candidate: Candidate, kept: Sequence[int], values: Sequence[Feeds], types: Mapping[tuple[Path, str], Any]
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
