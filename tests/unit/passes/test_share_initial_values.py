"""ShareInitialValues: how it looks for attention after a cache. Its graphs are in tests/golden."""

from itertools import pairwise

import pytest

from mo_loop.graph import Value
from mo_loop.text import parse
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.runtime import initial_values
from mo_loop.transforms.runtime.initial_values import ShareInitialValues

CACHE = """
    %x = Parameter : f32[N,1]
    %shape = ShapeOf(%x) %batch = Gather(%shape, [0], 0) %sizes = Concat(%batch, [0]) {axis: 0}
    %none = Broadcast(0.0, %sizes)
    %past = ReadValue(%none) {variable_id: "v", variable_type: f32, variable_shape: [?, ?]}
    %present = Concat(%past, %x) {axis: 1}
    %kept = Assign(%present) {variable_id: "v", variable_type: f32, variable_shape: [?, ?]}"""


def test_each_value_behind_a_cache_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A square reads its input twice, so that every one of them doubles the number of paths."""
    names = ["present", *(f"square{i}" for i in range(12))]
    squares = [f"%{after} = Multiply(%{before}, %{before})" for before, after in pairwise(names)]
    asked: list[Value] = []
    monkeypatch.setattr(initial_values, "consumed_by", lambda *kinds: asked.append)
    assert Manager([ShareInitialValues()]).run(parse("\n".join([CACHE, *squares, "Result(%square11)"])))
    assert len(asked) == len(set(asked)) == 13
