"""Errors on the command line: one clear message on stderr and the documented exit code; never a traceback unasked."""

from __future__ import annotations

import sys
import traceback
import warnings
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


@contextmanager
def told_warnings() -> Iterator[None]:
    """Python warnings inside become lines on stderr, each once; an error does not swallow those before it."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for text in dict.fromkeys(str(each.message) for each in heard):
                click.echo(f"warning: {text}", err=True)
