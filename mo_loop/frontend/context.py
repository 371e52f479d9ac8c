"""Context and Body: the facts that a translator can read about its ONNX node, and the bodies that it can translate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mo_loop.errors import ConversionErrors, FileError, InputError, ModelError, MoLoopError
from mo_loop.frontend.declared_types import type_from
from mo_loop.frontend.node_order import NamesRead
from mo_loop.frontend.onnx_graphs import domain_of, label, operator_of
from mo_loop.frontend.rank_variants import SQUEEZED, of_declared_rank
from mo_loop.frontend.scope import Doubts, Scope
from mo_loop.graph import Graph, Node, TensorType, Value
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.front import Failed
from mo_loop.origin import Origin, made_for, new_origin


class Translation(ABC):
    """The translation of one model, as the nodes and bodies in it see it. `translate.py` implements it."""

    doubts: Doubts
    names_read: NamesRead
    top: Scope | None
    """The scope of the main graph."""
    output_names: frozenset[str]
    """The names of the outputs of the main graph that are converted."""

    @abstractmethod
    def statements(self, proto: Any, scope: Scope, outputs: Iterable[str] | None = None) -> None:
        """Translate the nodes that `outputs` (default: all) of a GraphProto need; `scope` has its inputs already."""

    @abstractmethod
    def node(self, proto: Any, scope: Scope) -> None:
        """Translate one node and define its outputs. If that fails, they are the outputs of a Failed node."""

    @abstractmethod
    def widened(self, graph: Any) -> list[TensorType | None]:
        """The widest state types found so far for a body, kept between its translations."""

    @abstractmethod
    def is_read(self, name: str) -> bool:
        """Whether a node of the main graph, or a body in it, reads the tensor."""


class Context:
    """The ONNX node that a translator translates: the value of its parameter `node`."""

    __slots__ = ("domain", "name", "op_type", "opset", "origin", "outputs", "proto", "scope", "translation")

    def __init__(self, translation: Translation, proto: Any, scope: Scope, outputs: tuple[str, ...]) -> None:
        """`outputs` are the names of the node's outputs."""
        self.translation = translation
        self.proto = proto
        self.scope = scope
        self.name: str = proto.name
        self.domain = domain_of(proto)
        self.op_type: str = proto.op_type
        self.opset = scope.opsets.get(self.domain, 0)
        self.outputs = outputs
        moved = [scope.moved[name] for name in outputs if name in scope.moved] if scope.moved else ()
        if moved:
            self.origin = moved[0].of_node()
        elif self.name and not self.domain:  # most nodes
            self.origin = new_origin(scope.path, self.name, self.op_type)
        else:
            self.origin = Origin(scope.path, label(proto), operator_of(proto))

    @property
    def graph(self) -> Graph:
        return self.scope.graph

    @property
    def path(self) -> str:
        return self.origin.path

    def located(self, error: MoLoopError) -> MoLoopError:
        """The error at this node, with its operator and opset. An error that a node in a body raised stays as it is."""
        if self.contains(error):
            return error
        # A fault of a file is not one of the operator: the nodes that read the file are one error.
        if isinstance(error, FileError) or (self.op_type in error.message and "opset" in error.message):
            return error.at(self.origin)
        operator = f"{self.proto.domain}::{self.op_type}" if self.proto.domain else self.op_type
        return error.at(self.origin, message=f"{operator} (opset {self.opset}): {error.message}")

    def contains(self, error: BaseException) -> bool:
        """Whether the error belongs to a node in a body of this node, or in a function that it calls."""
        return isinstance(error, MoLoopError) and error.origin is not None and error.origin.is_below(self.origin)

    def tensor(self, name: str) -> Origin:
        """The origin of the output `name`."""
        scope, node, operator, _ = self.origin  # _replace takes three times as long, and this runs once for each tensor
        return self.scope.moved.get(name) or new_origin(scope, node, operator, name)

    def wants(self, index: int) -> bool:
        """Whether the node's output number `index` has a name, so that something may read it."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def makes_model_output(self) -> bool:
        """Whether the node's first output is an output of the model."""
        return self.scope is self.translation.top and self.outputs[0] in self.translation.output_names

    def makes(self, index: int) -> bool:
        """Whether the node's output number `index` is an output of the model, or a node may read it."""
        return self.wants(index) and (
            self.scope is not self.translation.top or self.outputs[index] in self.translation.output_names
            or self.translation.is_read(self.outputs[index])
        )

    def forced_rank(self, *, declared: bool = False) -> int | None:
        """The rank of the first output with which alone the nodes that read it run, or, with `declared`, that the model
        declares; None if there is none."""
        ranks = self.scope.ranks
        found = ranks.of(self.outputs[0]) if ranks is not None and self.outputs[0] else None
        return None if found is None or (found.by_declaration and not declared) else found.rank

    def doubt_rank(self, least: int, most: int, taken: int) -> None:
        """Warn that a declaration decides the rank of the first output, and so that of outputs of the model."""
        ranks, name = self.scope.ranks, self.outputs[0]
        is_top = self.scope is self.translation.top
        names = sorted(self.translation.output_names) if is_top and ranks is not None else []
        outputs = [each for each in names if ranks.are_equal(each, name)]  # type: ignore[union-attr]
        for each in outputs:
            self.translation.doubts.output_rank(each, least, most, taken)
        if not outputs:
            self.translation.doubts.declared_rank(self.scope.path, name, taken)

    def constant(self, array: Any, dtype: Any = None) -> Value:
        """A Constant in the graph of the current scope."""
        return Constant(array, graph=self.graph, dtype=dtype).output


