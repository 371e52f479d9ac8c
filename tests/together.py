"""The models that one test converts are compiled as one model: compiling takes far longer than converting or running.

`later` keeps an IR with its sample until `judge_all`, which tests/conftest.py calls at the end of each test. The IR
files stay separate, and each is read by itself. If the joint model does not pass, each model is compiled alone, and the
error names the line and the row of the test that made it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mo_loop import text_library
from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.support.workers import report_stage
from tests.known_results import Known, passed
from tests.processor import fail_or_skip, is_of_the_processor
from tests.samples import CRASH, Sample, Verdict, judge_ir, judge_results

MOST = 24
"""So many models are one model at most."""

HARNESS = str(Path(__file__).with_name("harness.py"))


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
"""The row of parameters that runs, if the rows of the test are one test (tests/rows.py)."""


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
