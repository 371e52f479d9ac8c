"""Origin: the node or tensor of the ONNX model that a node or value of a graph comes from.

    Origin(("loop", "step"), "add", "Add").path                 # loop/step/add
    Origin(("loop", "step"), "add", "Add", "y").path            # loop/step/y
    with made_for((origin,)):
        ops.ReLU(x).origins                                     # (origin,)

The front end gives each node the origin of the ONNX node that it translates. A node that a pass makes has the origins
of the candidate that the pass examines. A node has several origins if ONNX nodes were merged or fused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar, Token
from functools import reduce
from typing import Any, NamedTuple

from mo_loop.ordered_union import union


class Origin(NamedTuple):
    """A node or a tensor of an ONNX model.

    `scope` is the path of the ONNX graph that holds it: for each body the name of the node and that of the body, for a
    function the name of the node that calls it. `node` is the name of the node, that of its first output where it has
    none; it is empty for an input, an initializer, and a graph as a whole. `operator` is the node's, with its domain
    where that is not the default one; of a body it is that of the node which holds it. `output` is the name of a
    tensor, empty for a node.
    """

    scope: tuple[str, ...] = ()
    node: str = ""
    operator: str = ""
    output: str = ""

    @property
    def path(self) -> str:
        """The path as text, for messages only: names may contain slashes, so it cannot be parsed."""
        name = self.output or self.node
        return "/".join(map(str, (*self.scope, name) if name else self.scope))  # a damaged file has names in bytes

    @property
    def inner_scope(self) -> tuple[str, ...]:
        """The path of a function that the node calls; the paths of its bodies begin so."""
        return (*self.scope, self.node)

    def of_node(self) -> Origin:
        """The node that makes a tensor."""
        return self._replace(output="")

    def is_below(self, node: Origin) -> bool:
        """Whether it is in a body of `node`, or in a function that `node` calls."""
        return self.scope[: len(node.scope) + 1] == node.inner_scope


Origins = Sequence[Origin]
"""The node or tensor itself, then those that were merged into it: a tuple, or a union of many."""

current: ContextVar[Origins] = ContextVar("current", default=())
"""The origins that new nodes get."""


class made_for:
    """A context in which new nodes get these origins."""

    __slots__ = ("_origins", "_token")

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    def __enter__(self) -> None:
        self._token: Token[Origins] = current.set(self._origins)

    def __exit__(self, *_: Any) -> None:
        current.reset(self._token)


def all_of(several: Iterable[Origins]) -> Origins:
    """All of them, each origin once."""
    return reduce(union, several, ())
