"""Random models with control flow: the passes do not change what a graph computes.

tests/interpreter.py computes the graph before all passes and the one after them, without a runtime: a difference is an
error in a pass, not in the runtime or in a workaround for it.
"""

import numpy as np
import pytest

from mo_loop.conversion import Conversion
from mo_loop.errors import ConversionErrors
from mo_loop.graph import Graph
from mo_loop.options import ConvertOptions
from mo_loop.transforms.manager import Phase, Step
from tests.fuzz.control_flow.generator import generate
from tests.interpreter import UNDEFINED, Invalid, Uninterpreted, interpret

SEED, COUNT, BATCH, LEAST = 31, 60, 20, 16


class Translated:
    """An observer that keeps a copy of the translated graph."""

    graph: Graph

    def __call__(self, event: Phase | Step) -> None:
        if isinstance(event, Phase) and event.name == "passes" and event.seconds is None:
            assert event.graph is not None
            self.graph = event.graph.clone()


@pytest.mark.sweep(6)
@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_passes_keep_the_numbers(first: int, lists: bool) -> None:
    compared = sum(compare(index, lists) for index in range(first, first + BATCH))
    assert compared >= LEAST, compared


def compare(index: int, lists: bool) -> bool:
    """Whether both graphs of a model can be computed; AssertionError if their results differ."""
    case = generate(SEED, index, lists)
    translated = Translated()
    try:
        after = Conversion(ConvertOptions(), [translated]).run(case.model)
    except ConversionErrors:
        return False
    compared = False
    for feeds in case.feeds:
        try:
            values = [np.asarray(feeds[node.name]) for node in translated.graph.parameters]
            expected, found = interpret(translated.graph, values), interpret(after, values)
        except (Uninterpreted, Invalid):
            continue
        for result, a, b in zip(after.results, expected, found, strict=True):
            if a is UNDEFINED:
                continue
            assert a.shape == b.shape and a.dtype == b.dtype, f"{case.name} {result.name}"
            equal = (a == b).all() if a.dtype == object else np.allclose(a, b, 1e-3, 1e-4, equal_nan=True)
            assert equal, f"{case.name} {result.name}"
        compared = True
    return compared
