"""The options of `mo-loop convert` about passes, their environment variables, and their arguments in the library."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.api import convert_model, save_model
from mo_loop.cli.pass_options import VARIABLES
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import run_ir
from mo_loop.errors import InternalError, MoLoopError, UsageError
from mo_loop.graph import Graph
from mo_loop.look.dump.step_files import INDEX, PAGE
from mo_loop.transforms import pipelines, visualize
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.front.loop_to_ti import LoopToTI
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.manager import Phase, Step
from mo_loop.transforms.pattern import any_input, wrap_type
from mo_loop.transforms.predicates import consumers_count
from mo_loop.transforms.rewrite import GraphRewrite, MatcherPass
from tests.harness import parsed, raised, without

from .commands import assert_fails, body, convert, ended, run, saved

SCAN = """
main (float[3] s, float[N, 3] x) => (float[3] t, float[N, 3] y) {
  [scan] t, y = Scan (s, x) <num_scan_inputs: int = 1,
    body = step (float[3] a, float[3] b) => (float[3] c, float[3] d) { c = Add (a, b) d = Identity (c) }> }"""


class NegTwice(MatcherPass):
    """Negative(Negative(x))  ->  x"""

    def __init__(self) -> None:
        super().__init__()
        self.x = any_input()
        inner = wrap_type(ops.Negative, self.x, when=consumers_count(1))
        self.register_matcher(wrap_type(ops.Negative, inner), lambda match: self.replace(match, match[self.x]))


class OnRequest(NegTwice):
    """Changes nothing; disabled unless it is enabled by name."""

    enabled_by_default = False


class ExpTwice(MatcherPass):
    """Matches Exp(Exp(x)) and changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.register_matcher(wrap_type(ops.Exp, wrap_type(ops.Exp)), lambda match: False)


class Broken(FunctionPass):
    """Raises an exception for an Add."""

    def run_on_graph(self, graph: Graph) -> bool:
        for node in self.candidates(graph, ops.Add):
            raise ZeroDivisionError(f"no luck with {node.name}")
        return False


class Tearing(FunctionPass):
    """Leaves an edge in the graph that no input lists."""

    def run_on_graph(self, graph: Graph) -> bool:
        parameter, result = graph.parameters[0], graph.results[0]
        parameter.output._link(result, 7)
        return True


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    """A loop with a named Add in its body; EliminateUnusedPorts and others change it."""
    return saved(parsed(body("[inner_add] t = Add (s, s)")), tmp_path)


@pytest.fixture
def negs(tmp_path: Path) -> Path:
    text = """main (float[3] x) => (float[3] y, float[3] z, float[3] w) {
      [one] a = Neg (x) [two] b = Neg (a) y = Exp (b) [three] c = Neg (x) [four] d = Neg (c) z = Add (c, d)
      [five] e = Neg (x) w = Exp (e) }"""
    return saved(parsed(text), tmp_path)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out" / "model.xml"


def add_passes(monkeypatch: pytest.MonkeyPatch, *passes: type[FunctionPass]) -> None:
    """Put passes in front of the pipeline."""
    original = pipelines.default_pipeline
    monkeypatch.setattr(pipelines, "default_pipeline", lambda *_: [*(each() for each in passes), *original()])


def steps_of(model: Path, **arguments: Any) -> list[Step]:
    """The names of the passes that observers are called for."""
    events: list[Step | Phase] = []
    convert_model(model, observers=(events.append,), **arguments)
    return [each for each in events if isinstance(each, Step)]


def set_passes(monkeypatch: pytest.MonkeyPatch, *passes: type[FunctionPass]) -> None:
    """Replace the pipeline by these passes."""
    monkeypatch.setattr(pipelines, "default_pipeline", lambda *_: [each() for each in passes])


def refused(done: Any, *words: str) -> None:
    """The command fails with a coded usage error that contains `words` and writes nothing."""
    assert_fails(done)
    assert done.stderr.startswith("error: ML201")
    for word in words:
        assert word in done.stderr


