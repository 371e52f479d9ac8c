"""The options that say how a model is converted, for every command that converts one or many.

    @click.command()
    @conversion_options
    @pass_options
    @click.pass_context
    def command(context: click.Context, ...) -> None:
        options = ConversionOptions.of(context)
        model = convert_model(path, **options.arguments())
        save_model(model, target, **options.saving())

What they hold is plain data: `arguments()` can be handed to a process of its own, `as_json()` put into a hash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import click

from mo_loop.cli.pass_options import PassOptions
from mo_loop.cli.preprocessing_options import PreprocessingOptions, preprocessing_options

F = TypeVar("F", bound=Callable[..., Any])
_KEY = "mo_loop.cli.conversion_options"


@dataclass(frozen=True)
class ConversionOptions:
    """The options below, by the names of their flags, and which passes run."""

    compress_to_fp16: bool = False
    unroll: int = 0
    strict: bool = False
    sequence_io: str | None = None
    extension: tuple[str, ...] = ()
    no_plugins: bool = False
    disable_pass: tuple[str, ...] = ()
    enable_pass: tuple[str, ...] = ()
    preprocessing: PreprocessingOptions = field(default_factory=PreprocessingOptions)

    @classmethod
    def of(cls, context: click.Context) -> ConversionOptions:
        """What the command of `context` was given; PassOptions say which passes run."""
        passes = context.ensure_object(PassOptions)
        given = context.meta.get(_KEY, {})
        prepared = PreprocessingOptions.of(context)
        return cls(**given, disable_pass=passes.disable_pass, enable_pass=passes.enable_pass, preprocessing=prepared)

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `convert_model`, made anew on each call, which can be pickled."""
        found: dict[str, Any] = {
            "unroll": self.unroll,
            "strict": self.strict,
            "sequence_io": self.sequence_io,
            "extensions": self.extension,
            "plugins": not self.no_plugins,
            **self.preprocessing.arguments(),
        }
        if self.disable_pass or self.enable_pass:
            from transforms.config import PassConfig

            found["config"] = config = PassConfig()
            config.disable(*self.disable_pass)
            config.enable(*self.enable_pass)
        return found

    def saving(self) -> dict[str, Any]:
        """Keyword arguments of `save_model`."""
        return {"compress_to_fp16": self.compress_to_fp16}

    def as_json(self) -> dict[str, Any]:
        """All of it as plain data, the same for the same options. Extensions are paths: what they hold is not in it."""
        return asdict(self)


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
        help="Write out loops of a known number of iterations up to N.",
    ),
    click.option(
        "--strict", is_flag=True, expose_value=False, callback=_keep,
        help="Refuse what is otherwise assumed of a model with a warning.",
    ),
    click.option(
        "--sequence-io", type=click.Choice(["packed"]), expose_value=False, callback=_keep,
        help="Sequences at the boundary become two tensors, name.data and name.shapes.",
    ),
    click.option(
        "--extension", metavar="FILE", multiple=True, type=click.Path(), expose_value=False, callback=_keep,
        help="A Python file with passes or translators; it is run. May be given more than once.",
    ),
    click.option(
        "--no-plugins", is_flag=True, expose_value=False, callback=_keep,
        help="Leave out extensions that installed packages offer.",
    ),
)  # fmt: skip


def conversion_options(command: F) -> F:
    """Give `command` the options; `ConversionOptions.of` its context holds their values."""
    command = preprocessing_options(command)
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
