"""Functions of a model and of ONNX's schemas, compared with ONNX Runtime."""

import numpy as np
import onnx
import pytest

from mo_loop.api import convert_model
from mo_loop.frontend.calls import bound_attributes
from tests.harness import check, floats, parsed, refusal

from .models import X, functions

# -- functions


def test_nested_functions_with_attributes() -> None:
    """Defaults, given values, values passed on under another name, and an omitted attribute without default."""
    made = functions(
        """main (float[3] x) => (float[3] a, float[3] b, float[3] c, float[3] d) {
          a = local.outer (x)
          b = local.outer <slope = 0.5, gain = 3.0> (x)
          c = local.inner <alpha = 0.25> (x)
          d = local.leaky (x)
        }""",
        """inner <alpha: float = 0.75> (v) => (r) { r = LeakyRelu <alpha: float = @alpha> (v) }""",
        """outer <slope: float = 0.1, gain: float = 2.0> (v) => (r) {
          k = Constant <value_float: float = @gain> () t = local.inner <alpha: float = @slope> (v) r = Mul (t, k) }""",
        """leaky <alpha> (v) => (r) { r = LeakyRelu <alpha: float = @alpha> (v) }""",
    )
    check(made, *({"x": x} for x in X))


def test_attribute_that_no_call_gives() -> None:
    """A reference to an attribute that no caller gives: the inner function uses its own default."""
    made = functions("main (float[3] x) => (float[3] y) { y = local.outer (x) }",
                     "inner <alpha: float = 0.75> (v) => (r) { r = LeakyRelu <alpha: float = @alpha> (v) }",
                     "outer <alpha> (v) => (r) { r = local.inner <alpha: float = @alpha> (v) }")
    expected = [[("y", np.where(x < 0, x * np.float32(0.75), x))] for x in X]
    check(made, *({"x": x} for x in X), expected=expected)
    inner, call = made.functions[0], made.functions[1].node[0]
    assert bound_attributes(inner, call, {})["alpha"].f == 0.75


CONTROL = {
    "if": """choose <limit: float = 0.5> (v, flag) => (r) {
          k = Constant <value_float: float = @limit> ()
          r = If (flag) <
            then_branch = yes () => (float[3] p) { p = Mul (v, k) },
            else_branch = no () => (float[3] q) { l = Constant <value_float: float = @limit> () q = Sub (v, l) }
          > }""",
    "loop": """choose <limit: float = 0.5> (v, flag) => (r) {
          n = Constant <value_int = 3> ()
          r = Loop (n, flag, v) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            d = Identity (c) k = Constant <value_float: float = @limit> () m = Mul (s, k) t = Add (m, v) }> }""",
    "scan": """choose <limit: float = 0.5> (v, flag) => (r) {
          f = Cast <to = 1> (flag)
          r = Scan <num_scan_inputs = 1, body = step (float s, float e) => (float s2, float t) {
            k = Constant <value_float: float = @limit> () m = Mul (s, k) s2 = Add (m, e) t = Identity (s2) }> (f, v)
        }""",
}


@pytest.mark.parametrize("kind", CONTROL)
def test_control_flow_in_a_function(kind: str) -> None:
    """The bodies read attributes of the call; the same function is called twice."""
    text = CONTROL[kind]
    if kind == "scan":
        text = text.replace("r = Scan", "last, r = Scan")
    made = functions("""main (float[3] x, bool flag) => (float[3] y) {
          a = local.choose (x, flag) y = local.choose <limit = 0.125> (a, flag) }""", text)
    check(made, *({"x": x, "flag": flag} for x, flag in zip(X, (True, False, True, True), strict=True)))


def test_functions_called_in_bodies() -> None:
    """As PyTorch's dynamo exporter writes them; names in the function are not those of the body."""
    made = functions("""main (float[3] x, int64 n, bool flag) => (float[3] y) {
          h = local.scale (x)
          y = Loop (n, "", h) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            d = Identity (c)
            t = If (flag) <
              then_branch = yes () => (float[3] p) { p = local.scale <by = 0.5> (s) },
              else_branch = no () => (float[3] q) { o = local.scale (x) q = local.mix (s, o) }
            > }>
        }""", "scale <by: float = 2.0> (s) => (h) { x = Constant <value_float: float = @by> () h = Mul (s, x) }",
                     "mix (x, s) => (y) { t = Sub (x, s) y = local.scale (t) }")
    check(made, *({"x": X[n], "n": n, "flag": n != 1} for n in range(3)))


def test_optional_inputs_of_a_function() -> None:
    """Omitted at the end, in the middle, and passed on to an operator or a function that does not need them."""
    made = functions("""main (float[3] x, float low, float high) => (float[3] a, float[3] b, float[3] c, float[3] d) {
          a = local.bound (x, low, high) b = local.bound (x, "", high)
          c = local.bound (x, low) d = local.bound (x) }""",
                     "bound (v, lo, hi) => (r) { t = local.inner (v, lo, hi) r = Neg (t) }",
                     "inner (v, lo, hi) => (r) { r = Clip (v, lo, hi) }")
    x, low, high = X[0], np.float32(-0.25), np.float32(0.25)
    bounds = [(low, high), (-np.inf, high), (low, np.inf), (-np.inf, np.inf)]
    expected = [(name, -np.clip(x, *(np.float32(v) for v in b))) for name, b in zip("abcd", bounds, strict=True)]
    check(made, {"x": x, "low": low, "high": high}, expected=[expected])


