"""Random graphs of many operators; tools/fuzz_graphs.py runs any number of them."""

import pytest

from tests.fuzz import SKIPPED
from tests.fuzz.graphs import draw, integers, layers, steps
from tests.fuzz.graphs.graph import Graph
from tests.fuzz.graphs.patterns import PATTERNS
from tests.running.processor import fail_or_skip
from tests.running.samples import PASSED
from tools.fuzz_graphs import parsed, run

SEED, EACH = 2026, 20


@pytest.mark.sweep(4)
@pytest.mark.parametrize("part", range(4))
def test_right(part: int) -> None:
    options = parsed(["--seed", str(SEED), "--start", str(part * EACH), "--count", str(EACH), "-j", "1"])
    fail_or_skip([f"{task} {verdict}" for task, verdict in run(options) if verdict.result not in (PASSED, SKIPPED)])


@pytest.mark.sweep(2)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_pattern(pattern: str) -> None:
    options = parsed(["--seed", str(SEED), "--count", "12", "-j", "1", "--pattern", pattern])
    verdicts = [verdict for _, verdict in run(options)]
    assert sum(each.result == SKIPPED for each in verdicts) <= 1
    fail_or_skip([f"{pattern} {index} {each}" for index, each in enumerate(verdicts)
                  if each.result not in (PASSED, SKIPPED)])


@pytest.mark.parametrize("pattern", ["", *PATTERNS])
def test_the_same_again(pattern: str) -> None:
    first, again = draw(SEED, 3, pattern), draw(SEED, 3, pattern)
    assert first.model.SerializeToString() == again.model.SerializeToString()
    assert all((first.sets[0][name] == array).all() for name, array in again.sets[0].items())


def test_every_layer_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each layer fits one of the first graphs: it adds a node."""
    drawn = set()
    chosen = (*steps.ANY, *layers.IMAGES, *layers.SEQUENCES, *integers.LAYERS)
    step = steps.step

    def counted(graph: Graph) -> None:
        before = len(graph.nodes)
        layer = step(graph)
        if len(graph.nodes) > before:
            drawn.add(layer)

    monkeypatch.setattr("tests.fuzz.graphs.step", counted)
    for index in range(400):
        draw(SEED, index)
    assert drawn == {layer for _, layer in chosen}
