"""The options that select, explain, time and dump passes, shared by all commands that convert models.

    @click.command()
    @pass_options
    @click.pass_context
    def command(context: click.Context) -> None:
        options = made(context, PassOptions).with_variables(os.environ)

Environment variables set options that are not given (environment.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from mo_loop.cli.environment import VARIABLES, wanted
from mo_loop.cli.flag_options import flags
from mo_loop.support.flags import PASSES, flag, flags_of

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class PassOptions:
    """The values of the options."""

    # fmt: off
    passes: bool = flag(False, "List the passes in the order in which they run, and exit. Needs no MODEL.", PASSES)
    disable_pass: tuple[str, ...] = flag(
        (), "Do not run a pass. Can be repeated; commas separate names.", PASSES, metavar="NAME"
    )
    enable_pass: tuple[str, ...] = flag(
        (), "Run a pass that is off by default. Can be repeated; commas separate names.", PASSES, metavar="NAME"
    )
    stop_after: str | None = flag(
        None, "Run no pass after this one, and write the graph. For debugging.", PASSES, metavar="NAME"
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
        kind="folder",
    )
    dump_format: tuple[str, ...] = flag(
        (), "The formats of --dump, separated by commas: text, json, dot, svg (needs Graphviz).  "
        "[default: text,json,dot]", PASSES, needs="dump", metavar="LIST",
        multiple=False,
    )
    dump_after: tuple[str, ...] = flag(
        (), "Write the whole graph after these passes too. Can be repeated; commas separate names.", PASSES,
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
        (), "Draw the graph only after these passes. Can be repeated; commas separate names.", PASSES,
        needs="visualize", metavar="NAME",
    )
    visualize_shapes: bool = flag(False, "Show shapes in the pictures of --visualize.", PASSES, needs="visualize")
    visualize_types: bool = flag(False, "Show element types in the pictures of --visualize.", PASSES, needs="visualize")
    check_passes: bool = flag(
        False, "Check the invariants of the graph after each pass that changed it; slow.", PASSES
    )
    # fmt: on

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
