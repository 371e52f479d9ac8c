"""Operators on texts. Where ONNX leaves a result open, it is that of ONNX Runtime.

They are translated if operations of the package openvino_tokenizers compute exactly the same; a form of a node that
they do not express is an UnsupportedError.
"""

import re
from typing import Any, NamedTuple

import numpy as np

from mo_loop.frontend.ops.shared import counted, ranked, require_choice
from mo_loop.frontend.ops.texts import expressions, letter_case, strings
from mo_loop.frontend.ops.texts.strings import StringPlaces
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph import i32, i64, low, normalise_axis, u8
from mo_loop.ops.lengths import FAR, vector
from mo_loop.ops.ranges import Strings

DOMAIN = "ai.onnx.contrib"
"""The domain of onnxruntime-extensions."""

_LOCALE = re.compile(r"(en([_-]\w+)?|C)(\.UTF-?8)?", re.IGNORECASE)
"""The locales whose letters have the cases of Unicode. C has them with UTF-8 alone."""


def unsupported(what: str) -> UnsupportedError:
    """The error of a form that the operations of the package do not express."""
    return UnsupportedError(f"{what}: openvino_tokenizers has no operation that computes it exactly", code="ML303")


@translates("StringConcat", since=1, domain=DOMAIN)
@translates("StringConcat", since=20)
def string_concat(x, y):
    """Pairs of strings, one after another. CombineSegments joins integers of 32 bits alone, and no shared ones."""
    *pairs, sizes = strings.paired(x, y)
    parts = pairs if x.type.dims == y.type.dims else [strings.in_order(each) for each in pairs]
    both = [each for part in parts for each in part.with_empty()._replace(chars=part.chars.astype(i32))]
    begins, ends, chars, *_ = ops.CombineSegments(*both, np.array([0, 1], np.int32))
    return ops.Reshape(strings.without_last(ops.StringTensorPack(begins, ends, chars.astype(u8))), sizes)


@translates("StringNormalizer", since=10)
def string_normalizer(
    x, *, case_change_action: str = "NONE", is_case_sensitive: int = 0, locale: str | None = None,
    stopwords: Strings | None = None,
):
    """[C] or [1, C] without the stop words, then in upper or lower case. If no string is left, one empty string."""
    rank = ranked(x)
    require_choice("case_change_action", case_change_action, ("NONE", "LOWER", "UPPER"))
    if rank not in (1, 2):
        raise ModelError(f"the input has rank {rank}, and must be [C] or [1, C]", code="ML227")
    texts = strings.taken(x)
    reads_case = bool(stopwords) and not is_case_sensitive
    if reads_case or case_change_action != "NONE":
        name = locale or ""
        if (name and not _LOCALE.fullmatch(name)) or name.upper() == "C":
            raise unsupported(f"letters of the locale {name!r}, where only the letters of English are known")
    # Without regard to case, strings and stop words are compared in the case of the result, or in lower case.
    compared = "UPPER" if case_change_action == "UPPER" else "LOWER"
    compared = compared if reads_case else "NONE"
    actions = dict.fromkeys((case_change_action, compared))
    in_case = {each: texts if each == "NONE" else in_letters(texts, letter_case.table(each)) for each in actions}
    made = in_case[case_change_action]
    if stopwords:
        words = dict.fromkeys(letter_case.changed(compared, word).encode() for word in stopwords)
        made = made.with_empty().at(_kept(in_case[compared], list(words)))
    sizes = made.begins.sizes
    return strings.packed(made, sizes if rank == 1 else ops.Concat([1], sizes, axis=0))


def in_letters(texts: StringPlaces, table: bytes) -> StringPlaces:
    """The strings with the letters that a table of letter_case.py has for those of the strings."""
    return StringPlaces(*ops.CharsMapNormalization(*texts.with_bytes(), np.frombuffer(table, np.uint8)))


def _kept(texts: StringPlaces, words: list[bytes]) -> Value:
    """The places of the strings that are not among the words; if there are none, that of the string after all."""
    found = ops.VocabEncoder(
        *texts, *strings.constant_texts(words), np.ones(len(words), np.int32), np.zeros(1, np.int32)
    )
    all_dropped = ops.ReduceMin(found, [0], keep_dims=True)
    return ops.Squeeze(ops.NonZero(ops.Concat(ops.Subtract(np.int32(1), found), all_dropped, axis=0)), 0)


