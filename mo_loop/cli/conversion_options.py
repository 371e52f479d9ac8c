"""The options of a conversion, shared by all commands that convert models: the flags of the fields of ConvertOptions.

    @click.command()
    @conversion_options("input", "output")   # in addition to those for any model
    @click.pass_context
    def command(context: click.Context, ...) -> None:
        options = options_of(context)          # ConvertOptions
        plain_options(context)                 # the same as plain data, for a report or a hash
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mo_loop.cli.file_checks import require_local
from mo_loop.cli.flag_options import flags, key_of, made, values_of
from mo_loop.cli.model_options import frozen, names, renamed, state_pairs
from mo_loop.cli.pass_options import PassOptions
from mo_loop.conversion_limits import Limits
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from mo_loop.support.flags import IMAGES, flag, flags_of

if TYPE_CHECKING:
    from mo_loop.transforms.config import PassConfig

F = TypeVar("F", bound=Callable[..., Any])

OF_ONE_MODEL = ("input", "output", "freeze", "rename")
"""The options that only commands with one model have, and the tables of `batch --config`."""


@dataclass(frozen=True)
class BothLayouts:
    """The two sides of the arrow in --layout, as the Model Optimizer has them."""

    source_layout: str | None = flag(
        None, "The left side of the arrow in --layout: the layout of the model.", IMAGES, metavar="TEXT"
    )
    target_layout: str | None = flag(
        None, "The right side of the arrow in --layout: the layout in the IR.", IMAGES, metavar="TEXT"
    )


def conversion_options(*of_model: str, **texts: str) -> Callable[[F], F]:
    """Add the options to a command, of `OF_ONE_MODEL` only the given ones; `texts` are other texts for --help."""
    common = [name for name in flags_of(ConvertOptions) if name not in OF_ONE_MODEL]

    def decorated(command: F) -> F:
        return flags(ConvertOptions, *of_model, *common, texts=texts)(flags(BothLayouts)(command))

    return decorated


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "output": names,
    "freeze": lambda texts: dict(frozen(texts)),
    "rename": lambda texts: dict(renamed(texts)),
    "plugins": lambda is_off: not is_off,
    "stateful_pairs": lambda texts: dict(state_pairs(texts)) or None,
    "limits": lambda texts: Limits.parse(texts) if texts else None,
}
"""Field -> its value, from that of its option; the others are the same."""


def options_of(context: click.Context, **changed: Any) -> ConvertOptions:
    """The options of the command of `context`; `changed` are texts instead of those of the command line.

    UsageError for flags that exclude each other, and for extensions and folders at URLs.
    """
    given = values_of(context, ConvertOptions)
    require_local({"--extension": given["extension"], "--allow-external": given["allow_external"]})
    known = {field: key_of(field, each) for field, each in flags_of(ConvertOptions).items()}
    values = {field: given[key] for field, key in known.items() if key in given} | changed
    values = {field: _READERS[field](value) if field in _READERS else value for field, value in values.items()}
    values["layout"] = layout_of(values["layout"], made(context, BothLayouts))
    return ConvertOptions(config=_config(made(context, PassOptions)), **values)


def plain_options(context: click.Context) -> dict[str, Any]:
    """The values of the options by name, the same for the same flags. Extensions are paths, without their content."""
    passes, given = made(context, PassOptions), values_of(context, ConvertOptions)
    images = [key_of(field, each) for field, each in flags_of(ConvertOptions).items() if each.group == IMAGES]
    return {
        **{key: value for key, value in given.items() if key not in images},
        "disable_pass": passes.disable_pass, "enable_pass": passes.enable_pass,
        "preprocessing": {**{key: given[key] for key in images}, **values_of(context, BothLayouts)},
    }  # fmt: skip


def _config(passes: PassOptions) -> PassConfig | None:
    """The configuration of the passes. None, without loading anything, if no option is about passes."""
    if not passes.disable_pass and not passes.enable_pass:
        return None
    from mo_loop.transforms.config import PassConfig

    config = PassConfig()
    config.disable(*passes.disable_pass)
    config.enable(*passes.enable_pass)
    return config


def layout_of(layout: str | None, sides: BothLayouts) -> Any:
    """The layouts of `--layout`, or of the two other flags together: name -> (source, target).

    UsageError for flags that exclude each other.
    """
    if sides == BothLayouts():
        return layout
    if layout is not None:
        hint = 'write --layout "nhwc->nchw"'
        raise UsageError("--layout cannot be combined with --source-layout or --target-layout", hint=hint)
    source = _entries(sides.source_layout, "--source-layout")
    target = _entries(sides.target_layout, "--target-layout")
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
    from mo_loop.preprocessing import PARENTHESES, PerInput

    return () if text is None else PerInput.of(text, PARENTHESES, str, flag).entries
