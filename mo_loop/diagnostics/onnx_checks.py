"""Checks of the ONNX model: missing data, unused parts, and violations of ONNX that do not stop a conversion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from mo_loop.diagnostics.diagnostic import Diagnostic
from mo_loop.errors import FileError, MoLoopError
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.external_files import IN_MEMORY, tensor_from
from mo_loop.frontend.input_text import InputEntry
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.node_order import NamesRead, needed
from mo_loop.frontend.onnx_graphs import OnnxGraph, all_graphs, called, function_graph, location_of, main_graph
from mo_loop.frontend.strip_weights import OWN_FILE
from mo_loop.graph.origin import Origin
from mo_loop.graph.types import from_onnx

_EXTERNAL = 1  # TensorProto.EXTERNAL


class Usage:
    """The parts of a model that its outputs depend on, including bodies and functions."""

    def __init__(self, model: OnnxModel, cut: Cut) -> None:
        self.cuts = cut.inputs is not None or cut.outputs is not None
        self.dead: list[tuple[OnnxGraph, Any]] = []
        """Nodes that reach no output."""
        self.unread: list[tuple[OnnxGraph, Any]] = []
        """Initializers that nothing reads."""
        self.read: list[tuple[OnnxGraph, Any]] = []
        """The other initializers."""
        main = main_graph(model)
        outputs = cut.outputs or main.output_names
        self._reads = NamesRead().of_node
        stack: list[tuple[OnnxGraph, list[str]]] = [(main, outputs)]
        functions: set[int] = set()
        while stack:
            scope, wanted = stack.pop()
            for node in self._kept(scope, wanted, frozenset(cut.inputs or ()) if scope is main else frozenset()):
                stack += [(body, body.output_names) for body in scope.bodies(node)]
                function = called(model, node)
                if function is not None and id(function) not in functions:
                    functions.add(id(function))
                    inner = function_graph(model, function, scope.origin_of(node).inner_scope)
                    stack.append((inner, inner.output_names))
        self._dead_scopes = frozenset(scope.origin_of(node).inner_scope for scope, node in self.dead)

    def _kept(self, scope: OnnxGraph, wanted: list[str], given: frozenset[str]) -> list[Any]:
        reads = [self._reads(node) for node in scope.nodes]
        live = needed([node.output for node in scope.nodes], wanted, given, reads)
        kept = [scope.nodes[place] for place in live]
        dead = set(range(len(reads))).difference(live)
        self.dead += [(scope, scope.nodes[place]) for place in sorted(dead)]
        names = {*wanted, *(name for place in live for name in reads[place])} - given
        for each in scope.initializers:
            (self.read if each.name in names else self.unread).append((scope, each))
        return kept

    def is_needed(self, origin: Origin | None) -> bool:
        """Whether the place is not in a node that reaches no output."""
        path = () if origin is None else origin.inner_scope
        return self._dead_scopes.isdisjoint(path[:length] for length in range(1, len(path) + 1))


# -- data


@dataclass
class LostData:
    """External data that cannot be read. `inputs` replace those of the main graph, so that the check continues."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    inputs: list[InputEntry] = field(default_factory=list)
    _messages: list[str] = field(default_factory=list)

    def given(self, cut: Cut) -> Cut:
        """`cut`, with inputs in place of the lost tensors."""
        if not self.inputs:
            return cut
        return replace(cut, inputs={**{each.name: each for each in self.inputs}, **(cut.inputs or {})})

    def explains(self, error: MoLoopError) -> bool:
        """Whether an error of the conversion has the same cause."""
        return isinstance(error, FileError) and error.message in self._messages


def lost_data(model: OnnxModel, usage: Usage) -> LostData:
    """The faults of the data files of tensors that are read: one diagnostic for each file and code."""
    found = LostData()
    groups: dict[tuple[str, str], list[tuple[MoLoopError, OnnxGraph, str]]] = {}
    for scope, tensor in usage.read:
        if tensor.data_location != _EXTERNAL:
            continue
        location = location_of(tensor)
        try:
            if location != OWN_FILE:
                tensor_from(tensor, model.files)
        except FileError as error:
            groups.setdefault((error.code, location), []).append((error, scope, tensor.name))
            found._messages.append(error.message)
            if not scope.outer and scope.kind == "model" and _is_weight(tensor):
                found.inputs.append(InputEntry(tensor.name, tuple(tensor.dims), from_onnx(tensor.data_type)))
        except MoLoopError:
            pass  # translation finds faults of the tensor itself
    for each in groups.values():
        first, scope, name = each[0]
        diagnostic = Diagnostic.of_error(first, Origin(scope.scope, output=name))
        if len(each) > 1:
            text = f"{first.message}; {len(each)} tensors in it have this fault"
            diagnostic = Diagnostic(diagnostic.code, text, diagnostic.place, diagnostic.why, diagnostic.help)
        found.diagnostics.append(diagnostic)
    return found


def _is_weight(tensor: Any) -> bool:
    """Whether shapes of the model cannot depend on the values of a tensor."""
    return from_onnx(tensor.data_type).is_float and len(tensor.dims) > 0


# -- leftovers


def leftovers(usage: Usage) -> Iterator[Diagnostic]:
    """Unused nodes and initializers. A model that was cut is not checked: cutting leaves unused parts."""
    if usage.cuts:
        return
    for scope, node in usage.dead:
        yield Diagnostic.of_code("ML542", "the node reaches no output", scope.origin_of(node))
    for scope, tensor in usage.unread:
        place = Origin(scope.scope, output=tensor.name)
        yield Diagnostic.of_code("ML541", "nothing reads the initializer", place)


# -- rules


def checked(model: OnnxModel) -> Iterator[Diagnostic]:
    """The result of onnx.checker for a copy without large data, which the checker would read."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model.proto)
    bare = OnnxModel(copy, None, IN_MEMORY, model.name, model.opsets)
    bare.functions = {(each.domain, each.name, getattr(each, "overload", "")): each for each in copy.functions}
    for scope in all_graphs(bare):
        for tensor in (*scope.initializers, *(each.t for node in scope.nodes for each in node.attribute)):
            if tensor.data_location == _EXTERNAL:
                _empty(tensor)
    try:
        onnx.checker.check_model(copy)
    except onnx.checker.ValidationError as error:
        said = str(error).strip().splitlines()
        yield Diagnostic.of_code("ML513", said[0].rstrip(" .:") if said else "the model is not valid")
    except (ValueError, MemoryError):  # too large to be handed over
        return


def _empty(tensor: Any) -> None:
    tensor.data_location = 0
    del tensor.external_data[:]
    del tensor.dims[:]
    tensor.dims.append(0)
