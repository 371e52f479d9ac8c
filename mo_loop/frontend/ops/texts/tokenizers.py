"""Tokenizers of onnxruntime-extensions: the same numbers as those of its release 0.15.

BERT: characters are changed, left out, or split into words as the extensions do, which know a part of Unicode. Words
become pieces in the operation WordpieceTokenizer. It makes one unknown token of a word with a piece that is not in the
vocabulary, where the extensions keep the pieces before it. So each byte is a piece here, with a number of its own, and
what follows the first of them in a word is left out.

GPT-2: a text is split in words by the expression of GPT-2, with the letters and numbers of Unicode 13, which the
extensions know, between special tokens. The operation BPETokenizer makes pieces of the words.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mo_loop.frontend.ops.shared import counted, zeros
from mo_loop.frontend.ops.texts import letter_case
from mo_loop.frontend.ops.texts.strings import StringPlaces, constant_texts, taken
from mo_loop.frontend.ops.texts.text_operators import DOMAIN, Grid, in_letters, lowered, matches, unsupported
from mo_loop.frontend.vocabulary import Attributes, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import i32, i64
from mo_loop.ops.front import Failed

Ranges = Sequence[tuple[int, int]]

_SPACES: Ranges = (
    (0x9, 0xA), (0xD, 0xD), (0x20, 0x20), (0xA0, 0xA0), (0x2000, 0x200A), (0x202F, 0x202F), (0x205F, 0x205F),
    (0x3000, 0x3000),
)
_MARKS: Ranges = (
    (0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E), (0xA1, 0xA1), (0xA7, 0xA7), (0xAB, 0xAB), (0xB6, 0xB7),
    (0xBB, 0xBB), (0xBF, 0xBF), (0x37E, 0x37E), (0x387, 0x387), (0x2010, 0x2027), (0x2030, 0x2043), (0x2045, 0x2051),
    (0x2053, 0x205E), (0x3001, 0x3003), (0x3008, 0x3011), (0x3014, 0x301F), (0x3030, 0x3030), (0x303D, 0x303D),
)
_IDEOGRAPHS: Ranges = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2CEAF), (0x2F800, 0x2FA1F),
)
_DROPPED: Ranges = (
    (0x0, 0x8), (0xB, 0xC), (0xE, 0x1F), (0x80, 0x9F), (0xAD, 0xAD), (0x378, 0x379), (0x380, 0x383), (0x38B, 0x38B),
    (0x38D, 0x38D), (0x3A2, 0x3A2), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206E), (0x2E9A, 0x2E9A),
    (0x2EF4, 0x2EFE),
)
_DROPPED_IDEOGRAPHS: Ranges = (
    (0x9FFD, 0x9FFE), (0xFA6E, 0xFA6F), (0xFADA, 0xFAFE), (0x2A6DE, 0x2A6DE), (0x2B735, 0x2B73E), (0x2B81E, 0x2B81F),
    (0x2CEA2, 0x2CEAE), (0x2FA1E, 0x2FA1E),
)
"""Characters that are left out if ideographs are not words of their own."""
_ACCENTS: Ranges = ((0x300, 0x36F),)

_PLAIN = dict(zip(
    "ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖÙÚÛÜÝàáâãäåçèéêëìíîïñòóôõöùúûüýÿ", "AAAAAACEEEEIIIINOOOOOUUUUYaaaaaaceeeeiiiinooooouuuuyy",
    strict=True,
))
"""Letters without their accents."""

_LONGEST = 100
"""A word of more characters is one unknown token."""


@dataclass(frozen=True)
class BertAttributes(Attributes):
    """The attributes of BertTokenizer and HfBertTokenizer."""

    vocab_file: str
    cls_token: str = "[CLS]"
    do_basic_tokenize: int = 1
    do_lower_case: int = 1
    mask_token: str = "[MASK]"
    max_length: int = -1
    pad_token: str = "[PAD]"
    sep_token: str = "[SEP]"
    strip_accents: int = 0
    suffix_indicator: str = "##"
    tokenize_chinese_chars: int = 1
    truncation_strategy_name: str = "longest_first"
    unk_token: str = "[UNK]"


class _Tokens(NamedTuple):
    """All tokens, i64[L], with those of the class and the separators; the numbers of their texts, i32[L]; a mask of 1;
    the places of their first and after their last bytes, i64[L, 2]."""

    numbers: Value
    texts: Value
    mask: Value
    offsets: Value | None


@translates("BertTokenizer", since=1, domain=DOMAIN)
def bert_tokenizer(text, *, given: BertAttributes, node: Context):
    """[L] tokens of all texts, 0 for those of the first one and 1 for others, and 1 for each."""
    made = _tokens(text, given, node)
    return (made.numbers, ops.Minimum(made.texts, 1).astype(i64), made.mask, made.offsets)[: len(node.outputs)]


@translates("HfBertTokenizer", since=1, domain=DOMAIN)
def hf_bert_tokenizer(text, *, given: BertAttributes, node: Context):
    """[1, L] tokens of two texts, 1 for each, and the number of the text."""
    made = _tokens(text, given, node)
    rows = (ops.Unsqueeze(each, 0) for each in (made.numbers, made.mask, made.texts.astype(i64)))
    return (*rows, made.offsets)[: len(node.outputs)]


def _tokens(text: Value, given: BertAttributes, node: Context) -> _Tokens:
    if not given.do_basic_tokenize:
        raise unsupported("words that spaces alone separate (do_basic_tokenize 0)")
    lines = given.vocab_file.replace("\r", "\n").split("\n")
    vocabulary = {each: place for place, each in enumerate(filter(None, lines))}
    special = [given.unk_token, given.sep_token, given.cls_token, given.pad_token, given.mask_token]
    missing = [each for each in special if each not in vocabulary]
    if missing:
        raise ModelError(f"the vocabulary does not have {missing[0]!r}", code="ML227")
    unknown, separator, begin = (vocabulary[each] for each in special[:3])
    texts = taken(text)
    counts = [each for each in texts.begins.type.dims if isinstance(each, int)]
    room = given.max_length - 2 if given.max_length > 2 else None
    if room is not None and not counts:
        raise unsupported(f"max_length {given.max_length} for an unknown number of texts (declare it with --input)")
    alone = _set([*_MARKS, *(_IDEOGRAPHS if given.tokenize_chinese_chars else ())])
    words = matches(_prepared(texts, given), f"[{alone}]|[^{alone}{_set(_SPACES)}]++")
    begins, pieces = _pieces(words.texts, vocabulary, unknown, given.suffix_indicator)
    first, last = (ops.Gather(begins, each, 0) for each in (words.first, words.last))
    if room is not None and counts == [1]:
        last = ops.Minimum(last, first + np.int32(room))
    # The separator is one segment, without a dimension, for each of the texts.
    parts = (first, last, pieces, np.int32(0), np.int32(1), np.array([separator], np.int32))
    begins, ends, numbers, *_ = ops.CombineSegments(*parts, np.array([0, 1], np.int32))
    numbers, begins = ops.Concat(np.array([begin], np.int32), numbers, axis=0), begins + np.int32(1)
    owners = ops.Maximum(_owners(begins, numbers), np.int32(0))
    mask = ops.Broadcast(np.int64(1), ops.ShapeOf(numbers))
    if len(node.outputs) <= _OFFSETS or not node.outputs[_OFFSETS]:
        return _Tokens(numbers.astype(i64), owners, mask, None)
    if counts == [1] and room is None:
        return _Tokens(numbers.astype(i64), owners, mask, _offsets(vocabulary, numbers, owners, begins, ends))
    error = UnsupportedError(
        "the output offset_mapping for several texts, or with max_length: onnxruntime-extensions writes past its end",
        code="ML316", hint="declare one text, --input 'NAME[1]', and no max_length",
    )
    failed = Failed(graph=node.graph, error=node.located(error), count=1, name=node.path).output
    return _Tokens(numbers.astype(i64), owners, mask, failed)


_OFFSETS = 3
"""The number of the output with the places of tokens."""


def _offsets(vocabulary: dict[str, int], numbers: Value, owners: Value, begins: Value, ends: Value) -> Value:
    """As the extensions count: one byte between two tokens, and none before one that begins with #; an unknown token
    has one byte, and those of the class and the separators have none."""
    bare = [each.lstrip("#") if each != "[UNK]" else "?" for each in vocabulary]
    sizes, joined = zeros((2, max(vocabulary.values()) + 1), np.int32)
    for place, each, text in zip(vocabulary.values(), vocabulary, bare, strict=True):
        sizes[place], joined[place] = len(text.encode()), each.startswith("#")
    special = ops.Concat(np.zeros(1, np.int32), ends, axis=0)
    is_token = ops.ScatterElementsUpdate(
        ops.Broadcast(np.int32(1), ops.ShapeOf(numbers)), special,
        ops.Broadcast(np.int32(0), ops.ShapeOf(special)), np.int64(0),
    )
    size, back = (ops.Gather(table, numbers, 0) * is_token for table in (sizes, joined))
    before = ops.CumSum(size - back + is_token, np.int64(0), exclusive=True)
    first = (before - ops.Gather(ops.Gather(before, begins, 0), owners, 0) - back) * is_token
    return ops.Concat(*(ops.Unsqueeze(each, 1) for each in (first, first + size)), axis=1).astype(i64)


def _owners(begins: Value, elements: Value) -> Value:
    """The number of the row of each element, where rows that are not empty begin at some places; -1 before them."""
    marks = ops.Broadcast(np.int32(0), ops.ShapeOf(elements))
    marks = ops.ScatterElementsUpdate(marks, begins, ops.Broadcast(np.int32(1), ops.ShapeOf(begins)), np.int64(0))
    return ops.CumSum(marks, np.int64(0)) - np.int32(1)


def _prepared(texts: StringPlaces, given: BertAttributes) -> StringPlaces:
    """The texts with other letters, and without the characters that do not belong to words."""
    plain = _PLAIN if given.strip_accents else {}
    letters = {each: plain.get(each, each) for each in map(chr, range(0x21, 0x2000))}
    if given.do_lower_case:
        letters = {each: chr(lowered(ord(new))) for each, new in letters.items()}
    if any(old != new for old, new in letters.items()):
        texts = in_letters(texts, letter_case.table_of(letters))
    dropped = [*_DROPPED, *(() if given.tokenize_chinese_chars else _DROPPED_IDEOGRAPHS)]
    dropped += _ACCENTS if given.strip_accents else ()
    return texts.replaced(f"[{_set(dropped)}]++")


def _set(ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges)


def _pieces(words: StringPlaces, vocabulary: dict[str, int], unknown: int, indicator: str) -> tuple[Value, Value]:
    """Where the pieces of each word begin, and the numbers of all, i32. The word after all others is empty."""
    # A piece that begins with ## can begin a word, too: those that continue a word have a mark that no other one has.
    mark = next(mark for mark in map(chr, range(0xE000, 0xF900)) if not any(each[0] == mark for each in vocabulary))
    keys = {each.encode(): place for each, place in vocabulary.items()}
    for each, place in vocabulary.items():
        if each.startswith(indicator) and each != indicator:
            keys[(mark + each[len(indicator) :]).encode()] = place
    bytes_ = [mark.encode() + bytes((each,)) for each in range(256)]
    listed = [*keys, *(each for each in bytes_ if each not in keys)]
    table = np.array([*keys.values(), *[unknown] * (len(listed) - len(keys)), unknown], np.int32)
    long = words.replaced(rf"\A(?s:.){{{_LONGEST + 1},}}+\z", "\n").with_empty()  # no key has a line feed
    rows = counted(long.begins.size(0), long.begins).astype(i32)
    begins, _, found = ops.WordpieceTokenizer(
        rows, rows + np.int32(1), *long.with_bytes(), *constant_texts(listed), np.int32(len(listed)),
        suffix_indicator=mark, max_bytes_per_word=2**31 - 1,
    )
    is_byte = ops.LogicalAnd(ops.GreaterEqual(found, np.int32(len(keys))), ops.Less(found, np.int32(len(listed))))
    before = ops.CumSum(is_byte.astype(i32), np.int64(0), exclusive=True)
    at_begin = ops.Gather(ops.Gather(before, begins, 0), _owners(begins, found), 0)
    is_kept = ops.Equal(before, at_begin)
    kept = ops.Squeeze(ops.NonZero(is_kept), 0)
    places = ops.Gather(ops.CumSum(is_kept.astype(i32), np.int64(0), exclusive=True), begins, 0)
    return places, ops.Gather(table, ops.Gather(found, kept, 0), 0)


# -- GPT-2


_END = "<|endoftext|>"
"""The special token: a word of its own wherever it is in a text."""

_LATER: Ranges = (
    (0x870, 0x88F), (0x8B5, 0x8B5), (0x8C8, 0x8C9), (0xC5C, 0xC5D), (0xCDC, 0xCDD), (0x170D, 0x170D),
    (0x171F, 0x171F), (0x1B4C, 0x1B4C), (0x1C89, 0x1C8A), (0x2C2F, 0x2C2F), (0x2C5F, 0x2C5F), (0x9FFD, 0x9FFF),
    (0xA7C0, 0xA7C1), (0xA7CB, 0xA7F4), (0x10570, 0x105F3), (0x10780, 0x107BA), (0x10940, 0x10959),
    (0x10D40, 0x10D85), (0x10EC2, 0x10EC7), (0x10F70, 0x10F81), (0x11071, 0x11075), (0x1123F, 0x11240),
    (0x11380, 0x113D3), (0x116D0, 0x116E3), (0x11740, 0x11746), (0x11AB0, 0x11ABF), (0x11BC0, 0x11BF9),
    (0x11DB0, 0x11DE9), (0x11F02, 0x11F59), (0x12F90, 0x12FF0), (0x1342F, 0x143FA), (0x16100, 0x16139),
    (0x16A70, 0x16AC9), (0x16D40, 0x16D79), (0x16EA0, 0x16ED3), (0x16FF2, 0x16FF6), (0x187F8, 0x187FF),
    (0x18CFF, 0x18CFF), (0x18D09, 0x1AFFE), (0x1B11F, 0x1B132), (0x1B155, 0x1B155), (0x1CCF0, 0x1D2D3),
    (0x1DF00, 0x1E06D), (0x1E290, 0x1E2AD), (0x1E4D0, 0x1E7FE), (0x2A6DE, 0x2A6DF), (0x2B735, 0x2B73F),
    (0x2CEA2, 0x2CEAD), (0x2EBF0, 0x2EE5D), (0x31350, 0x33479),
)
"""Letters and numbers of later releases of Unicode, with what lies between them and is neither."""
_NEW = _set(_LATER)
_SPACE = r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_QUOTED = rf"\Q{_END}\E"
_OTHER = rf"(?:(?!{_QUOTED})(?:[^{_SPACE}\p{{L}}\p{{N}}]|[{_NEW}]))"
_WORDS = (
    rf"{_QUOTED}|'(?:[stmd]|re|ve|ll)| ?[^\P{{L}}{_NEW}]++| ?[^\P{{N}}{_NEW}]++| ?{_OTHER}++"
    rf"|[{_SPACE}]+(?=\z|{_QUOTED})|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"
)
"""Of white space before a word, the last character belongs to the word or is one; at the end all is one."""


@translates("GPT2Tokenizer", since=1, domain=DOMAIN)
def gpt2_tokenizer(text, *, vocab: str, merges: str, padding_length: int = -1, node: Context):
    """[*, L] tokens of each text, and 1 for each token; 0 where a text has fewer than L."""
    if padding_length < 1 and padding_length != -1:
        raise ModelError("padding_length is neither -1 nor above 0", code="ML227")
    if any(node.outputs[2:]):
        raise unsupported("the output with the places of tokens")
    tokens = _vocabulary(vocab)
    pairs = list(_pairs(merges, tokens))
    keys = [b""] * (max(tokens.values()) + 1)
    for token, number in tokens.items():
        keys[number] = _bytes(token) or b""
    words = matches(taken(text).replaced(r"\x{0}(?s:.)*+"), _WORDS)  # a text ends there for the extensions
    first, last, numbers = ops.BPETokenizer(
        words.first, words.last, *words.texts.with_bytes(), *constant_texts(keys),
        *(each for part in zip(*pairs, strict=True) for each in constant_texts(part)),
        *constant_texts([_END.encode()]), np.array([tokens[_END]], np.int32), unk_token=_END,
    )
    grid = Grid(first, last - first, None if padding_length == -1 else padding_length)
    made = ops.Select(grid.is_piece, grid.of_match(numbers), np.int32(0)), grid.is_piece
    sizes = ops.Concat(text.sizes, grid.width, axis=0)
    return tuple(ops.Reshape(each.astype(i64), sizes) for each in made[: len(node.outputs)])


def _alphabet() -> dict[str, int]:
    """The characters that stand for bytes in a vocabulary: those that can be printed stand for themselves."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in plain)
    return {chr(each): each for each in plain} | {chr(0x100 + place): each for place, each in enumerate(others)}


