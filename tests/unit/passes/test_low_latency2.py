"""LowLatency2: refusals, warnings and unchanged models; tests/golden/low_latency2 has the graphs that it writes."""

import warnings
from collections.abc import Mapping

import pytest

from mo_loop import convert_model, ops
from mo_loop.errors import ConversionErrors, ConversionWarning, UnsupportedError, UsageError
from mo_loop.transforms.states.low_latency2 import LowLatency2
from mo_loop.transforms.vocabulary import source_of
from tests.cases import read_cases
from tests.harness import parsed, raised

SCAN = """(float[2] s, float[{length},2] x) => (z, y) {{
  z, y = Scan <num_scan_inputs = 1 {attributes}, body = step (float[2] a, float[2] b) => (float[2] c, float[2] d) {{
    c = Add (a, b) d = Tanh (c)
  }}> (s, x)
}}"""

LOOP = """(float[2] s, float[1,2] x, bool more) => (z) {
  one = Constant <value_int = 1> ()
  z = Loop (one, more, s) <body = step (int64 i, bool go, float[2] a) => (on, c) {
    c = Add (a, x) on = And (go, more)
  }>
}"""


def scan(length: object, attributes: str = "") -> str:
    return "main " + SCAN.format(length=length, attributes=attributes)


def converted(text: str, transform: str = "LowLatency2[use_const_initializer=False]"):
    return convert_model(parsed(text, opset=17), transform=transform).graph


def test_an_unknown_length_is_refused() -> None:
    error = raised(UnsupportedError, converted, scan("N"), match="unknown number of steps")
    assert error.code == "ML350" and error.where == "z" and "sequence_length=1" in error.hint


def test_the_option_sets_the_length() -> None:
    graph = converted(scan("N"), "LowLatency2[use_const_initializer=False,sequence_length=1]")
    (x,) = [each for each in graph.parameters if each.name == "x"]
    assert x.output.shape == (1, 2) and [each.variable_id for each in graph.of(ops.ReadValue)] == ["y/a/variable_0"]


def test_so_does_the_input_option() -> None:
    model = parsed(scan("N"), opset=17)
    graph = convert_model(model, input="x[1,2]", transform="LowLatency2[use_const_initializer=False]").graph
    assert len(graph.of(ops.Assign)) == 1


def test_other_lengths_are_refused() -> None:
    raised(UnsupportedError, converted, scan(5), match="runs 5 times, not once")


def test_every_loop_that_cannot_be_is_named() -> None:
    text = """main (float[2] s, float[N,2] x, float[M,2] y) => (a, b) {
      a, _a = Scan <num_scan_inputs = 1, body = one (float[2] p, float[2] q) => (float[2] r, float[2] t)
        { r = Add (p, q) t = Identity (r) }> (s, x)
      b, _b = Scan <num_scan_inputs = 1, body = two (float[2] p, float[2] q) => (float[2] r, float[2] t)
        { r = Mul (p, q) t = Identity (r) }> (s, y)
    }"""
    assert sorted(each.where for each in raised(ConversionErrors, converted, text).errors) == ["a", "b"]


def test_a_sequence_read_backwards_is_refused() -> None:
    raised(UnsupportedError, converted, scan(1, ", scan_input_directions = [1]"), match="backwards")


@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_layers_that_need_the_whole_sequence_are_refused(direction: str) -> None:
    count = 2 if direction == "bidirectional" else 1
    text = f"""main (float[1,2,3] x, float[{count},16,3] w, float[{count},16,4] r) => (y) {{
      y = LSTM <hidden_size = 4, direction = "{direction}"> (x, w, r)
    }}"""
    raised(UnsupportedError, converted, text, match=f"direction {direction}")


def test_a_condition_that_may_end_the_loop_is_refused() -> None:
    raised(UnsupportedError, converted, "main " + LOOP, match="unknown number of steps")


def test_zeros_in_place_of_another_initial_value_are_a_warning() -> None:
    with pytest.warns(ConversionWarning, match="begins with zeros") as record:
        graph = converted(scan(1), "LowLatency2")
    assert [each.message.code for each in record] == ["ML524"]  # type: ignore[union-attr]
    (read,) = graph.of(ops.ReadValue)
    initial = source_of(read.inputs[0], (ops.Broadcast,))
    assert not initial.node.array.any()


def test_initial_zeros_are_no_warning() -> None:
    text = "main (float[1,2,3] x, float[1,16,3] w, float[1,16,4] r) => (y) { y = LSTM <hidden_size = 4> (x, w, r) }"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(converted(text, "LowLatency2").of(ops.LSTMCell)) == 1


def test_a_model_without_sequences() -> None:
    with pytest.raises(UsageError, match="--transform LowLatency2 has no effect") as error:
        converted("main (float[2] x) => (y) { y = Tanh (x) }")
    assert "no loop and no LSTM" in error.value.why


def test_only_one_step_can_be_set() -> None:
    raised(UsageError, LowLatency2, sequence_length=2, match="sequence_length is 2")


@pytest.mark.keeps_loops
def test_it_runs_alone() -> None:
    graph = convert_model(parsed(scan("N"), opset=17)).graph
    assert LowLatency2(use_const_initializer=False, sequence_length=1).run(graph)
    assert len(graph.of(ops.ReadValue)) == len(graph.of(ops.Assign)) == 1


def test_without_the_option_nothing_changes() -> None:
    assert not convert_model(parsed(scan(1), opset=17)).graph.has(ops.ReadValue)


def layers(*names: str, attributes: str = "") -> str:
    """Layers of these names over one sequence."""
    nodes = [
        f"[{name}] y{place} = LSTM <hidden_size = 4 {attributes}> (x, w, r{place}) "
        for place, name in enumerate(names)
    ]
    outputs = ", ".join(f"y{place}" for place in range(len(names)))
    body = "".join(nodes)
    weights = ", ".join(f"float[1,16,4] r{place}" for place in range(len(names)))
    return f"main (float[1,2,3] x, float[1,16,3] w, {weights}) => ({outputs}) {{ {body} }}"


def ids(text: str, renamed: Mapping[str, str] | None = None) -> list[str]:
    model = parsed(text, opset=17)
    for node in model.graph.node:
        node.name = (renamed or {}).get(node.name, node.name)
    graph = convert_model(model, transform="LowLatency2[use_const_initializer=False]").graph
    return sorted(each.variable_id for each in graph.of(ops.ReadValue))


@pytest.mark.parametrize("attributes", ["", ", clip = 0.5", ", input_forget = 1", ", layout = 1"])
def test_the_variables_of_a_layer_have_its_name(attributes: str) -> None:
    """Those of a layer that becomes a loop had a running number: `layer/Parameter#0/variable_0`."""
    text = layers("layer", attributes=attributes)
    assert ids(text.replace("float[1,2,3] x", "float[2,1,3] x") if "layout" in attributes else text) == [
        "layer/variable_0", "layer/variable_1",
    ]


def test_equal_names_of_layers_have_numbers_that_no_other_name_has() -> None:
    """`a`, `a` and `a#2` gave two variables of one name."""
    found = ids(layers("a", "a", "b"), {"b": "a#2"})
    assert len(set(found)) == 6 and found[-2:] == ["a/variable_0", "a/variable_1"]


read_cases(globals())
