"""The table of networks of real size, their quantised weights, and the arithmetic of their measurement."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from tests.harness import raised, with_weights
from tests.models.sources.real_models.blocked_weights import SCHEMES, quantise, quantise_weights
from tests.models.sources.real_models.rows import (
    CACHED,
    FILES,
    FLOAT,
    GROUPS,
    LOOP_MODELS,
    QUANTISED,
    TABLE,
    VARIANTS,
    WEIGHTS_ONLY,
    cached,
    entries,
    matching,
)
from tools.real import nodes, records
from tools.real.nodes import Executed
from tools.real.pairs import difference
from tools.real.processes import message
from tools.real.targets import Row, Size, geometric_mean, judge, table
from tools.timing import pair_ratio, quick_ratio

ROWS = list(entries())


# -- the table of rows


def test_there_are_at_least_60_rows_of_every_group() -> None:
    assert len(ROWS) >= 60 and len({each.name for each in ROWS}) == len(ROWS)
    assert {each.group for each in ROWS} == set(GROUPS)


def test_every_model_has_a_module_and_every_variant_a_description() -> None:
    assert sorted(name for names in FILES.values() for name in names) == sorted((*TABLE, *CACHED))
    assert {each.variant for each in ROWS} - {""} == set(VARIANTS)
    assert set(SCHEMES) == set(WEIGHTS_ONLY) <= set(VARIANTS) and set(LOOP_MODELS) <= set(TABLE)


def test_activations_are_left_in_f32_only_in_front_of_compressed_weights() -> None:
    kept = [each for each in ROWS if each.keeps_activations]
    assert kept and {each.variant for each in kept} <= set(WEIGHTS_ONLY)
    assert {each.stem for each in kept} <= {each.stem for each in ROWS if not each.keeps_activations}


def test_rows_are_chosen_by_parts_of_their_names() -> None:
    assert [each.name for each in matching(["lstm_cell_loop", "resnet50-f16"])] == ["resnet50-f16", "lstm_cell_loop"]
    assert matching([]) == ROWS and matching(["nothing"]) == []
    assert [each.name for each in cached(["gpt2", "t5"])] == ["gpt2_cached", "t5_cached"]
    assert {each.name for each in cached([])}.isdisjoint(each.name for each in ROWS)


# -- weights in few bits


def test_masks_of_infinite_range_are_not_quantised() -> None:
    integers = pytest.importorskip("tests.models.sources.real_models.integers")
    text = """<ir_version: 8, opset_import: ["" : 17]>
    main (float[2,2] x, bool[2,2] b) => (float[2,2] z) {
      least = Constant<value=float {-3.4e38}>() zero = Constant<value=float {0}>() mask = Where(b, zero, least)
      sum = Add(x, mask) parts = Softmax(sum) z = Add(parts, x)
    }"""
    graph = parser.parse_model(text).graph
    for number, node in enumerate(graph.node):
        node.name = f"{node.op_type}{number}"
    assert integers.masked(graph) == ["Where2", "Add3", "Softmax4"]


def weight(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("name", ["int4_32", "uint4_32", "int4_128", "uint4_128"])
@pytest.mark.parametrize("axis", [0, 1])
def test_blocks_differ_from_the_weight_by_half_a_step(name: str, axis: int) -> None:
    scheme, w = SCHEMES[name], weight(256, 256)
    found = quantise(w, axis, scheme)
    expected = [256, 256]
    expected[axis] = 256 // scheme.block
    assert found.scales.shape == tuple(expected)
    low = 0 if scheme.has_zero_point else -8
    assert low <= found.integers.min() < found.integers.max() <= low + 15
    wide = np.repeat(found.scales, scheme.block, axis)
    offset = 0 if found.zero_points is None else np.repeat(found.zero_points, scheme.block, axis)
    # A zero point is rounded as well, so that the ends of the range may be cut by half a step more.
    steps = np.abs((found.integers - offset) * wide - w) / wide
    assert steps.max() <= (1.01 if scheme.has_zero_point else 0.501) and steps.mean() < 0.3


def test_a_channel_has_a_scale_without_blocks() -> None:
    w = weight(64, 96)
    for contracted, channels in ((0, 1), (1, 0)):
        found = quantise(w, contracted, SCHEMES["int8"])
        assert (found.axis, found.scales.shape) == (channels, (w.shape[channels],))
        assert np.array_equal(np.abs(found.integers).max(axis=contracted), np.full(w.shape[channels], 127))


def test_a_block_of_zeros_stays_zero() -> None:
    w = np.zeros((32, 4), np.float32)
    for name in ("int4_32", "uint4_32"):
        found = quantise(w, 0, SCHEMES[name])
        assert np.all(found.scales == 1)
        assert np.all(found.integers == (0 if found.zero_points is None else found.zero_points))


PRODUCTS = """<ir_version: 8, opset_import: ["" : 17]>
main (float[3,128] x) => (float[3,48] y, float[3,64] z) {
  y = MatMul(x, w) z = Gemm<transB=1>(x, v, b)
}"""


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_a_quantised_model_multiplies_by_the_dequantised_weights(name: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    scheme = SCHEMES[name]
    w, v = weight(128, 48), weight(64, 128)
    model = with_weights(parser.parse_model(PRODUCTS), w=w, v=v, b=np.ones(64, np.float32))
    model = quantise_weights(model, scheme)
    onnx.checker.check_model(model, full_check=True)
    assert {"w", "v"}.isdisjoint(each.name for each in model.graph.initializer)
    assert [node.op_type for node in model.graph.node].count("DequantizeLinear") == 2
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(6).standard_normal((3, 128)).astype(np.float32)
    y, z = session.run(None, {"x": x})
    np.testing.assert_allclose(y, x.astype(np.float64) @ dequantised(w, 0, name), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(z, x.astype(np.float64) @ dequantised(v, 1, name).T + 1, rtol=1e-4, atol=1e-4)


def dequantised(w: np.ndarray, contracted: int, name: str) -> np.ndarray:
    """The weight that a scheme encodes, element by element."""
    found, block = quantise(w, contracted, SCHEMES[name]), SCHEMES[name].block
    result = np.zeros(w.shape)
    for place in np.ndindex(*w.shape):
        scale = list(place)
        scale[contracted] //= block or w.shape[contracted]
        index = tuple(scale) if block else place[1 - contracted]
        zero = 0 if found.zero_points is None else found.zero_points[index]
        result[place] = (float(found.integers[place]) - float(zero)) * float(found.scales[index])
    return result


def test_recurrent_weights_have_a_scale_for_each_channel() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    main (float[5,1,40] x) => (float[5,1,1,32] y) { y = LSTM<hidden_size=32>(x, w, r) }"""
    model = with_weights(parser.parse_model(text), w=weight(1, 128, 40), r=weight(1, 128, 32))
    model = quantise_weights(model, SCHEMES["int8"])
    onnx.checker.check_model(model, full_check=True)
    scales = [each.dims for each in model.graph.initializer if "scales" in each.name]
    assert [list(each) for each in scales] == [[128], [128]]