def test_unused_outputs_of_a_function() -> None:
    made = functions("main (float[4] x) => (float[2] y) { , y = local.halves (x) }".replace("{ ,", '{ "",'),
                     "halves (v) => (a, b) { a, b = Split <axis = 0, num_outputs = 2> (v) }")
    check(made, {"x": floats(4)})


def test_function_of_another_opset() -> None:
    """Axes are an attribute of opset 11 in the function, an input of opset 18 in the model."""
    made = functions("""main (float[2,3] x) => (float[2] y, float[2] z) <int64[1] axes = {1}> {
          y = ReduceMean <keepdims = 0> (x, axes) z = local.mean (x) }""",
                     "mean (v) => (r) { r = ReduceMean <axes = [1], keepdims = 0> (v) }", imports='"" : 11')
    x = floats(2, 3)
    check(made, {"x": x}, expected=[[("y", x.mean(1)), ("z", x.mean(1))]])


def test_function_overrides_an_operator() -> None:
    """A model's function of the default domain has priority over the operator of that name."""
    made = parsed("""main (float[3] x) => (float[3] y) { y = Selu (x) }
        <domain: "", opset_import: ["" : 18]> Selu (v) => (r) { r = Neg (v) }""")
    check(made, {"x": X[0]}, expected=[[("y", -X[0])]])


def test_functions_that_call_each_other() -> None:
    made = functions("main (float[3] x) => (float[3] y) { [call] y = local.first (x) }",
                     "first (v) => (r) { r = local.second (v) }", "second (v) => (r) { r = local.third (v) }",
                     "third (v) => (r) { r = local.first (v) }")
    error = refusal(made)
    assert error.exit_code == 2
    assert error.code == "ML228"
    assert "first -> second -> third -> first" in str(error)


def test_function_that_calls_itself_in_a_body() -> None:
    made = functions("main (float[3] x, bool flag) => (float[3] y) { [call] y = local.first (x, flag) }",
                     """first (v, flag) => (r) { r = If (flag) <
          then_branch = yes () => (float[3] p) { p = local.first (v, flag) },
          else_branch = no () => (float[3] q) { q = Neg (v) }> }""")
    error = refusal(made)
    assert (error.code, error.exit_code) == ("ML228", 2)
    assert "first -> first" in str(error)


# -- depth


def chain_of_functions(depth: int, text: str) -> onnx.ModelProto:
    """`depth` functions, each calling the next in the way of `text`, the last one a Neg."""
    bodies = [text.replace("NEXT", f"local.f{k + 1}").replace("NAME", f"f{k}") for k in range(depth)]
    graph = "main (float[3] x, bool flag) => (float[3] y) { [call] y = local.f0 (x, flag) }"
    return functions(graph, *bodies, f"f{depth} (v, flag) => (r) {{ r = Neg (v) }}")


def test_deep_function_calls() -> None:
    """The limit is far above the depth that exporters write, and below Python's own limit."""
    text = "NAME (v, flag) => (r) { r = NEXT (v, flag) }"
    check(chain_of_functions(99, text), {"x": X[0], "flag": True}, expected=[[("y", -X[0])]])
    error = refusal(chain_of_functions(600, text))
    assert (error.code, error.exit_code) == ("ML312", 3)


def test_bodies_of_functions_count_as_nested() -> None:
    text = """NAME (v, flag) => (r) { r = If (flag) <then_branch = yes () => (float[3] p) { p = NEXT (v, flag) },
      else_branch = no () => (float[3] q) { q = Abs (v) }> }"""
    expected = [[("y", -X[0])], [("y", np.abs(X[0]))]]
    sets = [{"x": X[0], "flag": True}, {"x": X[0], "flag": False}]
    check(chain_of_functions(7, text), *sets, expected=expected)
    assert sum(1 for _ in convert_model(chain_of_functions(32, text)).graph.scopes()) == 1 + 2 * 32
    error = refusal(chain_of_functions(33, text))
    assert (error.code, error.exit_code) == ("ML312", 3)


# -- operators that ONNX itself spells out


@pytest.mark.parametrize("operator", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("attributes", ["", "<periodic = 0>", "<output_datatype = 1, periodic = 1>"])
def test_defaults_of_a_schema_function(operator: str, attributes: str) -> None:
    """The body of the schema refers to attributes that the node omits."""
    check(parsed(f"main (int64 n) => (float[N] y) {{ y = {operator} {attributes} (n) }}"), {"n": 10}, {"n": 5})


def test_a_schema_function_inside_another_sees_the_attributes() -> None:
    """SoftmaxCrossEntropyLoss calls NegativeLogLikelihoodLoss with references to its own attributes."""
    made = parsed("""main (float[3, 5] x, int64[3] y, float[5] w) => (float z) {
          z = SoftmaxCrossEntropyLoss <ignore_index = 4, reduction = "sum"> (x, y, w) }""")
    data = {"x": np.random.default_rng(0).random((3, 5), np.float32), "w": np.arange(1, 6, dtype=np.float32)}
    check(made, *({**data, "y": np.array(labels)} for labels in ([0, 4, 2], [1, 1, 1])))
