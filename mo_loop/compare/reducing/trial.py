"""Runs candidates in worker processes.

    trials = Trials(condition, options, jobs=2, seconds=30)
    trials.first([candidate, other])      # the first that shows the condition, and its number; None if none does

A candidate that ONNX Runtime does not run shows nothing: it is not a model with known numbers.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.compare.layers import compared
from mo_loop.compare.reducing.candidate import Candidate, graphs
from mo_loop.compare.results.array_comparison import compare_all, is_limited, tolerance_of_ends
from mo_loop.conversion import Conversion
from mo_loop.errors import ConversionErrors, MoLoopError, UsageError
from mo_loop.frontend.onnx_graphs import label
from mo_loop.graph.origin import Origin
from mo_loop.options import ConvertOptions
from mo_loop.support.workers import CRASH, OK, TIMEOUT, Pool, report_stage

NOT_FOUND = 127
"""The exit code of a shell that does not find a command."""

RUNNING = "run the IR"
"""The stage of a worker in which a crash is one of the IR."""


@dataclass(frozen=True)
class _Task:
    candidate: Candidate
    condition: Condition
    options: ConvertOptions
    rtol: float | None
    atol: float | None


class MissingCommand(Exception):
    """The shell does not find the command of a condition."""


class Trials:
    """Tries candidates, several at a time.

    `count` is the number of trials so far, `slowest` the seconds of the longest, `seconds` the limit of the next ones.
    """

    def __init__(
        self, condition: Condition, options: ConvertOptions, *, jobs: int, seconds: float, rtol: float | None = None,
        atol: float | None = None,
    ) -> None:  # fmt: skip
        self.count = 0
        self.seconds = seconds
        self.jobs = jobs
        self._condition, self._options = condition, options
        self._tolerance = rtol, atol
        self._pool = Pool(f"{__name__}:shows", jobs=jobs)
        self._threads = ThreadPoolExecutor(jobs)
        self.slowest = 0.0

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        """The number of the first candidate that shows the condition."""
        answers = list(self._threads.map(self._shows, candidates))
        return next((place for place, answer in enumerate(answers) if answer), None)

    def suspects(self, candidate: Candidate) -> list[int]:
        """The numbers of the nodes that the error or the verdict names; empty if it names none."""
        try:
            return isolated(suspects, candidate, self._condition, self._options, *self._tolerance)
        except IsolatedError:
            return []

    def close(self) -> None:
        """End the workers."""
        self._pool.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _shows(self, candidate: Candidate) -> bool:
        self.count += 1
        outcome = self._pool.call(_Task(candidate, self._condition, self._options, *self._tolerance), self.seconds)
        self.slowest = max(self.slowest, outcome.seconds)
        if outcome.status == OK:
            return bool(outcome.value)
        if outcome.error == MissingCommand.__name__:
            raise UsageError(
                f"the command of --if is not there: {outcome.message.partition(': ')[2] or outcome.message}",
                hint="give a command that the shell finds, with {} for the path of the model", code="ML202",
            )  # fmt: skip
        return (
            self._condition.kind == CRASHES and outcome.stage == RUNNING and outcome.status in (CRASH, TIMEOUT)
        )


def suspects(
    candidate: Candidate, condition: Condition, options: ConvertOptions, rtol: float | None, atol: float | None
) -> list[int]:
    """The nodes that the errors of the conversion name, or the piece that differs, in their order; empty for other
    conditions. Runs native code."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "model.onnx")
        path.write_bytes(candidate.model)
        if condition.kind == FAILS:
            found = [each for each in _errors(path, options) if condition.detail in ("", each.code)]
            origins = [each.origin for each in found if each.origin is not None]
        elif condition.kind == DIFFERS:
            origins = list(_of_pieces(path, options, candidate, rtol, atol))
        else:
            return []
    tops = {origin.scope[0] if origin.scope else origin.node for origin in origins}
    return [number for number, node in enumerate(candidate.proto.graph.node) if label(node) in tops]


def _of_pieces(
    path: Path, options: ConvertOptions, candidate: Candidate, rtol: float | None, atol: float | None
) -> Iterator[Origin]:
    graph = Conversion(options).run(str(path))
    for feeds in candidate.sets:
        found = compared(str(path), graph, feeds, rtol=rtol, atol=atol).difference
        if found is not None:
            yield Origin(found.scope, found.node)
            return


def shows(task: _Task) -> bool:
    """Whether a candidate shows the condition. Runs in a worker."""
    kind = task.condition.kind
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "model.onnx"
        path.write_bytes(task.candidate.model)
        if kind == COMMAND:
            return _exits_well(task.condition.detail, path)
        if kind == FAILS:
            return _is_valid(task.candidate) and any(
                task.condition.detail in ("", each.code) for each in _errors(path, task.options)
            )
        if kind in (UNREADABLE, UNCOMPILABLE):
            return _is_valid(task.candidate) and _refused(task, path) == kind
        return _runs_badly(task, path)