class Body:
    """A GRAPH attribute. Each `translate` makes a new Graph for the given input types."""

    def __init__(
        self, translation: Translation, proto: Any, scope: Scope, origin: Origin,
        moved: Mapping[str, Origin] | None = None, ranks: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        """`scope` encloses the body, `origin` is that of the body itself, `moved` becomes `Scope.moved`,
        `ranks` becomes `Scope.outer_ranks`."""
        self._translation = translation
        self._moved = moved or {}
        self._ranks = ranks
        self.proto = proto
        self.scope = scope
        self.origin = origin

    @property
    def inputs(self) -> list[str]:
        return [entry.name for entry in self.proto.input]

    @property
    def outputs(self) -> list[str]:
        return [entry.name for entry in self.proto.output]

    @property
    def widened(self) -> list[TensorType | None]:
        """The widest state types found so far for this body, kept between its translations."""
        return self._translation.widened(self.proto)

    def declared(self, index: int) -> Any:
        """The declared type of input number `index`; UNKNOWN if there is none."""
        return type_from(self.proto.input[index].type, symbolic=False)

    def declared_output(self, index: int) -> Any:
        """The declared type of output number `index`; UNKNOWN if there is none."""
        return type_from(self.proto.output[index].type, symbolic=False)

    def translate(self, types: Sequence[Any], least: Sequence[int | None] = ()) -> TranslatedBody:
        """The body with its inputs of these types, and least ranks. Raises ModelError when their number is wrong."""
        if len(types) != len(self.proto.input):
            raise _other_count(len(self.proto.input), len(types))
        graph = Graph(self.proto.name or "body")
        graph.scope = self.origin.scope
        scope = Scope(graph, self.scope, self.origin.scope)
        scope.moved, scope.outer_ranks = self._moved, self._ranks
        scope.require_depth(self.origin)
        self._translation.doubts.hidden_names(self.proto, scope, self.origin)
        for entry, type_ in zip(self.proto.input, types, strict=True):
            origin = Origin(self.origin.scope, output=entry.name)
            with made_for((origin,)):
                value = Parameter(graph=graph, type=type_, name=entry.name).output
            value.define(origin)
            scope.values[entry.name] = value
        for each, rank in zip(graph.parameters, least, strict=False):
            scope.set_least_rank(each.output, rank)
        parameters = list(graph.parameters)
        self._translation.statements(self.proto, scope)
        results = []
        for entry in self.proto.output:
            value = scope[entry.name]
            if scope.least_ranks.get(value) == SQUEEZED:  # it could not be joined with a value of one rank
                value = of_declared_rank(value, entry.name, scope, self._translation.doubts)
            results.append(Result(value))
        return TranslatedBody(graph, parameters, results, scope)

    def within(self, scope: Scope) -> Body:
        """The same body, with its outer names looked up in another scope."""
        return Body(self._translation, self.proto, scope, self.origin, self._moved, self._ranks)

    def replaced(self, proto: Any) -> Body:
        """A body with another GraphProto and the same scope and origin."""
        return Body(self._translation, proto, self.scope, self.origin, self._moved)

    def inline(self, values: Sequence[Value] = ()) -> list[Value]:
        """Translate the body's nodes into the enclosing graph, with `values` as inputs; for a branch always taken."""
        if len(values) != len(self.inputs):
            raise _other_count(len(self.inputs), len(values))
        scope = Scope(self.scope.graph, self.scope, self.origin.scope)
        scope.moved, scope.outer_ranks = self._moved, self._ranks
        scope.values.update(zip(self.inputs, values, strict=True))
        self._translation.statements(self.proto, scope)
        return [scope[entry.name] for entry in self.proto.output]


def _other_count(inputs: int, passed: int) -> ModelError:
    return ModelError(f"the number of inputs of the body is {inputs}, but the operator passes {passed}", code="ML226")


class TranslatedBody:
    """A translated body: its Graph, the Parameters of its formal inputs, its Results, and its captures."""

    def __init__(self, graph: Graph, parameters: list[Parameter], results: list[Result], scope: Scope) -> None:
        self.graph = graph
        self.parameters = parameters
        self.results = results
        self.captures = scope.captures

    @property
    def has_failed(self) -> bool:
        return bool(self.graph.of(Failed))

    @property
    def is_ill_typed(self) -> bool:
        """Whether all errors are of the types that its nodes receive, so that other types may be right."""
        failures = self.failures()  # none if each failed node reads one that failed outside
        return bool(failures) and all(isinstance(error, InputError) for error in ConversionErrors(failures).errors)

    @property
    def is_ill_typed_inside(self) -> bool:
        """Whether only bodies in it, which may not run yet, refuse the types that they receive."""
        own = [node.error for node in self.graph.of(Failed) if node.error is not None]
        return self.is_ill_typed and all(isinstance(error, ConversionErrors) for error in own)

    def failures(self) -> list[MoLoopError]:
        """The errors of the nodes that could not be translated, in this body and in nested ones."""
        return [n.error for g in self.graph.scopes() for n in g.of(Failed) if n.error is not None]


def as_values(result: Any) -> list[Any]:
    """The result of a translator (a node, a value, None, or several of them) as a list of values."""
    if isinstance(result, Node):
        return list(result.outputs)
    if isinstance(result, tuple | list):
        return [each.output if isinstance(each, Node) else each for each in result]
    return [result]
