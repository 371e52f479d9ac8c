"""The findings of `examine`: each kind with a counterexample, and always the errors of a conversion."""

import ast
import inspect
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mo_loop import errors
from mo_loop.api import ConvertArguments, convert_model, save_model
from mo_loop.conversion import Conversion
from mo_loop.conversion_limits import Limits
from mo_loop.errors import ConversionErrors, ExtensionError, MoLoopError, UsageError
from mo_loop.graph import Graph
from mo_loop.look.diagnostics import examine as diagnostics
from mo_loop.look.diagnostics.codes import CODES
from mo_loop.look.diagnostics.diagnostic import CheckReport, Diagnostic, exit_code, grouped
from mo_loop.options import ConvertOptions
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.low_precision.weights import rounded_products
from tests import ROOT
from tests.cli.test_bad_input import BROKEN
from tests.harness import parsed
from tests.texts import model_of, sections

MODELS = sorted((ROOT / "tests" / "models").glob("*/*.onnx"))

LOOP = """
main (float[3] x, int64 n) => (float[3] y) {
  [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
    d = Identity (c) [inner] t = Neg (s) }> }"""


def examine(source: Any, **options: Any) -> CheckReport:
    return diagnostics.examine(source, ConvertOptions(**options))


def codes(report: CheckReport, level: str | None = None) -> set[str]:
    return {each.code for each in report.diagnostics if level in (None, each.level)}


def found(source: Any, **arguments: Any) -> set[tuple[str, str]]:
    """(code, path) of all diagnostics; none of them is a bug."""
    report = examine(source, **arguments)
    assert report.refused is None and not report.trouble, report.refused or report.trouble
    return {(each.code, str(each.place)) for each in report.diagnostics}


def only(source: Any, code: str, **arguments: Any) -> Diagnostic:
    """The only diagnostic of that code."""
    (diagnostic,) = [each for each in examine(source, **arguments).diagnostics if each.code == code]
    return diagnostic


# -- errors are those of the conversion


def refusal(source: Any, **arguments: Any) -> set[str]:
    """The codes with which a conversion fails; empty if it succeeds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            convert_model(source, **arguments)
        except ConversionErrors as error:
            return {each.code for each in error.errors}
        except MoLoopError as error:
            return {error.code}
    return set()


def assert_same_errors(source: Any) -> None:
    refused, report = refusal(source), examine(source)
    assert not report.trouble, report.trouble
    assert refused <= codes(report, "error") | ({report.refused.code} if report.refused else set())
    assert bool(refused) == bool(report.exit_code and (report.refused or codes(report, "error")))


MADE = {name: make() for name, (make, _) in BROKEN.items()}
MADE |= {name: model for kind, name, text in sections(ROOT / "tests" / "cli" / "recorded" / "broken.txt")
         if kind == "file" and (model := model_of(name, text)[1])}


@pytest.mark.parametrize("name", MADE)
def test_broken_models(name: str) -> None:
    assert_same_errors(MADE[name])


@pytest.mark.parametrize("seed", range(40))
def test_damaged_models(seed: int) -> None:
    """Some bytes changed: diagnostics, or an error as in a conversion, never an exception of another kind."""
    rng = np.random.default_rng(seed)
    data = bytearray(MODELS[int(rng.integers(len(MODELS)))].read_bytes())
    for _ in range(int(rng.integers(1, 6))):
        data[rng.integers(len(data))] = rng.integers(256)
    assert_same_errors(bytes(data))


def test_same_options_as_a_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that change the conversion, with the same defaults; the others only change messages and files."""
    arguments = {**inspect.signature(convert_model).parameters, **inspect.signature(save_model).parameters}
    others = {"source", "dump", "observers", "stop_after", "check_passes", "model", "xml_path", "durable"}
    converting = {name: each.default for name, each in arguments.items() if name not in others}
    assert converting == {each.name: each.default for each in fields(ConvertOptions)}
    seen: list[ConvertOptions] = []

    class Noting(Conversion):
        def __init__(self, options: ConvertOptions, *_: Any, **__: Any) -> None:
            seen.append(options)

        def run(self, source: Any) -> Graph:
            return Graph()

    monkeypatch.setattr("mo_loop.api.Conversion", Noting)
    known: dict[str, Any] = {
        "sequence_io": "packed", "target": "2025.4", "quantization": "exact", "limits": Limits(nodes=3),
        "device": "GPU", "transform": "LowLatency2", "stateful_pairs": {"a": "b"}, "beam_idx": True,
    }
    for name in converting.keys() - {"compress_to_fp16"}:
        given = {name: known.get(name, object())}
        if name in ("stateful_pairs", "beam_idx"):
            given["stateful"] = True  # without it they have no effect, and are refused
        convert_model("x.onnx", **given)
        assert seen.pop() == ConvertArguments(**given)


