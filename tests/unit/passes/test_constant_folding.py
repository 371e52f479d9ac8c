"""ConstantFolding: nodes that it does not fold and reports, nodes that it defers; deferred weights are the same bytes.
"""

import io
import logging
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.api import Model, save_model
from mo_loop.errors import UsageError
from mo_loop.graph import Graph, Value
from mo_loop.graph.tensor import ArrayTensor, DeferredTensor, FileTensor, Tensor
from mo_loop.graph.types import f16, f32, f64, i4, i32, u8
from mo_loop.ir.bin import Weights
from mo_loop.ops.base import Constant
from mo_loop.text import parse
from mo_loop.transforms.common.simplification import ConstantFolding
from mo_loop.transforms.low_precision.compress_weights import CompressFloatConstants

LARGE = 1 << 20


def folded(make: Callable[[Value], Any], tensor: Tensor, **limits: Any) -> tuple[Tensor | None, ConstantFolding]:
    """The data of a constant after folding (None if it is not folded), and the pass."""
    graph = Graph()
    ops.Result(make(Constant(tensor, graph=graph).output))
    each = ConstantFolding(**limits)
    each.run(graph)
    node = graph.results[0].value.node
    return (node.tensor if isinstance(node, Constant) else None), each


def data(tensor: Tensor | None) -> bytes:
    assert tensor is not None
    return b"".join(tensor.blocks())


class TestSkips:
    TEXT = """
        %c = Parameter : boolean[] %x = Parameter : f32[100]
        %k = Broadcast(1.5, [100]) "fill" %f = Abs([-1.5]) %d = Add(%x, %f) %a = Add(%d, %k)
        %y = If(%c, %a) {input_map: [Branched(%p, %q)], output_map: [Selected(@a, @b)]} "choice"
          then_body yes {
            %p = Parameter
            %g = Gather([1.5], [3], 0) "beyond" %a = Add(%p, %g)
            Result(%a)
          }
          else_body no {
            %q = Parameter
            %b = Abs(%q)
            Result(%b)
          }
        Result(%y)"""

    def test_each_is_listed_and_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        each = ConstantFolding(growth=4, allowance=32)
        with caplog.at_level(logging.DEBUG, "mo_loop.transforms.common.simplification"):
            assert each.run(parse(self.TEXT))  # a node is folded, so the others are seen twice
        fill, beyond = each.skipped
        assert (fill.path, fill.type, fill.read, fill.made) == ("fill", "Broadcast", 12, 400)
        assert fill.reason == "more than 4 times the 12 bytes of constants that only it reads"
        assert (beyond.path, beyond.type, beyond.made) == ("choice/yes/beyond", "Gather", 4)
        assert [record.getMessage() for record in caplog.records] == [str(fill), str(beyond)]
        assert str(fill).startswith("fill (Broadcast) is not folded, 12 -> 400 bytes: more than 4 times")

    def test_the_list_is_that_of_the_last_run(self) -> None:
        each = ConstantFolding(growth=4, allowance=32)
        graph = parse(self.TEXT)
        each.run(graph)
        each.run(graph)
        assert len(each.skipped) == 2
        each.run(parse("%x = Parameter : f32[1]\nResult(%x)"))
        assert each.skipped == []

    def test_an_explained_pass_says_the_same(self) -> None:
        each = ConstantFolding(growth=4, allowance=32)
        each.config.explain(ConstantFolding)
        each.run(parse(self.TEXT))
        said = [(entry.node, entry.reason) for entry in each.config.explanations if entry.reason]
        assert said == [(skip.path, skip.reason) for skip in each.skipped]

    def test_a_veto_keeps_a_node(self) -> None:
        graph = parse('%a = Add([1.5], [2.5]) "keep"\n%b = Add([1.5], [2.5])\nResult(%a)\nResult(%b)')
        each = ConstantFolding()
        each.config.veto(lambda node: node.name == "keep", ConstantFolding)
        each.run(graph)
        assert [type(result.value.node) for result in graph.results] == [ops.Add, Constant]

    def test_a_size_that_is_not_known_is_none(self) -> None:
        graph = parse("%a = Range(0.0, 5.0, 1.0) {output_type: f32}\nResult(%a)")
        each = ConstantFolding()
        assert not each.run(graph)
        assert [(skip.made, skip.reason) for skip in each.skipped] == [(None, "the size of the result is unknown")]


