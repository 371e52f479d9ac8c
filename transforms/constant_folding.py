"""Constants computed at conversion."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from mo_loop.transforms.folding import ConstantFolder, FoldingLimits, Skipped, fold_constants
from mo_loop.transforms.vocabulary import FunctionPass, Graph

log = logging.getLogger(__name__)


@dataclass(eq=False)
class ConstantFolding(FunctionPass):
    """f(constants)  ->  constant, and any value that inference knows completely  ->  constant

    A value of static shape without elements is known completely. Folding it is necessary: Gather, Broadcast and other
    operations of the runtime divide by zero when they are compiled for it. `transforms/folding.py` decides which nodes
    stay because their result is too large. Each of them is logged at DEBUG and listed in `skipped`, which describes the
    last run.

    Args:
        growth: how many times as large the results may be as the constants that disappear.
        allowance: bytes that any node may make.
        large: bytes above which nothing is computed in memory.
    """

    bodies = "last"

    growth: float = FoldingLimits.growth
    allowance: int = FoldingLimits.allowance
    large: int = FoldingLimits.large
    skipped: list[Skipped] = field(default_factory=list, init=False)
    _depth: int = field(default=0, init=False)

    def run(self, graph: Graph) -> bool:
        if not self._depth:
            self.skipped = []
        self._depth += 1
        try:
            return super().run(graph)
        finally:
            self._depth -= 1

    def run_on_graph(self, graph: Graph) -> bool:
        limits = FoldingLimits(self.growth, self.allowance, self.large)
        folding = ConstantFolder(limits, self.leaves, self.accept)
        changed = fold_constants(graph, folding)
        self.at = None
        for node, skip in folding.skipped:
            self.skipped.append(skip)
            log.debug("%s", skip)
            self.refuse(node, skip.reason)
        return changed


@dataclass(eq=False)
class ConstantFoldingAfterLoops(ConstantFolding):
    """as ConstantFolding, for the values that are known once passes have taken work out of loops

    It has a name of its own, so that options about ConstantFolding mean the pass before UnrollLoops.
    """
