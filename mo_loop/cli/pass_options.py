"""The options that select, explain, time and dump passes, shared by all commands that convert models; the list of
--passes, and the observers for the options.

    @click.command()
    @pass_options
    @click.pass_context
    def command(context: click.Context) -> None:
        options = made(context, PassOptions).with_variables(os.environ)

Environment variables set options that are not given: those of OpenVINO and those of mo_loop. The library ignores them.
A value is on (1, true, on, yes), off (0, false, off, no, empty), or other text for some variables. An option on the
command line takes precedence.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mo_loop.batching.storage.locations import place_of
from mo_loop.cli.flag_options import flags
from mo_loop.cli.output import table, tell
from mo_loop.errors import UsageError
from mo_loop.printable import first_few
from mo_loop.support.files import is_among
from mo_loop.support.flags import COMMON, PASSES, flag, flags_of

if TYPE_CHECKING:
    from mo_loop.cli.conversion_summary import Explanations
    from mo_loop.conversion import Conversion
    from mo_loop.look.dump import Dumper
    from mo_loop.transforms.profile import Profile
    from mo_loop.transforms.selection import ListedPass, Selection


ON = ("1", "true", "on", "yes")
OFF = ("", "0", "false", "off", "no")


@dataclass(frozen=True)
class EnvironmentVariable:
    """A variable and the option that it sets: `option=value` if the variable is on.

    `text` is the option that gets a value which is neither on nor off; with `also`, `option` is then set as well.
    A variable `of_pictures` is ignored if no pictures are made.
    """

    name: str
    option: str
    value: Any = True
    text: str = ""
    also: bool = False
    of_pictures: bool = False


VARIABLES = (
    EnvironmentVariable("OV_ENABLE_PROFILE_PASS", "profile", text="profile_json"),
    EnvironmentVariable("NGRAPH_PROFILE_PASS_ENABLE", "profile"),
    EnvironmentVariable("OV_ENABLE_VISUALIZE_TRACING", "visualize", ".", text="visualize_after", also=True),
    EnvironmentVariable("NGRAPH_ENABLE_VISUALIZE_TRACING", "visualize", ".", text="visualize_after", also=True),
    EnvironmentVariable("OV_VISUALIZE_TREE_OUTPUT_SHAPES", "visualize_shapes", of_pictures=True),
    EnvironmentVariable("NGRAPH_VISUALIZE_TREE_OUTPUT_SHAPES", "visualize_shapes", of_pictures=True),
    EnvironmentVariable("OV_VISUALIZE_TREE_OUTPUT_TYPES", "visualize_types", of_pictures=True),
    EnvironmentVariable("NGRAPH_VISUALIZE_TREE_OUTPUT_TYPES", "visualize_types", of_pictures=True),
    EnvironmentVariable("MO_LOOP_CHECK_PASSES", "check_passes"),
)


def _wanted(environment: Mapping[str, str]) -> Iterator[tuple[EnvironmentVariable, str, Any]]:
    """The options that the variables set: (variable, option, value).

    Raises:
        UsageError: a value is neither on nor off, and the variable accepts no other text.
    """
    for variable in VARIABLES:
        text = environment.get(variable.name, "").strip()
        if text.lower() in OFF:
            continue
        if text.lower() in ON or not variable.text:
            if text.lower() not in ON:
                raise UsageError(f"{variable.name}={text} is neither on nor off", hint="set it to 1 or 0, or unset it")
            yield variable, variable.option, variable.value
            continue
        yield variable, variable.text, text
        if variable.also:
            yield variable, variable.option, variable.value


F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class PassOptions:
    """The values of the options."""

    passes: bool = flag(False, "List the passes in the order in which they run, and exit. It needs no MODEL.", PASSES)
    disable_pass: tuple[str, ...] = flag(
        (), "Do not run a pass. Can be repeated, or names separated by commas.", PASSES, metavar="NAME"
    )
    enable_pass: tuple[str, ...] = flag(
        (), "Run a pass that is off by default. Can be repeated, or names separated by commas.", PASSES, metavar="NAME"
    )
    stop_after: str | None = flag(
        None, "Run no pass after this one, and write the graph as it is then. This is for debugging.", PASSES,
        metavar="NAME",
    )
    explain_pass: tuple[str, ...] = flag(
        (), "Print the decision of a pass about each candidate, with the reason. Can be repeated.", PASSES,
        metavar="NAME",
    )
    profile: bool = flag(False, "Show the time, matches and nodes of each pass as a table on stderr.", PASSES)
    profile_json: str | None = flag(None, "Write the table of --profile as JSON.", PASSES, kind="path", metavar="FILE")
    dump: str | None = flag(
        None, "Write the graph as loaded, the changes of each pass, the graph as written, and index.html, which shows "
        "all of them. DIR has one run: the files of an earlier dump are removed.", PASSES, metavar="DIR",
        kind="folder", place=COMMON,
    )
    dump_format: tuple[str, ...] = flag(
        (), "The formats of --dump, separated by commas: text, json, dot, svg (needs Graphviz).  "
        "[default: text,json,dot]", PASSES, needs="dump", metavar="LIST",
        multiple=False,
    )
    dump_after: tuple[str, ...] = flag(
        (), "Write the whole graph after these passes too. Can be repeated, or names separated by commas.", PASSES,
        needs="dump", metavar="NAME",
    )
    dump_around: str | None = flag(
        None, "Show in --dump only the surroundings of this node: its name, ONNX node, tensor or path.", PASSES,
        needs="dump", metavar="NODE",
    )
    dump_depth: int | None = flag(
        None, "The largest number of edges between NODE and a node that --dump-around shows.  [default: 3]", PASSES,
        needs="dump_around", metavar="N", least=0,
    )
    visualize: str | None = flag(
        None, "Draw the graph after each pass that changed it, as .dot and .svg (needs Graphviz).", PASSES,
        metavar="DIR",
    )
    visualize_after: tuple[str, ...] = flag(
        (), "Draw the graph only after these passes. Can be repeated, or names separated by commas.", PASSES,
        needs="visualize", metavar="NAME",
    )
    visualize_shapes: bool = flag(False, "Show shapes in the pictures of --visualize.", PASSES, needs="visualize")
    visualize_types: bool = flag(False, "Show element types in the pictures of --visualize.", PASSES, needs="visualize")
    check_passes: bool = flag(
        False, "Check the invariants of the graph after each pass that changed it. This is slow.", PASSES
    )

    def with_variables(self, environment: Mapping[str, str]) -> PassOptions:
        """These options and those that variables set, with a note on stderr for each; flags take precedence.

        UsageError if the value of a variable is not valid.
        """
        found: PassOptions = replace(self)
        for variable, option, value in _wanted(environment):
            if getattr(found, option) or (variable.of_pictures and found.visualize is None):
                continue
            flag = f"--{option.replace('_', '-')}"
            setattr(found, option, _names(value, flag) if option == "visualize_after" else value)
            shown = flag if value is True else f"{flag} {value}"
            click.echo(f"note: {variable.name} sets {shown}", err=True)
        return found


def _names(text: str, flag: str) -> tuple[str, ...]:
    """The names of passes in a list with commas, the value of `flag`."""
    names = (name.strip() for name in text.split(","))
    return tuple(dict.fromkeys(_present_name(name, flag) for name in names if name))


def _present_name(name: str, flag: str) -> str:
    """The present name of a pass, with a note on stderr for an old name."""
    from mo_loop.transforms.config import OLD_NAMES, renamed

    if name in OLD_NAMES:
        click.echo(f"note: {flag}: {renamed(name)}", err=True)
    return OLD_NAMES.get(name, name)


def _read(parameter: click.Parameter, value: Any) -> Any:
    """The value of an option, with the present names of passes."""
    if parameter.name == "dump_format":
        return () if value is None else tuple(name.strip() for name in value.split(","))
    if parameter.metavar != "NAME":
        return value
    if isinstance(value, tuple):
        return _names(",".join(value), parameter.opts[0])
    return value and _present_name(value, parameter.opts[0])


def _texts() -> dict[str, str]:
    """The texts of --help, with the variables that set the options."""
    found = {}
    for name, each in flags_of(PassOptions).items():
        variables = [variable.name for variable in VARIABLES if name in (variable.option, variable.text)]
        found[name] = f"{each.help}  [env: {', '.join(variables)}]" if variables else each.help
    return found


def pass_options(command: F) -> F:
    """Add the options to `command`; `made(context, PassOptions)` has their values."""
    return flags(PassOptions, read=_read, texts=_texts())(command)


def pass_choice(command: F) -> F:
    """Add only the options that select passes to `command`."""
    return flags(PassOptions, "disable_pass", "enable_pass", read=_read)(command)


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
    for option, names in {"--explain-pass": options.explain_pass, **steps}.items():
        for name in names:
            if not selection.runs(name):
                raise UsageError(f"{option} {name} has no effect: {_why_not(selection.entries, name)}")
            if option in steps and name not in selection.steps:
                raise UsageError(f"{option} {name} has no effect: it is not a step", hint=PARTS)
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
        shown = first_few(skipped, 5)
        warnings.warn(f"the runtime may refuse or miscompute the result: {shown} did not run", stacklevel=2)


class PassObservers:
    """Adds the observers for `options` to `conversion`. Without options it costs nothing and imports nothing.

    Raises:
        UsageError: an option names an unknown pass, or has no effect.
    """

    def __init__(self, options: PassOptions, conversion: Conversion, files: Iterable[str] = ()) -> None:
        """UsageError if the profile would overwrite one of `files`."""
        self._options = options
        self._profile: Profile | None = None
        self._explanations: Explanations | None = None
        if options == PassOptions():
            return
        selection = selection_of(options, conversion)
        warn_of_skipped(selection)
        if options.profile_json is not None and is_among(options.profile_json, files):
            raise UsageError(f"--profile-json {options.profile_json} is a file of the conversion itself")
        if options.explain_pass:
            from mo_loop.cli.conversion_summary import Explanations

            names = {name: selection.held(name) for name in options.explain_pass}
            self._explanations = Explanations(conversion.manager.config, names)
            conversion.observers.append(self._explanations)
        conversion.observers += _dumpers(options)
        if options.profile or options.profile_json is not None:
            from mo_loop.transforms.profile import Profile

            self._profile = Profile()
            conversion.observers.append(self._profile)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """A context manager around the conversion: prints the output of the observers, also after an error."""
        try:
            yield
        finally:
            if self._explanations is not None:
                tell("\n".join(self._explanations.lines()))
            if self._options.profile and self._profile is not None:
                from mo_loop.transforms.profile import NUMBERS

                tell(table(self._profile.lines(), NUMBERS, err=True))

    def save(self) -> None:
        """Write the profile to its file. FileError if that fails."""
        if self._options.profile_json is not None and self._profile is not None:
            from mo_loop.batching.batch_options import write_content

            write_content(place_of(self._options.profile_json), json.dumps(self._profile.as_json(), indent=1) + "\n")


def _dumpers(options: PassOptions) -> Iterator[Dumper]:
    """The observers of --dump and --visualize."""
    if options.dump is None and options.visualize is None:
        return
    from mo_loop.look.dump import DEFAULT_FORMATS, DEPTH, Dumper

    if options.dump is not None:
        if options.visualize is not None and is_among(options.dump, [options.visualize]):
            raise UsageError(
                "--dump and --visualize name the same folder", why="a folder holds the files of one of them",
                hint="give --dump with --dump-format text,json,dot,svg",
            )
        yield Dumper(
            options.dump, options.dump_format or DEFAULT_FORMATS, after=options.dump_after, around=options.dump_around,
            depth=DEPTH if options.dump_depth is None else options.dump_depth, saved=True,
        )
    if options.visualize is not None:
        shapes, types = options.visualize_shapes, options.visualize_types
        yield Dumper(
            options.visualize, ("dot", "svg"), whole=True, only=options.visualize_after, shapes=shapes, types=types,
            saved=True,
        )
