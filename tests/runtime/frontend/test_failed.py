"""Operators that nothing translates: all of a model are reported at once, and only where they matter."""

import re
from typing import Any

import numpy as np
import pytest

from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors, MoLoopError, UnsupportedError
from mo_loop.frontend.ops.classical.forest import Forest
from tests.cases import read_cases
from tests.harness import check, floats, parsed

X = floats(3, seed=1)

ML = {"ai.onnx.ml": 1, "odd": 1}

LOOP = """[loop] {out} = Loop (n, "", {first}) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {{
  d = Identity (c) {body} }}>"""


def refusal(model: Any, **arguments: Any) -> ConversionErrors:
    """The error of a conversion that must fail."""
    with pytest.raises(ConversionErrors) as caught:
        convert_model(model, **arguments)
    return caught.value


def places(error: ConversionErrors) -> dict[str, list[str]]:
    """Operator -> its places, for the unsupported ones."""
    found: dict[str, list[str]] = {}
    for each in error.errors:
        assert isinstance(each, UnsupportedError), each
        assert each.code == "ML302"
        name = re.search(r"operator (\S+)", each.message)
        assert name is not None
        found.setdefault(name[1], []).append(each.where)
    return {name: sorted(where) for name, where in found.items()}


@pytest.mark.parametrize("condition", [
    "yes = Constant <value = bool {1}> ()", "yes = Identity (truth)", "size = Size (x) yes = Equal (size, three)",
    "rank = Shape (x) first = Squeeze (rank) yes = Greater (first, one)",
], ids=["constant", "initializer", "size", "shape"])
@pytest.mark.parametrize("outer", ["{}", "loop"])
def test_a_branch_that_is_never_taken_is_not_reported(condition: str, outer: str) -> None:
    """A known condition, also one known from shapes, in the main graph and in a body."""
    choice = f"""{condition} t = If (yes) <
        then_branch = good () => (float[3] p) {{ p = Neg (s) }},
        else_branch = bad () => (float[3] q) {{ q = odd.One (s) }}>"""
    statements = f"s = Abs (x) {choice} y = Neg (t)"
    if outer == "loop":
        statements = LOOP.format(out="y", first="x", body=choice)
    made = parsed(f"""
        main (float[3] x, int64 n) => (float[3] y) <bool truth = {{1}}, int64 three = {{3}}, int64 one = {{1}}> {{
          {statements} }}""", odd=1)
    result = {2: X, 0: X, 1: -X} if outer == "loop" else dict.fromkeys((2, 0, 1), np.abs(X))
    check(made, *({"x": X, "n": n} for n in result), expected=[[("y", each)] for each in result.values()])


def test_operators_beyond_a_cut_are_not_reported() -> None:
    """`output` ends the conversion before the operator, `input` starts it after the operator."""
    made = parsed("""main (float[3] x) => (float[3] z) {
          a = Neg (x) [bad] b = odd.One (a) c = Abs (b) z = Exp (c) }""", odd=1)
    made.graph.value_info.extend([made.graph.output[0]])
    made.graph.value_info[0].name = "b"
    refusal(made)
    refusal(made, output="c")
    check(made, {"x": X}, expected=[[("a", -X)]], output="a")
    check(made, {"b": X}, expected=[[("z", np.exp(np.abs(X)))]], input="b")
    check(made, {"b": X}, expected=[[("c", np.abs(X))]], input=["b"], output=["c"])


def test_one_of_several_outputs_is_cut() -> None:
    """One output of a node becomes an input, the node still computes another."""
    made = parsed("""main (float[4] x) => (float[2] y, float[2] z) {
          a, b = Split <axis = 0, num_outputs = 2> (x) y = Neg (a) z = Neg (b) }""")
    made.graph.value_info.add(name="a").type.CopyFrom(made.graph.output[0].type)
    x, a = floats(4), floats(2, seed=2)
    check(made, {"x": x, "a": a}, expected=[[("y", -a), ("z", -x[2:])]], input=["x", "a"])


@pytest.mark.parametrize("kind", ["sequence", "optional", "map", "sparse"])
def test_inputs_that_are_not_tensors(kind: str) -> None:
    made = parsed("main (float[3] x, float[3] s) => (float[3] y) { y = Neg (x) }")
    type_ = made.graph.input[1].type
    tensor = type_.tensor_type.elem_type
    type_.ClearField("tensor_type")
    if kind == "map":
        type_.map_type.key_type = tensor
        type_.map_type.value_type.tensor_type.elem_type = tensor
    elif kind == "sparse":
        type_.sparse_tensor_type.elem_type = tensor
    else:
        getattr(type_, f"{kind}_type").elem_type.tensor_type.elem_type = tensor
    with pytest.raises(MoLoopError) as caught:
        convert_model(made)
    assert caught.value.exit_code == 3
    assert caught.value.where == "s"


TREE = """nodes_treeids = [0], nodes_nodeids = [0], nodes_featureids = [0], nodes_modes = ["LEAF"],
  nodes_values = [0.0], nodes_truenodeids = [0], nodes_falsenodeids = [0], n_targets = 1, target_treeids = [0],
  target_nodeids = [0], target_ids = [0], target_weights = [2.0]"""


def counted_trees(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """An item for each ensemble of trees that is translated from now on."""
    translated: list[Any] = []
    leaves = Forest.leaves

    def counted(*given: Any) -> Any:
        translated.append(given)
        return leaves(*given)

    monkeypatch.setattr(Forest, "leaves", counted)
    return translated


def test_trees_are_not_translated_if_the_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ensembles of millions of nodes take minutes."""
    translated = counted_trees(monkeypatch)
    model = parsed(f"""main (float[N,2] x) => (float[N,1] y) {{
      t = ai.onnx.ml.TreeEnsembleRegressor <{TREE}> (x)  u = odd.Two (t)  y = odd.One (u) }}""", **ML)
    assert places(refusal(model)) == {"odd::One": ["y"], "odd::Two": ["u"]}
    assert translated == []


def test_trees_before_a_branch_that_is_never_taken_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    translated = counted_trees(monkeypatch)
    model = parsed(f"""main (float[N,2] x) => (float[N,1] y) <bool flag = {{1}}> {{
      t = ai.onnx.ml.TreeEnsembleRegressor <{TREE}> (x)  u = odd.One (t)
      y = If (flag) <then_branch = then () => (float[N,1] a) {{ a = Neg (t) }},
                     else_branch = else () => (float[N,1] b) {{ b = Neg (u) }}> }}""", **ML)
    check(model, {"x": np.zeros((3, 2), np.float32)}, expected=[[("y", np.full((3, 1), -2, np.float32))]])
    assert len(translated) == 1


def test_the_option_that_converts_the_other_outputs_is_named() -> None:
    model = parsed("""main (float[3] x) => (float[3] y, float[3] z, float[3] w) {
      y = Neg (x)  z = odd.One (x)  w = Abs (x) }""", **ML)
    assert "--output y,w" in refusal(model).errors[0].hint
    renamed = parsed("main (float[3] x) => (float[3] y, float[3] z) { y = Neg (x)  z = odd.One (x) }", **ML)
    renamed.graph.node[0].output[0] = renamed.graph.output[0].name = "y,1"
    assert "--output '\"y,1\"'" in refusal(renamed).errors[0].hint
    check(model, {"x": X}, output=["y", "w"], expected=[[("y", -X), ("w", np.abs(X))]])


read_cases(globals())
