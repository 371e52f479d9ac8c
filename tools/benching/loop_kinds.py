"""Kinds of loops as ONNX models: what exporters write for maps, sums, recurrences and searches.

looped(KINDS[0], 128)       a model over x: f32[128, 48]; 0 is a length known only at run time
batched(KINDS[0], 128)      the same without a loop, for kinds whose iterations are independent
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WIDTH = 48


@dataclass(frozen=True)
class Kind:
    """One loop over `x`. The body makes `y` of `xt`; `state` has the shape of a state `s`, whose next value is `t`.

    `loop` writes Loop with x[i], else Scan. `outputs` are `y` (of all steps) and `s` (the last state).
    """

    name: str
    body: str
    state: str = ""
    outputs: tuple[str, ...] = ("y",)
    loop: bool = False
    is_map: bool = False
    y: str = str(WIDTH)

    def feeds(self, length: int) -> Mapping[str, Any]:
        import numpy as np

        rng = np.random.default_rng(7)
        found = {"x": rng.standard_normal((length, WIDTH)).astype(np.float32)}
        if self.state:
            shape = tuple(int(each) for each in self.state.split(","))
            found["s0"] = rng.standard_normal(shape).astype(np.float32) * np.float32(0.5)
        return found


MAP = "p = MatMul(xt, w) \n q = Add(p, b) \n r = Tanh(q) \n y = Softmax<axis = -1>(r)"
KINDS = (
    Kind("elementwise_map", "p = Mul(xt, b) \n q = Tanh(p) \n y = Add(q, xt)", is_map=True),
    Kind("matmul_map", MAP, is_map=True),
    Kind("loop_map", MAP, loop=True, is_map=True),
    Kind("cumulative_sum", "t = Add(s, xt) \n y = Identity(t)", str(WIDTH)),
    Kind("running_maximum", "t = Max(s, xt) \n y = Identity(t)", str(WIDTH)),
    Kind("sum_over_steps", "p = Mul(xt, xt) \n t = Add(s, p)", str(WIDTH), ("s",)),
    Kind("moving_average", "p = Mul(s, half) \n t = Add(p, xt) \n y = Identity(t)", str(WIDTH)),
    Kind(
        "selective_scan", "g = Sigmoid(xt) \n p = Mul(s, g) \n q = Tanh(xt) \n t = Add(p, q) \n y = Mul(t, xt)",
        str(WIDTH),
    ),
    Kind(
        "rnn",
        "p = MatMul(xt, w) \n q = MatMul(s, u) \n r = Add(p, q) \n v = Add(r, b) \n t = Tanh(v) \n y = Identity(t)",
        f"1,{WIDTH}", ("y", "s"), y=f"1,{WIDTH}",
    ),
    Kind(
        "projected_states", "p = Add(s, xt) \n t = Tanh(p) \n q = MatMul(t, u) \n y = Softmax<axis = -1>(q)",
        str(WIDTH), ("y", "s"),
    ),
    Kind(
        "linear_attention",
        "k = Unsqueeze(xt, one) \n v = MatMul(xt, w) \n r = Unsqueeze(v, zero) \n p = MatMul(k, r) \n"
        "q = Mul(s, half) \n t = Add(p, q) \n y = MatMul(xt, t)",
        f"{WIDTH},{WIDTH}",
    ),
    Kind("delay", "t = Identity(xt) \n y = Sub(xt, s)", str(WIDTH)),
    Kind("loop_recurrence", "p = Mul(s, xt) \n q = Add(p, b) \n t = Tanh(q) \n y = Identity(t)", str(WIDTH), loop=True),
    Kind(
        "written_rows", "r = Tanh(xt) \n p = Reshape(i, pair) \n v = Unsqueeze(r, zero) \n t = ScatterND(s, p, v)",
        f"1000,{WIDTH}", ("s",), loop=True,
    ),
    Kind("clipped_sum", "p = Add(s, xt) \n t = Clip(p, low, high) \n y = Identity(t)", str(WIDTH), ("y", "s")),
)
"""Kinds of loops; each is measured with lengths known at conversion and only at run time."""


def looped(kind: Kind, length: int) -> bytes:
    """The model with the loop; `length` 0 is known only at run time."""
    steps = str(length) if length else "T"
    states = f", float[{kind.state}] s0" if kind.state else ""
    outs = [f"float[{steps},{kind.y}] y"] if "y" in kind.outputs else []
    outs = ([f"float[{kind.state}] last"] if "s" in kind.outputs else []) + outs
    typed = [f"float[{kind.state}] t"] if kind.state else []
    typed += [f"float[{kind.y}] y"] if "y" in kind.outputs else []
    made = ["last" if "s" in kind.outputs else "unread"] if kind.state else []
    made += ["y"] if "y" in kind.outputs else []
    carried = f"float[{kind.state}] s" if kind.state else ""
    first = "s0" if kind.state else ""
    if kind.loop:
        inputs = ", ".join(each for each in ("int64 i, bool g", carried) if each)
        text = f"""length = Shape<start = 0, end = 1>(x)
          n = Squeeze(length)
          go = Constant<value = bool {{1}}>()
          {", ".join(made)} = Loop(n, go{", " if first else ""}{first}) <body = step ({inputs})
            => ({", ".join(["bool g2", *typed])}) {{
            g2 = Identity(g)
            xt = Gather<axis = 0>(x, i)
            {kind.body}
          }}>"""
    else:
        inputs = ", ".join(each for each in (carried, f"float[{WIDTH}] xt") if each)
        text = f"""{", ".join(made)} = Scan<num_scan_inputs = 1, body = step ({inputs}) => ({", ".join(typed)}) {{
            {kind.body}
          }}>({", ".join(each for each in (first, "x") if each)})"""
    return _model(f"float[{steps},{WIDTH}] x{states}", ", ".join(outs), text)


def batched(kind: Kind, length: int) -> bytes:
    """The body applied to the whole tensor."""
    steps = str(length) if length else "T"
    text = kind.body.replace("xt", "x")
    return _model(f"float[{steps},{WIDTH}] x", f"float[{steps},{kind.y}] y", text)


def _model(inputs: str, outputs: str, nodes: str) -> bytes:
    import numpy as np
    import onnx.parser
    from onnx import numpy_helper

    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> main ({inputs}) => ({outputs}) {{\n{nodes}\n}}'
    )
    rng = np.random.default_rng(0)
    arrays = {
        "w": (rng.standard_normal((WIDTH, WIDTH)) * 0.15).astype(np.float32),
        "u": (rng.standard_normal((WIDTH, WIDTH)) * 0.1).astype(np.float32),
        "b": (rng.standard_normal(WIDTH) * 0.1).astype(np.float32),
        "half": np.float32(0.5), "low": np.float32(-1), "high": np.float32(1),
        "zero": np.array([0], np.int64), "one": np.array([1], np.int64),
        "pair": np.array([1, 1], np.int64),
    }
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), key) for key, array in arrays.items())
    return bytes(model.SerializeToString())
