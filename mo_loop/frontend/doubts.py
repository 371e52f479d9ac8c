"""Doubts: the assumptions of a conversion about a model, as warnings; as errors of a strict conversion.

    doubts = Doubts(strict=False)
    doubts.add("at/y: axis 1.0 is read as 1", where=origin, code="ML517")      # one warning for each text
    doubts.branch_left_out(node, "its rank fits no reader", origin)            # known at the end
    doubts.complete()
    doubts.warn()

A conversion that begins again with other assumptions about sizes warns of those of its last translation. A body may be
translated again with wider types: the last translation counts. An entry keeps its message alive, because protobuf makes
a new wrapper for a released message.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from mo_loop.errors import ConversionWarning, ModelError
from mo_loop.frontend.scope import Scope
from mo_loop.graph.origin import Origin


class Doubts:
    """The doubts of one translation."""

    def __init__(self, strict: bool = False) -> None:
        self._strict = strict
        self._found: dict[str, ConversionWarning] = {}
        self._named: dict[int, Any] = {}
        self._contradictions: dict[int, tuple[Any, Sequence[ConversionWarning]]] = {}
        self._left_out: dict[int, tuple[Any, str, Origin | None]] = {}

    def add(self, text: str, *, where: Origin, code: str) -> None:
        """Note an assumption of the conversion about the model.

        Raises:
            ModelError: the conversion is strict.
        """
        if self._strict:
            raise ModelError(f"refused because the conversion is strict: {text}", code="ML208")
        if text not in self._found:  # a body may be translated more than once
            self._found[text] = ConversionWarning(text, where=where, code=code)

    def output_rank(self, name: str, least: int, most: int, taken: int) -> None:
        """Warn that the rank of an output of the model differs between runs in ONNX, and report the rank in the IR."""
        text = f"the rank of the output {name!r} is {least} to {most}, depending on the run: here it is {taken}"
        self.add(text, where=Origin(output=name), code="ML527")

    def declared_rank(self, path: tuple[str, ...], name: str, rank: int | None) -> None:
        """Warn that the declaration of an inner value or an output decides its rank."""
        where = Origin(path, output=name)
        text = f"{where.path} has rank {rank} because the model declares it; nothing else determines it"
        self.add(text, where=where, code="ML519")

    def contradictions(self, graph: Any, found: Sequence[ConversionWarning]) -> None:
        """Note the declared types of a GraphProto that contradict the inferred ones."""
        self._contradictions[id(graph)] = (graph, found)

    def branch_left_out(self, node: Any, text: str = "", where: Origin | None = None) -> None:
        """Note that a branch of an If is left out, for the reason `text`, or that none is (the default)."""
        self._left_out[id(node)] = (node, text, where)

    def hidden_names(self, graph: Any, scope: Scope, origin: Origin) -> None:
        """Warn, once for each body, of names in it that outer values have too: the inner ones are meant."""
        if id(graph) in self._named:
            return
        self._named[id(graph)] = graph
        named = [each.name for each in (*graph.input, *graph.initializer)]
        for name in dict.fromkeys([*named, *(name for node in graph.node for name in node.output if name)]):
            if scope.is_outer_name(name):
                self.add(f"{origin.path}: {name!r} hides an outer value of that name", where=origin, code="ML511")

    def complete(self) -> None:
        """Add what depends on the last translation of each body."""
        for _, found in self._contradictions.values():
            self._found |= {str(warning): warning for warning in found}
        for _, text, where in self._left_out.values():
            if where is not None:
                self.add(text, where=where, code="ML512")

    def warn(self) -> None:
        """Issue all of them as warnings."""
        for warning in self._found.values():
            warnings.warn(warning, stacklevel=3)
