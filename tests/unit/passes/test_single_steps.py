"""Operations that a model must not have outside of its steps, to be computed one step at a time."""

import warnings

import pytest

from mo_loop import convert_model
from mo_loop.errors import ConversionErrors, ConversionWarning, UnsupportedError
from mo_loop.transforms.states.low_latency2 import LowLatency2
from tests.cases import read_cases
from tests.harness import parsed
from tests.texts import texts

TEXTS = texts(__file__)

SET = "LowLatency2[use_const_initializer=False,sequence_length=1]"
GIVEN = "LowLatency2[use_const_initializer=False]"

INDEXED = TEXTS["indexed"]

LAYER = TEXTS["layer"]


def layer(before: str = "seen = Identity (x)", after: str = "", outputs: str = "y", lens: str = '""') -> str:
    return LAYER.format(before=before, after=after, outputs=outputs, lens=lens)


MIXED = {
    "reads the sequence backwards": layer(
        "a = Constant <value_ints = [-1]> () b = Constant <value_ints = [-9223372036854775807]> () "
        "z = Constant <value_ints = [0]> () seen = Slice (x, a, b, z, a)"),
    "ReverseSequence seen reads the sequence backwards": layer(
        "seen = ReverseSequence <time_axis = 0, batch_axis = 1> (x, many)", lens="lens"
    ).replace("seen =", "many = Cast <to = 7> (lens) seen =", 1),
    "has a window of 3 steps": layer(
        "turned = Transpose <perm = [1, 2, 0]> (x) k = Constant <value = float[3,1,3] {1,1,1,1,1,1,1,1,1}> () "
        "mixed = Conv <pads = [1, 1], group = 3> (turned, k) seen = Transpose <perm = [2, 0, 1]> (mixed)"),
    "reduces all steps": layer(after="mean = ReduceMean <axes = [0], keepdims = 0> (y)", outputs="mean"),
    "mean reduces all steps": layer(
        after="size = Constant <value_ints = [2, 1, 1, 1, 1]> () wide = Expand (y, size) "
        "mean = ReduceMean <axes = [1], keepdims = 0> (wide)", outputs="mean"),
    "normalises over all steps": layer(after="soft = Softmax <axis = 0> (y)", outputs="soft"),
    "adds up the steps": layer("z = Constant <value_int = 0> () seen = CumSum (x, z)"),
    "sums over all steps": layer(
        "turned = Transpose <perm = [1, 2, 0]> (x) again = Transpose <perm = [1, 0, 2]> (x) "
        "seen = Identity (x)", "product = MatMul (turned, again)", "y, product"),
    "leaves out some steps": layer(
        after="a = Constant <value_ints = [1]> () b = Constant <value_ints = [9223372036854775807]> () "
        "z = Constant <value_ints = [0]> () part = Slice (y, a, b, z)", outputs="part"),
}

SEPARATE = {
    "a window of one step": layer(
        "turned = Transpose <perm = [1, 2, 0]> (x) k = Constant <value = float[3,1,1] {1,1,1}> () "
        "mixed = Conv <group = 3> (turned, k) seen = Transpose <perm = [2, 0, 1]> (mixed)"),
    "a mean of features": layer(after="mean = ReduceMean <axes = [3], keepdims = 0> (y)", outputs="mean"),
    "a softmax of features": layer("seen = Softmax <axis = 2> (x)"),
    "a reversal of features": layer(
        "a = Constant <value_ints = [-1]> () b = Constant <value_ints = [-9223372036854775807]> () "
        "z = Constant <value_ints = [2]> () seen = Slice (x, a, b, z, a)"),
    "the last step": layer(
        after="axis = Constant <value_ints = [1]> () all = Squeeze (y, axis) end = Constant <value_int = -1> () "
        "last = Gather (all, end)", outputs="last"),
    "slices of unknown steps": layer(
        "n = Cast <to = 7> (lens) z = Constant <value_ints = [0]> () at = ReduceSum (n, z) seen = Identity (x)",
        "a = Slice (y, z, at, z, at) b = Slice (y, z, at, at)", "a, b"),
    "the number of steps": layer(after="size = Shape (y) all = ReduceProd <keepdims = 0> (size)", outputs="y, all"),
    "lengths by a mask": layer(
        "seen = Identity (x) z = Constant <value_ints = [0]> () sum = ReduceSum <keepdims = 0> (mask, z) "
        "count = Cast <to = 6> (sum)", lens="count"),
    "a linear layer": layer("k = Constant <value = float[3,3] {1,2,3,4,5,6,7,8,9}> () seen = MatMul (x, k)"),
}

NESTED = TEXTS["nested"]


def refused(text: str, transform: str = SET, **options: object) -> list[str]:
    with pytest.raises((UnsupportedError, ConversionErrors)) as error:
        convert_model(parsed(text, opset=17), transform=transform, **options)  # type: ignore[arg-type]
    errors = error.value.errors if isinstance(error.value, ConversionErrors) else [error.value]
    assert {each.code for each in errors} == {"ML350"}
    return [str(each) for each in errors]


# -- indices


