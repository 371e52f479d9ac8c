"""States whose batch has another name than that of the inputs, is not their first size, or is known."""

import numpy as np
import pytest

from mo_loop.compare.execution.isolated import isolated
from tests.fuzz.states.carried import Carried, State
from tests.fuzz.states.comparing import compared_carried
from tests.harness import parsed
from tools.runtimes import chosen_interpreter

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


FORMS = {
    "sum": ("{own},3", "hn = Add (x, h) y = Neg (hn)", ("B", 3)),
    "mean": ("{own},3", "k = Constant <value_float = 0.5> () p = Mul (h, k) hn = Add (x, p) y = Tanh (hn)", ("B", 3)),
    "window": ("{own},3,3", """u = Unsqueeze (x, one) w = Concat <axis = 1> (h, u) hn = Slice (w, from, far, one)
        y = ReduceSum <keepdims = 0> (w, one)""", ("B", 3, 3)),
    "frames": ("3,{own},3", """u = Unsqueeze (x, nil) p = Slice (h, one, far, nil) hn = Concat <axis = 0> (p, u)
        y = ReduceSum <keepdims = 0> (h, nil)""", (3, "B", 3)),
}


@pytest.mark.parametrize("name", sorted(FORMS))
@pytest.mark.parametrize("of_x, own", [("a", "b"), ("2", "2")])
@pytest.mark.parametrize("beams", [False, True])
def test_states(name: str, of_x: str, own: str, beams: bool) -> None:
    shape, body, sizes = FORMS[name]
    dims = shape.format(own=own)
    model = parsed(f"""main (float[{of_x},3] x, float[{dims}] h) => (float[m,3] y, float[{dims}] hn)
      <int64[1] nil = {{0}}, int64[1] one = {{1}}, int64[1] from = {{-3}}, int64[1] far = {{99}}> {{ {body} }}""")
    made = Carried(name, model, {"h": State("hn", sizes, np.float32)}, ("y", "hn"))
    assert isolated(compared_carried, with_steps(made, beams, first=True, known=own == "2"), chosen_interpreter()) == ""
