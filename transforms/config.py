"""Which passes run, on which nodes, and what they said about the nodes they left alone.

    config = PassConfig()
    config.disable("LoopToTI")                                     # by name or by class
    config.enable(UnrollLoops)                                     # a pass that is disabled by default
    config.veto(lambda node: node.name == "keep", "SoftSignDecomposition")   # these passes leave that node alone
    config.explain("LoopToTI")
    Manager(passes, config=config).run(graph)
    config.explanations                                            # one entry a candidate of LoopToTI

One PassConfig belongs to one Manager and is shared by everything registered in it, nested passes included. Nothing of
it is global, and it does not matter whether it is changed before or after passes are registered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from mo_loop.graph import Node
from transforms.old_names import current_name

Veto = Callable[[Node], bool | str]
"""Called with a candidate: False lets the pass go on; True, or a text that says why, makes it leave the node alone."""


@dataclass(frozen=True)
class Explanation:
    """What a pass did with one candidate.

    `outcome` is `changed`, `refused` or `vetoed`; `reason` says what refused, `depth` how many values of the pattern
    had been found by then (0 where a pass has no pattern).
    """

    pass_name: str
    node: str
    outcome: Literal["changed", "refused", "vetoed"]
    reason: str = ""
    depth: int = 0


class PassConfig:
    """The configuration of one pipeline."""

    def __init__(self) -> None:
        self._enabled: dict[str, bool] = {}
        self._vetoes: list[tuple[frozenset[str], Veto]] = []
        self._explained: set[str] = set()
        self.explanations: list[Explanation] = []

    # -- which passes run

    def disable(self, *passes: Any) -> None:
        """Passes, by name, class or instance, that are not to run."""
        self._enabled.update((name_of(each), False) for each in passes)

    def enable(self, *passes: Any) -> None:
        """Passes that are to run, those that are disabled by default included."""
        self._enabled.update((name_of(each), True) for each in passes)

    def is_enabled(self, each: Any) -> bool:
        """Whether a pass runs: as configured, else as the pass itself says by default."""
        return self._enabled.get(name_of(each), getattr(each, "enabled_by_default", True))

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
        """The names of all passes that something here is about."""
        vetoed = (name for names, _ in self._vetoes for name in names)
        return frozenset((*self._enabled, *vetoed, *self._explained))

    def adopt(self, other: PassConfig) -> None:
        """Take over what `other` says; where both say whether a pass runs, this one is right."""
        if other is not self:
            self._enabled = {**other._enabled, **self._enabled}
            self._vetoes += other._vetoes
            self._explained |= other._explained
            self.explanations += other.explanations

    # -- which nodes a pass leaves alone

    def veto(self, callback: Veto, *passes: Any) -> None:
        """`callback` is asked about every candidate of `passes` (of all passes when none is named)."""
        self._vetoes.append((frozenset(name_of(each) for each in passes), callback))

    def vetoed(self, each: Any, node: Node) -> str:
        """Why the pass has to leave `node` alone; empty when it need not."""
        if not self._vetoes:
            return ""
        name = name_of(each)
        for names, callback in self._vetoes:
            if names and name not in names:
                continue
            answer = callback(node)
            if answer:
                return answer if isinstance(answer, str) else f"vetoed by {_spoken(callback)}"
        return ""

    # -- what passes said

    def explain(self, *passes: Any) -> None:
        """Passes whose decisions are to be recorded in `explanations`."""
        self._explained.update(name_of(each) for each in passes)

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
    name: str = each.name
    return name


def _spoken(callback: Veto) -> str:
    name = getattr(callback, "__name__", "")
    return "a callback" if not name or name == "<lambda>" else name
