"""The words that docs/style.md replaces do not come back: in pages, help texts, messages, docstrings and comments."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT

PAGES = [
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.name != "style.md"),
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    ROOT / "tests" / "unit" / "codes.txt",  # every message
]

BETTER = {
    r"\bstands? (?:in|on|at|behind)\b(?! for)": "is in, occurs in, appears in",
    r"\btells? so\b": "notes it, reports it", r"\b(?:goes|go) on\b": "continues",
    r"(?<![Tt]here )\b(?:is|are) no (?!longer\b|more\b)\w+": "is not a ...",
    r"\bsays? so\b": "reports it, notes it", r"\btakes? the place of\b": "replaces",
    r"\btells? (?:whether|which|what|how|where|when|that)\b": "reports, shows, finds",
    r"\b(?:is|are) what\b": "name the thing",
    r'"""What(?:ever)?\b': "name the thing in a docstring, or begin with a verb",
    r"\bthose that differ most\b": "the worst ones", r"\bwhat it gave\b": "the result",
    r"\bin short\b": "shorthand for", r"\basked for \d+ at a time\b": "looked up",
    r"\bKeys are taken exactly\b": "Keys are matched literally",
    r"\bpages of Dask\b": "Dask's documentation", r"\bmuch is left to win\b": "the remaining headroom",
}
"""A pattern of words, and what to write instead."""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_no_page_has_them(path: Path) -> None:
    assert found_in(path.read_text("utf-8")) == []


@pytest.mark.parametrize("folder", ["mo_loop", "transforms", "tests", "tools"])
def test_no_docstring_and_no_comment_has_them(folder: str) -> None:
    """Those of the library are on docs/api.md."""
    paths = [path for path in sorted((ROOT / folder).rglob("*.py")) if path != Path(__file__)]
    assert len(paths) > 50
    # A file that has none of the words anywhere has none in a comment: reading the tokens of all takes far longer, and
    # so does a search for a pattern that does not begin with letters.
    wider = [re.compile(pattern.removeprefix(r"\b")) for pattern in BETTER]
    texts = {path: path.read_text("utf-8") for path in paths}
    doubtful = [path for path, text in texts.items() if any(pattern.search(text) for pattern in wider)]
    found = {str(path.relative_to(ROOT)): found_in("\n".join(comments(path))) for path in doubtful}
    assert {path: lines for path, lines in found.items() if lines} == {}


FILE = re.compile(r"(?<![\w/.{}<-])(?:[a-z_0-9]+/)*[a-z_0-9]+\.py\b(?!:[a-z])")
OF_USERS = {"file.py", "trouble.py", "twice.py"}
"""Names of files that a user has."""


@pytest.mark.parametrize("folder", ["mo_loop", "transforms"])
def test_files_that_docstrings_name_exist(folder: str) -> None:
    roots = [ROOT / name for name in ("mo_loop", "transforms", "tests", "tools")]
    known = [f"/{path.relative_to(ROOT).as_posix()}" for root in roots for path in root.rglob("*.py")]
    paths = [path for path in sorted((ROOT / folder).rglob("*.py")) if FILE.search(path.read_text("utf-8"))]
    named = {(path, name) for path in paths for text in comments(path) for name in FILE.findall(text)}
    assert len(named) > 5
    missing = {
        f"{path.relative_to(ROOT)}: {name}" for path, name in named
        if name not in OF_USERS and not any(each.endswith(f"/{name}") for each in known)
    }
    assert missing == set()


def comments(path: Path) -> Iterator[str]:
    """The comments and docstrings of a file."""
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
        elif token.type != tokenize.NL:
            if token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                yield token.string
            before = token.type


def found_in(text: str) -> list[str]:
    """The lines of a text that have the words."""
    return [
        f"line {text.count(chr(10), 0, each.start()) + 1}: {each[0]!r}: write {better}"
        for pattern, better in BETTER.items()
        for each in re.finditer(pattern, text)
    ]


def test_a_word_of_the_list_is_seen() -> None:
    assert [pattern for pattern in BETTER if re.search(pattern, "The decoder stands in the IR, and goes on.")] == [
        *list(BETTER)[:1], list(BETTER)[2]
    ]
