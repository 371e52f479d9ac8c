"""A Report as text, Markdown and JUnit XML; JSON is `report.to_dict()`."""

import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence

from mo_loop.compare.results.array_comparison import AMPLIFIED
from mo_loop.compare.results.report import Report, Row, Side
from mo_loop.printable import aligned, cell, counted, printable, xml_text

HEAD = ("output", "type", "largest abs", "largest rel", "mean abs", "cosine", "SNR, dB", "top-1", "beyond",
        "worst element", "expected", "actual", "inputs")
RIGHT = (2, 3, 4, 5, 6, 7, 8, 10, 11)
"""The columns of numbers."""

EXPECTED, ACTUAL = HEAD.index("expected"), HEAD.index("actual")

NEEDED = (0, 2, 8, 3, EXPECTED, ACTUAL, 1, 12, 9, 6, 7, 5, 4)
"""The columns in the order in which they are given up, last first, where a terminal is too narrow for all."""

FEWEST = 4
"""The number of these columns that are always shown, however long the names of outputs are."""

SHORTEST = 16
"""The width that names have at least."""

GAP = 2
"""The spaces between columns."""

AGREES = "every output agrees"

SHOWS = "shows how far every tensor is from that of the ONNX model."

Table = Callable[[Sequence[Sequence[str]], Sequence[int], str], str]


def as_text(report: Report, table: Table = aligned, width: int | None = None) -> str:
    """The report for a terminal of `width` columns: for each side one line for each output, with its worst set of
    inputs."""
    lines = [printable(f"{report.model}: {title(report)}"), printable(f"  {summary(report)}")]
    for side in report.sides:
        lines.append(printable(f"  {heading(side)}"))
        if side.rows:
            lines.append(_table([HEAD, *(_cells(report, row) for row in side.worst)], table, width))
        lines += [printable(f"    {row.output}: {row.result.message}") for row in side.worst if _needs_words(row)]
        if text := _first_difference(report, side):
            lines.append(printable(f"    {text}"))
    for label, text in _remarks(report):
        lines += [printable(f"  {label}{line}") for line in ([text] if label else text.splitlines())]
    return "\n".join(lines)


def _remarks(report: Report) -> Iterator[tuple[str, str]]:
    """The remarks after the tables: a label, and a text; one without a label can have several lines."""
    yield from (("", str(answer)) for answer in (report.defaults, report.layers, report.passes) if answer is not None)
    if report.cause:
        yield "cause: ", report.cause
    if report.page:
        yield "", f"{report.page} {SHOWS}"
    yield from (("note: ", each) for each in report.notes)


def _table(rows: Sequence[Sequence[str]], table: Table, width: int | None) -> str:
    """The table with as many columns as fit into the width, and no empty ones."""
    indent = "    "
    widths = [max(len(row[place]) for row in rows) if any(row[place] for row in rows[1:]) else 0
              for place in range(len(HEAD))]
    width = sys.maxsize if width is None else width
    beside = sum(widths[place] + GAP for place in NEEDED[1:FEWEST])
    widths[0] = min(widths[0], max(SHORTEST, width - len(indent) - beside))  # longer names are wrapped
    shown: list[int] = []
    for place in NEEDED:
        used = len(indent) + sum(widths[each] + GAP for each in shown)
        if widths[place] and (not shown or used + widths[place] <= width):
            shown.append(place)
    if ACTUAL not in shown and EXPECTED in shown:  # one has no meaning without the other
        shown.remove(EXPECTED)
    shown.sort()
    right = [number for number, place in enumerate(shown) if place in RIGHT]
    return table([[row[place] for place in shown] for row in rows], right, indent)


def _needs_words(row: Row) -> bool:
    """Whether the numbers of a row do not show the fault."""
    return row.result.kind in ("shape", "type", "missing", AMPLIFIED)


def title(report: Report) -> str:
    """The result in a few words."""
    if report.passed:
        amplified = [row for side in report.sides for row in side.worst if row.result.kind == AMPLIFIED]
        return max(amplified, key=lambda row: row.result.largest_abs).result.message if amplified else AGREES
    first, *others = report.sides
    if first.passed:
        bad = [each.name for each in others if not each.passed and not each.is_peer]
        return f"every output agrees in f32, not in {', '.join(bad)}: the precision of the device makes the difference"
    return f"{first.status}: {first.message}" if first.message else "outputs differ"


