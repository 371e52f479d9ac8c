"""Operators on texts of onnxruntime-extensions: the same strings and numbers as those of its release 0.15."""

from __future__ import annotations

import numpy as np

from mo_loop.frontend.ops.shared import counted, ranked
from mo_loop.frontend.ops.texts import expressions, letter_case, strings
from mo_loop.frontend.ops.texts.strings import StringPlaces
from mo_loop.frontend.ops.texts.text_operators import string_concat, unsupported
from mo_loop.frontend.vocabulary import ModelError, Value, ops, translates
from mo_loop.graph.dimension import low
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import i32, i64
from mo_loop.ops.lengths import vector

DOMAIN = "ai.onnx.contrib"

_SPACE = "[\t-\r ]"


def lowered(letter: int) -> int:
    """The lower case that the extensions have of a letter. Some of Greek have that of others."""
    if any(first <= letter <= last for first, last in _CAPITALS):
        return letter + 32
    return letter


_CAPITALS = (
    (0x41, 0x5A), (0xC0, 0xD6), (0xD8, 0xDE), (0x399, 0x39D), (0x39F, 0x3A0), (0x410, 0x42F), (0x1F08, 0x1F68),
)


def in_letters(texts: StringPlaces, new: dict[str, str]) -> StringPlaces:
    """The strings with other letters."""
    table = np.frombuffer(letter_case.table_of(new), np.uint8)
    return StringPlaces(*ops.CharsMapNormalization(*texts.with_bytes(), table))


def _changed(x: Value, new: dict[str, str]) -> Value:
    return strings.packed(in_letters(strings.taken(x), new), x.sizes)


@translates("StringLower", since=1, domain=DOMAIN)
def string_lower(x):
    """Lower case of the letters that the extensions know."""
    return _changed(x, {chr(each): chr(lowered(each)) for pair in _CAPITALS for each in range(pair[0], pair[1] + 1)})


@translates("StringUpper", since=1, domain=DOMAIN)
def string_upper(x):
    """Upper case of the letters of ASCII."""
    return _changed(x, {chr(each): chr(each - 32) for each in range(ord("a"), ord("z") + 1)})


@translates("StringStrip", since=1, domain=DOMAIN)
def string_strip(x):
    """Without white space of ASCII at both ends; a string of nothing else stays as it is."""
    other = _SPACE.replace("[", "[^")
    return strings.packed(strings.taken(x).replaced(rf"\A{_SPACE}++(?={other})|(?<={other}){_SPACE}++\z"), x.sizes)


@translates("StringConcat", since=1, domain=DOMAIN)
def string_concat_of_extensions(x, y):
    """As StringConcat of ONNX."""
    return string_concat(x, y)


@translates("StringEqual", since=1, domain=DOMAIN)
def string_equal(x, y):
    """As Equal of ONNX for strings. The package compares numbers, too, which are refused here."""
    strings.require_strings(x, y)
    return strings.equal_strings(x, y)


@translates("StringLength", since=1, domain=DOMAIN)
def string_length(x):
    """The number of characters: bytes that do not continue one."""
    texts = strings.taken(x)
    chars = ops.Concat(texts.chars, np.zeros(1, np.uint8), axis=0).astype(i32)
    begins = ops.LogicalOr(ops.Less(chars, np.int32(0x80)), ops.GreaterEqual(chars, np.int32(0xC0)))
    before = ops.CumSum(begins.astype(i32), np.int64(0), exclusive=True)
    counts = ops.Gather(before, texts.ends, 0) - ops.Gather(before, texts.begins, 0)
    return ops.Reshape(counts.astype(i64), x.sizes)


def _text(x: Value, name: str) -> str:
    """The string of a constant input."""
    known = strings.constant_strings(x)
    if known is None or len(known) != 1:
        raise unsupported(f"a text that is computed (the input {name!r})")
    return known[0].decode()


