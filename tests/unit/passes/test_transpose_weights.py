"""Which weights are transposed: none that is read as it is in any scope, and not too many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.tensor import FileTensor
from mo_loop.graph.transposed_tensor import TransposedTensor
from mo_loop.graph.types import f32, i64
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.text import parse
from mo_loop.transforms.common import transposed_weights
from mo_loop.transforms.common.transposed_weights import TransposeWeights

ROWS, COLUMNS = 160, 120
BRANCHES = """
%c = Parameter : boolean[] %i = Parameter : i64[4] %x = Parameter : f32[4,160]
%y = If(%c, %x, %i) {input_map: [Branched(%a, %b), Branched(%k, %j)], output_map: [Selected(@p, @q)]}
  then_body {
    %a = Parameter %k = Parameter
    %w = Constant 0.5 : f32[160,120] %p = MatMul(%a, %w)
    Result(%p)
  }
  else_body {
    %b = Parameter %j = Parameter
    %v = Constant 0.5 : f32[160,120] %q = Gather(%v, %j, 0)
    Result(%q)
  }
Result(%y)"""


def span(folder: Path) -> FileTensor:
    path = folder / "weights"
    np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32).tofile(path)
    return FileTensor(str(path), 0, f32, (ROWS, COLUMNS))


def products(count: int, folder: Path) -> tuple[Graph, list[ops.MatMul]]:
    """A graph of several products with constants of the same span of a file."""
    graph = Graph()
    x = Parameter(graph=graph, dtype=f32, shape=(4, ROWS))
    made = [ops.MatMul(x, Constant(span(folder), graph=graph, name=f"w{each}")) for each in range(count)]
    for each in made:
        Result(each)
    return graph, made


def test_constants_of_one_span_share_what_is_transposed(tmp_path: Path) -> None:
    graph, made = products(2, tmp_path)
    assert TransposeWeights().run(graph)
    first, second = (each.inputs[1].node for each in made)
    assert isinstance(first.tensor, TransposedTensor) and first.tensor is second.tensor
    assert [first.name, second.name] == ["w0", "w1"] and all(each.transpose_b for each in made)
    assert [each.output.shape for each in made] == [(4, COLUMNS)] * 2 and not TransposeWeights().run(graph)


def test_another_reader_of_the_span_keeps_all_of_them(tmp_path: Path) -> None:
    graph, made = products(2, tmp_path)
    tokens = Parameter(graph=graph, dtype=i64, shape=(4,))
    Result(ops.Gather(Constant(span(tmp_path), graph=graph), tokens, 0))
    assert not TransposeWeights().run(graph) and not any(each.transpose_b for each in made)


def test_another_reader_in_another_scope_keeps_them(tmp_path: Path) -> None:
    graph = parse(BRANCHES)
    first, second = (next(iter(body.of(ops.MatMul)), None) for body in graph.of(ops.If)[0].bodies)
    assert first is not None and second is None
    tensor = span(tmp_path)
    for body in graph.of(ops.If)[0].bodies:
        (constant,) = (each for each in body.of(Constant) if each.tensor.size > 1)
        constant.output.replace_with(Constant(tensor, graph=body).output)
        body.sweep()
    assert not TransposeWeights().run(graph) and not first.transpose_b


def test_the_limit_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 4 * ROWS * COLUMNS
    monkeypatch.setattr(transposed_weights, "MOST", size - 1)
    graph, _ = products(2, tmp_path)
    assert not TransposeWeights().run(graph)
    monkeypatch.setattr(transposed_weights, "MOST", size)  # both are one span, which is transposed once
    assert TransposeWeights().run(graph)