class _Matches(NamedTuple):
    """The matches of a regular expression in N strings: those of string k are from first[k] to last[k], i32[N]."""

    first: Value
    last: Value
    texts: StringPlaces


def matches(texts: StringPlaces, pattern: str) -> _Matches:
    """The matches of an expression of PCRE2 in each string."""
    rows = counted(texts.begins.size(0), texts.begins).astype(i32)
    given = np.frombuffer(pattern.encode(), np.uint8)
    found = ops.RegexSplit(rows, rows + np.int32(1), *texts.with_bytes(), given, behaviour="remove", invert=True)
    return _Matches(found[0], found[1], StringPlaces(*found[2:]))


class Grid:
    """N rows of W places, where row k has counts[k] pieces from first[k], and W is `width`, or the largest number."""

    def __init__(self, first: Value, counts: Value, width: int | None = None) -> None:
        self._first = first
        largest = ops.ReduceMax(_and_zero(counts), [0], keep_dims=True).astype(i64) if width is None else None
        self.width: Any = np.array([width], np.int64) if largest is None else largest
        self.number = ops.Unsqueeze(counted(width or ops.Squeeze(self.width, 0), counts).astype(i32), 0)
        self.count = column(counts)
        self.is_piece = ops.Less(self.number, self.count)

    def of_match(self, places: Value, shift: int = 0) -> Value:
        """i32[N, W]: the elements of the rows, and those after a shorter row, `shift` later; 0 beyond all of them."""
        index = column(self._first) + self.number + np.int32(shift)
        last = ops.ShapeOf(places, output_type=i32)
        return ops.Gather(_and_zero(places), ops.Minimum(ops.Maximum(index, 0), last), 0)

    def texts(self, begins: Value, ends: Value, begin: Value, end: Value, chars: Value) -> StringPlaces:
        """The pieces, and a text from `begin` to `end` where a row has no more of them."""
        begins, ends = (ops.Select(self.is_piece, *pair) for pair in ((begins, begin), (ends, end)))
        return StringPlaces(vector(begins), vector(ends), chars)


def column(x: Value) -> Value:
    """[N, 1] of [N]."""
    return ops.Unsqueeze(x, 1)


def _and_zero(places: Value) -> Value:
    return ops.Concat(places, np.zeros(1, np.int32), axis=0)


@translates("StringSplit", since=20)
def string_split(x, *, delimiter: str | None = None, maxsplit: int | None = None):
    """[..., D] pieces, where rows of fewer pieces end with empty strings, and the numbers of pieces. As in ONNX
    Runtime, an empty string has no pieces, and without a delimiter a text is split at spaces, not at other white space.
    """
    texts, most = strings.taken(x), None if maxsplit is None or maxsplit < 0 else maxsplit
    found = matches(texts, _PUNCTUATION.sub(r"\\\g<0>", delimiter or "") or "[^ ]+")
    split = _at_delimiters if delimiter else _at_spaces
    pieces, counts, width = split(texts, found, most)
    return strings.packed(pieces, ops.Concat(x.sizes, width, axis=0)), ops.Reshape(counts.astype(i64), x.sizes)


_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
"""The characters that may have a meaning in a regular expression of PCRE2."""


def _at_delimiters(texts: StringPlaces, found: _Matches, most: int | None) -> tuple[StringPlaces, Value, Value]:
    cuts = found.last - found.first
    cuts = cuts if most is None else ops.Minimum(cuts, np.int32(min(most, FAR)))
    counts = ops.Multiply(cuts + np.int32(1), ops.Greater(texts.ends, texts.begins).astype(i32))
    grid, begin, end = Grid(found.first, counts), column(texts.begins), column(texts.ends)
    begins = ops.Select(ops.Equal(grid.number, 0), begin, grid.of_match(found.texts.ends, -1))
    ends = ops.Select(ops.Equal(grid.number + np.int32(1), grid.count), end, grid.of_match(found.texts.begins))
    return grid.texts(begins, ends, end, end, texts.chars), counts, grid.width


