"""Whether a file of ONNX Runtime's own tools is converted and computes what ONNX Runtime computes for it."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from mo_loop.support.workers import report_stage
from tests.models import fused
from tests.models.optimising import WHOLE_RANGE, Feeds, made
from tests.models.sources.exporting.inputs import read_cases

PASSED, NOT_MADE, REFUSED, FAILED, WRONG = "passed", "not made", "refused", "failed", "wrong"
MAKING = "making the variant"
BUILT = "fused"
"""The name of the models of tests/models/fused.py, which are in no folder."""
FLOAT, HALF = 2e-4, 2e-2
"""Largest difference, as a share of the largest number of the output."""
AS_OVC, ROUNDING = 1e-3, 1.5
"""Of WHOLE_RANGE: the largest difference as such a share, or as such a multiple of that of ovc's IR."""
COSINES = {"exact": 0.999, "fast": 0.995}
"""Smallest cosine between the outputs of a quantised file, by the conversion's `quantization`."""
NOT_QUANTISED = {"", "basic", "extended", "all", "fused", "heads", "f16"}
LAYOUT = "refused: Conv of com.microsoft.nchwc has the memory layout of the machine that wrote the file"
HALVES = (
    "each node alone gives ONNX Runtime's numbers for its inputs; sums of f32 differ in their last bit, halves of a "
    "step are then rounded to the other side, and these small networks amplify a step"
)
CONVOLUTIONAL = ("clip_dynamo", "cnn", "cnn_dynamo", "detection", "grouped", "grouped_dynamo", "upsampling",
                 "upsampling_dynamo", "vit", "vit_dynamo")
NO_STEPS = "after 0 steps the loop of DynamicQuantizeLSTM in exact mode has no batch; the IR of ovc does not run there"
EXPLAINED: dict[tuple[str, str], str] = {
    **{(name, "all"): LAYOUT for name in CONVOLUTIONAL},
    **{("lstm_bidirectional", variant): NO_STEPS for variant in WHOLE_RANGE},
    ("conv_1d_3d", "qdq"): HALVES,
    ("conv_1d_3d", "fused qdq"): HALVES,
    ("whisper_encoder", "signed extended"): HALVES,
    ("whisper_encoder_dynamo", "qdq"): HALVES,
    ("whisper_encoder_dynamo", "signed extended"): HALVES,
}
"""(model, variant) -> why it fails."""


@dataclass(frozen=True)
class Row:
    """One file: the model, the variant, the result."""

    name: str
    variant: str
    status: str
    text: str = ""


def reason(row: Row) -> str:
    """Why a file fails; empty if it is not known."""
    return EXPLAINED.get((row.name, row.variant), "")


def checked(task: tuple[str, str, str, str]) -> Row:
    """The result for (converter, folder, model, variant). Runs in a worker process."""
    converter, folder, name, variant = task
    with tempfile.TemporaryDirectory() as scratch:
        report_stage(MAKING)
        source, sets = _source(folder, name, scratch)
        try:
            path = made(source, variant, sets, Path(scratch))
        except Exception as error:
            return Row(name, variant, NOT_MADE, f"{variant}: {type(error).__name__}: {_line(error)}")
        report_stage("onnxruntime")
        try:
            expected = _expected(path, sets)
        except Exception as error:
            return Row(name, variant, NOT_MADE, f"{variant}: ONNX Runtime does not run it: {_line(error)}")
        if variant in WHOLE_RANGE:
            return _beside_ovc(name, variant, converter, path, sets, expected)
        worst = (0.0, "")
        is_quantised = not set(variant.split()) <= NOT_QUANTISED
        for mode in COSINES if is_quantised and converter == "mo_loop" else ("fast",):
            report_stage(f"conversion, {mode}")
            try:
                model = _converted(converter, path, mode)
            except Exception as error:
                return Row(name, variant, REFUSED, _line(error))
            report_stage(f"inference, {mode}")
            try:
                found = _run(model, sets)
            except Exception as error:
                return Row(name, variant, FAILED, _line(error))
            cosine = COSINES[mode] if is_quantised else None
            for right, each in zip(expected, found, strict=True):
                worst = max(worst, _difference(right, each, HALF if "f16" in variant else FLOAT, cosine))
    return Row(name, variant, WRONG if worst[0] > 1 else PASSED, worst[1])


