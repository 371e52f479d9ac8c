"""Which attributes are equal, and the names of merged nodes."""

from typing import Any

import numpy as np
import pytest

from mo_loop.text import parse, to_text
from mo_loop.transforms.common.simplification import SharedOpOptimization, _frozen

NAN = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)


@pytest.mark.parametrize(("a", "b", "equal"), [
    (0.5, 0.5, True),
    (0.0, -0.0, False),
    (float("nan"), float("nan"), True),
    (NAN[0], NAN[1], False),
    (1, 1.0, False),
    (1, True, False),
    ((1, 2), (1, 2), True),
    ((0.0,), (-0.0,), False),
    ({"a": [1], "b": 2}, {"b": 2, "a": [1]}, True),
    ({"a": 1}, {"a": 2}, False),
    (np.zeros((2, 3)), np.zeros((2, 3)), True),
    (np.zeros((2, 3)), np.zeros((3, 2)), False),
    (np.zeros(2), -np.zeros(2), False),
    (np.array(["a"], object), np.array(["a"], object), True),
    ({1, 2}, {1, 2}, False),  # a value that cannot be hashed is equal to no other
])
def test_attributes_compare_by_bits(a: Any, b: Any, equal: bool) -> None:
    assert (hash(_frozen(a)), _frozen(a)) == (hash(_frozen(a)), _frozen(a)) and (_frozen(a) == _frozen(b)) is equal


def test_a_veto_keeps_a_node() -> None:
    graph = parse('%x = Parameter : f32[2]\n%a = Abs(%x)\n%b = Abs(%x) "keep"\n%y = Add(%a, %b)\nResult(%y)')
    each = SharedOpOptimization()
    each.config.veto(lambda node: node.name == "keep", each)
    assert not each.run(graph)


def test_a_long_chain_collapses_in_one_run() -> None:
    lines = ["%x = Parameter : f32[2]", "%a0 = Abs(%x)", "%b0 = Abs(%x)"]
    for number in range(300):
        lines += [f"%{which}{number + 1} = Tanh(%{which}{number})" for which in "ab"]
    graph = parse("\n".join([*lines, "%y = Add(%a300, %b300)", "Result(%y)"]))
    assert SharedOpOptimization().run(graph) and len(graph) == 304 and not SharedOpOptimization().run(graph)


def test_the_same_graph_gives_the_same_text() -> None:
    text = '%x = Parameter : f32[2]\n%a = Abs(%x) "a"\n%b = Abs(%x) "b"\n%y = Add(%b, %a)\nResult(%y)'
    texts = set()
    for _ in range(5):
        graph = parse(text)
        SharedOpOptimization().run(graph)
        texts.add(to_text(graph))
    assert len(texts) == 1