def test_a_model_without_large_weights_is_refused() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> main (float[3] x) => (float[3] y) { y = Relu(x) }'
    )
    raised(ValueError, quantise_weights, model, SCHEMES["int4_32"], match="no weight")


# -- ratios and targets


def test_a_ratio_is_that_of_the_same_round() -> None:
    slow = [1.0, 2.0, 4.0]
    times = [[0.5 * each for each in slow], [0.5 * each for each in slow], slow, [1.1 * each for each in slow]]
    ours, peer, ratio, (first, second) = pair_ratio(times)
    assert (ours, peer) == (1.0, 2.1) and ratio == pytest.approx(1 / 2.1)
    assert (first, second) == (0.0, pytest.approx(0.1))


def test_rounds_that_others_slow_down_do_not_change_the_ratio_of_the_quickest() -> None:
    quick = [1.0, 1.0] + [9.0, 5.0, 7.0] * 6
    twins = [quick, quick[::-1], [2 * each for each in quick], [2.2 * each for each in quick]]
    ours, peer, ratio, spreads = quick_ratio(twins)
    assert (ours, peer, ratio) == (1.0, pytest.approx(2.1), pytest.approx(1 / 2.1))
    assert spreads == (0.0, pytest.approx(0.1))


def test_a_difference_is_a_part_of_the_largest_output() -> None:
    expected = [np.array([1.0, -4.0], np.float32), np.array([2], np.int64)]
    assert difference(expected, [np.array([1.0, -3.0], np.float32), np.array([2], np.int64)]) == 0.25
    assert difference(expected, [np.array([1.0, np.nan], np.float32), np.array([2], np.int64)]) == np.inf
    assert difference(expected, expected[:1]) == np.inf
    assert difference(expected, [np.zeros(3, np.float32), expected[1]]) == np.inf


