"""Checks of a graph: its invariants, and what the runtime needs before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mo_loop.errors import ConversionErrors, MoLoopError, UnsupportedError
from mo_loop.graph import Graph, Node, Value
from mo_loop.ops.base import Op, Parameter, Result
from mo_loop.ops.control import Control, If, TensorIterator
from mo_loop.ops.front import Failed
from mo_loop.types import OptionalType, SequenceType, TensorType, string

# -- invariants of the graph: they hold between any two passes, whatever a pass did; a broken one is a bug


def invariants(graph: Graph) -> list[str]:
    """What is wrong with the graph or its bodies, each finding with its place; empty when all is well."""
    found = [
        f"{scope.path or scope.name or 'graph'}: {finding}"
        for scope in graph.scopes()
        for check in INVARIANTS
        for finding in check(scope)
    ]
    return found or list(_stale_types(graph))  # what is not whole can be neither copied nor typed


def _edges(graph: Graph) -> Iterator[str]:
    """`inputs` and the edges of networkx say the same."""
    wanted = {
        (value.node, node, port): value
        for node in graph.nx
        for port, value in enumerate(node.inputs)
        if value is not None
    }
    found = {(a, b, port): data["value"] for a, b, port, data in graph.nx.edges(keys=True, data=True)}
    for a, b, port in wanted.keys() - found.keys():
        yield f"input {port} of {b.path} reads {a.path}, but there is no such edge"
    for a, b, port in found.keys() - wanted.keys():
        yield f"an edge from {a.path} to input {port} of {b.path}, which does not read it"
    for a, b, port in wanted.keys() & found.keys():
        if wanted[a, b, port] is not found[a, b, port]:
            yield f"input {port} of {b.path} and its edge from {a.path} carry different outputs"


def _membership(graph: Graph) -> Iterator[str]:
    """Nodes know their graph, values their node and index; no edge crosses graphs."""
    for node in graph.nx:
        if node.graph is not graph:
            yield f"{node.path} believes to be in another graph"
        for index, output in enumerate(node.outputs):
            if output.node is not node or output.index != index:
                yield f"output {index} of {node.path} believes to be output {output.index} of {output.node!r}"
        for port, value in enumerate(node.inputs):
            if value is None:
                continue
            if value.node not in graph:
                yield f"input {port} of {node.path} comes from another graph"
            elif not any(value is output for output in value.node.outputs):
                yield f"input {port} of {node.path} is an output that {value.node.path} no longer has"


def _order(graph: Graph) -> Iterator[str]:
    """`ordered()` holds every node once, producers first."""
    order = {node: place for place, node in enumerate(graph.ordered())}
    if len(order) != len(graph.ordered()) or order.keys() != set(graph.nx):
        yield "the order is not that of the nodes"
        return
    for a, b in graph.nx.edges():
        if order[a] >= order[b]:
            yield f"{a.path} stands after its consumer {b.path}"


def _ends(graph: Graph) -> Iterator[str]:
    """The lists of Parameters and Results hold exactly those nodes, each once."""
    for what, listed, cls in (("parameters", graph.parameters, Parameter), ("results", graph.results, Result)):
        there = [node for node in graph.nx if isinstance(node, cls)]
        if len(set(listed)) != len(listed):
            yield f"{what} lists a node twice"
        if set(listed) != set(there):
            yield f"{what} lists {len(listed)} nodes, the graph holds {len(there)}"


def _owners(graph: Graph) -> Iterator[str]:
    """A body belongs to the one node that holds it."""
    seen: set[Graph] = set()
    for node in graph.nx:
        for body in node.bodies:
            if body.owner is not node:
                yield f"a body of {node.path} believes to belong to {body.owner!r}"
            if body in seen:
                yield f"{node.path} shares a body"
            seen.add(body)


def _port_maps(graph: Graph) -> Iterator[str]:
    """Port maps run parallel to inputs and outputs, refer to ports of the bodies, and feed each Parameter once."""
    for node in graph.of(Control):
        inputs, outputs = len(node.inputs) - node.first_data_port, len(node.outputs)
        if (len(node.input_map), len(node.output_map)) != (inputs, outputs):
            yield f"the port map of {node.path} is not parallel to {inputs} inputs and {outputs} outputs"
        extra = [getattr(node, key, None) for key in ("iteration", "condition")]
        entries = [each for entry in (*node.input_map, *node.output_map) for each in vars(entry).values()]
        ends = {end: body for body in node.bodies for end in (*body.parameters, *body.results)}
        for each in (*extra, *entries):
            if isinstance(each, Parameter | Result) and each not in ends:
                yield f"the port map of {node.path} refers to {each!r}, which is no port of its bodies"
        fed = [*extra, *(each for entry in node.input_map for each in vars(entry).values())]
        parameters = [each for each in fed if isinstance(each, Parameter)]
        for parameter in dict.fromkeys(parameters):
            if parameters.count(parameter) > 1:
                yield f"{parameter.path} is fed {parameters.count(parameter)} times"
        for end in ends:
            if isinstance(end, Parameter) and end not in parameters:
                yield f"nothing feeds {end.path}"


def _validated(graph: Graph) -> Iterator[str]:
    """No node waits for inference."""
    if graph.is_dirty:
        yield "types were not validated"


INVARIANTS: tuple[Callable[[Graph], Iterator[str]], ...] = (
    _edges, _membership, _order, _ends, _owners, _port_maps, _validated,
)  # fmt: skip


def _stale_types(graph: Graph) -> Iterator[str]:
    """Types are what inference gives now; found on a copy, for inference types the bodies as it goes."""
    pairs = [(graph, graph.clone())]
    while pairs:
        original, copy = pairs.pop()
        for node, twin in zip(original.ordered(), copy.ordered(), strict=True):
            try:
                types = twin.infer_types()
            except MoLoopError as error:
                yield f"{node.path} cannot be typed any more: {error.message}"
                continue
            for output, type_ in zip(node.outputs, types, strict=True):
                if repr(output.type) != repr(type_):
                    yield f"output {output.index} of {node.path} is {output.type}, inference says {type_}"
            pairs.extend(zip(node.bodies, twin.bodies, strict=True))


# -- the last check before emission: one function a gap of the runtime; passes establish each form, this verifies


def failures(graph: Graph) -> list[MoLoopError]:
    """The errors of all nodes that could not be translated, bodies included, each on its own."""
    found = [node.error for scope in graph.scopes() for node in scope.of(Failed) if node.error is not None]
    return list(ConversionErrors(found).errors) if found else []


def _front_operations(graph: Graph) -> Iterator[MoLoopError]:
    for node in graph.ordered():
        if isinstance(node, Op) and not node.opset:
            reason = _unheld(node)
            yield UnsupportedError(
                f"{node.type} was not lowered to IR operations{': ' if reason else ''}{reason}",
                where=node.path, code="ML320", hint="declare the shapes of the inputs" if "rank" in reason else "",
            )  # fmt: skip


def _unheld(node: Node) -> str:
    """Why a sequence that an operation makes or reads cannot be held in tensors."""
    for value in (*node.outputs, *node.inputs):
        type_ = None if value is None else value.type
        if isinstance(type_, OptionalType):
            return f"a value of type {type_}: only tensors may be absent"
        if isinstance(type_, SequenceType) and type_.element.dtype is string:
            return "a sequence of strings"
        if isinstance(type_, SequenceType) and type_.element.shape is None and not type_.is_empty:
            return "a sequence of tensors of unknown rank, or of several ranks"
        if isinstance(type_, SequenceType) and type_.is_empty:
            return "an element of a sequence that is always empty"
    return ""


def _port_types(graph: Graph) -> Iterator[MoLoopError]:
    for node in graph.ordered():
        for output in node.outputs:
            type_, where = output.type, node.path
            if not isinstance(type_, TensorType):
                yield UnsupportedError(f"a value of type {type_}: the IR has tensors only", where=where, code="ML321")
            elif type_.dtype is None or type_.dtype.precision is None:
                yield UnsupportedError(f"the IR has no element type {type_.dtype}", where=where, code="ML322")
            elif type_.shape is None and _is_origin(node):
                yield UnsupportedError(
                    "a tensor of unknown rank: the runtime compiles known ranks only", where=where, code="ML323",
                    hint="declare the shapes of the inputs, or export with fixed ranks",
                )  # fmt: skip


def _is_origin(node: Node) -> bool:
    """Whether a rank is lost here, not only passed on. What a control-flow node loses is lost in its bodies."""
    if isinstance(node, Control):
        return False
    if isinstance(node, Parameter):
        fed = _fed_by(node)
        return fed is None or fed.rank is not None
    return all(value is None or value.rank is not None for value in node.inputs)


def _unknown_ranks(graph: Graph) -> Iterator[MoLoopError]:
    """Every port of unknown rank, for the case that none of them looks like the origin."""
    for scope in graph.scopes():
        for node in scope.ordered():
            if any(isinstance(output.type, TensorType) and output.rank is None for output in node.outputs):
                yield UnsupportedError("a tensor of unknown rank", where=node.path, code="ML323")


def _fed_by(parameter: Parameter) -> Value | None:
    """The outer value that a body's Parameter starts from; None for a model input."""
    owner = parameter.graph.owner
    if isinstance(owner, Control):
        for entry, value in owner.fed:
            if parameter in vars(entry).values():
                return value
    return None


