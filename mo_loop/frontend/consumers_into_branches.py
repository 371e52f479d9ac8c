"""If with branches that return values of different rank: moves the consumers into the branches.

    y = If(c, then: a [2], else: b [2,1])          then: a' = Softmax(a)  r = ReduceSum(a')  []
    s = Softmax(y)                           ->    else: b' = Softmax(b)  r = ReduceSum(b')  []
    r = ReduceSum(s)                               r = If(c, ...)

The runtime does not support values of unknown rank. The nodes that read a value whose rank differs move into the
branches, and so does every node on a path from the If to one of them: otherwise the graph would have a cycle. Values
that moved nodes read become captures, values whose ranks agree become outputs of the If. ONNX nodes move, because
translators depend on ranks: each branch is translated with the moved nodes after its own nodes. If a moved node refuses
every tensor of the type that a branch returns, no successful run takes this branch, and the other one is used alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mo_loop.errors import UnsupportedError
from mo_loop.frontend.branch_extension import extended
from mo_loop.frontend.context import Body, Context, TranslatedBody, Translation, as_values
from mo_loop.frontend.onnx_graphs import body_name, label, operator_of
from mo_loop.frontend.ops.conditional import is_decided, selected
from mo_loop.frontend.scope import Scope
from mo_loop.graph import Value
from mo_loop.graph.origin import Origin, made_for
from mo_loop.graph.types import OptionalType, SequenceType, TensorType
from mo_loop.ops.front import Failed
from mo_loop.ops.unknown_rank import decision

LIMIT = 1000
"""The largest number of nodes that move. Both branches receive a copy of each."""

BRANCHES = ("then_branch", "else_branch")

RANDOM = frozenset(
    ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli")
)
"""Operators that do not move: they draw random numbers once, whichever branch is taken."""


def sink_consumers(
    translation: Translation, proto: Any, rest: Sequence[Any], outputs: Iterable[str], scope: Scope
) -> frozenset[int]:
    """Move the nodes that have to move from `rest`, the nodes not yet translated, into the branches of the If `proto`.

    Returns the positions in `rest` of the nodes that this call translates. There are none if all ranks agree, or if a
    value whose rank differs is an output of the graph; the last check refuses the If then.
    """
    split = split_outputs(proto, scope)
    if not split or any(each.ref_attr_name for each in proto.attribute):
        return frozenset()
    sinking = _Sinking(translation, proto, rest, outputs, scope)
    with made_for((Origin(scope.path, label(proto), operator_of(proto)),)):
        return sinking.run(split)


def split_outputs(proto: Any, scope: Scope) -> set[str]:
    """The outputs of the If `proto` whose ranks differ between its branches."""
    return {name for name in proto.output if name and _is_split(scope.values.get(name))}


def _is_split(value: Value | None) -> bool:
    return value is not None and isinstance(value.type, TensorType) and value.dtype is not None and value.rank is None


class _Sinking:
    def __init__(
        self, translation: Translation, proto: Any, rest: Sequence[Any], outputs: Iterable[str], scope: Scope
    ) -> None:
        self.translation = translation
        self.proto = proto
        self.rest = rest
        self.scope = scope
        self.reads = [translation.names_read.of_node(node) for node in rest]
        self.makes = [frozenset(filter(None, node.output)) for node in rest]
        self.outputs = frozenset(outputs)
        self.own = [name for name in proto.output if name]
        self.origins = {
            name: Origin(scope.path, label(node), operator_of(node), name)
            for node in (proto, *rest)
            for name in node.output
        }
        self.branches = {each.name: each.g for each in proto.attribute if each.name in BRANCHES}
        decided = is_decided(scope[proto.input[0]])
        self.live = BRANCHES if decided is None else (BRANCHES[not decided],)
        self.descends = self._descending()

    def run(self, split: set[str]) -> frozenset[int]:
        distance = 1
        while True:
            near = self._closed(self._near(split, distance))
            reason = self._obstacle(near)
            if reason:
                return self._refuse(split, reason)
            first = self._independent(near)
            for i in first:
                self.translation.node(self.rest[i], self.scope)
            self.descends -= first
            names = [*self.own, *(name for i in sorted(near) for name in sorted(self.makes[i]))]
            bodies = [self._body(key, near, names).translate([]) for key in self.live]
            if any(body.has_failed for body in bodies):
                return first | self._decided(bodies)
            differing = {name for name, ranks in _ranks(names, bodies) if len(ranks) > 1 or None in ranks}
            moved = self._differing(split, near, differing)
            if moved is not None:
                return first | self._move(moved)
            distance *= 2

    # -- which nodes

    def _descending(self) -> frozenset[int]:
        """The nodes of `rest` that depend on the If."""
        names, found = set(self.own), set()
        for i, reads in enumerate(self.reads):
            if not names.isdisjoint(reads):
                found.add(i)
                names |= self.makes[i]
        return frozenset(found)

    def _near(self, split: set[str], limit: int) -> set[int]:
        """The nodes at most `limit` steps after a value whose rank differs."""
        steps = dict.fromkeys(split, 0)
        found = set()
        for i in sorted(self.descends):
            nearest = min((steps[name] for name in self.reads[i] if name in steps), default=limit)
            if nearest < limit:
                found.add(i)
                steps.update(dict.fromkeys(self.makes[i], nearest + 1))
        return found

    def _closed(self, moved: set[int]) -> frozenset[int]:
        """`moved` and every node on a path from the If to one of them."""
        closed = set(moved)
        names: set[str] = set()
        for i in sorted(self.descends, reverse=True):
            if i in closed or not names.isdisjoint(self.makes[i]):
                closed.add(i)
                names |= self.reads[i]
        return frozenset(closed)

    def _independent(self, moved: frozenset[int]) -> frozenset[int]:
        """The nodes that `moved` nodes read and that do not depend on the If. They are translated first."""
        found, names = set(), {name for i in moved for name in self.reads[i]}
        for i in reversed(range(len(self.rest))):
            if i not in self.descends and not names.isdisjoint(self.makes[i]) and not self._is_made(i):
                found.add(i)
                names |= self.reads[i]
        return frozenset(found)

    def _is_made(self, i: int) -> bool:
        return all(name in self.scope.values for name in self.makes[i])

    def _differing(self, split: set[str], near: frozenset[int], differing: set[str]) -> frozenset[int] | None:
        """The nodes that have to move, from the ranks in `near`; None if `near` is too small to decide."""
        moved, names = set(), set(split)
        for i in sorted(self.descends):
            if names.isdisjoint(self.reads[i]):
                continue
            if i not in near:
                return None
            moved.add(i)
            names |= self.makes[i] & differing
        return self._closed(moved)

    def _obstacle(self, moved: frozenset[int]) -> str:
        """Why `moved` cannot move; empty if they can."""
        if len(moved) > LIMIT:
            return f"more than {LIMIT} nodes read it before the ranks agree"
        draws = [self.rest[i].op_type for i in sorted(moved) if self.rest[i].op_type in RANDOM]
        return f"{draws[0]}, which reads it, draws random numbers once, whichever branch is taken" if draws else ""

    def _refuse(self, split: set[str], reason: str) -> frozenset[int]:
        """Replace the values whose rank differs by the outputs of a Failed node, if they differ by more than ones."""
        if self._made((), self.own):
            return frozenset()
        names = sorted(split)
        context = self._context()
        error = UnsupportedError(
            f"the branches of If return {', '.join(names)} with different ranks, and {reason}", where=context.origin,
            code="ML315", hint=decision(self.scope[self.proto.input[0]], self.scope.all_captured()),
        )  # fmt: skip
        failed = Failed(graph=self.scope.graph, error=error, count=len(names), name=context.path)
        self._redefine(names, failed.outputs)
        return frozenset()

    # -- moving them

    def _body(self, key: str, moved: Iterable[int], names: Sequence[str]) -> Body:
        """A branch with the `moved` nodes after its own, and with the outputs `names`."""
        branch = self.branches[key]
        nodes = [self.rest[i] for i in sorted(moved)]
        aliases, proto = extended(branch, self.proto.output, nodes, names, self.translation.names_read)
        scope = self.scope
        if aliases:
            scope = Scope(self.scope.graph, self.scope, self.scope.path)
            scope.depth = self.scope.depth
            scope.aliases = aliases
        context = self._context()
        made = zip(nodes, proto.node[len(branch.node) :], strict=True)
        moved_names = (pair for node, copy in made for pair in zip(node.output, copy.output, strict=True))
        moved_origins = {there: self.origins[here] for here, there in moved_names if here}
        path = (*context.origin.inner_scope, body_name(self.proto, key, branch))
        return Body(self.translation, proto, scope, Origin(path, operator=context.origin.operator), moved_origins)

    def _move(self, moved: frozenset[int]) -> frozenset[int]:
        made = [*self.own, *(name for i in sorted(moved) for name in self.rest[i].output if name)]
        later = {name for i, reads in enumerate(self.reads) if i not in moved for name in reads}
        wanted = [name for name in made if name in later or name in self.outputs]
        return moved if self._made(moved, wanted) else frozenset()

    def _made(self, moved: Iterable[int], wanted: Sequence[str]) -> bool:
        """Make an If with the `moved` nodes and the outputs `wanted`. False if ranks differ by more than ones."""
        then, else_ = [self._body(key, moved, wanted) for key in BRANCHES]
        condition = self.scope[self.proto.input[0]]
        made = as_values(selected(condition, then, else_, self._context(), by_ones=True))
        if any(_is_split(value) for value in made):
            self.scope.graph.remove(made[0].node)
            return False
        self._redefine(wanted, made)
        return True

    def _redefine(self, names: Sequence[str], values: Sequence[Value]) -> None:
        """Map `names` to new values in place of the first outputs of the If."""
        for name, value in zip(names, values, strict=True):
            self.scope.values[name] = value
            value.define(self.origins[name])
            if not value.node.name:
                value.node.name = self.proto.name or name

    def _context(self) -> Context:
        return Context(self.translation, self.proto, self.scope, tuple(self.proto.output))

    def _decided(self, bodies: Sequence[TranslatedBody]) -> frozenset[int]:
        """Use one branch alone if moved nodes refuse what the other one returns, so that no successful run takes it."""
        failed = [body.has_failed for body in bodies]
        if failed in ([True, False], [False, True]) and bodies[failed.index(True)].is_ill_typed:
            dead, alive = BRANCHES if failed[0] else BRANCHES[::-1]
            reason = bodies[failed.index(True)].failures()[0]
            context = self._context()
            self.translation.doubts.branch_left_out(
                self.proto,
                f"{context.path}: {dead} is taken to be never run, for what follows cannot read what it returns "
                f"({reason.where}: {reason.message}); the model is converted with {alive} alone",
                context.origin,
            )
            body = self._body(alive, (), self.own)
            self._redefine(self.own, body.inline())
        return frozenset()


def _ranks(names: Sequence[str], bodies: Sequence[TranslatedBody]) -> Iterable[tuple[str, set[int | None]]]:
    """The ranks of each value in the branches. A sequence or optional has the rank of its elements, if it has any."""
    for place, name in enumerate(names):
        held = [_held(body.results[place].value.type) for body in bodies]
        yield name, {each.rank for each in held if each is not None}


def _held(type_: Any) -> TensorType | None:
    if isinstance(type_, OptionalType):
        return None if type_.present is False else _held(type_.element)
    if isinstance(type_, SequenceType):
        return None if type_.is_empty else type_.element
    return type_
