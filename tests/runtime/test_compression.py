"""Weights in f16: which constants are compressed, and that the numbers change by rounding only."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from mo_loop.api import Model, convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.graph.tensor import ArrayTensor, DeferredTensor
from mo_loop.graph.types import f16, f32
from mo_loop.ops.base import Constant
from mo_loop.report.record import Record
from mo_loop.transforms.common.compress_float_constants import CompressFloatConstants, Compression
from tests.harness import floats, parsed

LARGEST = 65504.0


def literal(name: str, array: np.ndarray[Any, Any]) -> str:
    """An initializer in the text of onnx.parser."""
    dims = ",".join(map(str, array.shape))
    return f"float[{dims}] {name} = {{{','.join(repr(float(value)) for value in array.reshape(-1))}}}"


def compressed(tmp_path: Path, model: Any, **asked: Any) -> tuple[str, Compression]:
    """The path of the IR and the counts of compression."""
    path, record = tmp_path / "compressed.xml", Record()
    save_model(convert_model(model, **asked), path, compress_to_fp16=True, observers=[record])
    assert record.compression is not None
    return str(path), record.compression


def run(path: str, sets: list[dict[str, Any]]) -> list[list[np.ndarray[Any, Any]]]:
    from mo_loop.compare.execution.runtime import compile_ir

    compiled = compile_ir(path)
    return [[array for _, array in compiled.run(feeds)] for feeds in sets]


def rounded(graph: onnx.GraphProto) -> None:
    """Weights rounded to f16, as f32."""
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.size > 1:
            half = np.clip(values, -LARGEST, LARGEST).astype(np.float16).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(half, tensor.name))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                rounded(attribute.g)


def loses_only_digits(tmp_path: Path, model: onnx.ModelProto, *sets: dict[str, Any]) -> Compression:
    """The compressed IR gives the numbers of the model with rounded weights."""
    path, counts = compressed(tmp_path, model)
    rounded(model.graph)
    plain = tmp_path / "rounded.xml"
    save_model(convert_model(model), plain)
    feeds = [*sets, *reversed(sets)]
    found = isolated(run, path, feeds)
    wanted = isolated(run, str(plain), feeds)
    for actual, expected in zip(found, wanted, strict=True):
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    return counts


class TestNumbers:
    def test_layers(self, tmp_path: Path) -> None:
        w, b, m = literal("w", floats(4, 3, 3, 3)), literal("b", floats(4, seed=1)), literal("m", floats(4, 5, seed=2))
        text = f"""main (float[n,3,8,8] x) => (float[n,5] y) <{w}, {b}, {m}> {{
          c = Conv (x, w, b)
          g = GlobalAveragePool (c)
          f = Flatten (g)
          y = MatMul (f, m)
        }}"""
        counts = loses_only_digits(tmp_path, parsed(text), {"x": floats(1, 3, 8, 8)}, {"x": floats(3, 3, 8, 8)})
        assert (counts.compressed, counts.clipped, counts.kept) == (3, 0, 0)
        assert counts.values == 4 * 3 * 3 * 3 + 4 + 4 * 5
        assert counts.saved == 2 * counts.values

    def test_a_product_of_constants(self, tmp_path: Path) -> None:
        """One that is too large to be folded: the runtime computes it once, and the sum would overwrite it."""
        model = parsed("main (float[2,600] x) => (float[2,600] y) { c = MatMul (a, w) y = Add (c, x) }")
        for name, array in (("a", floats(2, 512)), ("w", floats(512, 600, seed=1))):
            model.graph.initializer.append(numpy_helper.from_array(array, name))
        assert loses_only_digits(tmp_path, model, {"x": floats(2, 600)}, {"x": floats(2, 600, seed=2)}).compressed == 2

    def test_a_loop(self, tmp_path: Path) -> None:
        """Weights in the body, a captured weight, and a state whose initial value is a constant."""
        text = f"""main (float[2,4] x, int64 n) => (float[2,4] y, float[2,4] z, float[k,2,4] all)
            <{literal("w", floats(4, 4))}, {literal("start", floats(2, 4, seed=3))}> {{
          y, z, all = Loop (n, "", x, start) <body = step (int64 i, bool c, float[2,4] s, float[2,4] t)
              => (bool d, float[2,4] u, float[2,4] v, float[2,4] out) <{literal("b", floats(4, seed=4))}> {{
            d = Identity (c)
            m = MatMul (s, w)
            u = Add (m, b)
            v = Mul (t, b)
            out = Add (u, v)
          }}>
          }}"""
        sets = [{"x": floats(2, 4), "n": np.array(count)} for count in (3, 0, 1)]
        assert loses_only_digits(tmp_path, parsed(text), *sets).compressed == 3

    def test_branches(self, tmp_path: Path) -> None:
        text = f"""main (float[2,4] x, bool c) => (float[2,4] y) <{literal("w", floats(4, 4))}> {{
          y = If (c) <
            then_branch = t () => (float[2,4] p) <{literal("b", floats(4, seed=4))}> {{ p = Add (x, b) }},
            else_branch = e () => (float[2,4] q) {{ q = MatMul (x, w) }}
          >
        }}"""
        sets = [{"x": floats(2, 4), "c": np.array(each)} for each in (True, False)]
        assert loses_only_digits(tmp_path, parsed(text), *sets).compressed == 2

    def test_a_scan(self, tmp_path: Path) -> None:
        text = f"""main (float[5,4] x) => (float[4] y, float[5,4] all)
            <{literal("start", floats(4, seed=1))}, {literal("w", floats(4, 4))}> {{
          y, all = Scan (start, x) <num_scan_inputs = 1, body = step (float[4] s, float[4] e)
              => (float[4] t, float[4] o) {{
            m = MatMul (s, w)
            t = Add (m, e)
            o = Tanh (t)
          }}>
        }}"""
        assert loses_only_digits(tmp_path, parsed(text), {"x": floats(5, 4)}).compressed == 2

    def test_a_sequence_layer(self, tmp_path: Path) -> None:
        bias = np.concatenate([floats(1, 20, seed=2), np.zeros((1, 20), np.float32)], 1)  # the layer has their sum
        constants = ", ".join(
            (literal("w", floats(1, 20, 4)), literal("r", floats(1, 20, 5, seed=1)), literal("b", bias))
        )
        text = f"""main (float[3,2,4] x) => (float[3,1,2,5] y) <{constants}> {{
          y = LSTM <hidden_size = 5> (x, w, r, b)
        }}"""
        loses_only_digits(tmp_path, parsed(text), {"x": floats(3, 2, 4)})

    def test_a_mask_keeps_its_infinities(self, tmp_path: Path) -> None:
        mask = np.where(np.tri(6, dtype=bool), 0.0, -np.inf).astype(np.float32)
        text = f"""main (float[6,6] x) => (float[6,6] y) <{literal("mask", np.zeros((6, 6)))}> {{
          a = Add (x, mask)
          y = Softmax <axis = 1> (a)
        }}"""
        model = parsed(text)
        model.graph.initializer[0].CopyFrom(numpy_helper.from_array(mask, "mask"))
        path, counts = compressed(tmp_path, model)
        assert (counts.compressed, counts.clipped) == (1, 0)
        [[found]] = isolated(run, path, [{"x": np.zeros((6, 6), np.float32)}])
        np.testing.assert_allclose(found, np.tri(6) / np.arange(1, 7)[:, None], rtol=1e-6)

    def test_sizes_are_not_rounded(self, tmp_path: Path) -> None:
        """2.2 in f16 is 2.1992: 5 times that is 10.996, one pixel less."""
        text = """main (float[1,1,5,5] x) => (float[1,1,h,w] y) <float[4] s = {1.0, 1.0, 2.2, 2.2}> {
          y = Resize <mode = "nearest"> (x, "", s)
        }"""
        path, counts = compressed(tmp_path, parsed(text))
        assert counts.compressed == 0
        [[found]] = isolated(run, path, [{"x": floats(1, 1, 5, 5)}])
        assert found.shape == (1, 1, 11, 11)


def precisions(path: str) -> dict[str, list[str]]:
    """Type of layer -> element types of its output in the model that the CPU device runs."""
    import openvino

    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found: dict[str, list[str]] = {}
    for node in compiled.get_runtime_model().get_ordered_ops():
        info = node.get_rt_info()
        found.setdefault(str(info["layerType"].get()), []).append(str(info["outputPrecisions"].get()))
    return found


def saved_by_openvino(source: str, target: str) -> None:
    import openvino

    openvino.save_model(openvino.Core().read_model(source), target, compress_to_fp16=True)


def constants_in(path: Path) -> dict[str, str]:
    """Name of each constant -> its element type, without the suffix that compression adds."""
    layer = re.compile(r'<layer id="\d+" name="([^"]+)" type="Const"[^>]*>\s*<data element_type="(\w+)"')
    found = layer.findall(path.read_text("utf-8"))
    return {name.removesuffix("_compressed"): dtype for name, dtype in found}


VALUES = {
    "plain": floats(64),
    "infinite_few": np.array([np.inf, -np.inf, *[0.5] * 6]),
    "beyond_few": np.array([1e5, *[0.5] * 3]),
    "beyond_three_quarters": np.array([1e5, -1e5, 1e30, 0.5]),
    "tiny_few": np.array([1e-9, 1e-9, 0.5, 0.5]),
    "tiny_most": np.array([1e-9, 1e-9, -1e-9, 0.5]),
    "zeros": np.zeros(8),
    "both": np.array([1e-9, 1e-9, 1e5, 0.5]),
    "edge_of_tiny": np.array([2.0**-24, 2.0**-24, 2.0**-24, 1e-9]),
    "moves_by_one": np.array([2049.0, 4097.0, 8191.0, 0.5]),
    "moves_by_more": np.array([4097.5, *[0.5] * 31]),
    "largest": np.array([LARGEST, -LARGEST]),
    "beyond_by_a_little": np.array([65505.0, 0.5, 0.5]),
    "beyond_and_moving": np.array([1e5, 4097.5, 0.5, 0.5, 0.5]),
}


class TestAsOpenVino:
    def test_the_same_constants_stay(self, tmp_path: Path) -> None:
        names = [*VALUES]
        graph = onnx.helper.make_graph(
            [onnx.helper.make_node("Add", [f"x_{name}", name], [f"y_{name}"]) for name in names], "g",
            [onnx.helper.make_tensor_value_info(f"x_{name}", 1, [len(VALUES[name])]) for name in names],
            [onnx.helper.make_tensor_value_info(f"y_{name}", 1, [len(VALUES[name])]) for name in names],
            [numpy_helper.from_array(VALUES[name].astype(np.float32), name) for name in names],
        )  # fmt: skip
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
        ours, _ = compressed(tmp_path, model)
        plain, theirs = tmp_path / "plain.xml", tmp_path / "theirs.xml"
        save_model(convert_model(model), plain)
        isolated(saved_by_openvino, str(plain), str(theirs))
        assert constants_in(Path(ours)) == constants_in(theirs)
        feeds = [{f"x_{name}": np.zeros(len(VALUES[name]), np.float32) for name in names}]
        [found] = isolated(run, ours, feeds)
        [wanted] = isolated(run, str(theirs), feeds)
        for name, one, other in zip(names, found, wanted, strict=True):
            if name == "infinite_few":
                assert np.isinf(one[:2]).all(), "f16 has infinities: they need no clipping"
                one, other = one[2:], other[2:]
            np.testing.assert_array_equal(one, other, err_msg=name)

    def test_the_runtime_keeps_them_in_half(self, tmp_path: Path) -> None:
        text = f"main (float[n,64] x) => (float[n,32] y) <{literal('w', floats(64, 32))}> {{ y = MatMul (x, w) }}"
        path, _ = compressed(tmp_path, parsed(text))
        found = isolated(precisions, path)
        assert "f16" in found["Const"]
        assert "Convert" not in found, "the decompression is part of the layer"


class TestCounts:
    def counted(self, *arrays: np.ndarray[Any, Any]) -> Compression:
        text = "main (float[2] x) => (float[2] y) { y = Relu (x) }"
        graph = convert_model(parsed(text)).graph
        for array in arrays:
            Constant(array, graph=graph)
        each = CompressFloatConstants()
        each.run(graph)
        return each.counts

    def test_clipped_and_kept(self) -> None:
        counts = self.counted(VALUES["beyond_few"].astype(np.float32), VALUES["tiny_most"], VALUES["plain"])
        assert counts == Compression(compressed=2, values=68, clipped=1, kept=1, saved=2 * 68)

    def test_f64(self) -> None:
        assert self.counted(np.array([1.0, 1e300, -np.inf, 2.0])) == Compression(1, 4, 1, saved=24)

    def test_nothing_to_do(self) -> None:
        assert self.counted(np.array(0.1, np.float32), np.zeros(1, np.float32), np.ones(3, np.float16)) == Compression()

    def test_shared_weights_count_once(self, tmp_path: Path) -> None:
        """Copies of a body share the weights of constants, and so do several bodies, in memory and in the file."""
        weights = literal("w", floats(16, 16))
        text = f"""main (float[16,16] x) => (float[16,16] y) <{weights}> {{
          a = Loop (two, "", x) <body = step (int64 i, bool c, float[16,16] s) => (bool d, float[16,16] t) {{
            d = Identity (c)
            m = MatMul (s, w)
            t = Relu (m)
          }}>
          two = Constant <value = int64 {{2}}> ()
          y = MatMul (a, w)
        }}"""
        lines = text.splitlines()
        lines.insert(1, lines.pop(next(place for place, line in enumerate(lines) if "two = " in line)))
        path, counts = compressed(tmp_path, parsed("\n".join(lines)), unroll=2)
        assert counts.compressed == 1
        assert Path(path).with_suffix(".bin").stat().st_size < 16 * 16 * 2 + 64

    def test_none_without_compression(self, tmp_path: Path) -> None:
        record = Record()
        model = convert_model(parsed("main (float[2] x) => (float[2] y) { y = Relu (x) }"))
        save_model(model, tmp_path / "m.xml", observers=[record])
        assert record.compression is None

    def test_the_model_itself_stays(self, tmp_path: Path) -> None:
        text = f"main (float[64] x) => (float[64] y) <{literal('w', floats(64))}> {{ y = Add (x, w) }}"
        model = convert_model(parsed(text))
        save_model(model, tmp_path / "m.xml", compress_to_fp16=True)
        assert [each.tensor.dtype for each in model.graph.of(Constant)] == [f32]


class TestBlocks:
    def test_data_is_made_piece_by_piece(self) -> None:
        """A tensor of arbitrary blocks, none of which stays in memory when the next one is made."""
        values = floats(3 * (1 << 18) + 5)
        values[-1] = 1e6
        asked: list[int] = []

        def blocks() -> Any:
            data = values.tobytes()
            for start in range(0, len(data), 1000003):  # not a multiple of the element
                asked.append(start)
                yield data[start : start + 1000003]

        model = convert_model(parsed("main (float[2] x) => (float[2] y) { y = Relu (x) }"))
        constant = Constant(DeferredTensor(f32, values.shape, blocks), graph=model.graph)
        CompressFloatConstants().run(model.graph)
        [constant] = model.graph.of(Constant)
        asked.clear()
        pieces = constant.tensor.blocks()
        first = next(iter(pieces))
        assert len(asked) <= 2, "the first piece needs no more than its own bytes"
        assert len(first) <= 1 << 20
        half = np.frombuffer(b"".join([first, *pieces]), np.float16)
        np.testing.assert_array_equal(half, np.clip(values, -LARGEST, LARGEST).astype(np.float16))

    def test_it_is_f16(self) -> None:
        model: Model = convert_model(parsed("main (float[2] x) => (float[2] y) { y = Relu (x) }"))
        Constant(ArrayTensor(floats(7)), graph=model.graph)
        CompressFloatConstants().run(model.graph)
        [constant] = model.graph.of(Constant)
        assert (constant.tensor.dtype, constant.tensor.nbytes) == (f16, 14)
