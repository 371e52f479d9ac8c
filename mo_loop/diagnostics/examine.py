"""examine: all diagnostics of one model.

    report = examine("model.onnx", ConvertOptions(strict=True))

The model is converted in memory by a Conversion that collects its errors (mo_loop/conversion.py). onnx_checks.py adds
the findings of the ONNX model alone, ir_checks.py those of the finished graph. Nothing is written.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mo_loop.conversion import Conversion
from mo_loop.diagnostics import ir_checks, onnx_checks
from mo_loop.diagnostics.diagnostic import CheckReport, Diagnostic, of_warnings
from mo_loop.diagnostics.state_checks import state_diagnostics
from mo_loop.errors import (
    ConversionErrors,
    ConversionWarning,
    ExtensionError,
    FileError,
    MoLoopError,
    UsageError,
    traceback_text,
)
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.model import OnnxModel, opened, require_opset
from mo_loop.graph import Graph
from mo_loop.options import ConvertOptions
from mo_loop.support.garbage_collection import paused_collector
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.loops.specialize_loops import SpecializeLoops
from mo_loop.transforms.pipelines import LOOPS


def examine(source: Any, options: ConvertOptions | None = None) -> CheckReport:
    """Find the errors, warnings and notes of the conversion of `source`.

    If the file cannot be read, or an option does not fit this model, the CheckReport has the error.

    Raises:
        UsageError: an option is not valid for any model.
        ExtensionError: an extension cannot be loaded.
    """
    config = PassConfig()
    config.disable(*LOOPS, SpecializeLoops)  # the notes are about the loops of the model
    seen = ir_checks.Seen(config)
    options = options or ConvertOptions()
    if options.config is not None:
        seen.config.adopt(options.config)
    seen.config.explain(*ir_checks.EXPLAINED)
    conversion = Conversion(replace(options, config=seen.config), [seen], collect=True)
    file = str(source) if isinstance(source, str | Path) else "model"
    try:
        model = opened(source, options.allowed_folders, options.external_data_dir)
        cut = conversion.cut(model)
    except (FileError, UsageError) as error:
        return CheckReport(file, refused=error)
    except MoLoopError as error:  # nested too deeply, for one
        return CheckReport(file, [Diagnostic.of_error(error)])
    with warnings.catch_warnings(record=True) as heard, paused_collector():
        warnings.simplefilter("always")
        try:
            report = _examined(file, model, cut, conversion, seen)
        except Exception as error:
            bug = MoLoopError(f"{type(error).__name__}: {error}", code="ML499")
            found = [Diagnostic.of_error(each) for each in (*conversion.errors, bug)]
            report = CheckReport(file, found, trouble=traceback_text(error))
    assumptions = [each.message for each in heard if isinstance(each.message, ConversionWarning)]
    for each in heard:
        if not isinstance(each.message, ConversionWarning):  # of an extension or a library: it is not about the model
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return replace(report, diagnostics=[*report.diagnostics, *of_warnings(assumptions)])


def _examined(file: str, model: OnnxModel, cut: Cut, conversion: Conversion, seen: ir_checks.Seen) -> CheckReport:
    usage = onnx_checks.Usage(model, cut)
    lost = onnx_checks.LostData()
    graph: Graph | None = None
    try:
        require_opset(model)
        lost = onnx_checks.lost_data(model, usage)
        graph = conversion.convert(model, lost.given(cut))
    except (ExtensionError, UsageError) as error:
        return CheckReport(file, refused=error)
    except MoLoopError as error:
        conversion.errors += error.errors if isinstance(error, ConversionErrors) else [error]
    errors = [each for each in conversion.errors if usage.is_needed(each.origin) and not lost.explains(each)]
    diagnostics = [*lost.diagnostics, *(Diagnostic.of_error(each) for each in _once(errors))]
    if graph is not None and not lost.inputs:
        diagnostics += ir_checks.diagnostics(graph, seen)
        diagnostics += state_diagnostics(graph) if seen.states is None else seen.states
        diagnostics += ir_checks.clipped(graph) if conversion.options.compress_to_fp16 else ()
    diagnostics += onnx_checks.leftovers(usage)
    if all(each.level != "error" for each in diagnostics):
        diagnostics += onnx_checks.checked(model)
    return CheckReport(file, diagnostics, sizes={} if graph is None else graph.rt_info.get("sizes", {}))


def _once(errors: Sequence[MoLoopError]) -> list[MoLoopError]:
    """Errors of one code, message and place once: a node may be translated several times."""
    return list({(each.code, each.message, each.where): each for each in errors}.values())
