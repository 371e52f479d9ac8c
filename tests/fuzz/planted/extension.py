"""An extension whose pass plants the fault that PLANTED_FAULT describes into every conversion that has a place for it.

    PLANTED_FAULT='{"kind": "axis", "layer": "softmax", "readers": [], "seed": 3}'

A smaller model has the fault as long as it has the layer, at any depth.
"""

from __future__ import annotations

import json
import os
import random
from typing import Any

from mo_loop.graph import Graph
from mo_loop.transforms.function_pass import FunctionPass
from tests.fuzz.planted.planting import WEIGHT, Fault, _node_at, _places

VARIABLE = "PLANTED_FAULT"


def described(fault: Fault, seed: int) -> str:
    """The value of the variable."""
    return json.dumps({"kind": fault.kind, "layer": fault.layer, "readers": fault.readers, "seed": seed})


class PlantFault(FunctionPass):
    """Plants the fault that the environment describes."""

    def run_on_graph(self, graph: Graph) -> bool:
        """Every place with the layer's name gets it."""
        wanted = json.loads(os.environ[VARIABLE])
        places = [place for place in _places(graph) if _is_meant(place, wanted)]
        for place in places:
            place.apply(_node_at(graph, place), random.Random(wanted["seed"]))
        return bool(places)


def _is_meant(place: Any, wanted: dict[str, Any]) -> bool:
    if place.kind != wanted["kind"]:
        return False
    if place.kind == WEIGHT:
        return bool(set(wanted["readers"]) & set(place.readers))
    return bool(place.layer == wanted["layer"])


def register(extensions: Any) -> None:
    """The function that mo_loop calls."""
    extensions.add_pass(PlantFault, at="end")
