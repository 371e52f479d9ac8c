"""Branches of an If whose outputs differ in rank: the nodes that read them move into the branches."""

import warnings
from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors, ModelError
from mo_loop.frontend import consumers_into_branches as sinking
from tests.cases import read_cases
from tests.harness import check, floats, parsed, raised

X = floats(2, 1)
Z = floats(2)
BOTH = [{"c": np.array(True), "x": X}, {"c": np.array(False), "x": X}]
BRANCHES = """
    s = If (c) <
        then_branch = a () => (float[p, q] kept) { kept = Neg (x) },
        else_branch = b () => (float[p] flat) { last = Constant <value_ints = [-1]> ()  flat = Reshape (x, last) }
    >
"""


def model(text: str, results: str = "float[n] y", inputs: str = "") -> Any:
    return parsed(f"main (bool c, float[2, 1] x{inputs}) => ({results}) {{ {BRANCHES} {text} }}")


def ifs(converted: Any) -> list[Any]:
    return [node for scope in converted.graph.scopes() for node in scope.of(ops.If)]


def test_names_that_a_branch_uses_itself() -> None:
    """`kept` and `last` are other values outside; `flat` is the output of a moved node."""
    text = (
        "kept = Exp (z)  last = Neg (z)  m = Mul (s, kept)  flat = Add (m, last)  y = ReduceSum <keepdims = 0> (flat)"
    )
    made = model(text, "float[] y", ", float[1] z")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        feeds = [{**each, "z": Z[:1]} for each in BOTH]
        check(made, *feeds, expected=[[("y", (s * np.exp(Z[0]) - Z[0]).sum())] for s in (-X, X)], rtol=1e-5)


@pytest.mark.parametrize("body", [
    "step (int64 i, bool g, float[] t) => (bool h, float[] u) <float flat = {2.0}, float kept = {2.0}> {",
    "step (int64 i, bool g, float[] t) => (bool h, float[] u) { two = Add (t, t)  flat = Div (two, t)  kept = Neg (t)",
    "step (int64 flat, bool kept, float[] t) => (bool h, float[] u) { two = Add (t, t)  both = Div (two, t)",
])
def test_names_that_a_body_of_a_moved_node_uses_itself(body: str) -> None:
    """`kept` and `flat` are the outputs of the branches, and other values in the body of the moved loop."""
    other = "both" if "both" in body else "flat"
    text = f"""n = Constant <value_int = 2> ()  one = Constant <value_float = 1.0> ()
        y = Loop (n, "", one) <body = {body}
            h = Identity (g)  a = ReduceSum <keepdims = 0> (s)  b = Mul (t, {other})  u = Add (a, b) }}>"""
    text = text.replace("Identity (g)", "Identity (kept)") if "bool kept" in body else text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = model(text, "float[] y")
        check(made, *BOTH, expected=[[("y", 4 + 3 * s.sum())] for s in (-X, X)], rtol=1e-5)


def test_names_of_outputs_stay() -> None:
    assert convert_model(model("y = ReduceSum <keepdims = 0> (s)", "float[] y")).outputs == ["y"]


class TestRefused:
    def test_a_model_output(self) -> None:
        with pytest.raises(ConversionErrors, match=r"rank 2 in then_branch and 1 in else_branch") as caught:
            convert_model(model("y = Neg (s)", "y"))
        assert caught.value.exit_code == 3 and caught.value.code == "ML315"

    def test_more_nodes_than_a_branch_may_get(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sinking, "LIMIT", 2)
        text = "a1 = Neg (s)  a2 = Exp (a1)  a3 = Neg (a2)  y = ReduceSum <keepdims = 0> (a3)"
        with pytest.raises(ConversionErrors, match=r"ML315: .*return s with different ranks, and more than 2 nodes"):
            convert_model(model(text, "float[] y"))

    def test_random_numbers_are_not_moved(self) -> None:
        with pytest.raises(ConversionErrors, match="RandomNormalLike, which reads it, draws random numbers once"):
            convert_model(model("r = RandomNormalLike (s)  y = ReduceSum <keepdims = 0> (r)", "float[] y"))


