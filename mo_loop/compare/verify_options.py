"""VerifyOptions: the arguments of `verify`, the resulting properties of the runtime, and the packages that a comparison
needs, which a plain installation does not have.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

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

F32, DEFAULT = "f32", "default"
PRECISIONS = (F32, "f16", "bf16", DEFAULT)
"""The values of `precision`."""

PEER = "ovc"
"""The other converter."""


@dataclass(frozen=True)
class VerifyOptions:
    """The arguments of `verify`, without the model. UsageError if one of them has no such value."""

    ir: Path | None = argument(None, "The .xml of its IR. Without it the model is converted with `options`.")
    inputs: Sequence[Path | Mapping[str, Any]] = argument((), (
        "Sets of inputs: .npz files, .npy files, folders of .pb in the layout of ONNX's tests, or arrays by name. "
        "Without them, `sets` of them are generated from `seed`."
    ))
    sets: int = argument(3, "The number of generated sets.")
    seed: int = argument(0, "The seed of generated inputs.")
    rtol: float | None = argument(None, (
        "The relative tolerance of the outputs. By default it is that of the type, and outputs beyond it are decided "
        "piece by piece (`mo_loop.compare.deciding`)."
    ))
    atol: float | None = argument(None, "The absolute tolerance, likewise.")
    device: str = argument("CPU", "The device of OpenVINO.")
    precision: str = argument(F32, (
        '"f32", "f16", "bf16" or "default". Another precision than f32 is compared in addition to f32, so that its '
        "cost does not count as an error of the conversion."
    ))
    against: Sequence[str] = argument((), 'Other converters to compare with: "ovc".')
    save: Path | None = argument(None, "A folder for the inputs and the outputs of all sides, as .npz.")
    limit: float = argument(600.0, "Seconds that one call of a runtime may take.")
    layers: bool = argument(False, "Compare the pieces also where the outputs agree.")
    passes: bool = argument(False, "If outputs differ, find the pass of the conversion that changed the numbers.")
    memory: int | None = argument(None, (
        "Bytes that the values of both sides may take for `layers`; by default a quarter of the machine's memory."
    ))
    dump: Path | None = argument(None, (
        "A folder for the dump of the conversion (docs/dump.md). Its page shows every tensor in the colour of its "
        "difference, also if the outputs agree. It implies `layers`."
    ))
    steps: int = argument(4, (
        "The steps of each sequence, for an IR with states. The IR runs step by step, from a reset for each of the "
        "`sets`. `layers`, `passes`, `dump` and `against` are refused. `inputs` are the steps of one sequence; for a "
        "model with a loop over a sequence, each of them is a whole sequence."
    ))
    expected: Sequence[Path | Mapping[str, Any]] = argument((), (
        "Outputs that replace those of ONNX Runtime, for each set of `inputs` in order: .npz files, folders with "
        "output_0.pb, or arrays by name. Sets with outputs of their own (output_0.pb, arrays of an .npz) need none."
    ))
    custom_ops: Sequence[Path] = argument((), "Libraries with custom operators, which ONNX Runtime loads.")
    tolerances: Mapping[str, tuple[float, float]] | None = argument(None, "(rtol, atol) of single outputs.")
    python: str | None = argument(None, "The interpreter of another OpenVINO release, which runs the IR.")
    sizes: Any = argument(None, (
        "Sizes that inputs of the IR are given before it runs, as the option `input` of a conversion writes them: "
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
