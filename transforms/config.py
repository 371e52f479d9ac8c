"""The configuration of passes: which run, on which nodes, and the reasons why they leave nodes unchanged.

    config = PassConfig()
    config.disable("LoopToTI")                                     # by name or by class
    config.enable(UnrollLoops)                                     # a pass that is disabled by default
    config.veto(lambda node: node.name == "keep", "SoftSignDecomposition")   # this pass does not change that node
    config.explain("LoopToTI")
    Manager(passes, config=config).run(graph)
    config.explanations                                            # one entry per candidate of LoopToTI

A PassConfig belongs to one Manager and is shared by all passes registered in it, nested ones included. No part of it is
global. It can be changed before and after passes are registered. An earlier name of a pass stays valid for one version.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from mo_loop.graph import Node
from mo_loop.origin import Origin

OLD_NAMES: dict[str, str] = {
    "AbsOfConcat": "AbsToMaximum",
    "AvgPool14ToAvgPool1": "ConvertAvgPool14ToAvgPool1",
    "BindConstants": "PushConstantToSubgraph",
    "BitwiseNotToSubtract": "BitwiseNotDecomposition",
    "BooleanCopies": "IdentityToLogicalOr",
    "BroadcastBehind": "PreserveEmptyBroadcasts",
    "BroadcastOfNothing": "PreserveEmptyBroadcasts",
    "CapturedResults": "EliminateInvariantOutputs",
    "CollectAppends": "ConcatenateAppends",
    "CommonSubexpressions": "SharedOpOptimization",
    "CompressConstants": "CompressFloatConstants",
    "ConcatOfNothing": "EmptyConcatToBroadcast",
    "ConcatenateFirst": "ConcatenateAlongFirstAxis",
    "ConstantLoops": "PreventLoopFolding",
    "CountWhileLoops": "WhileLoopToCountedLoop",
    "DissolveSequences": "ReplaceSequencesByElements",
    "EliminateNoOps": "NopElimination",
    "EmptyLoops": "EliminateEmptyLoops",
    "ForgetBounds": "RemoveSliceBounds",
    "ForgetSizes": "BreakStateSymbols",
    "GroupNormalizationToMVN": "GroupNormalizationDecomposition",
    "HideSizes": "RemoveArithmeticBounds",
    "HideTripCounts": "MakeTripCountsDynamic",
    "InvariantStates": "EliminateLoopInputsOutputs",
    "LoosenResults": "RemoveResultBounds",
    "MaxPool14ToMaxPool8": "ConvertMaxPool14ToMaxPool8",
    "Pad12ToPad1": "ConvertPad12ToPad1",
    "ROIAlign9ToROIAlign3": "ConvertROIAlign9To3",
    "ReturnedInputs": "ReshapeReturnedInputs",
    "ScatterElementsUpdate12ToScatterElementsUpdate3": "ConvertScatterElementsUpdate12ToScatterElementsUpdate3",
    "ScatterNDUpdate15ToScatterNDUpdate4": "ConvertScatterNDUpdate15ToScatterNDUpdate3",
    "SettleBranches": "CopyControlOutputs",
    "SettleLoops": "CopyControlOutputs",
    "SharedConstants": "ConstantsReduce",
    "SoftSignToDivide": "SoftSignDecomposition",
    "TellSizes": "InsertStaticShapes",
    "TopK11ToTopK3": "ConvertTopK11ToTopK3",
    "TransposeOfOnes": "TransposeToSqueezeUnsqueeze",
    "UnreachableBodies": "EliminateUnreachableBodies",
    "UnreadSlices": "EliminateUnreadSlices",
    "UnusedPorts": "EliminateUnusedPorts",
    "WideConstants": "UnsqueezeToConstantRank",
    "WidenStates": "MakeStateShapesDynamic",
}
"""Old name -> present name."""


def current_name(name: str) -> str:
    """The present name of a pass; for an old name, with a DeprecationWarning."""
    present = OLD_NAMES.get(name, name)
    if present != name:
        warnings.warn(renamed(name), DeprecationWarning, stacklevel=3)
    return present


def renamed(name: str) -> str:
    """The note for a user of the old name of a pass."""
    return f"the pass {name} is now called {OLD_NAMES[name]}; the old name stops working in the next version"


P = TypeVar("P", bound=Any)
Veto = Callable[[Node], bool | str]
"""Called with a candidate node. If it returns True, or a text with the reason, the pass does not change the node."""


@dataclass(frozen=True)
class Explanation:
    """The decision of a pass about one candidate.

    `outcome` is `changed`, `refused` or `vetoed`; `reason` is the reason of a refusal or veto; `depth` is the number of
    values of the pattern that matched before (0 for a pass without a pattern).
    """

    pass_name: str
    node: str
    outcome: Literal["changed", "refused", "vetoed"]
    reason: str = ""
    depth: int = 0
    origin: Origin = field(default=Origin(), compare=False)


class DecisionListener(Protocol):
    """Receives the decisions of all passes, with the nodes themselves (mo_loop/look/dump/dumper.py)."""

    def wants(self, each: Any) -> bool:
        """Whether `each` determines why its pattern does not match a node; called for each node."""

    def hear(self, each: Any, node: Node, outcome: str, reason: str) -> None:
        """Receive the decision of the pass `each` about a candidate."""


class PassConfig:
    """The configuration of one pipeline."""

    def __init__(self) -> None:
        self._enabled: dict[str, bool] = {}
        self._vetoes: list[tuple[frozenset[str], Veto]] = []
        self._explained: set[str] = set()
        self.explanations: list[Explanation] = []
        self.listener: DecisionListener | None = None
        """Hears all decisions, those of passes that are not explained as well."""

    # -- which passes run

    def disable(self, *passes: Any) -> None:
        """Do not run these passes, given by name, class or instance."""
        self._enabled.update((name_of(each), False) for each in passes)

    def enable(self, *passes: Any) -> None:
        """Run these passes, also those that are disabled by default."""
        self._enabled.update((name_of(each), True) for each in passes)

    def is_enabled(self, each: Any) -> bool:
        """Whether a pass runs: as configured, else by the default of the pass."""
        if not self._enabled:
            return getattr(each, "enabled_by_default", True)
        return self._enabled.get(name_of(each), getattr(each, "enabled_by_default", True))

    def enabled_of(self, passes: Iterable[P]) -> list[P]:
        """Those of the passes that run."""
        if not self._enabled:  # as `is_enabled`, for a hundred rules and each body
            return [each for each in passes if each.enabled_by_default]
        return [each for each in passes if self.is_enabled(each)]

    @property
    def disabled(self) -> list[str]:
        """The names of the passes that were disabled, sorted."""
        return sorted(name for name, enabled in self._enabled.items() if not enabled)

    @property
    def enabled(self) -> list[str]:
        """The names of the passes that were enabled, sorted."""
        return sorted(name for name, enabled in self._enabled.items() if enabled)

    @property
    def named(self) -> frozenset[str]:
        """The names of all passes that this configuration mentions."""
        vetoed = (name for names, _ in self._vetoes for name in names)
        return frozenset((*self._enabled, *vetoed, *self._explained))

    def adopt(self, other: "PassConfig") -> None:
        """Add the settings of `other`; if both enable or disable a pass, this configuration takes precedence."""
        if other is not self:
            self._enabled = {**other._enabled, **self._enabled}
            self._vetoes += other._vetoes
            self._explained |= other._explained
            self.explanations += other.explanations
            self.listener = self.listener or other.listener

    # -- which nodes a pass must not change

    def veto(self, callback: Veto, *passes: Any) -> None:
        """`callback` is called with each candidate of `passes`, or of all passes if none is given."""
        self._vetoes.append((frozenset(name_of(each) for each in passes), callback))

    @property
    def has_vetoes(self) -> bool:
        return bool(self._vetoes)

    def vetoed(self, each: Any, node: Node) -> str:
        """The reason why the pass must not change `node`; empty if it may."""
        if not self._vetoes:
            return ""
        name = name_of(each)
        for names, callback in self._vetoes:
            if names and name not in names:
                continue
            answer = callback(node)
            if answer:
                return answer if isinstance(answer, str) else f"vetoed by {_name_of_callback(callback)}"
        return ""

    # -- explanations

    def explain(self, *passes: Any) -> None:
        """Record the decisions of these passes in `explanations`."""
        self._explained.update(name_of(each) for each in passes)

    @property
    def is_watched(self) -> bool:
        """Whether the decisions of any pass are recorded, or heard."""
        return self.listener is not None or bool(self._explained)

    def explains(self, each: Any) -> bool:
        return bool(self._explained) and name_of(each) in self._explained

    def record(self, explanation: Explanation) -> None:
        self.explanations.append(explanation)


def name_of(each: Any) -> str:
    """The name of a pass given as its name, its class or an instance. An old name gives the present one."""
    if isinstance(each, str):
        return current_name(each)
    if isinstance(each, type):
        return each.__name__
    return each.name


def did_you_mean(name: str, known: Sequence[str], otherwise: str) -> str:
    """The hint for a name that is not known: the most similar known name."""
    from difflib import get_close_matches

    close = get_close_matches(name.lower(), [each.lower() for each in known], 1, 0.5)
    meant = next((each for each in known if [each.lower()] == close), "")
    return f"did you mean {meant!r}?" if meant else otherwise


def _name_of_callback(callback: Veto) -> str:
    name = getattr(callback, "__name__", "")
    return "a callback" if not name or name == "<lambda>" else name