@pytest.mark.parametrize(("body", "first"), [
    ("back = Sub (i, one) place = Max (back, zero) k2 = Identity (k)", "zero"),  # the step before
    ("place = Identity (k) go = ReduceSum <keepdims = 0> (s) m = Cast <to = 7> (go) k2 = Add (k, m)", "zero"),
    ("place = Identity (k) k2 = Add (k, one)", "one"),  # the next step
    ("place = Mul (i, one) two = Add (one, one) half = Div (i, two) k2 = Identity (half)", "zero"),
    ("narrow = Cast <to = 3> (i) place = Cast <to = 7> (narrow) k2 = Identity (k)", "zero"),  # of 128 it is -128
])
def test_an_index_of_another_step_is_refused(body: str, first: str) -> None:
    """It was replaced by 0, the step itself."""
    if "half" in body:
        body = body.replace("place = Mul (i, one)", "place = Identity (k)")
    text = INDEXED.format(body=body, first=first)
    assert "at another place than that of the step (e)" in refused(text)[0]
    assert "at another place than that of the step (e)" in refused(text, GIVEN, input="x[1,2],start")[0]


@pytest.mark.parametrize("body", ["place = Identity (i) k2 = Identity (k)", "place = Identity (k) k2 = Add (one, k)"])
def test_the_index_of_the_step_is_none(body: str) -> None:
    convert_model(parsed(INDEXED.format(body=body, first="zero"), opset=17), transform=SET)


# -- what surrounds the loop


@pytest.mark.parametrize("what", MIXED)
def test_what_mixes_steps_is_refused_where_the_option_makes_them_one(what: str) -> None:
    """Such models gave wrong numbers, or failed at run time."""
    (message,) = refused(MIXED[what])
    assert what in message


@pytest.mark.parametrize("what", [each for each in MIXED if each != "leaves out some steps"])  # there it is empty
def test_what_mixes_steps_is_a_warning_where_the_model_has_one(what: str) -> None:
    with pytest.warns(ConversionWarning, match=what) as record:
        convert_model(parsed(MIXED[what], opset=17), transform=GIVEN, input="x[1,2,3]")
    assert [each.message.code for each in record] == ["ML526"]  # type: ignore[union-attr]


@pytest.mark.parametrize("what", SEPARATE)
@pytest.mark.parametrize("given", [False, True])
def test_what_leaves_steps_apart_is_neither(what: str, given: bool) -> None:
    options = {"transform": GIVEN, "input": "x[1,2,3],mask[1,2]"} if given else {"transform": SET}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        convert_model(parsed(SEPARATE[what], opset=17), **options)  # type: ignore[arg-type]


def test_every_operation_that_mixes_steps_is_named() -> None:
    text = layer("z = Constant <value_int = 0> () seen = CumSum (x, z)", "soft = Softmax <axis = 0> (y)", "soft")
    assert len(refused(text)) == 2


def test_the_pass_alone_refuses_as_well() -> None:
    graph = convert_model(parsed(MIXED["adds up the steps"], opset=17)).graph
    with pytest.raises(UnsupportedError, match="adds up the steps"):
        LowLatency2(use_const_initializer=False, sequence_length=1).run(graph)
    assert next(each.output.shape for each in graph.parameters if each.name == "x")[0] != 1


def test_an_operation_in_a_branch_is_named_with_its_place() -> None:
    text = """main (float[T,2] x, float[2] s, bool b) => (y) {
      all = If (b) <then_branch = yes () => (p) { p = Softmax <axis = 0> (x) }, else_branch = no () => (q)
        { q = Neg (x) }>
      last, y = Scan <num_scan_inputs = 1, body = step (float[2] a, float[2] e) => (float[2] c, float[2] d) {
        c = Add (a, e) d = Tanh (c)
      }> (s, all)
    }"""
    with pytest.raises(UnsupportedError, match="SoftMax p normalises over all steps") as error:
        convert_model(parsed(text, opset=17), transform=SET)
    assert error.value.where == "all/yes/p"


# -- loops in loops


def test_a_step_in_a_loop_that_stays_is_refused() -> None:
    """It had no variable, and a warning that named nothing."""
    (message,) = refused(NESTED.format(), GIVEN, input="x[1,2,3],start[2,3]")
    assert "is in the body of TensorIterator y, which stays" in message


def test_a_step_in_a_loop_that_runs_once_is_none() -> None:
    model = convert_model(parsed(NESTED.format(), opset=17), transform=GIVEN, input="x[1,1,3],start[1,3]")
    assert "ReadValue" in {node.type for node in model.graph.ordered()}


# -- the help with an unknown number of steps


def test_the_help_names_the_trip_count() -> None:
    text = """main (float[T,2] x, int64 n, float[2] start) => (last) {
      last = Loop (n, "", start) <body = step (int64 i, bool c, float[2] s) => (bool d, float[2] next) {
        d = Identity (c) e = Gather (x, i) next = Add (s, e)
      }>
    }"""
    assert "--freeze n=1" in refused(text)[0] and "--freeze n=1" in refused(text, GIVEN, input="x[1,2],n,start")[0]
    convert_model(parsed(text, opset=17), transform=GIVEN, input="x[1,2],n,start", freeze={"n": 1})


def test_the_help_does_not_name_the_option_that_is_given() -> None:
    (message,) = refused(NESTED.format())
    assert "unknown number of steps" in message and "LowLatency2[sequence_length=1]" not in message


read_cases(globals())
