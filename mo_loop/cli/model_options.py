"""The values of the options that belong to one model: --output, --freeze, --rename; --allow-external and --limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

from mo_loop.errors import UsageError
from mo_loop.support.option_texts import masked, parts, unquoted


def allow_external_option(**settings: Any) -> Callable[[Any], Any]:
    """The option --allow-external; `settings` are more arguments of `click.option`."""
    return click.option(
        "--allow-external", metavar="DIR", multiple=True, type=click.Path(file_okay=False),
        help="Read external data below this folder too, also links and files with several names. Without it, only "
        "files in the folder of the model are read. May be given more than once.", **settings,
    )  # fmt: skip


def limit_option(what: str = "the conversion", **settings: Any) -> Callable[[Any], Any]:
    """The option --limit; `what` is limited, `settings` are more arguments of `click.option`."""
    return click.option(
        "--limit", metavar="NAME=VALUE", multiple=True,
        help=f"How much the model may make {what} do, for example nodes=5000000, folded_bytes=4G or time=10m. "
        "docs/limits.md lists the names. May be given more than once.", **settings,
    )  # fmt: skip


def names(text: str | None) -> list[str] | None:
    """The names of `--output`, separated by commas; UsageError if there are none."""
    if text is None:
        return None
    found = [unquoted(each) for each in parts(text)]
    if not found:
        raise UsageError("--output has no name", why="a model needs an output", hint="name a tensor, or omit --output")
    return found


def frozen(texts: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The names and values of `--freeze`."""
    if not texts:
        return
    from mo_loop.frontend.input_text import value_of  # imports numpy, which the parent of a batch does not need

    yield from ((name, value_of(value)) for name, value in _pairs("--freeze", "name=value", texts))


def renamed(texts: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The old and new names of `--rename`."""
    yield from ((old, unquoted(new)) for old, new in _pairs("--rename", "old=new", texts))


def state_pairs(texts: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The inputs and outputs of `--stateful-pair`; an output may be empty."""
    pairs = _pairs("--stateful-pair", "in=out", texts, may_be_empty=True)
    yield from ((first, unquoted(last)) for first, last in pairs)


def _pairs(flag: str, form: str, texts: tuple[str, ...], *, may_be_empty: bool = False) -> Iterator[tuple[str, str]]:
    """The texts before and after the last `=` outside quotes; UsageError if one is missing or a name occurs twice."""
    known: set[str] = set()
    for text in texts:
        place = masked(text).rfind("=")
        name, value = unquoted(text[: max(place, 0)].strip()), text[place + 1 :].strip()
        if not name or not (value or may_be_empty):
            why = "the name, the value or the = is missing"
            raise UsageError(f"{flag} {text!r} cannot be understood", why=why, hint=f"write {flag} {form}")
        if name in known:
            raise UsageError(f"{flag} names {name!r} twice", why="only one of the two can be used", hint="name it once")
        known.add(name)
        yield name, value
