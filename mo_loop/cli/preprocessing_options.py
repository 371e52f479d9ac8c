"""The options for preprocessing that is built into the model, shared by all commands that convert models.

    @preprocessing_options
    def command(context: click.Context, ...) -> None:
        flags = preprocessing_flags(context)                 # {"layout": "nchw", "scale": None, ...}
        ConvertOptions(layout=layout_of(flags), scale=flags["scale"], ...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from mo_loop.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
_KEY = "mo_loop.cli.preprocessing_options"


def preprocessing_flags(context: click.Context) -> dict[str, Any]:
    """The values of the flags of the command of `context`, by name."""
    flags: dict[str, Any] = context.meta.get(_KEY, {})
    return flags


def layout_of(flags: Mapping[str, Any]) -> Any:
    """The layouts of `--layout`, or of the two other flags together: name -> (source, target).

    UsageError for flags that exclude each other.
    """
    if flags["source_layout"] is None and flags["target_layout"] is None:
        return flags["layout"]
    if flags["layout"] is not None:
        hint = 'write --layout "nhwc->nchw"'
        raise UsageError("--layout cannot be combined with --source-layout or --target-layout", hint=hint)
    source = _entries(flags["source_layout"], "--source-layout")
    target = _entries(flags["target_layout"], "--target-layout")
    named = [bool(each[0][0]) for each in (source, target) if each]
    if len(set(named)) > 1 or (not named[0] and len({len(each) for each in (source, target) if each}) > 1):
        raise UsageError(
            "--source-layout and --target-layout are for other inputs", why="layouts without a name are those of the "
            "inputs in their order", hint="give both the same number of layouts, or name them: x(nhwc),y(nc)",
        )  # fmt: skip
    if not named[0]:
        sources: list[str | None] = [layout for _, layout in source] or [None] * len(target)
        targets: list[str | None] = [layout for _, layout in target] or sources
        return list(zip(sources, targets, strict=True))
    before, after = dict(source), dict(target)
    return {name: (before.get(name), after.get(name, before.get(name))) for name in {**before, **after}}


def _entries(text: str | None, flag: str) -> tuple[tuple[str, str], ...]:
    """The names and the layouts; without names those of the inputs in their order."""
    from mo_loop.preprocessing.per_input import PARENTHESES, PerInput

    return () if text is None else PerInput.of(text, PARENTHESES, str, flag).entries


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    assert parameter.name is not None
    context.meta.setdefault(_KEY, {})[parameter.name] = value


def _option(name: str, metavar: str, text: str, type_: Any = None) -> Callable[[F], F]:
    return click.option(name, metavar=metavar, type=type_, expose_value=False, callback=_keep, help=text)


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    _option(
        "--layout", "TEXT", "The layout of inputs and outputs, and with an arrow the one they get in the IR: "
        'nchw, or "x(nhwc->nchw),y(n...)".',
    ),
    _option("--source-layout", "TEXT", "The left side of the arrow in --layout: the layout of the model."),
    _option("--target-layout", "TEXT", "The right side of the arrow in --layout: the layout in the IR."),
    _option(
        "--mean-values", "TEXT", "Numbers subtracted from inputs, for each channel or one for all: "
        '"[123.7,116.3,103.5]", or "x[127.5],y[1,2,3]".',
    ),
    _option("--scale-values", "TEXT", "Numbers by which inputs are divided, after the mean, in the same form."),
    _option("--scale", "NUMBER", "One number by which every input is divided, after the mean.", float),
    click.option(
        "--reverse-input-channels", is_flag=True, expose_value=False, callback=_keep,
        help="Reverse the channels, RGB or BGR, of every input that has three, before mean and scale.",
    ),
    _option("--batch", "N", "The batch size of all inputs: dimension N of the layout, or the first dimension.",
            click.IntRange(min=1)),
)  # fmt: skip


def preprocessing_options(command: F) -> F:
    """Add the options to `command`; `preprocessing_flags` returns their values."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
