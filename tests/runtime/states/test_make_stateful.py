"""Variables for states that the caller carries: random models, delays, prepared inputs."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest

from mo_loop.api import convert_model
from mo_loop.errors import UnsupportedError, UsageError
from tests.cases import read_cases
from tests.fuzz.states.comparing import compared as compared
from tests.fuzz.states.models import STEPS as STEPS
from tests.fuzz.states.models import Recurrent as Recurrent
from tests.harness import every, parsed, raised, with_weights
from tests.runtime.states.stepping import Feeds, Sequence, stepped

# -- Small random models: steps with variables give the numbers of states that the caller carries


class Form(NamedTuple):
    """Inputs besides x: float[batch,L,3], outputs besides z: float[batch,L,3], and what computes them."""

    inputs: str
    outputs: str
    body: str
    states: int = 1


FORMS = {
    "appended": Form(
        "float[batch,T,3] past", "float[batch,R,3] present",
        "present = Concat <axis = 1> (past, x) s = ReduceSum <keepdims = 1> (present, one) z = Mul (s, x)",
    ),
    "appended in front of the batch": Form("float[T,batch,3] past", "float[R,batch,3] present",
                                           """p = Transpose <perm = [1, 0, 2]> (x) present = Concat <axis = 0> (past, p)
           s = ReduceSum <keepdims = 1> (present, nil) q = Transpose <perm = [1, 0, 2]> (s) z = Mul (q, x)"""),
    "summed": Form("float[batch,3] past", "float[batch,3] present",
                   """s = ReduceSum <keepdims = 0> (x, one) present = Add (past, s)
           u = Unsqueeze (present, one) z = Mul (u, x)"""),
    "two that swap": Form("float[batch,3] h0, float[batch,3] c0", "float[batch,3] hN, float[batch,3] cN",
                          """s = ReduceSum <keepdims = 0> (x, one) a = Add (c0, s) hN = Tanh (a) cN = Sub (h0, s)
           u = Unsqueeze (hN, one) z = Mul (u, x)""", 2),
    "a window": Form(
        "float[batch,4,3] past", "float[batch,4,3] present",
        """all = Concat <axis = 1> (past, x) a = Constant <value_ints = [-4]> () b = Constant <value_ints = [9999]> ()
           present = Slice (all, a, b, one) s = ReduceMean <keepdims = 1> (present, one) z = Mul (s, x)""",
    ),
    "written": Form("float[batch,4,3] past", "float[batch,4,3] present",
                    """l = ReduceSum <keepdims = 1> (x, one) at = Constant <value = int64[1,1,3] {1, 3, 2}> ()
           n = Shape <start = 0, end = 1> (x) rest = Constant <value_ints = [1, 3]> () to = Concat <axis = 0> (n, rest)
           i = Expand (at, to) present = ScatterElements <axis = 1> (past, i, l)
           s = ReduceSum <keepdims = 1> (present, one) z = Mul (s, x)"""),
    "counted": Form("float[batch,1,3] past, int64[1] n0", "float[batch,1,3] present, int64[1] nN",
                    """l = Shape <start = 1, end = 2> (x) nN = Add (n0, l) f = CastLike (nN, x)
           s = ReduceSum <keepdims = 1> (x, one) present = Add (past, s) g = Mul (present, x) z = Mul (g, f)""", 2),
    "stacked": Form("float[2,batch,T,3] past", "float[2,batch,R,3] present",
                    """a, b = Split <axis = 0, num_outputs = 2> (past) c = Squeeze (a, nil) d = Squeeze (b, nil)
           e = Concat <axis = 1> (c, x) y = Neg (x) f = Concat <axis = 1> (d, y)
           g = Unsqueeze (e, nil) h = Unsqueeze (f, nil) present = Concat <axis = 0> (g, h)
           s = ReduceSum <keepdims = 1> (e, one) z = Mul (s, x)"""),
    "in a branch": Form("float[batch,T,3] past", "float[batch,R,3] present",
                        """t = ReduceSum <keepdims = 0> (x) o = Constant <value_float = 0.0> () c = Greater (t, o)
           present = If (c) <
             then_branch = g () => (float[batch,Q,3] a) { a = Concat <axis = 1> (past, x) },
             else_branch = h () => (float[batch,T,3] b) { b = Identity (past) }>
           s = ReduceSum <keepdims = 1> (present, one) z = Mul (s, x)"""),
    "begun again in a branch": Form(
        "float[batch,T,3] past", "float[batch,R,3] present",
        """t = ReduceSum <keepdims = 0> (x) o = Constant <value_float = 0.0> () c = Greater (t, o)
           present = If (c) <
             then_branch = g () => (float[batch,Q,3] a) { a = Concat <axis = 1> (past, x) },
             else_branch = h () => (float[batch,L,3] b) { b = Neg (x) }>
           s = ReduceSum <keepdims = 1> (present, one) z = Mul (s, x)""",
    ),
    "appended in front": Form(
        "float[batch,T,3] past", "float[batch,R,3] present",
        "present = Concat <axis = 1> (x, past) s = ReduceSum <keepdims = 1> (present, one) z = Mul (s, x)",
    ),
    "in a loop": Form("float[batch,3] past", "float[batch,3] present",
                      """p = Transpose <perm = [1, 0, 2]> (x) n = Shape <start = 0, end = 1> (p) m = Squeeze (n)
           present = Loop (m, , past) <body = step (int64 i, bool c, float[batch,3] s) => (bool d, float[batch,3] t) {
             d = Identity (c) r = Gather (p, i) a = Add (s, r) t = Tanh (a) }>
           u = Unsqueeze (present, one) z = Mul (u, x)"""),
}
COUNT = {"LSTM": 4, "GRU": 3, "RNN": 1}


def model_of(form: Form, batch: str = "batch", width: int = 3) -> onnx.ModelProto:
    text = f"""main (float[batch,L,3] x, {form.inputs}) => (float[batch,L,3] z, {form.outputs}) {{
        one = Constant <value_ints = [1]> () nil = Constant <value_ints = [0]> () {form.body} }}"""
    if width == 1:
        text = text.replace(",3]", ",1]").replace("{1, 3, 2}", "{1}").replace("[1, 3]", "[1, 1]")
    return parsed(text.replace("[batch,", f"[{batch},").replace(",batch,", f",{batch},"))


def sequences(seed: int, batches: tuple[int, ...] = (2, 1, 3), width: int = 3) -> list[Sequence]:
    random = np.random.default_rng(seed)

    def steps(batch: int) -> Iterator[dict[str, Any]]:
        for _ in range(6):
            yield {"x": random.standard_normal((batch, random.integers(1, 4), width)).astype(np.float32)}

    return [Sequence(batch, list(steps(batch))) for batch in batches]


@every(name=sorted(FORMS), beams=[False, True])
def test_steps(name: str, beams: bool) -> None:
    form = FORMS[name]
    found = stepped(model_of(form), sequences(1), beams=beams)
    assert found.worst < 1e-5
    assert found.kinds["MemoryInput"] == form.states


@every(name=sorted(FORMS), width=[3, 1])
def test_batch_of_one(name: str, width: int) -> None:
    """The same states are found where the batch is 1, and where other sizes are 1 as well."""
    form = FORMS[name]
    found = stepped(model_of(form, "1", width), sequences(1, (1,), width))
    assert found.worst < 1e-5
    assert found.kinds["MemoryInput"] == form.states


@every(kind=sorted(COUNT), seed=range(3))
def test_recurrent_layers(kind: str, seed: int) -> None:
    """Several steps at once: the last states of one call are the first of the next."""
    random = np.random.default_rng(seed)
    cell = ", float[1,batch,2] c0" if kind == "LSTM" else ""
    out = ", float[1,batch,2] cN" if kind == "LSTM" else ""
    model = parsed(f"""
        main (float[L,batch,3] x, float[1,batch,2] h0{cell}) => (float[L,1,batch,2] z, float[1,batch,2] hN{out})
        <float[1,{2 * COUNT[kind]},3] w, float[1,{2 * COUNT[kind]},2] r> {{
          z, hN{", cN" if cell else ""} = {kind} <hidden_size = 2> (x, w, r, , , h0{", c0" if cell else ""}) }}""")
    del model.graph.value_info[:]
    for name, width in (("w", 3), ("r", 2)):
        array = random.standard_normal((1, 2 * COUNT[kind], width)).astype(np.float32)
        with_weights(model, {name: array})
    runs = [
        Sequence(batch, [{"x": random.standard_normal((length, batch, 3)).astype(np.float32)} for length in (2, 1, 4)])
        for batch in (2, 1)
    ]
    found = stepped(model, runs)
    assert found.worst < 1e-5
    assert found.kinds["MemoryInput"] == (2 if kind == "LSTM" else 1)


def test_an_input_of_that_name() -> None:
    model = parsed("""main (float[batch,1] x, float[batch,T] past, int32[batch] beam_idx) => (float[batch,R] present) {
        g = Gather <axis = 0> (past, beam_idx) present = Concat <axis = 1> (g, x) }""")
    raised(UsageError, convert_model, model, stateful=True, beam_idx=True, match="has an input 'beam_idx' already")


def test_an_unknown_dimension() -> None:
    form = Form("float[A,B] past", "float[A,B] present", "present = Tanh (past) z = Identity (x)")
    with pytest.raises(UnsupportedError, match=r"dimension 0 .* A is the size of no other input") as raised:
        convert_model(model_of(form), stateful=True, stateful_pairs={"past": "present"})
    assert raised.value.code == "ML327"


# -- States that become an input, a view of one, a part of one, or a constant: lines of delays


BODIES = {
    "the element before": "next = Identity (e) out = Add (s, e)",
    "pre-emphasis": "k = Constant <value_float = 0.97> () p = Mul (s, k) out = Sub (e, p) next = Identity (e)",
    "of a constant": "out = Add (s, e) next = Constant <value = float[2,3] {1, 2, 3, 4, 5, 6}> ()",
    "computed": "out = Sub (s, e) next = Tanh (e)",
}
"""The bodies of a Scan: (float[2,3] s, float[2,3] e) => (float[2,3] next, float[2,3] out)."""


DELAYS = {
    "bare": ("2,3", "hn = Identity (x) y = Add (h, x)", "2,3"),
    "squeezed": ("2,3", "hn = Squeeze (x, nil) y = Add (h, hn)", "1,2,3"),
    "reshaped": ("6", "six = Constant <value_ints = [6]> () hn = Reshape (x, six) y = Mul (h, h)", "2,3"),
    "transposed": ("3,1", "hn = Transpose <perm = [1, 0]> (x) y = Mul (h, h)", "1,3"),
    "a part": ("2,2", "hn = Slice (x, two, far, one) y = Add (h, hn)", "2,4"),
    "last frames": ("3,2", "t = Slice (h, one, far, nil) hn = Concat <axis = 0> (t, x) y = Mul (hn, h)", "1,2"),
    "newest first": ("3,2", "a, b = Split <axis = 0> (h, parts) hn = Concat <axis = 0> (x, a) y = Mul (hn, h)", "1,2"),
    "of any batch": ("batch,3", "hn = Squeeze (x, nil) y = Add (h, hn)", "1,batch,3"),
    "written to": ("2,3", "a, b = Split <axis = 0> (h, ones) hn = ScatterElements <axis = 0> (x, at, a) y = Mul (h, h)",
                   "2,3"),
}
"""The shape of a state h, what computes its next value hn, and the shape of x."""


# -- Mean, scale, layout and channel order of the inputs of models with states: states take no part in them


STEP = """main (float[batch,3,4,2] x, float[batch,3,4,2] h0) => (float[batch,3,4,2] y, float[batch,3,4,2] hN) {
  s = Add (x, h0) hN = Tanh (s) y = Mul (x, hN) }"""
"""A picture and a state of its shape."""

CACHE = """main (float[batch,L,3] x, float[batch,T,3] past) => (float[batch,L,3] y, float[batch,R,3] present) {
  one = Constant <value_ints = [1]> () present = Concat <axis = 1> (past, x)
  s = ReduceSum <keepdims = 1> (present, one) y = Mul (s, x) }"""

MEAN, SCALE = np.float32([1, 2, 3]).reshape(3, 1, 1), np.float32([2, 4, 5]).reshape(3, 1, 1)


def of_x(change: Callable[[Any], Any]) -> Callable[[Feeds], Feeds]:
    return lambda feeds: {**feeds, "x": np.ascontiguousarray(change(feeds["x"]))}


def steps(*shape: int) -> list[Sequence]:
    random = np.random.default_rng(5)
    return [Sequence(shape[0], [{"x": random.standard_normal(shape).astype(np.float32)} for _ in range(4)])]


@pytest.mark.parametrize("name, options, prepared", [
    ("scale", {"scale": 2.0}, lambda x: x / 2),
    ("of all inputs", {"mean_values": "[1,2,3]", "scale_values": [2, 4, 5]}, lambda x: (x - MEAN) / SCALE),
    ("by name", {"mean_values": "x[1,2,3]", "scale_values": "x[2]"}, lambda x: (x - MEAN) / 2),
    ("reversed", {"reverse_input_channels": True, "layout": "x(nchw)"}, lambda x: x[:, ::-1]),
])
@pytest.mark.parametrize("asked", [{}, {"transform": "MakeStateful[param_res_names={'h0':'hN'}]"}])
def test_values(name: str, options: dict[str, Any], prepared: Callable[[Any], Any], asked: dict[str, Any]) -> None:
    assert stepped(parsed(STEP), steps(2, 3, 4, 2), prepared=of_x(prepared), **options, **asked).worst < 1e-5


def test_a_layout() -> None:
    found = stepped(
        parsed(STEP), steps(2, 4, 2, 3), prepared=of_x(lambda x: (x - MEAN.reshape(3)).transpose(0, 3, 1, 2)),
        layout="nchw->nhwc", mean_values=[1, 2, 3],
    )
    assert found.worst < 1e-5


@pytest.mark.parametrize("beams", [False, True])
def test_a_cache(beams: bool) -> None:
    """The index of sequences is not an input that is prepared."""
    found = stepped(parsed(CACHE), steps(2, 1, 3), beams=beams, prepared=of_x(lambda x: (x - MEAN.reshape(3)) / 2),
                    mean_values="[1,2,3]", scale=2, layout="n?c")
    assert found.worst < 1e-5


@pytest.mark.parametrize("options", [
    {"mean_values": "h0[1]"}, {"scale_values": "x[2],h0[2]"}, {"layout": "h0(nchw->nhwc)"}, {"layout": "h0(nchw)"},
    {"layout": "hN(nchw->nhwc)"}, {"layout": {"x": "nchw", "hN": ("nchw", "nhwc")}, "batch": 2},
])
def test_a_state_is_not_prepared(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="is no longer an input or output") as error:
        convert_model(parsed(STEP), stateful=True, **options)
    assert error.value.code == "ML202"
    assert "the input 'h0' and the output 'hN' became the state 'h0hN'" in str(error.value)


def test_the_number_of_inputs_is_that_without_states() -> None:
    with pytest.raises(UsageError, match=r"numbers of values \(2\) and of inputs \(1\) differ[^~]*name them: x"):
        convert_model(parsed(STEP), stateful=True, mean_values=[[1], [2]])


def test_only_states_to_scale() -> None:
    model = parsed("""main (int64[batch] x, float[batch] h0) => (float[batch] y, float[batch] hN) {
        f = Cast <to = 1> (x) hN = Add (f, h0) y = Neg (hN) }""")
    raised(UsageError, convert_model, model, stateful=True, scale=2, match="--scale changes nothing")


read_cases(globals())
