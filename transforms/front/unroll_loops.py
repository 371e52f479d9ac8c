"""Loops with few iterations are unrolled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mo_loop.conversion_limits import budget
from mo_loop.graph.dimension import Dimension, now, open_symbols
from mo_loop.graph.shape import assume_fixed, normalise_axis
from mo_loop.ops.control import If, Iteration
from mo_loop.ops.port_map import Sliced
from mo_loop.transforms.folding import fold_constants
from mo_loop.transforms.port_maps import take_branch
from mo_loop.transforms.unrolling import is_cut_evenly, unrolled
from mo_loop.transforms.vocabulary import FunctionPass, Graph, Node, ops

MOST_NODES = 20_000
"""The copies of one body have at most this number of nodes together."""


@dataclass(eq=False)
class UnrollLoops(FunctionPass):
    """for i in range(3): s = f(s, X[i])  ->  f(f(f(s, X[0]), X[1]), X[2])

    Unrolls a Loop with constant trip count and a condition that is always true, and a TensorIterator or Scan of known
    length. The body is copied once per iteration. The iteration number becomes a constant, a slice a Slice (or a Gather
    if the axis disappears), and a concatenated output one Concat. For nested loops the product of their iterations
    counts: either all are unrolled, or none. Constants are folded afterwards, so that the trip counts of other loops
    may become known. OpenVINO's UnrollTensorIterator does the same without a limit, and not for Scan.

    Sizes of the model's inputs from which the number of iterations of such a loop follows are assumed to stay.

    Args:
        limit: the largest number of iterations, multiplied over nested loops; 0 unrolls nothing.
        keeps_steps: whether loops of one iteration with states stay, for LowLatency2: they are steps of a sequence.
    """

    bodies = "never"  # a body is unrolled before its loop, and again after it has been copied

    limit: int = 0
    keeps_steps: bool = field(default=False, kw_only=True)

    def run_on_graph(self, graph: Graph) -> bool:
        if self.limit <= 0:
            return False
        changed = self._unroll(graph, 1)
        has_effect = changed or self._has_steps(graph)
        self.without_effect = "" if has_effect else f"no loop runs a known number of times, at most {self.limit}"
        return changed

    def _has_steps(self, graph: Graph) -> bool:
        return any(self._is_step(node) for scope in graph.scopes() for node in scope.nodes_with_bodies())

    def _is_step(self, node: Node) -> bool:
        """Whether LowLatency2 replaces the loop by its body, as this pass would."""
        if not self.keeps_steps or not isinstance(node, Iteration):
            return False
        from mo_loop.transforms.states.recurrences import length_of  # only for LowLatency2, which loads it as well

        return length_of(node) == 1

    def _unroll(self, graph: Graph, around: int) -> bool:
        """Unroll the possible loops of a graph whose outer loops have `around` iterations together."""
        changed = False
        pending = graph.nodes_with_bodies()
        while pending:
            node = pending.pop(0)
            inner = around * self._factor(node)
            if any([self._unroll(body, inner) for body in node.bodies]):
                changed = True
                graph.validate()
            if not isinstance(node, Iteration) or self.leaves(node) or not self._is_short(node, around):
                continue
            before = set(graph.nodes_with_bodies())
            budget().unroll(_count(node) * sum(len(scope) for scope in node.body.scopes()))
            unrolled(node, _count(node))
            changed = self.accept(node)
            graph.validate()
            for each in graph.of(If):  # a branch that does not run in this iteration may refuse the types in it
                condition = each.inputs[0]
                if condition is not None and condition.type.integers is not None:
                    take_branch(each, taken=bool(condition.type.integers[0]))
            graph.validate()
            fold_constants(graph)
            graph.sweep()
            graph.validate()
            pending = [each for each in graph.nodes_with_bodies() if each in pending or each not in before]
        self.at = None
        return changed

    def _factor(self, node: Node) -> int:
        """The number of copies, 1 if the limit does not allow any."""
        count = _count(node) if isinstance(node, Iteration) else 1
        return count if 1 <= count <= self.limit else 1

    def _deepest(self, node: Node) -> int:
        """The number of copies of `node` and the loops nested in it."""
        within = [self._deepest(each) for body in node.bodies for each in body.nodes_with_bodies()]
        return self._factor(node) * max(within, default=1)

    def _is_short(self, node: Iteration, around: int) -> bool:
        count = _count(node)
        if self._is_step(node):
            return self.refuse(node, "LowLatency2 replaces it by one step, with states that keep their values")
        if count < 1:
            return self.refuse(node, "its number of iterations is unknown or 0")
        if count > self.limit or around * self._deepest(node) > self.limit:
            return self.refuse(node, f"together with outer and inner loops it has more than {self.limit} iterations")
        if count * sum(len(scope) for scope in node.body.scopes()) > MOST_NODES:
            return self.refuse(node, f"its copies would have more than {MOST_NODES} nodes")
        draws = [each for scope in node.body.scopes() for each in scope.of(ops.RandomUniform)]
        if any(each.global_seed or each.op_seed for each in draws):
            return self.refuse(node, "it draws random numbers from a seed: every copy would draw the same ones")
        assume_fixed(_lengths(node))
        if any(isinstance(each, Sliced) and not is_cut_evenly(each, value) for each, value in node.fed):
            return self.refuse(node, "the length of a sliced input is unknown, or its slices have other sizes than 1")
        return True


def _count(node: Iteration) -> int:
    """The number of iterations for the declared sizes of inputs; 0 if it is unknown."""
    count = node.count
    return count if isinstance(count, int) else now(count) or 0 if open_symbols([count]) else 0


def _lengths(node: Iteration) -> Iterator[Dimension]:
    """The number of iterations, and the lengths of sliced inputs."""
    yield node.count
    for entry, value in node.fed:
        if isinstance(entry, Sliced) and value.shape is not None:
            yield value.shape[normalise_axis(entry.axis, len(value.shape))]
