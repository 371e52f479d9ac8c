"""Operators on texts, with the library of openvino_tokenizers: the same strings and numbers as in ONNX Runtime."""

from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

import mo_loop
from mo_loop import text_library
from mo_loop.cli.convert import command
from mo_loop.compare.input_sets.roles import roles
from mo_loop.compare.verifying import verify
from mo_loop.errors import ConversionWarning, InputError, MoLoopError, NotComparableError
from mo_loop.frontend.model import load
from mo_loop.frontend.ops.texts import letter_case
from mo_loop.ops import StringTensorUnpack
from tests.cases import read_cases
from tests.harness import check, parsed, raised, runs, with_weights

pytestmark = pytest.mark.filterwarnings("ignore::mo_loop.errors.ConversionWarning")

needs_library = pytest.mark.skipif(
    find_spec(text_library.PACKAGE) is None or not runs((2026, 2)),
    reason="the extra `text` is not installed, or the release does not remove strings by a Pad",
)

STRING, INT, FLOAT, BOOL = TensorProto.STRING, TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
ML, MICROSOFT = "ai.onnx.ml", "com.microsoft"
KINDS = {np.dtype(object): STRING, np.dtype(np.int64): INT, np.dtype(np.float32): FLOAT}


def texts(*given: str) -> Any:
    return np.array(given, object)


LINES = texts(
    "a b  c ", "", "  ", "a,,b", ",a,", "aaaaa x", "a\tb", "a\u00a0b\u2003c", " x y  z  ", "ä,ö", "a-b", "日本,語",
    "a.*b",
)
SHAPES = [
    (LINES,), (texts(),), (texts("", ""),), (LINES[:12].reshape(2, 3, 2),), (texts().reshape(0, 3),),
    (texts().reshape(2, 0),), (np.array("a b", object),),
]
"""Vectors, empty tensors and strings, several dimensions, a scalar."""


def node_model(op: str, inputs: list[Any], outputs: list[int], domain: str = "", ml: int = 4, **attributes: Any) -> Any:
    """A model of one node; the inputs are arrays, whose sizes are not declared, or pairs of a type and a shape."""
    kinds = [each if isinstance(each, tuple) else (KINDS[each.dtype], [None] * each.ndim) for each in inputs]
    names, results = [f"x{k}" for k in range(len(inputs))], [f"y{k}" for k in range(len(outputs))]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, domain=domain, **attributes)], "g",
        [helper.make_tensor_value_info(name, *kind) for name, kind in zip(names, kinds, strict=True)],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(results, outputs, strict=True)],
    )
    versions = (("", 20), (ML, ml), (MICROSOFT, 1))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*each) for each in versions], ir_version=9)


def check_all(op: str, sets: list[Any], outputs: list[int], **attributes: Any) -> None:
    """Sets of one rank run one after another on one model; each runs on a model with its sizes as well."""
    for ranks in sorted({tuple(each.ndim for each in one) for one in sets}):
        alike = [one for one in sets if tuple(each.ndim for each in one) == ranks]
        named = [{f"x{k}": each for k, each in enumerate(one)} for one in alike]
        check(node_model(op, list(alike[0]), outputs, **attributes), *named)
        fixed = [(KINDS[each.dtype], each.shape) for each in alike[0]]
        check(node_model(op, fixed, outputs, **attributes), named[0])


PAIRS = [
    (LINES, LINES[::-1].copy()), (texts(), texts()), (texts("a", "b").reshape(2, 1), texts("x", "", "ä")),
    (np.array("q", object), LINES), (np.array("q", object), np.array("", object)),
    (texts().reshape(0, 1), texts("x")), (texts("a"), texts().reshape(0, 1)), (texts(""), texts("")),
]


# -- letters

LETTERS = [chr(code) for code in range(1, 0x1F000) if not 0xD800 <= code < 0xE000]


@pytest.mark.parametrize("action", ["LOWER", "UPPER"])
def test_letters_have_the_case_that_they_have_in_onnx_runtime(action: str) -> None:
    attributes = {"case_change_action": action, "is_case_sensitive": 1, "locale": "C.utf8"}
    model = node_model("StringNormalizer", [texts("")], [STRING], **attributes)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception:
        pytest.skip("the system has no locale of this name")
    (found,) = session.run(None, {"x0": texts(*LETTERS)})
    changed = [letter_case.changed(action, each) for each in LETTERS]
    assert [each for each, *both in zip(LETTERS, found, changed, strict=True) if both[0] != both[1]] == []


