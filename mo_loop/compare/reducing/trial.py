"""Trial: whether a candidate shows a condition, which a worker process finds out.

    trial = Trial(candidate, Condition.parse("differs"), VerifyOptions())
    outcome = Pool(SERVE).call((Trial.shows, (trial,)))
    trial.is_shown(outcome)               # a crash can be the condition too

A candidate that ONNX Runtime does not run shows nothing: it is not a model with known numbers.
"""

import re
import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import onnx

from mo_loop.compare.execution.runtime import compile_model, read_ir
from mo_loop.compare.layers import PieceFindings, compared
from mo_loop.compare.layers.rounding import amplification, explains
from mo_loop.compare.oracle.checked_oracle import values_of_sets
from mo_loop.compare.oracle.graph_edits import graphs_in
from mo_loop.compare.reducing.candidates import Candidate, Feeds
from mo_loop.compare.results.array_comparison import Named, by_wanted_name, is_limited
from mo_loop.compare.results.report import rows_of
from mo_loop.compare.verify_options import VerifyOptions
from mo_loop.conversion import Conversion
from mo_loop.converted_model import Model, write_pair
from mo_loop.errors import MoLoopError, UsageError
from mo_loop.frontend.onnx_graphs import label
from mo_loop.graph import Graph
from mo_loop.support.workers import CRASH, TIMEOUT, TaskOutcome, report_stage

NOT_FOUND = 127
"""The exit code of a shell that does not find a command."""

RUNNING = "run the IR"
"""The stage of a worker in which a crash is one of the IR."""

DIFFERS, FAILS, CRASHES, COMMAND = "differs", "fails", "crashes", "command"
UNREADABLE, UNCOMPILABLE = "unreadable", "uncompilable"

_TEXTS = {
    DIFFERS: "the numbers differ", CRASHES: "the IR crashes or hangs",
    UNREADABLE: "OpenVINO does not read the IR", UNCOMPILABLE: "OpenVINO does not compile the IR",
}

_HINT = 'write differs, crashes, unreadable, uncompilable, fails, fails ML302, or a command with {} for the model'


@dataclass(frozen=True)
class Condition:
    """One of the kinds; `detail` is the code or the command."""

    kind: str
    detail: str = ""

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """From the text of `--if`. UsageError if it cannot be understood."""
        word, _, rest = text.strip().partition(" ")
        if (word in _TEXTS and not rest) or (word == FAILS and re.fullmatch(r"(ML\d{3})?", rest.strip())):
            return cls(word, rest.strip())
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


class MissingCommand(Exception):
    """The shell does not find the command of a condition."""


