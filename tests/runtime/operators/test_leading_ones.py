"""Values whose rank varies by leading sizes of 1: results of Squeeze without axes, and the operators that read them."""

import pytest

from mo_loop.api import convert_model
from mo_loop.errors import ConversionWarning, MoLoopError
from tests.cases import read_cases
from tests.harness import check, floats, parsed, raised, refusal, run_converted

SQUEEZED = {"[N, 1, 3]": ((4, 1, 3), (4, 3), "1 to 2"), "[N, 1]": ((4, 1), (4,), "0 to 1"),
            "[N, M, 1]": ((4, 2, 1), (4, 2), "0 to 2"), "[3, N, 1]": ((3, 4, 1), (3, 4), "1 to 2")}
"""Declared shape -> a shape, the one without ones, and the ranks that the latter has."""


@pytest.mark.parametrize("declared", SQUEEZED)
def test_squeeze_of_all_ones_takes_unknown_sizes_of_an_output_for_others(declared: str) -> None:
    shape, squeezed, ranks = SQUEEZED[declared]
    made = parsed(f"main (float{declared} x) => (float[] y) {{ y = Squeeze (x) }}")
    x, one = floats(*shape), floats(*(1 if size == 4 else size for size in shape))
    kept = one.reshape([1 if size == 4 else size for size in squeezed])
    with pytest.warns(ConversionWarning, match=f"the rank of the output 'y' is {ranks}, depending on the run: here it"):
        check(made, {"x": x}, {"x": one}, expected=[[("y", x.reshape(squeezed))], [("y", kept)]])
    assert "strict" in str(refusal(made, strict=True))


def test_squeeze_of_all_ones_inside_a_model_is_exact_or_refused() -> None:
    """The leading size may be 1 if what reads the result does not depend on the rank."""
    behind = parsed("main (float[N, 1] x) => (float[K] y) { s = Squeeze (x) y = Sigmoid (s) }")
    with pytest.warns(ConversionWarning, match="the rank of the output 'y' is 0 to 1, .* here it is 1"):
        check(behind, {"x": floats(4, 1)})
    whole = "main (float[N, 1, 3] x) => (float y) { s = Squeeze (x) t = Relu (s) y = ReduceSum <keepdims = 0> (t) }"
    check(parsed(whole), {"x": floats(4, 1, 3)}, {"x": floats(1, 1, 3)})
    shaped = parsed("main (float[3, N] x) => (int64[K] y) { s = Squeeze (x) y = Shape (s) }")
    assert refusal(shaped).code == refusal(shaped, input="x[3,1..]").code == "ML328"
    assert convert_model(shaped, input="x[3,2..]").graph.results[0].value.shape == (2,)


ANYWHERE = {
    "a reshape": ("y = Reshape (s, list)", "[K]"),
    "a reshape after a chain": ("a = Tanh (s)  b = Mul (a, s)  c = Add (b, half)  y = Reshape (c, list)", "[K]"),
    "some elements": ("a = Neg (s)  y = Compress (a, mask)", "[K]"),
    "different elements": ("y = Unique (s)", "[K]"),
    "a number of elements": ("a = Size (s)  y = Cast <to = 1> (a)", ""),
    "a sum": ("a = Clip (s)  y = ReduceSum <keepdims = 0> (a)", ""),
    "a second squeeze": ("a = Exp (s)  b = Squeeze (a)  y = ReduceMax <keepdims = 0> (b)", ""),
    "a loop": ('a = Loop (two, "", s) <body = b (int64 i, bool c, t) => (bool d, u) { d = Identity (c)  u = Neg (t) }> '
               "y = Reshape (a, list)", "[K]"),
    "branches": ("f = Size (s)  g = Cast <to = 9> (f)  a = If (g) <then_branch = t () => (u) { u = Neg (s) }, "
                 "else_branch = e () => (v) { v = Exp (s) }>  y = Reshape (a, list)", "[K]"),
}


