"""The syntax of --input and of convert_model(input=...)."""

import warnings
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors, UsageError
from mo_loop.frontend.input_text import dtype_of, parse_inputs, value_of
from mo_loop.graph.types import ALL, f16, i64, string
from tests.harness import folded, parsed, raised

MODEL = """
    main (float[N, 3] x, float[3, M] w, int64 k) => (float[N, M] y) {
        product = MatMul (x, w) real = Cast <to = 1> (k) y = Add (product, real)
    }"""
LOOP = """
    main (int64 m, float[N] x) => (float[N] y, float[T, N] ys) {
        go = Constant <value = bool {1}> ()
        y, ys = Loop (m, go, x) <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t, float[N] u) {
            d = Identity (c)  t = Add (s, x)  u = Identity (t)
        }>
    }"""


def types(model: Any, given: Any) -> list[str]:
    converted = convert_model(model, input=given)
    return [f"{each.name}: {each.output.type}" for each in converted.graph.parameters]


class TestText:
    def test_everything_at_once(self) -> None:
        x, ids, rate = parse_inputs("x[1,3,?,224..512],ids[N,128]{i64},sr->16000")
        assert (x.name, str(x.shape), x.dtype, x.value) == ("x", "(1, 3, ?, 224..512)", None, None)
        assert (ids.name, str(ids.shape), ids.dtype) == ("ids", "(N, 128)", i64)
        assert (rate.name, rate.shape, rate.value) == ("sr", ..., 16000)

    @pytest.mark.parametrize(("text", "shape"), [
        ("x[1 3 224 224]", "(1, 3, 224, 224)"),  # the Model Optimizer's older form
        ("x(2,3)", "(2, 3)"),
        ("x[-1, ?]", "(?, ?)"),
        ("x[2.., ..8]", "(2.., 0..8)"),
        ("x[]", "()"),
        ("[5]", "(5,)"),
    ])
    def test_shapes(self, text: str, shape: str) -> None:
        assert str(parse_inputs(text)[0].shape) == shape

    @pytest.mark.parametrize(("text", "value"), [
        ("x->-3", -3), ("x->1.5e-3", 0.0015), ("x->False", False), ("x->true", True),
        ("x->[1,2,3]", [1, 2, 3]), ("x->[20 15]", [20, 15]), ("x->[ [1, 2], [3, 4] ]", [[1, 2], [3, 4]]),
        ("x->[true false]", [True, False]), ("x->-inf", -np.inf),
    ])
    def test_values(self, text: str, value: Any) -> None:
        assert parse_inputs(text)[0].value == value

    @pytest.mark.parametrize("name", ["f16", "FP16", "half", "float16"])
    def test_types(self, name: str) -> None:
        assert parse_inputs(f"x{{{name}}}")[0].dtype is f16

    def test_names_that_look_like_more(self) -> None:
        """A tensor may have any name; an exact name has priority."""
        assert [each.name for each in parse_inputs("a[0],b->c", {"a[0]", "b->c"})] == ["a[0]", "b->c"]

    @pytest.mark.parametrize("text", ["x[1,", "x[1,b-c]", "x[3..2]", "x{f31}", "x->one", "x->[1,2", "x->(1", "x[1.5]"])
    def test_nonsense(self, text: str) -> None:
        assert raised(UsageError, parse_inputs, text).hint


