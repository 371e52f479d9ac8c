"""Operations on texts. A tensor of strings is unpacked into numbers, and packed from them:

    begins, ends, chars = StringTensorUnpack(x)      # i32 and i32 of the shape of x, u8[bytes]
    StringTensorPack(begins, ends, chars)            # the string k is chars[begins[k]:ends[k]], in UTF-8

OpenVINO has both. The operations between them are those of the package openvino_tokenizers: the IR lists them in the
operation set `extension`, and a runtime reads them after it has loaded the library of the package. Their specification
is the source code of the package; the runtime computes them on vectors of strings.
"""

from typing import Any, Literal

from mo_loop.graph import TensorType, fresh, i32, string, u8
from mo_loop.graph.shape import merge
from mo_loop.ops.base import Op
from mo_loop.ops.ranges import WIDE_INTEGERS, Kind

_PLACES, _BYTES = Kind("i32", frozenset((i32,))), Kind("u8", frozenset((u8,)))
_TEXT = {"begins": _PLACES, "ends": _PLACES, "chars": _BYTES}


def _text(like: TensorType) -> tuple[TensorType, ...]:
    """Begins and ends in the shape of others, and a new number of bytes."""
    return TensorType(i32, like.shape), TensorType(i32, like.shape), TensorType(u8, (fresh(),))


class StringTensorUnpack(Op, opset=15, types={"x": Kind("strings", frozenset((string,)))}):
    """The begin and the end of each string, and the bytes of all strings. Spec: StringTensorUnpack-15."""

    def infer(self, x):
        return _text(x)


class StringTensorPack(Op, opset=15, types=_TEXT, ranks={"chars": 1}):
    """Strings from their begins, ends and bytes; neither begins nor ends may descend. Spec: StringTensorPack-15."""

    def infer(self, begins, ends, chars):
        return TensorType(string, merge(begins.shape, ends.shape))


class OfTokenizers(Op, abstract=True):
    """Operations of the package openvino_tokenizers."""

    library = "openvino_tokenizers"


class BPETokenizer(OfTokenizers, opset=1):
    """The pieces of words by byte pair encoding, as ragged rows of i32. A word begins as its bytes; of the pairs of
    pieces that follow each other, the one that is first in the list becomes one piece, until none is in the list. A
    piece has the number of its key. Inputs: rows of strings as those of RegexSplit; the keys, the first parts and the
    second parts of pairs, and the words that are one piece, each as begins, ends and bytes; the numbers of these
    words."""

    unk_token: str = ""
    fuse_unk: bool = False
    suffix_indicator: str = ""
    end_suffix: str = ""
    byte_fallback: bool = False
    cache_capacity: int = 20_000

    def infer(self, first, last, *texts):
        self.require(len(texts) == 16, f"{len(texts) + 2} inputs are not 18")
        return TensorType(i32, first.shape), TensorType(i32, first.shape), TensorType(i32, (fresh(),))


class CharsMapNormalization(OfTokenizers, opset=1, types={**_TEXT, "table": _BYTES}):
    """Replaces the longest parts that a precompiled table of SentencePiece has, from left to right."""

    add_dummy_prefix: bool = False
    remove_extra_whitespaces: bool = False
    escape_whitespaces: bool = False
    normalization_form: str = ""
    case_fold: bool = False
    nmt: bool = False

    def infer(self, begins, ends, chars, table):
        return _text(begins)


class CombineSegments(OfTokenizers, opset=1):
    """Ragged rows of i32 joined: (begins, ends, elements) of each part, then a number for each part. Outputs: the rows
    as begins, ends and elements, and the number of the part to which each element belongs in the same form."""

    def infer(self, *parts):
        self.require(len(parts) % 3 == 1 and len(parts) > 3, f"{len(parts)} inputs are not three for each part and one")
        self.require(all(each.dtype is i32 for each in parts), "an input is not i32")
        places, elements = TensorType(i32, parts[0].shape), TensorType(i32, (fresh(),))
        return places, places, elements, places, places, elements


class EqualStr(
    OfTokenizers, opset=1, types={**_TEXT, "other_begins": _PLACES, "other_ends": _PLACES, "other_chars": _BYTES},
):
    """1 where two strings have the same bytes, else 0, as i32."""

    def infer(self, begins, ends, chars, other_begins, other_ends, other_chars):
        is_row = all(each.rank in (None, 1) for each in (begins, other_begins))
        self.require(is_row, f"the places {begins} and {other_begins} are not vectors")
        return TensorType(i32, (fresh(),))


class RegexNormalization(OfTokenizers, opset=1, types={**_TEXT, "pattern": _BYTES, "replacement": _BYTES}):
    """Replaces the matches of a regular expression of PCRE2. The bytes of the result have no gaps, and are in order."""

    global_replace: bool = True

    def infer(self, begins, ends, chars, pattern, replacement):
        return _text(begins)


class RegexSplit(OfTokenizers, opset=1, types={"first": _PLACES, "last": _PLACES, **_TEXT, "pattern": _BYTES}):
    """The matches of a regular expression of PCRE2, or without `invert` the parts between them, of rows of strings. Row
    k has the strings from first[k] to last[k], also in the result. There must be a byte, and no two strings may share
    one: the runtime has no space for them."""

    behaviour: Literal["remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext"] = "remove"
    invert: bool = False
    max_splits: int = -1

    def infer(self, first, last, begins, ends, chars, pattern):
        count: Any = fresh()
        places = TensorType(i32, (count,))
        return TensorType(i32, first.shape), TensorType(i32, first.shape), places, places, TensorType(u8, (fresh(),))


class VocabEncoder(
    OfTokenizers, opset=1,
    types={
        **_TEXT, "key_begins": _PLACES, "key_ends": _PLACES, "key_chars": _BYTES, "values": WIDE_INTEGERS,
        "default": WIDE_INTEGERS,
    },
):
    """The value of the key that equals each string of a vector, or the default; the first of equal keys counts."""

    def infer(self, begins, ends, chars, key_begins, key_ends, key_chars, values, default):
        self.require(values.dtype is default.dtype, f"values of {values.dtype} with a default of {default.dtype}")
        return TensorType(values.dtype, begins.shape)


class WordpieceTokenizer(
    OfTokenizers, opset=1,
    types={
        "first": _PLACES, "last": _PLACES, **_TEXT, "key_begins": _PLACES, "key_ends": _PLACES, "key_chars": _BYTES,
        "unknown": _PLACES,
    },
):
    """The pieces of words as ragged rows of i32; row k has the words from first[k] to last[k]. The pieces of a word are
    the longest key that it begins with, then the longest key that begins with the indicator, and so on. A word is one
    piece, `unknown`, if a piece of it is not a key, or if it is too long."""

    suffix_indicator: str = "##"
    max_bytes_per_word: int = 100

    def infer(self, first, last, begins, ends, chars, key_begins, key_ends, key_chars, unknown):
        return TensorType(i32, first.shape), TensorType(i32, first.shape), TensorType(i32, (fresh(),))
