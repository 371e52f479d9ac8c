"""Models with strings: the help of the error is an option that converts the part after them."""

import re
import shlex
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import mo_loop
from mo_loop.errors import MoLoopError
from tests.harness import check, raised

ML, STRING, FLOAT, INT = "ai.onnx.ml", TensorProto.STRING, TensorProto.FLOAT, TensorProto.INT64
EXTENSIONS = "ai.onnx.contrib"
VERSIONS = (("", 20), (ML, 2), ("com.microsoft", 1), (EXTENSIONS, 1))
WORDS = ["a", "b", "c"]


def encoder(source: str, target: str) -> Any:
    """Digits as a number: no operation of the runtime reads them."""
    return helper.make_node("Cast", [source], [target], to=INT)


def turkish(source: str, target: str) -> Any:
    """Lower case in a locale with letters of its own, which is refused."""
    return helper.make_node(
        "StringNormalizer", [source], [target], case_change_action="LOWER", locale="tr_TR.UTF-8"
    )


def model(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any], constants: dict[str, Any]) -> Any:
    entries = [helper.make_tensor_value_info(name, *each) for name, each in inputs.items()]
    results = [helper.make_tensor_value_info(name, *each) for name, each in outputs.items()]
    tensors = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", entries, results, tensors)
    imports = [helper.make_opsetid(domain, version) for domain, version in VERSIONS]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
LOOKUP = [encoder("w", "ids"), helper.make_node("Gather", ["table", "ids"], ["y"])]
TFIDF = helper.make_node(
    "TfIdfVectorizer", ["tokens"], ["tf idf"], mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0,
    ngram_counts=[0], ngram_indexes=[0, 1, 2], pool_strings=WORDS,
)

CASES: dict[str, tuple[Any, str, dict[str, Any], Any]] = {
    "a lookup": (
        model(LOOKUP, {"w": (STRING, ["N"])}, {"y": (FLOAT, ["N", 4])}, {"table": TABLE}),
        "ids[?]", {"ids": np.int64([2, 0])}, TABLE[[2, 0]],
    ),
    "text that is normalised, split and counted": (
        model(
            [turkish("w", "low"),
             helper.make_node("Identity", ["low"], ["tokens"]), TFIDF,
             helper.make_node("Mul", ["tf idf", "scale"], ["y"])],
            {"w": (STRING, [3])}, {"y": (FLOAT, [3])}, {"scale": np.float32([1, 2, 3])},
        ), "\"tf idf\"[3]", {"tf idf": np.float32([1, 1, 2])}, np.float32([1, 2, 6]),
    ),
    "several inputs of strings and one of numbers": (
        model(
            [helper.make_node("Cast", ["a"], ["one"], to=FLOAT), encoder("b", "two"),
             helper.make_node("Cast", ["two"], ["three"], to=FLOAT),
             helper.make_node("Concat", ["one", "three", "x"], ["all"], axis=1),
             helper.make_node("Neg", ["all"], ["y"])],
            {"a": (STRING, ["N", 3]), "b": (STRING, ["N", 1]), "x": (FLOAT, ["N", 2])}, {"y": (FLOAT, ["N", 6])}, {},
        ), "one[?,3],two[?,1]",
        {"one": np.float32([[0, 1, 0]]), "two": np.int64([[7]]), "x": np.float32([[5, 6]])},
        -np.float32([[0, 1, 0, 7, 5, 6]]),
    ),
    "a tokenizer, whose outputs have types that the model does not declare": (
        model(
            [helper.make_node(
                "BertTokenizer", ["w"], ["ids", "kinds"], domain=EXTENSIONS, vocab_file="a\nb", do_basic_tokenize=0,
             ),
             helper.make_node("Gather", ["table", "ids"], ["rows"]),
             helper.make_node("ReduceSum", ["rows"], ["y"], keepdims=0)],
            {"w": (STRING, [1])}, {"y": (FLOAT, [])}, {"table": TABLE},
        ), "ids[?]{i64}", {"ids": np.int64([2, 0, 0])}, TABLE[[2, 0, 0]].sum(),
    ),
    "a tokenizer of which one output is refused": (
        model(
            [helper.make_node(
                "GPT2Tokenizer", ["w"], ["ids", "mask", "places"], domain=EXTENSIONS, vocab="{}", merges="a b",
             ),
             helper.make_node("ReduceSum", ["places"], ["y"], keepdims=0)],
            {"w": (STRING, [1])}, {"y": (INT, [])}, {},
        ), "places[?,?,2]{i64}", {"places": np.int64([[[0, 1], [1, 3]]])}, np.int64(5),
    ),
    "a match of strings": (
        model(
            [helper.make_node("RegexFullMatch", ["w"], ["same"], pattern="(a+)+"),
             helper.make_node("Cast", ["same"], ["numbers"], to=INT),
             helper.make_node("ReduceSum", ["numbers"], ["y"], keepdims=0)],
            {"w": (STRING, ["N"])}, {"y": (INT, [])}, {},
        ), "same[?]", {"same": np.array([True, False, True])}, np.int64(2),
    ),
}