class TestGrowth:
    @pytest.mark.parametrize("growth", [1, 4, 6.5])
    def test_the_factor_is_the_limit(self, growth: float) -> None:
        most = int(growth * (8 + 8)) // 8  # two floats and the number of repeats, in units of two floats
        for times, fits in ((most, True), (most + 1, False)):
            found, each = folded(
                lambda w, times=times: ops.Tile(w, [times]), tensor_of([1.0, 2.0]), growth=growth, allowance=0
            )
            assert (found is not None) is fits, each.skipped
            assert len(each.skipped) == (0 if fits else 1)

    def test_the_defaults(self) -> None:
        sizes = {(1 << 14,): True, ((1 << 14) + 1,): False}  # 64 KiB, and one number more
        for shape, fits in sizes.items():
            found, _ = folded(lambda w, shape=shape: ops.Broadcast(w, list(shape)), tensor_of(1.0))
            assert (found is not None) is fits
        for times, fits in ((4, True), (5, False)):  # of 80 KiB: the number of repeats is small in comparison
            found, _ = folded(lambda w, times=times: ops.Tile(w, [times]), tensor_of([1.0] * 20480))
            assert (found is not None) is fits

    def test_a_huge_fill_is_never_made(self) -> None:
        found, each = folded(lambda w: ops.Broadcast(w, [1 << 20, 1 << 20]), tensor_of(1.0))
        assert found is None and each.skipped[0].made == 1 << 42

    def test_strings_count_at_their_longest(self) -> None:
        words = ArrayTensor(np.array(["a" * 1000, "b"], object))
        found, each = folded(lambda w: ops.Tile(w, [500]), words)
        assert found is None and each.skipped[0].made == 1000 * 1004

    def test_large_weights_do_not_grow_at_all(self) -> None:
        weights = ArrayTensor(np.arange(400_000, dtype=np.uint8))
        found, each = folded(lambda w: ops.Convert(w, destination_type=f32), weights, growth=4, allowance=LARGE * 2)
        assert found is not None  # the limit that the user gives
        found, each = folded(lambda w: ops.Convert(w, destination_type=f32), weights, growth=4)
        assert found is None and "1 times" in each.skipped[0].reason

    def test_half_precision_is_kept_and_bytes_too(self) -> None:
        for dtype, count in ((np.float16, 30_000), (np.uint8, 20_000)):
            weights = ArrayTensor(np.ones(count, dtype))
            found, each = folded(lambda w: ops.Convert(w, destination_type=f32), weights)
            assert found is None and each.skipped[0].reason == "the narrower constant and its Convert are smaller"


def tensor_of(values: Any) -> ArrayTensor:
    return ArrayTensor(np.array(values, np.float32))


WEIGHTS = np.random.default_rng(7).standard_normal(300_001).astype(np.float32)  # a second block, and an odd end
BYTES = np.random.default_rng(7).integers(-9, 9, 1_500_001).astype(np.int32)

CHAINS: dict[str, tuple[Any, Callable[[Value], Any]]] = {
    "f32 to f16": (WEIGHTS, lambda w: ops.Convert(w, destination_type=f16)),
    "f64 to f32": (WEIGHTS.astype(np.float64), lambda w: ops.Convert(w, destination_type=f32)),
    "i32 to f32": (BYTES, lambda w: ops.Convert(w, destination_type=f32)),
    "i32 to u8": (BYTES, lambda w: ops.Convert(w, destination_type=u8)),
    "scaled": (WEIGHTS, lambda w: ops.Multiply(w, 0.3)),
    "of another rank": (WEIGHTS, lambda w: ops.Multiply(w, [[[0.3]]])),
    "subtracted": (WEIGHTS, lambda w: ops.Subtract(ops.Convert(Constant(1.5, graph=w.graph), destination_type=f32), w)),
    "divided": (BYTES, lambda w: ops.Divide(w, 3)),
    "powers": (BYTES, lambda w: ops.Power(w, 3)),
    "compared": (WEIGHTS, lambda w: ops.Greater(w, 0.1)),
    "logic": (np.tile(WEIGHTS, 4), lambda w: ops.LogicalNot(ops.IsNaN(w))),
    "functions": (np.abs(WEIGHTS), lambda w: ops.Sigmoid(ops.Sqrt(ops.Negative(ops.Negative(w))))),
    "clamped": (WEIGHTS, lambda w: ops.Clamp(w, min=-0.5, max=0.25)),
    "chain": (
        WEIGHTS.astype(np.float64),
        lambda w: ops.Reshape(ops.Multiply(ops.Convert(w, destination_type=f32), 0.5), [1, -1])),
}