def _branch_ranks(graph: Graph) -> Iterator[MoLoopError]:
    for node in graph.of(If):
        for number, entry in enumerate(node.output_map):
            then, otherwise = entry.then.value.rank, entry.otherwise.value.rank
            # The runtime takes a scalar beside [1] and makes [1] of both: another rank than ONNX's, so refused as well.
            if then != otherwise and None not in (then, otherwise):
                yield UnsupportedError(
                    f"output {number} of If has rank {then} in then_branch and {otherwise} in else_branch",
                    code="ML315", where=node.path,
                    hint="give the condition a constant value, or make both branches return one rank",
                )  # fmt: skip


def _nested_iterators(graph: Graph) -> Iterator[MoLoopError]:
    if isinstance(graph.owner, TensorIterator):
        for node in graph.of(TensorIterator):
            yield UnsupportedError("a TensorIterator directly inside another one", where=node.path, code="ML324")


# What handles strings on the CPU device; elsewhere they give wrong values or corrupt the memory of the process.
_STRING_SAFE = frozenset(
    ("Parameter", "Const", "Result", "ShapeOf", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Pad")
)


def _strings(graph: Graph) -> Iterator[MoLoopError]:
    for node in graph.ordered():
        if not isinstance(node, Op) or isinstance(node, Control) or node.type in _STRING_SAFE:
            continue
        ports = (*(value for value in node.inputs if value is not None), *node.outputs)
        if any(isinstance(port.type, TensorType) and port.type.dtype is string for port in ports):
            yield UnsupportedError(
                f"{node.type} of strings: the runtime has none", where=node.path, code="ML303",
                hint="cut the model behind its text processing, and give it the numbers as inputs",
            )  # fmt: skip


LAST_CHECKS: tuple[Callable[[Graph], Iterator[MoLoopError]], ...] = (
    _front_operations,
    _branch_ranks,
    _port_types,
    _nested_iterators,
    _strings,
)


def last_check(graph: Graph) -> None:
    """Raise ConversionErrors with everything in the graph or its bodies that the runtime would refuse or miscompute."""
    errors = failures(graph)
    errors += [error for check in LAST_CHECKS for scope in graph.scopes() for error in check(scope)]
    errors = errors or list(_unknown_ranks(graph))
    if errors:
        raise ConversionErrors(errors)
