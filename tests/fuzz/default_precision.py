"""Random models whose results are integers, and these integers: they do not depend on the precision of the runtime.

    case = draw(seed=1, index=7)
    case.name, case.model, case.feeds, case.expected        the sum of a product is below 2^24
"""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx.parser
from onnx import numpy_helper

Array = np.ndarray[Any, Any]

LOOP = """once = Constant <value_int=1> () y = Loop (once, "", start) <body = b (int64 i, bool c, TYPE[K, M] state) =>
  (bool go, TYPE[K, M] next) { go = Identity (c) INNER next = Identity (r) }>"""


@dataclass
class Case:
    """A model of one input x, or one product in the body of a Loop."""

    name: str
    model: Any
    feeds: dict[str, Array]
    expected: Array


def draw(seed: int, index: int) -> Case:
    """Model number `index` of a seed."""
    choices, numbers = random.Random(f"precision/{seed}/{index}"), np.random.default_rng([seed, index])
    name = choices.choice(tuple(KINDS))
    body, kind, x, expected, constants = KINDS[name](choices, numbers)
    ports = ",".join("ABCD"[: x.ndim]) if choices.random() < 0.5 else ",".join(map(str, x.shape))
    out = onnx.helper.tensor_dtype_to_string(onnx.helper.np_dtype_to_tensor_dtype(expected.dtype))
    out = out.partition(".")[2].lower()
    if expected.ndim == 2 and choices.random() < 0.3:
        constants["start"] = np.zeros_like(expected)
        body, name = LOOP.replace("TYPE", out).replace("INNER", body.replace("y =", "r =")), f"{name} in a Loop"
    shape = ",".join("PQRS"[: expected.ndim])
    text = f'<ir_version: 9, opset_import: ["": 18]> main ({kind}[{ports}] x) => ({out}[{shape}] y) {{ {body} }}'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(array, key) for key, array in constants.items())
    return Case(name, model, {"x": x}, expected)


def _integers(numbers: Any, *shape: int) -> Array:
    return numbers.integers(0, 256, shape).astype(np.uint8)


def _product(choices: random.Random, numbers: Any) -> Any:
    depth = choices.choice((3, 50, 200))
    x, w, zero = _integers(numbers, 5, depth), _integers(numbers, depth, 4), np.uint8(choices.choice((0, 7, 255)))
    expected = (x.astype(np.int32) - np.int32(zero)) @ w.astype(np.int32)
    return "y = MatMulInteger (x, w, z)", "uint8", x, expected, {"w": w, "z": zero}


def _scaled(choices: random.Random, numbers: Any) -> Any:
    body, kind, x, expected, constants = _product(choices, numbers)
    body = f"{body.replace('y =', 'p =')} f = Cast <to=1> (p) y = Mul (f, s)"
    return body, kind, x, expected.astype(np.float32) * np.float32(0.25), {**constants, "s": np.float32(0.25)}


def _convolution(choices: random.Random, numbers: Any) -> Any:
    group = choices.choice((1, 2, 4))
    x, w = _integers(numbers, 1, 4, 6, 5), _integers(numbers, 4, 4 // group, 2, 2)
    views = np.lib.stride_tricks.sliding_window_view(x.astype(np.int32), (2, 2), (2, 3))
    parts = zip(np.split(views, group, 1), np.split(w.astype(np.int32), group), strict=True)
    expected = np.concatenate([np.einsum("nchwkl,ockl->nohw", part, each) for part, each in parts], 1)
    return f"y = ConvInteger <group={group}> (x, w)", "uint8", x, expected.astype(np.int32), {"w": w}


def _positions(choices: random.Random, numbers: Any) -> Any:
    x = numbers.integers(0, 100_000, (6, 3))
    body = "f = Cast <to=1> (x) h = Mul (f, k) g = Floor (h) y = Cast <to=7> (g)"
    return body, "int64", x, x // 4, {"k": np.float32(0.25)}


def _arithmetic(choices: random.Random, numbers: Any) -> Any:
    x = numbers.integers(0, 100_000, (6, 3))
    return "d = Div (x, k) m = Mod (x, k) y = Add (d, m)", "int64", x, x // 7 + x % 7, {"k": np.int64(7)}


def _counts(choices: random.Random, numbers: Any) -> Any:
    x = numbers.integers(0, 1000, (40, 6)).astype(np.int32)
    return "y = CumSum (x, a)", "int32", x, np.cumsum(x, 0, dtype=np.int32), {"a": np.int64(0)}


def _whole_matrix(choices: random.Random, numbers: Any) -> Any:
    x, w = (numbers.integers(-900, 900, shape).astype(np.int32) for shape in ((5, 16), (16, 4)))
    return "y = MatMul (x, w)", "int32", x, x @ w, {"w": w}


KINDS = {
    "MatMulInteger": _product, "MatMulInteger times a scale": _scaled, "ConvInteger": _convolution,
    "positions in f32": _positions, "Div and Mod": _arithmetic, "CumSum": _counts, "MatMul of i32": _whole_matrix,
}
"""Kind -> the nodes, the type of x, x, the results and the constants."""