# -- all errors, not only the first


def test_behind_a_failure() -> None:
    """If the model declares the outputs of a failed node, the nodes after it are checked too."""
    text = (
        "main (float[3] x) => (float[3] y) {declared} {{ [a] u = Nope (x) [b] v = Neg (u, u) y = Softmax (v) }}"
    )
    assert found(parsed(text.format(declared=""))) == {("ML302", "a (Nope)")}
    assert found(parsed(text.format(declared="<float[] u>"))) == found(parsed(text.format(declared="")))
    declared = found(parsed(text.format(declared="<float[3] u>")))
    assert declared == {("ML302", "a (Nope)"), ("ML227", "b (Neg)")}


def test_far_behind_failures() -> None:
    """Layers with an untranslated operator, one after the other; and in a body."""
    layers = [f"[n{i}] a{i} = Nope (b{i}) [s{i}] b{i + 1} = Softmax (a{i}, a{i})" for i in range(20)]
    declared = ", ".join(f"float[3] {name}" for i in range(20) for name in (f"a{i}", f"b{i + 1}") if name != "b20")
    text = f"main (float[3] b0) => (float[3] b20) <{declared}> {{ {' '.join(layers)} }}"
    assert Counter(each.code for each in examine(parsed(text)).diagnostics) == {"ML302": 20, "ML227": 20}
    body = LOOP.replace("float[3] t) {", "float[3] t) <float[3] u> {").replace(
        "t = Neg (s)", "u = Nope (s) t = Add (u, i)"
    )
    assert found(parsed(body)) == {("ML302", "loop/step/inner (Nope)"), ("ML240", "loop/step/t (Add)")}


def test_unsupported_operators_that_do_not_matter() -> None:
    """In a node that reaches no output, after a failure that hides them, and in a branch that is never taken."""
    dead = "main (float[3] x) => (float[3] y) { [dead] z = Nope (x) y = Neg (x) }"
    assert ("ML542", "dead (Nope)") in found(parsed(dead)) and not codes(examine(parsed(dead)), "error")
    assert ("ML302", "dead (Nope)") not in found(parsed(dead.replace("Neg (x)", "Lost (x)")))
    branch = """main (float[3] x) => (float[3] y) <bool yes = {1}> { y = If (yes) <
      then_branch = a () => (float[3] p) { p = Neg (x) }, else_branch = b () => (float[3] q) { q = Nope (x) }> }"""
    assert not codes(examine(parsed(branch)), "error")


def test_everything_at_the_boundary() -> None:
    text = """main (seq(float[2]) s, float[2] x, seq(float[3]) q) => (seq(float[2]) t, float[2] y) {
      t = Identity (s) y = Neg (x) }"""
    assert found(parsed(text)) >= {("ML310", "s"), ("ML310", "q"), ("ML310", "t (Identity)")}
    assert not codes(examine(parsed(text), sequence_io="packed"), "error")
    strings = "main (seq(string[2]) s) => (int64 n) { n = SequenceLength (s) }"
    assert codes(examine(parsed(strings), sequence_io="packed")) == {"ML310"}


