"""Record what onnxruntime-extensions makes of texts, for tests/runtime/operators/test_extension_texts.py.

    pip install onnxruntime-extensions            # in an environment of its own
    python tools/record_texts.py

The texts are drawn with one seed, and the release of the package is recorded with the results.
"""

import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, helper

TABLE = Path(__file__).resolve().parents[1] / "tests" / "runtime" / "operators" / "extension_texts.json"
DOMAIN = "ai.onnx.contrib"
CONSTANT = {"StringJoin", "StringRegexReplace"}
"""Operators whose inputs after the first one are constants."""


class Row(NamedTuple):
    """A node; its inputs and outputs are pairs of elements and a shape."""

    op: str
    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = MappingProxyType({})
    outputs: int = 1
    expected: Sequence[Any] = ()

    @property
    def is_text(self) -> bool:
        """Whether the outputs are strings."""
        return self.op in _TO_STRINGS

    def arrays(self) -> list[np.ndarray[Any, Any]]:
        """The inputs; without elements they are strings."""
        return [
            np.array(each, np.int64 if each and isinstance(each[0], int) else object).reshape(shape)
            for each, shape in self.inputs
        ]

    def results(self) -> dict[str, np.ndarray[Any, Any]]:
        """The outputs by name."""
        kind = object if self.is_text else np.bool_ if self.op == "StringEqual" else np.int64
        return {f"y{k}": np.array(each, kind).reshape(shape) for k, (each, shape) in enumerate(self.expected)}

    def feeds(self) -> dict[str, np.ndarray[Any, Any]]:
        """The inputs that are not constants, by name."""
        return {f"x{k}": each for k, each in enumerate(self.arrays()) if not k or self.op not in CONSTANT}


def model_of(row: Row, has_sizes: bool = False) -> Any:
    """The model of one node, whose inputs have sizes or not."""
    arrays, feeds = row.arrays(), row.feeds()
    names, outputs = [f"x{k}" for k in range(len(arrays))], [f"y{k}" for k in range(row.outputs)]
    number = TensorProto.BOOL if row.op == "StringEqual" else TensorProto.INT64
    kind = TensorProto.STRING if row.is_text else number
    attributes = {**row.attributes, **({"vocab_file": VOCABULARY} if row.attributes.get("vocab_file") == "" else {})}
    attributes |= byte_pairs() if row.op == "GPT2Tokenizer" else {}
    kinds = {name: TensorProto.STRING if each.dtype == object else TensorProto.INT64 for name, each in feeds.items()}
    graph = helper.make_graph(
        [helper.make_node(row.op, names, outputs, domain=DOMAIN, **attributes)], "g",
        [helper.make_tensor_value_info(name, kinds[name], each.shape if has_sizes else [None] * each.ndim)
         for name, each in feeds.items()],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [_constant(name, each) for name, each in zip(names, arrays, strict=True) if name not in feeds],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


_TO_STRINGS = {
    "StringConcat", "StringJoin", "StringLower", "StringMapping", "StringRegexReplace", "StringStrip", "StringUpper",
}


def _constant(name: str, array: Any) -> Any:
    kind = TensorProto.STRING if array.dtype == object else TensorProto.INT64
    elements = [each.encode() if isinstance(each, str) else each for each in array.ravel()]
    return helper.make_tensor(name, kind, array.shape, elements)


LETTERS = [
    *"abcdefgh ABC  ,.!?-'#\t\n_12", *"éÀßÑçøÞıİΑΣΩάδЖяἈὨ", *"中文日本語한국어", "😀",
    "\u0301", "\u00ad", "\u200b", "\u00a0", "\u3000", "\u2019",
]
CHOSEN = [
    "", "Hello, a bad cab!", "abcX abab", "a" * 100 + " " + "a" * 101 + " b", "Éa\u0301b", "a\u00adb c", "  ",
    "日本 中文", "##ab ab##", "fab FAB", "İa ıb", "x\ny", "bcab ababab ab😀", "𠀀a 龥", "a\u9ffdb", "ab\t", "\x0b a",
    "$1 \\1", "\t\n ", "a\r\n",
]
VOCABULARY = "\n".join([
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set("abcdegh,.!'#-中日éàя12")),
    *sorted(f"##{each}" for each in "abcdfghé12я"), "ab", "abc", "##bc", "##cab", "bad", "##de", "fa",
    "##ag", "##", "語", "##語", "one", "##x", "a##b", "##abab", "ab",
])
BERT: list[dict[str, Any]] = [
    {}, {"do_lower_case": 0}, {"strip_accents": 1}, {"tokenize_chinese_chars": 0}, {"max_length": 6},
    {"strip_accents": 1, "do_lower_case": 0, "tokenize_chinese_chars": 0},
]
MERGED = (
    "a b", "c a", "ab c", "Ġ a", "l o", "lo w", "low er", "e r", "Ġ low", "1 2", "' s", "Ġ Ġ", "Ã ©", "a Ġ", "' '",
    "Ċ Ċ", ". .", "å Ľ", "b '", "< |", "Ġ <",
)
ENCODED = [
    "low lower's a\u00a0b", "a 's 're 'd'll'x", "  a   b  ", "<|endoftext|>ab<|endoftext|> <|en",
    "\u2028\u0085a\u180e\u08b5b", "12 1212 ½²Ⅷ٣", "ab\0ab", "\0", "ab<|endoftext|>\n\n  <|endoftext|>",
]