class TestShapesAndTypes:
    def test_the_whole_model_is_inferred_again(self) -> None:
        converted = convert_model(parsed(MODEL), input="x[1..4,3],w[3,5]")
        assert str(converted.graph.results[0].value.type) == "f32[1..4,5]"

    def test_equal_symbols(self) -> None:
        converted = convert_model(parsed(MODEL), input="x[K,3],w[3,K]")
        assert str(converted.graph.results[0].value.type) == "f32[K,K]"

    @pytest.mark.keeps_loops
    def test_bodies_too(self) -> None:
        converted = convert_model(parsed(LOOP), input="x[7]", **folded())
        assert [str(each.value.type) for each in converted.graph.results] == ["f32[7]", "f32[?,7]"]
        (node,) = converted.graph.nodes_with_bodies()
        assert "f32[7]" in {str(each.output.type) for each in node.bodies[0].parameters}

    @pytest.mark.parametrize("given", [
        "x[2,3],w{f32}", {"x": [2, 3]}, {"x": ([2, 3], "f32")}, ("x", [2, 3]), [("x", [2, 3], np.float32)],
        [("x", (2, 3)), "w"], "[2,3]",
    ])
    def test_forms(self, given: Any) -> None:
        assert types(parsed(MODEL), given) == ["x: f32[2,3]", "w: f32[3,M]", "k: i64[]"]

    def test_ranges_in_python(self) -> None:
        assert types(parsed(MODEL), {"x": [(1, 4), 3], "w": [3, (2, None)]})[:2] == ["x: f32[1..4,3]", "w: f32[3,2..]"]

    def test_order(self) -> None:
        """If all inputs are named, they get this order; else the model's."""
        assert [text[0] for text in types(parsed(MODEL), "w,k,x")] == ["w", "k", "x"]
        assert [text[0] for text in types(parsed(MODEL), "w,x")] == ["x", "w", "k"]

    def test_another_element_type(self) -> None:
        made = parsed("main (float[N] x) => (float[N] y) { y = Abs (x) }")
        assert types(made, "x{f16}") == ["x: f16[N]"]
        raised(ConversionErrors, convert_model, parsed(MODEL), input="x{f16}", match=r"f16.*f32")

    @pytest.mark.parametrize("name", ["f32", "FP32", "float32", "float", "FLOAT", "tensor(float)", "Float"])
    def test_the_names_of_a_type_in_all_libraries(self, name: str) -> None:
        assert types(parsed("main (float[N] x) => (float[N] y) { y = Abs (x) }"), f"x{{{name}}}") == ["x: f32[N]"]

    def test_every_type_has_the_name_of_numpy_and_onnx(self) -> None:
        names = {each: TensorProto.DataType.Name(each.onnx) for each in ALL if each.bits > 4}
        assert {each: dtype_of(name) for each, name in names.items()} == {each: each for each in names}
        assert all(dtype_of(each.numpy.name) is each for each in ALL if each is not string)

    def test_impossible_shape_names_the_node(self) -> None:
        caught = raised(ConversionErrors, convert_model, parsed(MODEL), input="x[2,5]")
        assert caught.exit_code == 2 and "MatMul" in str(caught) and "where: product" in str(caught)

    @pytest.mark.parametrize(("given", "says"), [
        ("xx", "did you mean 'x'"),
        ("[1],[2],[3],[4]", r"there are more shapes \(4\) than inputs \(3\)"),
        ("x,x", "named twice"), ([{"x": 1}], "is not an element type"), ("real:1", "has no port 1"),
    ])
    def test_refusals(self, given: Any, says: str) -> None:
        with pytest.raises(UsageError, match=says):
            made = parsed(MODEL)
            made.graph.node[1].name = "real"
            convert_model(made, input=given)


class TestCuts:
    @pytest.mark.parametrize("name", ["same", "same:0", "0:same"])
    def test_name_of_several_nodes(self, name: str) -> None:
        made = parsed("main (float[3] x) => (float[3] y) { p = Sin (x)  q = Cos (p)  y = Tan (q) }")
        for node in made.graph.node[:2]:
            node.name = "same"
        with pytest.raises(UsageError, match=r"2 nodes have the name 'same'(.|\n)*name a tensor: p, q"):
            convert_model(made, output=name)
        made.graph.node[2].name = "q"  # a name that a tensor has as well means the tensor
        (result,) = convert_model(made, output="q").graph.results
        assert type(result.value.node).__name__ == "Cos"

    def test_inner_tensor(self) -> None:
        """The model's other inputs stay if the outputs still need them."""
        assert types(parsed(MODEL), "product[2,2]{f32}") == ["product: f32[2,2]", "k: i64[]"]

    def test_a_type_that_the_model_does_not_declare(self) -> None:
        """The part of the type that is not given comes from ONNX's inference."""
        assert types(parsed(MODEL), "product")[0].startswith("product: f32[N,M]")
        assert types(parsed(MODEL), "product[2,2]")[0] == "product: f32[2,2]"

    def test_by_node_and_port(self) -> None:
        made = parsed(MODEL)
        made.graph.node[0].name = "first"
        assert types(made, "first[2,2]{f32}")[0] == "product: f32[2,2]"
        assert types(made, "first:0[2,2]{f32}")[0] == "product: f32[2,2]"
        assert types(made, "1:first[3,2]")[1] == "w: f32[3,2]"
        assert convert_model(made, output="first:0").outputs == ["product"]


