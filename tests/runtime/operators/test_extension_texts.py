"""Operators of onnxruntime-extensions on texts: the same results as the package, recorded by tools/record_texts.py."""

import json
from importlib.util import find_spec
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from mo_loop import text_library
from mo_loop.errors import MoLoopError
from tests.harness import check, refusal, runs
from tools.record_texts import TABLE, Row, byte_pairs, model_of

pytestmark = pytest.mark.filterwarnings("ignore::mo_loop.errors.ConversionWarning")

needs_library = pytest.mark.skipif(
    find_spec(text_library.PACKAGE) is None or not runs((2026, 2)),
    reason="the extra `text` is not installed, or the release does not remove strings by a Pad",
)

ROWS = [Row(*each) for each in json.loads(TABLE.read_text("utf-8"))["rows"]]


def needs_size(row: Row) -> bool:
    return "max_length" in row.attributes or row.outputs > 3 or (row.op == "StringJoin" and len(row.inputs[0][1]) > 1)


def alike(row: Row) -> str:
    """Rows that one model can run: those of the same attributes, constants and ranks."""
    (_, shape), constants = row.inputs[0], row.inputs[len(row.feeds()) :]
    return json.dumps([row.op, row.attributes, row.outputs, constants, shape if needs_size(row) else len(shape)])


GROUPS = [list(rows) for _, rows in groupby(sorted(ROWS, key=alike), key=alike)]


@needs_library
@pytest.mark.parametrize("rows", GROUPS, ids=[f"{rows[0].op}-{k}" for k, rows in enumerate(GROUPS)])
def test_results_are_those_of_the_package(rows: list[Row]) -> None:
    """Without sizes, where they are not needed; the first row with its sizes as well."""
    first, expected = rows[0], [list(each.results().items()) for each in rows]
    check(model_of(first, needs_size(first)), *(each.feeds() for each in rows), expected=expected)
    if not needs_size(first):
        check(model_of(first, True), first.feeds(), expected=expected[:1])


def error(op: str, inputs: list[Any], outputs: int = 1, **attributes: Any) -> MoLoopError:
    return refusal(model_of(Row(op, inputs, attributes, outputs)))


ONE = [["a b"], [1]]


@pytest.mark.parametrize(("op", "inputs", "outputs", "attributes", "code", "message"), [
    ("BertTokenizer", [ONE], 3, {"vocab_file": "", "do_basic_tokenize": 0}, "ML303", "words that spaces alone"),
    ("BertTokenizer", [ONE], 4, {"vocab_file": ""}, "ML316", "the output offset_mapping for several texts"),
    ("BertTokenizer", [ONE], 3, {"vocab_file": "a\nb"}, "ML227", "the vocabulary does not have '[UNK]'"),
    ("BertTokenizer", [ONE], 3, {"vocab_file": "", "max_length": 9}, "ML303", "an unknown number of texts"),
    ("GPT2Tokenizer", [ONE], 3, {}, "ML303", "the places of tokens"),
    ("GPT2Tokenizer", [ONE], 2, {"padding_length": 0}, "ML227", "padding_length is neither"),
    ("StringRegexReplace", [ONE, [["(a)b"], [1]], [["x"], [1]]], 1, {}, "ML303", "StringRegexReplace of '(a)b'"),
    ("StringRegexReplace", [ONE, [["a"], [1]], [["12345"], [1]]], 1, {}, "ML303", "StringRegexReplace of 'a'"),
    ("StringJoin", [[["a"], [1, 1]], [["-"], [1]], [[1], [1]]], 1, {}, "ML303", "may have no elements"),
    ("StringJoin", [ONE, [["\\1"], [1]], [[0], [1]]], 1, {}, "ML303", "with a backslash"),
    ("StringMapping", [ONE], 1, {"map": "a\tb\tc"}, "ML227", "does not have two fields"),
    ("StringMapping", [ONE], 1, {"map": "\n"}, "ML227", "the map is empty"),
    ("StringToVector", [ONE], 1, {"map": "a\t1 2", "unk": "0"}, "ML227", "not as many integers"),
    ("StringLength", [[[1], [1]]], 1, {}, "ML303", "must be strings"),
])
def test_forms_that_are_refused(
    op: str, inputs: list[Any], outputs: int, attributes: dict[str, Any], code: str, message: str
) -> None:
    found = error(op, inputs, outputs, **attributes)
    assert found.code == code and message in found.message


@pytest.mark.parametrize(("vocab", "merges", "code", "message"), [
    ("{", "a b", "ML227", "is not JSON"),
    ("[1]", "a b", "ML227", "is not a table"),
    ('{"a": 0}', "a b", "ML227", "does not have the byte 33"),
    (None, "#version: 0.2", "ML227", "has no pairs"),
    (None, "a q", "ML227", "not a pair of tokens that make a token: 'a q'"),
    ("same", "a b", "ML303", "two tokens of one number"),
])
def test_vocabularies_that_are_refused(vocab: str | None, merges: str, code: str, message: str) -> None:
    known = json.loads(byte_pairs()["vocab"])
    given = {None: json.dumps(known), "same": json.dumps({**known, "ab": known["a"]})}.get(vocab, vocab)
    model = model_of(Row("GPT2Tokenizer", [ONE], {}, 2))
    for each in model.graph.node[0].attribute:
        each.s = {"vocab": given, "merges": merges}[each.name].encode()
    found = refusal(model)
    assert found.code == code and message in found.message


def test_the_table_has_texts_of_all_kinds() -> None:
    operators = {each.op for each in ROWS}
    assert len(operators) == 13 and len(ROWS) > 300
    assert any(np.size(each.arrays()[0]) == 0 for each in ROWS)
