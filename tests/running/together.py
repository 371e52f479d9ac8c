"""The models of one test are compiled as one model, and what an IR gave before need not run again.

Compiling takes far longer than converting or running. `later` keeps an IR with its sample until `judge_all`,
which tests/conftest.py calls at the end of each test. The IR files stay separate, and each is read by itself. If the
joint model does not pass, each model is compiled alone, and the error names the line and the row of the test that made
it.

    known = passed(path, sample)            # a Known: the same IR with the same inputs and expected values
    if not known.found: ...                 # compile, run, compare
    known.keep(True)                        # only what passed

A result is found by all that it depends on: the bytes of the files, inputs and expected values, the releases of the
libraries, the instruction set, and the sources that run and compare. The results are in build/test-results, which may
be removed at any time; MO_LOOP_TEST_RESULTS names another folder, and empty it makes every test run everything.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mo_loop
from mo_loop import text_library
from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.compare.execution.runtime import CPUINFO
from mo_loop.compare.execution.runtime import ISA_LIMIT as LIMIT
from mo_loop.graph import Graph
from mo_loop.ir.xml import in_memory
from mo_loop.support.workers import report_stage
from tests import ROOT
from tests.running.processor import fail_or_skip, is_of_the_processor
from tests.running.samples import CRASH, Sample, Verdict, judge_ir, judge_results

MOST = 24
"""So many models are one model at most."""

HARNESS = str(ROOT / "tests" / "harness.py")


@dataclass
class Waiting:
    """An IR that is not judged yet; its files are in `folder`."""

    folder: tempfile.TemporaryDirectory[str]
    path: Path
    sample: Sample
    text: str
    line: str
    known: Known


_waiting: list[Waiting] = []
_bad: list[str] = []
"""The messages of the models that did not pass, of the test that runs."""

row = ""
"""The row of parameters that runs, if the rows of the test are one test (tests/running/rows.py)."""


def later(folder: tempfile.TemporaryDirectory[str], path: Path, sample: Sample, text: str) -> None:
    """Judge the IR at `path` at the end of the test; `text` follows the error if it does not pass."""
    caller = sys._getframe(1)
    while caller.f_code.co_filename == HARNESS and caller.f_back is not None:
        caller = caller.f_back
    line = f"{caller.f_code.co_filename}:{caller.f_lineno}" + (f" [{row}]" if row else "")
    known = passed(path, sample)
    if known.found:
        folder.cleanup()
        return
    _waiting.append(Waiting(folder, path, sample, text, line, known))
    if len(_waiting) >= MOST:
        _judge()


def judge_all() -> None:
    """Judge all IR files that wait. AssertionError if a model of the test did not pass."""
    _judge()
    bad = list(_bad)
    _bad.clear()
    fail_or_skip(bad)


def _judge() -> None:
    all_waiting = list(_waiting)
    _waiting.clear()
    try:
        here = all(each.sample.python is None for each in all_waiting)
        if len(all_waiting) > 1 and here and _pass_together(all_waiting):
            for each in all_waiting:
                each.known.keep(True)
            return
        for each in all_waiting:
            verdict = _judged(each)
            if not verdict.bad:
                each.known.keep(True)
            else:
                _bad.append(f"{each.line}: {verdict.result}: {verdict.message}; {each.text}")
    finally:
        for each in all_waiting:
            each.folder.cleanup()


def _judged(one: Waiting) -> Verdict:
    try:
        return isolated(judge_ir, one.path, one.sample)
    except IsolatedError as error:
        if not is_of_the_processor(str(error)):
            raise
        return Verdict(CRASH, str(error))


def forget() -> None:
    """Remove the IR files that wait: the test has failed already."""
    _bad.clear()
    while _waiting:
        _waiting.pop().folder.cleanup()


def _pass_together(all_waiting: Sequence[Waiting]) -> bool:
    try:
        return isolated(pass_together, [(str(each.path), each.sample) for each in all_waiting])
    except IsolatedError as error:
        if error.status == "error":  # not a crash or a hang: an error in this module
            raise
        return False


def pass_together(tasks: Sequence[tuple[str, Sample]]) -> bool:
    """In the worker: whether all models pass. The runtime has two ways to run a model, so static models are one model,
    and those with a dynamic shape are another."""
    from openvino.frontend import FrontEndManager

    # What openvino.Core finds for the file, after it has asked every other front end: twice the time.
    reader = FrontEndManager().load_by_framework("ir")
    for path, _ in tasks:
        text_library.add_to(reader, Path(path).read_bytes())
    models = [(reader.convert(reader.load(path)), sample) for path, sample in tasks]
    dynamic = [
        any(output.get_partial_shape().is_dynamic for node in model.get_ops() for output in node.outputs())
        for model, _ in models
    ]
    groups = ([each for each, is_dynamic in zip(models, dynamic, strict=True) if is_dynamic == kind] for kind in (0, 1))
    return all(_group_passes(group) for group in groups if group)


def _group_passes(models: Sequence[tuple[Any, Sample]]) -> bool:
    import openvino

    from mo_loop.compare.execution.runtime import compile_model, names_of, ordered

    inputs = [[names_of(port) for port in model.inputs] for model, _ in models]
    outputs = [[names_of(port)[0] for port in model.outputs] for model, _ in models]
    results = [result for model, _ in models for result in model.get_results()]
    parameters = [parameter for model, _ in models for parameter in model.get_parameters()]
    report_stage("compile")
    try:
        compiled = compile_model(openvino.Model(results, parameters, "together"))
    except RuntimeError:
        return False
    report_stage("infer")
    for step in range(max(len(sample.order) for _, sample in models)):
        positions = [min(step, len(sample.order) - 1) for _, sample in models]
        feeds: list[Any] = []
        for names, position, (_, sample) in zip(inputs, positions, models, strict=True):
            feeds += ordered(sample.feeds[sample.order[position]], names)
        try:
            found = iter(array for _, array in compiled.run(feeds))
        except RuntimeError:
            return False
        for names, position, (_, sample) in zip(outputs, positions, models, strict=True):
            if judge_results(sample, position, [(name, next(found)) for name in names]).bad:
                return False
    return True


# -- results of earlier runs


FOLDER = os.environ.get("MO_LOOP_TEST_RESULTS", str(ROOT / "build" / "test-results"))
LIBRARIES = ("openvino", "onnxruntime", "onnx", "numpy")
SOURCES = ("compare/execution", "compare/oracle", "compare/results", "support")
"""Folders of mo_loop that run and compare."""


@dataclass(frozen=True)
class Known:
    """The place of one result; `found` is the result of an earlier run, or None."""

    place: Path | None
    found: Any = None

    def keep(self, result: Any) -> None:
        """Store the result for later runs."""
        if self.place is None:
            return
        self.place.parent.mkdir(parents=True, exist_ok=True)
        draft = self.place.with_suffix(f".{os.getpid()}")
        draft.write_bytes(pickle.dumps(result))
        draft.replace(self.place)


def passed(path: str | Path, sample: Sample) -> Known:
    """Whether the IR at `path` has passed with this sample."""
    if not FOLDER:
        return Known(None)
    path = Path(path)
    limits = (sample.order, sample.rtol, sample.atol, sample.values, sample.exact, sample.python or "")
    told = sample.inferred
    inferred = "" if told is None else _text_of([told._inputs, [shape for _, shape in told._outputs]], {})
    parts = (path.read_bytes(), path.with_suffix(".bin").read_bytes(), repr(limits), inferred)
    return _known("passed", *parts, *_arrays(sample.feeds), *_arrays(sample.expected))


def values(model: bytes, sets: Sequence[Mapping[str, Any]]) -> Known:
    """The results of the oracle for a model."""
    return _known("values", model, *_arrays(sets)) if FOLDER else Known(None)


def probed(graph: Graph, *settings: str) -> Known:
    """The result of a probe of the runtime for a graph: a Verdict of tests/runtime/probing.py."""
    if not FOLDER:
        return Known(None)
    judge = ROOT / "tests" / "runtime" / "probing.py"
    return _known("probed", *in_memory(graph), judge.read_bytes(), *settings)


def _known(kind: str, *parts: bytes | str) -> Known:
    digest = hashlib.sha256(f"{kind} {_setting()}".encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    name = digest.hexdigest()
    place = Path(FOLDER, name[:2], name[2:])
    try:
        return Known(place, pickle.loads(place.read_bytes()))
    except FileNotFoundError:
        return Known(place)


@functools.cache
def _setting() -> str:
    """All that results depend on besides the model and its inputs."""
    package = Path(mo_loop.__file__).parent
    files = sorted(file for each in SOURCES for file in (package / each).glob("*.py"))
    files += [Path(__file__).with_name(name) for name in ("samples.py", "together.py")]
    sources = hashlib.sha256(b"\0".join(file.read_bytes() for file in files))
    lines = CPUINFO.read_text("utf-8").splitlines() if CPUINFO.exists() else []
    flags = sorted({line for line in lines if line.startswith("flags")})
    return f"{[version(each) for each in LIBRARIES]} {os.environ.get(LIMIT)} {flags} {sources.hexdigest()}"


def _arrays(sets: Iterable[Any]) -> Iterable[bytes]:
    return (pickle.dumps(list(each.items()) if isinstance(each, Mapping) else each, protocol=5) for each in sets)


def _text_of(item: Any, numbers: dict[Any, int]) -> str:
    """The inferred shapes as text. The symbols of dimensions are numbered: their names differ between processes."""
    if isinstance(item, list | tuple):
        return f"[{', '.join(_text_of(each, numbers) for each in item)}]"
    if hasattr(item, "terms"):
        terms = [(numbers.setdefault(symbol, len(numbers)), factor) for symbol, factor in item.terms]
        return f"{terms} + {item.const} in {item.lo} to {item.hi}"
    return repr(item)
