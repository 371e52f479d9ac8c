"""A Conversion: its errors, raised or collected, and the calls of its observers."""

import ast
from pathlib import Path
from typing import Any

import pytest

from mo_loop.conversion import Conversion
from mo_loop.errors import ConversionErrors, ExtensionError, InternalError, MoLoopError, UnsupportedError, UsageError
from mo_loop.frontend.model import load
from mo_loop.graph import Graph
from mo_loop.options import ConvertOptions
from mo_loop.transforms import pipelines
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.manager import Phase, Step
from tests import ROOT
from tests.harness import parsed

NEG = "main (float[3] x) => (float[3] y) { y = Neg (x) }"
SCAN = """
main (float[3] s, float[N, 3] x) => (float[3] t, float[N, 3] y) {
  [scan] t, y = Scan (s, x) <num_scan_inputs: int = 1,
    body = step (float[3] a, float[3] b) => (float[3] c, float[3] d) { c = Add (a, b) d = Identity (c) }> }"""


class Failing(FunctionPass):
    """anything  ->  an error"""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def run_on_graph(self, graph: Graph) -> bool:
        raise self.error


class Idle(FunctionPass):
    """nothing  ->  nothing"""

    without_effect = "there is nothing"

    def run_on_graph(self, graph: Graph) -> bool:
        return False


def collected(text: str, **options: Any) -> Conversion:
    conversion = Conversion(ConvertOptions(**options), collect=True)
    assert (conversion.convert(load(parsed(text))) is None) == bool(conversion.errors)
    return conversion


def test_the_pipeline_is_assembled_in_one_place() -> None:
    parts = {"default_pipeline", "Manager"}

    def calls_one(path: Path) -> bool:
        text = path.read_text("utf-8")
        nodes = ast.walk(ast.parse(text)) if any(each in text for each in parts) else ()
        return any(getattr(node.func, "id", "") in parts for node in nodes if isinstance(node, ast.Call))

    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / "mo_loop").rglob("*.py") if calls_one(path)}
    assert found == {"mo_loop/conversion.py"}


def test_a_pass_without_effect_belongs_to_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "default_pipeline", lambda *_: [Idle()])
    with pytest.raises(InternalError, match=r"Idle changed nothing, and flag_of .* names no option"):
        Conversion().run(parsed(NEG))


def test_only_packed_sequences_cross_the_boundary() -> None:
    assert ConvertOptions(sequence_io="packed").is_packed and not ConvertOptions().is_packed
    with pytest.raises(UsageError, match="loose"):
        ConvertOptions(sequence_io="loose")


class TestCollect:
    def test_a_model_that_converts(self) -> None:
        graph = Conversion(collect=True).convert(load(parsed(NEG)))
        assert graph is not None and [node.type for node in graph.ordered()] == ["Parameter", "Negative", "Result"]

    def test_the_boundary_and_the_nodes(self) -> None:
        """A plain conversion ends at the sequence."""
        text = """main (seq(float[3]) s, float[3] x) => (float[3] y, float[3] z) <int64 i = {0}> {
          y = SequenceAt (s, i) [odd] z = Unheard (x) }"""
        with pytest.raises(UnsupportedError) as caught:
            Conversion().run(parsed(text))
        assert caught.value.code == "ML310" and not isinstance(caught.value, ConversionErrors)
        assert [each.code for each in collected(text).errors] == ["ML310", "ML302"]
        with pytest.raises(ConversionErrors) as all_of_them:
            Conversion(collect=True).run(parsed(text))
        assert [each.code for each in all_of_them.value.errors] == ["ML310", "ML302"]

    def test_nothing_is_checked_behind_a_pass_that_failed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Operations that later passes would have lowered are not reported as unsupported."""
        broken = UnsupportedError("this cannot be", code="ML399")
        monkeypatch.setattr(pipelines, "default_pipeline", lambda *_: [Failing(broken)])
        assert [each.code for each in collected(SCAN).errors] == ["ML399"]

    def test_passes_that_did_not_run_are_named(self) -> None:
        config = PassConfig()
        config.disable("ScanLowering")
        (error,) = collected(SCAN, config=config).errors
        assert error.code == "ML320" and error.hint == "passes that did not run: ScanLowering"

    def test_declared_shapes_are_named(self) -> None:
        text = "main (float[2,3] x, float[3,2] w) => (float[2,2] y) { y = MatMul (x, w) }"
        (error,) = collected(text, input="x[2,5],w").errors
        assert "the model declares x as f32[2,3]" in error.hint

    @pytest.mark.parametrize(("error", "kind"), [
        (UsageError("no"), UsageError), (ExtensionError("no"), ExtensionError), (ValueError("no"), InternalError),
        (InternalError("no"), InternalError),
    ])
    def test_what_is_not_about_the_model_is_raised(
        self, error: Exception, kind: type[MoLoopError], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pipelines, "default_pipeline", lambda *_: [Failing(error)])
        with pytest.raises(kind):
            collected(NEG)


class TestObservers:
    def test_the_order_of_events(self) -> None:
        events: list[Step | Phase] = []
        Conversion(ConvertOptions(plugins=False), [events.append], stop_after="ConstantFolding").run(parsed(NEG))
        told = [each.name for each in events]
        assert told == [
            "reading", "reading", "translating", "translating", "passes", "TransposeMatMul", "ConstantFolding",
            "passes", "checking", "checking",
        ]
        assert [isinstance(each, Step) for each in events[5:7]] == [True, True]

    def test_what_phases_carry(self) -> None:
        seen: dict[str, tuple[Any, Any]] = {}

        def observer(event: Step | Phase) -> None:
            if isinstance(event, Phase):
                seen[event.name] = event.graph, event.subject

        graph = Conversion(ConvertOptions(rename={"y": "z"}), [observer]).run(parsed(NEG))
        assert seen["reading"][0] is None and seen["reading"][1].proto.graph.name == "main"
        assert all(seen[name][0] is graph for name in ("translating", "passes", "renaming", "checking"))
        assert seen["renaming"][1] == {"y": "z"}

    def test_seconds_are_set_at_the_end(self) -> None:
        seconds: list[float | None] = []

        def observer(event: Step | Phase) -> None:
            if isinstance(event, Phase):
                seconds.append(event.seconds)

        Conversion(observers=[observer]).run(parsed(NEG))
        assert seconds[::2] == [None] * 4 and all(each is not None and each > 0 for each in seconds[1::2])
