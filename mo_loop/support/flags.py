"""flag: a field of a dataclass that is an option of the command line as well, as plain data.

    @dataclass
    class BatchOptions:
        jobs: int | None = flag(None, "Worker processes.", RUN, "-j", "--jobs", metavar="N", least=1)

mo_loop/cli/flag_options.py makes options of click from the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from textwrap import wrap
from typing import Any, NamedTuple

FILES, IMAGES, CONVERSION, STATES = "Inputs and outputs", "Preparation of images", "Conversion", "States"
COMPARISON, RUN, PASSES, REPORTS = "Comparison", "Run", "Passes and debugging", "Reports and messages"
GROUPS = (FILES, IMAGES, CONVERSION, STATES, COMPARISON, RUN, PASSES, REPORTS)
"""The titles of --help and docs/cli.md, in their order."""


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


def flag(
    default: Any, text: str, group: str, *names: str, place: int = 0, note: str = "", needs: str = "",
    recorded: bool = True, **settings: Any,
) -> Any:  # fmt: skip
    """A field with this default. It is a switch where that is False, and can be repeated where that is a tuple.

    Args:
        default: that of the field; where it is True and one name is given, the flag switches it off.
        text: the text in --help.
        group: the title above it in --help; there options with a lower `place` come first, the others as declared.
        names: the flags, where they are not the name of the field with dashes.
        place: see `group`.
        note: an addition in the library's documentation, such as the forms of values in Python.
        needs: the field without which this one has no effect.
        recorded: whether the rt_info of an IR records it.
        settings: see Flag.
    """
    made = Flag(default, text, group, names, place, settings, note, needs)
    return field(default=default, metadata={"flag": made, "recorded": recorded})


def argument(default: Any, text: str) -> Any:
    """A field with this default that the command line does not have; `text` is for the documentation."""
    return field(default=default, metadata={"text": text})


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
        text = f"{known.help} {known.note}" if known else each.metadata.get("text", "")
        text = text.replace(REPEATED, "")
        if text:
            lines += wrap(
                f"{each.name} ({each.type}): {' '.join(text.split())}", 116, initial_indent=" " * indent,
                subsequent_indent=" " * (indent + 4), break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
    return "\n".join(lines) + "\n"


REPEATED = " Can be repeated."
"""A sentence of the flags that is not one of the fields."""
