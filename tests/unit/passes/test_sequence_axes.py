"""Which axis of a state --beam-idx reorders."""

import pytest

from mo_loop.api import convert_model
from mo_loop.errors import UnsupportedError
from mo_loop.graph.dimension import Dim
from mo_loop.ops.indexing import Gather
from mo_loop.ops.recurrent import ReadValue
from tests.harness import parsed

LSTM = """
  main (float[1,{batch},3] x, float[1,{own},2] h, float[1,{own},2] c)
  => (float[1,1,B,2] y, float[1,B,2] hn, float[1,B,2] cn)
  <float[1,8,3] w = {{{w}}}, float[1,8,2] r = {{{r}}}> {{ y, hn, cn = LSTM <hidden_size = 2> (x, w, r, , , h, c) }}"""
ZEROS = {"w": ", ".join(["0"] * 24), "r": ", ".join(["0"] * 16)}


def axes(text: str, **pairs: str) -> dict[str, int]:
    """The axis of the Gather after each variable."""
    graph = convert_model(parsed(text), stateful=True, stateful_pairs=pairs or None, beam_idx=True).graph
    found = {}
    for read in graph.of(ReadValue):
        for gather in (use.node for use in read.output.uses if isinstance(use.node, Gather)):
            [found[read.variable_id]] = gather.inputs[2].type.integers
    return found


@pytest.mark.parametrize("batch, own", [("2", "2"), ("1", "1"), ("B", "B"), ("a", "b")])
def test_the_batch_of_a_recurrent_layer_is_not_its_first_axis(batch: str, own: str) -> None:
    assert axes(LSTM.format(batch=batch, own=own, **ZEROS)) == {"hhn": 1, "ccn": 1}


def test_other_states_tell_the_number_of_sequences() -> None:
    text = """main (float[1,3,4] x, float[3,T,4] past, float[2,3] h)
      => (float[3,R,4] present, float[2,3] hn, float[2,1] y, float[3,R,4] z) {
        nil = Constant <value_ints = [1]> () order = Transpose <perm = [1, 0, 2]> (x)
        present = Concat <axis = 1> (past, order) z = Neg (present)
        hn = Tanh (h) y = ReduceSum <keepdims = 1> (hn, nil) }"""
    assert axes(text, past="present", h="hn") == {"pastpresent": 0, "hhn": 1}


@pytest.mark.parametrize("width", ["W", "4"])
def test_a_size_of_another_kind_is_not_the_batch(width: str) -> None:
    """The width of a picture, a size of the inputs alone, is that of its state; the sequences are along the batch."""
    text = f"""main (float[2,3,{width}] x, float[2,3,{width}] h) => (float[2,3,{width}] y, float[2,3,{width}] hn) {{
        hn = Add (x, h) y = Mul (hn, x) }}"""
    assert axes(text, h="hn") == {"hhn": 0}


def test_a_counter_is_that_of_all_sequences() -> None:
    text = """main (float[B,4] x, float[B,4] h, int64[1] n) => (float[B,4] y, float[B,4] hn, int64[1] nn) {
        o = Constant <value_ints = [1]> () nn = Add (n, o) hn = Add (x, h) f = Cast <to = 1> (nn) y = Mul (hn, f) }"""
    assert axes(text, h="hn", n="nn") == {"hhn": 0}


@pytest.mark.parametrize("shape", ["4", "2,3"])
def test_an_unknown_number_of_sequences_is_refused(shape: str) -> None:
    text = f"""main (float[1,2,3] x, float[{shape}] h) => (float[2,3] y, float[{shape}] hn) {{
        hn = Tanh (h) s = ReduceSum <keepdims = 0> (hn) t = Squeeze (x) y = Mul (t, s) }}"""
    with pytest.raises(UnsupportedError, match=r"the state 'h', .*, cannot be reordered by --beam-idx") as raised:
        axes(text, h="hn")
    assert raised.value.code == "ML327"


def test_a_state_of_unknown_size_has_its_sequences_there() -> None:
    text = """main (float[1,n,3] x, float[b,3] h) => (float[n,3] y, float[m,3] hn) {
        nil = Constant <value_ints = [0]> () t = Squeeze (x, nil) hn = Add (h, t) y = Neg (hn) }"""
    assert axes(text, h="hn") == {"hhn": 0}
    model = convert_model(parsed(text), stateful=True, stateful_pairs={"h": "hn"})
    [read] = model.graph.of(ReadValue)
    assert isinstance(read.inputs[0].type.dims[0], Dim)
