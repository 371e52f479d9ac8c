"""Which axis of a state --beam-idx reorders."""

import pytest

from mo_loop.api import convert_model
from mo_loop.errors import UnsupportedError
from mo_loop.graph.dimension import Dim as Dim
from mo_loop.ops.indexing import Gather
from mo_loop.ops.recurrent import ReadValue
from tests.cases import read_cases
from tests.harness import parsed, raised

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


@pytest.mark.parametrize("shape", ["4", "2,3"])
def test_an_unknown_number_of_sequences_is_refused(shape: str) -> None:
    text = f"""main (float[1,2,3] x, float[{shape}] h) => (float[2,3] y, float[{shape}] hn) {{
        hn = Tanh (h) s = ReduceSum <keepdims = 0> (hn) t = Squeeze (x) y = Mul (t, s) }}"""
    caught = raised(UnsupportedError, axes, text, h="hn", match=r"the state 'h', .*, cannot be reordered by --beam-idx")
    assert caught.code == "ML327"


read_cases(globals())
