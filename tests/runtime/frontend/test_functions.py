"""Functions of a model and of ONNX's schemas, compared with ONNX Runtime."""

import onnx
import pytest

from mo_loop.frontend.calls import bound_attributes as bound_attributes
from tests.cases import read_cases
from tests.harness import check, refusal

from .models import X, functions

# -- functions


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


read_cases(globals())