class TestABranchThatCannotBeTaken:
    """PyTorch's `squeeze` of a dimension that may be 1."""

    TEXT = """main (bool c, float[2, 3] x, float[3, 4] w) => (float[2, 4] y) {
        s = If (c) <
            then_branch = a () => (float[2, 3] p) { p = Identity (x) },
            else_branch = b () => (float[2, 3, 1] q) { two = Constant <value_ints = [2]> ()  q = Unsqueeze (x, two) }
        >
        at = Constant <value_ints = [2]> ()  k = Squeeze (s, at)  y = MatMul (k, w) }"""

    def test_the_other_one_is_taken(self) -> None:
        x, w = floats(2, 3), floats(3, 4)
        with pytest.warns(UserWarning, match=r"then_branch is assumed never to run.*axis 2 .*else_branch alone"):
            converted = convert_model(parsed(self.TEXT))
        assert not ifs(converted)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(parsed(self.TEXT), {"x": x, "w": w, "c": np.array(False)}, rtol=1e-5)

    @pytest.mark.parametrize("first", [False, True])
    @pytest.mark.parametrize(
        "node",
        ["p = ScatterND (x, i, u)", "p = ScatterElements (x, i, x)", "p = GatherElements (u, v)",
         "m = MatMul (x, u)  p = Squeeze (m)", "p = Concat <axis = 0> (x, u)", "p = Gather <axis = 1> (x, i)",
         "m = Add (w, x)  p = ReduceSum <keepdims = 0> (m, v)", "p = GRU <hidden_size = 4> (w, w, w)"],
    )
    def test_of_shapes_that_no_operation_takes(self, node: str, first: bool) -> None:
        names = ("then_branch", "else_branch") if first else ("else_branch", "then_branch")
        text = f"""main (float[3] x, int64[2,1] i, int64[2] v, float[2,1] u, float[2,4] w, bool c) => (float[P] y) {{
            y = If (c) <
                {names[0]} = a () => (float[Q] p) {{ {node} }},
                {names[1]} = b () => (float[S] q) {{ q = Neg (x) }}
            > }}"""
        with pytest.warns(UserWarning, match=f"{names[0]} is assumed never to run.*{names[1]} alone"):
            assert not ifs(convert_model(parsed(text)))
        feed = {"x": floats(3), "i": np.zeros((2, 1), np.int64), "v": np.zeros(2, np.int64), "u": floats(2, 1)}
        feed |= {"w": floats(2, 4), "c": np.array(not first)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(parsed(text), feed, expected=[[("y", -feed["x"])]])

    def test_the_first_reason_has_its_place_if_nested_branches_fail(self) -> None:
        text = """main (float[3] x, float[2,1] u, bool c, bool d) => (float[P] y) {
            y = If (c) <
                then_branch = a () => (float[Q] p) {
                    p = If (d) <
                        then_branch = b () => (float[R] q) { [one] q = Concat <axis = 0> (x, u) },
                        else_branch = e () => (float[R] r) { [two] r = Concat <axis = 0> (u, x) }
                    > },
                else_branch = f () => (float[S] s) { s = Neg (x) }
            > }"""
        with pytest.warns(UserWarning, match=r"then_branch is assumed never to run.*\(\S+/one: [^\n]*\); the model is"):
            assert not ifs(convert_model(parsed(text)))

    def test_neither_is_left_out_if_both_fail(self) -> None:
        """The errors of both are reported."""
        text = """main (float[3] x, float[2,1] u, bool c) => (float[P] y) {
            y = If (c) <
                then_branch = a () => (float[Q] p) { p = Concat <axis = 0> (x, u) },
                else_branch = b () => (float[S] q) { q = Concat <axis = 0> (u, x) }
            > }"""
        with warnings.catch_warnings(), pytest.raises(ConversionErrors) as found:
            warnings.simplefilter("error")
            convert_model(parsed(text))
        assert [each.where.split("/")[-2] for each in found.value.errors] == ["a", "b"]

    def test_in_the_body_of_a_loop(self) -> None:
        """The branch is left out of each iteration, and what it would have returned is the state."""
        text = """main (int64 m, bool c, float[3] x, int64[2,1] i, float[2,1] u) => (float[3] y, float[T,3] all) {
            go = Constant <value = bool {1}> ()
            y, all = Loop (m, go, x) <body = body (int64 n, bool on, float[3] s) => (bool off, float[3] t, float[3] z) {
                off = Identity (on)
                p = If (c) <
                    then_branch = a () => (float[Q] p1) { p1 = ScatterND (s, i, u) },
                    else_branch = b () => (float[S] p2) { p2 = Mul (s, s) }
                >
                t = Sub (p, x)  z = Neg (p) }> }"""
        with pytest.warns(UserWarning, match="then_branch is assumed never to run.*else_branch alone"):
            assert not ifs(convert_model(parsed(text)))
        x = floats(3)
        feeds, wanted = [], []
        for count in (3, 0, 1):
            feeds.append({"m": np.array(count), "c": np.array(False), "x": x})
            feeds[-1] |= {"i": np.zeros((2, 1), np.int64), "u": floats(2, 1)}
            state, rows = x, []
            for _ in range(count):
                rows.append(-state * state)
                state = state * state - x
            wanted.append([("y", state), ("all", np.reshape(rows, (count, 3)).astype(np.float32))])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(parsed(text), *feeds, expected=wanted, rtol=1e-5)

    def test_not_in_a_strict_conversion(self) -> None:
        raised(ModelError, convert_model, parsed(self.TEXT), strict=True, match="strict")


read_cases(globals())
