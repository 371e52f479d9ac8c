"""Operators whose forms were once many times slower: the number of operations and of loops, which the time follows.

Their times are rows of `tools/bench_operators.py --quick`, a part of `make bench`.
"""

import pytest

from mo_loop.api import convert_model
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.control import Iteration
from tests.harness import folded
from tools.benching.typical_operators import typical

MOST = {
    "CumSum": (1, 1), "Expand": (1, 1), "GRU": (4, 14), "LSTM": (5, 17), "ReduceMax": (3, 7),
    "ReduceSum/integers": (1, 5), "Softmax/channels": (1, 1), "TopK": (33, 40), "TopK/classes": (1, 1),
    "ai.onnx.ml::TreeEnsembleRegressor/row": (40, 260), "ai.onnx.ml::TreeEnsembleRegressor/rows": (220, 260),
}
"""The most operations with static and with dynamic sizes. The trees have 100 trees of up to 30 levels: an operation for
each tree and level, or for each node, would be thousands."""


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", MOST)
def test_an_operator_is_few_operations_and_no_loop(name: str, dynamic: bool) -> None:
    graph = convert_model(typical(name, dynamic)[0], **folded()).graph
    made = [node for scope in graph.scopes() for node in scope if not isinstance(node, Constant | Parameter | Result)]
    assert not [node for node in made if isinstance(node, Iteration)]
    assert len(made) <= MOST[name][dynamic]