DECLARED = {
    "a vector": ("[K]", "[A]", "y = Tanh (s)", [(3, 1), (1, 4)]),
    "a matrix": ("[K, L]", "[A, B]", "y = Softmax <axis = 0> (s)", [(3, 4)]),
    "an inner vector": ("[]", "[A]", "a = Neg (s)  y = Softmax <axis = 0> (a)", [(3, 1), (1, 4)]),
    "a scalar": ("", "[]", "a = Mul (s, half)  y = Tanh (a)", [(1, 1)]),
    "a product": ("[]", "[A]", "y = MatMul (s, w)", [(3, 1), (1, 3)]),
    "a sum with a vector": ("[]", "[A]", "y = Add (v, s)", [(3, 1), (1, 3)]),
    "a matrix with a bias": ("[K, L]", "[]", "a = Add (s, v)  y = MatMul (a, w)", [(4, 3)]),
    "the largest elements": ("[K]", "[]", "y, i = TopK (s, three)", [(3, 1), (1, 4)]),
    "slices": ("[]", "[A]", "y = Scan <num_scan_inputs = 1, body = b (t) => (u) { u = Neg (t) }> (s)", [(3, 1)]),
    "a state": ("[K]", "[]", 'y = Loop (two, "", s) <body = b (int64 i, bool c, t) => (bool d, u) '
                "{ d = Identity (c)  u = Cos (t) }>", [(3, 1), (1, 4)]),
    "a state of a body": ("[]", "[]", 'y = Loop (two, "", v) <body = b (int64 i, bool c, t) => '
                          "(bool d, float[P] u) { d = Identity (c)  a = Squeeze (x)  u = Neg (a) }>", [(3, 1), (1, 4)]),
    "an inner value of a body": ("[]", "[]", 'y = Loop (two, "", v) <body = b (int64 i, bool c, t) => (bool d, u) '
                                 "<float[P] a> { d = Identity (c)  a = Squeeze (x)  u = Add (t, a) }>",
                                 [(3, 1), (1, 3)]),
    "collected slices": ("[K, L]", "[]", 'y = Loop (two, "") <body = b (int64 i, bool c) => (bool d, u) '
                         "{ d = Identity (c)  a = Squeeze (x)  u = Neg (a) }>", [(3, 1), (1, 4)]),
    "branches": ("[K]", "[]", "f = ReduceMax <keepdims = 0> (x)  g = Cast <to = 9> (f)  y = If (g) <then_branch = t () "
                 "=> (u) { a = Squeeze (x)  u = Neg (a) }, else_branch = e () => (o) { o = Reshape (x, list) }>",
                 [(3, 1), (1, 4)]),
    "a function": ("[K]", "[]", "y = own.F (x)", [(3, 1), (1, 4)]),
}


@pytest.mark.parametrize("readers", DECLARED)
@pytest.mark.parametrize("opset", [11, 18])
def test_a_declaration_decides_the_rank_of_a_squeeze_of_all_ones(readers: str, opset: int) -> None:
    result, inner, nodes, sizes = DECLARED[readers]
    info = f"float{inner} s, " if inner != "[]" else ""
    made = parsed(f"""main (float[N, 1, M] x) => (float{result} y) <{info}float[3, 2] w = {{1, 2, 3, 4, 5, 6}},
        float[3] v = {{1, 2, 3}}, float half = {{0.5}}, int64 two = {{2}}, int64[1] list = {{-1}},
        int64[1] three = {{3}}>
        {{ s = Squeeze (x)  {nodes} }}
        <domain: "own", opset_import: ["": {opset}]> F (x) => (y) {{ a = Squeeze (x)  y = Softmax <axis = 0> (a) }}""",
        opset, own=1)
    with pytest.warns(ConversionWarning, match="because the model declares it|depending on the run: here it is"):
        check(made, *({"x": floats(n, 1, m)} for n, m in sizes))


@pytest.mark.parametrize("declared", ["[A]", "[A, B]"])
@pytest.mark.parametrize("size", [1, 3])
def test_sizes_that_contradict_the_declared_rank_are_an_error_of_the_runtime(declared: str, size: int) -> None:
    made = parsed(f"""main (float[N, 1, M] x) => (y) <float{declared} s>
        {{ s = Squeeze (x)  y = Softmax <axis = 0> (s) }}""")
    with pytest.warns(ConversionWarning), pytest.raises(Exception, match="conflicts with the reshape pattern"):
        run_converted(made, {"x": floats(size, 1, 1 if declared == "[A, B]" else size)})


