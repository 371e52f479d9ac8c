"""VerifyOptions: the arguments of `verify`, the resulting properties of the runtime, and the packages that a comparison
needs, which a plain installation does not have.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, get_args

from mo_loop.errors import InputError, UsageError
from mo_loop.options import ConvertOptions
from mo_loop.support.files import reason_of
from mo_loop.support.flags import COMPARISON, FILES, PASSES, argument, flag

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
    inputs: Sequence[Path | Mapping[str, Any]] = flag(
        (), "A set of inputs: an .npz with arrays by tensor name, .npy files (NAME=FILE.npy), or a folder of .pb files "
        "as ONNX's tests have them. By default inputs are generated. Can be repeated.", FILES,
        "--input-data", "--inputs", "inputs", kind="path", metavar="FILE",
        library="Sets of inputs: .npz files, .npy files, folders of .pb files as ONNX's tests have them, or dicts of "
        "names and arrays. By default inputs are generated.",
    )
    sets: int = flag(
        3, "The number of sets of inputs that are generated. Up to two more have a dynamic dimension of size 0, if "
        "ONNX Runtime accepts it.", FILES, least=1, show_default=True, metavar="N",
    )
    sizes: str | Sequence[Any] | Mapping[str, Any] | None = flag(
        None, 'Sizes that inputs of the IR get before it runs, as by ov.Model.reshape: "x[8,3,320,?]". ONNX Runtime '
        "runs the model with inputs of any size.", FILES, metavar="SIZES",
        note="They are written as in the option `input` of a conversion. An IR with states is refused.",
    )
    steps: int = flag(
        4, "The number of steps of each sequence, for an IR with states.", FILES, least=1, show_default=True,
        metavar="N", place=1,
        note="The IR runs step by step, with new states for each of the `sets`. `inputs` are then the steps of one "
        "sequence; for a model with a loop over a sequence, each of them is a whole sequence. `layers`, `passes`, "
        "`dump` and `against` are refused.",
    )
    seed: int = flag(0, "The seed of the generated inputs.", FILES, least=0, show_default=True, metavar="N")
    save: Path | None = flag(
        None, "Write the inputs, and the outputs of all sides, to this folder as .npz.", FILES, kind="path",
        metavar="DIR",
    )
    expected: Sequence[Path | Mapping[str, Any]] = flag(
        (), "Outputs that are compared instead of those of ONNX Runtime: an .npz with arrays by tensor name, or a "
        "folder with output_0.pb. One FILE for each --input-data, in the same order. Outputs in the files of "
        "--input-data need no --expected.", COMPARISON, kind="path", metavar="FILE",
        library="Outputs that are compared instead of those of ONNX Runtime, for each set of `inputs` in order: .npz "
        "files, folders with output_0.pb, or dicts of names and arrays. A set whose files have outputs needs none.",
    )
    custom_ops: Sequence[Path] = flag(
        (), "A library of custom operators that ONNX Runtime loads. Can be repeated.", COMPARISON, kind="path",
        metavar="LIB", place=1,
    )
    rtol: float | None = flag(
        None, "The relative tolerance of the outputs. If it is given, the outputs decide alone. By default it is 1e-3 "
        "for f32, and the pieces of the IR decide where outputs are beyond it.", COMPARISON, kind="number",
        metavar="NUMBER", least=0, place=1,
    )
    atol: float | None = flag(
        None, "The absolute tolerance of the outputs. If it is given, the outputs decide alone. By default it is 1e-5 "
        "of the largest number of the output.", COMPARISON, kind="number", metavar="NUMBER", least=0, place=1,
    )
    tolerances: Mapping[str, tuple[float, float]] | None = flag(
        None, "The tolerances of one output, which decide alone. Can be repeated.", COMPARISON, "--tolerance",
        "tolerances", multiple=True, metavar="NAME=RTOL,ATOL", place=1,
        library="Tolerances of single outputs: a dict of names and pairs (rtol, atol).",
    )
    layers: bool = flag(
        False, "Compare the pieces of the IR even if the outputs agree, and find the cause of a difference. If outputs "
        "differ only in another precision than f32, the tensors in that precision are compared.", COMPARISON, place=1,
    )
    memory: int | None = flag(
        None, "With --layers: the memory for the values of both sides, for example 4G.  [default: a quarter of the "
        "machine's]", COMPARISON, "--layers-memory", "--memory", "memory", kind="size", metavar="SIZE", place=1,
        library="With `layers`: bytes that the values of both sides may take. By default a quarter of the machine's "
        "memory.",
    )
    limit: float = flag(
        600.0, "End a call of a runtime that takes longer.", COMPARISON, "--call-timeout", "--timeout", "limit",
        kind="number", least=1, show_default=True, metavar="SECONDS", place=1,
        library="Seconds that one call of a runtime may take.",
    )
    device: str = flag(
        "CPU", "The device that runs the IR. Without IR, the model is converted for this device if it is a GPU, and "
        "for any device otherwise.", COMPARISON, show_default=True, metavar="NAME", place=1,
        library='The device on which OpenVINO runs the IR: "CPU", "GPU", "GPU.1" ...',
    )
    precision: Precision = flag(
        F32, "Run the IR in this precision as well as in f32. The value default is the precision of the device.",
        COMPARISON, choices=PRECISIONS, show_default=True, place=1,
        note="The error of another precision then does not count as one of the conversion.",
    )
    against: Sequence[Literal["ovc"]] = flag(
        (), "Compare the IR of this other converter as well.", COMPARISON, choices=(PEER,), place=1,
        library='Other converters whose IR is compared too: "ovc".',
    )
    passes: bool = flag(False, "If outputs differ, find the pass that changed the numbers.", PASSES)
    dump: Path | None = flag(
        None, "Compare all tensors, also where outputs agree, and write a dump to DIR, as convert does: in its "
        "index.html every tensor has the colour of its difference, and loops have a plot by iteration. Implies "
        "--layers. With IR, the page shows the graph of the IR.", PASSES, kind="folder", metavar="DIR",
        library="A folder for the dump of the conversion (docs/dump.md). On its page the colour of a tensor shows its "
        "difference. It implies `layers`.",
    )
    python: str | None = argument(
        None, "The Python interpreter that runs the IR, of an environment with another OpenVINO release."
    )
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
    def conversion(self) -> ConvertOptions:
        """`options`, as ConvertOptions."""
        return ConvertOptions.of(self.options)

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
