"""Preparation of a conversion from its options: preprocessing, passes of states, and advice in errors.

Preprocessing: the preparation of inputs that becomes part of the model: layouts, channel order, mean, scale, batch.

    wanted = Preprocessing.of(ConvertOptions(layout="nhwc->nchw", mean_values="[123.68,116.78,103.94]", scale=58.8))
    cut = wanted.of_batch(cut)                     # before translation, because translators use sizes
    passes = wanted.around(default_pipeline())             # after MakeStateful: a state is not an input

At run time an input passes through these steps, each only if an option requires it:

    reverse the channels  ->  subtract the mean  ->  divide by the scale  ->  transpose to the model's layout  ->  model

Mean and scale thus have the channel order of the training data.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mo_loop.errors import InternalError, MoLoopError, UnsupportedError, UsageError
from mo_loop.frontend.boundary import BatchCut
from mo_loop.frontend.cut import Cut, tensor_of_node
from mo_loop.frontend.model import OnnxModel
from mo_loop.options import ConvertOptions
from mo_loop.preprocessing import BRACKETS, PARENTHESES, Layouts, PerInput, layouts_of
from mo_loop.support.flags import parts

if TYPE_CHECKING:
    from mo_loop.transforms.function_pass import FunctionPass


@dataclass(frozen=True)
class Preprocessing:
    """The preprocessing that the options require; by default none."""

    layouts: PerInput[Layouts] | None = None
    means: PerInput[tuple[float, ...]] | None = None
    scales: PerInput[tuple[float, ...]] | None = None
    scale: float | None = None
    reverse: bool = False
    batch: int | None = None

    @classmethod
    def of(cls, options: ConvertOptions) -> Preprocessing:
        """From the options of a conversion. UsageError if an option is not valid for any model."""
        scale, batch = options.scale, options.batch
        if scale is not None and options.scale_values is not None:
            raise UsageError("both --scale and --scale-values are given", hint="give one of them")
        if batch is not None and (isinstance(batch, bool) or not isinstance(batch, int) or batch < 1):
            raise UsageError(f"--batch {batch} is not a batch size", hint="give a number of at least 1")
        means = None if options.mean_values is None else _numbers(options.mean_values, "--mean-values")
        scales = None if options.scale_values is None else _numbers(options.scale_values, "--scale-values")
        for _, values in scales.entries if scales else ():
            _require_scale(values, "--scale-values")
        layouts = None if options.layout is None else PerInput.of(options.layout, PARENTHESES, layouts_of, "--layout")
        single = () if scale is None else _number_list(scale, "--scale")
        if len(single) > 1:
            raise UsageError(f"--scale {scale} is not one number", hint="--scale-values takes several")
        _require_scale(single, "--scale")
        return cls(layouts, means, scales, single[0] if single else None, bool(options.reverse_input_channels), batch)

    def of_batch(self, cut: Cut) -> Cut:
        """`cut` with the batch size applied."""
        if self.batch is None:
            return cut
        return BatchCut(cut.inputs if cut.inputs is not None else {}, cut.outputs, cut.given, self.batch, self.layouts)

    def require_inputs(self, model: OnnxModel, cut: Cut) -> None:
        """Take names of nodes for those of their tensors, as --input does; UsageError for a frozen input."""
        frozen = {name for name, entry in (cut.inputs or {}).items() if entry.value is not None}
        for values in (self.layouts, self.means, self.scales):
            for name, _ in values.entries if values is not None else ():
                assert values is not None
                tensor = tensor_of_node(model, name) if name else None
                values.tensors.pop(name, None)
                if tensor is not None:
                    values.tensors[name] = tensor
                if (tensor or name) in frozen:
                    raise UsageError(
                        f"{values.flag} names {name!r}, which is frozen", code="ML202",
                        why="its value is a constant of the IR, not an input",
                        hint="freeze it with the value that the model computes with, and leave it out here",
                    )

    def around(self, pipeline: Iterable[FunctionPass]) -> list[FunctionPass]:
        """The passes of `pipeline` with the passes of this preprocessing before and after them."""
        passes = list(pipeline)
        if self == Preprocessing():  # the modules of the passes are not loaded then
            return passes
        # An input that becomes a state is no longer an input, so nothing prepares it.
        place = next((place + 1 for place, each in enumerate(passes) if each.name == "MakeStateful"), 0)
        from mo_loop.transforms.preprocess.input_layouts import CheckBatch, RecordLayouts

        before: list[FunctionPass] = [] if self.batch is None else [CheckBatch(self.batch)]
        after: list[FunctionPass] = [] if self.layouts is None else [RecordLayouts(self.layouts)]
        return [*before, *passes[:place], *self._first(), *passes[place:], *after]

    def _first(self) -> list[FunctionPass]:
        """The passes. Each inserts nodes directly after the inputs, so the nodes of the last pass run first."""
        from mo_loop.transforms.preprocess.input_channels import (
            DivideByScale,
            MergeChannelOrder,
            ReverseChannels,
            SubtractMean,
        )
        from mo_loop.transforms.preprocess.input_layouts import ChangeLayouts

        passes: list[FunctionPass] = []
        if self.layouts is not None:
            passes.append(ChangeLayouts(self.layouts, of_batch=self.batch is not None))
        if self.scales is not None or self.scale is not None:
            passes.append(DivideByScale(self.scales, self.scale))
        if self.means is not None:
            passes.append(SubtractMean(self.means))
        if self.reverse:
            passes += [ReverseChannels(), MergeChannelOrder()]
        return passes


def _numbers(given: Any, flag: str) -> PerInput[tuple[float, ...]]:
    given = given.tolist() if hasattr(given, "tolist") else given
    listed = given if isinstance(given, list | tuple) else [given]
    if all(isinstance(each, int | float) for each in listed):  # the values for the only input
        given = [listed]
    return PerInput.of(given, BRACKETS, lambda each: _number_list(each, flag), flag)


def _number_list(given: Any, flag: str) -> tuple[float, ...]:
    """One or several numbers, from text or from Python values."""
    parts = [part for part in re.split(r"[,\s]+", given) if part] if isinstance(given, str) else given
    parts = parts.tolist() if hasattr(parts, "tolist") else parts
    try:
        found = tuple(float(each) for each in (parts if isinstance(parts, list | tuple) else [parts]))
    except (TypeError, ValueError):
        found = ()
    if not found or not all(math.isfinite(each) for each in found):
        raise UsageError(
            f"{flag}: {given!r} is not a list of numbers", hint=f"write {flag} [1,2,3] or {flag} data[1,2,3],info[4]"
        )
    return found


def _require_scale(values: tuple[float, ...], flag: str) -> None:
    if 0 in values:
        raise UsageError(f"{flag} holds 0: division by 0 is not possible")


def state_passes(options: ConvertOptions) -> list[FunctionPass]:
    """The passes that make variables, as the options request them."""
    made: list[FunctionPass] = []
    low_latency = options.arguments_of("LowLatency2")
    if low_latency is not None:
        from mo_loop.transforms.states.low_latency2 import LowLatency2, SetSequenceLength

        made += [LowLatency2(**low_latency), SetSequenceLength(low_latency.get("sequence_length"))]
    if options.makes_states:
        from mo_loop.transforms.states.make_stateful import FuseStatefulAttention, MakeStateful

        named = (options.arguments_of("MakeStateful") or {}).get("param_res_names", {})
        pairs = {**named, **(options.stateful_pairs or {})}
        made += [MakeStateful(pairs, find=options.finds_states, beam_idx=options.beam_idx), FuseStatefulAttention()]
    return made


def flag_of(name: str, options: ConvertOptions) -> tuple[str, str]:
    """The option that requests a pass, and the advice if it has no effect. InternalError if it is not known."""
    if name == "UnrollLoops":
        return f"--unroll {options.unroll}", "--explain-pass UnrollLoops gives the reasons; give a larger number"
    if name == "LowLatency2":
        return "--transform LowLatency2", "give the sequence one step (--input), or LowLatency2[sequence_length=1]"
    if name == "MakeStateful":
        return "--stateful" if options.stateful else f"--transform {name}", "name the pairs (--stateful-pair IN=OUT)"
    raise InternalError(f"{name} changed nothing, and flag_of in mo_loop/preparation.py names no option for it")


def with_other_outputs(errors: Sequence[MoLoopError], names: Sequence[str]) -> list[MoLoopError]:
    """The errors, with the option that converts the outputs of these `names`, which depend on no error."""
    if not names:
        return list(errors)
    listed = ",".join(each if parts(each) == [each] else f'"{each}"' for each in names)
    way = f"convert the other outputs alone: --output {shlex.quote(listed)}"
    return [
        each.at(hint=f"{each.hint}; or {way}" if each.hint else way) if isinstance(each, UnsupportedError) else each
        for each in errors
    ]