def summary(report: Report) -> str:
    """The two sides of the comparison, as text."""
    versions = report.versions
    package = {"ONNX Runtime": "onnxruntime", "the reference evaluator of onnx": "onnx"}.get(report.oracle, "")
    source = f"{report.oracle} {versions.get(package, '')}".rstrip()
    sizes = f"sizes {','.join(map(''.join, report.sizes.items()))}, " if report.sizes else ""
    count = len(report.sets)
    sets = f"{counted(count, 'set')} of inputs"
    if report.steps:
        least, most = min(report.steps), max(report.steps)
        sets = f"{counted(count, 'sequence')} of {f'{least} to ' if least < most else ''}{counted(most, 'step')}"
    return (
        f"{source} and OpenVINO {versions.get('openvino', '')} on "
        f"{report.device}: {sizes}{sets}, {counted(report.inferences, 'inference')}, {report.seconds:.1f} s"
    )


def _first_difference(report: Report, side: Side) -> str:
    """The first difference of an IR with states: a step of a sequence, counted from 1; else nothing."""
    row = side.first
    if row is None or not row.step:
        return ""
    of = f"{report.steps[row.set]} of {report.sets[row.set].name}"
    return f"The first difference is in step {row.step} of {of}: {row.output}."


def heading(side: Side) -> str:
    """The name of a side and its result."""
    text = f"{side.name}: {side.status}"
    return f"{text}: {side.message}" if side.message else text


def _cells(report: Report, row: Row) -> tuple[str, ...]:
    result = row.result
    kind = row.found if row.found == row.expected else f"{row.found} instead of {row.expected}"
    name = _place(report, row)
    if _needs_words(row) and row.result.kind != AMPLIFIED:
        return (row.output, kind, *[""] * (len(HEAD) - 3), name)
    worst = "" if result.worst is None else f"[{', '.join(map(str, result.worst))}]"
    return (
        row.output, kind, f"{result.largest_abs:.3g}", f"{result.largest_rel:.3g}", f"{result.mean_abs:.3g}",
        f"{result.cosine:.6f}", "" if result.snr is None else f"{result.snr:.1f}",
        "" if result.top1 is None else f"{result.top1:.1%}", f"{result.count} of {result.size}", worst, *result.pair,
        name,
    )


def _place(report: Report, row: Row) -> str:
    """The set of a row, and its step."""
    return report.sets[row.set].name + (f", step {row.step}" if row.step else "")


def differences(report: Report) -> str:
    """The outputs that differ, one line each; the message of a side that ended early."""
    lines = []
    for side in report.sides:
        if side.message:
            lines.append(heading(side))
        lines += [f"{row.result} (inputs: {_place(report, row)})" for row in side.worst if not row.result]
    if getattr(report.layers, "brief", ""):
        lines.append(f"the first piece that differs: {report.layers.brief}")
    return "\n".join(map(printable, lines))


# -- Markdown


def as_markdown(report: Report) -> str:
    """The report for the page of a CI job."""
    lines = [f"## {cell(report.model)}: {cell(title(report))}", "", cell(summary(report))]
    for side in report.sides:
        lines += ["", f"**{cell(heading(side))}**"]
        if side.rows:
            ends = ["---:" if place in RIGHT else "---" for place in range(len(HEAD))]
            lines += ["", f"| {' | '.join(HEAD)} |", f"|{'|'.join(ends)}|"]
            lines += [f"| {' | '.join(map(cell, _cells(report, row)))} |" for row in side.worst]
        if text := _first_difference(report, side):
            lines += ["", cell(text)]
    for label, text in _remarks(report):
        lines += ["", f"{label.capitalize()}{cell(text)}"]
    return "\n".join(lines) + "\n"


# -- JUnit


def as_junit(report: Report) -> str:
    """The report as JUnit XML: a test case for each output of each side, and one for a side that ended early."""
    suites = ET.Element("testsuites", {"name": "mo-loop verify"})
    for side in report.sides:
        cases = []
        for row in side.worst:
            step = f"{_place(report, row)}: " if row.step else ""
            cases.append((row.output, "" if row.result else "failure", f"{step}{row.result}"))
        if side.message or (side.status != "differs" and not side.passed):
            cases.append((side.status, "error", side.message))
        kinds = [kind for _, kind, _ in cases]
        counts = {
            "tests": str(len(cases)), "failures": str(kinds.count("failure")), "errors": str(kinds.count("error")),
            "time": f"{side.seconds:.3f}",
        }
        suite = ET.SubElement(suites, "testsuite", {"name": xml_text(f"{report.model} {side.name}"), **counts})
        for name, kind, text in cases:
            case = ET.SubElement(suite, "testcase", classname=xml_text(report.model), name=xml_text(name), time="0")
            if kind:
                failure = ET.SubElement(case, kind, {"type": side.status, "message": xml_text(text.partition("\n")[0])})
                failure.text = None if report.layers is None else xml_text(str(report.layers))
    ET.indent(suites, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, "unicode") + "\n"