def _at_spaces(texts: StringPlaces, found: _Matches, most: int | None) -> tuple[StringPlaces, Value, Value]:
    counts = found.last - found.first
    counts = counts if most is None else ops.Minimum(counts, np.int32(min(most, FAR - 1) + 1))
    grid, end = Grid(found.first, counts), column(texts.ends)
    begins, ends = grid.of_match(found.texts.begins), grid.of_match(found.texts.ends)
    if most is not None:  # the last piece is the rest of the text, without the spaces at its end
        rest = ops.Gather(_and_zero(found.texts.ends), ops.Maximum(column(found.last) - np.int32(1), 0), 0)
        ends = ops.Select(ops.Equal(grid.number, np.int32(min(most, FAR))), rest, ends)
    return grid.texts(begins, ends, end, end, texts.chars), counts, grid.width


@translates("RegexFullMatch", since=20)
def regex_full_match(x, *, pattern: str | None = None):
    """Whether the expression matches the whole text: a match becomes the empty text."""
    if pattern is None:
        raise ModelError("the node needs the attribute pattern", code="ML227")
    (text, matches_empty), texts = expressions.as_pcre(pattern), strings.taken(x)
    rest = texts.replaced(text)
    was_empty, is_empty = (ops.Equal(each.begins, each.ends) for each in (texts, rest))
    found = is_empty if matches_empty else ops.LogicalAnd(is_empty, ops.LogicalNot(was_empty))
    return ops.Reshape(found, x.sizes)


@translates("Tokenizer", since=1, domain=MICROSOFT)
def tokenizer(
    x, *, mark: int, mincharnum: int, pad_value: str, separators: Strings | None = None, tokenexp: str | None = None,
):
    """[C, D] or [N, C, D]: the matches of a regular expression, and `pad_value` where a string has fewer."""
    rank = ranked(x)
    if rank not in (1, 2):
        raise ModelError(f"the input has rank {rank}, and must be [C] or [N, C]", code="ML227")
    if separators or not tokenexp:
        raise unsupported("Tokenizer with separators, which are several regular expressions")
    if mark:
        raise unsupported("Tokenizer with marks at both ends of a text")
    given, is_repeated = expressions.one_set(tokenexp) or ("", False)
    least = max(mincharnum, 1)
    if not given or tokenexp == ".+" or (tokenexp == "." and least > 1):
        raise unsupported(f"Tokenizer of the regular expression {tokenexp!r}, which is not one set of characters,")
    # Shorter matches are not tokens, and longer ones are whole. ONNX Runtime takes every character for the dot alone.
    one = "(?s:.)" if tokenexp == "." else given if least == 1 else "(?!)"
    texts = strings.taken(x)
    found = matches(texts, f"{given}{{{least},}}" if is_repeated else one)
    counts = found.last - found.first
    grid, pad = Grid(found.first, counts), pad_value.encode()
    begin = ops.ShapeOf(texts.chars, output_type=i32)
    chars = ops.Concat(texts.chars, np.frombuffer(pad, np.uint8), axis=0) if pad else texts.chars
    pieces = (grid.of_match(found.texts.begins), grid.of_match(found.texts.ends))
    tokens = grid.texts(*pieces, begin, begin + np.int32(len(pad)), chars)
    return strings.packed(tokens, ops.Concat(x.sizes, grid.width, axis=0), ordered=False)


# -- onnxruntime-extensions: the same strings and numbers as those of its release 0.15


_SPACE = "[\t-\r ]"


def lowered(letter: int) -> int:
    """The lower case that the extensions have of a letter. Some of Greek have that of others."""
    return letter + 32 if any(first <= letter <= last for first, last in _CAPITALS) else letter


_CAPITALS = ((0x41, 0x5A), (0xC0, 0xD6), (0xD8, 0xDE), (0x399, 0x39D), (0x39F, 0x3A0), (0x410, 0x42F), (0x1F08, 0x1F68))


def _changed(x: Value, new: dict[str, str]) -> Value:
    """The strings with other letters."""
    return strings.packed(in_letters(strings.taken(x), letter_case.table_of(new)), x.sizes)


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