def _exits_well(command: str, path: Path) -> bool:
    """Whether a command of the shell exits with 0. MissingCommand if the shell does not find it."""
    text = command.replace("{}", shlex.quote(str(path)))
    done = subprocess.run(text, shell=True, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode == NOT_FOUND:
        raise MissingCommand(done.stderr.decode(errors="replace").strip() or text)
    return done.returncode == 0


def _is_valid(candidate: Candidate) -> bool:
    """Whether the candidate follows the rules of ONNX that need no types; it may have unknown operators."""
    import onnx

    proto = candidate.copy()
    for graph in graphs(proto):  # the checker wants types that the converter does not need
        for port in (*graph.input, *graph.output):
            if not port.type.WhichOneof("value"):
                port.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
            if port.type.WhichOneof("value") == "tensor_type":
                port.type.tensor_type.shape.SetInParent()
    try:
        onnx.checker.check_model(proto)
    except onnx.checker.ValidationError as error:
        return "No Op registered" in str(error) or "No opset import" in str(error)
    return True


def _errors(path: Path, options: ConvertOptions) -> list[MoLoopError]:
    """The errors with which the conversion ends; none if it succeeds."""
    try:
        Conversion(options).run(str(path))
    except ConversionErrors as errors:
        return list(errors.errors)
    except MoLoopError as error:
        return [error]
    except Exception as error:
        return [MoLoopError(str(error), code="ML499")]
    return []


def _refused(task: _Task, path: Path) -> str:
    """Whether OpenVINO refuses to read the IR, or to compile it; empty if there is no IR, or it does both."""
    from mo_loop.compare.execution.runtime import compile_model, read_ir

    try:
        target = _written(task, path)
    except Exception:  # a model that does not convert
        return ""
    try:
        model = read_ir(target)
    except Exception:  # the errors of OpenVINO share no base class
        return UNREADABLE
    try:
        compile_model(model)
    except Exception:
        return UNCOMPILABLE
    return ""


def _written(task: _Task, path: Path) -> Path:
    """The .xml of the candidate."""
    from mo_loop.api import Model, save_model

    report_stage("convert")
    target = path.with_suffix(".xml")
    save_model(Model(Conversion(task.options).run(str(path))), target, task.options.compress_to_fp16)
    return target


def _runs_badly(task: _Task, path: Path) -> bool:
    from mo_loop.compare.execution.runtime import compile_ir
    from mo_loop.compare.oracle.checked_oracle import values_of_sets

    report_stage("expected values")
    sets = task.candidate.sets
    try:
        expected = values_of_sets(str(path), sets)
        target = _written(task, path)
    except Exception:  # not a model with known numbers, or one that does not convert
        return False
    report_stage(RUNNING)
    try:
        compiled = compile_ir(target)
        found = [compiled.run(feeds) for feeds in (*sets, *reversed(sets))]
    except Exception:
        return False
    return task.condition.kind == DIFFERS and any(
        _differs(task, path, feeds, left, right)
        for feeds, left, right in zip((*sets, *reversed(sets)), (*expected, *reversed(expected)), found, strict=True)
    )


def _differs(task: _Task, path: Path, feeds: Any, expected: Any, found: Any) -> bool:
    """Whether an output differs, and a piece does, as `verify` decides."""
    from mo_loop.compare.verdict.amplification import amplification, explains

    ends = {name: tolerance_of_ends(value) for name, value in _arrays(expected)}
    is_given = (task.rtol, task.atol) != (None, None)
    results = compare_all(
        _arrays(expected), _arrays(found), rtol=task.rtol, atol=task.atol, tolerances=None if is_given else ends
    )
    wrong = [each for each in results if not each and not _is_limit(each.name, expected, found)]
    if not wrong or any(each.kind != "values" for each in wrong) or is_given:
        return bool(wrong)
    answer = compared(str(path), Conversion(task.options).run(str(path)), feeds)
    if answer.difference is not None or answer.undecided:
        return answer.difference is not None
    moves = amplification(str(path), feeds)
    return not all(explains(moves, each.name, each.largest_abs) for each in wrong)


def _arrays(named: Any) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in named if value is not None and not isinstance(value, list)]


def _is_limit(name: str, expected: Any, found: Any) -> bool:
    """Whether a difference is a known limit, which is never the one that is looked for.

    An empty result can have other dimensions; the CPU device computes integers of 64 bits with 32.
    """
    left, right = dict(expected).get(name), dict(found).get(name)
    if left is None or right is None:
        return True
    if np.size(left) == 0 == np.size(right):
        return True
    return is_limited(left, right)


DIFFERS, FAILS, CRASHES, COMMAND = "differs", "fails", "crashes", "command"
UNREADABLE, UNCOMPILABLE = "unreadable", "uncompilable"

_TEXTS = {
    DIFFERS: "the numbers differ", CRASHES: "the IR crashes or hangs",
    UNREADABLE: "OpenVINO does not read the IR", UNCOMPILABLE: "OpenVINO does not compile the IR",
}  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """One of the kinds; `detail` is the code or the command."""

    kind: str
    detail: str = ""

    @classmethod
    def parse(cls, text: str) -> Condition:
        """From the text of `--if`. UsageError if it cannot be understood."""
        word, _, rest = text.strip().partition(" ")
        if word in _TEXTS and not rest:
            return cls(word)
        if word == FAILS and re.fullmatch(r"(ML\d{3})?", rest.strip()):
            return cls(FAILS, rest.strip())
        try:
            parts = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"--if {text!r} cannot be understood", why=str(error), hint=_HINT) from None
        if not any("{}" in part for part in parts):
            raise UsageError(f"--if {text!r} cannot be understood", why="a command contains {}", hint=_HINT)
        return cls(COMMAND, text)

    @property
    def runs_ir(self) -> bool:
        """Whether the IR is run, so that inputs are needed."""
        return self.kind in (DIFFERS, CRASHES)

    def __str__(self) -> str:
        if self.kind == FAILS:
            return f"the conversion fails with {self.detail}" if self.detail else "the conversion fails"
        return _TEXTS.get(self.kind, self.detail)


_HINT = 'write differs, crashes, unreadable, uncompilable, fails, fails ML302, or a command with {} for the model'