class TestDeferred:
    @pytest.mark.parametrize("name", CHAINS)
    def test_the_bytes_are_those_of_memory(self, name: str) -> None:
        array, make = CHAINS[name]
        made, each = folded(make, ArrayTensor(array))
        assert isinstance(made, DeferredTensor), each.skipped
        plain, _ = folded(make, ArrayTensor(array), large=1 << 40, growth=1000)
        assert isinstance(plain, ArrayTensor) and (made.dtype, made.shape) == (plain.dtype, plain.shape)
        assert data(made) == data(plain) and np.array_equal(made.array(), plain.array())
        assert len(data(made)) == made.nbytes

    @pytest.mark.parametrize("make", [
        lambda w: ops.Transpose(w, [1, 0]), lambda w: ops.Multiply(w, w),
        lambda w: ops.Divide(Constant(100, graph=w.graph, dtype=i32), w),
        lambda w: ops.Divide(w, Constant(0, graph=w.graph, dtype=i32)),
    ], ids=["transpose", "by itself", "as divisor", "by zero"])
    def test_all_else_is_left(self, make: Callable[[Value], Any]) -> None:
        found, each = folded(make, ArrayTensor(np.ones((300_000, 1), np.int32)))
        assert found is None and len(each.skipped) == 1

    def test_packed_data_is_left_and_relabelled(self) -> None:
        packed = ArrayTensor(np.array([1, -2, 3] * 800_000, i4.numpy), i4)
        found, _ = folded(lambda w: ops.Abs(w), packed)
        assert found is None
        found, _ = folded(lambda w: ops.Reshape(w, [-1, 3]), packed)
        assert found is not None and found.shape == (800_000, 3) and data(found) == data(packed)

    def test_a_reshape_of_a_span_is_a_span(self, tmp_path: Path) -> None:
        path = tmp_path / "weights"
        path.write_bytes(WEIGHTS.tobytes())
        span = FileTensor(str(path), 0, f32, WEIGHTS.shape)
        found, _ = folded(lambda w: ops.Unsqueeze(ops.Reshape(w, [1, -1]), [0]), span)
        assert isinstance(found, FileTensor) and (found.path, found.offset) == (span.path, 0)

    def test_memory_holds_no_weight(self, tmp_path: Path) -> None:
        """64 MiB of f64 become 32 MiB of f32, scaled and reshaped; a few blocks of 1 MiB are held at once."""
        path = tmp_path / "weights"
        with path.open("wb") as file:
            for number in range(64):
                file.write(np.full(1 << 17, number, np.float64).tobytes())
        span = FileTensor(str(path), 0, f64, (1 << 13, 1 << 10))
        tracemalloc.start()
        try:
            found, _ = folded(CHAINS["chain"][1], span)
            assert found is not None
            with (tmp_path / "model.bin").open("wb") as file:
                Weights(file).add(found)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 10 << 20
        written = np.fromfile(tmp_path / "model.bin", np.float32)
        assert np.array_equal(written, np.repeat(np.arange(64, dtype=np.float32) / 2, 1 << 17))

    def test_compression_reads_what_is_deferred(self) -> None:
        graph = Graph()
        weights = Constant(WEIGHTS.astype(np.float64), graph=graph)
        ops.Result(ops.Convert(weights, destination_type=f32))
        ConstantFolding().run(graph)
        assert CompressFloatConstants().run(graph)
        (small,) = graph.of(Constant)
        assert data(small.tensor) == WEIGHTS.astype(np.float16).tobytes()
        graph.validate()
        assert not ConstantFolding().run(graph)  # the Convert is marked

    def test_equal_ones_are_stored_once(self) -> None:
        data_file = io.BytesIO()
        weights = Weights(data_file)
        made = [folded(CHAINS["chain"][1], ArrayTensor(CHAINS["chain"][0]))[0] for _ in range(2)]
        places = {weights.add(each) for each in made if each is not None}
        assert places == {(0, 4 * len(WEIGHTS))} and len(data_file.getvalue()) == 4 * len(WEIGHTS)

    def test_a_chain_may_be_long(self) -> None:
        def long(w: Value) -> Any:
            for _ in range(600):
                w = ops.Reshape(ops.Unsqueeze(ops.Negative(w), [0]), [-1]).output
            return w

        found, _ = folded(long, ArrayTensor(WEIGHTS))
        assert isinstance(found, DeferredTensor) and data(found) == WEIGHTS.tobytes()

    def test_the_file_behind_it_is_not_overwritten(self, tmp_path: Path) -> None:
        path = tmp_path / "model.bin"
        path.write_bytes(WEIGHTS.tobytes())
        graph = Graph()
        weights = Constant(FileTensor(str(path), 0, f32, WEIGHTS.shape), graph=graph)
        ops.Result(ops.Multiply(weights, 0.5), names=("y",))
        ConstantFolding().run(graph)
        (left,) = graph.of(Constant)
        assert isinstance(left.tensor, DeferredTensor)
        with pytest.raises(UsageError, match="holds weights of the model itself"):
            save_model(Model(graph), tmp_path / "model.xml")
