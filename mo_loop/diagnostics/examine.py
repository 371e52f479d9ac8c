"""All findings of one model.

    report = examine("model.onnx", strict=True)

The model is converted in memory as `convert_model` would (conversion.py); what that says is joined by what the ONNX
model alone shows (onnx_checks.py) and by what the finished graph shows (ir_checks.py). Nothing is written.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mo_loop.diagnostics import ir_checks, onnx_checks
from mo_loop.diagnostics.collecting import Asked, Conversion
from mo_loop.diagnostics.diagnostic import Finding, Place, Report
from mo_loop.diagnostics.locator import Locator
from mo_loop.errors import (
    ConversionErrors,
    ConversionWarning,
    ExtensionError,
    FileError,
    MoLoopError,
    UsageError,
)
from mo_loop.extensions import collect_extensions
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.model import OnnxModel, opened, require_opset
from mo_loop.garbage_collection import paused_collector
from mo_loop.preprocessing.preparation import Preprocessing

if TYPE_CHECKING:
    from transforms.config import PassConfig


def examine(
    source: Any,
    *,
    input: Any = None,
    output: str | Sequence[str] | None = None,
    freeze: Mapping[str, Any] | None = None,
    rename: Mapping[str, str] | None = None,
    config: PassConfig | None = None,
    unroll: int = 0,
    strict: bool = False,
    sequence_io: str | None = None,
    extensions: Any = (),
    plugins: bool = True,
    layout: Any = None,
    mean_values: Any = None,
    scale_values: Any = None,
    scale: float | None = None,
    reverse_input_channels: bool = False,
    batch: int | None = None,
    compress_to_fp16: bool = False,
) -> Report:
    """Everything that would stop or worsen the conversion of `source`.

    The arguments are those of `convert_model` and `save_model`.

    A file that cannot be read, or an argument that does not fit this model, is not raised but said in the Report.

    Raises:
        UsageError: an argument makes no sense for any model.
        ExtensionError: an extension cannot be loaded.
    """
    if sequence_io not in (None, "packed"):
        raise UsageError(f"sequence_io is {sequence_io!r}", hint='give "packed", or nothing')
    prepared = Preprocessing.of(
        layout=layout, mean_values=mean_values, scale_values=scale_values, scale=scale,
        reverse_input_channels=reverse_input_channels, batch=batch,
    )  # fmt: skip
    added = collect_extensions(extensions, plugins=plugins)
    conversion = Conversion(Asked(added, prepared, config, rename, unroll, strict, sequence_io == "packed"))
    file = str(source) if isinstance(source, str | Path) else "model"
    try:
        model = opened(source)
        cut = prepared.of_batch(Cut.of(model, input, output, freeze))
    except (FileError, UsageError) as error:
        return Report(file, refused=error)
    except MoLoopError as error:  # nested too deeply, for one
        return Report(file, [Finding.of_error(error, Place(error.where))])
    with warnings.catch_warnings(record=True) as heard, paused_collector():
        warnings.simplefilter("always")
        try:
            report = _examined(file, model, cut, conversion)
            if compress_to_fp16 and conversion.graph is not None:
                report.findings += ir_checks.clipped(conversion.graph)
        except Exception as error:
            bug = MoLoopError(f"{type(error).__name__}: {error}", code="ML499")
            found = [Finding.of_error(each, Place(each.where)) for each in (*conversion.errors, bug)]
            report = Report(file, found, trouble=traceback.format_exc())
    told = [each.message for each in heard if isinstance(each.message, ConversionWarning)]
    for each in heard:
        if not isinstance(each.message, ConversionWarning):  # of an extension or a library: it is not about the model
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return Report(file, [*report.findings, *_told(told, model)], report.refused, report.trouble)


def _examined(file: str, model: OnnxModel, cut: Cut, conversion: Conversion) -> Report:
    locator = Locator(model)
    usage = onnx_checks.Usage(model, cut)
    lost = onnx_checks.LostData()
    try:
        require_opset(model)
        lost = onnx_checks.lost_data(model, usage)
        conversion.run(model, cut, usage, lost.inputs)
    except (ExtensionError, UsageError) as error:
        return Report(file, refused=error)
    except MoLoopError as error:
        conversion.errors += error.errors if isinstance(error, ConversionErrors) else [error]
    errors = [each for each in conversion.errors if not lost.explains(each)]
    findings = [*lost.findings, *(Finding.of_error(each, locator.at(each.where)) for each in _once(errors))]
    if conversion.graph is not None:
        findings += ir_checks.findings(conversion.graph, conversion.seen, locator)
    findings += onnx_checks.leftovers(usage)
    if all(each.level != "error" for each in findings):
        findings += onnx_checks.checked(model)
    return Report(file, findings)


def _once(errors: Sequence[MoLoopError]) -> list[MoLoopError]:
    """Errors of one code, message and place once: a node may be translated several times."""
    return list({(each.code, each.message, each.where): each for each in errors}.values())


def _told(heard: Sequence[ConversionWarning], model: OnnxModel) -> list[Finding]:
    locator = Locator(model)
    found = {}
    for each in heard:
        text = each.message.removeprefix(f"{each.where}: ")
        found[each.code, text, each.where] = Finding.of_code(each.code, text, locator.at(each.where))
    return list(found.values())
