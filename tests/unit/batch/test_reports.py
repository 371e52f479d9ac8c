"""Reports of rare batches: names with special characters, thousands of models."""

import xml.etree.ElementTree as ET
from pathlib import Path

from mo_loop.batching.batch_options import BatchOptions
from mo_loop.batching.plan import Planned
from mo_loop.batching.report import FAILURES, OTHERS, About, as_junit, as_markdown, counted
from mo_loop.batching.result import FAILED, Error, Facts, FileSizes, ModelResult, Results

ABOUT = About("2026-01-31T12:00:00Z", "in", "out", BatchOptions(jobs=2), {})


def planned(name: str) -> Planned:
    return Planned(Path("in") / name, Path("out") / f"{name}.xml", name)


def refused(name: str, message: str = "odd") -> ModelResult:
    error = Error("ML300", message, ("loop/body/n",), "because", "do it", 3)
    return ModelResult(planned(name), FAILED, 0.1, 3, (error,))


def converted(name: str) -> ModelResult:
    facts, sizes = Facts(3, {"If": 2}), FileSizes(1, 2, 3000, 4000)
    return ModelResult(planned(name), "converted", 0.1, 0, warnings=("a|b",), facts=facts, sizes=sizes)


HOSTILE = "a|b`c`<script>*_[x](y)\n\x00\x1b[31m\udcff@all#1 \ud83d"


def test_markdown_of_hostile_names() -> None:
    text = as_markdown(Results([refused(f"n{HOSTILE}", HOSTILE), converted(HOSTILE)]))
    text.encode()
    for sign in ("\x00", "\x1b", "<script>", "`", "@all", "[x]"):
        assert sign not in text
    rows = [line for line in text.splitlines() if line.startswith("| <code>")]
    assert [row.count("|") for row in rows] == [4, 8]


def test_junit_of_hostile_names() -> None:
    text = "".join(as_junit(ABOUT, Results([refused(f"n{HOSTILE}", HOSTILE), converted(HOSTILE)])))
    suite = ET.fromstring(text.encode())[0]
    assert all((case.get("name") or "").endswith("@all#1 \ufffd") for case in suite) and len(suite) == 2
    assert "<script>" in (suite[0].find("failure").text or "")  # type: ignore[union-attr]


def test_a_long_summary_is_cut() -> None:
    many = [*(refused(f"r{number}", "x" * 5000) for number in range(3000)), *(converted(f"c{n}") for n in range(9000))]
    text = as_markdown(Results(many))
    assert len(text.encode()) < 1 << 18
    assert f"and {3000 - FAILURES} more" in text and f"and {9000 - OTHERS} more" in text


def test_new_failures_come_before_known_ones() -> None:
    results = Results([refused(name) for name in ("a", "b", "c")], known=frozenset({"a", "c"}))
    rows = [line.split(" | ")[:2] for line in as_markdown(results).splitlines() if line.startswith("| <code>")]
    old = "failed, known"
    assert [(name[8], status) for name, status in rows] == [("b", "failed"), ("a", old), ("c", old)]


def test_counts() -> None:
    assert counted(Results([converted("a")])) == "1 model: 1 converted"
    assert counted(Results([converted("a"), refused("b")])) == "2 models: 1 converted, 1 failed"


def test_an_error_at_many_places() -> None:
    error = Error("ML300", "odd", tuple(f"n{number}" for number in range(7)), "", "do it", 3)
    assert str(error) == "ML300: odd (7 times)\n  where: n0, n1, n2, n3, n4 and 2 more\n  help:  do it"
