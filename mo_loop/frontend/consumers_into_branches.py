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

from collections.abc import Iterable, Sequence
from typing import Any

from mo_loop.errors import UnsupportedError
from mo_loop.frontend.context import Body, Context, TranslatedBody, Translation, as_values
from mo_loop.frontend.node_order import NamesRead, WaitingNodes, all_names_in, renamed, unused
from mo_loop.frontend.onnx_graphs import body_name, label, operator_of
from mo_loop.frontend.ops.conditional import is_decided, selected
from mo_loop.frontend.scope import Scope
from mo_loop.graph import OptionalType, SequenceType, TensorType, Value
from mo_loop.ops.front import Failed
from mo_loop.ops.unknown_rank import decision
from mo_loop.origin import Origin, made_for


def extended(
    branch: Any, outputs: Sequence[str], nodes: Sequence[Any], wanted: Sequence[str], names_read: NamesRead
) -> tuple[dict[str, str], Any]:
    """`branch` with copies of `nodes` after its own nodes, and with the outputs `wanted`.

    `nodes` belong to the enclosing graph and read the outputs of the branch under the names `outputs`. Their outputs
    are renamed if the branch has the same names. The dictionary maps names in the result to outer names that the
    branch hides.
    """
    copy = type(branch)()
    copy.CopyFrom(branch)
    taken = all_names_in(branch)
    inner = {name: entry.name for name, entry in zip(outputs, branch.output, strict=False) if name}
    inner.update({name: unused(name, taken) for node in nodes for name in node.output if name})
    aliases: dict[str, str] = {}
    for name in sorted({each for node in nodes for each in names_read.of_node(node)} - inner.keys()):
        if name in taken:
            inner[name] = unused(name, taken)
            aliases[inner[name]] = name
    copy.node.extend(renamed(node, inner) for node in nodes)
    del copy.output[:]
    for name in wanted:
        copy.output.add().name = inner[name]
    return aliases, copy


LIMIT = 1000
"""The largest number of nodes that move. Both branches receive a copy of each."""

BRANCHES = ("then_branch", "else_branch")

RANDOM = frozenset(
    ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli")
)
"""Operators that do not move: they draw random numbers once, whichever branch is taken."""


def sink_consumers(
    translation: Translation, proto: Any, waiting: WaitingNodes, outputs: Iterable[str], scope: Scope
) -> None:
    """Move the nodes that have to move from `waiting`, the nodes after the If `proto`, into its branches.

    What this translates is done in `waiting`: nothing if all ranks agree, or if a value whose rank differs is an output
    of the graph; the last check refuses the If then.
    """
    split = split_outputs(proto, scope)
    if not split or any(each.ref_attr_name for each in proto.attribute):
        return
    sinking = _Sinking(translation, proto, waiting, outputs, scope)
    with made_for((Origin(scope.path, label(proto), operator_of(proto)),)):
        for place in sinking.run(split):
            waiting.done(place)


def split_outputs(proto: Any, scope: Scope) -> set[str]:
    """The outputs of the If `proto` whose ranks differ between its branches."""
    return {name for name in proto.output if name and _is_split(scope.values.get(name))}


def _is_split(value: Value | None) -> bool:
    return value is not None and isinstance(value.type, TensorType) and value.dtype is not None and value.rank is None


