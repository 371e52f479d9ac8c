"""Loops whose iterations do not depend on each other."""

from __future__ import annotations

from dataclasses import dataclass

from mo_loop.ops.control import Iteration
from mo_loop.transforms.loops.few_steps import keep_for_few_steps
from mo_loop.transforms.loops.loop_pass import AllStepsPass
from mo_loop.transforms.loops.memory_bound import Bound
from mo_loop.transforms.loops.outer import Draft, obstacle_of, output_of, replace_outputs


@dataclass(eq=False)
class VectorizeLoops(AllStepsPass):
    """for i in range(T): Y[i] = f(X[i], v)  ->  Y = f(X, v)

    A loop over slices, or over its iteration number, becomes its body applied once to the whole tensors,
    which have the steps as one more dimension. Inner loops come first. transforms/loops/step_rules.py has the form of
    each operation; a loop with an operation that has none stays.

    A loop that may run zero times stays if its body has an operation that could fail: it would fail on values that the
    model does not compute.

    States vanish as well if their values in all steps have a closed form (transforms/loops/closed_forms.py): sums,
    extremes, counters, values of the step before. A sum of floats of which only the last is read may be added in
    another order. Linear attention of an unknown number of steps stays a loop where there are few of them.

    Args:
        exact_order: floats are added in the order of the steps.
        memory: the largest tensor of all steps, as a multiple of the size of the inputs and outputs of the loop. Above
            it the loop becomes one over blocks of steps.
    """

    def rewrite_within(self, node: Iteration, bound: Bound, *, may_split: bool) -> bool:
        obstacle = obstacle_of(node)
        if obstacle:
            return self.refuse(node, obstacle)
        draft = Draft(node, replaces=True)
        left = draft.solve(exact_order=self.exact_order)
        outputs = []
        for entry in node.output_map:
            made = output_of(draft, entry)
            if made is None:
                return self.refuse(node, draft.obstacle or f"{len(left)} of its states have no closed form")
            outputs.append(made)
        split = self.exceeds(draft, outputs, bound, may_split=may_split)
        if split is not None:
            return split
        if draft.has_chunks and not isinstance(node.count, int):
            keep_for_few_steps(draft, outputs)
            return self.accept(node, "but for few steps")
        replace_outputs(node, range(len(outputs)), draft.place(outputs))
        node.graph.remove(node)
        return self.accept(node)
