"""changing_pass: which pass of a conversion changed the numbers."""

import json
import tempfile
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from onnx.parser import parse_model

from mo_loop import ops
from mo_loop.compare import passes
from mo_loop.compare.input_sets.expected_sets import ExpectedSets
from mo_loop.compare.ir_runs import IrRuns
from mo_loop.compare.passes import AGREES, DIFFERS, NOT_RUN, PassDifference, _Trials
from mo_loop.compare.verify_options import VerifyOptions
from mo_loop.frontend.model import load
from mo_loop.graph import Graph
from mo_loop.options import ConvertOptions
from mo_loop.transforms.function_pass import FunctionPass
from tests.cases import read_cases
from tests.cli.commands import saved

MODEL = parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    main (float[3,4] x, float[T,3,4] z) => (float[3,4] y, float[T,3,4] parts) {
      [scan] f, parts = Scan (x, z) <num_scan_inputs = 1,
          body = step (float[3,4] u, float[3,4] p) => (float[3,4] w, float[3,4] v) {
            v = Sub (p, u)  e = Tanh (v)  w = Abs (e) }>
      y = Sigmoid (f) }""")
NUMBERS = np.random.default_rng(0)
FEEDS = [{"x": NUMBERS.normal(size=(3, 4)).astype(np.float32), "z": NUMBERS.normal(size=(n, 3, 4)).astype(np.float32)}
         for n in (3, 2)]


class TanhToSigmoid(FunctionPass):
    """A pass that is wrong."""

    def run_on_graph(self, graph: Graph) -> bool:
        found = list(self.candidates(graph, ops.Tanh))
        for node in found:
            new = ops.Sigmoid(node.inputs[0]).output
            new.take_names(node.output)
            node.output.replace_with(new)
            graph.remove(node)
        return bool(found)


class AbsAndBack(FunctionPass):
    """A pass that changes the graph and not the numbers."""

    def run_on_graph(self, graph: Graph) -> bool:
        found = [node for node in self.candidates(graph, ops.Abs) if not isinstance(node.inputs[0].node, ops.Abs)]
        for node in found:
            graph.set_input(node, 0, ops.Abs(node.inputs[0]).output)
        return bool(found)


def at(place: str, *passes: type[FunctionPass]) -> Any:
    """An extension with passes after one of the pipeline, or at its start."""

    def register(extensions: Any) -> None:
        for each in passes:
            if place == "start":
                extensions.add_pass(each(), at="start")
            else:
                extensions.add_pass(each(), after=place)

    return register


def changing_pass(model: Any, options: ConvertOptions, feeds: list[Any], **more: Any) -> PassDifference | None:
    settings = VerifyOptions(inputs=feeds, **more)
    with tempfile.TemporaryDirectory() as folder:
        path = saved(model, Path(folder))
        found = ExpectedSets(path, load(str(path)), settings, [], {})
        return passes.changing_pass(str(path), options, IrRuns(found, settings, []))


def test_right_numbers_have_no_changing_pass() -> None:
    assert changing_pass(MODEL, ConvertOptions(), FEEDS) is None


def test_a_wrong_pass_after_the_lowering_is_named() -> None:
    options = ConvertOptions(extensions=at("LoopToTI", AbsAndBack), config=None)
    assert changing_pass(MODEL, options, FEEDS) is None
    found = changing_pass(MODEL, ConvertOptions(extensions=at("ScanLowering", AbsAndBack, TanhToSigmoid)), FEEDS)
    assert found is not None
    assert (found.kind, found.passes, found.without) == ("pass", ("TanhToSigmoid",), AGREES)
    assert str(found).startswith(
        "The pass TanhToSigmoid changes the numbers: they agree before it and differ after it."
    )
    assert "Without it, the numbers agree." in str(found)
    data = json.loads(json.dumps(found.as_json()))
    assert data["passes"] == ["TanhToSigmoid"] and {each["result"] for each in data["runs"]} >= {AGREES, DIFFERS}


def test_before_the_lowering_the_answer_is_a_range() -> None:
    """Scan has no form in the IR, so the IR cannot be run before ScanLowering."""
    found = changing_pass(MODEL, ConvertOptions(extensions=at("start", TanhToSigmoid)), FEEDS)
    assert found is not None
    assert found.kind == "range" and "TanhToSigmoid" in found.passes and "ScanLowering" in found.passes
    assert found.passes[0] == "translation"
    assert "cannot be run" in str(found) and found.not_run
    assert any(result == NOT_RUN for _, _, result in found.runs)


def test_a_wrong_translator_is_not_blamed_on_a_pass() -> None:
    def register(extensions: Any) -> None:
        @extensions.translates("Sigmoid")
        def wrong(x: Any) -> Any:
            return ops.Tanh(x)

    plain = parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        main (float[3,4] x) => (float[3,4] y) { a = Abs (x) y = Sigmoid (a) }""")
    found = changing_pass(plain, ConvertOptions(extensions=register), [{"x": FEEDS[0]["x"]}])
    assert found is not None and (found.kind, found.passes) == ("translation", ())


@pytest.mark.parametrize(("results", "expected"), [
    ([AGREES, AGREES, DIFFERS, DIFFERS], (1, 2)),
    ([NOT_RUN, AGREES, NOT_RUN, NOT_RUN, DIFFERS], (1, 4)),
    ([DIFFERS, DIFFERS, DIFFERS], (-1, 0)),
    ([NOT_RUN, NOT_RUN, DIFFERS, DIFFERS], (-1, 2)),
    ([AGREES, *[AGREES] * 30, DIFFERS], (30, 31)),
])
def test_bisection_skips_what_cannot_be_run(results: list[str], expected: tuple[int, int],
                                            monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    trials = _Trials(MODEL, ConvertOptions(), cast(IrRuns, None), tmp_path)
    tried: list[int] = []

    def run(number: int) -> tuple[str, str]:
        tried.append(number)
        return results[number], ""

    monkeypatch.setattr(trials, "_tried", run)
    last = len(results) - 1
    trials.results[last] = DIFFERS, ""
    assert trials._bisected(last) == expected
    assert len(tried) == len(set(tried)) and (len(results) < 30 or len(tried) <= 6)


def test_an_answer_without_a_pass_is_a_sentence() -> None:
    found = PassDifference("translation", (), "y: 1 of 4 values differ")
    assert str(found).splitlines()[0].endswith("or the runtime is.")


read_cases(globals())