def test_opsets() -> None:
    newer = parsed("main (float[3] x) => (float[3] y) { y = Neg (x) }")
    newer.opset_import[0].version = 999
    assert codes(examine(newer)) == {"ML222"}
    del newer.opset_import[:]
    assert codes(examine(newer)) == {"ML221"}


def test_names_that_are_no_text() -> None:
    data = parsed("main (float[3] x) => (float[3] y) { qqqq = Abs (x) y = Neg (qqqq) }").SerializeToString()
    report = examine(data.replace(b"qqqq", b"\xff\xfe\xff\xfe"))
    assert codes(report, "error") == {"ML220"} and not report.trouble


def test_a_cut_that_does_not_fit_is_refused() -> None:
    for arguments in ({"input": "ghost"}, {"output": ["ghost"]}, {"input": "x[2]->[1,2,3]"}):
        report = examine(parsed(LOOP), **arguments)
        assert isinstance(report.refused, UsageError) and report.exit_code == 2


def test_arguments_that_fit_no_model() -> None:
    with pytest.raises(UsageError):
        examine(parsed(LOOP), sequence_io="loose")
    with pytest.raises(ExtensionError):
        examine(parsed(LOOP), extensions=["there_is_no_such.py"])


def test_a_configuration_is_left_as_it_was() -> None:
    config = PassConfig()
    config.disable("NopElimination")
    assert examine(parsed(LOOP), config=config).refused is None
    assert config.named == {"NopElimination"} and not config.explanations
    config.disable("NoSuchPass")
    assert isinstance(examine(parsed(LOOP), config=config).refused, UsageError)


def test_a_bug_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("mo_loop.conversion.translate", stumble)
    report = examine(parsed(LOOP))
    assert codes(report, "error") == {"ML499"} and report.exit_code == 4 and "stumble" in report.trouble


def test_exit_codes() -> None:
    note, error = Diagnostic("ML520", ""), Diagnostic("ML302", "")
    warning, bug = Diagnostic("ML501", ""), Diagnostic("ML400", "")
    refused = CheckReport("x", refused=UsageError("no"))
    assert [CheckReport("x", each).exit_code for each in ([], [note], [warning], [error], [bug])] == [0, 0, 1, 1, 4]
    assert exit_code([CheckReport("x", [error]), refused]) == 2 and exit_code([]) == 0


# -- places


def test_places_in_functions_and_bodies() -> None:
    """Paths go through calls and bodies; names may hold slashes."""
    text = """main (float[3] x, bool f) => (float[3] y) {
      [outer] y = If (f) <
        then_branch = a () => (float[3] p) { [call] p = my.twice (x) },
        else_branch = b () => (float[3] q) { q = Neg (x) }> }
    <domain: "my", opset_import: ["": 18]> twice (v) => (w) { [first] u = Neg (v) [second] w = Nope (u) }"""
    data = parsed(text, my=1).SerializeToString()
    for name, other in ((b"outer", b"out/r"), (b"call", b"ca/1"), (b"second", b"secon/")):  # of the same length
        data = data.replace(name, other)
    (diagnostic,) = examine(data).diagnostics
    place = diagnostic.place
    assert (place.path, place.scope) == ("out/r/a/ca/1/secon/", "out/r/a/ca/1")
    assert (place.node, place.operator) == ("secon/", "Nope")


def test_a_loop_of_several_outputs_is_named_as_in_onnx() -> None:
    """Its node in the graph is named after one of its outputs."""
    text = LOOP.replace("=> (float[3] y)", "=> (float[3] y, float[K,3] z)").replace("] y = Loop", "] y, z = Loop")
    text = text.replace("float[3] t) {", "float[3] t, float[3] o) { o = Abs (s)")
    assert found(parsed(text)) == {("ML520", "loop (Loop)")}


def test_a_node_of_several_is_named_after_the_operator() -> None:
    """Bernoulli becomes several nodes; the random one has no name in ONNX."""
    place = only(parsed("main (float[3] x) => (float[3] y) { [draw] y = Bernoulli (x) }", 22), "ML503").place
    assert str(place) == "draw (Bernoulli)"


