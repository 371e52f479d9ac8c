"""Outputs that continue inputs, by the names that exporters give them; the names of states.

>>> is_next("past_key_values.0.key", "present.0.key"), is_next("h0", "hN"), is_next("past_0", "present_1")
(True, True, False)
"""

import re

_WORDS = re.compile(r"\d+|[A-Za-z]+")

_PAST = frozenset(("past", "old", "prev", "previous", "last"))

_TIMES = _PAST | frozenset(
    ("present", "new", "next", "in", "out", "input", "output", "initial", "init", "final", "updated", "cur", "current")
) | {"l"}
"""Words that show which of the two a name is, and not the carried tensor; torch begins the name of an input with `l_`.
"""

BEAM_INDEX = "beam_idx"
"""The input that reorders caches along the batch, by the name that openvino_genai and optimum-intel expect."""


def variable_id(before: str, after: str) -> str:
    """OpenVINO's name of the variable of an input and of the output that is its next value."""
    return before + after


def is_next(before: str, after: str) -> bool:
    """Whether two names differ as those of a state before and after an inference do."""
    if before == after or not before or not after:
        return False
    if after in (f"{before}n", f"{before}N", f"{before}_n", f"{before}_N"):
        return True
    stem = re.fullmatch(r"(.+?)_?0", before)
    if stem is not None and after.lower() in (f"{stem[1]}n".lower(), f"{stem[1]}_n".lower()):
        return True
    return (before, after) == ("past", "present") or _carried(before) == _carried(after) != ()


def is_past(name: str) -> bool:
    """Whether a name shows that the value is that of an earlier inference."""
    return not _PAST.isdisjoint(word.lower() for word in _WORDS.findall(name))


def _carried(name: str) -> tuple[str, ...]:
    """The words of a name without those of `_TIMES`; `past_key_values` and `present_key_values` are such words too."""
    name = re.sub(r"(past|present)_key_values?(?=$|[^a-z])", r"\1", name)
    return tuple(word for word in (found.lower() for found in _WORDS.findall(name)) if word not in _TIMES)
