"""diff: the difference of two models, as text and as JSON.

    difference = diff("a.onnx", "b.onnx")
    if not difference.equal:
        for change in difference.changes:
            print(change.scope, change.node, change.kind, change.details)
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from mo_loop.errors import UsageError
from mo_loop.look.differences.changes import ADDED, ASPECTS, CHANGED, NAMES, REMOVED, Aspect, Change, changes_of
from mo_loop.look.differences.pairing import Pairs, pair
from mo_loop.look.records.opening import AnyModel, opened, require_same_kind
from mo_loop.look.records.structure import Structure
from mo_loop.printable import PLAIN, ShownResult, Style, did_you_mean, first_few, printable
from mo_loop.support.process_memory import paused_collector

SCHEMA, VERSION = "mo-loop diff", 1

SHOWN = 20
"""The number of nodes of a scope, and of details of a node, that are listed without `complete`."""

WIDTH = 160
"""The number of characters of a detail that are shown without `complete`."""

_SIGNS = {ADDED: ("+", "green"), REMOVED: ("-", "red"), CHANGED: ("~", "yellow")}


@dataclass(frozen=True, repr=False)
class Difference(ShownResult):
    """The changes from the model `old` to the model `new`, by scope, outer ones first; those that count."""

    old: Structure
    new: Structure
    pairs: Pairs
    changes: tuple[Change, ...]

    @property
    def paired(self) -> int:
        """The number of nodes of one model that correspond to nodes of the other."""
        return len(self.pairs.items)

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.changes

    def __len__(self) -> int:
        return len(self.changes)

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.changes)

    @property
    def counts(self) -> Counter[str]:
        """The numbers of nodes that were added, removed and changed."""
        return Counter(each.kind for each in self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        old, new = ({"source": each.source, "kind": each.kind, "nodes": each.nodes} for each in (self.old, self.new))
        found = {"schema": SCHEMA, "version": VERSION, "old": old, "new": new, "equal": self.equal}
        return found | {"paired": self.paired, "changes": [each.as_json() for each in self.changes]}

    def lines(self, style: Style = PLAIN, *, complete: bool = False) -> Iterator[str]:
        """The lines of the text: short, or `complete`.

        Shapes that follow from others, and constants that belong to added and removed nodes, are counted only, unless
        it is to be complete.
        """
        old, new, changes = self.old, self.new, self.changes
        kind = {"ONNX": "ONNX models", "IR": "IR", "dump": "dumps"}[old.kind]
        title = style.paint(f"{old.source} -> {new.source}", bold=True)
        yield f"{title}: {kind} with {_nodes(old.nodes)} and {_nodes(new.nodes)}"
        if not changes:
            yield style.paint("no difference", fg="green")
            return
        scopes = len({change.scope for change in changes})
        yield f"{_counts(changes)} in {scopes} scope{'s' * (scopes != 1)}; {self.paired:,} nodes correspond"
        for scope, group in groupby(changes, key=lambda change: change.scope):
            yield style.paint(scope or "(main)", bold=True)
            if complete:
                for change in group:
                    yield from _change(change, style, complete)
            else:
                yield from _briefly(list(group), style)

    def _brief(self) -> str:
        counts = ", ".join(f"{count} {kind}" for kind, count in self.counts.items())
        return f"{self.old.source} -> {self.new.source}: {counts or 'no difference'}"


def diff(
    old: AnyModel, new: AnyModel, *, ignore: Aspect | Iterable[Aspect] = (), scope: str | None = None,
    tolerance: float = 0.0, allow_external: Sequence[str] = (),
) -> Difference:
    """Compare two models of one kind, node by node, with the bodies of their control flow.

    Args:
        old: A path (.onnx, .xml, or a .json or .txt file of `--dump`), an `onnx.ModelProto`, a `Model` or a `Graph`.
        new: Another model of the same kind.
        ignore: The aspects to ignore: "names", "shapes", "weights", "metadata".
        scope: The path of a body; only this body and those in it count.
        tolerance: Weights may differ by this part of the largest magnitude in the constant. Above 0, weights that an IR
            stores as f16 are compared in their former type.
        allow_external: More folders whose files may hold external data.

    Returns:
        The changes. `equal` is true if there are none.

    Raises:
        InputError: a file cannot be read, or the models are of different kinds.
    """
    with paused_collector():
        return compare(
            *(opened(each, allowed=allow_external, widened=tolerance > 0) for each in (old, new)),
            ignore=ignore, scope=scope, tolerance=tolerance,
        )


def compare(
    old: Structure, new: Structure, *, ignore: str | Iterable[str] = (), scope: str | None = None,
    tolerance: float = 0.0,
) -> Difference:
    """Compare two structures; arguments and errors are those of `diff`."""
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    for each in sorted(ignored - set(ASPECTS)):
        raise UsageError(f"a comparison cannot ignore {each!r}", hint=f"it can ignore {', '.join(ASPECTS)}")
    if not 0 <= tolerance < float("inf"):
        raise UsageError(f"the tolerance {tolerance} is not a number of 0 or more")
    require_same_kind(old, new)
    pairs = pair(old, new)
    found = changes_of(old, new, pairs, tolerance)
    return Difference(old, new, pairs, tuple(_counted(_within(found, scope, old, new), ignored)))


def _within(changes: Iterable[Change], scope: str | None, old: Structure, new: Structure) -> Iterator[Change]:
    """The changes in a scope and those below it, and those of the node that owns it: its port map is part of both."""
    if scope is None:
        yield from changes
        return
    require_scope(scope, old, new)
    owners = {"/".join(each.path[:-1]) for model in (old, new) for each in model.scopes() if each.text == scope}
    yield from (each for each in changes if f"{each.scope}/".startswith(f"{scope}/") or each.path in owners)


def require_scope(scope: str, *models: Structure) -> None:
    """UsageError if no model has the body."""
    known = [each.text for model in models for each in model.scopes() if each.text]
    if scope not in known:
        raise UsageError(f"no model has a scope {scope!r}", hint=did_you_mean(scope, known))


def _counted(changes: Iterable[Change], ignored: set[str]) -> Iterator[Change]:
    """The changes without those that are ignored."""
    for change in changes:
        if change.kind != CHANGED:
            yield change
            continue
        details = tuple(each for each in change.details if each.aspect not in ignored)
        if details:
            yield replace(change, details=details)


# -- text


def _briefly(changes: Sequence[Change], style: Style) -> Iterator[str]:
    """The changes of a scope without those that follow from others; only the first few renamed nodes."""
    renamed = [change for change in changes if _is_renamed(change)]
    shown = [change for change in changes if not change.follows and not _is_renamed(change)]
    for change in shown[:SHOWN]:
        yield from _change(change, style, complete=False)
    if len(shown) > SHOWN:
        yield f"  ... and {_counts(shown[SHOWN:])} more"
    if renamed:
        sign, colour = _SIGNS[CHANGED]
        count = style.paint(f"{sign} {_nodes(len(renamed))} renamed", fg=colour)
        details = ((each, each.details[0]) for each in renamed)
        names = [  # of the node, else of its first tensor
            f"{detail.old} => {detail.new}" if each.old_node is None else f"{each.old_node} => {each.node}"
            for each, detail in details
        ]
        yield f"  {count}{_listed(':', names, False)}"
    shapes = sum(change.follows and change.kind == CHANGED for change in changes)
    constants = sum(change.follows and change.kind != CHANGED for change in changes)
    parts = [f"{_nodes(shapes)} with shapes that follow from these"] * bool(shapes)
    parts += [f"{constants:,} constant{'s' * (constants != 1)} for these or stored once more"] * bool(constants)
    if parts:
        yield f"  ({', '.join(parts)}: see --all)"


def _is_renamed(change: Change) -> bool:
    """Whether only names differ, those of the node or of its tensors."""
    return change.kind == CHANGED and bool(change.node) and all(each.aspect == NAMES for each in change.details)


def _nodes(count: int) -> str:
    return f"{count:,} node{'s' * (count != 1)}"


def _counts(changes: Sequence[Change]) -> str:
    parts = [(kind, sum(change.kind == kind for change in changes)) for kind in (CHANGED, ADDED, REMOVED)]
    return ", ".join(f"{count:,} {kind}" for kind, count in parts if count)


def _change(change: Change, style: Style, complete: bool) -> Iterator[str]:
    sign, colour = _SIGNS[change.kind]
    if not change.node:
        yield from (f"  {style.paint(sign, fg=colour)} {_cut(str(detail), complete)}" for detail in change.details)
        return
    name = change.node if change.old_node is None else f"{change.old_node} => {change.node}"
    text = f"{name} ({change.operator})"
    if change.inner:
        text += f", {_nodes(change.inner)} in its bodies"
    if change.kind != CHANGED and change.inputs:
        text += _listed(", reads", change.inputs, complete)
    text += _listed(", read by", change.readers, complete)
    parts = [each for each in change.details if each.what != "name" or change.old_node is None]
    details = [_cut(str(each), complete) for each in parts]
    if len(details) == 1 and len(details[0]) < 80:
        yield f"  {style.paint(f'{sign} {text}', fg=colour)}: {details[0]}"
        return
    yield f"  {style.paint(f'{sign} {text}', fg=colour)}"
    limit = len(details) if complete else SHOWN
    yield from (f"      {line}" for line in details[:limit])
    if len(details) > limit:
        yield f"      ... and {len(details) - limit} more"


def _listed(word: str, names: Sequence[str], complete: bool) -> str:
    if not names:
        return ""
    return f"{word} {first_few([printable(name) or 'none' for name in names], len(names) if complete else 3)}"


def _cut(text: str, complete: bool) -> str:
    text = printable(" ".join(text.split()))
    return text if complete or len(text) <= WIDTH else f"{text[: WIDTH - 4]} ..."