_BYTES = _alphabet()


def _bytes(token: str) -> bytes | None:
    """The bytes of a token; None if it has a character that stands for none, which no word becomes."""
    numbers = [_BYTES.get(each) for each in token]
    return None if None in numbers else bytes(each for each in numbers if each is not None)


def _vocabulary(text: str) -> dict[str, int]:
    """The tokens and their numbers, with the special one.

    Raises:
        ModelError: it is another kind of JSON, or does not have all bytes.
        UnsupportedError: two tokens have one number, or the numbers are far apart.
    """
    try:
        tokens: Any = json.loads(text)
    except ValueError as error:
        raise ModelError("the attribute vocab is not JSON", code="ML227") from error
    if not isinstance(tokens, dict) or not all(type(each) is int and each >= 0 for each in tokens.values()):
        raise ModelError("the attribute vocab is not a table of tokens and their numbers", code="ML227")
    tokens.setdefault(_END, len(tokens))
    missing = next((byte for each, byte in _BYTES.items() if each not in tokens), None)
    if missing is not None:
        raise ModelError(f"the vocabulary does not have the byte {missing}", code="ML227")
    if len(set(tokens.values())) < len(tokens) or max(tokens.values()) >= _SPARSE * len(tokens):
        raise unsupported("a vocabulary with two tokens of one number, or with numbers far apart")
    return tokens


_SPARSE = 4
"""The list of keys has a place for each number: for so many times the tokens at most."""


def _pairs(text: str, tokens: dict[str, int]) -> Iterator[tuple[bytes, bytes]]:
    """The two parts of each pair that becomes one token, the first ones first.

    Raises:
        ModelError: a line has one part only, the vocabulary lacks a part or the whole, or there are no lines.
    """
    lines = [line.rstrip("\r").split() for line in text.split("\n")]
    if text.startswith("#"):
        lines = lines[1:]
    pairs = [line for line in lines if line]
    if not pairs:
        raise ModelError("the attribute merges has no pairs", code="ML227")
    for pair in pairs:
        parts = [each for each in map(_bytes, pair[:2]) if each is not None]
        if len(parts) < 2 or not {*pair[:2], "".join(pair[:2])} <= tokens.keys():
            line = " ".join(pair)
            raise ModelError(f"a line of merges is not a pair of tokens that make a token: {line!r}", code="ML227")
        yield parts[0], parts[1]
