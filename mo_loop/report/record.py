"""Record: an observer that records the model, control flow and times of a conversion, for the summary and the mapping.

    record = Record()
    model = convert_model("model.onnx", observers=[record])
    save_model(model, "model.xml", observers=[record])
    record.phases                     # {"reading": 0.02, "translating": 0.11, "passes": 0.08, ...}
    outcomes(record)                  # [LoopOutcome("Loop", "TensorIterator", 2), LoopOutcome("If", "decided", 1)]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mo_loop.graph import Graph, Node
from mo_loop.graph.origin import Origins
from mo_loop.ops.control import Control, Iteration
from mo_loop.transforms.manager import Phase, Step

if TYPE_CHECKING:
    from mo_loop.frontend.model import OnnxModel
    from mo_loop.transforms.common.compress_float_constants import Compression

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


class Flow:
    """One control-flow node of the model: its operator, its present layers, and the result of its conversion."""

    def __init__(self, node: Any) -> None:
        self.kind: str = node.type
        self.origins: Origins = node.origins
        self.nodes: dict[Any, None] = {node: None}
        self.count = 0
        self.fate = ""

    def has_origin_of(self, node: Node) -> bool:
        """Whether `node` has the same node of the model as its origin."""
        return not set(self.origins).isdisjoint(node.origins)

    @property
    def became(self) -> str:
        """The type of its layer, or a word such as "unrolled"."""
        if not self.nodes:
            return f"unrolled \u00d7{self.count}" if self.count else self.fate
        types = [node.type for node in self.nodes]
        return next((each for each in types if each != "If"), "If")  # an If may guard a loop


@dataclass(frozen=True)
class LoopOutcome:
    """`count` nodes of the operator `kind` became `became`: a type of layer or a word."""

    kind: str
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
        elif event.seconds is not None:
            self._ended(event, event.seconds)

    def _ended(self, phase: Phase, seconds: float) -> None:
        self.phases[phase.name] = self.phases.get(phase.name, 0.0) + seconds
        self.graph = phase.graph
        if phase.name == "reading":
            self.model = phase.subject
        elif phase.name == "translating":
            self._translated()
        elif phase.name == "compressing":
            self.compression = phase.subject

    def _translated(self) -> None:
        """Record the control flow of the translated graph, and which of its tensors are known."""
        graph = self.graph
        assert graph is not None
        self.flows = [Flow(node) for scope in graph.scopes() for node in _flows(scope)]
        if self._tensors:
            values = (value for scope in graph.scopes() for value in _known(scope))
            self.known = {(each.scope, each.output) for value in values for each in value.origins}

    def _after(self, step: Step) -> None:
        """Record the effect of a pass on control flow and states. A node that replaces another has the same origin."""
        pairs = getattr(step.each, "pairs", ()) if step.name == "MakeStateful" else ()
        self.pairs |= {each.variable_id: (each.input, each.output) for each in pairs}
        if not step.changed or not self.flows:
            return
        present = dict.fromkeys(node for scope in step.graph.scopes() for node in _flows(scope))
        known = {node for flow in self.flows for node in flow.nodes}
        new = [node for node in present if node not in known]
        for flow in self.flows:
            gone = [node for node in flow.nodes if node not in present]
            for node in gone:
                del flow.nodes[node]
                flow.nodes.update((each, None) for each in new if flow.has_origin_of(each))
            if gone and not flow.nodes and not flow.fate:
                flow.fate = FATES.get(step.name, "removed")
                flow.count = _count(gone[0]) if flow.fate == "unrolled" else 0


def _flows(graph: Graph) -> list[Any]:
    return [node for node in graph.nodes_with_bodies() if isinstance(node, Control)]


def _count(node: Node) -> int:
    return node.count if isinstance(node, Iteration) and isinstance(node.count, int) else 0


def _known(graph: Graph) -> list[Any]:
    """The values that do not depend on inputs of the model."""
    known: dict[Any, None] = {}
    for node in graph.ordered():
        op: Any = node
        computed = (
            bool(node.inputs) and not node.bodies and not op.random and all(each in known for each in node.inputs)
        )
        for value in node.outputs:
            if hasattr(node, "tensor") or computed or getattr(value.type, "integers", None) is not None:
                known[value] = None
    return list(known)