class TestListing:
    def rows(self, *arguments: object) -> list[str]:
        done = convert("--passes", *arguments)
        assert done.returncode == 0 and not done.stderr
        return done.stdout.splitlines()

    def states(self, *arguments: object) -> dict[str, list[str]]:
        """Name -> the words after it, for passes outside of a traversal."""
        rows = [row.split() for row in self.rows(*arguments)]
        return {row[1]: row[2:4] for row in rows if row[0].isdigit()}

    def test_the_pipeline_in_order_without_a_model(self) -> None:
        rows = self.rows()[1:]
        assert [row.split()[:2] for row in rows if row.lstrip()[0].isdigit()] == [
            [str(place), each.name] for place, each in enumerate(pipelines.default_pipeline(), 1)
        ]
        row = next(row for row in rows if " LoopToTI " in row)
        assert row.split()[2:4] == ["on", "last"]
        assert row.endswith((LoopToTI.__doc__ or "").partition("\n")[0]) and "->" in row

    def test_passes_that_would_run_are_marked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        add_passes(monkeypatch, OnRequest)
        state = self.states("--disable-pass=EliminateEmptyLoops")
        assert state["OnRequest"][0] == "off" and state["EliminateEmptyLoops"][0] == "off"
        assert state["LoopToTI"][0] == "on"
        state = self.states("--enable-pass=OnRequest", "--stop-after=LoopToTI")
        assert state["OnRequest"][0] == "on" and state["ScanLowering"] == ["not", "reached"]

    def test_matchers_are_listed_below_their_traversal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pipelines, "default_pipeline", lambda *_: [GraphRewrite([NegTwice(), OnRequest()])])
        rows = self.rows()[1:]
        assert [row.split()[0] for row in rows] == ["1", "NegTwice", "OnRequest"]
        assert "Negative(Negative(x))  ->  x" in rows[1] and " off " in rows[2]


def enabled() -> list[str]:
    """The passes of a conversion for any device."""
    return [each.name for each in pipelines.default_pipeline() if each.enabled_by_default]


class TestProfile:
    def test_table(self, loop: Path, target: Path) -> None:
        done = ended(convert(loop, "-o", target, "--profile"))
        lines = [line for line in done.stderr.splitlines() if not re.match(r"  \w", line)]  # without inner passes
        rows, passes = [line.split()[0] for line in lines], enabled()
        assert rows == ["ms", "reading", "translating", *passes, "checking", "writing", "passes", "all"]
        assert "%" not in done.stdout

    def test_json(self, loop: Path, target: Path, tmp_path: Path) -> None:
        assert not ended(convert(loop, "-o", target, "--profile-json", tmp_path / "new" / "p.json")).stderr
        data = json.loads((tmp_path / "new" / "p.json").read_text("utf-8"))
        assert [row["pass"] for row in data["passes"]] == enabled()
        assert [row["phase"] for row in data["phases"]] == ["reading", "translating", "checking", "writing"]
        assert data["seconds"] == pytest.approx(sum(row["seconds"] for row in data["passes"]))
        for before, after in zip(data["passes"], data["passes"][1:], strict=False):
            assert before["nodes_after"] == after["nodes_before"]