# -- numbers


def test_doubles() -> None:
    doubles = "main (double[3] x) => (double[3] y) { [neg] y = Neg (x) }"
    assert only(parsed(doubles), "ML501").message.startswith("1 input and 1 operation of f64")
    assert codes(examine(parsed(doubles.replace("double", "float")))) == set()


@pytest.mark.parametrize(("value", "said"), [(2**31, True), (-(2**31) - 1, True), (2**31 - 1, False)])
def test_wide_integers(value: int, said: bool) -> None:
    text = f"main (int64[3] x) => (int64[3] y) <int64 k = {{{value}}}> {{ [add] y = Add (x, k) }}"
    assert found(parsed(text)) == ({("ML502", "add (Add)")} if said else set())


def test_ends_of_slices_may_be_wide() -> None:
    """The runtime limits constants to 32 bits, which still means the end."""
    text = """main (float[N] x) => (float[M] y) <int64[1] a = {1}, int64[1] b = {9223372036854775807}> {
      y = Slice (x, a, b) }"""
    assert found(parsed(text)) == set()


def test_random_numbers() -> None:
    assert found(parsed("main () => (float[3] y) { [draw] y = RandomUniform <shape = [3]> () }")) >= {
        ("ML503", "draw (RandomUniform)")
    }


def test_operations_that_lose_nan_are_counted() -> None:
    text = "main (float[3] x, float[3] y) => (float[3] z) { [r] a = Relu (x) [m] b = Max (a, y) z = HardSigmoid (b) }"
    assert found(parsed(text)) == {("ML505", "r (Relu)")}
    assert only(parsed(text), "ML505").message == "3 operations lose NaN"
    assert found(parsed("main (int32[3] x, int32[3] y) => (int32[3] z) { z = Max (x, y) }")) == set()


@pytest.mark.parametrize(("exponent", "said"), [(0.5, True), (2.0, False)])
def test_floating_point_powers_of_integers(exponent: float, said: bool) -> None:
    """A whole exponent becomes products, which are exact in 32 bits."""
    text = f"main (int64[3] x) => (int64[3] y) <float k = {{{exponent}}}> {{ [p] y = Pow (x, k) }}"
    assert found(parsed(text)) == ({("ML506", "p (Pow)")} if said else set())


def test_computed_powers_of_integers() -> None:
    text = "main (int64[3] x, int64[3] k) => (int64[3] y) { [p] y = Pow (x, k) }"
    assert found(parsed(text)) == {("ML506", "p (Pow)")} and found(parsed(text.replace("int64", "float"))) == set()


def test_broadcasts_to_computed_sizes_of_elementwise_operations() -> None:
    text = "main (float[N] x, int64[2] k, float[M] z) => (float[A,B] y) { a = Sqrt (x) [e] b = Expand (a, k) y = READ }"
    assert found(parsed(text.replace("READ", "Sub (b, z)"))) == {("ML507", "e (Expand)")}
    assert found(parsed(text.replace("READ", "Transpose (b)"))) == {("ML540", "z")}


def test_weights_beyond_f16() -> None:
    text = "main (float[2] x) => (float[2] y) <float[2] w = {1.0, 1e6}> { y = Add (x, w) }"
    assert found(parsed(text)) == set()
    assert only(parsed(text), "ML504", compress_to_fp16=True).message.startswith("1 weight is beyond")
    assert found(parsed(text.replace("1e6", "6e4")), compress_to_fp16=True) == set()


QUANTISED = """main (float[N,2] x) => (float[N,2] y) <float s = {0.5},
  int8[2,2] w = {1, 64, 3, LARGEST}, float[2] t = {1, 2}> {
  q = QuantizeLinear (x, s) d = DequantizeLinear (q, s) v = DequantizeLinear <axis = AXIS> (w, t)
  [product] y = MatMul (d, v) }"""