# -- whole models

DOCUMENTS = texts("The cat sat.", "A dog, a DOG!", "", "no word of these", "the cat and the dog: Ä_1")


def classifier() -> Any:
    """The operators that skl2onnx makes of TfidfVectorizer and LogisticRegression."""
    words = ["the", "cat", "dog", "sat", "cat", "dog", "the", "cat"]
    nodes = [
        helper.make_node("Flatten", ["text"], ["rows"], axis=0),
        helper.make_node("Squeeze", ["rows", "zero"], ["flat"]),
        helper.make_node("StringNormalizer", ["flat"], ["low"], case_change_action="LOWER", is_case_sensitive=0),
        helper.make_node(
            "Tokenizer", ["low"], ["tokens"], domain=MICROSOFT, mark=0, mincharnum=1, pad_value="#",
            tokenexp="[a-zA-Z0-9_]+",
        ),
        helper.make_node(
            "TfIdfVectorizer", ["tokens"], ["counts"], mode="TFIDF", min_gram_length=1, max_gram_length=2,
            max_skip_count=0, pool_strings=words, ngram_counts=[0, 4], ngram_indexes=[0, 1, 2, 3, 4, 5],
            weights=[1.0, 1.5, 1.25, 2.0, 2.5, 1.75],
        ),
        helper.make_node("Normalizer", ["counts"], ["features"], domain=ML, norm="L2"),
        helper.make_node(
            "LinearClassifier", ["features"], ["label", "scores"], domain=ML, classlabels_strings=["animals", "other"],
            coefficients=[-0.5, -2.0, -1.0, 0.25, -1.5, -0.5, 0.5, 2.0, 1.0, -0.25, 1.5, 0.5],
            intercepts=[0.125, -0.125], multi_class=1, post_transform="SOFTMAX",
        ),
    ]
    graph = helper.make_graph(
        nodes, "classifier", [helper.make_tensor_value_info("text", STRING, [None, 1])],
        [helper.make_tensor_value_info("label", STRING, [None]),
         helper.make_tensor_value_info("scores", FLOAT, [None, 2])],
        [onnx.numpy_helper.from_array(np.array([0]), "zero")],
    )
    versions = (("", 20), (ML, 1), (MICROSOFT, 1))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*each) for each in versions], ir_version=9)


def scores_of(documents: list[str]) -> Any:
    """The numbers of the classifier, computed by hand."""
    weights = np.array([[-0.5, -2.0, -1.0, 0.25, -1.5, -0.5], [0.5, 2.0, 1.0, -0.25, 1.5, 0.5]])
    found = []
    for each in documents:
        split = "".join(char if char.isascii() and (char.isalnum() or char == "_") else " " for char in each.lower())
        words = split.split()
        pairs = list(pairwise(words))
        counts = np.array([
            *(words.count(word) for word in ("the", "cat", "dog", "sat")),
            pairs.count(("cat", "dog")), pairs.count(("the", "cat")),
        ]) * [1.0, 1.5, 1.25, 2.0, 2.5, 1.75]
        size = np.linalg.norm(counts) or 1.0
        raw = np.exp(weights @ counts / size + [0.125, -0.125])
        found.append(raw / raw.sum())
    return np.array(found, np.float32)


@needs_library
def test_an_ir_that_is_read_again_and_a_model_in_memory() -> None:
    import openvino

    model = node_model("StringSplit", [LINES], [STRING, INT], delimiter=",")
    converted = mo_loop.convert_model(model)
    compiled = openvino.Core().compile_model(converted.to_openvino(), "CPU")
    found = compiled({0: np.array(["a,b", "", "c"])})
    assert found[0].tolist() == [["a", "b"], ["", ""], ["c", ""]] and found[1].tolist() == [2, 0, 1]


@needs_library
def test_a_locale_that_the_system_lacks(tmp_path: Path) -> None:
    model = node_model("StringNormalizer", [texts("")], [STRING], case_change_action="LOWER", locale="en_ZZ.UTF-8")
    onnx.save(model, tmp_path / "model.onnx")
    caught = raised(NotComparableError, verify, tmp_path / "model.onnx")
    assert "Failed to construct locale with name:en_ZZ.UTF-8" in str(caught)
    assert "help:  install this locale on the system: ONNX Runtime needs it, the IR does not" in str(caught)


