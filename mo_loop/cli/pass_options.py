"""The options that select, explain, time and dump passes, shared by all commands that convert models.

    @click.command()
    @pass_options
    @click.pass_context
    def command(context: click.Context) -> None:
        options = context.ensure_object(PassOptions).with_variables(os.environ)

Environment variables set options that are not given (environment.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from mo_loop.cli.environment import VARIABLES, wanted

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class PassOptions:
    """The options below, by the names of their flags."""

    profile: bool = False
    profile_json: str | None = None
    dump: str | None = None
    dump_format: tuple[str, ...] = ()
    dump_after: tuple[str, ...] = ()
    dump_around: str | None = None
    dump_depth: int | None = None
    visualize: str | None = None
    visualize_after: tuple[str, ...] = ()
    visualize_shapes: bool = False
    visualize_types: bool = False
    explain_pass: tuple[str, ...] = ()
    disable_pass: tuple[str, ...] = ()
    enable_pass: tuple[str, ...] = ()
    stop_after: str | None = None
    check_passes: bool = False
    passes: bool = False

    def with_variables(self, environment: Mapping[str, str]) -> PassOptions:
        """These options and those that variables set, with a note on stderr for each; flags take precedence.

        UsageError if the value of a variable is not valid.
        """
        found: PassOptions = replace(self)
        for variable, option, value in wanted(environment):
            if getattr(found, option) or (variable.of_pictures and found.visualize is None):
                continue
            flag = f"--{option.replace('_', '-')}"
            setattr(found, option, _names(value, flag) if option == "visualize_after" else value)
            shown = flag if value is True else f"{flag} {value}"
            click.echo(f"note: {variable.name} sets {shown}", err=True)
        return found


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    assert parameter.name is not None
    setattr(context.ensure_object(PassOptions), parameter.name, value)


def _keep_names(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> None:
    _keep(context, parameter, _names(",".join(value), parameter.opts[0]))


def _keep_formats(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    _keep(context, parameter, () if value is None else tuple(name.strip() for name in value.split(",")))


def _keep_name(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    _keep(context, parameter, value and _present_name(value, parameter.opts[0]))


def _names(text: str, flag: str) -> tuple[str, ...]:
    """The names of passes in a list with commas, the value of `flag`."""
    names = (name.strip() for name in text.split(","))
    return tuple(dict.fromkeys(_present_name(name, flag) for name in names if name))


def _present_name(name: str, flag: str) -> str:
    """The present name of a pass, with a note on stderr for an old name."""
    from transforms.old_names import OLD_NAMES, renamed

    if name in OLD_NAMES:
        click.echo(f"note: {flag}: {renamed(name)}", err=True)
    return OLD_NAMES.get(name, name)


def _help(name: str, text: str) -> str:
    """`text`, and the variables that set the option `name`."""
    key = name.removeprefix("--").replace("-", "_")
    variables = [each.name for each in VARIABLES if key in (each.option, each.text)]
    return f"{text}  [env: {', '.join(variables)}]" if variables else text


def _flag(name: str, text: str) -> Callable[[F], F]:
    return click.option(name, is_flag=True, expose_value=False, callback=_keep, help=_help(name, text))


def _passes(name: str, text: str) -> Callable[[F], F]:
    return click.option(
        name, metavar="NAME", multiple=True, expose_value=False, callback=_keep_names, help=_help(name, text)
    )


def _text(name: str, metavar: str, text: str) -> Callable[[F], F]:
    return click.option(name, metavar=metavar, expose_value=False, callback=_keep, help=_help(name, text))


_CHOICE: tuple[Callable[[Any], Any], ...] = (
    _passes("--disable-pass", "Do not run a pass. Can be repeated; commas separate names."),
    _passes("--enable-pass", "Run a pass that is off by default. Can be repeated; commas separate names."),
)
_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    _flag("--passes", "List the passes in the order in which they run, and exit. Needs no MODEL."),
    *_CHOICE,
    click.option(
        "--stop-after", metavar="NAME", expose_value=False, callback=_keep_name,
        help=_help("--stop-after", "Run no pass after this one and write the graph as it is then. For debugging."),
    ),
    _passes("--explain-pass", "Print what a pass did with each candidate, or why it did nothing. Can be repeated."),
    _flag("--profile", "Show the time, matches and nodes of each pass as a table on stderr."),
    _text("--profile-json", "FILE", "Write the table of --profile as JSON."),
    click.option(
        "--dump", type=click.Path(file_okay=False), metavar="DIR", expose_value=False, callback=_keep,
        help="Write the graph as loaded, what each pass changed, the graph as written, and index.html, which shows all "
        "of it. DIR holds one run: the files of an earlier dump are removed.",
    ),
    click.option(
        "--dump-format", metavar="LIST", expose_value=False, callback=_keep_formats,
        help="The formats of --dump, separated by commas: text, json, dot, svg (needs Graphviz).  "
        "[default: text,json,dot]",
    ),
    _passes("--dump-after", "Write the whole graph after these passes too. Can be repeated; commas separate names."),
    _text("--dump-around", "NODE", "Show in --dump only what is near this node: its name, ONNX node, tensor or path."),
    click.option(
        "--dump-depth", type=click.IntRange(0), metavar="N", expose_value=False, callback=_keep,
        help="The number of edges between NODE and what --dump-around shows.  [default: 3]",
    ),
    _text("--visualize", "DIR", "Draw the graph after each pass that changed it, as .dot and .svg (needs Graphviz)."),
    _passes("--visualize-after", "Draw the graph only after these passes. Can be repeated; commas separate names."),
    _flag("--visualize-shapes", "Show shapes in the pictures of --visualize."),
    _flag("--visualize-types", "Show element types in the pictures of --visualize."),
    _flag("--check-passes", "Check the invariants of the graph after each pass that changed it; slow."),
)  # fmt: skip


def pass_options(command: F) -> F:
    """Add the options to `command`; their values are in the PassOptions of its context."""
    return _given(command, _OPTIONS)


def pass_choice(command: F) -> F:
    """Add only the options that select passes to `command`."""
    return _given(command, _CHOICE)


def _given(command: F, options: tuple[Callable[[Any], Any], ...]) -> F:
    for option in reversed(options):
        command = option(command)
    return command