def test_quantised_weights() -> None:
    def codes_of(largest: int, axis: int, **arguments: Any) -> set[str]:
        text = QUANTISED.replace("LARGEST", str(largest)).replace("AXIS", str(axis))
        return codes(examine(parsed(text), **arguments))

    assert codes_of(64, 1) == codes_of(-64, 1) == set()
    assert codes_of(65, 1) == {"ML508"} and codes_of(65, 1, quantization="portable") == {"ML509"}
    assert "ML508" not in codes_of(65, 1, quantization="exact") and codes_of(64, 0) == {"ML509"}


COMPRESSED = """main (float[N,64] x) => (float[N,32] y) <float[32] s, TYPE[64,32] w, TYPE[32] z> {
  v = DequantizeLinear <axis = 1> (w, s ZERO) y = MatMul (x, v) }"""
"""Weights of the whole range do not fit i8 without their zero points."""


@pytest.mark.parametrize(
    ("kind", "zero", "rounded"),
    [("int8", "", True), ("int8", ", z", False), ("uint8", ", z", True), ("float", None, False)],
)
def test_activations_before_compressed_weights(kind: str, zero: str | None, rounded: bool) -> None:
    """The runtime does not round those of i8 weights with zero points, nor those of weights in f32."""
    text = COMPRESSED.replace("TYPE", kind).replace("ZERO", zero or "")
    text = text if zero is not None else text.replace("DequantizeLinear <axis = 1> (w, s )", "Mul (w, s)")
    model, random = parsed(text), np.random.default_rng(5)
    least = 0 if kind == "uint8" else -128
    arrays = {"s": np.ones(32, np.float32), "w": random.integers(least, least + 256, (64, 32)), "z": np.arange(32)}
    for name, array in arrays.items():
        array = array.astype({"float": np.float32}.get(kind, kind) if name != "s" else np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    assert ("ML500" in codes(examine(model))) is rounded
    assert "ML500" not in codes(examine(model, quantization="exact"))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        converted = convert_model(model)
    said = [each for each in heard if getattr(each.message, "code", "") == "ML500"]
    assert len(said) == rounded and all("DYNAMIC_QUANTIZATION_GROUP_SIZE" in str(each.message) for each in said)
    assert len(rounded_products(converted.graph)) == rounded


# -- assumptions


def test_contradicting_declarations() -> None:
    text = "main (float[3] x) => (float[3] y) <float[4] a> { a = Abs (x) y = Neg (a) }"
    diagnostic = only(parsed(text), "ML510")
    assert str(diagnostic.place) == "a (Abs)" and "f32[4]" in diagnostic.message and diagnostic.level == "warning"
    assert found(parsed(text.replace("float[4]", "float[3]"))) == set()


def test_hidden_names() -> None:
    hidden = LOOP.replace("[inner] t = Neg (s)", "n = Abs (s) t = Neg (n)")
    place = only(parsed(hidden), "ML511").place
    assert (place.path, place.scope, place.node, place.operator) == ("loop/step", "loop/step", "", "Loop")
    strict = examine(parsed(hidden), strict=True)
    assert "ML511" not in codes(strict) and codes(strict, "error")


def test_a_branch_that_cannot_be_taken() -> None:
    text = """main (float[3] x, bool f) => (float[3] y) {
      [choice] z = If (f) <then_branch = a () => (float[3] p) { p = Neg (x) },
        else_branch = b () => (float[1,3] q) <int64[1] zero = {0}> { q = Unsqueeze (x, zero) }>
      [read] y = Transpose <perm = [0]> (z) }"""
    assert str(only(parsed(text), "ML512").place) == "choice (If)"


def test_what_the_checker_refuses() -> None:
    """A model that converts all the same; for one that does not, the conversion reports more."""
    model = parsed("main (float[3] x) => (float[3] y) { y = Neg (x) }")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert only(model, "ML513").level == "note"
    model.graph.node[0].op_type = "Nope"
    assert codes(examine(model)) == {"ML302"}


def test_the_checker_reads_no_weights(tmp_path: Path) -> None:
    """Large data stays in its file and is not reported."""
    weights = numpy_helper.from_array(np.ones((1024, 1024), np.float32), "w")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1024, 1024]) for name in "xy"]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [weights])
    path = tmp_path / "large.onnx"
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)]), path)
    assert found(path) == set()


