"""The parts of tools/bench.py: formulas, commands, models and the table."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

import mo_loop
from tools import bench
from tools.benching.bench_rows import FunctionRow, Row, rows
from tools.benching.children import Run, run
from tools.benching.first_results import Times, table
from tools.benching.model_writers import write
from tools.benching.ratio_table import as_json, print_table
from tools.benching.rounds import grouped, imported, measure, result_of
from tools.benching.works import Model, Models, Work, command_of, convert, copy, ovc

OURS, PEER, START = Work("mo-loop", ("a",)), Work("ovc", ("b",)), Work("mo-loop", ("c",))
ROW = Row("row", "what", OURS, PEER, 0.5, start=START)


def runs(ours, peer, start=1.0, mib=10.0):
    """One round of the row: wall times, half of which is CPU time."""
    times = {OURS: ours, PEER: peer, START: start}
    return {work: Run(seconds, seconds / 2, mib if work is OURS else 20.0) for work, seconds in times.items()}


def test_the_median_of_the_ratios_of_rounds_counts():
    found = result_of(ROW, [runs(2, 10), runs(4, 10), runs(9, 10)], (1, 1))
    assert found.ratios == [0.1, 0.3, 0.8] and found.ratio == 0.3 and found.missed == []


def test_of_a_row_that_counts_every_round_the_largest_ratio_counts():
    found = result_of(replace(ROW, every=True), [runs(2, 10), runs(9, 10)], (1, 1))
    assert found.ratio == 0.8 and found.missed == ["time"]


def test_times_of_a_node_are_above_start_up_on_both_sides():
    row = replace(ROW, both=True, per_node=True)
    (ratio,) = result_of(row, [runs(41, 5)], (100, 10)).ratios
    assert ratio == pytest.approx((40 / 100) / (4 / 10))


def test_cpu_time_counts_if_asked_for_and_if_it_says_something():
    again = [{**runs(2, 10), OURS: Run(2, 1.5, 0)}]
    assert result_of(ROW, again, (1, 1), "cpu").ratio == pytest.approx((1.5 - 0.5) / 5)
    assert result_of(replace(ROW, only_wall=True), again, (1, 1), "cpu").ratio == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("memory", "peak", "missed"), [(0.5, math.inf, []), (0.49, math.inf, ["memory"]), (1, 9, ["memory"])]
)
def test_memory_has_limits_of_its_own(memory, peak, missed):
    assert result_of(replace(ROW, memory=memory, peak_mib=peak), [runs(2, 10)], (1, 1)).missed == missed


def test_a_peer_that_takes_no_time_above_start_up_is_no_measurement():
    assert result_of(replace(ROW, both=True), [runs(2, 1)], (1, 1)).ratio == math.inf


def test_rows_of_one_group_are_measured_together():
    first, second, third = (replace(ROW, name=name, group=group) for name, group in (("a", "g"), ("b", ""), ("c", "g")))
    assert [[row.name for row in group] for group in grouped([first, second, third])] == [["a", "c"], ["b"]]


def test_names_of_rows_are_unique_and_those_of_a_minute_need_no_large_model():
    every = rows()
    assert len({row.name for row in every}) == len(every)
    short = [row for row in every if not row.full]
    assert {"help", "version", "tiny", "chain-3k"} < {row.name for row in short}
    works = [work for row in short if isinstance(row, Row) for work in row.works]
    assert all(work.model.size <= 30_000 for work in works if work.model is not None)
    assert {"first-small", "first-loops", "first-large"} == {row.name for row in short if isinstance(row, FunctionRow)}


def test_a_row_that_is_shared_runs_its_work_once_a_round(tmp_path):
    log = tmp_path / "log"
    echo = Work("mo-loop", ("sh", "-c", f"echo run >> {log}"))
    other = Work("peer", ("sh", "-c", "true"))
    chosen = [Row(name, "", echo, other, 1e9, rounds=2, group="g") for name in "ab"]
    found = measure(chosen, tmp_path, lambda line: None)
    assert [each.name for each in found] == ["a", "b"] and log.read_text().count("run") == 2


def test_a_command_gets_paths(tmp_path):
    models = Models(tmp_path, lambda line: None)
    models.path = lambda model: tmp_path / "m.onnx"
    model = Model("external", 1)
    assert command_of(copy(model), models, tmp_path / "o") == ["cp", f"{tmp_path}/m.onnx.data", f"{tmp_path}/o"]
    assert command_of(convert(model, "--strict"), models, tmp_path / "o")[-3:] == [
        "-o", f"{tmp_path}/o.xml", "--strict",
    ]
    assert command_of(ovc(model), models, tmp_path / "o")[-1] == "--compress_to_fp16=False"


def test_a_failing_command_ends_with_its_output(tmp_path):
    with pytest.raises(SystemExit, match="exit code 3\nno disk"):
        run(["sh", "-c", "echo no disk >&2; exit 3"], tmp_path)


def test_a_command_beyond_the_time_limit_is_ended(tmp_path):
    with pytest.raises(SystemExit, match="exit code -9 after 0 s"):
        run(["sleep", "9"], tmp_path, timeout=0.05)


def test_memory_and_cpu_time_of_a_run_are_measured(tmp_path):
    taken = run(["sh", "-c", "echo said"], tmp_path)
    assert taken.printed == "said\n" and 0 < taken.peak_mib < 1000 and 0 < taken.cpu_s < 10


SMALL = [
    *((kind, 40) for kind in ("chain", "body", "layers", "cnn")),
    ("nests", 150), ("loops", 2), ("embedded", 1e-3), ("external", 1e-3), ("decoder-f32", 1e-3),
    ("decoder-f16", 1e-3),
]


@pytest.mark.parametrize(("kind", "size"), SMALL, ids=str)
def test_the_models_of_the_benches_convert(kind, size, tmp_path):
    nodes = write(kind, size, tmp_path / "model.onnx")
    assert nodes > 1
    if kind in ("chain", "body", "layers", "cnn", "nests"):
        assert nodes == pytest.approx(size, rel=0.5)
    mo_loop.convert_model(tmp_path / "model.onnx")


def test_a_folder_has_the_models_of_a_batch(tmp_path):
    assert write("folder", 3, tmp_path / "models") == 90 + 102 + 114
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == ["0000.onnx", "0001.onnx", "0002.onnx"]


def test_the_largest_models_are_what_the_machine_holds(monkeypatch, tmp_path):
    monkeypatch.setattr(bench.shutil, "disk_usage", lambda folder: SimpleNamespace(free=100e9))
    monkeypatch.setattr(bench, "_free_memory", lambda: 12.0)
    assert bench.sizes(tmp_path, None) == (8, 4, 3) and bench.sizes(tmp_path, 1.0) == (1, 1, 1)
    monkeypatch.setattr(bench.shutil, "disk_usage", lambda folder: SimpleNamespace(free=12e9))
    assert bench.sizes(tmp_path, None) == (2, 2, 2)


def test_what_a_command_imports_is_found():
    assert imported(("mo-loop", "--version"), ("mo_loop", "onnx", "no_such_module")) == ("mo_loop",)


def test_the_table_names_what_is_missed_and_what_is_left_out(capsys):
    results = [result_of(replace(ROW, banned=()), [runs(9, 10)], (1, 1))]
    print_table(results, ["chain-100k"], "wall")
    printed = capsys.readouterr().out
    assert "missed: time" in printed and "with --full (make bench-full): chain-100k" in printed
    document = as_json(results, ["chain-100k"], "wall")
    assert document["met"] is False and document["benches"][0]["ratio"] == 0.8
    assert document["benches"][0]["memory_target"] is None


def test_a_row_from_the_command_line_as_json(capsys):
    code = bench.main(["version", "--rounds", "1", "--json"])
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert [each["bench"] for each in document["benches"]] == ["version"] and code == int(not document["met"])
    assert "start 1: mo-loop --version" in printed.err


@pytest.mark.parametrize(
    ("arguments", "message"), [(["nothing"], "no such row: nothing"), (["--rounds", "0"], "at least 1")]
)
def test_wrong_arguments_are_refused(arguments, message, capsys):
    with pytest.raises(SystemExit) as found:
        bench.main(arguments)
    assert found.value.code == 2 and message in capsys.readouterr().err


def test_the_ratio_of_a_first_result_is_that_of_the_least_times():
    times = Times("m", {"mo-loop": [(1.0, 2.0, 3.0), (2.0, 2.0, 1.0)], "ovc": [(4.0, 2.0, 4.0), (5.0, 1.0, 5.0)]})
    assert times.ratio() == 5 / 10
    assert [times.ratio(stage) for stage in range(3)] == [1 / 4, 2 / 1, 1 / 4]
    assert table([times]).splitlines()[-1] == "1 models: convert 0.250, compile 2.000, infer 0.250, all 0.500"
