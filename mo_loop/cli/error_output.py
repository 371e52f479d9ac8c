"""Errors on the command line: one message on stderr and the documented exit code; a traceback only with --debug.

error: ML202: the model has no tensor 'imput'
  why:   no tensor and no node of the main graph has this name
  help:  did you mean 'input'?

A command that was asked for JSON prints the errors on stdout as well, as one object:

{"schema": "mo-loop error", "version": 1, "ok": false, "exit_code": 2, "error": {...},
 "errors": [{"code": "ML230", "message": "...", "where": ["loop/node"], "why": "", "hint": "", "exit_code": 2}]}

`errors` are as in the report of a batch; `error` is the first of them, with one place as text.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any, NoReturn

import click

from mo_loop.batching.storage.locations import masked
from mo_loop.cli.output import is_coloured, safe, show, tell
from mo_loop.cli.report_file import ReportFile
from mo_loop.errors import ConversionErrors, ConversionWarning, MoLoopError, UsageError, traceback_text
from mo_loop.printable import printable

SCHEMA, VERSION = "mo-loop error", 1

BUG = "This is a bug of mo-loop. Please report it with the output of --debug."

INTERRUPTED = 130
"""The exit code after Ctrl-C, as in shells: 128 plus the number of the signal. SIGTERM gives 143."""


@contextmanager
def reported(
    debug: bool, *, as_json: bool = False, writes: bool = True, report_file: ReportFile | None = None,
    left: Callable[[], str] | None = None,
) -> Iterator[None]:  # fmt: skip
    """Turn errors in the block into messages and exit codes; with `debug` the traceback precedes the message.

    With `as_json` they are printed as JSON too; a `report_file` of JSON has them. Of a command that is interrupted the
    message notes the files that are `left`; without it that nothing was changed, if it `writes` files in one step.
    """

    def ended(how: str) -> None:
        files = left() if left is not None else "nothing was changed" if writes else ""
        message("error", f"{how}: {files}" if files else how)

    try:
        with _ended_by_signals(ended):
            yield
    except KeyboardInterrupt:
        ended("interrupted")
        sys.exit(INTERRUPTED)
    except (click.ClickException, click.exceptions.Exit):
        raise
    except Exception as error:
        exit_code = error.exit_code if isinstance(error, MoLoopError) else 4
        is_file = report_file is not None and report_file.form == "json"
        text = json.dumps(_failure(error, exit_code), indent=1) if as_json or is_file else ""
        if as_json:
            show(text)
        if report_file is not None and is_file:
            with suppress(MoLoopError):  # that it cannot be written may be the error itself
                report_file.write([text])
        if debug:
            tell(masked(traceback_text(error)))
        for text in _texts(error):
            message("error", text)
        if exit_code == 4:
            tell(BUG)
        sys.exit(exit_code)


def _texts(error: Exception) -> list[str]:
    """The text of each error: several can stop one conversion."""
    if isinstance(error, ConversionErrors):
        return error.texts()
    if isinstance(error, MoLoopError):
        return [str(error)]
    return [masked(printable(f"ML499: {type(error).__name__}: {error}"))]


def _failure(error: Exception, exit_code: int) -> dict[str, Any]:
    from mo_loop.batching.result import errors_of

    errors = [asdict(each) for each in errors_of(error)]
    first = {**errors[0], "where": next(iter(errors[0]["where"]), "")}
    return {"schema": SCHEMA, "version": VERSION, "ok": False, "exit_code": exit_code, "error": first, "errors": errors}


@contextmanager
def _ended_by_signals(ended: Callable[[str], None]) -> Iterator[None]:
    """SIGTERM raises an exception like Ctrl-C, so that no incomplete file remains."""

    def end(number: int, _: Any) -> None:
        ended("terminated")
        sys.exit(128 + number)

    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def printed_warnings(texts: list[str] | None = None, *, quiet: bool = False) -> Iterator[None]:
    """Print the Python warnings of the block as lines on stderr, also if an error follows: each once, those of one code
    of a conversion as one line.

    All texts are added to `texts` as well; with `quiet` they are not printed.
    """
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            heard = [each.message for each in found]
            if texts is not None:
                texts += dict.fromkeys(printable(str(each)) for each in heard)
            for text in dict.fromkeys(map(printable, _lines(heard))) if not quiet else ():
                message("warning", text)


def _lines(heard: Sequence[Warning | str]) -> Iterator[str]:
    """The text of each warning; for several of one code of a conversion the first, with their number and places."""
    found = [each for each in heard if isinstance(each, ConversionWarning)]
    if not found:
        yield from map(str, heard)
        return
    from mo_loop.diagnostics.diagnostic import grouped, of_warnings, places_text

    groups = {each.first.code: each for each in grouped(of_warnings(found))}
    for each in heard:
        group = groups.get(each.code) if isinstance(each, ConversionWarning) else None
        if group is None or group.count == 1:
            yield str(each)
        else:
            yield ": ".join(filter(None, (group.message, places_text(group.places))))


def message(kind: str, text: str) -> None:
    """`error: ...`, `warning: ...` or `note: ...` on stderr; coloured on a terminal, unless NO_COLOR is set."""
    colour = {"error": "red", "warning": "yellow"}.get(kind)
    head = click.style(f"{kind}:", fg=colour, bold=True) if colour and is_coloured(sys.stderr) else f"{kind}:"
    click.echo(f"{head} {safe(text)}", err=True)


def end_with_usage(ctx: click.Context, error: click.UsageError) -> NoReturn:
    """End the process with an error of click, in the form of all others."""
    close = getattr(error, "possibilities", None)
    path = (error.ctx or ctx).command_path
    hint = f"did you mean {close[0]}?" if close else f"see {path} --help"
    text = error.message if close else error.format_message()
    message("error", str(UsageError(" ".join(text.split()).rstrip("."), hint=hint)))
    sys.exit(UsageError.exit_code)
