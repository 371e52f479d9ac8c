"""Change and Detail: the differences at one node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ADDED, REMOVED, CHANGED = "added", "removed", "changed"

NAMES, SHAPES, WEIGHTS, METADATA = ASPECTS = ("names", "shapes", "weights", "metadata")
"""The aspects that a comparison can ignore."""


@dataclass(frozen=True)
class Detail:
    """One difference of a node: `what` and its `name`, with the old and the new text.

    `aspect` is one of `ASPECTS`, or "". `data` has the numbers of changed weights.
    """

    what: str
    name: str = ""
    old: str = ""
    new: str = ""
    aspect: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"what": self.what}
        if self.name:
            found["name"] = self.name
        return {**found, "old": self.old, "new": self.new, **({"data": self.data} if self.data else {})}

    def __str__(self) -> str:
        what = " ".join(each for each in (self.what, self.name) if each)
        if self.data:
            return f"{what}: {self.new}"
        return f"{what} {self.old or 'none'} -> {self.new or 'none'}"


@dataclass(frozen=True)
class Change:
    """A node that was added, removed or changed; without a node, a property of the model.

    `scope` is the path of its graph, `readers` are the nodes that read a constant. `old_node` is its name in the first
    model where it has another one, or None. With `follows` its details are shapes that follow from those of its inputs,
    or it is a constant for nodes that were added or removed with it. `subject` is the Item or Result that it describes,
    that of the second model if it is there.
    """

    kind: str
    scope: str
    node: str
    operator: str
    details: tuple[Detail, ...] = ()
    readers: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    old_node: str | None = None
    inner: int = 0
    follows: bool = False
    subject: Any = field(default=None, compare=False, repr=False)

    @property
    def path(self) -> str:
        return "/".join(each for each in (self.scope, self.node) if each)

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "kind": self.kind, "scope": self.scope, "node": self.node, "operator": self.operator,
        }  # fmt: skip
        if self.old_node is not None:
            found["old_node"] = self.old_node
        if self.readers:
            found["readers"] = list(self.readers)
        if self.inputs:
            found["inputs"] = list(self.inputs)
        if self.inner:
            found["nodes_in_bodies"] = self.inner
        if self.kind == CHANGED:
            found["follows"] = self.follows
            found["details"] = [each.as_json() for each in self.details]
        return found


@dataclass(frozen=True)
class ChangeSide:
    """One of the two models."""

    source: str
    kind: str
    nodes: int
    scopes: tuple[str, ...] = ()
