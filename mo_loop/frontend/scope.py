"""Scope: maps the names of one ONNX graph to values. A capture passes through every level of bodies in between.

    scope["w"]      # a value of this graph; for a name of an outer scope, a Parameter or a copy of the constant

A captured constant is copied into the body (the file stores the data once), so that translators in the body see the
values of axes and shapes. Any other captured value becomes a Parameter, and `captures` holds the outer value for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mo_loop.conversion_limits import Budget, budget, exceeded
from mo_loop.errors import ModelError
from mo_loop.frontend.forced_ranks import Ranks
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.origin import Origin, made_for
from mo_loop.ops.base import Constant, Parameter


class Capture(NamedTuple):
    """An outer value and the Parameter that receives it in this graph."""

    outer: Value
    parameter: Parameter


class Scope:
    """The names of one ONNX graph (or function body) while it is translated into `graph`."""

    def __init__(self, graph: Graph, outer: Scope | None = None, path: tuple[str, ...] = ()) -> None:
        self.graph = graph
        self.outer = outer
        self.path = path
        self.values: dict[str, Value] = {}
        # Values that are made when they are first read: a function of the name and of what is kept for it.
        self.lazy: dict[str, tuple[Callable[[str, Any], Value], Any]] = {}
        self.captures: list[Capture] = []
        # The origins of the outputs of nodes that were moved here from an outer graph, by their names here.
        self.moved: Mapping[str, Origin] = {}
        self._fed: dict[Value, Value] = {}
        # Name here -> outer name, for outer values whose names are hidden in this scope.
        self.aliases: dict[str, str] = {}
        # The declared types, if translation continues after failures.
        self.declared: dict[str, Any] = {}
        # The ranks that the nodes and declarations of the ONNX graph give to its tensors.
        self.ranks: Ranks | None = None
        # Returns the ranks that the enclosing graph declares for the inputs and outputs of this one.
        self.outer_ranks: Callable[[], Mapping[str, int]] = dict
        # The least ranks of the values whose rank differs between iterations or branches (rank_variants.py).
        self.least_ranks: dict[Value, int] = outer.least_ranks if outer is not None else {}
        # Bodies inherit the attributes of the function call and the opsets of the function.
        self.attributes: dict[str, Any] = outer.attributes if outer is not None else {}
        self.opsets: dict[str, int] = outer.opsets if outer is not None else {}
        # How many bodies enclose this one. The scope of a function has the depth of its call but no outer names.
        self.depth: int = outer.depth + 1 if outer is not None else 0
        self.budget: Budget = budget() if outer is None else outer.budget

    def require_depth(self, body: Origin) -> None:
        """LimitError if more bodies enclose this one than the limits of the conversion allow."""
        if self.depth > self.budget.limits.nesting:
            raise exceeded(self.budget.limits, "nesting", "bodies are nested deeper", body)

    def __getitem__(self, name: str) -> Value:
        value = self.find(name)
        if value is None:
            raise ModelError(
                f"nothing defines {name!r}", code="ML223",
                hint="the model is broken: onnx.checker.check_model shows the details",
            )  # fmt: skip
        return value

    def find(self, name: str) -> Value | None:
        """The value called `name`, captured if an outer scope defines it; None if no scope defines it."""
        value = self.values.get(name)
        if value is not None:
            return value
        if name in self.lazy:
            make, kept = self.lazy.pop(name)
            value = self.values[name] = make(name, kept)
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
            elif outer in self._fed:  # an Identity gives one value two names
                value = self._fed[outer]
            else:
                parameter = Parameter(graph=self.graph, type=outer.type, name=name)
                self.captures.append(Capture(outer, parameter))
                value = self._fed[outer] = parameter.output
                if outer in self.least_ranks:
                    self.least_ranks[value] = self.least_ranks[outer]
        value.add_name(name)
        value.origins = outer.origins
        return value

    def set_least_rank(self, value: Value, least: int | None) -> None:
        """Record the least rank of a value, if it is known and below the rank of the value."""
        if least is not None and value.rank is not None and value.rank > least:
            self.least_ranks[value] = least

    def read_ranks(self, graph: Any, outside: Callable[[], Mapping[str, int]]) -> None:
        """Find the ranks of the tensors of the GraphProto or FunctionProto, whose inputs are in the scope already."""
        of_one_rank = {name: value for name, value in self.values.items() if value not in self.least_ranks}
        known = {name: getattr(value.type, "rank", None) for name, value in of_one_rank.items()}
        self.ranks = Ranks(graph, known, outside)

    def all_captured(self) -> dict[Node, Value]:
        """The outer values of the Parameters of this graph and of all around it."""
        found: dict[Node, Value] = {}
        scope: Scope | None = self
        while scope is not None:
            found.update((each.parameter, each.outer) for each in scope.captures)
            scope = scope.outer
        return found

    def is_outer_name(self, name: str) -> bool:
        """Whether an enclosing scope already defines `name`."""
        scope = self.outer
        while scope is not None:
            if name in scope.values or name in scope.lazy:
                return True
            scope = scope.outer
        return False
