"""The list of --passes: which passes of a conversion run with its options. Refuses options without effect."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mo_loop.cli.output import table
from mo_loop.cli.pass_options import PassOptions
from mo_loop.errors import UsageError
from mo_loop.support.flags import flags_of

if TYPE_CHECKING:
    from mo_loop.conversion import Conversion
    from mo_loop.transforms.selection import ListedPass, Selection


def listing(options: PassOptions, conversion: Conversion) -> str:
    """The pipeline in order: number, name, whether it runs, how it treats bodies, and its first line of description."""
    rows: list[tuple[str, ...]] = []
    place = 0
    for entry in selection_of(options, conversion).entries:
        place += not entry.depth
        rows.append(
            (
                "" if entry.depth else str(place),
                "  " * entry.depth + entry.name,
                "on" if entry.runs else "off" if not entry.enabled else "not reached",
                entry.each.bodies,
                (inspect.getdoc(type(entry.each)) or "").partition("\n")[0],
            )
        )
    return table([("", "pass", "runs", "bodies", "what it does"), *rows], right=(0,))


def selection_of(options: PassOptions, conversion: Conversion) -> Selection:
    """The passes that run with these options; UsageError for unknown names and options without effect."""
    from mo_loop.transforms.selection import PARTS, Selection

    selection = Selection(conversion.manager, options.stop_after)
    selection.require(*options.explain_pass, *options.visualize_after, *options.dump_after)
    by_default = {entry.name for entry in selection.entries if entry.by_default}
    for name in options.disable_pass:
        if name in options.enable_pass:
            raise UsageError(f"{name} is both enabled and disabled")
        if name not in by_default:
            raise UsageError(f"--disable-pass {name} has no effect: it is off by default")
    for name in options.enable_pass:
        if name in by_default or not selection.runs(name):
            why = "it runs by default" if name in by_default else _why_not(selection.entries, name)
            raise UsageError(f"--enable-pass {name} has no effect: {why}")
    steps = {"--visualize-after": options.visualize_after, "--dump-after": options.dump_after}
    for flag, names in {"--explain-pass": options.explain_pass, **steps}.items():
        for name in names:
            if not selection.runs(name):
                raise UsageError(f"{flag} {name} has no effect: {_why_not(selection.entries, name)}")
            if flag in steps and name not in selection.steps:
                raise UsageError(f"{flag} {name} has no effect: it is not a step", hint=PARTS)
    for key, made in flags_of(PassOptions).items():
        if made.needs and getattr(options, key) != made.default and getattr(options, made.needs) is None:
            one, other = (f"--{each.replace('_', '-')}" for each in (key, made.needs))
            raise UsageError(f"{one} has no effect without {other}")
    return selection


def _why_not(entries: Iterable[ListedPass], name: str) -> str:
    is_off = all(not entry.enabled for entry in entries if entry.name == name)
    return "it is disabled" if is_off else "it comes after the pass of --stop-after"


def warn_of_skipped(selection: Selection) -> None:
    """Warn of front passes that do not run. The runtime needs them; the last check finds only some of the faults."""
    from mo_loop.transforms.config import name_of
    from mo_loop.transforms.pipelines import COMMON, FRONT

    front = {name_of(each) for each in FRONT if each not in COMMON}
    skipped = [name for name in selection.skipped if name in front]
    if skipped:
        shown = ", ".join(skipped[:5]) + (f" and {len(skipped) - 5} more" if len(skipped) > 5 else "")
        warnings.warn(f"the runtime may refuse or miscompute the result: {shown} did not run", stacklevel=2)
