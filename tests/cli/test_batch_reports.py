"""The reports of `mo-loop batch`: every fact in JSON, a valid JUnit file, and Markdown that lists the failures."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from mo_loop import __version__
from mo_loop.revision import commit
from tests.cli.commands import ended
from tests.harness import parsed

from .batches import GOOD, batch, files_in, good, read, refused, saved, trouble

SCHEMA = etree.XMLSchema(etree.parse(Path(__file__).with_name("junit.xsd")))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A batch with one model for each status; the reports are r.json, j.xml and s.md."""
    folder = tmp_path_factory.mktemp("mixed")
    good(folder / "in" / "old.onnx")
    assert batch("in", "-o", "out", "--extension", trouble(folder), cwd=folder).returncode == 0
    good(folder / "in" / "sub" / "new.onnx", 1)
    refused(folder / "in" / "refused.onnx")
    text = GOOD.format(name="m", number=1).replace("float[3] s", "float[3] x").replace("Mul (s,", "Mul (x,")
    saved(parsed(text), folder / "in" / "warned.onnx")
    for name in ("hang", "crash", "greedy"):
        good(folder / "in" / f"{name}.onnx", name=name)
    reports = ("--report", "r.json", "--junit", "made/j.xml", "--summary", "s.md")
    limits = ("--timeout", 15, "--memory", "1G", "-j", 2, "--extension", "trouble.py")
    done = ended(batch("in", "-o", "out", *reports, *limits, cwd=folder), 1)
    assert "7 models: 2 converted, 1 skipped, 1 failed, 1 crash, 1 timeout, 1 memory" in done.stdout
    yield folder


def test_the_whole_report(mixed: Path) -> None:
    report = read(mixed / "r.json")
    models = {each["name"]: each for each in report.pop("models")}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", report.pop("started")) and report.pop("seconds") >= 15
    options = report.pop("options")
    assert options["extension"] == ["trouble.py"] and options["unroll"] == 0
    assert report == {
        "schema": "mo-loop batch report",
        "version": 1,
        "mo_loop": __version__, "commit": commit(),
        "exit_code": 1,
        "signal": None,
        "root": str(mixed / "in"),
        "output": "out",
        "jobs": 2,
        "timeout": 15.0,
        "memory": 1 << 30,
        "totals": {
            "models": 7, "converted": 2, "skipped": 1, "failed": 1, "differs": 0, "crash": 1, "timeout": 1,
            "memory": 1,
            "cancelled": 0, "warnings": 1},
    }
    assert list(models) == sorted(models)
    fates = {name: (each["status"], each["exit_code"]) for name, each in models.items()}
    assert fates == {
        "old.onnx": ("skipped", 0), "sub/new.onnx": ("converted", 0), "warned.onnx": ("converted", 0),
        "refused.onnx": ("failed", 3), "hang.onnx": ("timeout", None), "crash.onnx": ("crash", None),
        "greedy.onnx": ("memory", None),
    }


KEYS = {
    "name": str, "source": str, "output": str, "status": str, "exit_code": int | None, "seconds": float,
    "errors": list, "warnings": list, "message": str, "detail": str, "sizes": dict | None, "layers": int | None,
    "control_flow": dict, "known": bool, "comparison": dict | None, "conversion": dict | None,
}


def test_each_model_has_all_keys(mixed: Path) -> None:
    for model in read(mixed / "r.json")["models"]:
        assert list(model) == list(KEYS)
        for key, kind in KEYS.items():
            assert isinstance(model[key], kind), (model["name"], key)


def model(mixed: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in read(mixed / "r.json")["models"] if each["name"] == name)
    return found


@pytest.mark.parametrize("name", ["sub/new", "old"])
def test_a_pair_in_numbers(name: str, mixed: Path) -> None:
    found = model(mixed, f"{name}.onnx")
    assert found["source"] == str(mixed / "in" / f"{name}.onnx") and found["output"] == f"out/{name}.xml"
    sizes = {kind: (mixed / "out" / f"{name}.{kind}").stat().st_size for kind in ("xml", "bin")}
    assert found["sizes"] == {"model": (mixed / "in" / f"{name}.onnx").stat().st_size, "external": 0, **sizes}
    written = etree.parse(mixed / "out" / f"{name}.xml").getroot()
    assert found["layers"] == len(written.findall(".//layer"))
    flow = [layer.get("type") for layer in written.iter("layer") if layer.find("body") is not None]
    assert found["control_flow"] == {kind: flow.count(kind) for kind in set(flow)} != {}
    assert (found["errors"], found["message"], found["detail"]) == ([], "", "")


