"""verify with an IR that has states: right ones, and ones with a planted fault, found with the step where it shows."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop.api import Model, save_model
from mo_loop.compare import ir_runs
from mo_loop.compare.execution.runtime import Compiled, read_ir
from mo_loop.compare.results.report import Report
from mo_loop.compare.results.report_formats import as_junit, as_markdown, as_text
from mo_loop.compare.verifying import verify
from mo_loop.errors import InputError, UsageError
from mo_loop.text import parse
from tests.cli.commands import mo_loop, saved
from tests.harness import parsed
from tests.running.processor import fail_or_skip
from tests.runtime.verify.stateful_models import (
    ATTENTION,
    CACHES,
    CELL,
    HISTORIES,
    HISTORY,
    RECURRENT,
    SCANNED,
    one_step,
    with_states,
)


@pytest.fixture
def attention(tmp_path: Path) -> Path:
    return saved(parsed(ATTENTION), tmp_path)


@pytest.fixture
def cell(tmp_path: Path) -> Path:
    return saved(parsed(CELL), tmp_path)


def first(report: Report) -> tuple[str, int, str]:
    """The sequence, the step and the output of the first difference."""
    row = report.sides[0].first
    assert row is not None, as_text(report)
    return report.sets[row.set].name, row.step, row.output


class TestStatesOfTheCaller:
    @pytest.mark.parametrize("beam", [False, True])
    def test_right_caches_pass_in_every_step(self, attention: Path, beam: bool) -> None:
        report = verify(attention, with_states(attention, CACHES, beam=beam))
        assert report, as_text(report)
        assert (report.steps, report.order, report.inferences) == ((4, 4, 4), (0, 1, 2, 2, 1, 0), 24)
        rows = report.sides[0].rows
        compared = {"logits", "state past_keypresent_key", "state past_valuepresent_value"}
        assert {row.output for row in rows} == compared and {row.set for row in rows} == {0, 1, 2}
        # The first step is a prompt of several tokens in the first and third sequence.
        assert [each.types["input_ids"] for each in report.sets] == ["i64[2,3]", "i64[1,1]", "i64[5,4]"]
        assert report.sets[0].types.get("beam_idx") == ("i32[2]" if beam else None)
        assert not report.notes

    @pytest.mark.parametrize("text", [ATTENTION, CELL])
    def test_outputs_whose_types_the_model_does_not_declare(self, text: str, tmp_path: Path) -> None:
        """They were refused as if they had been inputs."""
        model = parsed(text)
        for output in model.graph.output:
            output.ClearField("type")
        source = saved(model, tmp_path)
        states, axis = (CACHES, 2) if text is ATTENTION else ({"state": "next"}, None)
        report = verify(source, with_states(source, states, axis=axis))
        assert report, as_text(report)

    def test_a_state_that_does_not_grow_passes(self, cell: Path) -> None:
        report = verify(cell, with_states(cell, {"state": "next"}, axis=None), steps=6, sets=2)
        assert report, as_text(report)
        assert report.steps == (6, 6)
        assert {row.output for row in report.sides[0].rows} == {"y", "state statenext"}

    @pytest.mark.parametrize(("fault", "step"), [("assign", 1), ("short", 1), ("beam", 2), ("lost", 2)])
    def test_a_fault_of_a_cache_is_found_in_its_step(self, attention: Path, fault: str, step: int) -> None:
        """A value that is stored wrongly is a wrong state of step 1; what is lost between steps shows in step 2."""
        report = verify(attention, with_states(attention, CACHES, beam=True, fault=fault))
        assert report.exit_code == 1 and report.status in ("differs", "fails")
        sequence, at, _ = first(report)
        assert (sequence, at) == ("sequence 1", step), as_text(report)
        bad = {row.output for row in report.sides[0].rows if not row.result}
        assert "state past_keypresent_key" not in bad and "state past_valuepresent_value" in bad

    @pytest.mark.parametrize(("fault", "step", "output"), [
        ("assign", 1, "state statenext"), ("initial", 1, "y"), ("lost", 2, "y"),
    ])
    def test_a_fault_of_a_recurrent_state_is_found_in_its_step(
        self, cell: Path, fault: str, step: int, output: str
    ) -> None:
        report = verify(cell, with_states(cell, {"state": "next"}, axis=None, fault=fault))
        assert (report.status, report.exit_code) == ("differs", 1)
        assert first(report) == ("sequence 1", step, output)

    @pytest.mark.parametrize(("fault", "step", "output"), [
        ("", 0, ""), ("assign", 1, "state past_cpresent_c"), ("short", 1, "state past_cpresent_c"), ("lost", 2, "c"),
        ("initial", 1, "a"),
    ])
    def test_a_cache_without_masks_and_positions(self, tmp_path: Path, fault: str, step: int, output: str) -> None:
        """The values of a cache that is lost are zeros; one that does not begin empty is longer."""
        source = saved(parsed(HISTORY), tmp_path)
        report = verify(source, with_states(source, HISTORIES, axis=1, fault=fault))
        assert report.status == ("differs" if fault else "passed"), as_text(report)
        assert not fault or first(report) == ("sequence 1", step, output)
        assert report.sets[0].types == {"x": "f32[2,3,3]"}

    def test_a_state_that_was_cut_off_is_a_missing_output(self, tmp_path: Path) -> None:
        source = saved(parsed(HISTORY), tmp_path)
        report = verify(source, with_states(source, HISTORIES, axis=1, fault="cut"))
        assert (report.status, report.exit_code) == ("differs", 1)
        assert first(report) == ("sequence 1", 1, "outputs")
        assert any("neither an input nor a state for these inputs: past_c" in each for each in report.notes)

    def test_a_state_that_a_reset_leaves_is_found_where_the_next_sequence_begins(
        self, cell: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ir = with_states(cell, {"state": "next"}, axis=None)
        monkeypatch.setattr(ir_runs, "compile_ir", Stale)
        # Sequences of one batch size: the old state fits.
        report = verify(cell, ir, inputs=[{"x": np.full((2, 3), number, np.float32)} for number in (1, 2)])
        assert first(report) == ("the given steps", 1, "y")
        row = report.sides[0].first
        assert row is not None and row.inference == 2  # the second time that the sequence runs

    def test_another_precision_is_a_side_of_its_own(self, attention: Path) -> None:
        report = verify(attention, with_states(attention, CACHES), precision="default", sets=1, rtol=0.1, atol=0.1)
        assert [side.name for side in report.sides] == ["f32", "default"]
        fail_or_skip([] if report.passed else [as_text(report)])


class Stale(Compiled):
    """A device that keeps its states over a reset."""

    def __init__(self, path: str, properties: Any, device: str, _: Any) -> None:
        super().__init__(read_ir(path), properties, device)

    def step(self, feeds: Any, reset: bool = False, states: bool = True) -> Any:
        return super().step(feeds, False, states)


def steps_of(model: Path, tokens: int) -> list[Mapping[str, Any]]:
    """Inputs of steps of one token, without the caches."""
    return [
        {"input_ids": np.full((1, 1), number + 1), "position_ids": np.full((1, 1), number),
         "attention_mask": np.ones((1, number + 1), np.int64)}
        for number in range(tokens)
    ]


class TestGivenSteps:
    def test_given_sets_are_the_steps_of_one_sequence(self, attention: Path) -> None:
        report = verify(attention, with_states(attention, CACHES), inputs=steps_of(attention, 3))
        assert report, as_text(report)
        assert (report.steps, [each.name for each in report.sets]) == ((3,), ["the given steps"])

    def test_they_come_from_files_which_can_have_the_caches_too(self, attention: Path) -> None:
        paths = []
        for number, feeds in enumerate(steps_of(attention, 2)):
            paths.append(attention.with_name(f"step{number}.npz"))
            np.savez(paths[-1], past_key=np.ones((1, 2, 9, 4), np.float32), **feeds)
        report = verify(attention, with_states(attention, CACHES), inputs=paths)
        assert report.passed and report.steps == (2,)

    def test_steps_that_do_not_fit_are_refused(self, attention: Path) -> None:
        wrong = [{**steps_of(attention, 1)[0], "attention_mask": np.ones((1, 7), np.int64)}]
        with pytest.raises(InputError, match="does not accept the given steps"):
            verify(attention, with_states(attention, CACHES), inputs=wrong)


    @pytest.mark.parametrize("rows", [[5, 6], [-1, 0], [0.5, 1.0], [[0, 1]], ["a"]])
    def test_rows_that_the_states_do_not_have_are_refused(self, attention: Path, rows: list[Any]) -> None:
        feeds = {**steps_of(attention, 1)[0], "beam_idx": np.asarray(rows)}
        with pytest.raises(InputError, match="beam_idx does not name rows"):
            verify(attention, with_states(attention, CACHES, beam=True), inputs=[feeds])


class TestSequences:
    @pytest.mark.parametrize("keep_initial", [False, True])
    @pytest.mark.parametrize(("text", "shapes", "outputs"), [
        (RECURRENT, "x[1,?,3],h,c", {"y", "last_h", "last_c"}), (SCANNED, "x[?,1,2],start", {"last", "sums"}),
    ])
    def test_a_model_that_takes_one_step_gives_the_slices_of_the_whole(
        self, tmp_path: Path, text: str, shapes: str, outputs: set[str], keep_initial: bool
    ) -> None:
        source = saved(parsed(text), tmp_path)
        report = verify(source, one_step(source, shapes, keep_initial=keep_initial))
        assert report, as_text(report)
        assert report.steps == (4, 4, 4, 1)
        assert {row.output for row in report.sides[0].rows} == outputs
        last = {row.step for row in report.sides[0].rows if row.output.startswith("last") and row.set == 0}
        assert last == {4}  # the last state of the whole is compared after the last step

    def test_both_dimensions_of_one_are_told_apart_by_the_operator(self, tmp_path: Path) -> None:
        source = saved(parsed(RECURRENT), tmp_path)
        report = verify(source, one_step(source, "x[1,1,3],h[1,1,2],c[1,1,2]", keep_initial=True), steps=3, sets=1)
        assert report, as_text(report)
        assert report.sets[0].types["x"] == "f32[1,1,3]" and report.steps == (3, 1)

    def test_a_fixed_length_is_that_of_the_sequences(self, tmp_path: Path) -> None:
        source = saved(parsed(RECURRENT.replace("time", "5")), tmp_path)
        dynamic = saved(parsed(RECURRENT), tmp_path, "dynamic.onnx")
        report = verify(source, one_step(dynamic, "x[1,?,3],h,c"), sets=1)
        assert report, as_text(report)
        assert report.steps == (5,)

    def test_a_fixed_length_of_one_gives_single_steps(self, tmp_path: Path) -> None:
        source = saved(parsed(RECURRENT.replace("time", "1")), tmp_path)
        report = verify(source, one_step(source, "x[1,?,3],h,c"), sets=2)
        assert report, as_text(report)
        assert report.steps == (1, 1)

    def test_a_state_that_is_not_kept_is_found_in_the_second_step(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source = saved(parsed(SCANNED), tmp_path)
        ir = one_step(source, "x[?,1,2],start")
        monkeypatch.setattr(ir_runs, "compile_ir", Forgetful)
        assert first(verify(source, ir)) == ("sequence 1", 2, "sums")

    def test_given_inputs_are_whole_sequences(self, tmp_path: Path) -> None:
        source = saved(parsed(RECURRENT), tmp_path)
        random = np.random.default_rng(0)
        feeds = {"x": random.standard_normal((6, 2, 3)).astype(np.float32)}
        feeds |= {name: random.standard_normal((1, 2, 2)).astype(np.float32) for name in "hc"}
        report = verify(source, one_step(source, "x[1,?,3],h,c", keep_initial=True), inputs=[feeds])
        assert report, as_text(report)
        assert report.steps == (6,)


    @pytest.mark.parametrize(("feeds", "said"), [
        ({"x": np.zeros((2, 0, 2), np.float32)}, "is a sequence of 0 steps"),
        ({"x": np.zeros(2, np.float32)}, "'x' has the shape"),
        ({"x": 1}, "'x' has the shape"),
        ({}, "no value for the input 'x'"),
    ])
    def test_given_inputs_that_are_no_sequences_are_refused(
        self, tmp_path: Path, feeds: dict[str, Any], said: str
    ) -> None:
        source = saved(parsed(SCANNED), tmp_path)
        start = {"start": np.zeros((2, 2), np.float32)}
        with pytest.raises(InputError, match=said):
            verify(source, one_step(source, "x[?,1,2],start", keep_initial=True), inputs=[feeds | start])


def test_inputs_of_different_numbers_of_steps_are_refused(tmp_path: Path) -> None:
    text = SCANNED.replace("float[batch, time, 2] x)", "float[batch, time, 2] x, float[batch, time, 2] z)")
    text = text.replace("ahead = ", "sum = Add (x, z) ahead = ").replace("(x)\n", "(sum)\n")
    source = saved(parsed(text), tmp_path)
    feeds = {"x": np.zeros((2, 4, 2)), "z": np.zeros((2, 1, 2)), "start": np.zeros((2, 2))}
    with pytest.raises(InputError, match="different numbers of steps"):
        verify(source, one_step(source, "x[?,1,2],z[?,1,2],start", keep_initial=True),
               inputs=[{name: value.astype(np.float32) for name, value in feeds.items()}])


class Forgetful(Stale):
    """A device that loses its states after each inference."""

    def step(self, feeds: Any, reset: bool = False, states: bool = True) -> Any:
        return Compiled.step(self, feeds, True, states)


class TestReports:
    def test_text_json_markdown_and_junit_name_the_step(self, cell: Path) -> None:
        report = verify(cell, with_states(cell, {"state": "next"}, axis=None, fault="lost"), sets=2)
        text = as_text(report)
        assert "2 sequences of 4 steps, 16 inferences" in text
        said = "The first difference is in step 2 of 4 of sequence 1: y."
        assert said in text and "in step 2 of 4 of sequence 1" in as_markdown(report)
        found = json.loads(json.dumps(report.to_dict()))
        assert (found["steps"], found["inferences"]) == ([4, 4], 16)
        assert found["sides"][0]["first_difference"] == {"set": 0, "step": 2, "output": "y", "inference": 1}
        assert {row["step"] for row in found["sides"][0]["rows"]} <= {1, 2, 3, 4}
        failures = [each.get("message") or "" for each in ET.fromstring(as_junit(report)).iter("failure")]
        assert len(failures) == 2 and all("sequence" in each and "step 2" in each for each in failures)

    def test_what_was_compared_can_be_saved(self, cell: Path, tmp_path: Path) -> None:
        folder = tmp_path / "kept"
        verify(cell, with_states(cell, {"state": "next"}, axis=None), sets=1, steps=2, save=folder)
        names = {each.name for each in folder.iterdir()}
        assert names == {
            f"sequence1-step{step}-{what}.npz" for step in (1, 2) for what in ("inputs", "onnxruntime", "f32")
        }
        ours, theirs = (np.load(folder / f"sequence1-step2-{side}.npz") for side in ("f32", "onnxruntime"))
        assert set(ours) == set(theirs) == {"y", "state statenext"}
        assert np.allclose(ours["state statenext"], theirs["state statenext"])

    @pytest.mark.parametrize("option", [{"layers": True}, {"passes": True}, {"dump": "steps"}, {"against": ["ovc"]}])
    def test_what_compares_single_inferences_is_refused(
        self, cell: Path, option: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(cell.parent)
        with pytest.raises(UsageError, match="does not compare an IR with states with --") as caught:
            verify(cell, with_states(cell, {"state": "next"}, axis=None), **option)
        assert caught.value.exit_code == 2 and caught.value.code == "ML201"

    def test_an_ir_of_another_model_is_refused(self, cell: Path, attention: Path) -> None:
        ir = with_states(attention, CACHES)
        with pytest.raises(InputError, match="the IR has the input 'input_ids'"):
            verify(saved(parsed(CELL), cell.parent, "cell.onnx"), ir)


def test_exit_codes_of_the_command(cell: Path) -> None:
    with_states(cell, {"state": "next"}, axis=None, target="good.xml")
    with_states(cell, {"state": "next"}, axis=None, fault="lost", target="bad.xml")
    good = mo_loop("verify", "model.onnx", "good.xml", "--steps", "3", cwd=cell.parent)
    assert good.returncode == 0 and "3 sequences of 3 steps" in good.stdout
    bad = mo_loop("verify", "model.onnx", "bad.xml", cwd=cell.parent)
    assert bad.returncode == 1 and "The first difference is in step 2 of 4 of sequence 1" in bad.stdout
    refused = mo_loop("verify", "model.onnx", "good.xml", "--layers", cwd=cell.parent)
    assert refused.returncode == 2 and "--layers" in refused.stderr
    assert mo_loop("verify", "model.onnx", "good.xml", "--steps", "0", cwd=cell.parent).returncode == 2


def test_a_variable_that_is_never_assigned_is_refused(cell: Path) -> None:
    save_model(Model(parse("""
        %x = Parameter : f32[2,3] "x"
        %s = ReadValue([[0.0, 0.0, 0.0]]) {variable_id: "statenext", variable_type: f32, variable_shape: [1, 3]}
        %y = Add(%x, %s) names "y"
        Result(%y)""")), cell.with_name("read.xml"))
    found = mo_loop("verify", "model.onnx", "read.xml", cwd=cell.parent)
    assert found.returncode == 2 and "ML256" in found.stderr and "statenext" in found.stderr
