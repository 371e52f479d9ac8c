"""Cells written out in loops, as exporters write them.

    model = loop(LSTM_SPLIT, lstm_weights("ifgo"))      a Loop over x [5,2,3], time first
    model = scan(...)                                   the same as a Scan

A cell is the text of an ONNX body that makes `h2` (and `c2`) of `xt`, `h` (and `c`). Weights are initializers of the
main graph. `x` is [time, batch, input], or [batch, time, input] with `batch_first`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tests.harness import parsed

TIME, BATCH, INPUT, HIDDEN = 5, 2, 3, 4

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """`body` is text of nodes; `weights` are its weights by name."""

    body: str
    weights: Arrays
    states: tuple[str, ...] = ("h", "c")
    rank: int = 2


def random(*shape: int, seed: int) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.5).astype(np.float32)


def loop(cell: Cell, *, time: Any = TIME, batch: Any = BATCH, batch_first: bool = False, reverse: bool = False,
         concatenated: bool = True, finals: bool = True, more: str = "", more_output: str = "") -> onnx.ModelProto:
    """A Loop over the slices of x; `more` are further nodes of the body, whose output is `more_output`."""
    x, state = _shapes(cell, time, batch, batch_first)
    carried = ", ".join(f"float[{state}] {name}" for name in cell.states)
    first = ", ".join(f"float[{state}] {name}0" for name in cell.states)
    next_ = ", ".join(f"float[{state}] {name}2" for name in cell.states)
    scans = (["h2"] if concatenated else []) + ([more_output] if more_output else [])
    joined = "".join(f", s{number}" for number in range(len(scans)))
    body_scans = "".join(f", float[{state if name == 'h2' else 'a, b'}] scan{n}" for n, name in enumerate(scans))
    copies = "\n".join(f"scan{number} = Identity({name})" for number, name in enumerate(scans))
    index = "k" if reverse else "i"
    count = f"n = Constant<value=int64 {{{time}}}>()" if isinstance(time, int) else _length(batch_first)
    last = ", ".join(f"{name}_end" for name in cell.states)
    shown = ", ".join(f"float[p{n}, q{n}] {name}_end" for n, name in enumerate(cell.states)) if finals else ""
    if cell.rank == 1:
        shown = shown.replace("[p0, q0]", "[p0]").replace("[p1, q1]", "[p1]")
    outputs = ", ".join([*([shown] if shown else []), *(f"float[t{n}, u{n}, v{n}] s{n}" for n in range(len(scans)))])
    if cell.rank == 1:
        outputs = outputs.replace("u0, v0", "u0").replace("u1, v1", "u1")
    return _with(parsed(f"""main (float[{x}] x, {first}) => ({outputs}) {{
      {count}
      go = Constant<value=bool {{1}}>()
      {last}{joined} = Loop(n, go, {", ".join(f"{name}0" for name in cell.states)})
        <body = step (int64 i, bool g, {carried}) => (bool g2, {next_}{body_scans}) {{
          g2 = Identity(g)  next_i = Constant<value=int64 {{1}}>()  n_minus_1 = Sub(n, next_i)
          k = Sub(n_minus_1, i)  xt = Gather<axis={1 if batch_first else 0}>(x, {index})
          {cell.body}
          {more}
          {copies}
        }}>
    }}"""), cell.weights)


def scan(cell: Cell, *, time: Any = TIME, batch: Any = BATCH, batch_first: bool = False, reverse: bool = False,
         output_reverse: bool = False) -> onnx.ModelProto:
    """A Scan over the slices of x."""
    x, state = _shapes(cell, time, batch, batch_first)
    carried = ", ".join(f"float[{state}] {name}" for name in cell.states)
    first = ", ".join(f"float[{state}] {name}0" for name in cell.states)
    next_ = ", ".join(f"float[{state}] {name}2" for name in cell.states)
    axis = 1 if batch_first else 0
    ends = ", ".join(f"float[p{n}, q{n}] {name}_end" for n, name in enumerate(cell.states))
    element = f"{batch}, {INPUT}" if cell.rank == 2 else f"{INPUT}"
    return _with(parsed(f"""main (float[{x}] x, {first}) => ({ends}, float[t, u, v] ys) {{
      {", ".join(f"{name}_end" for name in cell.states)}, ys =
        Scan<num_scan_inputs = 1, scan_input_axes = [{axis}], scan_output_axes = [{axis}],
             scan_input_directions = [{int(reverse)}], scan_output_directions = [{int(output_reverse)}],
             body = step ({carried}, float[{element}] xt) => ({next_}, float[{state}] y) {{
          {cell.body}
          y = Identity(h2)
        }}>({", ".join(f"{name}0" for name in cell.states)}, x)
    }}"""), cell.weights)


def feeds(cell: Cell, *sizes: tuple[int, int], batch_first: bool = False) -> list[Arrays]:
    """Inputs for each (time, batch)."""
    found = []
    for seed, (time, batch) in enumerate(sizes or [(TIME, BATCH)]):
        middle = () if cell.rank == 1 else (batch,)
        dims = (*middle, time) if batch_first else (time, *middle)
        states = {f"{name}0": random(*middle, HIDDEN, seed=90 + seed + ord(name)) for name in cell.states}
        found.append({"x": random(*dims, INPUT, seed=seed), **states})
    return found


def _shapes(cell: Cell, time: Any, batch: Any, batch_first: bool) -> tuple[str, str]:
    if cell.rank == 1:
        return f"{time}, {INPUT}", f"{HIDDEN}"
    return (f"{batch}, {time}, {INPUT}" if batch_first else f"{time}, {batch}, {INPUT}"), f"{batch}, {HIDDEN}"


def _length(batch_first: bool) -> str:
    at = 1 if batch_first else 0
    return f"""dims = Shape(x)
      at = Constant<value=int64 {{{at}}}>()  n = Gather<axis=0>(dims, at)"""


def _with(model: onnx.ModelProto, weights: Arrays) -> onnx.ModelProto:
    """The model with the weights as initializers of the main graph."""
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), name) for name, a in weights.items())
    return model


# -- weights [gates * HIDDEN, ...]


def joined_weights(gates: int) -> dict[str, Any]:
    """The gates share one matrix for the input and one for the state."""
    wide = gates * HIDDEN
    return {
        "w": random(wide, INPUT, seed=1), "r": random(wide, HIDDEN, seed=2), "rt": random(HIDDEN, wide, seed=2),
        "both": random(INPUT + HIDDEN, wide, seed=3), "bw": random(wide, seed=4), "br": random(wide, seed=5),
        "one": np.ones(1, np.float32), "two": np.full(1, 2.0, np.float32), "axes0": np.array([0]),
        "axes1": np.array([1]), "sizes": np.array([HIDDEN] * gates),
        **{f"a{n}": np.array([n * HIDDEN]) for n in range(gates + 1)},
    }


def separate_weights(gates: str) -> dict[str, Any]:
    """w_i [input, hidden], r_i, b_i for each letter."""
    found = {"unit": np.ones((), np.float32)}
    for number, gate in enumerate(gates):
        found[f"w_{gate}"] = random(INPUT, HIDDEN, seed=10 + number)
        found[f"r_{gate}"] = random(HIDDEN, HIDDEN, seed=20 + number)
        found[f"b_{gate}"] = random(HIDDEN, seed=30 + number)
    return found


def _summed(gate: str, state: str) -> str:
    """p = (x W + b) + h R for one gate."""
    return f"""
    x_{gate} = MatMul(xt, w_{gate})
    xb_{gate} = Add(x_{gate}, b_{gate})
    h_{gate} = MatMul({state}, r_{gate})
    p_{gate} = Add(xb_{gate}, h_{gate})"""


# -- LSTM

STATE = """
fc = Mul(f, c)  ig = Mul(i_, g_)  c2 = Add(fc, ig)
tc = Tanh(c2)  h2 = Mul(o, tc)
"""


def lstm_split(order: str) -> Cell:
    """PyTorch: Gemm of x, Gemm of h, their sum split; `order` is that of the gates: i, f, g, o in any order."""
    names = ", ".join(f"{gate}p" for gate in order)
    return Cell(f"""
    gx = Gemm<transB=1>(xt, w, bw)  gh = Gemm<transB=1>(h, r, br)  gates = Add(gx, gh)
    {names} = Split<axis=1>(gates, sizes)
    i_ = Sigmoid(ip)  f = Sigmoid(fp)  g_ = Tanh(gp)  o = Sigmoid(op)
    {STATE}""", joined_weights(4))


def lstm_sliced() -> Cell:
    """TensorFlow: one product of Concat(x, h), gates cut out by Slice, a forget bias added."""
    return Cell(f"""
    xh = Concat<axis=-1>(xt, h)  product = MatMul(xh, both)  gates = Add(bw, product)
    ip = Slice(gates, a0, a1, axes1)  gp = Slice(gates, a1, a2, axes1)  fp = Slice(gates, a2, a3, axes1)
    op = Slice(gates, a3, a4, axes1)  fb = Add(fp, one)  i_ = Sigmoid(ip)
    f = Sigmoid(fb)  g_ = Tanh(gp)  o = Sigmoid(op)
    {STATE}""", joined_weights(4))


def lstm_separate() -> Cell:
    """Keras: one product per gate; no bias of the recurrence."""
    gates = "\n".join(_summed(gate, "h") for gate in "ifgo")
    return Cell(f"""
    {gates}
    i_ = Sigmoid(p_i)  f = Sigmoid(p_f)  g_ = Tanh(p_g)  o = Sigmoid(p_o)
    {STATE}""", separate_weights("ifgo"))


def lstm_vectors() -> Cell:
    """No batch: matrices times vectors, no bias."""
    return Cell(f"""
    gx = MatMul(w, xt)  gh = MatMul(h, rt)  gates = Add(gx, gh)
    sig = Sigmoid(gates)  i_, f, o, unused = Split<axis=0>(sig, sizes)  gp = Slice(gates, a3, a4, axes0)
    g_ = Tanh(gp)
    {STATE}""", joined_weights(4), rank=1)


# -- GRU

MIXTURES = {
    "z * h + (1 - z) * n": "zh = Mul(z, h)\n m = Sub(unit, z)\n mn = Mul(m, n_)\n h2 = Add(zh, mn)",
    "n + z * (h - n)": "d = Sub(h, n_)\n zd = Mul(z, d)\n h2 = Add(n_, zd)",
    "(1 - z) * h + z * n": "m = Sub(unit, z)\n mh = Mul(m, h)\n zn = Mul(n_, z)\n h2 = Add(mh, zn)",
    "n - z * n + z * h": "zn = Mul(z, n_)\n d = Sub(n_, zn)\n zh = Mul(z, h)\n h2 = Add(d, zh)",
}


def gru_after(mixture: str) -> Cell:
    """PyTorch: the reset gate multiplies the product with the state."""
    return Cell(f"""
    gx = Gemm<transB=1>(xt, w, bw)  gh = Gemm<transB=1>(h, r, br)  rx, zx, nx = Split<axis=1>(gx, sizes)
    rh, zh_, nh = Split<axis=1>(gh, sizes)  rp = Add(rx, rh)  r_ = Sigmoid(rp)
    zp = Add(zx, zh_)  z = Sigmoid(zp)  rn = Mul(r_, nh)
    np = Add(nx, rn)  n_ = Tanh(np)
    {MIXTURES[mixture]}""", {**joined_weights(3), "unit": np.ones((), np.float32)}, ("h",))


def gru_before(mixture: str) -> Cell:
    """Keras: the reset gate multiplies the state."""
    update = f"{_summed('z', 'h')}\n z = Sigmoid(p_z)"
    reset = f"{_summed('r', 'h')}\n r_ = Sigmoid(p_r)\n rs = Mul(r_, h)"
    gates = f"{update}\n {reset}\n {_summed('n', 'rs')}"
    return Cell(f"{gates}\n n_ = Tanh(p_n)\n {MIXTURES[mixture]}", separate_weights("zrn"), ("h",))


# -- RNN


def rnn(activation: str) -> Cell:
    """One product each, one bias."""
    return Cell(f"""
    gx = MatMul(xt, w_h)  gh = MatMul(h, r_h)  s = Add(gx, gh)  sb = Add(s, b_h)
    h2 = {activation}(sb)
    """, separate_weights("h"), ("h",))
