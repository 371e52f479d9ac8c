"""A difference as text: one line for each node, under the path of its scope."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from mo_loop.look.differences.change import ADDED, CHANGED, NAMES, REMOVED, Change, ChangeSide
from mo_loop.support.printable import printable

SHOWN = 20
"""The number of nodes of a scope, and of details of a node, that are listed without `complete`."""

WIDTH = 160
"""The number of characters of a detail that are shown without `complete`."""

Paint = Callable[[str, str], str]
"""Text and a colour -> the text in that colour."""

_SIGNS = {ADDED: ("+", "green"), REMOVED: ("-", "red"), CHANGED: ("~", "yellow")}


def plain(text: str, colour: str) -> str:
    """A line of printable characters without colour."""
    return printable(text)


def lines(
    old: ChangeSide, new: ChangeSide, paired: int, changes: Sequence[Change], paint: Paint = plain, *,
    complete: bool = False,
) -> Iterator[str]:
    """The lines of the text. Shapes that follow from others, and constants that belong to added and removed nodes, are
    counted only, unless it is to be `complete`."""
    kind = {"ONNX": "ONNX models", "IR": "IR", "dump": "dumps"}[old.kind]
    yield f"{paint(f'{old.source} -> {new.source}', 'bold')}: {kind} with {_nodes(old.nodes)} and {_nodes(new.nodes)}"
    if not changes:
        yield paint("no difference", "green")
        return
    scopes = len({change.scope for change in changes})
    yield f"{_counts(changes)} in {scopes} scope{'s' * (scopes != 1)}; {paired:,} nodes correspond"
    for scope, group in groupby(changes, key=lambda change: change.scope):
        yield paint(scope or "(main)", "bold")
        if complete:
            for change in group:
                yield from _change(change, paint, complete)
        else:
            yield from _briefly(list(group), paint)


def _briefly(changes: Sequence[Change], paint: Paint) -> Iterator[str]:
    """The changes of a scope without those that follow from others; only the first few renamed nodes."""
    renamed = [change for change in changes if _is_renamed(change)]
    shown = [change for change in changes if not change.follows and not _is_renamed(change)]
    for change in shown[:SHOWN]:
        yield from _change(change, paint, complete=False)
    if len(shown) > SHOWN:
        yield f"  ... and {_counts(shown[SHOWN:])} more"
    if renamed:
        sign, colour = _SIGNS[CHANGED]
        yield f"  {paint(f'{sign} {_nodes(len(renamed))} renamed', colour)}{_listed(':', _renamings(renamed), False)}"
    shapes = sum(change.follows and change.kind == CHANGED for change in changes)
    constants = sum(change.follows and change.kind != CHANGED for change in changes)
    parts = [f"{_nodes(shapes)} with shapes that follow from these"] * bool(shapes)
    parts += [f"{constants:,} constant{'s' * (constants != 1)} for these or stored once more"] * bool(constants)
    if parts:
        yield f"  ({', '.join(parts)}: see --all)"


def _is_renamed(change: Change) -> bool:
    """Whether only names differ, those of the node or of its tensors."""
    return change.kind == CHANGED and bool(change.node) and all(each.aspect == NAMES for each in change.details)


def _renamings(changes: Sequence[Change]) -> list[str]:
    found = []
    for change in changes:
        before, after = change.old_node, change.node
        if before is None:
            before, after = change.details[0].old, change.details[0].new
        found.append(f"{before} => {after}")
    return found


def _nodes(count: int) -> str:
    return f"{count:,} node{'s' * (count != 1)}"


def _counts(changes: Sequence[Change]) -> str:
    parts = [(kind, sum(change.kind == kind for change in changes)) for kind in (CHANGED, ADDED, REMOVED)]
    return ", ".join(f"{count:,} {kind}" for kind, count in parts if count)


def _change(change: Change, paint: Paint, complete: bool) -> Iterator[str]:
    sign, colour = _SIGNS[change.kind]
    if not change.node:
        for detail in change.details:
            yield f"  {paint(sign, colour)} {_cut(str(detail), complete)}"
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
        yield f"  {paint(f'{sign} {text}', colour)}: {details[0]}"
        return
    yield f"  {paint(f'{sign} {text}', colour)}"
    limit = len(details) if complete else SHOWN
    for line in details[:limit]:
        yield f"      {line}"
    if len(details) > limit:
        yield f"      ... and {len(details) - limit} more"


def _listed(word: str, names: Sequence[str], complete: bool) -> str:
    if not names:
        return ""
    limit = len(names) if complete else 3
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"{word} {', '.join(printable(name) or 'none' for name in names[:limit])}{more}"


def _cut(text: str, complete: bool) -> str:
    text = printable(" ".join(text.split()))
    return text if complete or len(text) <= WIDTH else f"{text[: WIDTH - 4]} ..."