# -- loops


def test_loops_without_a_known_count() -> None:
    assert found(parsed(LOOP)) == {("ML520", "loop (Loop)")} and found(parsed(LOOP), input="x,n->3") == set()
    sliced = """main (float[N,3] x) => (float[N,3] y) { y = Scan <num_scan_inputs = 1,
      body = b (float[3] e) => (float[3] f) { f = Neg (e) }> (x) }"""
    assert found(parsed(sliced)) == set()


GROWING = """main (float[1] x) => (float[N] y) <int64 three = {3}> {
  [loop] y = Loop (three, "", x) <body = step (int64 i, bool c, float[M] s) => (bool d, float[K] t) {
    d = Identity (c) NEXT }> }"""


@pytest.mark.keeps_loops
@pytest.mark.parametrize(("next_", "said"), [
    ("t = Concat <axis = 0> (s, x)", True), ("t = Concat <axis = 0> (x, s)", True),
    ("u = Abs (s) t = Concat <axis = 0> (s, u)", True), ("t = Add (s, x)", False),
])
def test_growing_states(next_: str, said: bool) -> None:
    assert found(parsed(GROWING.replace("NEXT", next_))) == ({("ML521", "loop (Loop)")} if said else set())
    assert found(parsed(GROWING.replace("NEXT", next_)), unroll=3) == set()


def test_an_option_without_effect() -> None:
    report = examine(parsed(GROWING.replace("NEXT", "t = Add (s, x)")), unroll=2)
    assert report.refused is not None and "--unroll 2 has no effect" in report.refused.message


LIST = """main (float[A,B] x, float[C,D] y, int64 p) => (float[E,F] z) {
  [make] s = SequenceConstruct (x, y) [put] t = SequenceInsert (s, x, p) z = SequenceAt (t, p) }"""


def test_packed_lists() -> None:
    """Elements without a common shape; those of one shape are stacked."""
    assert ("ML522", "put (SequenceInsert)") in found(parsed(LIST))
    assert "ML522" not in codes(examine(parsed(re.sub(r"float\[\w,\w\]", "float[2,2]", LIST))))


# -- states


CARRIED = """
main (float[B,2,P,4] past_key, float[B,2,1,4] x, float[B,3] h, float[B,3] g)
  => (float[B,2,T,4] present_key, float[B,3] next_h, float[B,3] y) {
    present_key = Concat <axis = 2> (past_key, x) next_h = Add (h, g) y = Mul (next_h, g) }"""


def test_states_that_the_caller_carries() -> None:
    note = only(parsed(CARRIED), "ML550")
    assert note.level == "note" and "--stateful" in note.help and "2 inputs and outputs are states" in note.message
    assert "past_key -> present_key, h -> next_h" in note.message


@pytest.mark.parametrize("text", [
    "main (float[N] x, float[N] z) => (float[N] y) { y = Add (x, z) }",  # a type in common is not a state
    "main (float[B,2,P,4] a, float[B,2,1,4] x) => (float[B,2,1,4] y) { c = Concat <axis = 2> (a, x) y = Add (x, x) }",
])
def test_inputs_that_are_no_states(text: str) -> None:
    assert "ML550" not in codes(examine(parsed(text)))


STEPS = """
main (float[LENGTH,B,3] x, float[1,B,2] h) => (float[LENGTH,1,B,2] y, float[1,B,2] z) <float[1,2,3] w = {1,2,3,4,5,6},
  float[1,2,2] r = {1,2,3,4}> { [rnn] y, z = RNN <hidden_size = 2 DIRECTION> (x, w, r, , , h) }"""

SUMS = """
main (float[B,2] start, float[LENGTH,B,2] x) => (float[B,2] last) {
  [scan] last = Scan <num_scan_inputs = 1 DIRECTION, body = step (float[B,2] s, float[B,2] each) => (float[B,2] t) {
    t = Add (s, each) }> (start, x) }"""


