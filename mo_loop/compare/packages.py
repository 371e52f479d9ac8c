"""The packages that a comparison needs, which a plain installation does not have."""

from __future__ import annotations

from importlib.util import find_spec

from mo_loop.errors import InputError


def require_packages() -> None:
    """InputError unless OpenVINO and ONNX Runtime can be imported; neither is loaded."""
    missing = [name for name in ("onnxruntime", "openvino") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"{' and '.join(missing)} cannot be imported", why="verify runs the model and its IR", code="ML203",
            hint="pip install openvino onnxruntime",
        )  # fmt: skip
