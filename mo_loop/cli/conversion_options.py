"""The options of a conversion, shared by all commands that convert models.

    @click.command()
    @conversion_options
    @pass_options
    @click.pass_context
    def command(context: click.Context, ...) -> None:
        options = options_of(context)          # ConvertOptions
        flags_of(context)                      # the same as plain data, for a report or a hash
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mo_loop.cli.file_checks import require_local
from mo_loop.cli.model_options import allow_external_option, limit_option, state_pairs
from mo_loop.cli.pass_options import PassOptions
from mo_loop.cli.preprocessing_options import layout_of, preprocessing_flags, preprocessing_options
from mo_loop.conversion_limits import Limits
from mo_loop.options import QUANTIZATION, ConvertOptions

if TYPE_CHECKING:
    from transforms.config import PassConfig

F = TypeVar("F", bound=Callable[..., Any])
_KEY = "mo_loop.cli.conversion_options"


def options_of(context: click.Context, **of_model: Any) -> ConvertOptions:
    """The options of the command of `context`; `of_model` are the fields of one model: input, output, ...

    UsageError for flags that exclude each other, and for extensions and folders at URLs.
    """
    flags, preprocessing = context.meta.get(_KEY, {}), preprocessing_flags(context)
    require_local({"--extension": flags["extension"], "--allow-external": flags["allow_external"]})
    return ConvertOptions(
        config=_config(context.ensure_object(PassOptions)),
        compress_to_fp16=flags["compress_to_fp16"],
        unroll=flags["unroll"],
        strict=flags["strict"],
        sequence_io=flags["sequence_io"],
        extensions=flags["extension"],
        plugins=not flags["no_plugins"],
        layout=layout_of(preprocessing),
        mean_values=preprocessing["mean_values"],
        scale_values=preprocessing["scale_values"],
        scale=preprocessing["scale"],
        reverse_input_channels=preprocessing["reverse_input_channels"],
        batch=preprocessing["batch"],
        target=flags["releases"],
        quantization=flags["quantization"],
        transform=flags["transform"],
        stateful=flags["stateful"],
        stateful_pairs=dict(state_pairs(flags["stateful_pair"])) or None,
        beam_idx=flags["beam_idx"],
        allow_external=flags["allow_external"],
        limits=Limits.parse(flags["limit"]) if flags["limit"] else None,
        **of_model,
    )


def flags_of(context: click.Context) -> dict[str, Any]:
    """The flags by name, the same for the same flags. Extensions are paths, without the content of the files."""
    passes = context.ensure_object(PassOptions)
    chosen = {"disable_pass": passes.disable_pass, "enable_pass": passes.enable_pass}
    return {**context.meta.get(_KEY, {}), **chosen, "preprocessing": preprocessing_flags(context)}


def _config(passes: PassOptions) -> PassConfig | None:
    """Which passes run. None, without loading anything, if no option is about passes."""
    if not passes.disable_pass and not passes.enable_pass:
        return None
    from transforms.config import PassConfig

    config = PassConfig()
    config.disable(*passes.disable_pass)
    config.enable(*passes.enable_pass)
    return config


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    assert parameter.name is not None
    context.meta.setdefault(_KEY, {})[parameter.name] = value


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--compress-to-fp16", is_flag=True, expose_value=False, callback=_keep,
        help="Store f32 weights as f16; the default is lossless.",
    ),
    click.option(
        "--unroll", type=click.IntRange(min=0), default=0, metavar="N", expose_value=False, callback=_keep,
        help="Unroll loops whose number of iterations is known and at most N.",
    ),
    click.option(
        "--target", "releases", metavar="RELEASE", expose_value=False, callback=_keep,
        help="The OpenVINO release that is to run the IR, such as 2025.4, or a range such as 2024.6-2026.4. What only "
        "other releases need is left out, and what one of them does not run is refused. The default is all supported "
        "releases that run the model.",
    ),
    click.option(
        "--quantization", type=click.Choice(QUANTIZATION), default=QUANTIZATION[0], expose_value=False, callback=_keep,
        help="What becomes of quantised activations: fast lets the runtime compute with integers, where a result may "
        "differ by one quantisation step; portable does so but for layers that may saturate on processors without "
        "VNNI; exact keeps ONNX's numbers.",
    ),
    click.option(
        "--transform", metavar="NAME[ARGUMENT=VALUE],...", expose_value=False, callback=_keep,
        help="Make states that the runtime keeps from one inference to the next, in the spelling of the Model "
        "Optimizer: LowLatency2[sequence_length=1] for loops and recurrent layers, "
        "MakeStateful[param_res_names={'in':'out'}] for inputs and outputs. docs/states.md explains the arguments.",
    ),
    click.option(
        "--stateful", is_flag=True, expose_value=False, callback=_keep,
        help="Find the inputs and outputs that a caller would carry from one inference to the next, such as key and "
        "value caches, and keep them in the runtime instead.",
    ),
    click.option(
        "--stateful-pair", metavar="IN=OUT", multiple=True, expose_value=False, callback=_keep,
        help="An input and the output with its next value, for --stateful; IN= keeps an input. May be given more than "
        "once.",
    ),
    click.option(
        "--beam-idx", is_flag=True, expose_value=False, callback=_keep,
        help="With --stateful, add the input beam_idx, which reorders the caches, as openvino_genai and optimum-intel "
        "expect.",
    ),
    click.option(
        "--strict", is_flag=True, expose_value=False, callback=_keep,
        help="Treat warnings about assumptions of the conversion as errors.",
    ),
    click.option(
        "--sequence-io", type=click.Choice(["packed"]), expose_value=False, callback=_keep,
        help="Turn a sequence input or output into two tensors, name.data and name.shapes.",
    ),
    click.option(
        "--extension", metavar="FILE", multiple=True, type=click.Path(), expose_value=False, callback=_keep,
        help="A Python file with passes or translators, which is executed. May be given more than once.",
    ),
    allow_external_option(expose_value=False, callback=_keep),
    limit_option(expose_value=False, callback=_keep),
    click.option(
        "--no-plugins", is_flag=True, expose_value=False, callback=_keep,
        help="Ignore the extensions of installed packages.",
    ),
)  # fmt: skip


def conversion_options(command: F) -> F:
    """Add the options to `command`; `options_of` returns their values."""
    command = preprocessing_options(command)
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
