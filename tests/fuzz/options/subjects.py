"""Draws small models that options apply to: pictures, vectors, states that the caller carries, sequences, loops."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from tests.harness import parsed, with_weights

Array = np.ndarray[Any, Any]
Rng = np.random.Generator


@dataclass(frozen=True)
class Port:
    """An input: sizes and names of sizes, element type, and what the dimensions are: `n` the batch, `c` channels."""

    dims: tuple[int | str, ...]
    layout: str
    dtype: Any = np.float32

    def axis(self, letter: str) -> int | None:
        return self.layout.index(letter) if letter in self.layout else None

    def array(self, rng: Rng, sizes: dict[str, int]) -> Array:
        shape = [sizes[dim] if isinstance(dim, str) else dim for dim in self.dims]
        if self.dtype == np.float32:
            return rng.standard_normal(shape).astype(np.float32)
        return rng.integers(-3, 4, shape).astype(self.dtype)

    def zeros(self, sizes: dict[str, int], growing: frozenset[str] = frozenset()) -> Array:
        shape = [0 if dim in growing else sizes[dim] if isinstance(dim, str) else dim for dim in self.dims]
        return np.zeros(shape, self.dtype)


@dataclass(frozen=True)
class Subject:
    """A model. `states` maps inputs to the outputs that are their next values, `steps` inputs to axes of a sequence.

    `inner` is a tensor at which the model can be cut, made by the node `[first]` from the first input.
    """

    kind: str
    model: onnx.ModelProto
    ports: dict[str, Port]
    outputs: tuple[str, ...]
    sizes: dict[str, int]
    states: dict[str, str] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    growing: frozenset[str] = frozenset()
    inner: str = ""


def drawn(rng: Rng, kind: str) -> Subject:
    """A model of the kind, with a batch that is known or not."""
    batch: int | str = [1, 2, "N", "N"][int(rng.integers(4))]
    sizes = {"N": int(rng.integers(1, 3)), "L": int(rng.integers(1, 3)), "H": 4, "W": 6, "T": 2, "P": 2}
    return KINDS[kind](rng, batch, sizes)


def _subject(kind: str, ports: dict[str, Port], outputs: list[str], body: str, sizes: dict[str, int],
             weights: dict[str, Array], states: dict[str, str] | None = None, steps: dict[str, int] | None = None,
             **more: Any) -> Subject:
    names = {np.float32: "float", np.int64: "int64"}
    given = ", ".join(f"{names[port.dtype]}[{','.join(map(str, port.dims))}] {name}" for name, port in ports.items())
    model = parsed(f"main ({given}) => ({', '.join(outputs)}) {{ {body} }}", 18)
    with_weights(model, weights)
    return Subject(kind, model, ports, tuple(outputs), sizes, states or {}, steps or {}, **more)


def _floats(rng: Rng, *shape: int) -> Array:
    return (rng.standard_normal(shape) * 0.5).astype(np.float32)


def _size(rng: Rng, name: str, sizes: dict[str, int]) -> int | str:
    return name if rng.random() < 0.4 else sizes[name]


def _picture(rng: Rng, batch: int | str, sizes: dict[str, int]) -> Subject:
    x = Port((batch, 3, _size(rng, "H", sizes), _size(rng, "W", sizes)), "nchw")
    body = "[first] a = Relu (x) [conv] b = Conv (a, k) y = Tanh (b) z = Neg (a)"
    return _subject("picture", {"x": x}, ["y", "z"], body, sizes, {"k": _floats(rng, 4, 3, 2, 2)}, inner="a")


def _picture_last(rng: Rng, batch: int | str, sizes: dict[str, int]) -> Subject:
    x = Port((batch, _size(rng, "H", sizes), _size(rng, "W", sizes), 3), "nhwc")
    body = "[first] a = Transpose <perm = [0, 3, 1, 2]> (x) b = Conv (a, k) y = Tanh (b)"
    return _subject("picture_last", {"x": x}, ["y"], body, sizes, {"k": _floats(rng, 4, 3, 1, 1)})


def _several(rng: Rng, batch: int | str, sizes: dict[str, int]) -> Subject:
    ports = {"x": Port((batch, 3, _size(rng, "H", sizes), 6), "nchw"), "v": Port((batch, 5), "nc"),
             "i": Port((batch, 2), "n?", np.int64)}
    body = """[first] a = Sigmoid (x) s = ReduceMean <keepdims = 0> (a, axes) t = Unsqueeze (s, last) u = Mul (v, t)
      f = Cast <to = 1> (i) j = Mul (f, t) y = Exp (a)"""
    weights = {"axes": np.array([1, 2, 3]), "last": np.array([1])}
    return _subject("several", ports, ["y", "u", "j"], body, sizes, weights, inner="a")


def _picture_state(rng: Rng, batch: int | str, sizes: dict[str, int]) -> Subject:
    shape = (batch, 3, 4, _size(rng, "W", sizes))
    ports = {"x": Port(shape, "nchw"), "h0": Port(shape, "nchw")}
    body = "[first] a = Relu (x) s = Add (a, h0) hN = Tanh (s) y = Mul (x, hN)"
    return _subject("picture_state", ports, ["y", "hN"], body, sizes, {}, states={"h0": "hN"}, inner="")


def _cache(rng: Rng, batch: int | str, sizes: dict[str, int]) -> Subject:
    ports = {"x": Port((batch, "L", 3), "n?c"), "past": Port((batch, "P", 3), "n?c")}
    body = "present = Concat <axis = 1> (past, x) s = ReduceSum <keepdims = 1> (present, one) y = Mul (s, x)"
    return _subject("cache", ports, ["y", "present"], body, sizes, {"one": np.array([1])}, states={"past": "present"},
                    growing=frozenset("P"))


def _layers(rng: Rng, batch: int | str, sizes: dict[str, int]) -> Subject:
    """The hidden and the cell state in one tensor, as voice detectors have them."""
    ports = {"x": Port((batch, 3), "nc"), "state": Port((2, batch, 4), "?nc")}
    body = """h = Gather (state, zero) c = Gather (state, once) hu = Unsqueeze (h, axis) cu = Unsqueeze (c, axis)
      xs = Unsqueeze (x, axis) ys, hn, cn = LSTM <hidden_size = 4> (xs, W, R, , , hu, cu) hs = Squeeze (hn, axis)
      cs = Squeeze (cn, axis) y = Sigmoid (hs) ha = Unsqueeze (hs, axis) ca = Unsqueeze (cs, axis)
      stateN = Concat <axis = 0> (ha, ca)"""
    weights = {"zero": np.array(0), "once": np.array(1), "axis": np.array([0]), "W": _floats(rng, 1, 16, 3),
               "R": _floats(rng, 1, 16, 4)}
    return _subject("layers", ports, ["y", "stateN"], body, sizes, weights, states={"state": "stateN"})


def _two_states(rng: Rng, batch: int | str, sizes: dict[str, int]) -> Subject:
    ports = {"x": Port((batch, 3), "nc"), "h0": Port((batch, 3), "nc"), "n0": Port((1,), "?", np.int64)}
    body = """nN = Add (n0, one) f = Cast <to = 1> (nN) s = Add (x, h0) hN = Tanh (s) p = Mul (hN, x) y = Add (p, f)"""
    return _subject("two_states", ports, ["y", "hN", "nN"], body, sizes, {"one": np.array([1])},
                    states={"h0": "hN", "n0": "nN"})


def _sequence(rng: Rng, batch: int | str, sizes: dict[str, int]) -> Subject:
    kind, gates = [("LSTM", 4), ("GRU", 3), ("RNN", 1)][int(rng.integers(3))]
    ports = {"x": Port(("T", batch, 3), "?nc"), "h0": Port((1, batch, 4), "?nc")}
    body = f"a, hN = {kind} <hidden_size = 4> (x, W, R, , , h0) y = Tanh (a)"
    weights = {"W": _floats(rng, 1, 4 * gates, 3), "R": _floats(rng, 1, 4 * gates, 4)}
    return _subject("sequence", ports, ["y", "hN"], body, sizes, weights, {"h0": "hN"}, {"x": 0})


def _scan(rng: Rng, batch: int | str, sizes: dict[str, int]) -> Subject:
    ports = {"x": Port(("T", batch, 3), "?nc"), "h0": Port((batch, 3), "nc")}
    body = """hN, y = Scan <num_scan_inputs = 1, body = step (float[M,3] s, float[M,3] e)
      => (float[M,3] t, float[M,3] o) { a = Add (s, e) t = Tanh (a) o = Mul (t, e) }> (h0, x)"""
    return _subject("scan", ports, ["hN", "y"], body, sizes, {}, {"h0": "hN"}, {"x": 0})


def _loop(rng: Rng, batch: int | str, sizes: dict[str, int]) -> Subject:
    ports = {"x": Port((batch, 3), "nc"), "h0": Port((batch, 3), "nc")}
    body = """[first] a = Relu (x) y = Loop (three, , h0) <body = step (int64 i, bool c, float[M,3] s)
      => (bool d, float[M,3] t) { d = Identity (c) f = Cast <to = 1> (i) e = Add (s, a) g = Mul (e, f)
        t = Tanh (g) }>"""
    return _subject("loop", ports, ["y"], body, sizes, {"three": np.array(int(rng.integers(1, 4)))}, inner="a")


def _quantised(rng: Rng, batch: int | str, sizes: dict[str, int]) -> Subject:
    ports = {"x": Port((batch, 3), "nc")}
    body = "[first] a = Relu (x) q = QuantizeLinear (a, s, o) d = DequantizeLinear (q, s, o) y = MatMul (d, w)"
    weights = {"s": np.float32(0.03), "o": np.uint8(7), "w": _floats(rng, 3, 4)}
    return _subject("quantised", ports, ["y"], body, sizes, {k: np.asarray(v) for k, v in weights.items()}, inner="a")


KINDS: dict[str, Callable[[Rng, int | str, dict[str, int]], Subject]] = {
    "picture": _picture, "picture_last": _picture_last, "several": _several, "picture_state": _picture_state,
    "cache": _cache, "layers": _layers, "two_states": _two_states, "sequence": _sequence, "scan": _scan, "loop": _loop,
    "quantised": _quantised,
}
