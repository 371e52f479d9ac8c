"""The results of a batch as Markdown for the pages of CI jobs: numbers, failures with reasons, the rest folded.

The tables of long batches are shortened, because such pages are limited to a megabyte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from mo_loop.batching.result import BAD, GOOD, STATUSES, ModelResult, Results
from mo_loop.printable import cell

FAILURES, OTHERS = 100, 300
"""Rows of either table."""


def as_markdown(results: Results) -> str:
    """The whole text."""
    return "\n".join(_lines(results)) + "\n"


def counted(results: Results) -> str:
    """The results in numbers: `3 models: 2 converted, 1 failed`."""
    total = len(results.results)
    counts = ", ".join(f"{results.counts[status]} {status}" for status in STATUSES if results.counts[status])
    return f"{total} model{'s' if total != 1 else ''}: {counts}"


def _lines(results: Results) -> Iterator[str]:
    yield "## mo-loop batch"
    yield ""
    ended = f" Ended by {results.signal}." if results.signal else ""
    yield f"{counted(results)}, {results.seconds:.1f} s.{ended}"
    if results.known:
        yield ""
        yield f"New failures: {results.new_failures}. Known failures: {results.failed - results.new_failures}."
    if results.failed:
        known = (each for each in results.results if results.is_known(each))
        new = (each for each in results.results if each.status in BAD and not results.is_known(each))
        rows = [_bad(each, results.is_known(each)) for each in islice(chain(new, known), FAILURES)]
        yield from _table(("model", "status", "why"), rows, results.failed)
    good = sum(results.counts[status] for status in GOOD)
    if good:
        shown = islice((each for each in results.results if each.status in GOOD), OTHERS)
        yield ""
        yield f"<details><summary>{good} converted or up to date</summary>"
        yield from _table(_HEAD, [_good(each) for each in shown], good)
        yield ""
        yield "</details>"


def _bad(result: ModelResult, is_known: bool) -> tuple[str, ...]:
    return _code(result.model.name), result.status + (", known" if is_known else ""), cell(result.said)


_HEAD = ("model", "status", "seconds", "layers", "control flow", "bytes", "warnings")


def _good(result: ModelResult) -> tuple[str, ...]:
    flow = result.facts.control_flow if result.facts else {}
    size = result.sizes.xml + result.sizes.bin if result.sizes else 0
    return (
        _code(result.model.name),
        result.status,
        f"{result.seconds:.2f}",
        str(result.facts.layers if result.facts else ""),
        ", ".join(f"{count} {kind}" for kind, count in flow.items()),
        f"{size:,}",
        cell("\n".join(result.warnings)),
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    if total > len(rows):
        yield ""
        yield f"and {total - len(rows)} more"


def _code(text: str) -> str:
    """A name as code, with any characters."""
    return f"<code>{cell(text)}</code>"