def _beside_ovc(name: str, variant: str, converter: str, path: Path, sets: Sequence[Feeds],
                expected: Sequence[Any]) -> Row:
    """The result of a file with the runtime's default properties: as right as the IR of ovc, or better."""

    def share(converter: str, mode: str) -> float:
        report_stage(f"{converter}, {mode}")
        found = _run(_converted(converter, path, mode), sets, {"INFERENCE_PRECISION_HINT": "f32"})
        return max(_difference(*each, 1.0, None)[0] for each in zip(expected, found, strict=True))

    modes = ("fast", "exact") if converter == "mo_loop" else ("fast",)
    try:
        shares = [share(converter, mode) for mode in modes]
    except Exception as error:
        return Row(name, variant, FAILED, _line(error))
    text = ", ".join(f"{mode} {each:.1e}" for mode, each in zip(modes, shares, strict=True))
    if max(shares) <= AS_OVC:
        return Row(name, variant, PASSED, text)
    try:
        other = share("ovc", "fast")
    except Exception as error:
        return Row(name, variant, WRONG, f"{text}, ovc: {_line(error)}")
    return Row(name, variant, PASSED if max(shares) <= ROUNDING * other else WRONG, f"{text}, ovc {other:.1e}")


def _source(folder: str, name: str, scratch: str) -> tuple[Path, Sequence[Feeds]]:
    """The file of a model, and its sets of inputs."""
    if folder != BUILT:
        return Path(folder) / f"{name}.onnx", read_cases(Path(folder) / "cases.toml")[name].sets
    path = Path(scratch) / f"{name}.onnx"
    onnx.save(fused.MODELS[name](fused.SMALL), path)
    return path, fused.feeds(name, fused.SMALL)


def _expected(path: Path, sets: Sequence[Feeds]) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.intra_op_num_threads = 1  # else DynamicQuantizeLSTM quantises parts of a batch
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return [array for feeds in sets for array in session.run(None, dict(feeds))]


def _converted(converter: str, path: Path, mode: str) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if converter == "ovc":
            import openvino

            return openvino.convert_model(str(path))
        from mo_loop import convert_model

        return convert_model(path, quantization=mode).to_openvino()


PRECISE = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}


def _run(model: Any, sets: Sequence[Feeds], properties: dict[str, str] = PRECISE) -> list[Any]:
    import openvino

    compiled = openvino.Core().compile_model(model, "CPU", properties)
    return [np.array(array) for feeds in sets for array in compiled(dict(feeds)).values()]


def _difference(right: Any, found: Any, share: float, least: float | None) -> tuple[float, str]:
    """The difference as a multiple of what is allowed, and as text.

    Allowed are this share of the largest number, or with `least` a cosine that is not smaller.
    """
    right, found = np.asarray(right), np.asarray(found)
    if right.shape != found.shape:
        return np.inf, f"shape {found.shape} instead of {right.shape}"
    a, b = right.astype(np.float64).ravel(), found.astype(np.float64).ravel()
    if not a.size:
        return 0.0, "empty"
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return np.inf, "other numbers are finite"
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    if least is None:
        difference = float(np.abs(a - b).max(initial=0) / max(np.abs(a).max(initial=0), 1e-30))
        return difference / share, f"difference {difference:.1e} of the largest number"
    cosine = float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-30)) if np.any(a) or np.any(b) else 1.0
    return (1 - cosine) / (1 - least), f"cosine {cosine:.5f}"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:400] or type(error).__name__
