"""Random quantised networks in the styles of many tools: a sample of what tools/fuzz_quantised.py runs."""

from collections.abc import Iterator

import numpy as np
import pytest

from mo_loop.options import QUANTIZATION
from mo_loop.support.workers import Pool
from tests.fuzz.quantised import draw
from tests.fuzz.quantised.measuring import Task, difference, limit_of, verdict_of
from tests.fuzz.quantised.styles import STYLES

SEED, EACH = 20261123, 2


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool("tests.fuzz.quantised.measuring:measure", jobs=1, limit=120) as pool:
        yield pool


@pytest.mark.sweep(8)
@pytest.mark.parametrize("quantization", QUANTIZATION)
@pytest.mark.parametrize("style", STYLES)
def test_right(pool: Pool, style: str, quantization: str) -> None:
    for index in range(EACH):
        outcome = pool.call(Task(SEED, index, style, quantization=quantization))
        case = draw(SEED, index, style)
        assert not verdict_of(case, outcome), (case.name, verdict_of(case, outcome), case.facts)


def test_a_step_everywhere_is_found() -> None:
    """A wrong zero point is beyond every limit."""
    wanted = np.random.default_rng(0).standard_normal((4, 100)) * 0.1
    assert difference(wanted, wanted + 0.01) > limit_of(draw(SEED, 0, "ort_by_channel"), "exact")


def test_the_same_again() -> None:
    first, second = draw(SEED, 3), draw(SEED, 3)
    assert first.model.SerializeToString() == second.model.SerializeToString()


def test_every_layer_is_drawn() -> None:
    layers = {each for index in range(150) for each in draw(1, index).facts["layers"].split()}
    assert layers == {"Add", "AveragePool", "Clip", "Concat", "Conv", "ConvTranspose", "Flatten", "Gemm",
                      "GlobalAveragePool", "MatMul", "MaxPool", "Pad", "Relu", "Reshape", "Resize", "Slice", "Split",
                      "Transpose"}