def byte_pairs() -> dict[str, str]:
    """A vocabulary of bytes and of what their pairs become, with numbers that are not in order; and the pairs."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    tokens = [*map(chr, plain), *(chr(0x100 + place) for place in range(256 - len(plain)))]
    tokens += ["<|endoftext|>", *(each.replace(" ", "") for each in MERGED)]
    numbers = {each: 7 * place % len(tokens) for place, each in enumerate(tokens)}
    return {"vocab": json.dumps(numbers), "merges": "\n".join(["#version: 0.2", *MERGED])}


REPLACED = [("a+", "<"), ("[a-c]", ""), (r"\s+", " "), ("[^a-z]", "-"), (r"\w+", "wd"), (r"\d", "Ω"), ("é", "e")]


def main() -> int:
    """Write the table."""
    import onnxruntime_extensions

    draw = random.Random(7)
    texts = [*CHOSEN, *("".join(draw.choice(LETTERS) for _ in range(draw.randrange(40))) for _ in range(16))]
    rows = [each._replace(expected=_run(each)) for each in _rows(texts)]
    lines = ",\n".join(json.dumps(each, ensure_ascii=False, default=dict) for each in rows)
    text = f'{{"release": "{onnxruntime_extensions.__version__}", "rows": [\n{lines}\n]}}\n'
    TABLE.write_text(text, "utf-8")
    return 0


def _rows(texts: list[str]) -> Iterator[Row]:
    for given in BERT:
        for pair in zip(texts, texts[::-1], strict=True):
            yield Row("BertTokenizer", [[list(pair), [2]]], {"vocab_file": "", **given}, 3)
        for text in texts[:: 1 if not given else 4]:
            yield Row("BertTokenizer", [[[text], [1]]], {"vocab_file": "", **given}, 3 if "max_length" in given else 4)
    for pair in zip(texts[::3], texts[::-3], strict=True):
        yield Row("HfBertTokenizer", [[list(pair), [2]]], {"vocab_file": ""}, 3)
    encoded = [*texts, *ENCODED]
    for strings in ([encoded, [len(encoded)]], [encoded[-6:], [3, 1, 2]], [[], [0]], [["low"], []]):
        yield Row("GPT2Tokenizer", [strings], {}, 2)
        yield Row("GPT2Tokenizer", [strings], {"padding_length": 5}, 2)
    letters = [chr(each) for each in range(0x21, 0x250)]
    tensors = [(texts, [len(texts)]), (texts[:12], [2, 3, 2]), (letters, [len(letters)]), ([], [0]), (["Éx Ω"], [])]
    for strings in tensors:
        other = [strings[0][::-1], strings[1]]
        for op in ("StringLower", "StringUpper", "StringStrip", "StringLength"):
            yield Row(op, [strings])
        yield Row("StringConcat", [strings, other])
        if strings[1]:  # the package crashes for scalars
            yield Row("StringEqual", [strings, other])
        yield Row("StringMapping", [strings], {"map": "ab\tx y\n  \td\nÉx Ω\t語\nab\tzz"})
        yield Row("StringToVector", [strings], {"map": "ab\t1 2\n  \t3 -4", "unk": "0 -1"})
        for pattern, new in REPLACED:
            yield Row(
                "StringRegexReplace", [strings, [[pattern], [1]], [[new], [1]]], {"global_replace": len(new) % 2}
            )
        for axis in range(max(len(strings[1]), 1)):
            for between in ("", "$a ", "語語"):
                yield Row("StringJoin", [strings, [[between], [1]], [[axis], [1]]])


def _run(row: Row) -> list[Any]:
    import onnxruntime
    from onnxruntime_extensions import get_library_path

    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    session = onnxruntime.InferenceSession(model_of(row).SerializeToString(), options)
    found = [np.array(each) for each in session.run(None, row.feeds())]
    return [[each.ravel().tolist(), list(each.shape)] for each in found]


if __name__ == "__main__":
    sys.exit(main())
