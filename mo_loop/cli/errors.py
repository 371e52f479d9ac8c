"""Errors on the command line: one clear message on stderr and the documented exit code; never a traceback unasked."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import click

from mo_loop.errors import MoLoopError


@contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Turn errors inside into messages and exit codes; with `debug` the traceback precedes the message."""
    try:
        yield
    except MoLoopError as error:
        if debug:
            traceback.print_exc()
        click.echo(f"error: {error}", err=True)
        if error.exit_code == 4:
            click.echo("This is a bug of mo-loop. Please report it with the output of --debug.", err=True)
        sys.exit(error.exit_code)
    except (click.ClickException, click.exceptions.Exit, KeyboardInterrupt):
        raise
    except Exception as error:
        if debug:
            traceback.print_exc()
        click.echo(f"error: ML499: {type(error).__name__}: {error}", err=True)
        click.echo("This is a bug of mo-loop. Please report it with the output of --debug.", err=True)
        sys.exit(4)
