"""ConvertOptions: the options of a conversion, which the library, `convert`, `batch` and `check` share.

    options = ConvertOptions(input="x[1,3,224,224]", layout="nhwc->nchw")
    Conversion(options).run("model.onnx")                     # mo_loop/conversion.py

`convert_model` has a keyword argument of the same name for each of them, `save_model` has `compress_to_fp16`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mo_loop.conversion_limits import Limits
from mo_loop.errors import UsageError
from mo_loop.target import Target
from mo_loop.transformations import Transformation, transformations

if TYPE_CHECKING:
    from transforms.config import PassConfig

QUANTIZATION = ("fast", "portable", "exact")
"""The values of the option `quantization`."""


@dataclass(frozen=True)
class ConvertOptions:
    """The options of a conversion. It can be pickled if its values can.

    Args:
        input: new shapes, types and values of inputs: text (`"x[1,3,?,224..512]{f16},rate->16000"`), name -> shape, or
            a list of names and tuples of a name, a shape and an element type. Without names: one shape, of the first
            input (`[1, 3, 224, 224]`), or a list of shapes, of the inputs in their order. A shape is a sequence of
            ints, None or -1 (unknown), pairs (bounds) and strings (symbols), or an `openvino.PartialShape`; inner
            tensors cut the model; values freeze an input.
        output: names of the tensors (or nodes) that become the outputs.
        freeze: inputs that become constants: name -> value. Inner tensors cut the model.
        rename: new names of tensors: name -> new name. A tensor in a body is named by its path (`loop/step/x`).
        config: passes to enable, disable or explain, and callbacks that exclude nodes (`transforms.config`).
        unroll: the largest number of iterations of a loop that is unrolled (`UnrollLoops`); 0: no loop is unrolled.
        strict: refuse models that otherwise convert with a warning: inner names that hide outer ones, branches whose
            outputs the following nodes cannot read, operators and forms of nodes that the opset does not have,
            ranks that are only declared.
        sequence_io: "packed" lets sequences cross the boundary: `x` becomes the tensors `x.data`, all elements
            flattened and concatenated, and `x.shapes`, one row each (`mo_loop.pack_sequence`); an optional input is
            assumed to be present. Without it a sequence at the boundary is refused.
        extensions: passes and translators of the user (`mo_loop.extensions`): paths of Python files, which are run,
            modules, functions `register`, Extensions; one of them or a list.
        plugins: whether the extensions of installed packages are used.
        layout: the layouts of inputs and outputs, recorded in the IR; an arrow changes one: `"nchw"`,
            `"x(nhwc->nchw),y(nc)"`, or a dict by name. In the IR an input then has the layout behind the arrow.
        mean_values: numbers subtracted from inputs, one for each channel or one for all: `"[123.7,116.3,103.5]"`,
            `"x[127.5],y(1,2,3)"`, a list, or a dict by name.
        scale_values: numbers by which inputs are divided, after the mean, in the same forms.
        scale: one divisor for all inputs of floating-point numbers.
        reverse_input_channels: RGB <-> BGR of every input with three channels, before mean and scale.
        batch: the size of the dimension N of every input, or of the first dimension without a layout.
        target: the OpenVINO releases on which the IR is to run: one (`"2025.4"`) or a range (`"2024.6-2026.4"`). What
            only other releases need is left out, and what one of them does not run is refused. None: all supported
            releases that run the model.
        quantization: "fast": quantised activations become FakeQuantize, which the runtime computes with integers; a
            result may differ by one step. "portable": the same, but layers whose integers may saturate on processors
            without VNNI are computed in f32. "exact": each operator has ONNX's numbers, and the IR tells the runtime
            not to quantise activations before compressed weights.
        transform: transformations of states, in the spelling of the Model Optimizer: `"LowLatency2"`,
            `"LowLatency2[use_const_initializer=False]"`, `"MakeStateful[param_res_names={'h0':'hN'}]"`, or names with a
            dict of arguments (mo_loop/transformations.py, docs/states.md). MakeStateful alone finds the pairs.
        stateful: keep the states that the caller would carry, such as key and value caches, in variables of the
            runtime: inputs and outputs that belong together are found, and leave the interface of the model.
        stateful_pairs: corrects what `stateful` finds: name of an input -> name of the output with its next value, or
            "" for an input that stays one. The names are those of the ONNX model, also with `rename`.
        beam_idx: add the input `beam_idx`, i32 [batch], which says from which sequence of the step before each sequence
            continues; with `stateful`.
        allow_external: folders besides that of the model whose files may hold external data, also files that are links
            or have several names (mo_loop/frontend/external_files.py).
        external_data_dir: the folder of the external data of a model in memory (bytes, an `onnx.ModelProto`); its files
            are read by the rules for files beside a model.
        limits: how much the model may make the conversion do: a `Limits` (mo_loop/conversion_limits.py), or values by
            name (`{"nodes": 5_000_000, "folded_bytes": "4G", "time": "10m"}`). docs/limits.md lists them.
        compress_to_fp16: store f32 weights as f16 when the model is written.

    Raises:
        UsageError: `transform` cannot be understood; `beam_idx` or `stateful_pairs` is given without `stateful`;
            `stateful_pairs` is no mapping of names; `sequence_io` or `quantization` is none of the values above, or
            `target` is not a supported release or range.
    """

    input: str | Sequence[Any] | Mapping[str, Any] | None = None
    output: str | Sequence[str] | None = None
    freeze: Mapping[str, Any] | None = None
    rename: Mapping[str, str] | None = None
    config: PassConfig | None = None
    unroll: int = 0
    strict: bool = False
    sequence_io: str | None = None
    extensions: Any = ()
    plugins: bool = True
    layout: Any = None
    mean_values: Any = None
    scale_values: Any = None
    scale: float | None = None
    reverse_input_channels: bool = False
    batch: int | None = None
    target: str | None = None
    quantization: str = "fast"
    transform: Any = None
    stateful: bool = False
    stateful_pairs: Mapping[str, str] | None = None
    beam_idx: bool = False
    allow_external: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = ()
    external_data_dir: str | os.PathLike[str] | None = None
    limits: Limits | Mapping[str, Any] | None = None
    compress_to_fp16: bool = False

    def __post_init__(self) -> None:
        if self.sequence_io not in (None, "packed"):
            raise UsageError(f"sequence_io is {self.sequence_io!r}", hint='give "packed", or nothing')
        if self.quantization not in QUANTIZATION:
            raise UsageError(f"quantization is {self.quantization!r}", hint=f"give {' or '.join(QUANTIZATION)}")
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
            )  # fmt: skip
        for name in ("stateful_pairs", "beam_idx"):
            if getattr(self, name) and not self.makes_states:
                flag = {"stateful_pairs": "--stateful-pair", "beam_idx": "--beam-idx"}[name]
                raise UsageError(f"{flag} has no effect", why="no state is made", hint="give --stateful as well")
        if self.limits is not None:
            object.__setattr__(self, "limits", Limits.of(self.limits))

    @property
    def makes_states(self) -> bool:
        """Whether inputs and outputs become variables."""
        return self.stateful or any(each.name == "MakeStateful" for each in self.transform or ())

    @property
    def finds_states(self) -> bool:
        """Whether pairs are searched for: with `stateful`, or with MakeStateful that names none."""
        named = self.arguments_of("MakeStateful")
        return self.stateful or (named is not None and "param_res_names" not in named)

    def arguments_of(self, transformation: str) -> Mapping[str, Any] | None:
        """The arguments with which `transform` names a transformation; None if it does not."""
        found: Sequence[Transformation] = self.transform or ()
        return next((each.arguments for each in found if each.name == transformation), None)

    @property
    def releases(self) -> Target:
        """The releases that `target` names."""
        return Target.parse(self.target)

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
        )  # fmt: skip
