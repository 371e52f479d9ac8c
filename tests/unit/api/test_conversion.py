"""A Conversion: errors, observers, the rt_info of its model, and the version of the package."""

from __future__ import annotations

import ast
import json
import subprocess
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx.parser
import pytest

import mo_loop
from mo_loop import revision
from mo_loop.conversion import Conversion
from mo_loop.errors import ConversionErrors, ExtensionError, InternalError, MoLoopError, UnsupportedError, UsageError
from mo_loop.frontend.model import load
from mo_loop.graph import Graph
from mo_loop.ir_origins import recorded_options
from mo_loop.options import ConvertOptions
from mo_loop.transforms import pipelines
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.manager import Phase, Step
from tests import ROOT
from tests.harness import parsed, raised, without

# -- A Conversion: its errors, raised or collected, and the calls of its observers


NEG = "main (float[3] x) => (float[3] y) { y = Neg (x) }"
SCAN = """
main (float[3] s, float[N, 3] x) => (float[3] t, float[N, 3] y) {
  [scan] t, y = Scan (s, x) <num_scan_inputs: int = 1,
    body = step (float[3] a, float[3] b) => (float[3] c, float[3] d) { c = Add (a, b) d = Identity (c) }> }"""


STATES = """
main (int64 n, float[3] a, float[4] b, float[5] c) => (float[?] x, float[?] y, float[?] z) <
  float[3] three = {1, 2, 3}, float[4] four = {1, 2, 3, 4}, float[5] five = {1, 2, 3, 4, 5}> {
  x, y, z = Loop (n, "", a, b, c) <body = step (int64 i, bool g, float[?] p, float[?] q, float[?] r)
    => (bool h, float[?] s, float[?] t, float[?] u) {
    h = Identity (g)  s = Mul (p, three)  t = Mul (q, four)  u = Mul (r, five) }> }"""


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
    raised(InternalError, Conversion().run, parsed(NEG), match=r"Idle changed nothing, and flag_of .* names no option")


def test_only_packed_sequences_cross_the_boundary() -> None:
    assert ConvertOptions(sequence_io="packed").is_packed and not ConvertOptions().is_packed
    raised(UsageError, ConvertOptions, sequence_io="loose", match="loose")


