"""diff: the difference of two models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, NamedTuple

from mo_loop.errors import UsageError
from mo_loop.look.differences.change import ASPECTS, CHANGED, Change, ChangeSide
from mo_loop.look.differences.changes import changes_of
from mo_loop.look.differences.difference import Difference
from mo_loop.look.differences.pairing import pair
from mo_loop.look.differences.pairs import Pairs
from mo_loop.look.records.opening import opened, require_same_kind
from mo_loop.look.records.structure import Structure
from mo_loop.support.garbage_collection import paused_collector


def diff(
    old: Any, new: Any, *, ignore: str | Iterable[str] = (), scope: str | None = None, tolerance: float = 0.0,
    allow_external: Sequence[str] = (),
) -> Difference:  # fmt: skip
    """Compare two models of one kind, node by node, with the bodies of their control flow.

    Args:
        old: A path (.onnx, .xml, or a .json or .txt file of `--dump`), an `onnx.ModelProto`, a `Model` or a `Graph`.
        new: Another model of the same kind.
        ignore: The aspects to ignore: "names", "shapes", "weights", "metadata".
        scope: The path of a body; only this body and those in it count.
        tolerance: Weights may differ by this part of the largest magnitude in the constant. Above 0 it does not matter
            whether an IR stores them as f16.
        allow_external: More folders whose files may hold external data.

    Returns:
        The changes. `equal` is true if there are none.

    Raises:
        InputError: a file cannot be read, or the models are of different kinds.
    """
    with paused_collector():
        found = compare(
            *(opened(each, allowed=allow_external, widened=tolerance > 0) for each in (old, new)),
            ignore=ignore, scope=scope, tolerance=tolerance,
        )  # fmt: skip
    return Difference(_side(found.old), _side(found.new), len(found.pairs.items), found.changes)


class ModelComparison(NamedTuple):
    """Two models of one kind, their pairs and the changes that count."""

    old: Structure
    new: Structure
    pairs: Pairs
    changes: tuple[Change, ...]


def compare(
    old: Structure, new: Structure, *, ignore: str | Iterable[str] = (), scope: str | None = None,
    tolerance: float = 0.0,
) -> ModelComparison:  # fmt: skip
    """Compare two structures; arguments and errors are those of `diff`."""
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    for each in sorted(ignored - set(ASPECTS)):
        raise UsageError(f"a comparison cannot ignore {each!r}", hint=f"it can ignore {', '.join(ASPECTS)}")
    if not 0 <= tolerance < float("inf"):
        raise UsageError(f"the tolerance {tolerance} is not a number of 0 or more")
    require_same_kind(old, new)
    pairs = pair(old, new)
    found = changes_of(old, new, pairs, tolerance)
    return ModelComparison(old, new, pairs, tuple(_counted(_within(found, scope, old, new), ignored)))


def _side(model: Structure) -> ChangeSide:
    return ChangeSide(model.source, model.kind, model.count, tuple(scope.text for scope in model.scopes()))


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
        close = get_close_matches(scope, known, 1, 0.5)
        raise UsageError(f"no model has a scope {scope!r}", hint=f"did you mean {close[0]!r}?" if close else "")


def _counted(changes: Iterable[Change], ignored: set[str]) -> Iterator[Change]:
    """The changes without those that are ignored."""
    for change in changes:
        if change.kind != CHANGED:
            yield change
            continue
        details = tuple(each for each in change.details if each.aspect not in ignored)
        if details:
            yield replace(change, details=details)