def row(name: str, group: str, seconds: float, peer: float = 1.0, spread: float = 0.0, **ours: float) -> Row:
    sides = {"bin": 100, "peak": 100, "seconds_to_compile": 1.0, "difference": 0.0}
    first = Size(seconds=seconds, spread=spread, **{**sides, **ours})
    return Row(name, group, ours=first, peer=Size(seconds=peer, **sides), ratio=seconds / peer)


def test_means_are_geometric_and_have_targets_by_group() -> None:
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1)
    rows = [row("a", "float", 1.04), row("b", "float", 1.02), row("c", "loops", 0.5), row("d", "quantised", 0.9)]
    summary = judge(rows)
    assert summary.means == {
        "float": (pytest.approx(1.03, abs=1e-3), 2),
        "quantised": (pytest.approx(0.9), 1),
        "loops": (pytest.approx(0.5), 1),
    }
    assert summary.missed == ["mean of float"]


def test_a_row_may_exceed_its_target_by_its_spread_alone() -> None:
    rows = [row("slow", "float", 1.2, spread=0.1), row("noisy", "float", 1.2, spread=0.2), row("c", "float", 0.5)]
    assert judge(rows).missed == ["slow"] and rows[0].missed == ["time"]


def test_size_and_compile_time_have_targets_in_all_rows_and_memory_in_quantised_ones() -> None:
    large = {"bin": 102, "peak": 120, "seconds_to_compile": 1.2}
    rows = [row("a", "quantised", 0.9, **large), row("b", "float", 0.9, **large), row("c", "loops", 0.5, bin=101)]
    assert judge(rows).missed == ["a", "b"] and rows[0].missed == ["compile time", ".bin", "memory"]
    assert rows[1].missed == ["compile time", ".bin"]
    rows[0].compile_spread = 0.3
    judge(rows)
    assert rows[0].missed == [".bin", "memory"]


def test_means_of_compile_times_are_shown_by_group() -> None:
    rows = [row("a", "float", 0.9, seconds_to_compile=0.5), row("b", "float", 0.9, seconds_to_compile=2.0 * 0.98)]
    summary = judge(rows)
    assert summary.compile_means == {"float": (pytest.approx(0.98**0.5), 2)}
    text = table(rows, summary)
    assert "geometric mean of 2 compile times, float: 0.990, target of each 1.05" in text
    assert text.endswith("missed: b")


def test_other_numbers_are_a_miss_unless_ovc_has_them_too() -> None:
    wrong, same = row("wrong", "float", 0.9, difference=0.01), row("same", "float", 0.9, difference=0.01)
    same.peer.difference = 0.01
    half = row("x-f16", "float", 0.9, difference=0.01)
    judge([wrong, same, half])
    assert (wrong.missed, same.missed, half.missed) == (["numbers"], [], [])


def test_static_integers_must_be_faster_than_f32() -> None:
    rows = [
        row("resnet50", "float", 3.0, 3.0), row("resnet50-qdq_u8s8", "quantised", 0.9),
        row("resnet50-qoperator_u8s8", "quantised", 1.0001), row("mobilenet_v2", "float", 1.0),
        row("mobilenet_v2-qdq_s8s8", "quantised", 0.7), row("mobilenet_v2-f16", "float", 1.0),
    ]
    assert judge(rows).missed == ["resnet50-qoperator_u8s8", "mobilenet_v2-qdq_s8s8"]
    assert rows[4].missed == ["1.43 times f32, not 1.5"]


