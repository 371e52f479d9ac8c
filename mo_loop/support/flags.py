"""Options as fields of dataclasses: their flags, the arguments of functions, and the texts of their values.

    @dataclass
    class BatchOptions:
        jobs: int | None = flag(None, "Worker processes.", RUN, "-j", "--jobs", metavar="N", least=1)

    @takes(BatchOptions)
    def batch(models, **options): ...

    inspect.signature(batch)             # (models, *, jobs: int | None = None)

A flag is plain data; mo_loop/cli/flag_options.py makes options of click from the fields. A name in quotes can have
commas, brackets and all else that separates names. Values may be of any length: how a literal or a number is read, and
how a value is shown in a message.

>>> parts('logits,"split,1[0]"')
['logits', '"split,1[0]"']
>>> unquoted('"split,1[0]"'), unquoted("logits")
('split,1[0]', 'logits')
>>> literal("{'h0': 'hN'}")
{'h0': 'hN'}
>>> shown(10 ** 5000), shown([1, 2])
('a value of type int', '[1, 2]')
>>> whole_number("12"), whole_number("9" * 5000)
(12, None)
"""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from functools import cache
from inspect import Parameter, signature
from textwrap import wrap
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from mo_loop.printable import did_you_mean

FILES, IMAGES, CONVERSION, STATES = "Inputs and outputs", "Preparation of images", "Conversion", "States"
COMPARISON, RUN, PASSES, REPORTS = "Comparison", "Run", "Passes and debugging", "Reports and messages"
GROUPS = (FILES, IMAGES, CONVERSION, STATES, COMPARISON, RUN, PASSES, REPORTS)
"""The titles of --help and docs/cli.md, in their order."""

COMMON = -1
"""The place of an option that --help shows also where it leaves out the others of the group."""


class Flag(NamedTuple):
    """The description of a field for the command line.

    `settings` are arguments of `click.option`, with the type as plain data: `least` (a number, int or float), `above`,
    `most`, `choices`, or `kind` (`FlagOption` of mo_loop/cli has the table).
    """

    default: Any
    help: str
    group: str
    names: tuple[str, ...]
    place: int
    settings: Mapping[str, Any]
    note: str
    needs: str
    library: str


def flag(
    default: Any, text: str, group: str, *names: str, place: int = 0, note: str = "", needs: str = "",
    library: str = "", recorded: bool = True, **settings: Any,
) -> Any:
    """A field with this default. It is a switch where that is False, and can be repeated where that is a tuple.

    Args:
        default: that of the field; where it is True and one name is given, the flag switches it off.
        text: the text in --help.
        group: the title above it in --help; there options with a lower `place` come first, the others as declared.
        names: the flags, where they are not the name of the field with dashes.
        place: see `group`.
        note: an addition in the library's documentation, such as the kinds of values in Python.
        library: the text of the library's documentation, where that of --help is about the flag and not the argument.
        needs: the field without which this one has no effect.
        recorded: whether the rt_info of an IR records it.
        settings: see Flag.
    """
    made = Flag(default, text, group, names, place, settings, note, needs, library)
    return field(default=default, metadata={"flag": made, "recorded": recorded})


def argument(default: Any, text: str, *, recorded: bool = True) -> Any:
    """A field with this default that the command line does not have; `text` is for the documentation."""
    return field(default=default, metadata={"text": text, "recorded": recorded})


def flags_of(cls: type) -> dict[str, Flag]:
    """The name of each field that has a flag."""
    return {each.name: each.metadata["flag"] for each in fields(cls) if "flag" in each.metadata}


def described(cls: Any, indent: int = 4) -> str:
    """The fields as the `Args` of a docstring, with their types; of those without a flag the `text` in the metadata."""
    lines = []
    for each in fields(cls):
        if not each.init:
            continue
        known = each.metadata.get("flag")
        text = known.library or f"{known.help} {known.note}" if known else each.metadata.get("text", "")
        text = _OF_FLAGS.sub("", text)
        if text:
            lines += wrap(
                f"{each.name} ({each.type}): {' '.join(text.split())}", 116, initial_indent=" " * indent,
                subsequent_indent=" " * (indent + 4), break_long_words=False, break_on_hyphens=False,
            )
    return "\n".join(lines) + "\n"


