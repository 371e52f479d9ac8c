"""Where a search begins: the nodes that an error or a verdict names, and the nodes around them.

    named = suspects(candidate, condition, options, rtol, atol)      # numbers of nodes of the main graph; in a worker
    for kept in windows(candidate.proto.graph, named[0]):            # the node alone, then with its neighbours
        ...
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mo_loop.compare.layers import compared
from mo_loop.compare.reducing.candidate import Candidate
from mo_loop.compare.reducing.condition import DIFFERS, FAILS, Condition
from mo_loop.conversion import Conversion
from mo_loop.errors import ConversionErrors, MoLoopError
from mo_loop.frontend.names_read import NamesRead
from mo_loop.frontend.onnx_graphs import label
from mo_loop.graph.origin import Origin
from mo_loop.options import ConvertOptions


def suspects(
    candidate: Candidate, condition: Condition, options: ConvertOptions, rtol: float | None, atol: float | None
) -> list[int]:
    """The nodes that the errors of the conversion name, or the piece that differs, in their order; empty for other
    conditions. Runs native code."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "model.onnx")
        path.write_bytes(candidate.model)
        if condition.kind == FAILS:
            origins = list(_of_errors(path, options, condition.detail))
        elif condition.kind == DIFFERS:
            origins = list(_of_pieces(path, options, candidate, rtol, atol))
        else:
            return []
    tops = {origin.scope[0] if origin.scope else origin.node for origin in origins}
    return [number for number, node in enumerate(candidate.proto.graph.node) if label(node) in tops]


def _of_errors(path: Path, options: ConvertOptions, code: str) -> Iterator[Origin]:
    try:
        Conversion(options).run(str(path))
    except ConversionErrors as errors:
        yield from (each.origin for each in errors.errors if each.origin is not None and code in ("", each.code))
    except MoLoopError as error:
        if error.origin is not None:
            yield error.origin


def _of_pieces(
    path: Path, options: ConvertOptions, candidate: Candidate, rtol: float | None, atol: float | None
) -> Iterator[Origin]:
    graph = Conversion(options).run(str(path))
    for feeds in candidate.sets:
        found = compared(str(path), graph, feeds, rtol=rtol, atol=atol).difference
        if found is not None:
            yield Origin(found.scope, found.node)
            return


def windows(graph: Any, number: int) -> Iterator[list[int]]:
    """The node alone, and the nodes within 1, 2, 4 ... steps before and after it; the last one has less than all."""
    names = NamesRead()
    makers: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    reads = [names.of_node(node) for node in graph.node]
    for place, node in enumerate(graph.node):
        makers.update((name, place) for name in node.output if name)
        for name in reads[place]:
            readers.setdefault(name, []).append(place)
    kept, edge, distance, wanted = {number}, {number}, 0, 0
    while edge and len(kept) < len(graph.node):
        if distance == wanted:
            yield sorted(kept)
            wanted = max(1, 2 * wanted)
        before = {makers[name] for place in edge for name in reads[place] if name in makers}
        after = {each for place in edge for name in graph.node[place].output for each in readers.get(name, ())}
        edge = (before | after) - kept
        kept |= edge
        distance += 1
