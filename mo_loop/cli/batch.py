"""mo-loop batch."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from mo_loop.batching.batch_options import BatchOptions, Places, write_content
from mo_loop.batching.estimates import earlier_of
from mo_loop.batching.result import BAD, CANCELLED, Results
from mo_loop.cli.batch_config import WorkByModel, comparing_options, comparing_values, config_option
from mo_loop.cli.conversion_options import conversion_options, options_of, plain_options
from mo_loop.cli.flag_options import GroupedCommand, flags, made, option, report_text, verbose_option
from mo_loop.cli.output import ReportFile, is_terminal, message, printed_warnings, reported, show, write
from mo_loop.cli.pass_options import PassObservers, PassOptions
from mo_loop.compare.batch_comparison import Comparing
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from mo_loop.printable import first_few, printable
from mo_loop.support.flags import FILES, PASSES, REPORTS, RUN, flag
from mo_loop.support.process_memory import NO_MEMORY_LIMIT, can_limit_memory

if TYPE_CHECKING:
    from mo_loop.batching.cluster.dask_engine import DaskEngine
    from mo_loop.batching.report import About
    from mo_loop.batching.run import Batch, PreparedBatch
    from mo_loop.cli.batch_display import Display


SIGNALS = ("SIGINT", "SIGTERM")


@dataclass(frozen=True, kw_only=True)
class BatchFlags(BatchOptions):
    """The options of a batch, and what the command alone has."""

    paths: tuple[str, ...]
    folder: str = flag(
        None, "Folder of the .xml and .bin files, with the subfolders of the models below the common root of PATH....",
        FILES, "-o", "--output-dir", "folder", required=True, kind="folder", metavar="DIR",
    )
    scheduler: str | None = flag(
        None, "Convert on a cluster of Dask: tcp://host:8786, tls:// or ws://; `local` starts one of -j workers on "
        "this machine. Needs distributed and fsspec.", RUN, metavar="ADDRESS", place=1,
    )
    plan: bool = flag(
        False, "Print how many models would be converted, with an estimate of time and memory, and convert nothing.",
        RUN, place=2,
    )
    form: str = flag(
        "text", "The format of the report on stdout. The text is the last line alone.", REPORTS, "--format",
        choices=("text", "json"), show_default=True, place=-1,
    )
    report: str | None = flag(
        None, report_text("markdown", "junit", also=""), REPORTS,
        kind="file", metavar="FILE", place=-1,
    )
    junit: str | None = flag(None, "Write the results as JUnit XML.", REPORTS, kind="file", metavar="FILE", place=-1)
    summary: str | None = flag(
        None, "Write the results as Markdown; append them if FILE is the file in GITHUB_STEP_SUMMARY.", REPORTS,
        kind="file", metavar="FILE", place=-1,
    )
    quiet: bool = flag(False, "Print only errors: no progress, no warnings, no last line.", REPORTS, "-q", "--quiet")


@click.command(cls=GroupedCommand)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
@flags(BatchFlags)
@config_option
@comparing_options
@conversion_options()
@verbose_option
@option("--debug", group=PASSES, is_flag=True, help="Show the traceback of an error of the batch itself.")
@click.pass_context
def command(context: click.Context, paths: tuple[str, ...], debug: bool, **_: Any) -> None:
    """Convert many ONNX models, each in a worker process: a crash or a hang fails only one model.

    PATH is a file, a folder (every .onnx below it), a quoted glob (also with **), or @FILE: a text file with one such
    path on each line; lines that begin with # are ignored. @- reads the list from standard input. PATH, DIR, lists and
    reports may be URLs, such as s3://bucket/models (docs/batch.md).

    \b
    mo-loop batch models -o ir -j 4
    mo-loop batch "zoo/**/*.onnx" -o ir --timeout 60 --memory 4G --junit junit.xml
    mo-loop batch @models.txt -o ir --summary "$GITHUB_STEP_SUMMARY"
    mo-loop batch models -o ir --verify --config mo-loop.toml
    mo-loop batch "s3://zoo/**" -o s3://ir --scratch 20G --plan

    A model is not converted again if the model, its external data, the options, extension files and the version of
    mo-loop are the same as before. DIR/.mo-loop.json stores the hashes.

    \b
    Ctrl-C (or SIGTERM) ends the workers and writes the reports; finished .xml
    and .bin files stay. A second Ctrl-C ends the command immediately.
    Exit code 1: some failed (with --baseline: some that did not fail there).
    """
    with reported(debug):
        asked = made(context, BatchFlags, paths=paths)
    with reported(debug, as_json=asked.form == "json" and not asked.quiet):
        work = WorkByModel(context)
        ready = _prepared(context, asked, work)
        if asked.plan:
            _show_plan(asked, ready, is_debug=debug)
            return
        exit_code = _run(asked, ready, work.files(), is_debug=debug)
    sys.exit(exit_code)


def _prepared(context: click.Context, asked: BatchFlags, work: WorkByModel) -> PreparedBatch:
    """Check the arguments, and find the models. Warnings and notes are printed."""
    from mo_loop.batching.run import PreparedBatch

    if asked.folder == "-":
        why = "an IR is two files, the .xml and the .bin: both cannot go to standard output"
        raise UsageError("-o - is not possible", why=why, hint="name a folder: -o ir")
    if asked.memory and asked.scheduler is None and not can_limit_memory():  # a cluster has other systems
        message("warning", f"--memory has no effect: {NO_MEMORY_LIMIT}")
        asked = replace(asked, memory=None)
    _check(context, options_of(context))
    if asked.plan and asked.form != "text":
        raise UsageError(f"--plan has no format {asked.form}", hint="leave out --format: the plan is text")
    places = Places.of(**{each.name: getattr(asked, each.name) for each in fields(Places)})
    facts = {**plain_options(context), **comparing_values(context)}
    ready = PreparedBatch.of(asked.paths, places, asked, work, facts, Comparing() if facts["verify"] else None)
    for pattern in work.without_models(ready.plan.models):
        message("warning", f"no model matches {pattern!r} in the file of --config")
    if ready.outputs.note and not asked.quiet:
        message("note", ready.outputs.note)
    return ready


def _show_plan(asked: BatchFlags, ready: PreparedBatch, *, is_debug: bool) -> None:
    """Print the plan."""
    from mo_loop.batching.report import earlier_if_written
    from mo_loop.cli.batch_display import plan_lines

    earlier = earlier_of(ready.earlier or earlier_if_written(ready.places.report) or {"models": []})
    threads, most = ready.about.asked.workers, None
    if asked.scheduler is not None:
        threads, most = machines_of(asked.scheduler, threads, is_debug=is_debug)
    show("\n".join(plan_lines(ready, earlier, jobs=threads, most_memory=most)))


def _run(asked: BatchFlags, ready: PreparedBatch, files: Sequence[str], *, is_debug: bool) -> int:
    """Convert the models, write the reports, print the results; returns the exit code."""
    from mo_loop.batching.report import as_json, counted
    from mo_loop.cli.batch_display import display

    places = ready.places
    with ExitStack() as stack:
        engine = None
        if asked.scheduler is not None:
            found = engine_of(
                asked.scheduler, asked.jobs, ready.about.asked, files, is_quiet=asked.quiet, is_debug=is_debug
            )
            engine = stack.enter_context(found)
        batch = ready.batch(engine)
        shown = display(len(ready.plan.models), asked.quiet, with_rate=asked.scheduler is not None)
        with _stopped_by_signals(batch, shown):
            with shown:
                report = ready.run(batch, shown)
            about, results = report.about, report.results
            exit_code = 1 if results.new_failures or results.lost else 0
            if results.signal:
                exit_code = 128 + int(getattr(signal, results.signal))
            _write(about, results, exit_code, places)
            _print(results, asked.quiet)
            if asked.form == "json" and not asked.quiet:
                write("".join(as_json(about, results, exit_code)).rstrip())
            elif not asked.quiet:
                show(f"{printable(str(places.folder))}: {counted(results)}, {results.seconds:.2f} s")
    return exit_code


def _check(context: click.Context, options: ConvertOptions) -> None:
    """Report wrong names of passes, layouts and numbers as errors of the command, not of each model.

    The converter is loaded only if there are such options.
    """
    passes = made(context, PassOptions)
    if passes == PassOptions() and not any(plain_options(context)["preprocessing"].values()):
        return
    from mo_loop.conversion import Conversion

    with printed_warnings():
        PassObservers(passes, Conversion(options))


@contextmanager
def _stopped_by_signals(batch: Batch, shown: Display) -> Iterator[None]:
    """The first signal stops the batch, the second ends the process immediately."""
    seen: list[int] = []

    def end() -> None:
        shown.restore()
        os._exit(128 + seen[-1])

    def handle(number: int, _: FrameType | None) -> None:
        seen.append(number)
        if len(seen) == 1:
            batch.stop(signal.Signals(number).name)
        else:
            end()

    before = {}
    with suppress(ValueError):  # only the main thread can set signal handlers
        for name in SIGNALS:
            number = getattr(signal, name)
            before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# -- reports


def _write(about: About, results: Results, exit_code: int, places: Places) -> None:
    """Write the reports, each whole or not at all."""
    from mo_loop.batching.report import as_json, as_junit, as_markdown

    if places.report is not None:
        form = ReportFile.of(str(places.report)).form
        made = {"junit": lambda: as_junit(about, results), "markdown": lambda: [as_markdown(results)]}
        pieces = made[form]() if form in made else as_json(about, results, exit_code)
        write_content(places.report, (each.encode("utf-8", "backslashreplace") for each in pieces))
    if places.junit is not None:
        write_content(places.junit, as_junit(about, results))
    path = places.summary
    if path is not None:
        # All steps of a CI job append to that file.
        shared = os.path.abspath(os.environ.get("GITHUB_STEP_SUMMARY") or os.devnull)
        is_shared = isinstance(path, Path) and os.path.abspath(path) == shared and path.exists()
        earlier = path.read_bytes() if isinstance(path, Path) and is_shared else b""
        write_content(path, earlier + as_markdown(results).encode("utf-8", errors="backslashreplace"))


def _print(results: Results, is_quiet: bool) -> None:
    for note in results.notes:
        message("warning", note)
    if results.lost:
        message("error", results.lost)
    left = results.counts[CANCELLED]
    if results.signal:
        again = ": the same command continues with them" if left else ""
        message("error", f"ended by {results.signal}, {left} of {len(results.results)} models remain{again}")
    if is_quiet:
        return
    changed = {"fail as in the baseline": results.is_known, "failed in the baseline and convert now": results.is_mended}
    for what, is_so in changed.items() if results.known else ():
        names = [printable(each.model.name) for each in results.results if is_so(each)]
        if names:
            message("note", f"{what}: {first_few(names, 5)}")
    _print_warnings(results)
    if not is_terminal(sys.stderr):  # on a terminal they appear above the last line
        for each in results.results:
            if each.status in BAD:
                head = printable(each.said.partition("\n")[0])
                message("error", f"{each.status} {printable(each.model.name)}: {head}")


def _print_warnings(results: Results) -> None:
    """Each text once, with the first of its models."""
    models: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for each in results.results:
        for text in each.warnings:
            models.setdefault(text, each.model.name)
            counts[text] += 1
    for text, name in models.items():
        more = f" and {counts[text] - 1} more" if counts[text] > 1 else ""
        message("warning", f"{printable(text)} ({printable(name)}{more})")


# -- the workers of a scheduler


def machines_of(scheduler: str, jobs: int, *, is_debug: bool) -> tuple[int, int]:
    """The threads of the workers of a scheduler, and the bytes of memory of the one with most; nothing is started.

    Raises:
        ClusterError: there is no scheduler, or no worker.
        InputError: distributed is not installed.
    """
    from mo_loop.batching.cluster.connecting import LOCAL, connected, local_memory, require_address

    require_address(scheduler)
    if scheduler == LOCAL:
        return jobs, local_memory(jobs)
    from mo_loop.batching.cluster.connecting import require_workers

    with connected(scheduler, is_debug=is_debug) as client:
        require_workers(client)
        from mo_loop.batching.cluster.scheduling import machines

        return machines(client)


@contextmanager
def engine_of(
    scheduler: str, jobs: int | None, options: BatchOptions, files: Iterable[str], *, is_quiet: bool, is_debug: bool
) -> Iterator[DaskEngine]:
    """The engine for a scheduler, to whose workers the files are sent; `jobs` as the user gave them.

    Raises:
        ClusterError: there is no scheduler, no worker, or a worker with other versions.
        InputError: distributed is not installed.
    """
    from mo_loop.batching.cluster.connecting import LOCAL, connected, require_address

    require_address(scheduler)
    from mo_loop.batching.cluster.connecting import require_versions, require_workers
    from mo_loop.batching.cluster.requirements import read_files

    sent = read_files(files)
    with connected(scheduler, options.workers, is_debug=is_debug) as client:
        require_workers(client)
        require_versions(client)
        from mo_loop.batching.cluster.dask_engine import DaskEngine

        if jobs is not None and scheduler != LOCAL and not is_quiet:
            message("warning", "-j has no effect: the cluster decides how many models are converted at once")
        engine = DaskEngine(client, options, sent)
        if not is_quiet and (link := engine.dashboard):
            message("note", f"dashboard: {link}")
        yield engine