def test_the_rank_of_a_value_that_the_runtime_cannot_check_is_not_taken_from_a_declaration() -> None:
    """A state that starts as a vector and becomes a matrix: a leading size of 1 shows no rank."""
    made = parsed("""main (float[N] x, int64 n) => (y) <float[A] last, int64[1] zero = {0}> {
        last = Loop (n, "", x) <body = b (int64 i, bool c, s) => (bool d, t)
        { d = Identity (c)  u = ReduceSum <keepdims = 0> (s)  v = Add (x, u)  t = Unsqueeze (v, zero) }>
        y = Softmax <axis = 0> (last) }""")
    assert refusal(made).code == "ML328"


@pytest.mark.parametrize(
    "nodes", ["y = Squeeze (x)", "s = Squeeze (x) y = Neg (s)", "a = Exp (x) s = Squeeze (a) y = Cos (s)"]
)
@pytest.mark.parametrize("declared", ["[N, 1]", "[1, N]", "[1]"])
def test_an_output_that_is_declared_without_dimensions_has_none(nodes: str, declared: str) -> None:
    made = parsed(f"main (float{declared} x) => (float y) {{ {nodes} }}")
    x = floats(*[1] * (declared.count(",") + 1))
    if "N" not in declared:
        check(made, {"x": x})
        return
    with pytest.warns(ConversionWarning, match="the rank of the output 'y' is 0 to 1, .* here it is 0"):
        check(made, {"x": x})


FROM_THE_END = {
    "a product": "y = MatMul (s, w)",
    "a product with a vector": "y = MatMul (s, v)",
    "products of a stack": "a = Unsqueeze (s, first)  b = MatMul (a, w)  y = MatMul (b, u)",
    "probabilities": "a = LogSoftmax <axis = -1> (s)  y = Gelu (a)",
    "a class": "a = ArgMax <axis = -1, keepdims = 0> (s)  y = Cast <to = 1> (a)",
    "classes": "a = ArgMin <axis = -1> (s)  y = Cast <to = 1> (a)",
    "a mean": "y = ReduceMean <keepdims = 0> (s, last)",
    "the largest": "y, i = TopK (s, two)",
    "parts": "a, b = Split <axis = -1, num_outputs = 2> (s)  y = Mul (a, b)",
    "places": "y = Gather <axis = -1> (s, places)",
    "an axis at the end": "a = Unsqueeze (s, last)  b = Softmax <axis = -2> (a)  y = Mul (b, v)",
    "a norm": "y = LayerNormalization (s, v)",
}
"""Readers of s, of shape [4] or [N, 4], with axes from the end."""


@pytest.mark.parametrize(
    "reader", ["Softmax <axis = 0> (s)", "MatMul (s, u)", "Gather (s, zero)", "Unsqueeze (s, far)",
               "ReduceSum (s, zero)", "ArgMax (s)", "Transpose (s)"],
)
def test_axes_from_the_start_of_a_leading_size_that_may_be_1_are_refused(reader: str) -> None:
    made = parsed(f"""main (float[N, 1, 2] x, float[3, 2, 2] u) => (y) <int64[1] zero = {{0}}, int64[1] far = {{-3}}>
        {{ s = Squeeze (x)  y = {reader} }}""")
    assert raised(MoLoopError, convert_model, made, match="reads input 0, whose rank is 1 to 2").code == "ML328"


FORCED = {
    "by a permutation": "y = Transpose <perm = [2, 0, 1]> (s)",
    "by a convolution": "y = Conv (s, w)",
    "by the data that it indexes": "i = Cast <to = 7> (s)  z = Sub (i, i)  y = GatherElements <axis = 2> (w, z)",
    "by the data that it replaces": "i = Cast <to = 7> (s)  z = Sub (i, i)  y = ScatterElements <axis = 2> (w, z, s)",
}


@pytest.mark.parametrize("readers", FORCED)
def test_squeeze_of_all_ones_keeps_the_rank_that_its_readers_need(readers: str) -> None:
    made = parsed(f"""main (float[N, 1, 2, M] x, float[3, 2, 1] w) => (float[A, B, C] y)
        {{ s = Squeeze (x)  {FORCED[readers]} }}""")
    if "by the data" in readers:
        made.graph.input[0].type.tensor_type.shape.dim[3].dim_value = 3  # only a leading size may be 1
    check(made, *[{"x": floats(n, 1, 2, 3), "w": floats(3, 2, 1)} for n in (2, 3)])


read_cases(globals())