def test_a_row_that_ours_does_not_run_is_a_miss_and_ovcs_is_not() -> None:
    rows = [Row("a", "float", "mo-loop: refused"), Row("b", "float", "ovc: refused"), row("c", "float", 0.9)]
    summary = judge(rows)
    assert summary.missed == ["a"]
    text = table(rows, summary)
    assert "mo-loop: refused" in text and text.endswith("missed: a")


def test_the_message_of_a_process_is_the_first_line_of_its_error() -> None:
    lines = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "    raise E", "    ^^^^^^^"]
    assert message("\n".join([*lines, "E: Add: no values", "  where: /a", "more", ""])) == "E: Add: no values"
    assert message("killed\n") == "killed" and message("") == "no message"


# -- what the runtime executes


def test_nodes_are_added_by_type_and_precision() -> None:
    ours = [
        Executed("a", "Convolution", "u8", "brgconv_avx512_i8", ("a", "relu"), 2.0),
        Executed("b", "Convolution", "u8", "brgconv_avx512_i8", ("b",), 1.0),
        Executed("s", "Softmax", "f32", "jit_avx2_f32", ("s",), 0.5),
    ]
    peer = [Executed("a", "Convolution", "f32", "brgconv_avx512_f32", ("a",), 8.0)]
    lines = [each.split() for each in nodes.by_type(ours, peer).splitlines()[2:]]
    assert lines[0] == ["Convolution", "f32", "0", "0", "0.000", "1", "1", "8.000"]
    assert lines[1] == ["Convolution", "u8", "2", "3", "3.000", "0", "0", "0.000"]
    assert lines[2] == ["Softmax", "f32", "1", "1", "0.500", "0", "0", "0.000"]
    assert lines[3] == ["all", "3", "4", "3.500", "1", "1", "8.000"]
    assert lines[4] == ["in", "integers", "2", "3", "3.000", "0", "0", "0.000"]


def test_the_slowest_nodes_come_first_with_what_they_compute() -> None:
    found = [
        Executed("quick", "Softmax", "f32", "jit_avx2_f32", (), 0.5),
        Executed("slow", "Convolution", "u8", "brgconv_avx512_i8", tuple("abcde"), 2.0),
    ]
    first, second = nodes.slowest(found).splitlines()[1:]
    assert first.split() == ["2.000", "Convolution", "u8", "brgconv_avx512_i8", "a,", "b,", "c", "and", "2", "more"]
    assert second.endswith("quick") and len(nodes.slowest(found, 1).splitlines()) == 2


def test_rows_of_a_file_are_read_again_and_the_last_of_a_name_counts(tmp_path: Path) -> None:
    file = tmp_path / "rows" / "rows.jsonl"
    assert records.read(file) == {}
    first, last = Row("bert", FLOAT, problem="ovc: refused"), Row("bert", FLOAT, ours=Size(seconds=0.5), ratio=1.5)
    for row in (first, Row("resnet50", FLOAT), last):
        records.append(file, row)
    assert records.read(file) == {"bert": last, "resnet50": Row("resnet50", FLOAT)}


def test_the_table_for_the_documentation_names_slow_rows_and_other_misses() -> None:
    even = Size(seconds=0.01, seconds_to_compile=1, bin=100, peak=100)
    rows = [
        Row("bert", FLOAT, ours=even, peer=even, ratio=1.0),
        Row("bert-int8", QUANTISED, ours=replace(even, bin=130), peer=even, ratio=1.2),
        Row("gpt2", FLOAT, ours=replace(even, spread=0.2), peer=even, ratio=1.2),
        Row("vit", FLOAT, problem="ovc: ended by signal 11"),
    ]
    text = records.markdown(rows, judge(rows))
    assert "| bert-int8 | 10.00 | 10.00 | 1.20 | 0.00 | 1.00 | 1.30 | 1.00 | 0.0e+00 | 0.0e+00 |" in text
    assert "| float | 2 | 1.095 | 1.00 | 1.000 |" in text and "Above 1.05 beyond the spread: bert-int8 1.20." in text
    assert "Other targets that are missed: bert-int8 (time, .bin)." in text
    assert len({line.count("|") for line in text.partition("\n\n")[0].splitlines()}) == 1