_OF_FLAGS = re.compile(r" Can be repeated\.|  \[default: [^]]*\]")
"""Parts of the texts of flags that are wrong for fields."""


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
NEWLINE = "\n"


def takes(arguments: Callable[P, object]) -> Callable[[Callable[..., R]], Callable[Concatenate[Any, P], R]]:
    """The function has the arguments that a dataclass has, by keyword; type checkers and `help` show them.

    In its docstring they replace the line that describes the last argument. A field that is not by keyword alone can be
    its second argument.
    """

    def decorated(function: Callable[..., R]) -> Callable[Concatenate[Any, P], R]:
        own, more = signature(function), signature(arguments).parameters
        first = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        named = [each.replace(kind=each.KEYWORD_ONLY) for name, each in more.items() if name not in own.parameters]
        function.__signature__ = own.replace(parameters=[*first, *named])  # type: ignore[attr-defined]
        last = next(each.name for each in own.parameters.values() if each.kind is each.VAR_KEYWORD)
        head, _, rest = (function.__doc__ or "").partition(f"        {last}: ")
        function.__doc__ = f"{head}{described(arguments, indent=8)}{rest.partition(NEWLINE)[2]}"
        return function

    return decorated


@cache
def _parameters(function: Callable[..., object]) -> Mapping[str, Parameter]:
    return signature(function).parameters


def made_of(cls: Callable[..., T], arguments: Mapping[str, Any], function: str) -> T:
    """An instance of a dataclass. The TypeError for an unknown argument names the function that the caller called."""
    known = _parameters(cls) if arguments else ()
    for name in arguments:
        if name not in known:
            hint = did_you_mean(name, known, cutoff=0.6)
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint and ': '}{hint}")
    return cls(**arguments)


QUOTED = r"\"[^\"]*\"|'[^']*'"
"""A name in quotes; the other kind of quotes may be in it."""

_QUOTED = re.compile(rf"(?<![^,=\s])(?:{QUOTED})(?![^,=\s\[({{-])")
"""Quoted and unquoted parts of a text: an apostrophe within a name is not a quote."""

LARGEST = (1 << 63) - 1
"""The largest size in ONNX and in the IR."""

LONGEST = 200
"""Characters of a given text or value in a message: it may have any length."""


def masked(text: str) -> str:
    """The text with other characters instead of those in quotes, so that places in both texts are equal."""
    return _QUOTED.sub(lambda found: "_" * len(found[0]), text)


def parts(text: str) -> list[str]:
    """The parts between commas, stripped; empty parts are left out."""
    commas = [found.start() for found in re.finditer(",", masked(text))]
    ends = zip([0, *(place + 1 for place in commas)], [*commas, len(text)], strict=True)
    return [part for start, end in ends if (part := text[start:end].strip())]


def unquoted(text: str) -> str:
    """A name without its quotes, if it has some."""
    return text[1:-1] if re.fullmatch(QUOTED, text) else text


def literal(text: str) -> Any:
    """The value that a text spells; ValueError if it is not a Python literal, or one that is too long or too deep.

    A dict that maps a name twice is an error: one of the two would be lost.
    """
    try:
        found, tree = ast.literal_eval(text), ast.parse(text.strip(), mode="eval").body
    except (TypeError, SyntaxError, RecursionError, MemoryError) as error:  # TypeError: a list as the key of a dict
        raise ValueError(str(error)) from None
    if isinstance(tree, ast.Dict) and len(tree.keys) > len(found):
        raise ValueError("a key occurs twice")
    return found


def whole_number(text: str) -> int | None:
    """The number that decimal digits spell; None for any other text, and for a number beyond 64 bits.

    Python converts no text of more than 4300 digits.
    """
    digits = text.lstrip("0") or text
    if not text.isdecimal() or len(digits) > len(str(LARGEST)):
        return None
    found = int(digits)
    return found if found <= LARGEST else None


def shown(value: Any) -> str:
    """A value for a message: its spelling, shortened, or its type if its spelling is too long or too deep for Python.

    Integers of more than 4300 digits have no decimal spelling.
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
