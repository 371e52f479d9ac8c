"""IR of known sizes that are given other sizes (tests/fuzz/reshaping.py); tools/fuzz_reshape.py tries many more."""

import onnx
import pytest

from mo_loop.compare.execution.isolated import isolated
from tests.fuzz.graphs import draw
from tests.fuzz.reshaping import LEFT_OUT, RIGHT, Change, Found, Task, judge, of_known_sizes
from tests.models.exported import Exported

SEED = 1
MODELS = {
    "pytorch": ["cnn", "lstm", "gru", "transformer_encoder", "scan_dynamo"],
    "tensorflow": ["gru", "conv_lstm", "simple_rnn", "map_nested"],
    "transformers": ["bert", "vit", "gpt2_dynamo", "mamba_loop"],
}


def faults(found: Found) -> list[Change]:
    """The changes that are not right, but for sizes of 0, which the runtime refuses in many operations."""
    return [each for each in found.changes if each.result not in (RIGHT, LEFT_OUT) and not each.what.endswith("-> 0")]


@pytest.mark.parametrize("folder, name", [(folder, name) for folder, names in MODELS.items() for name in names])
def test_exported_models(folder: str, name: str) -> None:
    exported = Exported(folder)
    feeds = exported.models[name].sets[0]
    model = of_known_sizes(onnx.load(exported.path(name)), feeds)
    found = isolated(judge, Task(name, model.SerializeToString(), feeds, SEED, most=6, peer=False))
    assert not found.refused and found.changes and faults(found) == [], found


@pytest.mark.sweep(8)
@pytest.mark.parametrize("number", range(24))
def test_random_graphs(number: int) -> None:
    case = draw(SEED, number)
    if not case.model.graph.node:
        return
    feeds = case.sets[0]
    model = of_known_sizes(case.model, feeds).SerializeToString()
    found = isolated(judge, Task(case.name, model, feeds, SEED, most=4, peer=False))
    assert faults(found) == [], f"seed {SEED}, graph {number}: {found}"
