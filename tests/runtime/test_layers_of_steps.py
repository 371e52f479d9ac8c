"""The first difference in a loop of the IR that has several steps in each iteration."""

from __future__ import annotations

import numpy as np
from onnx.parser import parse_model

from mo_loop import ops
from mo_loop.transforms.config import PassConfig
from tests.runtime.test_layers import LOOP, X, converted, found_in, layers, replaced


def test_such_a_loop_is_compared_as_a_whole_and_the_answer_says_how_it_is_compared_step_by_step() -> None:
    model = parse_model(LOOP)
    config = PassConfig()
    config.disable("StepsPerIteration")
    for options, steps, path in (({}, 16, "loop"), ({"config": config}, 1, "loop/step/a")):
        _, graph = converted(model, **options)
        for node in layers(graph, ops.Tanh):
            replaced(graph, node, lambda inputs: ops.Sin(*inputs))
        found = found_in(model, graph, {"x": X, "n": np.array(3)})
        assert (found.steps, found.path) == (steps, path)
        assert ("--disable-pass StepsPerIteration" in str(found)) == (steps > 1)
