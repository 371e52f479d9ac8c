"""mo-loop completion."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print a script that makes SHELL complete the commands, options and files of mo-loop.

    \b
    mo-loop completion bash >> ~/.bashrc
    mo-loop completion zsh  >> ~/.zshrc
    mo-loop completion fish > ~/.config/fish/completions/mo-loop.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    group = context.find_root().command
    click.echo(made(group, {}, "mo-loop", "_MO_LOOP_COMPLETE").source())
