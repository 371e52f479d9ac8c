"""Faults that are planted in converted graphs: repeatable, in copies, of all kinds and at all depths."""

import random
from collections import Counter

from mo_loop.text import to_text
from tests.fuzz.planted.planting import AXIS, BACK_EDGE, DEEPEST, KINDS, WEIGHT, Planted, converted, plant, planted
from tests.harness import parsed

LOOP = """
main (float[N] x, int64 n) => (float[N] y) {
  [loop] y, z = Loop (n, "", x, x) <body = step (int64 i, bool c, float[N] s, float[N] t) =>
      (bool d, float[N] u, float[N] v) {
    d = Identity (c) w = Constant <value = float {2.5}> () u = Mul (t, w) v = Add (s, t)
  }>
}"""


def described(found: list[Planted]) -> list[tuple[str, str, str, str]]:
    return [(each.name, each.fault.kind, each.fault.path, each.fault.change) for each in found]


def test_faults_are_of_all_kinds_and_at_all_depths() -> None:
    found = list(planted(40, seed=5))
    assert {each.fault.kind for each in found} == set(KINDS)
    assert {each.fault.depth for each in found} == set(range(DEEPEST + 1))
    assert max(Counter(each.fault.kind for each in found).values()) <= 16


def test_faults_depend_only_on_the_seed() -> None:
    assert described(list(planted(8, seed=11))) == described(list(planted(8, seed=11)))


def test_a_fault_is_in_a_copy() -> None:
    graph = converted(parsed(LOOP))
    assert graph is not None
    before = to_text(graph)
    for kind, place in ((WEIGHT, "loop/step/w"), (BACK_EDGE, "loop")):
        fault = plant(graph, random.Random(1), kind)
        assert fault is not None and fault.origin == place, kind
        assert to_text(fault.graph) != before
    assert to_text(graph) == before


def test_no_fault_without_a_place() -> None:
    graph = converted(parsed("main (float[N] x) => (float[N] y) { y = Abs (x) }"))
    assert graph is not None and plant(graph, random.Random(1)) is None
    assert plant(graph, random.Random(1), AXIS) is None