class _Sinking:
    def __init__(
        self, translation: Translation, proto: Any, waiting: WaitingNodes, outputs: Iterable[str], scope: Scope
    ) -> None:
        self.translation = translation
        self.proto = proto
        self.waiting = waiting
        self.scope = scope
        self.outputs = frozenset(outputs)
        self.own = [name for name in proto.output if name]
        self.origins = self._origins(proto)
        self.branches = {each.name: each.g for each in proto.attribute if each.name in BRANCHES}
        decided = is_decided(scope[proto.input[0]])
        self.live = BRANCHES if decided is None else (BRANCHES[not decided],)

    def run(self, split: set[str]) -> frozenset[int]:
        """Move the nodes that must move; returns their places."""
        distance = 1
        while True:
            near = self._closed(self._near(split, distance))
            reason = self._obstacle(near)
            if reason:
                return self._refuse(split, reason)
            for i in sorted(self.waiting.before(near) - near):  # they do not depend on the If
                self.translation.node(self.waiting.nodes[i], self.scope)
                self.waiting.done(i)
            names = [*self.own, *(name for i in sorted(near) for name in sorted(self.waiting.makes[i]))]
            bodies = [self._body(key, near, names).translate([]) for key in self.live]
            if any(body.has_failed for body in bodies):
                return self._decided(bodies)
            differing = {name for name, ranks in _ranks(names, bodies) if len(ranks) > 1 or None in ranks}
            moved = self._differing(split, near, differing)
            if moved is not None:
                return self._move(moved)
            distance *= 2

    # -- which nodes

    def _near(self, split: set[str], limit: int) -> set[int]:
        """The nodes at most `limit` steps after a value whose rank differs."""
        found: set[int] = set()
        names: Iterable[str] = split
        for _ in range(limit):
            new = set(self.waiting.readers(names)) - found
            found |= new
            names = {name for i in new for name in self.waiting.makes[i]}
        return found

    def _closed(self, moved: set[int]) -> frozenset[int]:
        """`moved` and every node on a path from the If to one of them."""
        between = self.waiting.after(self.own, max(moved, default=-1))
        return frozenset(self.waiting.before(moved, between))

    def _differing(self, split: set[str], near: frozenset[int], differing: set[str]) -> frozenset[int] | None:
        """The nodes that have to move, from the ranks in `near`; None if `near` is too small to decide."""
        moved: set[int] = set()
        pending = self.waiting.readers(split)
        while pending:
            i = pending.pop()
            if i not in near:
                return None
            if i not in moved:
                moved.add(i)
                pending += self.waiting.readers(self.waiting.makes[i] & differing)
        return self._closed(moved)

    def _obstacle(self, moved: frozenset[int]) -> str:
        """Why `moved` cannot move; empty if they can."""
        if len(moved) > LIMIT:
            return f"more than {LIMIT} nodes read it before the ranks agree"
        operators = [self.waiting.nodes[i].op_type for i in sorted(moved)]
        draws = [each for each in operators if each in RANDOM]
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
        )
        failed = Failed(graph=self.scope.graph, error=error, count=len(names), name=context.path)
        self._redefine(names, failed.outputs)
        return frozenset()

    # -- moving them

    def _body(self, key: str, moved: Iterable[int], names: Sequence[str]) -> Body:
        """A branch with the `moved` nodes after its own, and with the outputs `names`."""
        branch = self.branches[key]
        nodes = [self.waiting.nodes[i] for i in sorted(moved)]
        aliases, proto = extended(branch, self.proto.output, nodes, names, self.translation.names_read)
        scope = self.scope
        if aliases:
            scope = Scope(self.scope.graph, self.scope, self.scope.path)
            scope.depth = self.scope.depth
            scope.aliases = aliases
        context = self._context()
        moved_origins: dict[str, Origin] = {}
        for node, copy in zip(nodes, proto.node[len(branch.node) :], strict=True):
            origins = self._origins(node)
            self.origins |= origins
            moved_origins.update((copy.output[i], origins[name]) for i, name in enumerate(node.output) if name)
        path = (*context.origin.inner_scope, body_name(self.proto, key, branch))
        return Body(self.translation, proto, scope, Origin(path, operator=context.origin.operator), moved_origins)

    def _move(self, moved: frozenset[int]) -> frozenset[int]:
        made = [*self.own, *(name for i in sorted(moved) for name in self.waiting.nodes[i].output if name)]
        wanted = [name for name in made if name in self.outputs or not moved.issuperset(self.waiting.readers([name]))]
        return moved if self._made(moved, wanted) else frozenset()

    def _made(self, moved: Iterable[int], wanted: Sequence[str]) -> bool:
        """Make an If with the `moved` nodes and the outputs `wanted`. False if ranks differ by more than ones."""
        then, else_ = [self._body(key, moved, wanted) for key in BRANCHES]
        made = as_values(selected(self.scope[self.proto.input[0]], then, else_, self._context(), by_ones=True))
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

    def _origins(self, node: Any) -> dict[str, Origin]:
        return {name: Origin(self.scope.path, label(node), operator_of(node), name) for name in node.output}

    def _context(self) -> Context:
        return Context(self.translation, self.proto, self.scope, tuple(self.proto.output))

    def _decided(self, bodies: Sequence[TranslatedBody]) -> frozenset[int]:
        """Use one branch alone if moved nodes refuse what the other one returns, so that no successful run takes it."""
        failed = [body.has_failed for body in bodies]
        if failed in ([True, False], [False, True]) and bodies[failed.index(True)].is_ill_typed:
            dead, alive = BRANCHES if failed[0] else BRANCHES[::-1]
            reason = bodies[failed.index(True)].failures()[0].first
            context = self._context()
            self.translation.doubts.branch_left_out(
                self.proto,
                f"{context.path}: {dead} is assumed never to run, because later nodes cannot read its results "
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
