"""The packages that a comparison needs, which a plain installation does not have."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec

from mo_loop.errors import InputError, UsageError
from mo_loop.support.files import reason_of


def require_packages() -> None:
    """InputError unless OpenVINO and ONNX Runtime can be imported; neither is loaded."""
    missing = [name for name in ("onnxruntime", "openvino") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"{' and '.join(missing)} cannot be imported", why="verify runs the model and its IR", code="ML203",
            hint="pip install openvino onnxruntime",
        )  # fmt: skip


def require_interpreter(python: str) -> None:
    """UsageError unless `python` is an interpreter that can import the packages that run an IR."""
    try:
        done = subprocess.run([python, "-c", "import ml_dtypes, numpy, openvino"], capture_output=True, text=True)
    except OSError as error:
        raise UsageError(
            f"the interpreter {python} cannot be executed", why=reason_of(error),
            hint="give the path of a Python interpreter",
        ) from None  # fmt: skip
    if done.returncode:
        raise UsageError(
            f"the interpreter {python} cannot import openvino, numpy and ml_dtypes", code="ML203",
            why=(done.stderr.strip().splitlines() or [f"it ends with {done.returncode}"])[-1],
            hint=f"{python} -m pip install openvino numpy ml_dtypes",
        )  # fmt: skip
