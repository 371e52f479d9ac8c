"""Random quantised networks in the styles of the tools that write them.

    case = draw(seed=1, index=7)
    case.model, case.sets, case.facts           an onnx.ModelProto, inputs by name, what was drawn

A random network (networks.py) is run by ONNX Runtime for the ranges of its tensors. Then QuantizeLinear and
DequantizeLinear are put around its layers as one of `styles.STYLES` does it.
"""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz.quantised.networks import draw_network
from tests.fuzz.quantised.quantise import Quantiser, quantised_dynamically
from tests.fuzz.quantised.styles import STYLES

BATCHES = (1, 2, 1)


@dataclass
class Case:
    """One model with sets of inputs."""

    name: str
    facts: dict[str, Any]
    model: Any
    sets: list[dict[str, np.ndarray[Any, Any]]]
    reference: Any
    """The model; if it computes in f16, the same numbers with f32 as the type of all tensors."""
    is_exact: bool
    """Whether all sums and quotients of quantised layers are exact in f32."""


def draw(seed: int, index: int, style: str | None = None) -> Case:
    """Model number `index` of a seed, in a style of `STYLES` or in any."""
    choices = random.Random(f"quantised/{seed}/{index}")
    numbers = np.random.default_rng([seed, index])
    chosen = style or choices.choice(tuple(STYLES))
    network = draw_network(choices, numbers, STYLES[chosen])
    sets = [{"x": numbers.standard_normal((rows, *network.shape)).astype(np.float32)} for rows in BATCHES]
    if STYLES[chosen].dynamic:
        model = quantised_dynamically(network, STYLES[chosen])
        facts = {"style": chosen, "layers": " ".join(each.op for each in network.layers), "powers": False}
        return Case(f"{chosen}-{seed}-{index}", facts, model, sets, model, False)
    ranges, state = network.ranges(sets), choices.getstate()
    quantiser = Quantiser(network, STYLES[chosen], choices, ranges)
    model = quantiser.model()
    made = Case(f"{chosen}-{seed}-{index}", {}, model, sets, model, network.is_exact and quantiser.is_exact)
    if STYLES[chosen].is_half:
        choices.setstate(state)
        made.reference = Quantiser(network, STYLES[chosen], choices, ranges, computes_in_f32=True).model()
        made.sets = [{name: array.astype(np.float16) for name, array in feeds.items()} for feeds in sets]
    made.facts = {"style": chosen, "layers": " ".join(each.op for each in network.layers), **quantiser.facts}
    return made
