"""Readers of the texts of options: --output, --freeze, --rename, --stateful-pair; --allow-external and --limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mo_loop.cli.flag_options import flags
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from mo_loop.support.flags import flags_of, masked, parts, unquoted


def allow_external_option() -> Callable[[Any], Any]:
    """The option --allow-external of a command that only reads models."""
    return flags(ConvertOptions, "allow_external", is_argument=True)


def limit_option(what: str) -> Callable[[Any], Any]:
    """The option --limit of a command that only reads models; `what` is limited."""
    text = flags_of(ConvertOptions)["limits"].help.replace("the conversion", what)
    return flags(ConvertOptions, "limits", is_argument=True, texts={"limits": text})


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