@dataclass(frozen=True)
class Trial:
    """A candidate and its condition; `settings` have the options of the conversion and the tolerances of `differs`.

    All methods but `is_shown` run native code: call them in a worker process.
    """

    candidate: Candidate
    condition: Condition
    settings: VerifyOptions

    def shows(self) -> bool:
        """Whether the candidate shows the condition."""
        kind = self.condition.kind
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.onnx")
            path.write_bytes(self.candidate.model)
            if kind == COMMAND:  # of the shell, which ends with 0
                text = self.condition.detail.replace("{}", shlex.quote(str(path)))
                done = subprocess.run(text, shell=True, stdin=subprocess.DEVNULL, capture_output=True, check=False)
                if done.returncode == NOT_FOUND:
                    raise MissingCommand(done.stderr.decode(errors="replace").strip() or text)
                return done.returncode == 0
            if not (self.condition.runs_ir or self._is_valid()):
                return False
            return bool(self._errors()) if kind == FAILS else self._fault(path) == kind

    def suspect(self) -> int | None:
        """The place of the first node of the main graph that an error of the conversion names, or that has the piece
        that differs; None for other conditions."""
        named: list[Any] = []
        if self.condition.kind == FAILS:
            named = [each.origin for each in self._errors() if each.origin is not None]
        elif self.condition.kind == DIFFERS:
            found = map(self._piece, self.candidate.sets)
            named = list(islice((each.difference for each in found if each.difference is not None), 1))
        names = {each.scope[0] if each.scope else each.node for each in named}
        places = (place for place, node in enumerate(self.candidate.proto.graph.node) if label(node) in names)
        return next(places, None)

    @cached_property
    def _graph(self) -> Graph:
        return Conversion(self.settings.conversion).run(self.candidate.model)

    def _piece(self, feeds: Feeds) -> PieceFindings:
        return compared(self.candidate.model, self._graph, feeds, rtol=self.settings.rtol, atol=self.settings.atol)

    def is_shown(self, outcome: TaskOutcome) -> bool:
        """Whether a worker found that the candidate shows the condition, or crashed because it does.

        UsageError if the command of the condition is not there.
        """
        if outcome.error == MissingCommand.__name__:
            raise UsageError(
                f"the shell does not find the command of --if: {outcome.message.partition(': ')[2] or outcome.message}",
                hint="give a command that the shell finds, with {} for the path of the model", code="ML202",
            )
        crashes = outcome.stage == RUNNING and outcome.status in (CRASH, TIMEOUT)
        return bool(outcome.value) if outcome.ok else crashes and self.condition.kind == CRASHES

    # -- conditions of the conversion

    def _errors(self) -> list[MoLoopError]:
        """The errors with which the conversion ends, of the code that is wanted."""
        try:
            _ = self._graph
        except Exception as error:
            one = error if isinstance(error, MoLoopError) else MoLoopError(str(error), code="ML499")
            return [each for each in getattr(error, "errors", [one]) if self.condition.detail in ("", each.code)]
        return []

    def _is_valid(self) -> bool:
        """Whether the candidate follows the rules of ONNX that need no types; it may have unknown operators."""
        proto = self.candidate.copy()
        for graph in graphs_in(proto.graph):  # the checker wants types that the converter does not need
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

    # -- conditions of the IR

    def _fault(self, path: Path) -> str:
        """The condition that the IR shows: OpenVINO does not read or compile it, or gives other numbers; empty if none.

        A crash at the stage `RUNNING` is one of the IR.
        """
        fault, sets, target = "", self.candidate.sets if self.condition.runs_ir else (), path.with_suffix(".xml")
        try:
            report_stage("expected values")
            expected = values_of_sets(self.candidate.model, sets) if sets else []
            report_stage("convert")
            write_pair(Model(self._graph), target, self.settings.conversion.compress_to_fp16)
            report_stage(RUNNING)
            fault = UNREADABLE
            model = read_ir(target)
            fault = UNCOMPILABLE
            compiled = compile_model(model)
            fault = ""
            runs = [*zip(sets, expected, strict=True), *reversed([*zip(sets, expected, strict=True)])]
            found = [compiled.run(feeds) for feeds, _ in runs]
        except Exception:  # a model without known numbers; the errors of OpenVINO share no base class
            return fault
        pairs = zip(runs, found, strict=True)
        has_other = self.condition.kind == DIFFERS and any(self.differs(path, *run, outputs) for run, outputs in pairs)
        return DIFFERS if has_other else ""

    def differs(self, path: Path, feeds: Feeds, expected: Named, found: Named) -> bool:
        """Whether an output differs, and a piece does, as `verify` decides. Known limits are not differences: an empty
        result can have other dimensions, and the CPU device computes integers of 64 bits with 32."""
        wanted, have = ([each for each in named if not isinstance(each[1], list)] for named in (expected, found))
        left, right = dict(wanted), by_wanted_name(wanted, have)
        wrong = [
            each.result for each in rows_of(0, 0, wanted, have, self.settings, [], of_scale=True)
            if not each.result and not (each.output in left and is_limited(left[each.output], right[each.output]))
        ]
        if not wrong or any(each.kind != "values" for each in wrong) or self.settings.has_tolerance:
            return bool(wrong)
        piece = self._piece(feeds)
        if piece.difference is not None or piece.undecided:
            return piece.difference is not None
        moves = amplification(str(path), feeds, piece.inexact)
        return not all(explains(moves, each.name, each.largest_abs) for each in wrong)