class TestFrozen:
    def test_shapes(self) -> None:
        made = parsed("main (float[2] a, float[N] b) => (float[N] y) { y = Add (a, b) }")
        for text in ("a->[1,2]", "a->1", "a->[[1],[2]]"):
            assert types(made, text) == ["b: f32[N]"]
        raised(UsageError, convert_model, made, input="a->[1,2,3]", match="does not fit")

    @pytest.mark.parametrize(
        "text", ["k->1.5", "k->[1,2]", "k->1e30", "k->1j", "k->9999999999999999999", f"k->{10 ** 4999:#x}"]
    )
    def test_values_that_do_not_fit(self, text: str) -> None:
        raised(UsageError, convert_model, parsed(MODEL), input=text, match="'k'")


    def test_imaginary_parts_are_not_dropped(self) -> None:
        with pytest.raises(UsageError, match="not a value of f32"):
            convert_model(parsed("main (float x) => (float y) { y = Neg (x) }"), input="x->1j")


@pytest.mark.parametrize("text", ["{['a']:1}", "{{}}", "[" * 5000 + "]" * 5000, "1+" * 5000 + "1j", "9" * 5000])
def test_what_is_no_value_is_refused(text: str) -> None:
    assert len(str(raised(UsageError, value_of, text, match="is not a value"))) < 1000


@pytest.mark.parametrize("dim", ["9" * 5000, "9223372036854775808", "1.." + "9" * 5000, "9" * 5000 + ".."])
def test_sizes_beyond_64_bits_are_refused(dim: str) -> None:
    assert "64 bits" in raised(UsageError, parse_inputs, f"x[1,{dim}]", match="is not a dimension").why


def test_a_port_of_thousands_of_digits_is_refused() -> None:
    model = parsed("main (float x) => (float y) { [n] y = Neg (x) }")
    for name in (f"n:{'9' * 5000}", f"{'9' * 5000}:n"):
        raised(UsageError, convert_model, model, output=name, match="has no port")


class TestDeclarations:
    WRONG = "main (float[2, 3] x) => (float[2, 4] y) <float[2, 3, 1] a> { a = Abs (x)  y = Neg (a) }"

    def test_a_wrong_one_is_warned_of_and_the_inferred_one_written(self) -> None:
        with pytest.warns(UserWarning) as heard:
            converted = convert_model(parsed(self.WRONG))
        said = sorted(str(each.message) for each in heard)
        assert said == [
            "a is declared as f32[2,3,1], but it is f32[2,3]",
            "y is declared as f32[2,4], but it is f32[2,3]",
        ]
        assert str(converted.graph.results[0].value.type) == "f32[2,3]"

    def test_in_a_body(self) -> None:
        made = LOOP.replace("float[N] x)", "float[2] x)").replace("float[N] u)", "float[5] u)")
        with pytest.warns(UserWarning, match=r"/b/u is declared as f32\[5\], but it is f32\[2\]"):
            convert_model(parsed(made))

    def test_right_ones_and_overridden_ones_are_silent(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            convert_model(parsed(MODEL))
            convert_model(parsed(LOOP))
            convert_model(parsed(self.WRONG), input="x[2,7]")