class TestVisualize:
    @pytest.fixture(autouse=True)
    def without_graphviz(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(visualize, "_program", lambda: None)

    def changed(self, loop: Path) -> list[str]:
        steps = steps_of(loop)
        found = [f"{place:03d}_{step.name}.dot" for place, step in enumerate(steps, 1) if step.changed]
        return ["000_loaded.dot", *found]

    def test_after_each_pass_that_changed_something(self, loop: Path, target: Path, tmp_path: Path) -> None:
        done = convert(loop, "-o", target, "--visualize", tmp_path / "v")
        assert done.returncode == 0 and done.stderr.count("warning: ") == 1 and "install Graphviz" in done.stderr
        names = sorted(path.name for path in (tmp_path / "v").glob("*.*"))
        assert names == [INDEX, *self.changed(loop), PAGE] and len(names) > 3
        assert "[3]" not in (tmp_path / "v" / names[1]).read_text("utf-8")

    @pytest.mark.parametrize(
        ("flags", "there", "not_there"),
        [("--visualize-shapes", '"[3]"', "f32"), ("--visualize-types", '"f32"', '"[3]"')],
    )
    def test_shapes_and_types(
        self, flags: str, there: str, not_there: str, loop: Path, target: Path, tmp_path: Path
    ) -> None:
        assert convert(loop, "-o", target, "--visualize", tmp_path / "v", flags).returncode == 0
        text = next((tmp_path / "v").glob("*.dot")).read_text("utf-8")
        assert there in text and not_there not in text

    def test_chosen_passes(self, loop: Path, target: Path, tmp_path: Path) -> None:
        name = self.changed(loop)[-1]
        chosen = name[4:-4]
        done = convert(loop, "-o", target, "--visualize", tmp_path / "v", "--visualize-after", f"{chosen},LoopToTI")
        assert done.returncode == 0 and {path.name[4:-4] for path in (tmp_path / "v").glob("*.dot")} == {chosen}

    def test_after_a_part_of_a_pass(self, loop: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Observers are called for the whole traversal only."""
        monkeypatch.setattr(pipelines, "default_pipeline", lambda *_: [GraphRewrite([NegTwice()])])
        done = convert(loop, "-o", target, "--visualize", "v", "--visualize-after", "NegTwice")
        refused(done, "it is not a step", "the pass that contains it")


class TestDump:
    @pytest.fixture(autouse=True)
    def without_graphviz(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(visualize, "_program", lambda: None)

    def endings(self, folder: Path) -> set[str]:
        return {path.suffix for path in folder.glob("*.*") if path.name not in (INDEX, PAGE)}

    @pytest.mark.parametrize(("formats", "endings"), [
        (None, {".txt", ".json", ".dot"}), ("text", {".txt"}), ("json, dot", {".json", ".dot"}),
        ("text,svg", {".txt", ".dot"}),
    ])
    def test_formats(self, formats: str | None, endings: set[str], loop: Path, target: Path, tmp_path: Path) -> None:
        flags = () if formats is None else ("--dump-format", formats)
        done = convert(loop, "-o", target, "--dump", tmp_path / "d", *flags)
        assert done.returncode == 0 and ("install Graphviz" in done.stderr) == (formats == "text,svg")
        assert self.endings(tmp_path / "d") == endings

    def test_a_second_dump_replaces_the_first(self, loop: Path, target: Path, tmp_path: Path) -> None:
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "notes.txt").write_text("kept")
        for flags in (("--dump",), ("--dump-format", "text", "--dump")):
            assert convert(loop, "-o", target, *flags, tmp_path / "d").returncode == 0
        assert self.endings(tmp_path / "d") == {".txt"} and (tmp_path / "d" / "notes.txt").read_text() == "kept"

    def test_dump_and_visualize_use_the_same_numbers(self, loop: Path, target: Path, tmp_path: Path) -> None:
        ended(convert(loop, "-o", target, "--dump", tmp_path / "d", "--visualize", tmp_path / "v"))
        found = [sorted(path.name for path in (tmp_path / folder).glob("*.dot")) for folder in ("d", "v")]
        assert found[0][:-1] == found[1] and found[0][0] == "000_loaded.dot" and "written" in found[0][-1]


class TestExplain:
    def test_every_candidate(self, negs: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        add_passes(monkeypatch, NegTwice)
        done = ended(convert(negs, "-o", target, "--explain-pass", "NegTwice"))
        head, *lines = done.stderr.splitlines()
        assert head.startswith("NegTwice: ") and "1 changed" in head and "4 refused" in head
        assert "  two: changed" in lines
        four = next(line for line in lines if line.startswith("  four: "))
        assert "refused: " in four and "at three: wants 1 consumer, found 2 (1 of the pattern matched before)" in four
        assert any(line.startswith("  five: refused: ") and "is a Parameter" in line for line in lines)

    def test_vetoes_are_named(self, negs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        set_passes(monkeypatch, NegTwice)
        config = PassConfig()
        config.explain("NegTwice")
        config.veto(lambda node: "the user keeps it" if node.name == "two" else False, "NegTwice")
        assert len(convert_model(negs, config=config).graph.of(ops.Negative)) == 5
        vetoed = [each for each in config.explanations if each.outcome == "vetoed"]
        assert [(each.node, each.reason) for each in vetoed] == [("two", "the user keeps it")]

    def test_a_pass_of_several_matchers(self, negs: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its name means all of its matchers that run."""

        class Eliminations(GraphRewrite):
            """All matchers."""

        held = (OnRequest, NegTwice, ExpTwice)
        monkeypatch.setattr(pipelines, "default_pipeline", lambda *_: [Eliminations([each() for each in held])])
        done = convert(negs, "-o", target, "--explain-pass", "Eliminations")
        heads = [line.partition(":")[0] for line in done.stderr.splitlines() if not line.startswith(" ")]
        assert heads == ["NegTwice", "ExpTwice"] and "  two: changed" in done.stderr
        nothing = convert(negs, "-o", target, "--explain-pass", "Eliminations", "--disable-pass", "NegTwice,ExpTwice")
        assert nothing.stderr == "Eliminations: no candidates recorded\n"

    def test_also_when_the_conversion_fails(self, negs: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        add_passes(monkeypatch, NegTwice, Broken)
        done = convert(negs, "-o", target, "--explain-pass", "NegTwice", "--explain-pass", "LoopToTI", "--profile")
        assert done.returncode == 4 and "  two: changed" in done.stderr
        assert "LoopToTI: the conversion ended before it ran" in done.stderr
        assert re.search(r"^NegTwice +\d", done.stderr, re.MULTILINE)
        assert done.stderr.index("two: changed") < done.stderr.index("error: ML")


class TestSelection:
    def test_disabled(self, loop: Path, target: Path, tmp_path: Path) -> None:
        names = "GuardTripCounts,IsolateParameters"
        done = ended(convert(
            loop, "-o", target, "--disable-pass", names, "--disable-pass", "EliminateEmptyLoops", "--profile-json",
            tmp_path / "p",
        ))
        ran = {row["pass"] for row in json.loads((tmp_path / "p").read_text("utf-8"))["passes"]}
        assert "LoopToTI" in ran and not ran & {*names.split(","), "EliminateEmptyLoops"}
        assert done.stderr.startswith("warning: the runtime may refuse or miscompute the result: ")
        assert all(name in done.stderr for name in (*names.split(","), "EliminateEmptyLoops"))

    def test_enabled(self, negs: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        set_passes(monkeypatch, OnRequest)
        assert len(convert_model(negs).graph.of(ops.Negative)) == 5
        done = convert(negs, "-o", target, "--enable-pass", "OnRequest")
        assert done.returncode == 0 and not done.stderr and target.read_text("utf-8").count('type="Negative"') == 3

    @pytest.mark.parametrize(("flags", "words"), [
        (["--disable-pass=LoopToTx"], ["did you mean 'LoopToTI'?"]),
        (["--enable-pass=LoopToTx"], ["did you mean 'LoopToTI'?"]),
        (["--stop-after=LoopToTx"], ["did you mean 'LoopToTI'?"]),
        (["--stop-after=qqqq"], ["listed by --passes"]),
        (["--enable-pass=LoopToTI"], ["no effect", "runs by default"]),
        (["--disable-pass=OnRequest"], ["no effect", "off by default"]),
        (["--enable-pass=OnRequest", "--disable-pass=OnRequest"], ["both"]),
        (["--enable-pass=OnRequest", "--stop-after=NegTwice"], ["no effect", "comes after"]),
        (["--disable-pass=LoopToTI", "--stop-after=LoopToTI"], ["disabled"]),
    ])
    def test_invalid_arguments(
        self, flags: list[str], words: list[str], loop: Path, target: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_passes(monkeypatch, NegTwice, OnRequest)
        refused(convert(loop, "-o", target, *flags), *words)
        assert not target.exists()

    def test_stop(self, loop: Path, target: Path, tmp_path: Path) -> None:
        """The graph is written in this state, with a warning that the runtime may refuse it."""
        common = (loop, "-o", target, "--dump", tmp_path / "steps", "--profile-json", tmp_path / "p.json")
        done = convert(*common, "--stop-after", "HoistInvariants")
        assert done.returncode == 0 and target.exists()
        assert "warning: the runtime may refuse or miscompute the result: " in done.stderr
        assert " more did not run" in done.stderr
        ran = [row["pass"] for row in json.loads((tmp_path / "p.json").read_text("utf-8"))["passes"]]
        assert ran[-1] == "HoistInvariants"
        assert not any("GuardTripCounts" in path.name for path in (tmp_path / "steps").iterdir())

    @pytest.mark.parametrize(("flags", "hint"), [
        (["--stop-after", "HoistInvariants"], "passes that did not run: "),
        (["--disable-pass", "ScanLowering"], "passes that did not run: ScanLowering\n"),
    ])
    def test_a_graph_that_cannot_be_written(self, flags: list[str], hint: str, target: Path, tmp_path: Path) -> None:
        """The error names the missing passes; the dump shows the graph."""
        model = saved(parsed(SCAN), tmp_path)
        done = convert(model, "-o", target, "--dump", tmp_path / "steps", *flags)
        assert done.returncode == 3 and "error: ML320" in done.stderr and f"help:  {hint}" in done.stderr
        assert (tmp_path / "steps" / "000_loaded.txt").exists() and not target.exists()


class TestBrokenPasses:
    def test_the_report_names_pass_node_and_place(
        self, loop: Path, target: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_passes(monkeypatch, Broken)
        done = ended(convert(loop, "-o", target), 4)
        assert done.stderr.splitlines()[:3] == [
            "error: ML400: ZeroDivisionError: no luck with inner_add", "  where: loop/step/inner_add",
            "  in:    the pass Broken",
        ]
        assert "Traceback" not in done.stderr and "report" in done.stderr and not target.exists()
        with_debug = convert(loop, "-o", target, "--debug")
        assert "Traceback" in with_debug.stderr and "run_on_graph" in with_debug.stderr

    def test_a_broken_graph_is_reported_after_the_pass(
        self, loop: Path, target: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_passes(monkeypatch, Tearing)
        done = convert(loop, "-o", target, "--check-passes")
        assert done.returncode == 4 and "error: ML410" in done.stderr and "in:    the pass Tearing" in done.stderr
        assert "ML410" not in convert(loop, "-o", target).stderr


class TestVariables:
    @pytest.fixture(autouse=True)
    def clean(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        for variable in VARIABLES:
            monkeypatch.delenv(variable.name, raising=False)
        monkeypatch.setattr(visualize, "_program", lambda: None)
        monkeypatch.chdir(tmp_path)

    def done(self, loop: Path, target: Path, *arguments: object, **variables: str) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            return convert(loop, "-o", target, *arguments)

    @pytest.mark.parametrize("name", [variable.name for variable in VARIABLES])
    @pytest.mark.parametrize("value", ["", "0", "false", "OFF", "no", " "])
    def test_off(self, name: str, value: str, loop: Path, target: Path, tmp_path: Path) -> None:
        assert not ended(self.done(loop, target, **{name: value})).stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "out"]

    @pytest.mark.parametrize("name", ["OV_ENABLE_PROFILE_PASS", "NGRAPH_PROFILE_PASS_ENABLE"])
    @pytest.mark.parametrize("value", ["1", "true", "On"])
    def test_profile(self, name: str, value: str, loop: Path, target: Path) -> None:
        done = self.done(loop, target, **{name: value})
        assert done.returncode == 0 and f"note: {name} sets --profile\n" in done.stderr
        assert re.search(r"^LoopToTI +\d", done.stderr, re.MULTILINE)

    @pytest.mark.parametrize("name", ["OV_ENABLE_VISUALIZE_TRACING", "NGRAPH_ENABLE_VISUALIZE_TRACING"])
    def test_pictures(self, name: str, loop: Path, target: Path, tmp_path: Path) -> None:
        assert self.done(loop, target, **{name: "1"}).returncode == 0
        pictures = {path.name for path in tmp_path.glob("*.dot")}
        assert len(pictures) > 1 and self.done(loop, target, **{name: "LoopToTI, GuardTripCounts"}).returncode == 0
        chosen = {path.name for path in tmp_path.glob("*.dot")}  # those of the first run are gone
        assert chosen == {each for each in pictures if "GuardTripCounts" in each}

    def test_flags_override_variables(self, loop: Path, target: Path, tmp_path: Path) -> None:
        done = self.done(loop, target, "--visualize", tmp_path / "v", OV_ENABLE_VISUALIZE_TRACING="1")
        assert done.returncode == 0 and "note: " not in done.stderr
        assert (tmp_path / "v").exists() and not list(tmp_path.glob("*.dot"))

    @pytest.mark.parametrize("prefix", ["OV", "NGRAPH"])
    def test_shapes_and_types(self, prefix: str, loop: Path, target: Path, tmp_path: Path) -> None:
        """They configure pictures; without pictures they have no effect."""
        both = {f"{prefix}_VISUALIZE_TREE_OUTPUT_{what}": "1" for what in ("SHAPES", "TYPES")}
        assert self.done(loop, target, **both).stderr == ""
        assert self.done(loop, target, "--visualize", tmp_path / "v", **both).returncode == 0
        assert "f32[3]" in next((tmp_path / "v").glob("*.dot")).read_text("utf-8")

    def test_checked_passes(self, loop: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        add_passes(monkeypatch, Tearing)
        assert "error: ML410" in self.done(loop, target, MO_LOOP_CHECK_PASSES="1").stderr

    def test_help_names_them(self) -> None:
        text = " ".join(convert("--help-all").stdout.split())
        assert [variable.name for variable in VARIABLES if variable.name not in text] == []
        assert "table on stderr. [env: OV_ENABLE_PROFILE_PASS, NGRAPH_PROFILE_PASS_ENABLE]" in text

    def test_the_library_reads_none(self, loop: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            for variable in VARIABLES:
                patch.setenv(variable.name, "1")
            convert_model(loop)
        assert capfd.readouterr() == ("", "") and not list(tmp_path.glob("*.dot"))

    def test_in_a_process_of_its_own(self, loop: Path, target: Path, tmp_path: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OV_ENABLE_PROFILE_PASS", "1")
            done = run(loop, "-o", target, cwd=tmp_path)
        assert done.returncode == 0 and "IsolateParameters" in done.stderr and "IsolateParameters" not in done.stdout


class TestLibrary:
    def test_observers_see_every_pass(self, loop: Path) -> None:
        assert [step.name for step in steps_of(loop)] == enabled()

    def test_observers_see_every_phase_begin_and_end(self, loop: Path, target: Path) -> None:
        events: list[tuple[str, bool]] = []

        def observer(event: Step | Phase) -> None:
            if isinstance(event, Phase):
                events.append((event.name, event.seconds is not None))

        model = convert_model(loop, observers=(observer,), rename={"y": "z"})
        save_model(model, target, compress_to_fp16=True, observers=(observer,))
        names = ("reading", "translating", "passes", "renaming", "checking", "compressing", "writing")
        assert events == [(name, has_ended) for name in names for has_ended in (False, True)]

    def test_a_phase_that_fails_does_not_end(self, loop: Path) -> None:
        ended: list[str] = []

        def observer(event: Step | Phase) -> None:
            if isinstance(event, Phase) and event.seconds is not None:
                ended.append(event.name)

        raised(UsageError, convert_model, loop, observers=(observer,), output="no such")
        assert ended == ["reading"]

    def test_stop(self, loop: Path) -> None:
        """Observers are called for the last pass, too."""
        steps = steps_of(loop, stop_after="EliminateUnusedPorts")
        names = enabled()
        last = len(names) - names[::-1].index("EliminateUnusedPorts")
        assert [step.name for step in steps] == names[:last]

    def test_names_are_checked_before_the_model_is_read(self) -> None:
        config = without("LoopToTx")
        raised(UsageError, convert_model, "no such file.onnx", config=config, match="LoopToTx")
        raised(UsageError, convert_model, "no such file.onnx", stop_after="LoopToTx", match="LoopToTx")

    def test_checked_passes(self, loop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        add_passes(monkeypatch, Tearing)
        raised(InternalError, convert_model, loop, check_passes=True, match=r"^ML410: ")
        monkeypatch.setattr("mo_loop.conversion.CHECK_PASSES", True)
        raised(InternalError, convert_model, loop)
        other = raised(MoLoopError, convert_model, loop, check_passes=False, stop_after="Tearing", output="no such")
        assert other.code != "ML410"

    def test_a_plain_conversion_does_not_load_these_modules(self, loop: Path, target: Path) -> None:
        lines = (
            "import sys",
            "from mo_loop.cli import main",
            "main(['convert', sys.argv[1], '-o', sys.argv[2]], standalone_mode=False)",
            "modules = ('mo_loop.transforms.selection', 'mo_loop.transforms.profile', 'mo_loop.transforms.visualize', "
            "'mo_loop.text.dot', 'mo_loop.look.dump', 'mo_loop.look.page')",
            "print([each for each in modules if each in sys.modules])",
        )
        command = [sys.executable, "-c", "\n".join(lines), str(loop), str(target)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "[]"

    def test_observers_do_not_change_the_output(self, loop: Path, tmp_path: Path) -> None:
        plain, looked = tmp_path / "a.xml", tmp_path / "b.xml"
        assert convert(loop, "-o", plain).returncode == 0
        flags = ("--profile", "--check-passes", "--visualize", tmp_path / "v", "--explain-pass", "LoopToTI")
        assert convert(loop, "-o", looked, *flags).returncode == 0 and plain.read_bytes() == looked.read_bytes()
        assert plain.with_suffix(".bin").read_bytes() == looked.with_suffix(".bin").read_bytes()
        feeds = [{"x": np.ones(3, np.float32), "n": np.int64(3)}]
        assert isolated(run_ir, os.fspath(looked), feeds)[0][0][1].tolist() == [8.0, 8.0, 8.0]
