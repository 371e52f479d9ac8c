"""The rules by which operators gain a dimension of steps: one table by class, a file for each family."""

from __future__ import annotations

from mo_loop.graph import Node
from mo_loop.transforms.loops.lifted import Rule
from mo_loop.transforms.loops.step_rules import batch_rules, element_rules, index_rules, movement_rules, product_rules

RULES: dict[type, Rule] = {
    **element_rules.RULES, **movement_rules.RULES, **product_rules.RULES, **index_rules.RULES, **batch_rules.RULES,
}  # fmt: skip
"""Class of an operation -> its rule; a class without an entry has that of its next base."""


def rule_of(node: Node) -> Rule | None:
    """The rule of an operation; None if it has none."""
    return next((RULES[cls] for cls in type(node).__mro__ if cls in RULES), None)
