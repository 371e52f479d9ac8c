"""mo-loop convert."""

import gc
import json
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from mo_loop.batching.batch_options import BatchOptions, write_content
from mo_loop.batching.storage.locations import is_url, location_of, place_of
from mo_loop.cli.conversion_options import (
    OF_ONE_MODEL,
    conversion_options,
    named,
    opened,
    options_of,
    require_local,
    require_places,
    sources_of,
)
from mo_loop.cli.flag_options import debug_option, flags, format_option, made, option, values_of, version_option
from mo_loop.cli.legacy_flags import LegacyFlags, LegacyFlagsCommand, target_of, with_shapes
from mo_loop.cli.output import ReportFile, give, printed_warnings, reported, show
from mo_loop.cli.pass_options import PassObservers, PassOptions, listing, pass_options
from mo_loop.errors import UsageError
from mo_loop.ir.pair import restore_pair
from mo_loop.options import ConvertOptions
from mo_loop.support.files import is_among, pair_of
from mo_loop.support.flags import FILES, REPORTS
from mo_loop.support.process_memory import paused_collector


@click.command(cls=LegacyFlagsCommand)
@click.argument("model", type=click.Path(), required=False, metavar="MODEL")
@option(
    "-o", "--output-model", "target", group=FILES, type=click.Path(), metavar="FILE",
    help="The .xml file to write (and its .bin), a folder, or a name without .xml.  [default: ./MODEL.xml]",
)
@conversion_options(*OF_ONE_MODEL, of_passes=pass_options)
@option(
    "--mapping", group=FILES, place=1, type=click.Path(), metavar="FILE",
    help="Write the place of each ONNX tensor in the IR, as JSON.",
)
@flags(BatchOptions, "durable", is_argument=True)
@format_option("text", "json", what="The format of the summary on stdout.")
@option("-q", "--quiet", group=REPORTS, is_flag=True, help="Print only errors.")
@option(
    "-v", "--verbose", group=REPORTS, is_flag=True,
    help="Show the time and memory of each phase as a table on stderr.",
)
@version_option
@debug_option
@click.pass_context
def command(
    context: click.Context, model: str | None, target: str | None, mapping: str | None, durable: bool, form: str,
    report_file: ReportFile | None, quiet: bool, verbose: bool, debug: bool,
) -> None:
    """Convert the ONNX file MODEL (- is standard input) to OpenVINO IR.

    \b
    mo-loop convert model.onnx
    mo-loop convert model.onnx -o out/model.xml --input "x[1,3,224,224]"
    mo-loop convert model.onnx -o out/ --freeze rate=16000 --output logits
    mo-loop convert s3://zoo/model.onnx -o s3://ir/model.xml

    MODEL and FILE may be URLs (docs/cluster.md).

    The flags of the Model Optimizer and of ovc work too, with underscores or dashes.
    """
    given = made(context, PassOptions)
    warnings: list[str] = []
    is_json = form == "json"
    with (
        reported(debug, as_json=is_json, report_file=report_file),
        printed_warnings(warnings, quiet=quiet),
        paused_collector(),
    ):
        _require_sense(given, form, quiet, verbose)
        if model is None and not given.passes:
            raise click.MissingParameter(ctx=context, param=context.command.params[0])
        from mo_loop.conversion import Conversion

        if model is None or given.passes:
            show(listing(given, Conversion(options_of(context))))
            return
        legacy = LegacyFlags.of(context)
        require_local({"--dump": given.dump, "--visualize": given.visualize})
        target = target_of(named(model), target, legacy)
        if report_file is not None and is_among(report_file.place, pair_of(target)):
            # Not an error of ours, which would be written to this file.
            raise click.BadParameter(f"{report_file.place} is a file of the IR", ctx=context, param_hint="'--report'")
        require_places(model, target, {"--mapping": mapping, "--profile-json": given.profile_json})
        inputs = values_of(context, ConvertOptions)["input"]
        options = options_of(context, input=with_shapes(inputs, legacy.input_shape))
        shown = _displays(quiet, verbose)
        given = given.with_variables(os.environ)
        quiet = quiet and not is_json  # --quiet leaves out what is for people
        found = _convert(model, target, options, given, shown, mapping, durable, is_quiet=quiet and report_file is None)
        gc.freeze()  # the process ends soon: searching all objects for cycles would take a fifth of a large conversion
    if found is not None:
        with reported(debug, as_json=is_json):
            give(lambda wanted: _shown(found, wanted, warnings), form, report_file, quiet=quiet)


def _shown(found: dict[str, Any], form: str, warnings: list[str]) -> str:
    if form == "json":
        return json.dumps({**found, "warnings": warnings}, indent=1)
    from mo_loop.cli.conversion_summary import as_text

    return as_text(found)


def _displays(quiet: bool, verbose: bool) -> list[Any]:
    """The observers that show on stderr how far the conversion is."""
    if quiet:
        return []
    from mo_loop.cli.conversion_summary import Progress, TimeTable

    # The table is left last: it appears below the line of Progress.
    return [TimeTable(), Progress()] if verbose else [Progress()]


def _convert(
    model: str, target: str, options: ConvertOptions, given: PassOptions, shown: list[Any], mapping: str | None,
    durable: bool, *, is_quiet: bool,
) -> dict[str, Any] | None:
    """Convert, write the pair and the files of the options of passes and of `mapping`; returns the summary."""
    from mo_loop.conversion import Conversion
    from mo_loop.look.conversion_record import Record

    if not is_url(target):
        restore_pair(Path(target))
    record = Record(tensors=mapping is not None)
    conversion = Conversion(options, [record, *shown], stop_after=given.stop_after, check_passes=given.check_passes)
    inside = PassObservers(given, conversion, (model, *pair_of(target)))
    start = time.perf_counter()
    with ExitStack() as stack:
        path = stack.enter_context(opened(model))
        stack.enter_context(inside.shown())
        for each in shown:
            stack.enter_context(each)
        from mo_loop.converted_model import Model, write_pair

        converted = Model(conversion.run(path))
        converted.graph.sources = sources_of(model, path, converted.graph.sources)
        how = options.compress_to_fp16, conversion.observers
        if is_url(target):  # the functions of the library take 5 ms to load, which no other conversion needs
            from mo_loop.api import write_at_url

            sizes = write_at_url(converted, location_of(target), *how)
        else:
            sizes = write_pair(converted, Path(target), *how, durable=durable)
    seconds = time.perf_counter() - start
    inside.save()
    if mapping is not None:
        from mo_loop.look.conversion_record import mapping as mapping_of

        write_content(place_of(mapping), json.dumps({**mapping_of(record), "model": named(model)}, indent=1) + "\n")
    if is_quiet:
        return None
    from mo_loop.cli.conversion_summary import summary

    return summary(record, converted, named(model), named(target), sizes, options.compress_to_fp16, seconds)


def _require_sense(given: PassOptions, form: str, quiet: bool, verbose: bool) -> None:
    """UsageError for flags that contradict each other."""
    is_json = form == "json"
    pairs = [
        ("--quiet", quiet, "--verbose", verbose, "one reduces the output, the other extends it"),
        ("--passes", given.passes, "--format json", is_json, "the list of passes is text"),
        ("--passes", given.passes, "--quiet", quiet, "one prints a list, the other nothing"),
    ]
    for one, is_given, other, is_given_too, why in pairs:
        if is_given and is_given_too:
            raise UsageError(f"{one} and {other} contradict each other", why=why, hint="give one of them")
