"""The command line. Each command is a separate file, which is imported when the command is called; `completion` and
`help` are here."""

import os
from importlib import import_module
from typing import Any, NoReturn

import click

from mo_loop.support.process_memory import paused_collector
from mo_loop.version import __version__

COMMANDS = {
    "convert": "Convert one ONNX model to OpenVINO IR.",
    "batch": "Convert many ONNX models.",
    "verify": "Compare the IR of a model with ONNX Runtime.",
    "check": "List the errors, warnings and notes of a conversion.",
    "reduce": "Make a model as small as possible while it still shows a condition.",
    "inspect": "Show the contents of an ONNX model or an IR.",
    "diff": "Compare two models node by node.",
    "view": "Write a page that shows a model, or two side by side.",
    "ops": "Show how ONNX operators are converted.",
    "completion": "Print a completion script for a shell.",
    "help": "Show the help of a command, or this text.",
}
"""Command -> its line in --help."""

SHELLS = ("bash", "zsh", "fish")


class _Lazy(click.Group):
    """A group that imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        own = super().get_command(ctx, name)
        if own is not None or name not in COMMANDS:
            return own
        # No command multiplies large matrices, and the threads of numpy take as much time to start as numpy itself.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        with paused_collector():
            command: click.Command = import_module(f"mo_loop.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in COMMANDS or args[0].startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        raise _not_a_command(args[0], "neither a command nor a file", ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_model = bool(args) and (
            args[0].endswith(".onnx") or "/" in args[0] or os.sep in args[0] or os.path.isfile(args[0])
        )
        if args and args[0] not in COMMANDS and (is_model or _is_option_of_convert(args[0])):
            args = ["convert", *args]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            _end(ctx, error)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            _end(ctx, error)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        with formatter.section("Exit codes"):
            formatter.write_dl(list(EXIT_CODES.items()))


def _is_option_of_convert(argument: str) -> bool:
    """Whether mo or ovc would take the first argument, as in `mo --input_model model.onnx`."""
    of_all = {"--help", *(name for each in main.params for name in each.opts)}
    return argument.startswith("--") and argument not in {"--", *of_all}


def _not_a_command(name: str, reason: str, ctx: click.Context) -> click.UsageError:
    """An error with the most similar command, or with the option of convert that has the name."""
    from difflib import get_close_matches

    error = click.UsageError(f"{name!r} is {reason}", ctx)
    convert = main.get_command(ctx, "convert")
    options = [] if convert is None else [each for option in convert.params for each in option.opts]
    with_option = [f"mo-loop convert MODEL --{name}"] if f"--{name}" in options else []
    error.possibilities = get_close_matches(name, COMMANDS, 1, 0.5) or with_option  # type: ignore[attr-defined]
    return error


def _end(ctx: click.Context, error: click.UsageError) -> NoReturn:
    """Print a usage error in the form of all other errors. Help without arguments is not an error."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        raise error
    from mo_loop.cli.output import end_with_usage

    end_with_usage(ctx, error)


def show_version(context: click.Context, _: click.Parameter, is_given: bool) -> None:
    """Print the version, with the commit, and end."""
    if is_given and not context.resilient_parsing:
        from mo_loop.revision import commit

        click.echo(f"mo-loop, version {__version__} (commit {commit()})")
        context.exit()


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option(
    "-V", "--version", is_flag=True, expose_value=False, is_eager=True, callback=show_version,
    help="Show the version and the commit, and exit.",
)
def main() -> None:
    """Convert ONNX models, with their control flow, to OpenVINO IR.

    mo-loop MODEL [OPTIONS] is short for mo-loop convert MODEL [OPTIONS].

    mo-loop COMMAND --help shows the options of a command, --help-all all of them.
    """


EXIT_CODES = {
    "0": "success",
    "1": "a check or a comparison found a difference, or some models of a batch failed",
    "2": "bad input or wrong usage",
    "3": "the model needs something that the IR cannot express",
    "4": "a bug in mo-loop",
    "130, 143": "ended by Ctrl-C, by SIGTERM",
}
"""The exit codes of all commands."""


@main.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that makes SHELL complete the commands, options and files of mo-loop.

    \b
    mo-loop completion bash >> ~/.bashrc
    mo-loop completion zsh  >> ~/.zshrc
    mo-loop completion fish > ~/.config/fish/completions/mo-loop.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(context.find_root().command, {}, "mo-loop", "_MO_LOOP_COMPLETE").source())


def _meaning(code: str) -> str:
    """The text of `check --codes` for a code; empty if there is none."""
    from mo_loop.look.diagnostics.codes import CODES

    if code not in CODES:
        return ""
    found = CODES[code]
    parts = (f"{code}, {found.level}: {found.title}", found.why and f"  why:   {found.why}", f"  help:  {found.help}")
    return "\n".join(filter(None, parts))


@main.command("help")
@click.argument("name", required=False, metavar="[COMMAND|CODE]")
@click.pass_context
def help_(context: click.Context, name: str | None) -> None:
    """Show the help of COMMAND, the meaning of CODE (ML302), or the list of commands and exit codes."""
    top = context.find_root()
    if name is None:
        click.echo(top.get_help())
        return
    found = main.get_command(top, name)
    if found is None and (text := _meaning(name.upper())):
        click.echo(text)
        return
    if found is None:
        raise _not_a_command(name, "neither a command nor a code", top)
    click.echo(found.get_help(click.Context(found, info_name=name, parent=top)))
