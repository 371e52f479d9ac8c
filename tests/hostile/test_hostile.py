"""Every hostile file gets the right answer with bounded work and memory, and touches only the output folder."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from mo_loop.support.workers import Pool
from tests.cli.commands import convert
from tests.hostile import amplification, files_and_links, graphs, ir_files  # noqa: F401  # they add their cases
from tests.hostile.answers import CODES, exit_code_of
from tests.hostile.cases import CASES, Case

LINES = 15_000_000
MEMORY = 500 << 20
WRITTEN = 10 << 20
"""Lines of Python (about 3 s), bytes of memory, and bytes of the output files, at most."""

@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool("tests.hostile.trial:attempt", limit=600, memory=2 * MEMORY) as made:
        yield made


def tree(folder: Path) -> dict[str, object]:
    """Everything below a folder: links by their target, files by their content, all by their time."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        content: object = os.readlink(path) if path.is_symlink() else None
        if not path.is_symlink() and path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(folder))] = state.st_mode, state.st_mtime_ns, state.st_nlink, content
    return found


@pytest.mark.sweep(2)
@pytest.mark.parametrize("each", CASES, ids=lambda each: f"{each.kind}-{each.name}".replace(" ", "_"))
def test_it_is_refused_and_touches_nothing(each: Case, pool: Pool, tmp_path: Path) -> None:
    folder, out = tmp_path / "in" / "models", tmp_path / "out"
    folder.mkdir(parents=True)
    out.mkdir()
    (tmp_path / "in" / "secret.bin").write_bytes(bytes(24))
    source = each.make(folder)
    before = tree(tmp_path / "in")
    here = set(os.listdir())
    done = pool.call((str(source), str(out / "model.xml")))
    assert done.ok, f"{done.status}: {done.message}\n{done.detail}"
    answer = done.value
    assert (answer.exit_code, answer.code) == (exit_code_of(each.code), each.code), answer.message
    assert (answer.lines < LINES, answer.memory < MEMORY) == (True, True), answer
    assert tree(tmp_path / "in") == before and set(os.listdir()) == here
    assert sorted(path.name for path in out.iterdir()) == ([] if answer.exit_code else ["model.bin", "model.xml"])
    assert sum(path.stat().st_size for path in out.iterdir()) < WRITTEN


def test_there_are_enough_of_every_class() -> None:
    kinds = Counter(each.kind for each in CASES)
    assert len(CASES) >= 120 and min(kinds.values()) >= 10, kinds
    names = [(each.kind, each.name) for each in CASES]
    assert len(set(names)) == len(names)
    assert CODES.keys() <= set(names)  # no answer without a file


@pytest.mark.parametrize("name", ["pickle", "location_parents", "fill_of_2_to_the_40", "control_characters"])
def test_the_command_says_so_too(name: str, tmp_path: Path) -> None:
    """One file of several classes through the command: its exit code, no traceback, no control sequence."""
    each = next(each for each in CASES if each.name == name)
    done = convert(each.make(tmp_path), "-o", tmp_path / "out" / "model.xml")
    assert done.returncode == exit_code_of(each.code)
    said = done.stdout + done.stderr
    assert "Traceback" not in said and not set(said) & set("\x1b\x07\u202e")