class TestCollect:
    def test_a_model_that_converts(self) -> None:
        graph = Conversion(collect=True).convert(load(parsed(NEG)))
        assert graph is not None and [node.type for node in graph.ordered()] == ["Parameter", "Negative", "Result"]

    def test_the_boundary_and_the_nodes(self) -> None:
        """A plain conversion ends at the sequence."""
        text = """main (seq(float[3]) s, float[3] x) => (float[3] y, float[3] z) <int64 i = {0}> {
          y = SequenceAt (s, i) [odd] z = Unheard (x) }"""
        caught = raised(UnsupportedError, Conversion().run, parsed(text))
        assert caught.code == "ML310" and not isinstance(caught, ConversionErrors)
        assert [each.code for each in collected(text).errors] == ["ML310", "ML302"]
        all_of_them = raised(ConversionErrors, Conversion(collect=True).run, parsed(text))
        assert [each.code for each in all_of_them.errors] == ["ML310", "ML302"]

    def test_nothing_is_checked_behind_a_pass_that_failed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Operations that later passes would have lowered are not reported as unsupported."""
        broken = UnsupportedError("this cannot be", code="ML399")
        monkeypatch.setattr(pipelines, "default_pipeline", lambda *_: [Failing(broken)])
        assert [each.code for each in collected(SCAN).errors] == ["ML399"]

    def test_passes_that_did_not_run_are_named(self) -> None:
        config = without("ScanLowering")
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
        raised(kind, collected, NEG)


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

    def test_sizes_of_all_states_are_fixed_at_once(self) -> None:
        """A conversion that begins again for each state takes a time that is quadratic in their number."""
        begun: list[Any] = []

        def observer(event: Step | Phase) -> None:
            if isinstance(event, Phase) and event.name == "translating" and event not in begun:
                begun.append(event)

        Conversion(observers=[observer]).run(parsed(STATES))
        assert len(begun) == 2

    def test_seconds_are_set_at_the_end(self) -> None:
        seconds: list[float | None] = []

        def observer(event: Step | Phase) -> None:
            if isinstance(event, Phase):
                seconds.append(event.seconds)

        Conversion(observers=[observer]).run(parsed(NEG))
        assert seconds[::2] == [None] * 4 and all(each is not None and each > 0 for each in seconds[1::2])


# -- The rt_info of a converted model: converter, version and options; no path and no time


MODEL = onnx.parser.parse_model(
    '<ir_version: 9, opset_import: ["": 18]> m (float[N,3] x, float[3] s) => (float[N,3] y) { y = Mul (x, s) }'
)


def info(**options: Any) -> dict[str, Any]:
    return mo_loop.convert_model(MODEL, **options).graph.rt_info


def test_the_converter_and_its_version_are_named() -> None:
    converter = {"name": "mo_loop", "version": mo_loop.__version__, "target": "2024.6-2026.4"}
    assert info()["converter"] == converter
    assert info(target="2025.4")["converter"] == {**converter, "target": "2025.4"}
    assert info(target="2025.4")["conversion_parameters"] == {} and info()["conversion_parameters"] == {}


def register(extensions: mo_loop.Extensions) -> None:
    """An extension that adds nothing."""


@pytest.mark.parametrize(("options", "expected"), [
    ({"input": "x[1,3],s"}, {"input": "x[1,3],s"}),
    ({"input": {"x": [1, None], "s": (3,)}}, {"input": "x=[1,?],s=[3]"}),
    ({"freeze": {"s": np.array([1.0, 2.0, 0.5])}}, {"freeze": "s=[1.0,2.0,0.5]"}),
    ({"strict": True, "plugins": False, "unroll": 0}, {"strict": "True", "plugins": "False"}),
    (
        {"layout": "x(nc)", "mean_values": "x[1,2,3]", "scale": 2.0},
        {"layout": "x(nc)", "mean_values": "x[1,2,3]", "scale": "2.0"}),
    ({"extensions": register}, {"extensions": "register"}),
    ({"freeze": {}, "rename": {}, "input": {}}, {}),
])
def test_options_that_differ_from_their_default_are_recorded(options: dict[str, Any], expected: dict[str, str]) -> None:
    assert info(**options)["conversion_parameters"] == expected


def test_large_arrays_are_recorded_by_type_and_shape() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[20] x, float[20] s) => (float[20] y) { y = Mul (x, s) }'
    )
    found = mo_loop.convert_model(model, freeze={"s": np.ones(20, np.float32)}).graph.rt_info
    assert found["conversion_parameters"] == {"freeze": "s=f32[20]"}


def test_passes_are_recorded() -> None:
    config = without("SharedOpOptimization", "LoopToTI")
    assert info(config=config)["conversion_parameters"] == {"disable_pass": "LoopToTI,SharedOpOptimization"}


def test_folders_are_not_recorded_and_the_reader_keeps_everything(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def register(extensions):\n    pass\n")
    model = mo_loop.convert_model(MODEL, extensions=str(tmp_path / "own.py"))
    assert model.graph.rt_info["conversion_parameters"] == {"extensions": "own.py"}
    mo_loop.save_model(model, tmp_path / "m.xml", compress_to_fp16=True)
    written = (tmp_path / "m.xml").read_text()
    assert str(tmp_path) not in written and '<compress_to_fp16 value="True" />' in written
    read = mo_loop.read_model(tmp_path / "m.xml").graph.rt_info
    assert read == {
        "converter": {"name": "mo_loop", "version": mo_loop.__version__, "target": "2024.6-2026.4"},
        "conversion_parameters": {"extensions": "own.py", "compress_to_fp16": "True"},
        "sizes": {"x": "?,?", "s": "?"},
    }
    assert model.graph.rt_info["conversion_parameters"] == {"extensions": "own.py"}  # saving does not change a model


@pytest.mark.parametrize("unroll", ["many", "9" * 5000])
def test_recorded_options_that_have_no_value_are_none(unroll: str) -> None:
    assert recorded_options({"conversion_parameters": {"unroll": unroll}}) is None


# -- The commit and the digest of the package, which versions and reports add to the release


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    return tmp_path


def test_the_commit_of_a_checkout(checkout: Path) -> None:
    wanted = git(checkout, "rev-parse", "HEAD")
    assert revision._of_checkout(checkout / ".git") == wanted
    git(checkout, "pack-refs", "--all")
    assert not (checkout / ".git/refs/heads/main").exists() and revision._of_checkout(checkout / ".git") == wanted
    git(checkout, "worktree", "add", "-q", "-b", "other", "beside")
    git(checkout / "beside", "commit", "-q", "--allow-empty", "-m", "second")
    other = git(checkout / "beside", "rev-parse", "HEAD")
    assert revision._of_checkout(checkout / "beside/.git") == other != wanted
    git(checkout, "checkout", "-q", "--detach", other)
    assert revision._of_checkout(checkout / ".git") == other


def test_without_git(tmp_path: Path) -> None:
    assert revision._of_checkout(tmp_path / ".git") == ""


@pytest.mark.parametrize(("text", "found"), [
    (json.dumps({"url": "https://git.example.com", "vcs_info": {"vcs": "git", "commit_id": "abc"}}), "abc"),
    (json.dumps({"url": "file:///x", "dir_info": {"editable": True}}), ""), (None, ""), ("no JSON", ""),
])
def test_the_commit_of_an_installation(text: str | None, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = SimpleNamespace(read_text=lambda name: text)
    monkeypatch.setattr(metadata, "distribution", lambda name: installed)
    assert revision._of_installation() == found


def test_the_digest_changes_with_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = []
    for content in ("a", "b", "a"):
        (tmp_path / "module.py").write_text(content)
        monkeypatch.setattr(revision, "FOLDER", tmp_path)
        revision.package_digest.cache_clear()
        digests.append(revision.package_digest())
    revision.package_digest.cache_clear()
    assert digests[0] == digests[2] != digests[1]


def test_this_checkout_has_a_commit() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    assert git(ROOT, "rev-parse", "HEAD").startswith(revision.commit())
