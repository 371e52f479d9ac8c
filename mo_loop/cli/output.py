"""Prints results, reports and errors of the commands.

Results are tables and colours on a terminal, plain text in a pipe, whose reader may end early:

    show(f"{painted('Loop', fg='cyan')} {name}")

Names in models are untrusted: `show` and `tell` write control characters, except line breaks, as in JSON, and no
command of a CI system. Only the colours of `painted` and `table` reach a terminal, because these mark them with a text
that no name can have. The line breaks in their texts are those of the program: code that puts a name into a text of
several lines makes it `printable` first, as errors, tables and `painted` do.

--format and --report give a report on stdout in one form, and in a file in that of its ending:

    @format_option("text", "json", "markdown")
    def command(form: str, report_file: ReportFile | None, quiet: bool) -> None:
        with reported(debug, as_json=form == "json", report_file=report_file):
            give(lambda form: formatted(found, form), form, report_file, quiet=quiet)

An error is one message on stderr and the documented exit code; a traceback only with --debug:

error: ML202: the model has no tensor 'imput'
  why:   no tensor and no node of the main graph has this name
  help:  did you mean 'input'?

A command whose format is JSON prints the errors on stdout as well, as one object:

{"schema": "mo-loop error", "version": 1, "ok": false, "exit_code": 2, "error": {...},
 "errors": [{"code": "ML230", "message": "...", "where": ["loop/node"], "why": "", "hint": "", "exit_code": 2}]}

`errors` are as in the report of a batch; `error` is the first of them, with one place as text.
"""

import json
import os
import shutil
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import PurePath
from typing import Any, NoReturn, TextIO

import click

from mo_loop.batching.storage.locations import masked, place_of
from mo_loop.errors import ConversionErrors, ConversionWarning, FileError, MoLoopError, UsageError, traceback_text
from mo_loop.printable import ShownResult, Style, aligned, printable, without_commands
from mo_loop.support.files import reason_of

BLOCK = 1000
"""The number of lines that are written at once."""

ESCAPE = "\x1b"

MARK = f"\udc1b{os.urandom(8).hex()} "
"""Stands for ESCAPE in the texts of `painted` and `table` until they are written. It differs from run to run."""


def show(text: str) -> None:
    """Print a result. A reader that ends early, as in `| head`, is not an error."""
    show_lines([text])


def show_lines(lines: Iterable[str]) -> None:
    """Print the lines of a result while they are made."""
    left = iter(lines)
    while (block := list(islice(left, BLOCK))) and write(safe("\n".join(block))):
        pass


def write(text: str) -> bool:
    """Write a text on stdout as it is, with a line break; False if the reader has closed the stream.

    If it cannot be written for another reason, such as a full disk, the process ends with a message.
    """
    if sys.stdout is None:  # closed by the caller
        return False
    encoding = stdout_encoding()
    try:
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding), color=is_coloured(sys.stdout) or None)
        sys.stdout.flush()
        return True
    except OSError as error:
        # Python would try to write the rest of the buffer at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return False
        failed = FileError("standard output cannot be written", why=reason_of(error), code="ML219")
        click.echo(f"error: {safe(str(failed))}", err=True)
        sys.exit(failed.exit_code)


def tell(text: str) -> None:
    """Print lines on stderr."""
    click.echo(safe(text), err=True)


def safe(text: str) -> str:
    """Lines without control characters, except for the colours of `painted` and `table`, and without commands."""
    if MARK not in text and text.replace("\n", "").isprintable():
        return without_commands(text)
    return "\n".join(ESCAPE.join(map(printable, line.split(MARK))) for line in text.split("\n"))


