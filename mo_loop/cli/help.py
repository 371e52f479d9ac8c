"""mo-loop help."""

from __future__ import annotations

import click

from mo_loop.cli import not_a_command


@click.command()
@click.argument("name", required=False, metavar="[COMMAND]")
@click.pass_context
def command(context: click.Context, name: str | None) -> None:
    """Show the help of COMMAND, or the list of commands and exit codes."""
    top = context.find_root()
    if name is None:
        click.echo(top.get_help())
        return
    assert isinstance(top.command, click.Group)
    found = top.command.get_command(top, name)
    if found is None:
        raise not_a_command(name, "not a command", top)
    click.echo(found.get_help(click.Context(found, info_name=name, parent=top)))
