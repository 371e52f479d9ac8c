"""mo-loop batch."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from mo_loop.batching.report_places import Places
from mo_loop.cli.batch_cluster import engine_of, machines_of
from mo_loop.cli.batch_config import Works, comparing_options, comparing_values, config_option
from mo_loop.cli.conversion_options import conversion_options, options_of, plain_options
from mo_loop.cli.error_output import message, printed_warnings, reported
from mo_loop.cli.flag_options import GroupedCommand, durable_option, flags, made, option, verbose_option
from mo_loop.cli.output import is_terminal, show, write
from mo_loop.cli.pass_options import PassOptions, pass_choice
from mo_loop.cli.report_file import ReportFile
from mo_loop.errors import UsageError
from mo_loop.support.flags import FILES, PASSES, REPORTS, RUN, flag

if TYPE_CHECKING:
    from mo_loop.batching.engine import WorkerLimits
    from mo_loop.batching.outputs import Outputs
    from mo_loop.batching.plan import BatchPlan
    from mo_loop.batching.report import About
    from mo_loop.batching.result import Results
    from mo_loop.batching.run import Batch
    from mo_loop.cli.batch_progress import Display
    from mo_loop.options import ConvertOptions

SIGNALS = ("SIGINT", "SIGTERM")
LONGEST = 1e6  # seconds


@dataclass(frozen=True)
class Asked:
    """The arguments of the command that are about the batch as a whole."""

    # fmt: off
    paths: tuple[str, ...]
    durable: bool
    folder: str = flag(
        None, "Folder of the .xml and .bin files, with the subfolders of the models below the common root of PATH....",
        FILES, "-o", "--output-dir", "folder", required=True, kind="folder", metavar="DIR",
    )
    scheduler: str | None = flag(
        None, "Convert on a cluster of Dask: tcp://host:8786, tls:// or ws://; `local` starts one of -j workers on "
        "this machine. Needs distributed and fsspec.", RUN, metavar="ADDRESS", place=1,
    )
    jobs: int | None = flag(
        None, "Worker processes.  [default: one for each processor]", RUN, "-j", "--jobs", least=1, metavar="N",
        place=1,
    )
    timeout: float = flag(
        600.0, "Stop the conversion of a model that takes longer.", RUN, kind="number", above=0, most=LONGEST,
        show_default=True, metavar="SECONDS", place=1,
    )
    memory: int | None = flag(
        None, "Memory that a worker may allocate, for example 4G. Has no effect on Windows and macOS.", RUN,
        kind="size", metavar="SIZE", place=1,
    )
    scratch: int | None = flag(
        None, "Local disk for models and outputs at URLs, for example 20G.  [default: no limit]", RUN, kind="size",
        metavar="SIZE", place=1,
    )
    keep_going: bool = flag(
        True, "After a failure, continue (default), or do not start other models.", RUN, "--keep-going/--fail-fast",
        place=1,
    )
    force: bool = flag(False, "Convert models that are up to date as well.", RUN, place=1)
    plan: bool = flag(
        False, "Print how many models would be converted, with an estimate of time and memory, and convert nothing.",
        RUN, place=1,
    )
    form: str = flag(
        "text", "The format of the report on stdout; text is the last line alone.", REPORTS, "--format",
        choices=("text", "json"), show_default=True,
    )
    report: str | None = flag(
        None, "Write the report to FILE, as JSON or Markdown (.md) or JUnit XML (.xml) by its ending.", REPORTS,
        kind="file", metavar="FILE",
    )
    junit: str | None = flag(None, "Write the results as JUnit XML.", REPORTS, kind="file", metavar="FILE")
    summary: str | None = flag(
        None, "Write the results as Markdown; append them if FILE is the file in GITHUB_STEP_SUMMARY.", REPORTS,
        kind="file", metavar="FILE",
    )
    baseline: str | None = flag(
        None, "The report of an earlier batch. Models that failed there do not count for the exit code.", REPORTS,
        kind="file", metavar="FILE",
    )
    quiet: bool = flag(
        False, "Print only errors: no progress, no warnings, no last line.", REPORTS, "-q", "--quiet"
    )
    # fmt: on


@click.command(cls=GroupedCommand)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
@flags(Asked)
@durable_option
@config_option
@comparing_options
@conversion_options()
@pass_choice
@verbose_option
@option("--debug", group=PASSES, is_flag=True, help="Show the traceback of an error of the batch itself.")
@click.pass_context
def command(context: click.Context, paths: tuple[str, ...], durable: bool, debug: bool, **_: Any) -> None:
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
        asked = made(context, Asked, paths=paths, durable=durable)
    with reported(debug, as_json=asked.form == "json" and not asked.quiet):
        prepared = _planned(context, asked, {**plain_options(context), **comparing_values(context)})
        if asked.plan:
            _show_plan(asked, prepared, is_debug=debug)
            return
        exit_code = _run(asked, prepared, is_debug=debug)
    sys.exit(exit_code)


@dataclass(frozen=True)
class Prepared:
    """The plan and settings of a batch before its first conversion; `known` are the models that failed in the `earlier`
    report."""

    plan: BatchPlan
    outputs: Outputs
    works: Works
    limits: WorkerLimits
    places: Places
    started: str
    flags: Mapping[str, Any]
    earlier: Mapping[str, Any] | None
    known: frozenset[str]


def _planned(context: click.Context, asked: Asked, flags: Mapping[str, Any]) -> Prepared:
    """Check the arguments, and find the models. Warnings and notes are printed."""
    from mo_loop.batching.baseline import earlier_report, known_failures
    from mo_loop.batching.engine import WorkerLimits
    from mo_loop.batching.finding import planned
    from mo_loop.batching.outputs import Outputs
    from mo_loop.batching.weights_of_models import refuse_weights
    from mo_loop.support.process_memory import NO_MEMORY_LIMIT, can_limit_memory

    if asked.folder == "-":
        why = "an IR is two files, the .xml and the .bin: both cannot go to standard output"
        raise UsageError("-o - is not possible", why=why, hint="name a folder: -o ir")
    # On a cluster the systems of its workers limit it.
    allowed = asked.memory if can_limit_memory() or asked.scheduler is not None else None
    if allowed != asked.memory:
        message("warning", f"--memory has no effect: {NO_MEMORY_LIMIT}")
    works = Works(context)
    _check(context, options_of(context))
    if asked.plan and asked.form != "text":
        raise UsageError("--plan prints text", hint=f"leave out --format {asked.form}")
    places = Places.of(asked.folder, asked.report, asked.junit, asked.summary, asked.baseline)
    earlier = None if places.baseline is None else earlier_report(places.baseline)
    known = known_failures(earlier) if earlier else frozenset[str]()
    plan = planned(asked.paths, places.folder)
    outputs = Outputs(places.folder, places.scratch(plan, asked.scratch))
    refuse_weights(plan, outputs)
    limits = WorkerLimits(min(asked.jobs or _processors(), len(plan.models)), asked.timeout, allowed)
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if flags["verify"]:
        from mo_loop.compare.packages import require_packages

        require_packages()
    for pattern in works.without_models(plan.models):
        message("warning", f"no model matches {pattern!r} in the file of --config")
    if outputs.note and not asked.quiet:
        message("note", outputs.note)
    return Prepared(plan, outputs, works, limits, places, started, flags, earlier, known)


def _show_plan(asked: Asked, prepared: Prepared, *, is_debug: bool) -> None:
    """Print the plan."""
    from mo_loop.batching.estimates import earlier_of
    from mo_loop.cli.batch_plan import plan_lines

    places, limits = prepared.places, prepared.limits
    results_before = earlier_of(prepared.earlier or places.earlier_results() or {"models": []})
    threads, most = limits.jobs, None
    if asked.scheduler is not None:
        threads, most = machines_of(asked.scheduler, limits.jobs, is_debug=is_debug)
    lines = plan_lines(
        prepared.plan, prepared.outputs, prepared.works, results_before, folder=str(places.folder), jobs=threads,
        force=asked.force, most_memory=most, limit=limits.memory,
    )  # fmt: skip
    show("\n".join(lines))


def _run(asked: Asked, prepared: Prepared, *, is_debug: bool) -> int:
    """Convert the models, write the reports, print the results; returns the exit code."""
    from mo_loop.batching.estimates import earlier_of
    from mo_loop.batching.markdown import counted
    from mo_loop.batching.report import About, as_json
    from mo_loop.batching.run import Batch
    from mo_loop.cli.batch_progress import display
    from mo_loop.support.printable import printable

    plan, limits, places = prepared.plan, prepared.limits, prepared.places
    earlier = earlier_of(prepared.earlier) if prepared.earlier and asked.scheduler is not None else None
    with ExitStack() as stack:
        engine = None
        if asked.scheduler is not None:
            files, is_single = prepared.works.files(), not asked.keep_going
            found = engine_of(
                asked.scheduler, asked.jobs, limits, files, is_single=is_single, is_quiet=asked.quiet,
                is_debug=is_debug,
            )  # fmt: skip
            engine, limits = stack.enter_context(found)
        about = About(
            prepared.started, str(plan.root), str(places.folder), limits.jobs, asked.timeout, asked.memory,
            prepared.flags,
        )  # fmt: skip
        batch = Batch(
            plan, prepared.outputs, prepared.works, limits, force=asked.force, fail_fast=not asked.keep_going,
            durable=asked.durable, engine=engine, earlier=earlier,
        )  # fmt: skip
        shown = display(len(plan.models), asked.quiet, with_rate=asked.scheduler is not None)
        with _stopped_by_signals(batch, shown):
            with shown:
                results = batch.run(shown)
            results.known = prepared.known
            exit_code = _exit_code(results)
            _write(about, results, exit_code, places)
            _print(results, asked.quiet)
            if asked.form == "json" and not asked.quiet:
                write("".join(as_json(about, results, exit_code)).rstrip())
            elif not asked.quiet:
                show(f"{printable(str(places.folder))}: {counted(results)}, {results.seconds:.2f} s")
    return exit_code


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check(context: click.Context, options: ConvertOptions) -> None:
    """Report wrong names of passes, layouts and numbers as errors of the command, not of each model.

    The converter is loaded only if there are such options.
    """
    passes = made(context, PassOptions)
    if passes == PassOptions() and not any(plain_options(context)["preprocessing"].values()):
        return
    from mo_loop.cli.pass_inspection import PassObservers
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


def _exit_code(results: Results) -> int:
    if results.signal:
        return 128 + int(getattr(signal, results.signal))
    return 1 if results.new_failures or results.lost else 0


# -- reports


def _write(about: About, results: Results, exit_code: int, places: Places) -> None:
    """Write the reports, each whole or not at all."""
    from mo_loop.batching.junit import as_junit
    from mo_loop.batching.markdown import as_markdown
    from mo_loop.batching.places import write_content
    from mo_loop.batching.report import as_json

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
    from mo_loop.batching.result import BAD, CANCELLED
    from mo_loop.support.printable import printable

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
            message("note", f"{what}: {', '.join(names[:5])}{f' and {len(names) - 5} more' if len(names) > 5 else ''}")
    _print_warnings(results)
    if not is_terminal(sys.stderr):  # on a terminal they appear above the last line
        for each in results.results:
            if each.status in BAD:
                head = printable(each.said.partition("\n")[0])
                message("error", f"{each.status} {printable(each.model.name)}: {head}")


def _print_warnings(results: Results) -> None:
    """Each text once, with the first of its models."""
    from mo_loop.support.printable import printable

    models: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for each in results.results:
        for text in each.warnings:
            models.setdefault(text, each.model.name)
            counts[text] += 1
    for text, name in models.items():
        more = f" and {counts[text] - 1} more" if counts[text] > 1 else ""
        message("warning", f"{printable(text)} ({printable(name)}{more})")
