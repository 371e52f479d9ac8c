"""Cells written out in loops: which become sequence operations, and the numbers."""

import ast
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mo_loop import convert_model, ops
from mo_loop.transforms.front.recurrence import cells
from mo_loop.transforms.front.recurrence.columns import NotACell
from tests.harness import check, every, folded
from tests.runtime.passes.recurrent_models import (
    MIXTURES,
    Cell,
    feeds,
    gru_after,
    gru_before,
    loop,
    lstm_separate,
    lstm_sliced,
    lstm_split,
    lstm_vectors,
    rnn,
    scan,
)

pytestmark = pytest.mark.keeps_loops

SEQUENCES = {"lstm": ops.LSTMSequence, "gru": ops.GRUSequence, "rnn": ops.RNNSequence}
CELLS: dict[str, Cell] = {
    **{f"lstm_split_{order}": lstm_split(order) for order in ("ifgo", "iofg", "igfo", "fiog")},
    "lstm_sliced": lstm_sliced(),
    "lstm_separate": lstm_separate(),
    **{f"gru_after_{number}": gru_after(mixture) for number, mixture in enumerate(MIXTURES)},
    **{f"gru_before_{number}": gru_before(mixture) for number, mixture in enumerate(MIXTURES)},
    **{f"rnn_{name}": rnn(name) for name in ("Tanh", "Relu", "Sigmoid")},
}


def fused(model: Any, name: str, *, count: int = 1, loops: int = 0) -> None:
    """Assert how many sequences of the kind that `name` begins with, and how many loops, the converted model has."""
    graph = convert_model(model, **folded()).graph
    kind = SEQUENCES[name.partition("_")[0]]
    found = [node for scope in graph.scopes() for node in scope.of(kind)]
    left = [node for scope in graph.scopes() for node in scope.of(ops.Iteration)]
    assert (len(found), len(left)) == (count, loops)


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_in_a_loop(name: str) -> None:
    model = loop(CELLS[name])
    fused(model, name)
    check(model, *feeds(CELLS[name]), rtol=1e-5, atol=1e-6)


@every(name=["lstm_split_ifgo", "gru_after_0", "rnn_Tanh"], reverse=[False, True], batch_first=[False, True])
def test_layouts_and_directions(name: str, reverse: bool, batch_first: bool) -> None:
    model = loop(CELLS[name], reverse=reverse, batch_first=batch_first)
    fused(model, name)
    check(model, *feeds(CELLS[name], batch_first=batch_first), rtol=1e-5, atol=1e-6)


@every(name=["lstm_sliced", "gru_before_1", "rnn_Relu"],
       directions=[(False, False), (True, False), (False, True), (True, True)], batch_first=[False, True])
