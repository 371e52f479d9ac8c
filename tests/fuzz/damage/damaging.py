"""A seed and a number -> one damaged model, as bytes."""

from random import Random

import onnx

from tests.fuzz.damage.fields import damage_fields
from tests.fuzz.damage.octets import damaged_bytes
from tests.fuzz.damage.sources import models

OF_BYTES = 0.12
"""The share of models whose bytes are damaged; of the others the fields are."""


def damaged(seed: int, number: int) -> tuple[str, bytes]:
    """The name of the source, and the damaged model of a number; the same for the same arguments."""
    draw = Random(f"damage/{seed}/{number}")
    (name, data), (_, other) = draw.choice(models()), draw.choice(models())
    if draw.random() < OF_BYTES:
        return name, damaged_bytes(data, draw, other)
    model = onnx.load_from_string(data)
    damage_fields(model, draw, onnx.load_from_string(other))
    try:
        return name, model.SerializeToString(deterministic=True)
    except ValueError:  # a name that is not UTF-8
        return name, data
