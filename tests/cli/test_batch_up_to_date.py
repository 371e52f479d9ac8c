"""`mo-loop batch` a second time: what has changed, known failures, and a plan by the report of an earlier batch."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from lxml import etree
from onnx import numpy_helper

from tests.batch_state import entries_in, write_entries
from tests.cli.batches import batch, files_in, good, read, refused, statuses
from tests.cli.commands import ended
from tests.harness import floats, parsed, with_weights

# -- `mo-loop batch` a second time: it converts what has changed, and nothing else


EXTENSION = """
from mo_loop.transforms.function_pass import FunctionPass

class Nothing(FunctionPass):
    def run_on_graph(self, graph):
        return False

def register(extensions):
    extensions.add_pass(Nothing, at="start")
"""


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, the second with external data, an extension, and their pairs."""
    folder = tmp_path_factory.mktemp("once")
    good(folder / "in" / "a.onnx")
    model = with_weights("m (float[1,64] x) => (float[1,64] y) { y = MatMul (x, w) }", w=floats(64, 64))
    (folder / "in" / "sub").mkdir()
    onnx.save(model, folder / "in" / "sub" / "b.onnx", save_as_external_data=True, location="b.data", size_threshold=0)
    (folder / "e.py").write_text(EXTENSION)
    assert run(folder) == {"a.onnx": "converted", "sub/b.onnx": "converted"}
    return folder


@pytest.fixture
def tree(once: Path, tmp_path: Path) -> Path:
    """A copy of these files for one test."""
    return Path(shutil.copytree(once, tmp_path / "tree"))


def run(folder: Path, *arguments: str) -> dict[str, str]:
    """The statuses of a batch that succeeds."""
    ended(batch("in", "-o", "out", "--extension", "e.py", "--report", "r.json", *arguments, cwd=folder))
    return statuses(folder / "r.json")


SKIPPED = {"a.onnx": "skipped", "sub/b.onnx": "skipped"}


