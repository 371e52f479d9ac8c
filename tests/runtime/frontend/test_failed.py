"""Operators that nothing translates: all of a model are reported at once, and only where they matter."""

import re
from typing import Any

import numpy as np
import pytest

from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors, MoLoopError, UnsupportedError
from mo_loop.frontend.ops.classical.forest import Forest
from tests.cases import read_cases
from tests.harness import check, floats, parsed, raised

X = floats(3, seed=1)

ML = {"ai.onnx.ml": 1, "odd": 1}

LOOP = """[loop] {out} = Loop (n, "", {first}) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {{
  d = Identity (c) {body} }}>"""


def refusal(model: Any, **arguments: Any) -> ConversionErrors:
    """The error of a conversion that must fail."""
    return raised(ConversionErrors, convert_model, model, **arguments)


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
    caught = raised(MoLoopError, convert_model, made)
    assert caught.exit_code == 3
    assert caught.where == "s"


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


read_cases(globals())
