"""Scope: maps names to values, one for each graph of the ONNX model. A capture passes through every level between.

    scope["w"]      # defined here, or found in the outer scope: a Parameter, or the constant again, is made here

A captured constant is re-created in the body (the same data, stored once in the file), so that axes and shapes stay
visible there; anything else becomes a Parameter, and `captures` remembers which outer value feeds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mo_loop.errors import ModelError
from mo_loop.graph import Graph, Value
from mo_loop.graph.origin import Origin, made_for
from mo_loop.ops.base import Constant, Parameter


class Capture(NamedTuple):
    """An outer value and the Parameter it feeds here."""

    outer: Value
    parameter: Parameter


class Scope:
    """The names of one ONNX graph (or function body) while it is translated into `graph`."""

    def __init__(self, graph: Graph, outer: Scope | None = None, path: tuple[str, ...] = ()) -> None:
        self.graph = graph
        self.outer = outer
        self.path = path
        self.values: dict[str, Value] = {}
        self.lazy: dict[str, Callable[[], Value]] = {}
        self.captures: list[Capture] = []
        # The tensors that nodes make which were moved here from an outer graph, by the names that they have here.
        self.moved: Mapping[str, Origin] = {}
        self._fed: dict[Value, Value] = {}
        # Names under which this scope knows outer values whose own names something inside hides.
        self.aliases: dict[str, str] = {}
        # Types that the model declares, where translation goes on behind failures.
        self.declared: dict[str, Any] = {}
        # Bodies inherit what their function was called with: its attributes and the opsets it was written for.
        self.attributes: dict[str, Any] = outer.attributes if outer is not None else {}
        self.opsets: dict[str, int] = outer.opsets if outer is not None else {}
        # How many bodies enclose this one; a function's scope is as deep as its call, though it sees no outer names.
        self.depth: int = outer.depth + 1 if outer is not None else 0

    def __getitem__(self, name: str) -> Value:
        value = self.find(name)
        if value is None:
            raise ModelError(
                f"nothing defines {name!r}", code="ML223",
                hint="the model is broken: onnx.checker.check_model says more",
            )  # fmt: skip
        return value

    def find(self, name: str) -> Value | None:
        """The value called `name`, captured from an outer scope if need be; None if no scope defines it."""
        value = self.values.get(name)
        if value is not None:
            return value
        if name in self.lazy:
            value = self.values[name] = self.lazy.pop(name)()
            return value
        outer = self.outer.find(self.aliases.get(name, name)) if self.outer is not None else None
        if outer is None:
            return None
        value = self.values[name] = outer if outer.graph is self.graph else self._capture(name, outer)
        return value

    def _capture(self, name: str, outer: Value) -> Value:
        with made_for(outer.origins or outer.node.origins):
            if isinstance(outer.node, Constant):
                value = Constant(outer.node.tensor, graph=self.graph, name=outer.node.name).output
            elif outer in self._fed:  # two names of one value, through an Identity
                value = self._fed[outer]
            else:
                parameter = Parameter(graph=self.graph, type=outer.type, name=name)
                self.captures.append(Capture(outer, parameter))
                value = self._fed[outer] = parameter.output
        value.add_name(name)
        value.origins = outer.origins
        return value

    def is_outer_name(self, name: str) -> bool:
        """Whether an enclosing scope already defines `name`."""
        scope = self.outer
        while scope is not None:
            if name in scope.values or name in scope.lazy:
                return True
            scope = scope.outer
        return False
