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
from tests.cases import read_cases
from tests.harness import check, folded
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
    rnn,
)
from tests.runtime.passes.recurrent_models import (
    lstm_vectors as lstm_vectors,
)
from tests.runtime.passes.recurrent_models import (
    scan as scan,
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


read_cases(globals())
