"""The function of workers under a limit of the instructions: their log says whether the model has a layer that the
limit, and no processor, may crash. The message of a crash ends with the last line of the log.

The runtime chooses the kernel of MVN by the processor, and its parts by ONEDNN_MAX_CPU_ISA.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from mo_loop.compare.execution import runtime
from tests.running.processor import MAY_CRASH
from tests.running.workers import FUNCTION


class Noting(runtime.Compiled):
    """A compiled model, also noted in the log."""

    def __init__(self, model: Any, *settings: Any) -> None:
        print("no layer that crashes", file=sys.stderr, flush=True)
        super().__init__(model, *settings)
        layers = self.model.get_runtime_model().get_ops()
        is_layer = any(each.get_rt_info()["layerType"].astype(str) == "MVN" for each in layers)
        if is_layer or 'type="MVN"' in _text_of(model):
            print(MAY_CRASH, file=sys.stderr, flush=True)


def _text_of(model: Any) -> str:
    """The model with the bodies of control-flow operations, which that of the runtime does not show."""
    import openvino

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        openvino.serialize(model, str(path))
        return path.read_text("utf-8")


module, _, name = os.environ[FUNCTION].partition(":")
serve = getattr(import_module(module), name)
runtime.Compiled = Noting  # type: ignore[misc]
