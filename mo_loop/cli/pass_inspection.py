"""What the options of pass_options.py come to: a configuration and observers of one conversion, and what they found."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mo_loop.cli.output import table
from mo_loop.cli.pass_options import PassOptions
from mo_loop.errors import UsageError
from mo_loop.files import write_whole

if TYPE_CHECKING:
    from mo_loop.conversion import Conversion
    from mo_loop.dump import Dumper
    from transforms.config import PassConfig
    from transforms.manager import Phase, Step
    from transforms.profile import Profile
    from transforms.selection import Entry, Selection


class Inspection:
    """Makes `conversion` show what `options` say. Without options it costs nothing and imports nothing.

    Raises:
        UsageError: an option names no pass, or would have no effect.
    """

    def __init__(self, options: PassOptions, conversion: Conversion, files: Iterable[str] = ()) -> None:
        """A profile is not written over one of `files`."""
        self.options = options
        self.profile: Profile | None = None
        self._explained: dict[str, list[str]] = {}
        self._changed: dict[str, bool] = {}
        if options == PassOptions():
            return
        from transforms.profile import Profile

        self._config: PassConfig = conversion.manager.config
        selection = _selection(options, conversion)
        _warn(selection)
        self._explained = {name: selection.held(name) for name in options.explain_pass}
        if self._explained:
            self._config.explain(*(name for held in self._explained.values() for name in held))
            conversion.observers.append(self._watch)
        conversion.observers += _dumpers(options)
        if options.profile_json is not None and _is_among(options.profile_json, files):
            raise UsageError(f"--profile-json {options.profile_json} is a file of the conversion itself")
        if options.profile or options.profile_json is not None:
            self.profile = Profile()
            conversion.observers.append(self.profile)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """The conversion: what was asked for is printed behind it, also when an error ended it."""
        try:
            yield
        finally:
            self._show()

    def _show(self) -> None:
        for name, held in self._explained.items():
            found = [line for each in held for line in self._explanation(each)]
            click.echo("\n".join(found) if found else self._silence(name), err=True)
        if self.options.profile and self.profile is not None:
            from transforms.profile import NUMBERS

            click.echo(table(self.profile.lines(), NUMBERS, err=True), err=True)

    def save(self) -> None:
        """Write the profile to its file. FileError when that cannot be done."""
        if self.options.profile_json is not None and self.profile is not None:
            write_whole(Path(self.options.profile_json), json.dumps(self.profile.as_json(), indent=1) + "\n")

    def _watch(self, step: Step | Phase) -> None:
        from transforms.manager import Step

        if not isinstance(step, Step):
            return
        self._changed[step.name] = step.changed or self._changed.get(step.name, False)
        for name, count in step.matchers:
            self._changed[name] = count > 0 or self._changed.get(name, False)

    def _explanation(self, name: str) -> Iterator[str]:
        """What a pass said about its candidates; nothing if it said nothing."""
        found = [each for each in self._config.explanations if each.pass_name == name]
        if found:
            outcomes = Counter(each.outcome for each in found)
            yield f"{name}: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        for each in found:
            depth = f" ({each.depth} of the pattern matched before)" if each.outcome == "refused" and each.depth else ""
            yield f"  {each.node}: {each.outcome}" + (f": {each.reason}{depth}" if each.reason else "")

    def _silence(self, name: str) -> str:
        """Why a pass said nothing."""
        if name not in self._changed:
            return f"{name}: the conversion ended before it ran"
        if self._changed[name]:
            return f"{name}: changed the graph; it says nothing about single candidates"
        return f"{name}: no candidates recorded"


def _dumpers(options: PassOptions) -> Iterator[Dumper]:
    """What --dump and --visualize write."""
    if options.dump_format and options.dump is None:
        raise UsageError("--dump-format has no effect without --dump")
    if options.dump is None and options.visualize is None:
        return
    from mo_loop.dump import DEFAULT_FORMATS, Dumper

    if options.dump is not None:
        if options.visualize is not None and _is_among(options.dump, [options.visualize]):
            raise UsageError(
                "--dump and --visualize name one folder", why="a folder holds the files of one of them",
                hint="give --dump with --dump-format text,json,dot,svg",
            )  # fmt: skip
        yield Dumper(options.dump, options.dump_format or DEFAULT_FORMATS)
    if options.visualize is not None:
        shapes, types = options.visualize_shapes, options.visualize_types
        yield Dumper(options.visualize, ("dot", "svg"), only=options.visualize_after, shapes=shapes, types=types)


def listing(options: PassOptions, conversion: Conversion) -> str:
    """The pipeline in order: place, name, whether it runs, how it treats bodies, and what it does in a line."""
    rows: list[tuple[str, ...]] = []
    place = 0
    for entry in _selection(options, conversion).entries:
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


def _selection(options: PassOptions, conversion: Conversion) -> Selection:
    """What runs under these options; UsageError for names that no pass has and options that change nothing."""
    from transforms.selection import PARTS, Selection

    selection = Selection(conversion.manager, options.stop_after)
    selection.require(*options.explain_pass, *options.visualize_after)
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
    for flag, names in (("--explain-pass", options.explain_pass), ("--visualize-after", options.visualize_after)):
        for name in names:
            if not selection.runs(name):
                raise UsageError(f"{flag} {name} has no effect: {_why_not(selection.entries, name)}")
    for name in options.visualize_after:
        if name not in selection.steps:
            raise UsageError(f"--visualize-after {name} has no effect: it is no step of its own", hint=PARTS)
    if options.visualize is None:
        for key in ("visualize_after", "visualize_shapes", "visualize_types"):
            if getattr(options, key):
                raise UsageError(f"--{key.replace('_', '-')} has no effect without --visualize")
    return selection


def _why_not(entries: Iterable[Entry], name: str) -> str:
    is_off = all(not entry.enabled for entry in entries if entry.name == name)
    return "it is disabled" if is_off else "it comes behind the pass that the run stops after"


def _warn(selection: Selection) -> None:
    """Passes of the front chain make what the runtime needs; the last check sees only some of what they leave."""
    from transforms.config import name_of
    from transforms.pipelines import COMMON, FRONT

    front = {name_of(each) for each in FRONT if each not in COMMON}
    skipped = [name for name in selection.skipped if name in front]
    if skipped:
        shown = ", ".join(skipped[:5]) + (f" and {len(skipped) - 5} more" if len(skipped) > 5 else "")
        warnings.warn(f"the runtime may refuse or miscompute the result: {shown} did not run", stacklevel=2)


def _is_among(file: str, others: Iterable[str]) -> bool:
    return os.path.realpath(file) in {os.path.realpath(each) for each in others}