def help_of(proto: Any, **options: Any) -> list[str]:
    """The lines of help of the errors of a conversion."""
    return re.findall(r"help: +(.*)", str(raised(MoLoopError, mo_loop.convert_model, proto, **options)))


@pytest.mark.parametrize("case", CASES)
def test_the_option_of_the_help_converts_the_rest(case: str) -> None:
    proto, option, feeds, expected = CASES[case]
    lines = [each for each in help_of(proto) if "--input" in each]
    assert lines
    for line in lines:
        assert line.startswith("convert the part after the strings: --input ")
        arguments = shlex.split(line.partition(": ")[2])
        assert arguments == ["--input", option]
        check(proto, feeds, expected=[[("y", expected)]], input=arguments[1])


@pytest.mark.parametrize(("given", "expected", "types"), [
    ("x[1,2]", "x[1,2],one[?,3],two[?,1]", {"x": "f32[1,2]", "one": "f32[?,3]", "two": "i64[?,1]"}),
    ("a[1,3],b[1,1],x[1,2]", "x[1,2],one[?,3],two[?,1]", {"x": "f32[1,2]", "one": "f32[?,3]", "two": "i64[?,1]"}),
    ("[1,3],[1,1],[1,2]", "x[1,2],one[?,3],two[?,1]", {"x": "f32[1,2]", "one": "f32[?,3]", "two": "i64[?,1]"}),
    ("one[4,3]", "one[4,3],two[?,1]", {"one": "f32[4,3]", "two": "i64[?,1]", "x": "f32[N,2]"}),
])
def test_the_option_of_the_help_has_what_the_user_gave(given: str, expected: str, types: dict[str, str]) -> None:
    proto = CASES["several inputs of strings and one of numbers"][0]
    lines = {each for each in help_of(proto, input=given) if "--input" in each}
    assert lines == {f"convert the part after the strings: --input '{expected}'"}
    assert {each.name: each.type_text for each in mo_loop.convert_model(proto, input=expected).inputs} == types
    ways = {each for each in help_of(proto, input={"x": [1, 2]}) if "strings" in each}
    assert ways == {"convert the part after the strings: add one[?,3],two[?,1] to the inputs"}


@pytest.mark.parametrize("nodes", [
    [turkish("w", "y")],
    [encoder("w", "ids"),
     helper.make_node("LabelEncoder", ["ids"], ["y"], domain=ML, keys_int64s=[0], values_strings=["a"])],
    [turkish("w", "low"),
     helper.make_node("LabelEncoder", ["low"], ["y"], domain=ML, keys_strings=WORDS, values_strings=WORDS)],
], ids=["at once", "from numbers", "from strings"])
def test_strings_that_reach_an_output_have_no_cut(nodes: list[Any]) -> None:
    proto = model(nodes, {"w": (STRING, [3])}, {"y": (STRING, [3])}, {})
    assert not any("--input" in each for each in help_of(proto))


def test_a_lookup_alone_has_no_rest() -> None:
    proto = model([encoder("w", "y")], {"w": (STRING, [3])}, {"y": (INT, [3])}, {})
    assert not any("--input" in each for each in help_of(proto))


def test_a_model_that_onnx_finds_wrong_gets_no_cut() -> None:
    """ONNX's shape inference ends the process for an input of RegexFullMatch without a name."""
    nodes = [helper.make_node("RegexFullMatch", [""], ["y"], pattern="a")]
    inputs, outputs = ([helper.make_tensor_value_info(name, kind, [2])] for name, kind in (("x", 8), ("y", 9)))
    graph = helper.make_graph(nodes, "main", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    assert "--input" not in str(raised(MoLoopError, mo_loop.convert_model, model, match="RegexFullMatch"))