@translates("StringJoin", since=1, domain=DOMAIN)
def string_join(x, sep, axis):
    """The strings along an axis as one, with a separator between them: each has one after it, and the last is cut."""
    rank, known, between = ranked(x), axis.type.integers, _text(sep, "input_sep")
    if known is None or len(known) != 1 or "\\" in between:
        raise unsupported("StringJoin along a computed axis, or with a backslash between strings")
    at, texts, cut = normalise_axis(known[0], rank or 1), strings.taken(x), np.int32(len(between.encode()))
    between = between.replace("$", "$$")
    if rank < 2:  # there may be no strings
        begins, _, chars = texts.with_empty().replaced(r"\z", between)
        return strings.packed(StringPlaces(begins[:1], ops.Maximum(begins[-1:] - cut, begins[:1]), chars), [1])
    if low(x.type.dims[at]) < 1:
        raise unsupported("StringJoin along an axis that may have no elements")
    order = [*(each for each in range(rank) if each != at), at]
    numbers = ops.Transpose(ops.Reshape(counted(texts.begins.size(0), texts.begins), x.sizes), order)
    begins, ends, chars = texts.at(vector(numbers)).replaced(r"\z", between)
    begins, ends = (each.reshape([-1, x.size(at)]) for each in (begins, ends))
    whole = StringPlaces(ops.Gather(begins, 0, 1), ops.Gather(ends, -1, 1) - cut, chars)
    return strings.packed(whole, ops.Gather(x.sizes, order[:-1], 0))


@translates("StringRegexReplace", since=1, domain=DOMAIN)
def string_regex_replace(x, pattern, rewrite, *, global_replace: int = 1):
    """The matches of one set of characters are replaced by a short text."""
    expression, new = _text(pattern, "pattern"), _text(rewrite, "rewrite")
    given, is_repeated = expressions.one_set(expression) or ("", False)
    if not given or expression == ".+" or "\\" in new or "$" in new or len(new.encode()) > _SHORT:
        raise unsupported(f"StringRegexReplace of {expression!r} by {new!r}")
    replaced = strings.taken(x).replaced(f"{given}{'++' if is_repeated else ''}", new, bool(global_replace))
    return strings.packed(replaced, x.sizes)


_SHORT = 4
"""The library has room for texts that become four times as long."""


@translates("StringMapping", since=1, domain=DOMAIN)
def string_mapping(x, *, map: str):
    """Strings of a table become others; the others stay."""
    known = _table(map)
    texts, keys = strings.taken(x), strings.as_bytes(known)
    found = strings.encoded(ops.Reshape(x, [-1]), keys, len(keys))
    begins, ends, chars = strings.constant_texts(strings.as_bytes(known.values()))
    size = ops.ShapeOf(texts.chars, output_type=i32)
    is_key = ops.Less(found, np.int32(len(keys)))
    places = ops.Minimum(found, np.int32(len(keys) - 1))
    begins, ends = (
        ops.Select(is_key, ops.Gather(new, places, 0) + size, old)
        for new, old in ((begins, texts.begins), (ends, texts.ends))
    )
    made = StringPlaces(begins, ends, ops.Concat(texts.chars, chars, axis=0))
    return strings.packed(made, x.sizes, ordered=False)


@translates("StringToVector", since=1, domain=DOMAIN)
def string_to_vector(x, *, map: str, unk: str):
    """A row of a table for each string, and another row for those that the table does not have."""
    known = _table(map)
    try:
        rows = np.array([[int(each) for each in row.split(" ") if each] for row in (*known.values(), unk)], np.int64)
    except ValueError as error:
        raise ModelError("the rows of map and unk are not as many integers each", code="ML227") from error
    return ops.Gather(rows, strings.encoded(x, strings.as_bytes(known), len(known)), 0)


def _table(text: str) -> dict[str, str]:
    """Lines of a key, a tabulator and a value; the last of equal keys counts."""
    lines = [[each for each in line.split("\t") if each] for line in text.split("\n") if line]
    if not lines:
        raise ModelError("the map is empty", code="ML227")
    wrong = next((line for line in lines if len(line) != 2), None)
    if wrong is not None:
        raise ModelError(f"a line of the map does not have two fields: {wrong}", code="ML227")
    return dict(lines)