def flip(path: Path) -> None:
    """Change the last byte; size and time of modification stay."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def written(path: Path) -> tuple[int, int]:
    """The inode of the file and its time of modification."""
    return path.stat().st_ino, path.stat().st_mtime_ns


def test_unchanged_models_are_up_to_date(tree: Path) -> None:
    before = {path: written(path) for path in (tree / "out").rglob("*.*") if path.suffix != ".json"}
    first = read(tree / "r.json")["models"]
    assert run(tree) == SKIPPED and {path: written(path) for path in before} == before
    told = ("name", "exit_code", "sizes", "layers", "control_flow", "warnings")
    again = read(tree / "r.json")["models"]
    assert [[each[key] for key in told] for each in again] == [[each[key] for key in told] for each in first]


def test_touched_and_copied_models_are_up_to_date(tree: Path) -> None:
    os.utime(tree / "in" / "a.onnx")
    os.utime(tree / "out" / "a.bin")
    shutil.move(tree / "in", tree / "elsewhere")
    shutil.copytree(tree / "elsewhere", tree / "in")
    assert run(tree) == SKIPPED


def test_force(tree: Path) -> None:
    assert set(run(tree, "--force").values()) == {"converted"}


CHANGES: dict[str, tuple[Callable[[Path], object], dict[str, str]]] = {
    "the model": (lambda tree: good(tree / "in/a.onnx", 5), {"a.onnx": "converted"}),
    "external data": (lambda tree: flip(tree / "in/sub/b.data"), {"sub/b.onnx": "converted"}),
    "a .bin": (lambda tree: flip(tree / "out/sub/b.bin"), {"sub/b.onnx": "converted"}),
    "an .xml": (lambda tree: flip(tree / "out/a.xml"), {"a.onnx": "converted"}),
    "a .bin is gone": (lambda tree: os.remove(tree / "out/a.bin"), {"a.onnx": "converted"}),
    "an .xml is gone": (lambda tree: os.remove(tree / "out/sub/b.xml"), {"sub/b.onnx": "converted"}),
    "an extension": (
        lambda tree: (tree / "e.py").write_text(EXTENSION + "# more\n"),
        {"a.onnx": "converted", "sub/b.onnx": "converted"}),
    "another model": (lambda tree: good(tree / "in/c.onnx", 5), {"c.onnx": "converted"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_converted(name: str, tree: Path) -> None:
    pairs = {path.name: path.read_bytes() for path in (tree / "out").rglob("*.*") if path.suffix != ".json"}
    change, expected = CHANGES[name]
    change(tree)
    assert run(tree) == {**SKIPPED, **expected}
    if "." in name:
        assert {path.name: path.read_bytes() for path in (tree / "out").rglob("*.*") if path.name in pairs} == pairs
    assert set(run(tree).values()) == {"skipped"}


@pytest.mark.parametrize("options", [["--quantization", "exact"], ["--no-plugins"]])
def test_other_options_convert_again(options: list[str], tree: Path) -> None:
    assert set(run(tree, *options).values()) == {"converted"} and run(tree, *options) == SKIPPED
    assert set(run(tree).values()) == {"converted"}


def test_options_of_the_run_do_not_convert_again(tree: Path) -> None:
    assert run(tree, "-j", "1", "--timeout", "99", "--memory", "6G", "--fail-fast", "--quiet") == SKIPPED


def test_another_version_converts_again(tree: Path) -> None:
    """Another version of mo-loop computes another hash of the options."""
    state = entries_in(tree / "out/.mo-loop.json")
    state["a.xml"]["made"]["options"] = "0" * 64
    write_entries(tree / "out/.mo-loop.json", state)
    assert run(tree) == {**SKIPPED, "a.onnx": "converted"}


def test_a_state_file_of_another_kind_is_replaced(tree: Path) -> None:
    path = tree / "out/.mo-loop.json"
    path.write_text(json.dumps({"format": 1, "models": {}}))
    done = batch("in", "-o", "out", "--extension", "e.py", "--report", "r.json", cwd=tree)
    assert done.returncode == 0 and done.stderr.startswith("note: ") and "no model is up to date" in done.stderr
    assert set(statuses(tree / "r.json").values()) == {"converted"} and run(tree) == SKIPPED


def test_of_a_truncated_state_file_the_whole_lines_count(tree: Path) -> None:
    path = tree / "out/.mo-loop.json"
    path.write_bytes(path.read_bytes()[:-20])
    assert run(tree) == {**SKIPPED, "sub/b.onnx": "converted"} and run(tree) == SKIPPED
    assert list(entries_in(path)) == ["a.xml", "sub/b.xml"]


def test_batches_of_one_folder_keep_each_others_state(tree: Path) -> None:
    good(tree / "more" / "c.onnx")
    assert batch("more", "-o", "out", "--extension", "e.py", cwd=tree).returncode == 0 and run(tree) == SKIPPED
    assert list(entries_in(tree / "out/.mo-loop.json")) == ["a.xml", "c.xml", "sub/b.xml"]
    for kind in ("xml", "bin"):
        os.remove(tree / "out" / f"c.{kind}")
    run(tree, "--force")
    assert list(entries_in(tree / "out/.mo-loop.json")) == ["a.xml", "sub/b.xml"]


def test_a_failed_model_is_tried_again_and_keeps_its_old_pair(tree: Path) -> None:
    before = (tree / "out/a.xml").read_bytes()
    refused(tree / "in/a.onnx")
    for _ in range(2):
        done = batch("in", "-o", "out", "--extension", "e.py", "--report", "r.json", cwd=tree)
        assert done.returncode == 1 and statuses(tree / "r.json") == {"a.onnx": "failed", "sub/b.onnx": "skipped"}
        assert (tree / "out/a.xml").read_bytes() == before
    good(tree / "in/a.onnx")
    assert run(tree) == SKIPPED, "the model is again what the pair was made of"


def test_changed_external_data_of_bodies_is_converted(tmp_path: Path) -> None:
    text = """
        m (float[64] x, int64 n) => (float[64] y) {
          [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[64] s) => (bool d, float[64] t) {
            d = Identity (c) t = Mul (s, w) }> }"""
    model = parsed(text)
    inner = numpy_helper.from_array(floats(64), "w")
    model.graph.node[0].attribute[0].g.initializer.append(inner)
    weights = model.graph.node[0].attribute[0].g.initializer[0]
    data = weights.raw_data
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "w.data"), ("offset", "0"), ("length", str(len(data)))):
        entry = weights.external_data.add()
        entry.key, entry.value = key, value
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "m.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "in" / "w.data").write_bytes(data)
    (tmp_path / "e.py").write_text(EXTENSION)
    assert run(tmp_path) == {"m.onnx": "converted"} and run(tmp_path) == {"m.onnx": "skipped"}
    assert read(tmp_path / "r.json")["models"][0]["sizes"]["external"] == len(data)
    flip(tmp_path / "in" / "w.data")
    assert run(tmp_path) == {"m.onnx": "converted"}


def test_a_pair_does_not_replace_the_data_of_its_model(tmp_path: Path) -> None:
    """With an .xml of its name, the .bin looks like that of an older pair."""
    model = with_weights("m (float[1,64] x) => (float[1,64] y) { y = MatMul (x, w) }", w=floats(64, 64))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    (tmp_path / "m.xml").write_text("something")
    before = (tmp_path / "m.bin").read_bytes()
    assert "holds weights of the model itself" in ended(batch("m.onnx", "-o", ".", cwd=tmp_path), 1).stderr
    assert (tmp_path / "m.bin").read_bytes() == before and files_in(tmp_path) == ["m.bin", "m.onnx", "m.xml"]


# -- `mo-loop batch --baseline`: known failures do not count, new ones do


@pytest.fixture
def accepted(tmp_path: Path) -> Path:
    """A folder of a good model and one that is refused, and the report of a batch over it."""
    good(tmp_path / "in" / "good.onnx")
    refused(tmp_path / "in" / "known.onnx")
    assert batch("in", "-o", "out", "--report", "accepted.json", cwd=tmp_path).returncode == 1
    return tmp_path


def test_known_failures_do_not_count(accepted: Path) -> None:
    flags = ("--baseline", "accepted.json", "--report", "r.json", "--junit", "j.xml", "--summary", "s.md")
    assert "note: fail as in the baseline: known.onnx" in ended(batch("in", "-o", "out", *flags, cwd=accepted)).stderr
    assert {each["name"]: each["known"] for each in read(accepted / "r.json")["models"]} == {
        "good.onnx": False, "known.onnx": True,
    }
    suite = etree.parse(accepted / "j.xml").getroot()
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    assert "New failures: 0. Known failures: 1." in (accepted / "s.md").read_text()
    assert "failed, known" in (accepted / "s.md").read_text()


def test_a_new_failure_counts(accepted: Path) -> None:
    refused(accepted / "in" / "good.onnx")
    refused(accepted / "in" / "added.onnx")
    done = batch("in", "-o", "out", "--baseline", "accepted.json", "--summary", "s.md", cwd=accepted)
    assert done.returncode == 1 and "New failures: 2. Known failures: 1." in (accepted / "s.md").read_text()


def test_known_failures_that_convert_now_are_listed(accepted: Path) -> None:
    good(accepted / "in" / "known.onnx", 1)
    done = batch("in", "-o", "out", "--baseline", "accepted.json", cwd=accepted)
    assert done.returncode == 0 and "note: failed in the baseline and convert now: known.onnx" in done.stderr


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, " and 1 more")])
def test_five_known_failures_are_named(count: int, more: str, tmp_path: Path) -> None:
    for number in range(count):
        refused(tmp_path / "in" / f"{number}.onnx")
    batch("in", "-o", "out", "--report", "accepted.json", cwd=tmp_path)
    done = batch("in", "-o", "out", "--baseline", "accepted.json", cwd=tmp_path)
    assert f"note: fail as in the baseline: 0.onnx, 1.onnx, 2.onnx, 3.onnx, 4.onnx{more}\n" in done.stderr


@pytest.mark.parametrize(("content", "words"), [
    (None, "does not exist"), ("{", "is not a report"), ("[]", "is not a report"),
    (json.dumps({"schema": "mo-loop batch report", "version": 0, "models": []}), "is not a report"),
    (json.dumps({"schema": "mo-loop batch report", "version": 1, "models": [1]}), "is not a report"),
])
def test_baselines_that_are_not_reports_are_refused(content: str | None, words: str, accepted: Path) -> None:
    if content is not None:
        (accepted / "b.json").write_text(content)
    before = (accepted / "out" / ".mo-loop.json").read_bytes()
    done = batch("in", "-o", "out", "--baseline", "b.json", cwd=accepted)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
    assert (accepted / "out" / ".mo-loop.json").read_bytes() == before


# -- `mo-loop batch --plan` by the report of an earlier batch


def test_a_report_in_which_all_were_up_to_date_has_their_times(tmp_path: Path) -> None:
    """The seconds of a model that is up to date are those of a look; the report keeps those of its conversion."""
    good(tmp_path / "in" / "m.onnx")
    for _ in range(2):
        assert batch("in", "-o", "out", "--report", "r.json", cwd=tmp_path).returncode == 0
    (model,) = read(tmp_path / "r.json")["models"]
    assert model["status"] == "skipped" and model["conversion"]["seconds"] > 0
    plan = ("in", "-o", "out", "--plan", "--force", "--baseline", "r.json")
    assert "(1 of 1 by the earlier report)" in batch(*plan, cwd=tmp_path).stdout
    report = read(tmp_path / "r.json")
    report["models"][0]["conversion"] = None
    (tmp_path / "r.json").write_text(json.dumps(report))
    assert "(by size; --baseline REPORT improves it)" in batch(*plan, cwd=tmp_path).stdout


def test_a_report_without_sizes_is_none(tmp_path: Path) -> None:
    good(tmp_path / "in" / "m.onnx")
    assert batch("in", "-o", "out", "--report", "r.json", cwd=tmp_path).returncode == 0
    report = read(tmp_path / "r.json")
    del report["models"][0]["sizes"]["external"]
    (tmp_path / "r.json").write_text(json.dumps(report))
    done = batch("in", "-o", "out", "--plan", "--baseline", "r.json", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("error: ML214: r.json is not a report of a batch")
