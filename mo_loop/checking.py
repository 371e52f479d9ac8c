"""check: the errors, warnings and notes of a conversion, as `mo-loop check` lists them.

    report = check("model.onnx", target="2026.4")
    assert report, report.text()
"""

from __future__ import annotations

from typing import Any

from mo_loop.diagnostics.diagnostic import CheckReport
from mo_loop.diagnostics.examine import examine
from mo_loop.options import ConvertOptions
from mo_loop.support.flags import made_of, takes


@takes(ConvertOptions)
def check(model: Any, **options: Any) -> CheckReport:
    """Find the errors, warnings and notes of the conversion of a model, without writing a file.

    Args:
        model: Path of an .onnx file, an open binary file, the bytes of one, or an `onnx.ModelProto`.
        options: Those of `convert_model`, which follow.

    Returns:
        The diagnostics, worst first. The report is true if it has neither errors nor warnings. If the model cannot be
        read, `refused` is the error.

    Raises:
        UsageError: an option is not valid for any model.
        ExtensionError: an extension cannot be loaded.
    """
    return examine(model, made_of(ConvertOptions, options, "check"))
