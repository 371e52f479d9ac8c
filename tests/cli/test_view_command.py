"""`mo-loop view` as a user runs it."""

import subprocess
import webbrowser
from pathlib import Path
from typing import Any

import pytest

from tests.pages import after, assert_whole, document

from .commands import PROGRAM, assert_fails, installed, mo_loop


def test_the_page_of_a_model_is_in_the_current_folder(folder: Path) -> None:
    work = folder / "work"
    work.mkdir()
    done = installed("view", "../old.onnx", cwd=work)
    assert (done.returncode, done.stdout, done.stderr) == (0, "old.html\n", "")
    data = document((work / "old.html").read_text("utf-8"))
    assert (data["kind"], data["title"]) == ("graph", "old.onnx")
    assert {each["op"] for each in data["nodes"]} >= {"Loop", "If", "Softmax"}


def test_two_models(folder: Path) -> None:
    done = mo_loop("view", "old.xml", "new.xml", "--ignore", "weights", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "old-new.html\n", "")
    data = document((folder / "old-new.html").read_text("utf-8"))
    assert (data["kind"], data["title"]) == ("diff", "old.xml -> new.xml")
    details = {each["name"]: data["steps"][0]["details"].get(str(each["id"])) for each in data["nodes"]}
    assert {name: texts for name, texts in details.items() if texts} == {
        "first": ["operator Add -> Subtract"], "soft": ["attribute axis 0 -> -1"],
    }


def test_the_files_of_a_step_show_the_same(folder: Path) -> None:
    for name in ("old", "new"):
        assert mo_loop("convert", f"{name}.onnx", "-o", "ir.xml", "--dump", name, cwd=folder).returncode == 0
    done = mo_loop("view", "old/000_loaded.json", "-o", "-", cwd=folder)
    assert done.returncode == 0 and not done.stderr
    data = document(done.stdout)
    page = document((folder / "old" / "index.html").read_text("utf-8"))
    assert {each["id"]: each for each in data["nodes"]} == {each["id"]: each for each in page["nodes"]}
    assert {each["id"]: each for each in data["scopes"]} == {each["id"]: each for each in page["scopes"]}
    text = document(mo_loop("view", "old/000_loaded.txt", "-o", "-", cwd=folder).stdout)
    assert sorted(each["op"] for each in text["nodes"]) == sorted(each["op"] for each in data["nodes"])


def test_the_last_state_of_a_dump_and_the_ir_have_the_same_nodes(folder: Path) -> None:
    assert mo_loop("convert", "old.onnx", "-o", "ir.xml", "--dump", "steps", cwd=folder).returncode == 0
    assert mo_loop("view", "ir.xml", cwd=folder).returncode == 0
    ir = document((folder / "ir.html").read_text("utf-8"))
    dump = document((folder / "steps" / "index.html").read_text("utf-8"))
    sides = [({each["id"]: each for each in ir["nodes"]}, ir["written"]), (after(dump)[0], dump["written"])]
    found = [
        sorted(
            (written["layers"][str(number)], each["op"], len(each["inputs"]), each.get("value", ""), entries(each))
            for number, each in nodes.items()
        )
        for nodes, written in sides
    ]
    assert found[0] == found[1] and {op for _, op, *_ in found[0]} >= {"Loop", "If", "Softmax"}


def entries(record: dict[str, Any]) -> list[tuple[str, int, Any]]:
    """The roles of a port map."""
    ports = record.get("port_map", {"inputs": [], "outputs": []})
    return [(each["role"], each["port"], each.get("axis")) for each in (*ports["inputs"], *ports["outputs"])]


def test_two_steps_of_dumps(folder: Path) -> None:
    for name in ("old", "new"):
        assert mo_loop("convert", f"{name}.onnx", "-o", "ir.xml", "--dump", name, cwd=folder).returncode == 0
    done = mo_loop("view", "old/000_loaded.json", "new/000_loaded.json", "-o", "-", cwd=folder)
    assert done.returncode == 0 and not done.stderr
    data = document(done.stdout)
    names = {str(each["id"]): each["name"] for each in data["nodes"]}
    assert {names[number] for number in data["steps"][0]["details"]} == {"first", "soft", "w"}
    assert_whole(*after(data))


def test_the_folder_of_a_dump_has_its_page(folder: Path) -> None:
    assert mo_loop("convert", "old.onnx", "-o", "ir.xml", "--dump", "steps", cwd=folder).returncode == 0
    page = (folder / "steps" / "index.html").read_bytes()
    done = mo_loop("view", "steps", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "steps/index.html\n", "")
    assert mo_loop("view", "steps", "-o", "copy.html", cwd=folder).returncode == 0
    assert page == (folder / "steps" / "index.html").read_bytes() == (folder / "copy.html").read_bytes()


def test_a_page_that_is_missing_is_made_of_the_files(folder: Path) -> None:
    assert mo_loop("convert", "old.onnx", "-o", "ir.xml", "--dump", "steps", cwd=folder).returncode == 0
    original = document((folder / "steps" / "index.html").read_text("utf-8"))
    (folder / "steps" / "index.html").unlink()
    done = mo_loop("view", "steps", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "steps.html\n", "")
    data = document((folder / "steps.html").read_text("utf-8"))
    changing = [each for each in original["steps"] if "delta" in each]
    names = [each["name"] for each in data["steps"] if any(each["delta"].values())]
    assert names == [each["name"] for each in changing] and len(names) > 2 and after(data) == after(original)
    assert "do not have times" in data["notes"][0]


def test_standard_input(folder: Path) -> None:
    with open(folder / "old.onnx", "rb") as file:
        command = [str(PROGRAM), "view", "-", "-o", "page.html"]
        done = subprocess.run(command, stdin=file, capture_output=True, cwd=folder, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(document((folder / "page.html").read_text("utf-8"))["scopes"]) == 4


def test_the_page_is_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or False)
    done = mo_loop("view", "old.onnx", "--open", "--quiet", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "note: no browser was found; open old.html in one\n"
    assert opened == [(folder / "old.html").as_uri()]


def test_an_ir_without_its_weights_is_refused(folder: Path) -> None:
    (folder / "old.bin").write_bytes(b"")
    done = mo_loop("view", "old.xml", cwd=folder)
    assert_fails(done)
    assert not (folder / "old.html").exists()
