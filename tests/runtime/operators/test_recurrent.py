"""LSTM, GRU and RNN: directions, states, lengths, layouts, activations, and unused outputs."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from mo_loop import convert_model
from tests.cases import read_cases
from tests.harness import check_model, check_node, every, graph_model, node_model, parsed

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
KINDS = tuple(GATES)
DIRECTIONS = ("forward", "reverse", "bidirectional")
TIME, BATCH, SIZE, HIDDEN = 4, 3, 5, 6


def check(kind, direction="forward", *, bias=True, states=False, peepholes=False, lengths=None, constant=True,
          opset=14, outputs=None, dynamic=True, **attributes):
    rng = np.random.default_rng(7)
    gates, count = GATES[kind], 2 if direction == "bidirectional" else 1
    first = bool(attributes.get("layout"))

    def normal(*shape):
        return (rng.standard_normal(shape) * 0.7).astype(np.float32)

    def state():
        return normal(*((BATCH, count, HIDDEN) if first else (count, BATCH, HIDDEN))) if states else None

    inputs = {"x": normal(*((BATCH, TIME, SIZE) if first else (TIME, BATCH, SIZE))),
              "w": normal(count, gates * HIDDEN, SIZE), "r": normal(count, gates * HIDDEN, HIDDEN),
              "b": normal(count, 2 * gates * HIDDEN) if bias else None,
              "lengths": None if lengths is None else np.array(lengths, np.int32), "h": state()}
    if kind == "LSTM":
        inputs |= {"c": state(), "p": normal(count, 3 * HIDDEN) if peepholes else None}
    constants = [name for name in "wrbp" if constant and inputs.get(name) is not None]
    check_node(kind, inputs, {"hidden_size": HIDDEN, "direction": direction, **attributes}, opset=opset,
               outputs=outputs or (3 if kind == "LSTM" else 2), constants=constants, dynamic=dynamic)


@every(layout=[0, 1], constant=["h", "c"])
def test_a_constant_state_gives_the_batch_size(constant, layout):
    """The input and the other state have a batch size known only at run time."""
    rng = np.random.default_rng(3)
    shapes = {"x": (2, BATCH, 3), "w": (1, 8, 3), "r": (1, 8, 2), "b": (1, 16), "h": (1, BATCH, 2), "c": (1, BATCH, 2)}
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    for name in ("x", "h", "c"):
        inputs[name] = np.ascontiguousarray(inputs[name].swapaxes(0, 1)) if layout else inputs[name]
    given = {**{name: inputs[name] for name in "xwrb"}, "lengths": None, "h": inputs["h"], "c": inputs["c"]}
    check_node("LSTM", given, {"hidden_size": 2, "layout": layout}, opset=14, outputs=3, constants=[*"wrb", constant],
               dynamic=[each for each in "xhc" if each != constant])


def packed(kind, direction, seed=5, known=None, fixed=True, **attributes):
    """A model whose input, batch and lengths are known only at run time, and a function that draws its inputs; with
    `known`, the steps and lengths, a static one, whose lengths are constant if they are `fixed`."""
    rng, gates, count = np.random.default_rng(seed), GATES[kind], 2 if direction == "bidirectional" else 1
    shapes = {"w": (count, gates * HIDDEN, SIZE), "r": (count, gates * HIDDEN, HIDDEN),
              "b": (count, 2 * gates * HIDDEN)}
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}

    def feeds(time, lengths):
        x = rng.standard_normal((time, len(lengths), SIZE)).astype(np.float32)
        return {"x": x, "lengths": np.array(lengths, np.int32)}

    given = feeds(*(known or (3, [3, 2])))
    x = given["x"].transpose(1, 0, 2) if attributes.get("layout") else given["x"]
    ordered = {"x": x, **weights, "lengths": given["lengths"]}
    constants = (*weights, "lengths") if known and fixed else tuple(weights)
    model = node_model(kind, ordered, {"hidden_size": HIDDEN, "direction": direction, **attributes}, opset=14,
                       outputs=3 if kind == "LSTM" else 2, constants=constants, dynamic=not known)
    return model, feeds


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_make_no_loop(kind):
    model, _ = packed(kind, "bidirectional")
    made = {type(node).__name__ for node in convert_model(model).graph.ordered()}
    assert not made & {"Loop", "TensorIterator"} and f"{kind}Sequence" in made


@pytest.mark.parametrize("weights, resets_after, loops", [("input", 0, True), ("input", 1, False), ("", 0, False)])
def test_a_gru_of_input_weights_is_a_loop(weights, resets_after, loops):
    """The GPU device does not compile it. Weights that constants give stay those of a sequence."""
    r = "float[1, 6, 2] r" if weights == "input" else ""
    model = parsed(f"""main (float[4, 3, 2] x{r and ", " + r}) => (float[?, ?, ?, 2] y)
      <int8[1, 6, 2] q = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}}, float scale = {{0.1}}, int8 zero = {{3}}> {{
      w = DequantizeLinear (q, scale, zero) {"" if r else "r = Abs (w)"}
      y = GRU <hidden_size = 2, linear_before_reset = {resets_after}> (x, w, r)
    }}""", opset=18)
    made = {type(node).__name__ for node in convert_model(model).graph.ordered()}
    assert ("GRUSequence" not in made) == loops


@every(kind=KINDS, direction=DIRECTIONS)
@pytest.mark.parametrize("padding", [np.nan, np.inf, 1e30], ids=str)
def test_what_is_behind_the_end_does_not_matter(kind, direction, padding):
    model, feeds = packed(kind, direction)
    given = feeds(6, [6, 2, 3])
    for number, length in enumerate(given["lengths"]):
        given["x"][length:, number] = padding
    check_model(model, given)


COMPUTED_SIZES = {
    "pad": "k = Concat <axis=0> (none, r) d = Pad (x, k)",
    "slice": "e = Concat <axis=0> (batch, r) d = Slice (x, start, e, axes)",
    "tile": "k = Concat <axis=0> (ones, r) d = Tile (x, k)",
}


@every(size=list(COMPUTED_SIZES), kind=KINDS, direction=["reverse", "bidirectional"])
def test_batch_of_computed_sizes(size, kind, direction):
    """The runtime infers no size of the input, and does not compile it with a constant state of a known batch."""
    rng, rows, count = np.random.default_rng(3), GATES[kind] * 4, 2 if direction == "bidirectional" else 1
    weights = {"w": rng.standard_normal((count, rows, 3)), "v": rng.standard_normal((count, rows, 4))}
    numbers = {"two": [2], "none": [0] * 5, "batch": [2], "start": [0, 0], "axes": [0, 2], "ones": [1, 1]}
    model = parsed(f"""main (float[2, 3, T] x) => (float[?, ?, ?, 4] y, float[?, 2, 4] h) {{
      n = Shape <start=2> (x) m = Mod (n, two) r = Add (m, two) {COMPUTED_SIZES[size]}
      t = Transpose <perm=[2, 0, 1]> (d)
      y, h = {kind} <hidden_size=4, direction="{direction}"> (t, w, v)
    }}""", opset=18)
    model.graph.initializer.extend(
        [numpy_helper.from_array(each.astype(np.float32), name) for name, each in weights.items()]
        + [numpy_helper.from_array(np.array(each), name) for name, each in numbers.items()]
    )
    check_model(model, *({"x": rng.standard_normal((2, 3, steps)).astype(np.float32)} for steps in (5, 8, 3)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("attributes", [{}, {"clip": 0.5}], ids=str)
def test_quantised_weights(kind, axis, attributes):
    """One scale, one for each direction, and one for each row."""
    rng, rows = np.random.default_rng(3), GATES[kind] * HIDDEN
    constants = {
        "w": rng.integers(-90, 90, (2, rows, SIZE)).astype(np.int8),
        "r": rng.integers(-90, 90, (2, rows, HIDDEN)).astype(np.int8),
        "scale": rng.uniform(0.005, 0.01, {None: (), 0: 2, 1: rows}[axis]),
    }
    constants["scale"] = np.asarray(constants["scale"], np.float32)
    given = {} if axis is None else {"axis": axis}
    nodes = [helper.make_node("DequantizeLinear", [name, "scale"], [f"{name}_real"], **given) for name in "wr"]
    inputs = ["x", "w_real", "r_real"]
    nodes.append(helper.make_node(kind, inputs, ["y"], hidden_size=HIDDEN, direction="bidirectional", **attributes))
    feeds = {"x": rng.standard_normal((TIME, BATCH, SIZE)).astype(np.float32)}
    check_model(graph_model(nodes, feeds, ["y"], opset=14, constants=constants), feeds)


@every(kind=KINDS, axis=[0, 1, 2], directions=[1, 2])
def test_weights_quantised_in_blocks(kind, axis, directions):
    rng, shape, blocks = np.random.default_rng(3), [directions, GATES[kind] * HIDDEN, 2 * SIZE], [2, 4, 3]
    size, grid = blocks[axis], [*shape]
    grid[axis] = -(-shape[axis] // size)
    constants = {"w": rng.integers(-90, 90, shape).astype(np.int8),
                 "scale": rng.uniform(0.005, 0.01, grid).astype(np.float32),
                 "r": rng.uniform(-0.5, 0.5, (*shape[:2], HIDDEN)).astype(np.float32)}
    direction = "bidirectional" if directions == 2 else "forward"
    nodes = [helper.make_node("DequantizeLinear", ["w", "scale"], ["w_real"], axis=axis, block_size=size),
             helper.make_node(kind, ["x", "w_real", "r"], ["y"], hidden_size=HIDDEN, direction=direction)]
    feeds = {"x": rng.standard_normal((TIME, BATCH, 2 * SIZE)).astype(np.float32)}
    check_model(graph_model(nodes, feeds, ["y"], opset=21, constants=constants), feeds)


read_cases(globals())
