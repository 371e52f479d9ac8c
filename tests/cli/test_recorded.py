"""Commands and what they print: every .txt below tests/cli/recorded is a group of cases.

    The subject of the group.
    # file model.onnx                   each case begins with these files in an empty folder. Models are in the text
    main (float[3] x) => (y) {...}      form of ONNX, of opset 18; `# file m.onnx my=1` imports another domain
    # case a misspelt output            a test: one command after another, below a model of its own, which is model.onnx
    $ convert model.onnx -o m.xml --output yy
    ! error: ML202: ...                 a line of stderr; those of stdout are indented
    = 2                                 the exit code, if it is not 0
    + m.xml                             a file that is new (+), gone (-), or has other bytes (~)

A command begins with variables, as NAME=value, and ends with `< FILE` for its input, and with filters: `| get a.*.b c`
prints values of a JSON document, `| lines REGEX` the lines of stdout that match, `| find REGEX` the matches; `|& lines`
and `|& find` are for stderr. `$ print FILE` prints a file, `$ remove FILE` removes it. A line `@ MARK` before the first
command is a mark of pytest. Times are written as TIME, and names of steps of a dump as STEP. A line `opset 21 my=1`
below the subject is for all models of the group.

UPDATE_GOLDEN=1 writes all but the commands again: read the diff before you keep it.
"""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mo_loop.cli.pass_options import VARIABLES
from tests.cli.commands import mo_loop
from tests.texts import MODEL, model_of, sections

FOLDER = Path(__file__).parent / "recorded"
FILTER = re.compile(r" (\|&?) (?=(?:get|lines|find) )")
STEP = re.compile(r"\b\d{3}_\w+")
TIME = re.compile(r"\b\d+(\.\d+)?( m?s\b| seconds\b)")
FILES: dict[str, Callable[..., object]] = {"print": lambda path: path.read_text("utf-8"), "remove": Path.unlink}


class Case(NamedTuple):
    """One test of a group. `text` is everything below its name."""

    group: Path
    name: str
    text: str
    files: dict[str, str]
    opset: str

    @property
    def head(self) -> list[str]:
        """The description and the marks."""
        lines = self.text.splitlines()
        return lines[: next(place for place, line in enumerate(lines) if line.startswith("$ "))]


def cases() -> list[Any]:
    """All cases as parameters."""
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        opset = re.match(r"[^#]*?^opset (.+)", path.read_text("utf-8"), re.MULTILINE)
        files = {name: text for kind, name, text in sections(path) if kind == "file"}
        for kind, name, text in sections(path):
            if kind == "case":
                case = Case(path, name, text, files, opset[1] if opset else "18")
                marks = [getattr(pytest.mark, line[2:]) for line in case.head if line.startswith("@ ")]
                found.append(pytest.param(case, marks=marks, id=f"{path.stem}: {name}"))
    return found


@pytest.mark.parametrize("case", cases())
def test_case(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", *(variable.name for variable in VARIABLES)):
        monkeypatch.delenv(name, raising=False)
    found = case.head
    model = MODEL.search("\n".join(found))
    for name, text in (case.files | ({"model.onnx": model[0]} if model else {})).items():
        write(tmp_path, name, text, case.opset)
    for line in case.text.splitlines():
        if line.startswith("$ "):
            found += [line, *outcome(line[2:], tmp_path)]
    wanted = case.text.rstrip().splitlines()
    if os.environ.get("UPDATE_GOLDEN") and found != wanted:
        text = case.group.read_text("utf-8")
        before, mark, after = text.partition(f"# case {case.name}\n")
        end = "\n\n" if case.text.endswith("\n\n") else "\n"
        case.group.write_text(before + mark + "\n".join(found) + end + after.removeprefix(case.text), "utf-8")
        return
    assert found == wanted, "\n".join(found)


def write(folder: Path, name: str, text: str, opset: str) -> None:
    """A file with the text, or the model that it describes."""
    name, model = model_of(name, text, opset)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((text.rstrip() + "\n").encode() if model is None else model.SerializeToString())


def outcome(command: str, folder: Path) -> list[str]:
    """The lines below a command."""
    command, *filters = FILTER.split(command)
    chosen = dict(zip(filters[::2], filters[1::2], strict=True))
    command, _, source = command.partition(" < ")
    before, shown = contents(folder), []
    done = run(shlex.split(command), folder, (folder / source).read_bytes() if source else b"")
    for mark, of, text in (("  ", "|", done.stdout), ("! ", "|&", done.stderr)):
        text = text.replace(str(folder), "DIR")
        shown += [mark + line for line in (filtered(text, chosen[of]) if of in chosen else text.splitlines())]
    shown += [f"= {done.returncode}"] * bool(done.returncode)
    after, changed = contents(folder), []
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            mark = "+" if name not in before else "-" if name not in after else "~"
            changed.append(f"{mark} {STEP.sub('STEP', name)}")
    return [TIME.sub("TIME", line).rstrip() for line in (*shown, *dict.fromkeys(changed))]


def run(words: list[str], folder: Path, stdin: bytes) -> subprocess.CompletedProcess[str]:
    """`mo-loop` with these words, in this process, or one of the commands for files."""
    count = next(place for place, word in enumerate(words) if not re.match("[A-Z_0-9]+=", word))
    variables = dict(word.split("=", 1) for word in words[:count])
    words = words[count:]
    if words[0] not in FILES:
        return mo_loop(*words, cwd=folder, stdin=stdin, **variables)
    said = FILES[words[0]](*(folder / word for word in words[1:]))
    return subprocess.CompletedProcess(words, 0, said if isinstance(said, str) else "", "")


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all files below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def filtered(text: str, chosen: str) -> list[str]:
    """The lines that a filter leaves."""
    kind, _, pattern = chosen.partition(" ")
    if kind == "lines":
        return [line for line in text.splitlines() if re.search(pattern, line)]
    if kind == "find":
        return [line for found in re.finditer(pattern, text) for line in found.group().splitlines()]
    document = json.loads(text)
    return [f"{path}: {json.dumps(at(document, path.split('.')), ensure_ascii=False)}" for path in pattern.split()]


def at(value: Any, keys: list[str]) -> Any:
    """The value at a path into a document; `*` means all items of a list or object."""
    if not keys:
        return value
    if keys[0] == "*":
        return [at(each, keys[1:]) for each in (value.values() if isinstance(value, dict) else value)]
    return at(value[int(keys[0])] if isinstance(value, list) else value[keys[0]], keys[1:])
