"""N steps with states give the numbers of one run over N: forms of loops, and batches."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop.api import convert_model, save_model
from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.errors import UnsupportedError
from tests.fuzz.reshaping import of_unknown_sizes
from tests.fuzz.states.carried import Carried, State
from tests.fuzz.states.comparing import compared_carried, difference
from tests.fuzz.states.stepping import stepped
from tests.harness import floats, parsed, raised, with_weights
from tools.runtimes import chosen_interpreter

# -- N steps with states give the numbers of one run over N, for forms of loops that the drawn models do not have


LENGTH = 5
OPTION = "LowLatency2[use_const_initializer=False,sequence_length=1]"

LOOP = """main (float[T,2,3] x, float[2,3] start) => (last, all) {{
  shape = Shape (x)  zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()
  n = Gather (shape, zero)  end = Sub (n, one)  go = Cast <to = 9> (n)
  {before}
  {outputs}last, all = Loop ({trip}, {begins}, {initial}start) <body = step (int64 i, bool c, {states}float[2,3] s)
    => (bool d, {nexts}float[2,3] next, float[2,3] out) {{
    {body}
    next = Add (s, e)  out = Mul (next, e) }}> }}"""


def loop(body: str, before: str = "", trip: str = "n", begins: str = '""', counter: bool = False) -> str:
    """A loop over the sequence, in which a step reads `e`; with `counter` a state `k` of integers."""
    return LOOP.format(body=body, before=before, trip=trip, begins=begins,
                       outputs="count, " if counter else "", initial="zero, " if counter else "",
                       states="int64 k, " if counter else "", nexts="int64 k2, " if counter else "")


FORMS = {
    "iteration": loop("d = Identity (c) e = Gather (x, i)"),
    "counter": loop("d = Identity (c) e = Gather (x, k) k2 = Add (k, one)", counter=True),
    "clamped": loop("d = Identity (c) low = Max (i, zero) high = Min (low, end) e = Gather (x, high)"),
    "counted_from_end_if_negative": loop(
        "d = Identity (c) below = Less (i, zero) other = Add (i, n) k = Where (below, other, i) e = Gather (x, k)"
    ),
    "slice": loop("d = Identity (c) j = Add (i, one) a = Unsqueeze (i, ax) b = Unsqueeze (j, ax) "
                  "f = Slice (x, a, b, ax) e = Squeeze (f, ax)", "ax = Constant <value_ints = [0]> ()"),
    "in_a_branch": loop("d = Identity (c) total = ReduceSum <keepdims = 0> (s) sign = Less (total, nothing) "
                        "e = If (sign) <then_branch = a () => (p) { p = Gather (x, i) }, else_branch = b () => (q) "
                        "{ r = Gather (x, i) q = Neg (r) }>", "nothing = Constant <value_float = 0.0> ()"),
    "condition": loop("j = Add (i, one) d = Less (j, n) e = Gather (x, i)", begins="go"),
    "while": loop("j = Add (i, one) d = Less (j, n) e = Gather (x, i)", trip='""', begins="go"),
}


def whole(model: bytes, feeds: dict[str, Any]) -> list[Any]:
    """In the worker: one run over the sequence."""
    import onnxruntime

    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)


def require_equal(model: onnx.ModelProto, folder: Path, transform: str = OPTION, **options: Any) -> None:
    rng = np.random.default_rng(0)
    x, start = (rng.standard_normal(shape, np.float32) for shape in ((LENGTH, 2, 3), (2, 3)))
    save_model(convert_model(model, transform=transform, **options), folder / "model.xml")
    sequences = [[{"x": x[place : place + 1], "start": start} for place in range(LENGTH)] for _ in range(2)]
    wanted = isolated(whole, model.SerializeToString(), {"x": x, "start": start})
    for steps in isolated(stepped, str(folder / "model.xml"), sequences):
        for place, array in enumerate(wanted):
            assert difference([step[place] for step in steps], array) == ""


@pytest.mark.parametrize("form", FORMS)
def test_a_loop(form: str, tmp_path: Path) -> None:
    require_equal(parsed(FORMS[form], 17), tmp_path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("transform", [OPTION, "LowLatency2[use_const_initializer=False]"])
def test_a_loop_of_one_step_is_not_unrolled(form: str, transform: str, tmp_path: Path) -> None:
    """With --unroll it would be gone before its state becomes a variable."""
    options: dict[str, Any] = {} if transform is OPTION else {"input": "x[1,2,3],start"}
    require_equal(parsed(FORMS[form], 17), tmp_path, transform, unroll=4, **options)


def test_a_loop_in_the_step_is_unrolled(tmp_path: Path) -> None:
    model = parsed(loop("""d = Identity (c) f = Gather (x, i) three = Constant <value_int = 3> ()
      e = Loop (three, "", f) <body = inner (int64 j, bool g, float[2,3] t) => (bool o, float[2,3] u) {
        o = Identity (g) u = Tanh (t) }>"""), 17)
    require_equal(model, tmp_path, unroll=4)
    assert not any(node.bodies for node in convert_model(model, transform=OPTION, unroll=4).graph)


@pytest.mark.parametrize("form", ["condition", "while"])
def test_a_condition_that_ends_behind_the_only_step(form: str, tmp_path: Path) -> None:
    option = "LowLatency2[use_const_initializer=False]"
    require_equal(parsed(FORMS[form], 17), tmp_path, option, input="x[1,2,3],start")


ANY_BATCH = FORMS["iteration"].replace("float[2,3] s)", "s)").replace("float[2,3] next, float[2,3] out", "next, out")
LSTM = """main (float[T,2,3] x, float[1,2,3] start) => (all, last) {
  all, last, cell = LSTM <hidden_size = 3> (x, w, r, "", "", start, start) }"""


@pytest.mark.parametrize("declared", ["T", "1"])
@pytest.mark.parametrize("kind", ["loop", "lstm"])
def test_the_step_may_not_change(kind: str, declared: str, tmp_path: Path) -> None:
    """The length 1 of a sequence is checked, set by the option or declared by the model."""
    text = {"loop": ANY_BATCH, "lstm": LSTM}[kind]
    option = OPTION if declared == "T" else "LowLatency2[use_const_initializer=False]"
    made = convert_model(of_length(text, declared), transform=option)
    save_model(made, tmp_path / "model.xml")
    assert made.graph.rt_info["sizes"]["x"].partition(",")[0] == "1"
    rng = np.random.default_rng(0)
    batch = 2
    x = rng.standard_normal((LENGTH, batch, 3), np.float32)
    start = rng.standard_normal((batch, 3) if kind == "loop" else (1, batch, 3), np.float32)
    steps = [{"x": x[place : place + 1], "start": start} for place in range(LENGTH)]
    wanted = isolated(whole, of_unknown_sizes(of_length(text, "T")).SerializeToString(), {"x": x, "start": start})
    for found in isolated(stepped, str(tmp_path / "model.xml"), [steps, steps], True):
        for place, array in enumerate(wanted):
            assert difference([step[place] for step in found], array) == ""
    two = {"x": x[:2], "start": start}
    raised(IsolatedError, isolated, stepped, str(tmp_path / "model.xml"), [[two]], True, match="split")


def of_length(text: str, length: str) -> onnx.ModelProto:
    model = parsed(text.replace("float[T,", f"float[{length},"), 17)
    return with_weights(model, {name: floats(1, 12, 3, seed=ord(name)) for name in "wr"} if "LSTM" in text else {})


def test_a_declared_length_is_not_set(tmp_path: Path) -> None:
    """Another input may have the same length."""
    with pytest.raises(UnsupportedError, match="runs 5 times, not once"):
        convert_model(of_length(FORMS["iteration"], "5"), transform=OPTION)


# -- States whose batch has another name than that of the inputs, is not their first size, or is known


RANDOM = np.random.default_rng(5)
WEIGHTS = {kind: [", ".join(f"{each:.2f}" for each in RANDOM.standard_normal(2 * gates * size)) for size in (3, 2)]
           for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))}


def layer(kind: str, of_x: str, own: str) -> Carried:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    cell = kind == "LSTM"
    w, r = WEIGHTS[kind]
    model = parsed(f"""
      main (float[1,{of_x},3] x, float[1,{own},2] h{f", float[1,{own},2] c" if cell else ""})
        => (float[1,1,n,2] y, float[1,n,2] hn{", float[1,n,2] cn" if cell else ""})
      <float[1,{2 * gates},3] w = {{{w}}}, float[1,{2 * gates},2] r = {{{r}}}> {{
        y, hn{", cn" if cell else ""} = {kind} <hidden_size = 2> (x, w, r, , , h{", c" if cell else ""}) }}""")
    states = {"h": State("hn", (1, "B", 2), np.float32)}
    if cell:
        states["c"] = State("cn", (1, "B", 2), np.float32)
    return Carried(kind, model, states, ("y", *(each.after for each in states.values())), is_found=True)


def with_steps(model: Carried, beams: bool, *, first: bool = False, known: bool = False) -> Carried:
    """Sequences of x [1,batch,3], or [batch,3]."""
    generator = np.random.default_rng(6)
    model.beams, model.batches = beams, (2, 2, 2) if known else (2, 1, 3, 3)
    for batch in model.batches:
        steps = []
        for number in range(4):
            x = generator.standard_normal((batch, 3) if first else (1, batch, 3)).astype(np.float32)
            order = generator.integers(0, batch, batch) if number else np.arange(batch)
            steps.append({"x": x, **({"beam_idx": order.astype(np.int32)} if beams else {})})
        model.sequences.append(steps)
    return model


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("of_x, own", [("a", "b"), ("B", "B"), ("2", "2")])
@pytest.mark.parametrize("beams", [False, True])
def test_recurrent_layers(kind: str, of_x: str, own: str, beams: bool) -> None:
    model = with_steps(layer(kind, of_x, own), beams, known=own == "2")
    assert isolated(compared_carried, model, chosen_interpreter()) == ""


BATCHES_FORMS = {
    "sum": ("{own},3", "hn = Add (x, h) y = Neg (hn)", ("B", 3)),
    "mean": ("{own},3", "k = Constant <value_float = 0.5> () p = Mul (h, k) hn = Add (x, p) y = Tanh (hn)", ("B", 3)),
    "window": ("{own},3,3", """u = Unsqueeze (x, one) w = Concat <axis = 1> (h, u) hn = Slice (w, from, far, one)
        y = ReduceSum <keepdims = 0> (w, one)""", ("B", 3, 3)),
    "frames": ("3,{own},3", """u = Unsqueeze (x, nil) p = Slice (h, one, far, nil) hn = Concat <axis = 0> (p, u)
        y = ReduceSum <keepdims = 0> (h, nil)""", (3, "B", 3)),
}


@pytest.mark.parametrize("name", sorted(BATCHES_FORMS))
@pytest.mark.parametrize("of_x, own", [("a", "b"), ("2", "2")])
@pytest.mark.parametrize("beams", [False, True])
def test_states(name: str, of_x: str, own: str, beams: bool) -> None:
    shape, body, sizes = BATCHES_FORMS[name]
    dims = shape.format(own=own)
    model = parsed(f"""main (float[{of_x},3] x, float[{dims}] h) => (float[m,3] y, float[{dims}] hn)
      <int64[1] nil = {{0}}, int64[1] one = {{1}}, int64[1] from = {{-3}}, int64[1] far = {{99}}> {{ {body} }}""")
    made = Carried(name, model, {"h": State("hn", sizes, np.float32)}, ("y", "hn"))
    assert isolated(compared_carried, with_steps(made, beams, first=True, known=own == "2"), chosen_interpreter()) == ""
