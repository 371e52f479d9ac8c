"""Operators on texts. Where ONNX leaves a result open, it is that of ONNX Runtime.

They are translated if operations of the package openvino_tokenizers compute exactly the same; a form of a node that
they do not express is an UnsupportedError.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from mo_loop.frontend.ops.shared import counted, ranked, require_choice
from mo_loop.frontend.ops.texts import expressions, letter_case, strings
from mo_loop.frontend.ops.texts.strings import StringPlaces
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import i32, i64, u8
from mo_loop.ops.lengths import FAR, vector
from mo_loop.ops.ranges import Strings

_LOCALE = re.compile(r"(en([_-]\w+)?|C)(\.UTF-?8)?", re.IGNORECASE)
"""The locales whose letters have the cases of Unicode. C has them with UTF-8 alone."""


def unsupported(what: str) -> UnsupportedError:
    """The error of a form that the operations of the package do not express."""
    return UnsupportedError(f"{what}: openvino_tokenizers has no operation that computes it exactly", code="ML303")


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
    in_case = {each: _in_case(texts, each) for each in dict.fromkeys((case_change_action, compared))}
    made = in_case[case_change_action]
    if stopwords:
        words = dict.fromkeys(letter_case.changed(compared, word).encode() for word in stopwords)
        made = made.with_empty().at(_kept(in_case[compared], list(words)))
    sizes = made.begins.sizes
    return strings.packed(made, sizes if rank == 1 else ops.Concat([1], sizes, axis=0))


def _in_case(texts: StringPlaces, action: str) -> StringPlaces:
    if action == "NONE":
        return texts
    table = np.frombuffer(letter_case.table(action), np.uint8)
    return StringPlaces(*ops.CharsMapNormalization(*texts.with_bytes(), table))


def _kept(texts: StringPlaces, words: list[bytes]) -> Value:
    """The places of the strings that are not among the words; if there are none, that of the string after all."""
    found = ops.VocabEncoder(
        *texts, *strings.constant_texts(words), np.ones(len(words), np.int32), np.zeros(1, np.int32)
    )
    all_dropped = ops.ReduceMin(found, [0], keep_dims=True)
    kept = ops.Concat(ops.Subtract(np.int32(1), found), all_dropped, axis=0)
    return ops.Squeeze(ops.NonZero(kept), 0)


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
        self.width: Any = _largest(counts) if width is None else np.array([width], np.int64)
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


def _largest(counts: Value) -> Value:
    """i64[1]: the largest number, or 0."""
    return ops.ReduceMax(_and_zero(counts), [0], keep_dims=True).astype(i64)


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
