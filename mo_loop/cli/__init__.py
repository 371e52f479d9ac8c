"""The command line. Each command is a file of its own, imported only when it is called."""

from __future__ import annotations

from importlib import import_module

import click

from mo_loop import __version__

COMMANDS = {"convert": "Convert one ONNX model to OpenVINO IR."}
"""Command -> its line in --help."""


class _Lazy(click.Group):
    """A group that knows its commands by name alone."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"mo_loop.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mo-loop")
def main() -> None:
    """ONNX to OpenVINO IR, at home with loops.

    \b
    Exit codes: 0 ok, 1 a check or comparison found a difference or a batch had failures,
    2 bad input or usage, 3 unsupported, 4 a bug of mo-loop.
    """
