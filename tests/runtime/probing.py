"""Probes: small graphs that show an error of the runtime, one file of tests/runtime/probes for each gap.

    A sentence or two about what goes wrong.
    # infer 3, [1.0, 2.0] -> [4.0, 5.0]     one inference: values of the Parameters, expected values of the Results
    # infer 0, [1.0, 2.0] -> [1.0, 2.0]     the next one on the same compiled model
    # graph
    %n = Parameter : i64[]                  the graph as it is before the rule, in the language of mo_loop.text
    # onnx
    main (int64 n, ...) => (...) {...}      where a translator avoids the gap: the ONNX model for the same inferences

Some gaps show only in large graphs. For these, `# without BreakStateSymbols` replaces the graph: the ONNX
model is converted without this rule.

Values are written as those of constants; with a type, one value fills a tensor and `[] : f32[0,2]` is one without
elements; `any` expects any value. Options before the graph:

    # limit 5              seconds; a probe that takes longer shows the gap
    # rtol 1e-6            relative tolerance; 1e-5 if it is not given
    # skips AbsToMaximum   passes that are left out together with the rule, because they avoid the same gap
    # opset 18             of the ONNX model
    # threads 2            how many threads the runtime uses; default: one
    # precision default    the precision that the device chooses; f32 if it is not given
    # unlike AVX2          limits of the instructions under which the runtime does not choose the kernels of a processor
                           that has no more: the result of the probe there says nothing
"""

import functools
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.api import convert_model
from mo_loop.compare.execution.isolated import brief
from mo_loop.compare.execution.runtime import run_ir
from mo_loop.compare.results.array_comparison import compare
from mo_loop.compare.verify_options import properties_of
from mo_loop.graph import Graph
from mo_loop.ir.bin import Weights
from mo_loop.ir.xml import XmlWriter
from mo_loop.support.workers import Pool, TaskOutcome
from mo_loop.target import ANY, CPU, Gap, Processor, Target
from mo_loop.text import parse
from mo_loop.text.literals import parse_data, shaped
from mo_loop.text.spelling import Scanner, parse_type
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.last_check import last_check
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.pipelines import LOOPS, default_pipeline
from tests.harness import parsed
from tests.running.processor import NO_LIMIT, processor
from tests.running.samples import FILLED
from tools.runtimes import device

FOLDER = Path(__file__).parent / "probes"
SECTION = re.compile(r"^# (infer|limit|rtol|skips|opset|threads|precision|unlike|without|graph|onnx)\b", re.MULTILINE)
LIMIT, RTOL, ATOL = 60.0, 1e-5, 1e-7

RIGHT, WRONG, ERROR, CRASH, ENDLESS = "right", "wrong numbers", "error", "crash", "endless"


@dataclass(frozen=True)
class Verdict:
    """How the inferences of a probe ended: one of the words above, and the difference or the message."""

    result: str
    message: str = ""

    @property
    def is_right(self) -> bool:
        return self.result == RIGHT


@dataclass(frozen=True)
class Probe:
    """One file of the folder."""

    name: str
    graph: str = ""
    onnx: str = ""
    without: str = ""
    inferences: tuple[str, ...] = ()
    limit: float = LIMIT
    rtol: float = RTOL
    opset: int = 18
    skips: tuple[str, ...] = ()
    threads: int = 1
    precision: str = "f32"
    unlike: tuple[str, ...] = ()

    def sets(self, graph: Graph) -> tuple[list[list[Any]], list[list[Any]]]:
        """The inputs and the expected outputs of all inferences."""
        feeds, expected = [], []
        for line in self.inferences:
            scanner = Scanner(line)
            feeds.append(_values(scanner, [each.output.type for each in graph.parameters]))
            scanner.expect("->")
            expected.append(_values(scanner, [each.inputs[0].type for each in graph.results]))
            if not scanner.at_end:
                raise scanner.fail(f"probe {self.name}: values are left over")
        return feeds, expected

    def as_written(self) -> Graph:
        """The graph before the rule."""
        return parse(self.graph) if self.graph else self.avoided(self.without, *self.skips)

    def avoided(self, *without: str, to: str = ANY) -> Graph:
        """The graph that is written instead for a device: by the converter from the ONNX model, else by the passes from
        the graph.

        Passes in `without` do not run, and those that shorten loops: the rule has to avoid the error in what they keep.
        """
        config = PassConfig()
        config.disable(*without, "WriteSizes", *(each.__name__ for each in LOOPS))
        if self.onnx:
            return convert_model(parsed(self.onnx, self.opset), static=True, config=config, device=to).graph
        graph = parse(self.graph)
        Manager(default_pipeline(target=Target(device=to)), config=config).run(graph)
        last_check(graph)
        return graph


