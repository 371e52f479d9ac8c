"""Scope: maps the names of one ONNX graph to values. A capture passes through every level of bodies in between.

    scope["w"]      # a value of this graph; for a name of an outer scope, a Parameter or a copy of the constant

A captured constant is copied into the body (the file stores the data once), so that translators in the body see the
values of axes and shapes. Any other captured value becomes a Parameter, and `captures` holds the outer value for it.

Doubts are the assumptions of a conversion about a model, as warnings; as errors of a strict conversion.

    doubts = Doubts(strict=False)
    doubts.add("at/y: axis 1.0 is read as 1", where=origin, code="ML517")      # one warning for each text
    doubts.branch_left_out(node, "its rank fits no reader", origin)            # known at the end
    doubts.complete()
    doubts.warn()

A conversion that begins again with other assumptions about sizes warns of those of its last translation. A body may be
translated again with wider types: the last translation counts. An entry keeps its message alive, because protobuf makes
a new wrapper for a released message.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mo_loop.conversion_limits import Budget, budget, exceeded
from mo_loop.errors import ConversionWarning, ModelError
from mo_loop.frontend.declared_types import Ranks
from mo_loop.graph import Graph, Node, Value
from mo_loop.ops.base import Constant, Parameter
from mo_loop.origin import Origin, made_for


class Capture(NamedTuple):
    """An outer value and the Parameter that receives it in this graph."""

    outer: Value
    parameter: Parameter


class Scope:
    """The names of one ONNX graph (or function body) while it is translated into `graph`."""

    def __init__(self, graph: Graph, outer: "Scope | None" = None, path: tuple[str, ...] = ()) -> None:
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
            )
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
