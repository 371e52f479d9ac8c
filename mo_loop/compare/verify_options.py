"""VerifyOptions: the arguments of `verify`, the resulting properties of the runtime, and the packages that a comparison
needs, which a plain installation does not have.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args

from mo_loop.errors import InputError, UsageError
from mo_loop.support.files import reason_of
from mo_loop.support.flags import argument

if TYPE_CHECKING:
    from mo_loop.options import ConvertOptions

Feeds = dict[str, Any]

Path = str | os.PathLike[str]

Size = int | tuple[int, int | None]
"""A size of an input, or its least and its greatest (None: no limit)."""

Sizes = Mapping[str, Sequence[Size]]
"""The sizes of inputs, by any of their names."""

Precision = Literal["f32", "f16", "bf16", "default"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
"""The values of `precision`."""

F32: Precision = "f32"
DEFAULT: Precision = "default"

PEER: Literal["ovc"] = "ovc"
"""The other converter."""


@dataclass(frozen=True)
class VerifyOptions:
    """The arguments of `verify`, without the model. UsageError if one of them has no such value."""

    ir: Path | None = argument(None, "The .xml of the IR. Without it the model is converted with `options`.")
    inputs: Sequence[Path | Mapping[str, Any]] = argument((), (
        "Sets of inputs: .npz files, .npy files, folders of .pb files as ONNX's tests have them, or dicts of names and "
        "arrays. By default inputs are generated."
    ))
    sets: int = argument(3, "The number of sets of inputs that are generated.")
    seed: int = argument(0, "The seed of the generated inputs.")
    rtol: float | None = argument(None, (
        "The relative tolerance of the outputs. By default the element type of an output gives its tolerance, and "
        "if an output is beyond it, the pieces of the model decide (docs/verify.md)."
    ))
    atol: float | None = argument(None, "The absolute tolerance of the outputs, with the same default.")
    device: str = argument("CPU", 'The device on which OpenVINO runs the IR: "CPU", "GPU", "GPU.1" ...')
    precision: Precision = argument(F32, (
        'The precision of the inference: "f32", "f16", "bf16", or "default" for that of the device. Another one than '
        "f32 is compared in addition to f32, so that its error does not count as one of the conversion."
    ))
    against: Sequence[Literal["ovc"]] = argument((), 'Other converters whose IR is compared too: "ovc".')
    save: Path | None = argument(None, "A folder in which the inputs and the outputs of all sides are stored, as .npz.")
    limit: float = argument(600.0, "Seconds that one call of a runtime may take.")
    layers: bool = argument(False, "Compare the pieces of the model even if the outputs agree.")
    passes: bool = argument(False, "If outputs differ, find the pass of the conversion that changed the numbers.")
    memory: int | None = argument(None, (
        "With `layers`: bytes that the values of both sides may take. By default a quarter of the machine's memory."
    ))
    dump: Path | None = argument(None, (
        "A folder for the dump of the conversion (docs/dump.md). On its page the colour of a tensor shows its "
        "difference. It implies `layers`."
    ))
    steps: int = argument(4, (
        "For an IR with states: the number of steps of each sequence. The IR runs step by step, with new states for "
        "each of the `sets`. `inputs` are then the steps of one sequence; for a model with a loop over a sequence, "
        "each of them is a whole sequence. `layers`, `passes`, `dump` and `against` are refused."
    ))
    expected: Sequence[Path | Mapping[str, Any]] = argument((), (
        "Outputs that are compared instead of those of ONNX Runtime, for each set of `inputs` in order: .npz files, "
        "folders with output_0.pb, or dicts of names and arrays. A set whose files have outputs needs none."
    ))
    custom_ops: Sequence[Path] = argument((), "Libraries of custom operators that ONNX Runtime loads.")
    tolerances: Mapping[str, tuple[float, float]] | None = argument(
        None, "Tolerances of single outputs: a dict of names and pairs (rtol, atol)."
    )
    python: str | None = argument(
        None, "The Python interpreter that runs the IR, of an environment with another OpenVINO release."
    )
    sizes: str | Sequence[Any] | Mapping[str, Any] | None = argument(None, (
        "Sizes that inputs of the IR get before it runs, written as in the option `input` of a conversion: "
        '"x[8,3,320,?]". ONNX Runtime runs the model with inputs of any size. An IR with states is refused.'
    ))
    options: ConvertOptions | Mapping[str, Any] | None = argument(None, (
        'The options of the conversion, as ConvertOptions or by name: {"target": "2026.4"}.'
    ))

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", self.layers or self.dump is not None)
        if self.precision not in PRECISIONS:
            raise UsageError(f"precision is {self.precision!r}", hint=f"give one of {', '.join(PRECISIONS)}")
        if unknown := [each for each in self.against if each != PEER]:
            raise UsageError(f"the converter {unknown[0]!r} is not known", hint=f"give {PEER}")
        for count, what in ((self.sets, f"{self.sets} sets of inputs"), (self.steps, f"{self.steps} steps")):
            if count < 1:
                raise UsageError(f"{what} cannot be compared", hint="give at least 1")

    @property
    def given_sizes(self) -> Sizes:
        """`sizes` by input, after `verify` has read them."""
        return self.sizes if isinstance(self.sizes, Mapping) else {}

    @property
    def has_tolerance(self) -> bool:
        """Whether tolerances were given, which no other rule widens."""
        return self.rtol is not None or self.atol is not None or bool(self.tolerances)


def properties_of(precision: str, device: str) -> dict[str, Any]:
    """All processors, at least two threads, and the precision; `default` leaves it to the device."""
    threads = 0 if (os.cpu_count() or 1) > 1 else 2
    found: dict[str, Any] = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": precision}
    if precision == DEFAULT:
        found |= {"INFERENCE_PRECISION_HINT": None, "DYNAMIC_QUANTIZATION_GROUP_SIZE": None}
    if not device.startswith("CPU"):  # they are properties of the CPU device
        found |= {"INFERENCE_NUM_THREADS": None, "NUM_STREAMS": None, "DYNAMIC_QUANTIZATION_GROUP_SIZE": None}
    return found


def require_packages() -> None:
    """InputError unless OpenVINO and ONNX Runtime can be imported; neither is loaded."""
    missing = [name for name in ("onnxruntime", "openvino") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"{' and '.join(missing)} cannot be imported", why="verify runs the model and its IR", code="ML203",
            hint="pip install openvino onnxruntime",
        )


def require_interpreter(python: str) -> None:
    """UsageError unless `python` is an interpreter that can import the packages that run an IR."""
    try:
        done = subprocess.run([python, "-c", "import ml_dtypes, numpy, openvino"], capture_output=True, text=True)
    except OSError as error:
        raise UsageError(
            f"the interpreter {python} cannot be executed", why=reason_of(error),
            hint="give the path of a Python interpreter",
        ) from None
    if done.returncode:
        raise UsageError(
            f"the interpreter {python} cannot import openvino, numpy and ml_dtypes", code="ML203",
            why=(done.stderr.strip().splitlines() or [f"it ends with {done.returncode}"])[-1],
            hint=f"{python} -m pip install openvino numpy ml_dtypes",
        )