def test_a_cell_in_a_scan(name: str, directions: tuple[bool, bool], batch_first: bool) -> None:
    model = scan(CELLS[name], reverse=directions[0], output_reverse=directions[1], batch_first=batch_first)
    fused(model, name)
    check(model, *feeds(CELLS[name], batch_first=batch_first), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("outputs", [{"concatenated": False}, {"finals": False}])
def test_only_some_outputs(outputs: dict[str, bool]) -> None:
    model = loop(CELLS["lstm_split_ifgo"], **outputs)
    fused(model, "lstm")
    check(model, *feeds(CELLS["lstm_split_ifgo"]), rtol=1e-5, atol=1e-6)


def test_without_a_batch() -> None:
    model = loop(lstm_vectors())
    fused(model, "lstm")
    check(model, *feeds(lstm_vectors()), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["lstm_split_ifgo", "gru_before_0", "gru_after_0", "rnn_Tanh"])
def test_any_length_including_0(name: str) -> None:
    """Without iterations the states are the initial ones, whatever an earlier inference left."""
    model = loop(CELLS[name], time="T", batch="B")
    fused(model, name)
    check(model, *feeds(CELLS[name], (3, 2), (0, 2), (4, 1), (0, 1), (1, 3)), rtol=1e-5, atol=1e-6)


def test_a_scan_of_any_length() -> None:
    """ONNX Runtime refuses a Scan of length 0."""
    model = scan(CELLS["lstm_split_ifgo"], time="T", batch="B", reverse=True)
    fused(model, "lstm")
    check(model, *feeds(CELLS["lstm_split_ifgo"], (3, 2), (4, 1), (1, 3)), rtol=1e-5, atol=1e-6)


def test_other_nodes_of_the_body_stay() -> None:
    """A projection of the hidden state in each iteration: the loop reads it from the sequence."""
    cell = CELLS["lstm_split_ifgo"]
    more = "p = MatMul(h2, rt)\n q = Softmax<axis=-1>(p)"
    for reverse in (False, True):
        model = loop(cell, more=more, more_output="q", reverse=reverse)
        fused(model, "lstm", loops=1)
        check(model, *feeds(cell), rtol=1e-5, atol=1e-6)


def test_layers_in_one_body() -> None:
    """The second layer reads the output of the first in the same iteration; a third state adds them up."""
    states = ("h", "c", "e")
    one = CELLS["rnn_Tanh"].body.replace("h2", "y")
    cell = Cell(f"""
    {one}
    h2 = Identity(y)  g1 = MatMul(y, r_h)  g2_ = MatMul(c, r_h)
    s2 = Add(g1, g2_)  c2 = Relu(s2)  e2 = Add(e, h2)
    """, {**CELLS["rnn_Tanh"].weights}, states)
    model = loop(cell)
    fused(model, "rnn", count=2, loops=1)
    check(model, *feeds(cell), rtol=1e-5, atol=1e-6)


def test_a_second_state_that_does_not_belong_to_the_cell() -> None:
    cell = CELLS["lstm_split_ifgo"]
    summed = replace(cell, body=f"{cell.body}\ne2 = Add(e, h2)", states=("h", "c", "e"))
    model = loop(summed)
    fused(model, "lstm", loops=1)
    check(model, *feeds(summed), rtol=1e-5, atol=1e-6)


def test_a_remaining_loop_without_slices() -> None:
    """A TensorIterator whose body reads no slices runs once: the cell stays, and the count is right."""
    cell = CELLS["lstm_split_ifgo"]
    counted = replace(cell, body=f"{cell.body}\ne2 = Add(e, one)", states=("h", "c", "e"))
    model = loop(counted)
    fused(model, "lstm", count=0, loops=1)
    check(model, *feeds(counted), rtol=1e-5, atol=1e-6)
    any_length = loop(counted, time="T", batch="B")
    fused(any_length, "lstm", loops=1)
    check(any_length, *feeds(counted, (3, 2), (0, 2), (4, 1)), rtol=1e-5, atol=1e-6)


LSTM, GRU, RNN = CELLS["lstm_split_ifgo"], CELLS["gru_after_0"], CELLS["rnn_Tanh"]
BEFORE = CELLS["gru_before_0"]
UNLIKE = {
    "lstm_tanh_of_old_cell": (LSTM, "tc = Tanh(c2)", "tc = Tanh(c)"),
    "lstm_output_gate_is_tanh": (LSTM, "o = Sigmoid(op)", "o = Tanh(op)"),
    "lstm_peephole": (LSTM, "f = Sigmoid(fp)", "fq = Add(fp, c)\n f = Sigmoid(fq)"),
    "lstm_difference": (LSTM, "c2 = Add(fc, ig)", "c2 = Sub(fc, ig)"),
    "lstm_gate_twice": (LSTM, "fc = Mul(f, c)", "ff = Mul(f, f)\n fc = Mul(ff, c)"),
    "lstm_more_added": (LSTM, "c2 = Add(fc, ig)", "cc = Add(fc, ig)\n c2 = Add(cc, one)"),
    "lstm_scaled": (LSTM, "h2 = Mul(o, tc)", "hh = Mul(o, tc)\n h2 = Mul(hh, two)"),
    "lstm_clipped": (LSTM, "tc = Tanh(c2)", "cl = Min(c2, one)\n tc = Tanh(cl)"),
    "lstm_product_with_state": (LSTM, "gh = Gemm<transB=1>(h, r, br)",
                                "hc = Mul(h, c)\n gh = Gemm<transB=1>(hc, r, br)"),
    "gru_reset_of_other": (GRU, "rn = Mul(r_, nh)", "rn = Mul(r_, nx)"),
    "gru_two_updates": (GRU, "m = Sub(unit, z)", "m = Sub(unit, r_)"),
    "gru_sum_over_one": (GRU, "m = Sub(unit, z)", "m = Add(unit, z)"),
    "rnn_state_added": (RNN, "h2 = Tanh(sb)", "t = Tanh(sb)\n h2 = Add(t, h)"),
    "rnn_softsign": (RNN, "h2 = Tanh(sb)", "h2 = Softsign(sb)"),
    "lstm_forget_twice": (LSTM, "c2 = Add(fc, ig)", "c2 = Add(fc, fc)"),
    "lstm_gate_of_state": (LSTM, "f = Sigmoid(fp)", "f = Sigmoid(h)"),
    "lstm_gate_of_tanh": (LSTM, "f = Sigmoid(fp)", "ft = Tanh(fp)\n fq = Add(ft, fp)\n f = Sigmoid(fq)"),
    "gru_candidate_without_input": (GRU, "np = Add(nx, rn)", "np = Add(rn, rn)"),
    "gru_difference_of_products": (GRU, "np = Add(nx, rn)", "np = Sub(nx, rn)"),
    "gru_reset_is_tanh": (GRU, "r_ = Sigmoid(rp)", "r_ = Tanh(rp)"),
    "gru_two_added": (GRU, "h2 = Add(zh, mn)", "hm = Add(zh, mn)\n h2 = Add(hm, two)"),
    "gru_16_products": (
        GRU, "h2 = Add(zh, mn)", "d = Sub(z, n_)\n d2 = Mul(d, d)\n d4 = Mul(d2, d2)\n h2 = Add(d4, mn)"
    ),
    "gru_before_reset_is_tanh": (BEFORE, "r_ = Sigmoid(p_r)", "r_ = Tanh(p_r)"),
    "gru_before_two_resets": (
        BEFORE, "n_ = Tanh(p_n)", "zs = Mul(z, h)\n zr = MatMul(zs, r_n)\n pn = Add(p_n, zr)\n n_ = Tanh(pn)"
    ),
    "gru_before_without_reset": (
        BEFORE, "n_ = Tanh(p_n)", "hr = MatMul(h, r_r)\n pn = Add(p_n, hr)\n n_ = Tanh(pn)"
    ),
    "rnn_without_activation": (RNN, "h2 = Tanh(sb)", "h2 = Identity(sb)"),
    "rnn_without_state": (RNN, "s = Add(gx, gh)", "hh = Sub(h, h)\n s = Add(gx, hh)"),
    "rnn_product_of_product": (RNN, "gh = MatMul(h, r_h)", "g1 = MatMul(h, r_h)\n gh = MatMul(g1, r_h)"),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_a_different_cell_stays(name: str) -> None:
    cell, old, new = UNLIKE[name]
    assert old in cell.body
    cell = replace(cell, body=cell.body.replace(old, new))
    model = loop(cell)
    fused(model, name, count=0, loops=1)
    check(model, *feeds(cell), rtol=1e-4, atol=1e-5)


def test_each_condition_of_a_cell_has_one_that_fails_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each `raise` of cells.py is that of a cell in UNLIKE: without its condition that cell would be wrong."""
    raised = set()

    def noted(*_: str) -> None:
        frame = sys._getframe(1)
        raised.add(frame.f_lineno if frame.f_code.co_filename == cells.__file__ else 0)

    monkeypatch.setattr(NotACell, "__init__", noted)
    for cell, old, new in UNLIKE.values():
        convert_model(loop(replace(cell, body=cell.body.replace(old, new))), **folded())
    source = ast.parse(Path(cells.__file__).read_text("utf-8"))
    wanted = {node.lineno: ast.unparse(node) for node in ast.walk(source) if isinstance(node, ast.Raise)}
    assert not {line: text for line, text in wanted.items() if line not in raised}


def test_a_state_with_another_consumer_stays() -> None:
    """The body returns the cell state of every iteration, which no sequence operation does."""
    model = loop(LSTM, more="p = Neg(c2)", more_output="p")
    fused(model, "lstm", count=0, loops=1)
    check(model, *feeds(LSTM), rtol=1e-5, atol=1e-6)
