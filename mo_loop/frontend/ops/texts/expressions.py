"""Regular expressions of RE2 for PCRE2, which openvino_tokenizers has.

    as_pcre(r"\\w+@(a|b)\\.com")       # an expression for whole texts, and whether it matches the empty text

A set of characters is written with its numbers, and each assertion with sets, so that they mean the same. What remains
is the search: RE2 follows all ways through an expression at once, and PCRE2 one after another. It gives up, and reports
no match, after 10 million steps. So an expression is refused if a text of 100,000 characters may need more:

- A choice is made by the next character, if what can follow is disjoint. Such a choice costs nothing.
- Other choices multiply the ways. One of them may be as long as the text, if it is among repetitions of one set.
- A group that is repeated without limit has no other choices: PCRE2 would keep each repetition in memory.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import combinations, pairwise
from math import prod
from typing import NamedTuple

from mo_loop.errors import UnsupportedError

Ranges = tuple[tuple[int, int], ...]

_MOST_WAYS = 100
"""The ways for each character: 10 million steps for 100,000 characters."""

_LONGEST = 8_000
"""The library allows 4,000 open groups: each takes several characters."""


class _Written(NamedTuple):
    """An expression of PCRE2, its size when repetitions are written out, and what its search costs: the ways through
    it, the choices among them that are as long as the text, and whether it repeats a group without limit."""

    text: str
    size: int
    ways: int = 1
    long_choices: int = 0
    long: bool = False


def as_pcre(pattern: str) -> tuple[str, bool]:
    """The expression of PCRE2 that matches a text if the one of RE2 matches all of it; whether it matches "" too."""
    whole = _parsed(pattern)
    made = whole.written(())
    steps = made.ways * (len(pattern) if made.long or made.long_choices else 1)
    if made.long_choices > 1 or steps > _MOST_WAYS or made.size > _LONGEST:
        raise _refused(pattern, "PCRE2 may need more steps or memory than it allows")
    return rf"\A(?:{made.text})\z", whole.at_empty


def one_set(pattern: str) -> tuple[str, bool] | None:
    """The set of PCRE2 for one set of characters, and whether a + is after it; None for another expression."""
    found = _ITEM.match(pattern)
    if found is None or pattern[found.end() :] not in ("", "+") or found.lastgroup in ("open", "close", "or", "point"):
        return None
    with suppress(UnsupportedError):
        return _chars(_set(found, pattern)).written(()).text, found.end() < len(pattern)
    return None


def _refused(pattern: str, why: str) -> UnsupportedError:
    return UnsupportedError(f"the regular expression {pattern!r}: {why}", code="ML303")


def _union(*sets: Ranges) -> Ranges:
    made: list[tuple[int, int]] = []
    for first, last in sorted(pair for each in sets for pair in each):
        if made and first <= made[-1][1] + 1:
            first, last = made[-1][0], max(last, made.pop()[1])
        made.append((first, last))
    return tuple(made)


def _others(given: Ranges) -> Ranges:
    """All characters but these; the codes of surrogates are left out."""
    pairs = [(-1, -1), *_union(given, ((0xD800, 0xDFFF),)), (0x110000, 0x110000)]
    return tuple((a + 1, b - 1) for (_, a), (b, _) in pairwise(pairs) if a + 1 < b)


def _meet(x: Ranges, y: Ranges) -> bool:
    return any(a <= d and c <= b for a, b in x for c, d in y)


class _Part(NamedTuple):
    """Part of an expression: the characters with which it can begin, whether it matches no character, and whether it
    matches the empty text; `written` takes the characters that can follow."""

    first: Ranges
    may_be_empty: bool
    at_empty: bool
    written: Callable[[Ranges], _Written]
    is_set: bool = False


def _chars(given: Ranges) -> _Part:
    """One character of a set."""
    text = "".join(rf"\x{{{a:x}}}-\x{{{b:x}}}" for a, b in _others(_others(given)))
    made = _Written(f"[{text}]" if text else "(?!)", len(text) + 2)
    return _Part(given, False, False, lambda _: made, is_set=True)


def _point(text: str, at_empty: bool) -> _Part:
    """A place in the text. `at_empty`: whether the one place of the empty text is such a place."""
    return _Part((), True, at_empty, lambda _: _Written(text, len(text)))


def _first_of(parts: Sequence[_Part], after: Ranges) -> Ranges:
    """The characters with which these, and what is after them, can begin."""
    needed = next((k + 1 for k, each in enumerate(parts) if not each.may_be_empty), None)
    return _union(*(each.first for each in parts[:needed]), after if needed is None else ())


def _chain(parts: Sequence[_Part]) -> _Part:
    """Expressions, one after another."""

    def written(after: Ranges) -> _Written:
        made = [part.written(_first_of(parts[k + 1 :], after)) for k, part in enumerate(parts)]
        # A long choice before a long group: the group is tried from each place.
        places = [k for k, each in enumerate(made) if each.long_choices]
        nested = bool(places) and any(each.long for each in made[places[0] + 1 :])
        return _Written(
            "".join(each.text for each in made), sum(each.size for each in made), prod(each.ways for each in made),
            sum(each.long_choices for each in made) + nested, any(each.long for each in made),
        )

    empty, at_empty = all(each.may_be_empty for each in parts), all(each.at_empty for each in parts)
    return _Part(_first_of(parts, ()), empty, at_empty, written)


def _either(parts: Sequence[_Part]) -> _Part:
    """One of several expressions. One that may be empty comes last: it matches before any character."""
    empty = [each for each in parts if each.may_be_empty]
    ordered = [*(each for each in parts if not each.may_be_empty), *empty]

    def written(after: Ranges) -> _Written:
        made, firsts = [each.written(after) for each in ordered], [_first_of((each,), after) for each in ordered]
        is_open = len(empty) > 1 or any(_meet(*pair) for pair in combinations(firsts, 2))
        return _Written(
            f"(?:{'|'.join(each.text for each in made)})", 4 + sum(each.size for each in made),
            (sum if is_open else max)(each.ways for each in made), max(each.long_choices for each in made),
            any(each.long for each in made),
        )

    return _Part(_union(*(each.first for each in parts)), bool(empty), any(each.at_empty for each in parts), written)


def _repeated(part: _Part, least: int, most: int | None) -> _Part:
    """An expression at least and at most so many times; without `most` there is no limit."""

    def written(after: Ranges) -> _Written:
        one = part.written(after if most == 1 else _union(part.first, after))
        is_open = one.ways > 1 or one.long_choices > 0 or (most != least and _meet(part.first, after))
        text = f"{one.text}{{{least},{'' if most is None else most}}}" + "+" * (not is_open)
        if most is None:
            return _Written(text, one.size * (least + 1), 1, is_open * (1 if part.is_set else 2), not part.is_set)
        ways = (most - least + 1 if is_open else 1) * one.ways ** min(most, _MOST_WAYS)
        return _Written(text, one.size * (1 if part.is_set else most), ways, one.long_choices * most, one.long)

    return _Part(part.first, not least, not least, written)


_ITEM = re.compile(
    r"""(?P<open>\((?:\?:|\?P<\w+>|(?!\?))) | (?P<close>\)) | (?P<or>\|) | (?P<point>\\[AzbB]|[$^]) | (?P<any>\.)
    | (?P<set>\[\^?\]?(?:\\.|[^]\\[])*\]) | (?P<kind>\\[wdsWDS])
    | (?P<char>\\(?:x[0-9a-fA-F]{2} | x\{[0-9a-fA-F]{1,5}\} | [afnrtv] | [^\w\x80-\U0010ffff]) | [^][\\*+?()|.^$])""",
    re.ASCII | re.DOTALL | re.VERBOSE,
)
_MEMBER = r"(\\x\{[0-9a-fA-F]{1,5}\}|\\x[0-9a-fA-F]{2}|\\[afnrtvwdsWDS]|\\[^\w\x80-\U0010ffff]|[^\\])"
_RANGE = re.compile(f"{_MEMBER}(?:-{_MEMBER})?", re.ASCII | re.DOTALL)
_REPEAT = re.compile(r"(?:([*+?])|\{(\d+)(,?)(\d*)\})\??", re.ASCII)
_COUNTS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}

_KINDS: dict[str, Ranges] = {
    "w": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)), "d": ((0x30, 0x39),),
    "s": ((9, 10), (12, 13), (32, 32)),
}
"""The sets of RE2, which have characters of ASCII alone."""

_CONTROLS = dict(zip("afnrtv", "\a\f\n\r\t\v", strict=True))

_BORDER = "(?:(?<=[0-9A-Z_a-z])(?{}[0-9A-Z_a-z])|(?<![0-9A-Z_a-z])(?{}[0-9A-Z_a-z]))"
_POINTS = {
    **dict.fromkeys(("^", r"\A"), _point(r"(?:\A)", True)), **dict.fromkeys(("$", r"\z"), _point(r"(?:\z)", True)),
    r"\b": _point(_BORDER.format("!", "="), False), r"\B": _point(_BORDER.format("=", "!"), True),
}


def _parsed(pattern: str) -> _Part:
    groups: list[list[list[_Part]]] = [[[]]]
    place = 0
    while place < len(pattern):
        found = _ITEM.match(pattern, place)
        if found is None or _REPEAT.match(pattern, place) or (found.lastgroup == "close" and len(groups) == 1):
            raise _refused(pattern, f"{pattern[place : place + 4]!r} is not among the forms that are translated")
        place, kind = found.end(), found.lastgroup
        if kind == "open":
            groups.append([[]])
        elif kind == "or":
            groups[-1].append([])
        else:
            whole = _either([*map(_chain, groups.pop())]) if kind == "close" else None
            part = whole or _POINTS.get(found[0]) or _chars(_set(found, pattern))
            repeat = _REPEAT.match(pattern, place)
            place = repeat.end() if repeat else place
            groups[-1][-1].append(_repetition(part, repeat, pattern) if repeat else part)
    if len(groups) > 1:
        raise _refused(pattern, "a group has no end")
    return _either([*map(_chain, groups[0])])


def _repetition(part: _Part, found: re.Match[str], pattern: str) -> _Part:
    sign, low, comma, high = found.groups()
    least, most = _COUNTS[sign] if sign else (int(low), (int(high) if high else None) if comma else int(low))
    if max(least, most or 0) > 1000 or (most is not None and most < least):
        raise _refused(pattern, f"RE2 does not have the number of repetitions {found[0]}")
    if part.may_be_empty and most != 1:
        raise _refused(pattern, f"{found[0]} repeats what may be empty")
    return _repeated(part, least, most)


def _set(found: re.Match[str], pattern: str) -> Ranges:
    """The characters of an item of the expression."""
    text = found[0]
    if not found["set"]:
        return _others(((10, 10),)) if found["any"] else _member(text)
    inner = text[2 if text[1] == "^" else 1 : -1]
    sets, place = list[Ranges](), 0
    while place < len(inner):
        each = _RANGE.match(inner, place)
        low, high = (_member(part or each[1]) for part in each.groups()) if each else ((), ())
        is_last = each is not None and each.end() == len(inner)
        if each is None or (each[1] == "-" and place and not is_last) or (each[2] and not _is_range(low, high)):
            raise _refused(pattern, f"{inner[place:]!r} in a set is not among the forms that are translated")
        sets.append(((low[0][0], high[0][0]),) if each[2] else low)
        place = each.end()
    return _others(_union(*sets)) if text[1] == "^" else _union(*sets)


def _is_range(low: Ranges, high: Ranges) -> bool:
    return len(low) == len(high) == 1 and low[0][0] == low[0][1] <= high[0][0] == high[0][1]


def _member(text: str) -> Ranges:
    kind = text[1:2]
    if text[0] != "\\":
        code = ord(text)
    elif kind.lower() in _KINDS:
        return _KINDS[kind] if kind in _KINDS else _others(_KINDS[kind.lower()])
    else:
        code = int(text[2:].strip("{}"), 16) if kind == "x" else ord(_CONTROLS.get(kind, kind))
    return ((code, code),)