@pytest.mark.parametrize(("text", "said"), [
    (STEPS, True), (SUMS, True), (STEPS.replace("LENGTH", "5"), True), (SUMS.replace("LENGTH", "5"), True),
    (STEPS.replace("LENGTH", "1"), False), (STEPS.replace("DIRECTION", ', direction = "reverse"'), False),
    (SUMS.replace(" DIRECTION", ", scan_input_directions = [1]"), False),
    # LowLatency2 would refuse it.
    (STEPS.replace("[rnn]", "p = Softmax <axis = 0> (x) [rnn]").replace("(x, w", "(p, w"), False),
])
def test_loops_that_step_forward_through_an_input(text: str, said: bool) -> None:
    report = examine(parsed(text.replace("DIRECTION", "")))
    notes = [each for each in report.diagnostics if each.code == "ML551"]
    assert len(notes) == said and report.exit_code == 0
    if said:
        assert notes[0].message == "it steps through a sequence of the input 'x'"
        assert notes[0].place.path in ("rnn", "scan") and "LowLatency2[sequence_length=1]" in notes[0].help


@pytest.mark.parametrize("length", ["T", "5"])
def test_sequences_in_the_branches_of_an_if(length: str) -> None:
    """A detector of voices has an LSTM for each sampling rate."""
    text = """main (float[LENGTH,B,3] x, bool rate) => (float[L,1,B,2] y) <float[1,2,3] w = {1,2,3,4,5,6},
      float[1,2,2] r = {1,2,3,4}> { [if] y = If (rate) <
        then_branch = high () => (float[L,1,B,2] h) { v = Relu (x) [rnn1] h = RNN <hidden_size = 2> (v, w, r) },
        else_branch = low () => (float[L,1,B,2] l) { [rnn2] l = RNN <hidden_size = 2> (x, w, r) }> }"""
    notes = [each for each in examine(parsed(text.replace("LENGTH", length))).diagnostics if each.code == "ML551"]
    # A length that is a number may be that of another sequence, after an operation that computes new elements.
    expected = ["if/high/rnn1", "if/low/rnn2"] if length == "T" else ["if/low/rnn2"]
    assert [each.place.path for each in notes] == expected


# -- compilation


def nested(depth: int) -> onnx.ModelProto:
    """Nested Ifs."""
    body = helper.make_graph([helper.make_node("Neg", ["x"], ["v0"])], "b0", [], [_value("v0")])
    for level in range(1, depth + 1):
        other = helper.make_graph(
            [helper.make_node("Abs", ["x"], [f"o{level}"])], f"e{level}", [], [_value(f"o{level}")]
        )
        name = f"v{level}"
        node = helper.make_node("If", [f"f{level}"], [name], f"if{level}", then_branch=body, else_branch=other)
        body = helper.make_graph([node], f"b{level}", [], [_value(name)])
    flags = [helper.make_tensor_value_info(f"f{level}", TensorProto.BOOL, []) for level in range(1, depth + 1)]
    graph = helper.make_graph(body.node, "main", [_value("x"), *flags], body.output)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])


def _value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])


def test_nested_ifs() -> None:
    assert found(nested(15)) == set() and found(nested(16)) == {("ML530", "if16 (If)")}


# -- leftovers


def test_leftovers() -> None:
    text = """main (float[3] x, float[2] spare) => (float[3] y) <float[3] w = {1.0, 2.0, 3.0}> {
      [one] a = Abs (x) [two] b = Neg (a) y = Sqrt (x) }"""
    assert found(parsed(text)) == {
        ("ML540", "spare"), ("ML541", "w"), ("ML542", "one (Abs)"), ("ML542", "two (Neg)"),
    }
    assert not codes(examine(parsed(text), output="y")) & {"ML541", "ML542"}


@pytest.mark.keeps_loops
def test_what_only_a_body_reads_is_no_leftover() -> None:
    text = LOOP.replace("float[3] y)", "float[3] y) <float[3] w = {1.0, 2.0, 3.0}>").replace("Neg (s)", "Add (s, w)")
    assert codes(examine(parsed(text))) == {"ML520"}