def read(path: Path) -> Probe:
    """Take a file apart."""
    text = path.read_text("utf-8")
    marks = list(SECTION.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    found: dict[str, list[str]] = {}
    for mark, end in zip(marks, ends, strict=True):
        found.setdefault(mark[1], []).append(text[mark.end() : end].strip())
    options: dict[str, Any] = {}
    kinds = {
        "limit": float, "rtol": float, "opset": int, "threads": int, "precision": str, "skips": _words,
        "unlike": _words,
    }
    for name, kind in kinds.items():
        if name in found:
            options[name] = kind(found[name][0])  # type: ignore[operator]
    for name in ("graph", "onnx", "without"):
        options[name] = found.get(name, [""])[0]
    return Probe(path.stem, inferences=tuple(found["infer"]), **options)


@functools.cache
def probes() -> dict[str, Probe]:
    """All probes by the id of their gap."""
    return {path.stem: read(path) for path in sorted(FOLDER.glob("*.txt"))}


@functools.cache
def rules() -> set[str]:
    """The names of the passes that a rule can be."""
    return {each.name for one in default_pipeline() for each in (one, *one.passes)}


def limits(gap: Gap) -> list[str]:
    """The values of ONEDNN_MAX_CPU_ISA with which the probe of a gap runs: that of this process and, if the releases
    depend on the processor, those that make this one like each lesser kind."""
    kinds = list(Processor)
    return ["", *(each.name for each in kinds[kinds.index(processor()) + 1 :] if gap.on)]


def shows(gap: Gap, probe: Probe, release: str, limit: str = "") -> bool | None:
    """Whether the table says that the probe shows the gap on a release here, under one of `limits`; None if the result
    does not depend on the kind of processor alone."""
    kind = processor(limit)
    return None if kind.name in probe.unlike and kind is not processor(NO_LIMIT) else gap.is_in(release, kind)


def run(probe: Probe, graph: Graph, limit: str = "", *, python: str | None = None, fresh: bool = False) -> Verdict:
    """Run the inferences on one compiled model of the graph, in a worker process.

    `limit` is one of `limits`, `python` the interpreter of another OpenVINO release or device; with `fresh` the process
    has run nothing before.
    """
    feeds, expected = probe.sets(probe.as_written())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probe.xml"
        with open(path, "w", encoding="utf-8", newline="\n") as xml, open(path.with_suffix(".bin"), "wb") as data:
            XmlWriter(xml, Weights(data)).write(graph)
        on = device(python)
        properties = properties_of(probe.precision, on) if on != CPU or probe.precision != "f32" else {}
        threads = {"INFERENCE_NUM_THREADS": probe.threads} if on == CPU else {}
        task = (run_ir, (path, feeds, {**properties, **threads}, None, on))
        outcome = _pool(python, limit).call(task, probe.limit, fresh=fresh)
        if outcome.status == "crash" and not outcome.first:  # an earlier probe may have corrupted the memory
            outcome = _pool(python, limit).call(task, probe.limit, fresh=True)
    return _verdict(outcome, expected, probe.rtol)


def _verdict(outcome: TaskOutcome, expected: list[list[Any]], rtol: float) -> Verdict:
    if outcome.status == "crash":
        return Verdict(CRASH, f"{outcome.message} {outcome.detail}".strip())
    if outcome.status == "timeout":
        return Verdict(ENDLESS, outcome.message)
    if not outcome.ok:
        return Verdict(ERROR, brief(RuntimeError(outcome.message)))
    for number, (wanted, found) in enumerate(zip(expected, outcome.value, strict=True)):
        for port, (array, (_, result)) in enumerate(zip(wanted, found, strict=True)):
            difference = compare(array, result, rtol=rtol, atol=ATOL) if array is not None else None
            if difference is not None and not difference:
                return Verdict(WRONG, f"inference {number}, output {port}: {difference.message}")
    return Verdict(RIGHT)


def _values(scanner: Scanner, types: Sequence[Any]) -> list[Any]:
    """One value for each type, with commas between; None for `any`."""
    values: list[Any] = []
    for position, type_ in enumerate(types):
        if position:
            scanner.expect(",")
        if scanner.accept("any"):
            values.append(None)
            continue
        literal, seed = parse_data(scanner)
        stated = parse_type(scanner) if scanner.accept(":") else None
        if stated is None and literal is not None:
            values.append(literal.tensor(type_.dtype).array())
        else:
            values.append(np.array(shaped(scanner, literal, seed, stated, scanner.line).array()))
    return values


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


@functools.cache
def _pool(python: str | None, limit: str) -> Pool:
    env = FILLED | ({"ONEDNN_MAX_CPU_ISA": limit} if limit else {})
    return Pool("mo_loop.compare.execution.isolated:serve", python=python, env=env)
