"""The first difference in a loop of the IR that has several steps in each iteration."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

from mo_loop import ops
from mo_loop.compare.layers import LayerDifference, compared
from mo_loop.compare.verifying import verify
from mo_loop.ops.control import Iteration
from mo_loop.options import ConvertOptions
from mo_loop.transforms.config import PassConfig
from tests import MODELS
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


WRONG = """
from mo_loop import ops
from mo_loop.transforms.function_pass import FunctionPass


class Wrong(FunctionPass):
    kinds = (ops.Tanh,)

    def rewrite(self, node):
        wrong = ops.Sin(*node.inputs)
        wrong.origins = node.origins
        wrong.outputs[0].take_names(node.outputs[0])
        node.outputs[0].replace_with(wrong.outputs[0])
        node.graph.remove(node)
        return True


def register(extensions):
    extensions.add_pass(Wrong, at="end")
"""


def test_verify_names_the_step_by_a_conversion_with_one_step_in_each_iteration(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(WRONG)
    onnx.save(parse_model(LOOP), tmp_path / "m.onnx")
    options = ConvertOptions(extensions=[str(tmp_path / "wrong.py")])
    report = verify(tmp_path / "m.onnx", inputs=[{"x": X, "n": np.array(3)}], layers=True, options=options)
    found = report.layers
    assert isinstance(found, LayerDifference) and report.status == "differs"
    assert (found.path, found.steps, found.apart, found.iterations) == ("loop/step/a", 4, True, (("loop", 0),))
    assert "has 4 steps: this is the first difference of a conversion with one step" in str(found)


CHAOS = """<ir_version: 9, opset_import: ["" : 18]>
    main (float[5] x) => (float[5] y) <int64 n = {COUNT}, float one = {1.0}, float r = {RATE}> {
      [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[5] v) => (bool d, float[5] w) {
        d = Identity (c)  o = Sub (one, v)  p = Mul (v, o)  w = Mul (r, p) }> }"""


@pytest.mark.parametrize(("count", "wrong"), [(100, "1.5"), (100, "3.98"), (37, "1.5")])
def test_steps_that_amplify_rounding_hide_no_other_factor(count: int, wrong: str) -> None:
    """After 100 steps the numbers of a right IR have nothing in common with those of ONNX either."""
    x = np.random.default_rng(0).random(5).astype(np.float32)
    text = CHAOS.replace("COUNT", str(count))
    model, graph = converted(text.replace("RATE", "3.99"))
    assert compared(model, graph, {"x": x}).difference is None
    _, other = converted(text.replace("RATE", wrong))
    found = compared(model, other, {"x": x})
    assert found.difference is not None and found.difference.steps > 1
    assert found.difference.iterations == (("loop", 0),)


def test_a_loop_without_shared_tensors_that_amplifies_rounding_decides_nothing() -> None:
    x = np.random.default_rng(0).random(5).astype(np.float32)
    text = CHAOS.replace("COUNT", "20")
    model, _ = converted(text.replace("RATE", "3.99"))
    _, other = converted(text.replace("RATE", "3.98"))
    assert not layers(other, Iteration), "it is written out"
    found = compared(model, other, {"x": x})
    assert found.difference is None
    assert "a twentieth" in found.undecided["y"]


@pytest.mark.parametrize("rate", ["1.5", "0.5"])
def test_a_loop_that_amplifies_nothing_is_no_chaotic_one(rate: str) -> None:
    """Without shared tensors: changes of the inputs move the numbers of ONNX, and not those of the IR."""
    x = np.random.default_rng(0).random(5).astype(np.float32)
    text = CHAOS.replace("COUNT", "24")
    model, _ = converted(text.replace("RATE", "3.99"))
    _, calm = converted(text.replace("RATE", rate))
    found = compared(model, calm, {"x": x})
    assert found.difference is not None and found.difference.tensor == "y"


def test_a_state_that_nothing_reads_may_run_past_the_last_step() -> None:
    exported = MODELS / "tensorflow" / "for_range.onnx"
    report = verify(exported, sets=2, layers=True)
    assert report and report.pieces.status == "agrees", report