# -- what is refused, and what is noted


@pytest.mark.parametrize(("op", "attributes", "text"), [
    ("StringNormalizer", {"case_change_action": "LOWER", "locale": "tr_TR.UTF-8"}, "letters of the locale 'tr_TR"),
    ("StringNormalizer", {"stopwords": ["a"], "locale": "C"}, "letters of the locale 'C'"),
    ("Tokenizer", {"separators": [" "]}, "with separators"), ("Tokenizer", {"tokenexp": "a+", "mark": 1}, "with marks"),
    ("Tokenizer", {"tokenexp": "(ab)+"}, "'(ab)+', which is not one set"),
    ("Tokenizer", {"tokenexp": r"[\w-.]+"}, "which is not one set"),
    ("Tokenizer", {"tokenexp": "[z-a]"}, "not one set"),
])
def test_forms_without_an_exact_translation_are_refused(op: str, attributes: dict[str, Any], text: str) -> None:
    domain = MICROSOFT if op == "Tokenizer" else ""
    given = {"mark": 0, "mincharnum": 1, "pad_value": "#"} if domain else {}
    with pytest.raises(MoLoopError, match="ML303") as caught:
        mo_loop.convert_model(node_model(op, [LINES], [STRING], domain=domain, **given | attributes))
    assert text in str(caught.value) and "no operation that computes it exactly" in str(caught.value)


def test_strings_in_a_loop_are_refused() -> None:
    """The runtime has no memory of strings for the ports of a Loop: it failed at the first inference."""
    loop = parsed("""main (string[N] x, int64 n) => (string[N] y) {
        y = Loop (n, "", x) <body = step (int64 i, bool c, string[N] s) => (bool d, string[N] u) {
            d = Identity (c) u = StringConcat (s, s) }> }""", opset=20)
    raised(MoLoopError, mo_loop.convert_model, loop, match="Loop of strings: the runtime does not support it")


def test_a_model_without_text_needs_no_library(recwarn: pytest.WarningsRecorder) -> None:
    """Labels of numbers are strings of a table: OpenVINO alone makes them."""
    attributes = {"keys_int64s": [1], "values_strings": ["a"], "domain": ML}
    converted = mo_loop.convert_model(node_model("LabelEncoder", [np.array([1])], [STRING], **attributes))
    assert "library" not in converted.graph.rt_info["converter"]
    assert not [each for each in recwarn if "ML561" in str(each.message)]


@pytest.mark.filterwarnings("default::mo_loop.errors.ConversionWarning")
def test_the_library_is_noted() -> None:
    with pytest.warns(ConversionWarning) as heard:
        converted = mo_loop.convert_model(node_model("Equal", [LINES, LINES], [BOOL]))
    assert any("EqualStr" in str(each.message) and "openvino_tokenizers" in str(each.message) for each in heard)
    assert converted.graph.rt_info["converter"]["library"] == "openvino_tokenizers"


def test_the_summary_tells_how_to_load_the_library(tmp_path: Path) -> None:
    onnx.save(node_model("Equal", [LINES, LINES], [BOOL]), tmp_path / "model.onnx")
    done = CliRunner().invoke(command, [str(tmp_path / "model.onnx"), "-o", str(tmp_path / "model.xml")])
    assert "needs         the library of openvino_tokenizers, of the same release as OpenVINO" in done.output
    assert "import openvino_tokenizers; in C++: core.add_extension(" in done.output


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_library, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="which is not installed") as caught:
        text_library.add_to(None, b'<layer type="EqualStr" version="extension">')
    assert "mo_loop[text]" in str(caught.value)
    text_library.add_to(None, b'<layer type="Equal" version="opset1">')


def test_strings_of_a_constant_are_taken_apart_before_run_time() -> None:
    model = node_model("StringConcat", [LINES, LINES], [STRING])
    del model.graph.input[1]
    with_weights(model, x1=texts("!"))
    assert len(mo_loop.convert_model(model).graph.of(StringTensorUnpack)) == 1


@needs_library
def test_verify_loads_the_library_and_knows_words_of_the_model() -> None:
    attributes = {"keys_strings": ["red", "dark red"], "values_int64s": [5, 6], "domain": ML}
    model = node_model("LabelEncoder", [LINES], [INT], **attributes)
    words = roles(load(model.SerializeToString()))["x0"].words
    assert words == ("red", "dark red", "red dark red") and verify(model).passed


read_cases(globals())
