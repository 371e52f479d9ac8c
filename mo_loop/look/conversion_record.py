"""Record: an observer that records the model, control flow and times of a conversion, for the summary and the mapping;
and statistics of the model before and after it.

    record = Record()
    model = convert_model("model.onnx", observers=[record])
    save_model(model, "model.xml", observers=[record])
    record.phases                     # {"reading": 0.02, "translating": 0.11, "passes": 0.08, ...}
    outcomes(record)                  # [LoopOutcome("Loop", "TensorIterator", 2), LoopOutcome("If", "decided", 1)]
    before, after = onnx_statistics(record.model), graph_statistics(record.graph)
    before.operations, before.weights                  # 35, {"f32": 4194304, "i64": 64}

Statistics count all scopes; inputs, outputs and constants are not operations.

`mapping` is the place in the IR of each tensor of the model, or why it has none:

    json.dumps(mapping(record))

    {"schema": "mo-loop mapping", "version": 1,
     "model": "model.onnx",
     "tensors": [{"scope": "", "tensor": "x", "kind": "input",
                  "became": "kept", "where": "", "layer": "x", "id": 0, "port": 0},
                 {"scope": "loop/step", "tensor": "t", "kind": "Add",
                  "became": "removed", "where": null, "layer": null, "id": null, "port": null}, ...]}

`scope` is the path of the ONNX graph: "" for the main graph, with the names of the node and the body for each level
below. `kind` is "input", "initializer" or the operator that makes the tensor. `became` is

    kept      an output port of the layer holds it
    folded    the conversion computed it; if a layer is named, its constant holds it
    removed   no port holds it: it was not needed, was fused with its neighbours, or equals another one

`where` is the path of the IR body of the layer (inlining moves tensors to an outer body), `layer` and `id` are the name
and the id of the layer in the file, `port` is its output port. A later version may add fields but does not remove any.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from mo_loop.errors import MoLoopError
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import (
    OnnxGraph,
    all_graphs,
    called,
    function_graph,
    main_graph,
    operator_of,
    tensors_of,
)
from mo_loop.graph import Graph, from_onnx, type_of
from mo_loop.ir.xml import layer_names, layer_order, output_port
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.control import Iteration
from mo_loop.origin import Origins
from mo_loop.transforms.manager import Phase, Step

if TYPE_CHECKING:
    from mo_loop.transforms.low_precision.compress_weights import Compression


SCHEMA, VERSION = "mo-loop mapping", 1

_TENSOR, _SPARSE = 4, 11  # AttributeProto.AttributeType

FATES = {
    "UnrollLoops": "unrolled",
    "EliminateEmptyLoops": "never runs",
    "FuseRecurrentCells": "fused into a sequence layer",
    "LowLatency2": "made one step",
    "EliminateUnreachableBodies": "decided",
    "ConstantFolding": "folded",
    "ConstantFoldingAfterLoops": "folded",
}
"""The effect of a pass on control flow that it removes; for other passes it is "removed"."""


@dataclass(eq=False)
class Flow:
    """One control-flow node of the model: its operator, its present layers, and the result of its conversion."""

    kind: str
    origins: Origins
    nodes: dict[Any, None]
    count: int = 0
    fate: str = ""

    @property
    def became(self) -> str:
        """The type of its layer, or a word such as "unrolled"."""
        if not self.nodes:
            return f"unrolled \u00d7{self.count}" if self.count else self.fate
        types = [node.type for node in self.nodes]
        return next((each for each in types if each != "If"), "If")  # an If may guard a loop


@dataclass(frozen=True)
class LoopOutcome:
    """`count` nodes of the operator became `became`: a type of layer or a word."""

    operator: str
    became: str
    count: int


class Record:
    """An observer of a conversion and of the writing of its model."""

    def __init__(self, *, tensors: bool = False) -> None:
        """With `tensors`, the tensors of the model are recorded for a mapping."""
        self.phases: dict[str, float] = {}
        self.model: OnnxModel | None = None
        self.graph: Graph | None = None
        self.compression: Compression | None = None
        self.flows: list[Flow] = []
        self.pairs: dict[str, tuple[str, str]] = {}
        """Variable -> the input and the output of the model that it replaces."""
        self.known: set[tuple[tuple[str, ...], str]] = set()
        self._tensors = tensors

    def __call__(self, event: Step | Phase) -> None:
        """Record a Phase or a Step."""
        if isinstance(event, Step):
            self._after(event)
            return
        if event.seconds is None:
            return
        self.phases[event.name] = self.phases.get(event.name, 0.0) + event.seconds
        self.graph = event.graph
        if event.name == "reading":
            self.model = event.subject
        elif event.name == "translating":
            self._translated()
        elif event.name == "compressing":
            self.compression = event.subject

    def _translated(self) -> None:
        """Record the control flow of the translated graph, and which of its tensors are known."""
        graph = self.graph
        assert graph is not None
        flows = (node for scope in graph.scopes() for node in scope.nodes_with_bodies())
        self.flows = [Flow(type_of(node), node.origins, {node: None}) for node in flows]
        if self._tensors:
            values = (value for scope in graph.scopes() for value in _known(scope))
            self.known = {(each.scope, each.output) for value in values for each in value.origins}

    def _after(self, step: Step) -> None:
        """Record the effect of a pass on control flow and states. A node that replaces another has the same origin."""
        pairs = getattr(step.each, "pairs", ()) if step.name == "MakeStateful" else ()
        self.pairs |= {each.variable_id: (each.input, each.output) for each in pairs}
        if not step.changed or not self.flows:
            return
        present = dict.fromkeys(node for scope in step.graph.scopes() for node in scope.nodes_with_bodies())
        known = {node for flow in self.flows for node in flow.nodes}
        new = [node for node in present if node not in known]
        for flow in self.flows:
            gone = [node for node in flow.nodes if node not in present]
            for node in gone:
                del flow.nodes[node]
                flow.nodes.update((each, None) for each in new if not set(flow.origins).isdisjoint(each.origins))
            if gone and not flow.nodes and not flow.fate:
                flow.fate = FATES.get(step.name, "removed")
                if flow.fate == "unrolled" and isinstance(gone[0], Iteration) and isinstance(gone[0].count, int):
                    flow.count = gone[0].count


def _known(graph: Graph) -> list[Any]:
    """The values that do not depend on inputs of the model."""
    known: dict[Any, None] = {}
    for node in graph.ordered():
        op: Any = node
        computed = node.inputs and not node.bodies and not op.random and all(each in known for each in node.inputs)
        is_known = bool(computed) or hasattr(node, "tensor")
        known |= {each: None for each in node.outputs if is_known or getattr(each.type, "integers", None) is not None}
    return list(known)


# -- statistics


@dataclass
class Statistics:
    """`operations` in all scopes, and the bytes of constants by element type."""

    operations: int = 0
    weights: dict[str, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return sum(self.weights.values())


def onnx_statistics(model: OnnxModel) -> Statistics:
    """Statistics of an ONNX model as stored in its file; a function counts once, however often it is called."""
    operations = 0
    weights: Counter[str] = Counter()
    for scope in all_graphs(model):
        for tensor in _tensors(scope):
            try:
                dtype = from_onnx(tensor.data_type)
            except MoLoopError:  # of an initializer that nothing reads
                continue
            weights[dtype.name] += dtype.size_of(math.prod(tensor.dims))
        operations += sum(node.op_type != "Constant" for node in scope.nodes)
    return Statistics(operations, dict(weights))


def _tensors(scope: "OnnxGraph") -> Iterator[Any]:
    yield from scope.initializers
    sparse = [] if scope.kind == "function" else list(scope.proto.sparse_initializer)
    for attribute in (each for node in scope.nodes if node.op_type == "Constant" for each in node.attribute):
        yield from [attribute.t] if attribute.type == _TENSOR else []
        sparse += [attribute.sparse_tensor] if attribute.type == _SPARSE else []
    yield from (each.values for each in sparse)


def graph_statistics(graph: Graph) -> Statistics:
    """Statistics of a graph; each constant counts, although the .bin stores equal ones once."""
    operations = 0
    weights: Counter[str] = Counter()
    for scope in graph.scopes():
        constants = scope.of(Constant)
        for node in constants:
            weights[node.tensor.dtype.name] += node.tensor.nbytes
        operations += len(scope) - len(constants) - len(scope.of(Parameter)) - len(scope.of(Result))
    return Statistics(operations, dict(weights))


def outcomes(record: Record) -> list[LoopOutcome]:
    """The result of each Loop, Scan and If of the model, in the order of its scopes; equal outcomes share one count."""
    assert record.model is not None
    counts = Counter((flow.kind, flow.became) for flow in record.flows)
    left = list(record.flows)
    graphs = [each for each in all_graphs(record.model) if each.kind != "function"]  # which is counted at its calls
    flows = ((graph, node) for graph in graphs for node in graph.nodes if operator_of(node) in ("Loop", "Scan", "If"))
    for node in (graph.origin_of(node) for graph, node in flows):
        flow = next((each for each in left if each.kind == node.operator and node in each.origins), None)
        if flow is not None:
            left.remove(flow)
        else:  # translation replaces an If of known condition by one branch, and does not read the other branch
            counts[node.operator, "decided" if node.operator == "If" else "not needed"] += 1
    return [LoopOutcome(kind, became, count) for (kind, became), count in counts.items()]


# -- mapping


class Place(NamedTuple):
    """An output port of a layer."""

    where: str
    layer: str
    id: int
    port: int


Tensor = tuple[tuple[str, ...], str]
"""The scope path of an ONNX graph, and the name of a tensor in it."""


def mapping(record: Record) -> dict[str, Any]:
    """The tensors of the recorded model, of all scopes, in the order of the file. Call it after `save_model`."""
    assert record.model is not None and record.graph is not None
    found = _places(record.graph)
    calls = _calls(record.model, {scope for scope, _ in found})
    rows = []
    for graph in all_graphs(record.model):
        scopes = calls.get(graph.scope, []) if graph.is_in_function else [graph.scope]
        for tensor in tensors_of(graph):
            here = [(scope, tensor.name) for scope in scopes]
            place, is_constant = next((found[each] for each in here if each in found), (None, False))
            became = "kept"
            if place is None:
                became = "removed" if record.known.isdisjoint(here) else "folded"
            elif is_constant and tensor.kind not in ("initializer", "Constant", "input"):
                became = "folded"
            row = {"scope": graph.path, "tensor": tensor.name, "kind": tensor.kind, "became": became}
            rows.append(row | (dict.fromkeys(Place._fields) if place is None else place._asdict()))
    return {"schema": SCHEMA, "version": VERSION, "model": record.model.path, "tensors": rows}


def _places(graph: Graph) -> dict[Tensor, tuple[Place, bool]]:
    """The port of each tensor, and whether its layer is a constant. For a tensor that bodies capture, it is the port in
    the outermost graph."""
    found: dict[Tensor, tuple[Place, bool]] = {}
    for scope in graph.scopes():
        order = layer_order(scope)
        for number, (node, name) in enumerate(zip(order, layer_names(order), strict=True)):
            for value in node.outputs:
                place = Place(scope.path, name, number, output_port(value)), isinstance(node, Constant)
                for each in value.origins:
                    found.setdefault((each.scope, each.output), place)
    return found


def _calls(model: OnnxModel, present: set[tuple[str, ...]]) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """The scope path of each function, and of each body in one, with its paths at the calls.

    Only those that are `present` in the IR are followed.
    """
    found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    prefixes = {path[:length] for path in present for length in range(len(path) + 1)}
    stack = [(main_graph(model), main_graph(model))]
    while stack:
        listed, graph = stack.pop()
        if listed.is_in_function:
            found.setdefault(listed.scope, []).append(graph.scope)
        for node in graph.nodes:
            stack += zip(listed.bodies(node), graph.bodies(node), strict=True)
            function = called(model, node)
            scope = graph.origin_of(node).inner_scope
            if function is not None and scope in prefixes:
                by_name = function_graph(model, function, (function.name,))
                stack.append((by_name, function_graph(model, function, scope)))
    return found
