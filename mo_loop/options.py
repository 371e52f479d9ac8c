"""ConvertOptions: the options of a conversion, which the library, `convert`, `batch` and `check` share.

    options = ConvertOptions(input="x[1,3,224,224]", layout="nhwc->nchw")
    Conversion(options).run("model.onnx")                     # mo_loop/conversion.py

A field is all that there is of an option: `convert_model` has an argument of its name, commands have its flag, the
file of `batch --config` has its key, and the rt_info of the IR records it. `save_model` has `compress_to_fp16`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mo_loop.conversion_limits import Limits
from mo_loop.errors import UsageError
from mo_loop.support.flags import COMMON, CONVERSION, FILES, IMAGES, STATES, argument, described, flag, made_of
from mo_loop.target import ANY, DEVICES, Target
from mo_loop.transformations import Transformation, transformations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mo_loop.extensions import Extension
    from mo_loop.transforms.config import PassConfig

QUANTIZATION = ("fast", "portable", "exact")
"""The values of the option `quantization`."""


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """The options of a conversion. It can be pickled if its values can.

    Raises:
        UsageError: `transform` cannot be understood; `beam_idx` or `stateful_pairs` is given without `stateful`;
            `stateful_pairs` is not a mapping of names; `sequence_io`, `device` or `quantization` is not one of the
            values below, or `target` is not a supported release or range.

    Args:
    """

    input: str | Sequence[Any] | Mapping[str, Any] | None = flag(
        None, 'Inputs as "name[shape]{type}->value", separated by commas: "x[1,3,?,224..512],rate->16000".', FILES,
        metavar="TEXT",
        library='The inputs, as text: "x[1,3,?,224..512],rate->16000". Each is a name, its shape in brackets, its '
        "element type in braces, and after an arrow a value that makes it a constant; only the name is required. Or a "
        "dict of names and shapes, or a list of names and of tuples with a name, a shape and an element type. A shape "
        "without a name is that of the first input, a list of shapes those of the inputs in their order. A shape is a "
        "sequence of ints, None or -1 (unknown), pairs (bounds) and strings (symbols), or an openvino.PartialShape. "
        "The name of an inner tensor makes it an input: the nodes before it are left out.",
    )
    output: str | Sequence[str] | None = flag(
        None, "Tensors that become the outputs, separated by commas. Here and in other options a name with commas, "
        "brackets or = can be in quotes.", FILES, metavar="NAMES",
        library="The tensors that become the outputs: a list of names, or names in one text, separated by commas. A "
        "name in a text that has commas, brackets or = itself is in quotes.",
    )
    freeze: Mapping[str, Any] | None = flag(
        None, 'Make an input a constant: rate=16000, "flags=[1,0]". Can be repeated.', FILES,
        metavar="NAME=VALUE", multiple=True, place=1,
        library="Inputs that become constants: a dict of names and values. The name of an inner tensor replaces this "
        "tensor, and the nodes before it are left out.",
    )
    rename: Mapping[str, str] | None = flag(
        None, "Rename a tensor in the IR; for a tensor in a body, OLD is its path. Can be repeated.", FILES,
        metavar="OLD=NEW", multiple=True, place=1,
        library="Tensors that get other names in the IR: a dict of old and new names. A tensor in a body has the path "
        "loop/tensor as its old name.",
    )
    config: PassConfig | None = argument(
        None, "Passes to enable, disable or explain, and callbacks that exclude nodes (`mo_loop.transforms.config`)."
    )
    unroll: int = flag(
        0, "Unroll loops with a known number of iterations, if it is at most N. Sizes of inputs that determine the "
        "number cannot change later.", CONVERSION, metavar="N", least=0, place=1,
        library="Unroll loops with a known number of iterations, if it is at most this one. Sizes of inputs that "
        "determine the number cannot change later.",
    )
    static: bool = flag(
        False, "Convert only for the sizes that the inputs declare. What follows from these sizes is computed now, and "
        "the IR refuses other sizes. By default sizes may change later.", CONVERSION,
    )
    strict: bool = flag(
        False, "Treat warnings about assumptions of the conversion as errors.", CONVERSION, place=2,
        note="The assumptions are about inner names that hide outer ones, branches whose outputs the following nodes "
        "cannot read, operators, inputs and attributes that the opset does not have, and ranks that are only declared.",
    )
    sequence_io: Literal["packed"] | None = flag(
        None, "Turn a sequence input or output into two tensors, name.data and name.shapes.", FILES,
        choices=("packed",), place=1,
        library='"packed": a sequence that is an input or output of the model becomes two tensors, name.data with all '
        "elements flattened and concatenated, and name.shapes with a row for the shape of each "
        "(`mo_loop.pack_sequence`). An optional input is assumed to be present. None: such a model is refused.",
    )
    extensions: Extension | Sequence[Extension] = flag(
        (), "A Python file with passes or translators, which is executed. Can be repeated.", CONVERSION,
        "--extension", metavar="FILE", kind="path", place=3,
        library="Passes and translators, one source or a list: paths of Python files, which are executed, modules with "
        "a function `register`, such functions, or `mo_loop.Extensions`.",
    )
    plugins: bool = flag(
        True, "Ignore the extensions of installed packages.", CONVERSION, "--no-plugins", place=3,
        library="Use the extensions of installed packages.",
    )
    layout: str | Sequence[str] | Mapping[str, str] | None = flag(
        None, "The layout of inputs and outputs, and after an arrow their layout in the IR: "
        'nchw, or "x(nhwc->nchw),y(n...)".', IMAGES, metavar="TEXT", place=COMMON,
        library='The layout of inputs and outputs, and after an arrow their layout in the IR: "nhwc->nchw" for the '
        'only input, "x(nhwc->nchw),y(n...)", a list for the inputs in their order, or a dict of names and layouts.',
    )
    mean_values: str | float | Sequence[Any] | Mapping[str, Any] | NDArray[Any] | None = flag(
        None, "Numbers subtracted from inputs, for each channel or one for all: "
        '"[123.7,116.3,103.5]", or "x[127.5],y[1,2,3]".', IMAGES, metavar="TEXT", place=COMMON,
        library='Numbers that are subtracted from inputs, one for each channel or one for all: a number or a list for '
        'the only input, a list of lists for the inputs in their order, a dict of names and numbers or lists, or text '
        'such as "x[127.5],y[1,2,3]".',
    )
    scale_values: str | float | Sequence[Any] | Mapping[str, Any] | NDArray[Any] | None = flag(
        None, "Numbers by which inputs are divided, after the mean is subtracted, in the same notation.", IMAGES,
        metavar="TEXT", place=1,
        library="Numbers by which inputs are divided, after the mean is subtracted. Values are those of `mean_values`.",
    )
    scale: float | None = flag(
        None, "One number by which every input is divided, after the mean is subtracted.", IMAGES, metavar="NUMBER",
        kind="number", place=1, note="Only inputs of floating-point numbers can be divided.",
    )
    reverse_input_channels: bool = flag(
        False, "Reverse the channels, RGB or BGR, of every input that has three, before mean and scale.", IMAGES,
        place=1,
    )
    batch: int | None = flag(
        None, "The batch size of all inputs: dimension N of the layout, or the first dimension.", IMAGES, metavar="N",
        least=1, place=1,
    )
    target: str | None = flag(
        None, "The OpenVINO release on which the IR runs, such as 2025.4, or a range such as 2024.6-2026.4. Operations "
        "that only other releases need are left out. A feature that one of these releases lacks is an error. The "
        "default is all supported releases that run the model.", CONVERSION, "--target", "releases", metavar="RELEASE",
        recorded=False,
    )
    device: Literal["any", "CPU", "GPU", "ARM"] = flag(
        ANY, "The device on which the IR runs. For any, the IR avoids the errors of all devices where that costs the "
        "others nothing; for GPU and ARM (the CPU device on ARM processors) also the others of that device. "
        "docs/devices.md lists them.", CONVERSION, choices=DEVICES,
        library='The device on which the IR runs. With "any", the IR avoids the errors of all devices where that costs '
        'the others nothing. With "GPU", or "ARM" for the CPU device on ARM processors, it also avoids the other '
        "errors of that device. docs/devices.md lists them.",
    )
    quantization: Literal["fast", "portable", "exact"] = flag(
        "fast", "How quantised activations are computed. fast uses integer kernels, and a result may differ by one "
        "quantisation step. portable computes layers that may saturate on CPUs without VNNI in f32, and the others as "
        "fast does. exact keeps ONNX's numbers.", CONVERSION, choices=QUANTIZATION,
        library='How quantised activations are computed. "fast" uses integer kernels, and a result may differ by one '
        'quantisation step. "portable" computes layers that may saturate on CPUs without VNNI in f32, and the others '
        'as "fast" does. "exact" keeps ONNX\'s numbers.',
    )
    transform: str | Sequence[Any] | None = flag(
        None, "Make states that the runtime keeps from one inference to the next, in the spelling of the Model "
        "Optimizer: LowLatency2[sequence_length=1] for loops and recurrent layers, "
        "MakeStateful[param_res_names={'in':'out'}] for inputs and outputs. docs/states.md explains the arguments.",
        STATES, metavar="NAME[ARGUMENT=VALUE],...",
        library="Transformations that make states, which the runtime keeps from one inference to the next. Text in the "
        "spelling of the Model Optimizer, a pair of a name and a dict of arguments, or a list of these: "
        '("LowLatency2", {"sequence_length": 1}) for loops and recurrent layers, ("MakeStateful", {"param_res_names": '
        '{"in": "out"}}) for inputs and outputs. "MakeStateful" without arguments finds the pairs. docs/states.md '
        "explains the arguments.",
    )
    stateful: bool = flag(
        False, "Find the inputs and outputs that a caller would carry from one inference to the next, such as key and "
        "value caches, and keep them in the runtime instead.", STATES, place=COMMON,
    )
    stateful_pairs: Mapping[str, str] | None = flag(
        None, "With --stateful: OUT is the next value of the input IN. With nothing after =, IN is not made a state. "
        "Can be repeated.", STATES, "--stateful-pair", metavar="IN=OUT", multiple=True,
        library="With `stateful`: a dict of inputs and the outputs with their next values. An input with the empty "
        "name as its output is not made a state. The names are those of the ONNX model, also with `rename`.",
    )
    beam_idx: bool = flag(
        False, "With --stateful, add the input beam_idx, which reorders the caches, as openvino_genai and "
        "optimum-intel expect.", STATES,
        library="With `stateful`, add the input beam_idx, which reorders the caches, as openvino_genai and "
        "optimum-intel expect. It is i32 [batch]: for each sequence, the index of the sequence of the previous step "
        "that it continues.",
    )
    allow_external: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = flag(
        (), "Read external data below this folder too, also links and files with several names. By default only "
        "files in the folder of the model are read. Can be repeated.", FILES, metavar="DIR", kind="folder", place=1,
        recorded=False, library="More folders below which external data may be read, also links and files with several "
        "names: one or a list. By default only files in the folder of the model are read.",
    )
    external_data_dir: str | os.PathLike[str] | None = argument(
        None, "The folder of the external data of a model in memory (bytes, an `onnx.ModelProto`); its files are "
        "read by the rules for files in the folder of a model.", recorded=False,
    )
    limits: Limits | Mapping[str, Any] | None = flag(
        None, "A limit on the work that a model can cause, for example nodes=5000000, folded_bytes=4G or time=10m. "
        "docs/limits.md lists the names. Can be repeated.", CONVERSION, "--limit", metavar="NAME=VALUE",
        multiple=True, place=2, recorded=False,
        library='Limits on the work that a model can cause: a dict of names and values, {"nodes": 5_000_000, "time": '
        '"10m"}, or `mo_loop.conversion_limits.Limits`. docs/limits.md lists the names.',
    )
    compress_to_fp16: bool = flag(
        False, "Store f32 weights as f16. By default all weights keep their numbers.", CONVERSION, recorded=False,
        library="This is for commands that write an IR: `save_model` has an argument of this name.",
    )
    exact_order: bool = flag(
        False, "Add floating-point numbers in the order of the steps of a loop, also where only their sum is read. "
        "docs/loops.md describes the effect.", CONVERSION, place=1,
    )

    @classmethod
    def of(cls, given: ConvertOptions | Mapping[str, Any] | None) -> ConvertOptions:
        """The options themselves, or those of a mapping by name."""
        return given if isinstance(given, ConvertOptions) else made_of(cls, given or {}, "options")

    def __post_init__(self) -> None:
        if self.sequence_io not in (None, "packed"):
            raise UsageError(f"sequence_io is {self.sequence_io!r}", hint='give "packed", or nothing')
        if self.quantization not in QUANTIZATION:
            raise UsageError(f"quantization is {self.quantization!r}", hint=f"give {' or '.join(QUANTIZATION)}")
        if self.device not in DEVICES:
            raise UsageError(f"device is {self.device!r}", hint=f"give {', '.join(DEVICES[:-1])} or {DEVICES[-1]}")
        if self.target is not None:
            _ = self.releases
        if self.transform is not None:
            object.__setattr__(self, "transform", transformations(self.transform))
        if self.stateful_pairs is not None:
            _require_pairs(self.stateful_pairs)
        named = self.arguments_of("MakeStateful")
        if named is not None and named.get("param_res_names") == {} and not self.stateful and not self.stateful_pairs:
            raise UsageError(
                "--transform MakeStateful[param_res_names={}] has no effect", why="no pair is named",
                hint="name the pairs, or write MakeStateful without an argument, which finds them",
            )
        for name in ("stateful_pairs", "beam_idx"):
            if getattr(self, name) and not self.makes_states:
                flag = {"stateful_pairs": "--stateful-pair", "beam_idx": "--beam-idx"}[name]
                raise UsageError(f"{flag} has no effect", why="no state is made", hint="give --stateful as well")
        if self.limits is not None:
            object.__setattr__(self, "limits", Limits.of(self.limits))

    @property
    def makes_states(self) -> bool:
        """Whether inputs and outputs become variables."""
        return self.stateful or any(each.name == "MakeStateful" for each in self.transformations)

    @property
    def fixes_sizes(self) -> bool:
        """Whether the IR is for the declared sizes of the inputs alone: states keep theirs."""
        return self.static or self.makes_states or self.arguments_of("LowLatency2") is not None

    @property
    def finds_states(self) -> bool:
        """Whether pairs are searched for: with `stateful`, or with MakeStateful that names none."""
        named = self.arguments_of("MakeStateful")
        return self.stateful or (named is not None and "param_res_names" not in named)

    def arguments_of(self, transformation: str) -> Mapping[str, Any] | None:
        """The arguments with which `transform` names a transformation; None if it does not."""
        return next((each.arguments for each in self.transformations if each.name == transformation), None)

    @property
    def transformations(self) -> tuple[Transformation, ...]:
        """Those that `transform` names."""
        return transformations(self.transform)

    @property
    def extension_sources(self) -> tuple[Any, ...]:
        """Those of `extensions`, one or several."""
        given = self.extensions or ()
        return tuple(given) if isinstance(given, list | tuple) else (given,)

    @property
    def releases(self) -> Target:
        """The releases that `target` names, and the device."""
        return Target.parse(self.target, self.device)

    @property
    def allowed_folders(self) -> tuple[str, ...]:
        """The folders of `allow_external`."""
        given = self.allow_external
        return tuple(os.fspath(each) for each in ([given] if isinstance(given, str | os.PathLike) else given))

    @property
    def is_packed(self) -> bool:
        """Whether sequences cross the boundary as packed tensors."""
        return self.sequence_io == "packed"


def _require_pairs(given: Any) -> None:
    """UsageError if `stateful_pairs` does not map names to names."""
    names = [name for pair in given.items() for name in pair] if isinstance(given, Mapping) else [None]
    if not all(isinstance(name, str) for name in names):
        raise UsageError(
            f"stateful_pairs is {given!r}", why="it maps names of inputs to names of outputs",
            hint='write stateful_pairs={"h0": "hN"}; "" in place of an output keeps an input',
        )


ConvertOptions.__doc__ = f"{(ConvertOptions.__doc__ or '').rstrip()}\n{described(ConvertOptions, indent=8)}    "
