"""mo-loop reduce."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mo_loop.cli.conversion_options import conversion_options, named, opened, options_of, require_local
from mo_loop.cli.flag_options import GroupedCommand, flags, format_option, message_options, option
from mo_loop.cli.output import ReportFile, as_json, give, printed_warnings, reported
from mo_loop.compare.verify_options import VerifyOptions
from mo_loop.errors import UsageError
from mo_loop.support.files import is_among
from mo_loop.support.flags import FILES, RUN

if TYPE_CHECKING:
    from mo_loop.compare.reducing.candidates import Candidate


@click.command(cls=GroupedCommand)
@click.argument("model", type=click.Path(), metavar="MODEL")
@option(
    "-o", "--output-model", "target", group=FILES, required=True, type=click.Path(), metavar="FILE",
    help="The .onnx file of the smaller model. Its inputs are written next to it, as .npz.",
)
@option(
    "--if", "condition", group=FILES, required=True, metavar="CONDITION",
    help="The condition that the smaller model still shows: differs, crashes, unreadable, uncompilable, fails, fails "
    "CODE, or a command that exits with 0, in which {} is the path of the model.",
)
@flags(
    VerifyOptions, "inputs", "sets", "seed", "rtol", "atol", is_argument=True,
    texts={
        "inputs": "Inputs of MODEL, as for verify. By default inputs are generated.",
        "sets": "The number of sets of inputs that are generated.",
        "rtol": "The relative tolerance of `differs`.", "atol": "The absolute tolerance of `differs`.",
    },
)
@option("-j", "--jobs", group=RUN, type=click.IntRange(min=1), metavar="N",
        help="The number of worker processes.  [default: one for each processor]")
@option("--timeout", group=RUN, type=click.FloatRange(min=1), default=600.0, show_default=True, metavar="SECONDS",
        help="End the search after this time.")
@option("--trial-timeout", group=RUN, type=click.FloatRange(min=1), default=60.0, show_default=True,
        metavar="SECONDS", help="End one trial after this time.")
@conversion_options()
@format_option("text", "json")
@message_options()
@click.pass_context
def command(
    context: click.Context, model: str, target: str, condition: str, jobs: int | None, timeout: float,
    trial_timeout: float, form: str, report_file: ReportFile | None, quiet: bool, debug: bool, **settings: Any,
) -> None:
    """Make MODEL as small as possible while it still shows a condition.

    Outputs and nodes are removed, inner tensors become inputs, bodies replace their Loop, Scan or If,
    dimensions become shorter, and weights become ones, as long as the model still shows the condition. Each trial
    runs in a worker process, so a crash or a hang is a result too. FILE always has the smallest model so far: after
    Ctrl-C or SIGTERM, reduce it again.

    \b
    mo-loop reduce model.onnx -o small.onnx --if differs
    mo-loop reduce model.onnx -o small.onnx --if "fails ML302"
    mo-loop reduce model.onnx -o small.onnx --if crashes --input-data inputs.npz
    mo-loop reduce model.onnx -o small.onnx --if "sh check.sh {}"

    Exit code 2 also if MODEL does not show the condition.
    """
    is_json = form == "json" and not quiet
    progress = _Progress(target, quiet)
    left = progress.left
    with reported(debug, as_json=is_json, report_file=report_file, left=left), printed_warnings(quiet=quiet):
        from mo_loop.compare.reducing import reduce

        require_local({"--input-data": settings["inputs"]})
        path = _place(model, target)
        with opened(model) as source:
            found = reduce(
                source, condition, options=options_of(context), jobs=jobs or os.cpu_count() or 1, seconds=timeout,
                trial_seconds=trial_timeout, better=progress.better, **settings,
            )
        found.save(path)
        found = replace(found, model=named(model))
        give(
            lambda wanted: as_json(found) if wanted == "json" else found.text(target=target), form, report_file,
            quiet=quiet,
        )


def _place(model: str, target: str) -> Path:
    require_local({"-o": target})
    path = Path(target)
    if path.suffix != ".onnx":
        raise UsageError(f"the output {target!r} does not end in .onnx", hint="name it, for example, small.onnx")
    if is_among(target, [model]):
        raise UsageError(f"the output {target} is the model itself", hint="give another name")
    return path


class _Progress:
    """Writes each smaller model, and its size on stderr."""

    def __init__(self, target: str, is_quiet: bool) -> None:
        self.start = time.monotonic()
        self._wrote = False
        self._path = Path(target)
        self._is_quiet = is_quiet
        self._shown = 0.0

    def better(self, candidate: "Candidate", trials: int) -> None:
        """A smaller candidate shows the condition."""
        self._wrote = True
        candidate.save(self._path)
        now = time.monotonic()
        if self._is_quiet or now - self._shown < 1:
            return
        self._shown = now
        seconds = now - self.start
        click.echo(f"{candidate}, {trials} trials, {seconds:.0f} s", err=True)

    def left(self) -> str:
        """The file that an interrupted search leaves."""
        if not (self._wrote and self._path.exists()):
            return "nothing was written"
        return f"{self._path} holds the smallest model so far; to continue, reduce it"