# -- the table


def test_the_table_holds_every_code() -> None:
    """Every code in the sources is explained, and every explained code occurs in the sources."""
    given: set[str] = set()
    for path in [*(ROOT / "mo_loop").rglob("*.py"), *(ROOT / "transforms").rglob("*.py")]:
        if path.name != "codes.py":
            given |= set(re.findall(r"\bML[2-5]\d\d\b", path.read_text("utf-8")))
    assert given - CODES.keys() == set(), "explain these in mo_loop/look/diagnostics/codes.py"
    assert CODES.keys() - given == set(), "nothing gives these"


MEANINGS = ROOT / "tests" / "unit" / "codes.txt"
"""Each code with its meaning, and below it every message that has it."""


@cache
def messages_by_code() -> dict[str, set[tuple[str, str]]]:
    """Code -> the classes and messages of the errors and warnings with it; `_` is a part known at run time."""
    found: dict[str, set[tuple[str, str]]] = {code: set() for code in CODES}
    for path in [*(ROOT / "mo_loop").rglob("*.py"), *(ROOT / "transforms").rglob("*.py")]:
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "code=" in text else ():
            code = next((each.value for each in getattr(node, "keywords", ()) if each.arg == "code"), None)
            if isinstance(node, ast.Call) and isinstance(code, ast.Constant) and code.value in CODES and node.args:
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                found[str(code.value)].add((name, template(node.args[0])))
    return found


def template(text: ast.expr) -> str:
    """The text of a message without what it learns at run time."""
    if isinstance(text, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "_" for each in text.values)
    return str(text.value) if isinstance(text, ast.Constant) else "_"


def test_a_code_has_one_meaning() -> None:
    """A message with a code is below the meaning of the code, where a reader can compare them.

    UPDATE_GOLDEN=1 writes the list anew: look at the difference before you keep it.
    """
    lines = []
    for code, messages in messages_by_code().items():
        texts = sorted({text for _, text in messages if text != "_"})
        lines += [f"{code} {CODES[code].title}", *(f"    {each}" for each in texts)]
    text = "\n".join(lines) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        MEANINGS.write_text(text, "utf-8")
    assert text == MEANINGS.read_text("utf-8")


@pytest.mark.parametrize("code", CODES)
def test_the_errors_of_a_code_end_with_one_exit_code(code: str) -> None:
    classes = [getattr(errors, name, None) for name, _ in messages_by_code()[code]]
    assert len({each.exit_code for each in classes if hasattr(each, "exit_code")}) <= 1


def test_two_codes_do_not_have_one_meaning() -> None:
    titles = [each.title for each in CODES.values()]
    assert len({*titles}) == len(titles)


@pytest.mark.parametrize("code", CODES)
def test_texts_of_the_table(code: str) -> None:
    """Their parts are joined: a title is a phrase, reasons and helps are sentences without a full stop."""
    meaning = CODES[code]
    for text in (meaning.title, meaning.why, meaning.help):
        assert text == text.strip() and not text.endswith(".") and "  " not in text
    assert meaning.title and (meaning.level == "error") == (code < "ML500")
    assert meaning.why and meaning.help


def test_reports_are_the_same_every_time() -> None:
    made: list[Callable[[], Any]] = [lambda: parsed(LIST), lambda: nested(16), lambda: MODELS[0]]
    for make in made:
        assert examine(make()).diagnostics == examine(make()).diagnostics


def test_warnings_of_one_code_are_one_group_and_errors_of_one_message() -> None:
    several = [Diagnostic("ML510", f"t{number} is declared as f32[2]", why="w") for number in range(16)]
    found = grouped([*several, Diagnostic("ML303", "a"), Diagnostic("ML303", "b"), Diagnostic("ML303", "b")])
    assert [each.message for each in found] == [
        "t0 is declared as f32[2] (16 times, with other names or numbers)", "a", "b (2 times)",
    ]
