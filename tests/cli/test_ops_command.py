"""mo-loop ops: the operators of extensions and installed packages among those of ONNX."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mo_loop.cli.ops import command

EXTENSION = """
def register(extensions):
    extensions.translates("Softmax", since=11)(lambda x, *, axis=-1: x)
    extensions.translates("Twice", domain="com.example", since=2)(lambda x: x + x)
    extensions.translates("Twice", domain="com.example", since=5)(lambda x, factor: x * factor)
"""


@pytest.fixture
def extension(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(EXTENSION, "utf-8")
    return str(path)


def rows(*arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(CliRunner().invoke(command, [*arguments, "--format", "json"]).stdout)[
        "operators"
    ]
    return found


def test_operators_of_an_extension_are_listed_with_its_file(extension: str) -> None:
    listed = rows("--how", "extension", "--extension", extension)
    assert [(each["domain"], each["operator"], each["since"], each["until"]) for each in listed] == [
        ("ai.onnx", "Softmax", 11, None), ("com.example", "Twice", 2, None),
    ]
    assert all(extension in each["note"] for each in listed)


def test_a_translator_replaces_the_versions_that_it_reads(extension: str) -> None:
    listed = rows("Softmax", "--extension", extension)
    assert [(each["since"], each["until"], each["how"]) for each in listed] == [
        (1, 10, "composed"), (11, None, "extension"),
    ]


def test_an_opset_chooses_among_them(extension: str) -> None:
    (found,) = rows("com.example::Twice", "--opset", "3", "--extension", extension)
    assert found["how"] == "extension"


def test_without_an_extension_its_operator_is_not_known() -> None:
    done = CliRunner().invoke(command, ["com.example::Twice"])
    assert done.exit_code == 2 and "ONNX has no operator" in done.output


def test_a_file_that_is_no_extension_is_an_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["--extension", str(tmp_path / "none.py")])
    assert done.exit_code == 2 and "does not exist" in done.output


def test_operators_of_an_installed_package_are_listed_unless_plugins_are_ignored(
    extension: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mo_loop import extensions

    class Entry:
        name, value = "mine", "package:register"

        def load(self) -> Any:
            return lambda given: given.translates("Thrice", domain="com.example")(lambda x: x * 3)

    monkeypatch.setattr(extensions, "installed", lambda path: (Entry(),))
    (found,) = rows("--how", "extension")
    assert (found["operator"], "installed package" in found["note"]) == ("Thrice", True)
    assert CliRunner().invoke(command, ["Thrice", "--no-plugins"]).exit_code == 2