def test_an_error_with_its_place(mixed: Path) -> None:
    found = model(mixed, "refused.onnx")
    (error,) = found["errors"]
    assert (error["code"], error["where"], error["exit_code"]) == ("ML302", ["odd"], 3)
    assert "Unheard" in error["message"] and set(error) == {"code", "message", "where", "why", "hint", "exit_code"}
    assert found["sizes"] is None and found["layers"] is None and found["control_flow"] == {}


def test_crashes_and_timeouts_of_workers(mixed: Path) -> None:
    assert model(mixed, "crash.onnx")["message"] == "killed by SIGABRT"
    assert model(mixed, "hang.onnx")["message"] == "no answer within 15 s"
    assert 15 <= model(mixed, "hang.onnx")["seconds"] < 60 and "MemoryError" in model(mixed, "greedy.onnx")["message"]
    assert "trouble.py" in model(mixed, "greedy.onnx")["detail"]


def test_warnings(mixed: Path) -> None:
    (text,) = model(mixed, "warned.onnx")["warnings"]
    assert text.endswith("'x' hides an outer value of that name")


def test_junit_is_valid_and_complete(mixed: Path) -> None:
    tree = etree.parse(mixed / "made" / "j.xml")
    SCHEMA.assertValid(tree)
    suite = tree.getroot()[0]
    counts = {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "7", "failures": "1", "errors": "3", "skipped": "0"}
    assert counts.items() <= dict(tree.getroot().attrib).items()
    found = {f"{case.get('classname')}/{case.get('name')}": [child.tag for child in case] for case in suite}
    assert found == {
        "models/old.onnx": [], "sub/new.onnx": [], "models/warned.onnx": ["system-err"],
        "models/refused.onnx": ["failure"], "models/hang.onnx": ["error"], "models/crash.onnx": ["error"],
        "models/greedy.onnx": ["error"],
    }
    failure = suite.find("testcase/failure")
    assert failure.get("type") == "ML302" and "Unheard" in failure.get("message") and "where: odd" in failure.text
    assert {each.get("type") for each in suite.findall("testcase/error")} == {"crash", "timeout", "memory"}


@pytest.mark.parametrize(
    ("old", "new"),
    [('tests="7"', 'tests="many"'), ("<failure ", "<broken "), (' classname="sub"', ""), ('type="crash"', "")],
)
def test_the_schema_refuses_invalid_reports(old: str, new: str, mixed: Path) -> None:
    text = (mixed / "made" / "j.xml").read_text()
    assert old in text
    wrong = etree.fromstring(
        text.replace(old, new).replace("</failure", f"</{new[1:-1]}" if "<" in new else "</failure").encode()
    )
    assert not SCHEMA.validate(wrong)


def test_markdown(mixed: Path) -> None:
    text = (mixed / "s.md").read_text()
    assert text.startswith("## mo-loop batch\n\n7 models: 2 converted, 1 skipped, 1 failed, 1 crash, ")
    shown, folded = text.split("<details>")
    for name, status in (("refused", "failed"), ("crash", "crash"), ("hang", "timeout"), ("greedy", "memory")):
        assert f"| <code>{name}.onnx</code> | {status} | " in shown and name + ".onnx" not in folded
    assert "ML302" in shown and "<br>where" in shown
    assert "<code>sub/new.onnx</code> | converted |" in folded and "<code>old.onnx</code> | skipped |" in folded
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4 + 2 + 3 + 2
    for row in rows:
        assert row.count("|") in (4, 8)


def test_the_summary_of_a_job_is_appended(tmp_path: Path) -> None:
    good(tmp_path / "m.onnx")
    (tmp_path / "step.md").write_text("# earlier\n")
    (tmp_path / "own.md").write_text("# earlier\n")
    for number in (1, 2):
        env = {"GITHUB_STEP_SUMMARY": "step.md"}
        assert batch("m.onnx", "-o", "out", "--summary", "step.md", cwd=tmp_path, env=env).returncode == 0
        assert (tmp_path / "step.md").read_text().count("## mo-loop batch") == number
        assert batch("m.onnx", "-o", "out", "--summary", "own.md", cwd=tmp_path, env=env).returncode == 0
        assert (tmp_path / "own.md").read_text().count("## mo-loop batch") == 1
    assert (tmp_path / "step.md").read_text().startswith("# earlier\n## mo-loop batch")
    assert "earlier" not in (tmp_path / "own.md").read_text()


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    """The pairs are written all the same."""
    good(tmp_path / "m.onnx")
    (tmp_path / "file").write_text("kept")
    done = batch("m.onnx", "-o", "out", "--report", "file/r.json", cwd=tmp_path)
    assert done.returncode == 2 and "ML219" in done.stderr and "Traceback" not in done.stderr
    assert files_in(tmp_path / "out") == [".mo-loop.json", "m.bin", "m.xml"]
    assert (tmp_path / "file").read_text() == "kept"