def stdout_encoding() -> str:
    """The encoding of stdout."""
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def terminal_width() -> int | None:
    """The columns of the terminal; None if stdout is not a terminal."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None


def is_terminal(stream: TextIO | None) -> bool:
    """Whether stdout is a terminal."""
    return stream is not None and stream.isatty()


def is_coloured(stream: TextIO | None) -> bool:
    """Whether `stream` is a terminal that shows colours, and NO_COLOR does not switch them off; FORCE_COLOR switches
    them on for files and pipes too."""
    if os.environ.get("NO_COLOR"):
        return False
    is_shown = is_terminal(stream) and os.environ.get("TERM") != "dumb"
    return is_shown or (stream is not None and os.environ.get("FORCE_COLOR", "0") not in ("", "0"))


def painted(text: str, **style: Any) -> str:
    """A line of printable characters, in the colours of `click.style` if stdout shows colours."""
    text = printable(text)
    return click.style(text, **style).replace(ESCAPE, MARK) if is_coloured(sys.stdout) else text


def table(
    rows: Sequence[Sequence[str]], right: Sequence[int] = (), indent: str = "", *, heads: bool = True, err: bool = False
) -> str:
    """Rows of cells for stdout, or for stderr with `err`; with `heads` the first row has the titles.

    On a terminal the cells are wrapped to its width. Elsewhere each row is one complete line, which can be searched
    and compared.
    """
    stream = sys.stderr if err else sys.stdout
    rows = [list(map(printable, row)) for row in rows]
    if not is_terminal(stream):
        return aligned(rows, right, indent)
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    titles, *cells = rows if heads else ([""] * len(rows[0]), *rows)
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=heads, header_style="bold")
    for place, title in enumerate(titles):
        shown.add_column(Text(title), justify="right" if place in right else "left", overflow="fold")
    for row in cells:
        shown.add_row(*map(Text, row))
    console = Console(stderr=err, color_system="auto" if is_coloured(stream) else None)
    with console.capture() as captured:
        console.print(Padding(shown, (0, 0, 0, len(indent))))
    return "\n".join(line.rstrip() for line in captured.get().split("\n")).rstrip("\n").replace(ESCAPE, MARK)


class _Terminal(Style):
    """Colours and tables of the terminal, if stdout is one."""

    paint = staticmethod(painted)
    table = staticmethod(table)


TERMINAL = _Terminal()


ENDINGS = {".md": "markdown", ".sarif": "sarif", ".xml": "junit"}
"""The form of a file by its ending; any other file is JSON."""


@dataclass(frozen=True)
class ReportFile:
    """The file or URL of --report, and its format."""

    place: str
    form: str

    @classmethod
    def of(cls, place: str) -> "ReportFile":
        return cls(place, ENDINGS.get(PurePath(place).suffix.lower(), "json"))

    def write(self, lines: Iterable[str]) -> None:
        """Write the file whole or not at all. FileError and StorageError if it cannot be written."""
        from mo_loop.batching.batch_options import write_content

        write_content(place_of(self.place), (line.removesuffix("\n") + "\n" for line in lines))


def give(
    lines_of: Callable[[str], str | Iterable[str]], form: str, report_file: ReportFile | None, *, quiet: bool = False
) -> None:
    """Write the file, and print the report unless `quiet`. `lines_of` makes the text of a form, or its lines."""

    def lines(wanted: str) -> Iterable[str]:
        found = lines_of(wanted)
        return [found] if isinstance(found, str) else found

    if report_file is not None:
        report_file.write(lines(report_file.form))
    if not quiet:
        show_lines(lines(form))


def as_json(found: ShownResult) -> str:
    """A result as a JSON document."""
    return json.dumps(found.to_dict(), indent=1, ensure_ascii=False, default=str)


def formatted(found: ShownResult, form: str) -> str:
    """A result as text for the terminal, or as JSON."""
    return as_json(found) if form == "json" else found.text(TERMINAL)


SCHEMA, VERSION = "mo-loop error", 1

BUG = "This is a bug of mo-loop. Please report it with the output of --debug."

INTERRUPTED = 130
"""The exit code after Ctrl-C, as in shells: 128 plus the number of the signal. SIGTERM gives 143."""


@contextmanager
def reported(
    debug: bool, *, as_json: bool = False, writes: bool = True, report_file: ReportFile | None = None,
    left: Callable[[], str] | None = None,
) -> Iterator[None]:
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
        for text in _error_texts(error):
            message("error", text)
        if exit_code == 4:
            tell(BUG)
        sys.exit(exit_code)


def _error_texts(error: Exception) -> list[str]:
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
            for text in dict.fromkeys(map(printable, _warning_lines(heard))) if not quiet else ():
                message("warning", text)


def _warning_lines(heard: Sequence[Warning | str]) -> Iterator[str]:
    """The text of each warning; for several of one code of a conversion the first, with their number and places."""
    found = [each for each in heard if isinstance(each, ConversionWarning)]
    if not found:
        yield from map(str, heard)
        return
    from mo_loop.look.diagnostics.diagnostic import grouped, of_warnings, places_text

    groups = {each.first.code: each for each in grouped(of_warnings(found))}
    for each in heard:
        group = groups.get(each.code) if isinstance(each, ConversionWarning) else None
        if group is None or len(group.same) == 1:
            yield str(each)
        else:
            yield ": ".join(filter(None, (group.message, places_text(group.places))))


def message(kind: str, text: str) -> None:
    """`error: ...`, `warning: ...` or `note: ...` on stderr; coloured on a terminal, unless NO_COLOR is set."""
    colour = {"error": "red", "warning": "yellow"}.get(kind)
    head = click.style(f"{kind}:", fg=colour, bold=True) if colour and is_coloured(sys.stderr) else f"{kind}:"
    click.echo(f"{head} {safe(text)}", err=True, color=is_coloured(sys.stderr) or None)


def _options_with(name: str, context: click.Context) -> list[str]:
    """The options of a command that have all of an unknown one in their names: --fp16 is in --compress-to-fp16."""
    word = name.lstrip("-")
    names = [each for option in context.command.params if isinstance(option, click.Option) for each in option.opts]
    return [each for each in names if word in each] if len(word) > 2 else []


def end_with_usage(ctx: click.Context, error: click.UsageError) -> NoReturn:
    """End the process with an error of click, in the form of all others."""
    close = getattr(error, "possibilities", None) or _options_with(getattr(error, "option_name", ""), error.ctx or ctx)
    path = (error.ctx or ctx).command_path
    hint = f"did you mean {close[0]}?" if close else f"see {path} --help"
    text = error.message if close else error.format_message()
    message("error", str(UsageError(" ".join(text.split()).rstrip("."), hint=hint)))
    sys.exit(UsageError.exit_code)
