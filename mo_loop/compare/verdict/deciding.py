"""The verdict about an IR: the ends decide where they agree, the pieces where they do not.

    deciding = Deciding(path, source, settings, notes)
    side, pieces = deciding.decided(side, plain)               # the side with its final status

`agrees` needs agreement of the ends, or of every piece while the model itself amplifies rounding. A piece that differs
is a fault; without one, a piece that cannot be compared leaves the verdict open.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mo_loop.compare.execution.isolated import IsolatedError, brief, isolated
from mo_loop.compare.results.array_comparison import AMPLIFIED, largest_number
from mo_loop.compare.results.report import DIFFERS, NOT_DECIDED, PASSED, Row, Side
from mo_loop.compare.results.verify_settings import VerifyOptions
from mo_loop.compare.sides.expected_sets import GIVEN
from mo_loop.compare.sides.ir_runs import PlainSide
from mo_loop.compare.verdict.amplification import amplification, explains
from mo_loop.compare.verdict.explaining import Pieces, Question, pieces_of
from mo_loop.options import ConvertOptions

UNIT = 2.0**-24
"""The largest relative error of one rounding of f32."""

HINT = "give other inputs (--input-data), or tolerances for the outputs (--rtol, --atol)"


class Deciding:
    """The verdicts of one verification. `source` is the model that ONNX Runtime runs."""

    def __init__(
        self, path: Path, source: Path, settings: VerifyOptions, notes: list[str]
    ) -> None:
        self.path, self.source, self.settings, self.notes = path, source, settings, notes

    def decided(self, side: Side, plain: PlainSide) -> tuple[Side, Pieces | None]:
        """The side with the verdict, and the answer of the pieces where they were compared."""
        settings, ends_differ = self.settings, side.status == DIFFERS
        if settings.has_tolerance or plain.found.oracle == GIVEN or side.status not in (PASSED, DIFFERS):
            return side, None  # the ends decide alone
        if not ends_differ and not settings.layers:
            return side, None
        pieces = pieces_of(self.question(side, plain), settings.limit, runs=True)
        self.notes += [f"{layer}: the runtime has numbers where ONNX has NaN (ML505)" for layer in pieces.lost_nan]
        if pieces.status == "differs":
            assert pieces.difference is not None
            message = "" if ends_differ else f"the outputs agree, and a piece does not: {pieces.difference.brief}"
            return replace(side, status=DIFFERS, message=message), pieces
        if not ends_differ:
            self.notes += [f"not compared by itself: {each}" for each in pieces.undecided]
            return side, pieces
        if pieces.status == "not decided":
            return replace(side, status=NOT_DECIDED, message=self._open(pieces)), pieces
        return self._amplified(side, plain, pieces), pieces

    def question(self, side: Side, plain: PlainSide, precision: str = "", dump: Any = None) -> Question:
        """The question about the sets in which a side differs, else all that it ran, else all.

        A worker that started earlier may be in another folder.
        """
        settings, sets = self.settings, plain.found.sets
        numbers = sorted({row.set for row in side.rows if not row.result} or {row.set for row in side.rows})
        numbers = numbers or list(range(len(sets)))
        outputs = [(name, each) for (other, number, name), each in plain.distances.items()
                   if other == side.name and number in numbers]  # fmt: skip
        return Question(
            os.path.abspath(self.path), os.path.abspath(self.source),
            None if settings.ir is None else os.path.abspath(settings.ir), ConvertOptions.of(settings.options),
            [sets[number] for number in numbers], replace(settings, inputs=(), expected=()),  # which `sets` are made of
            None if dump is None else os.path.abspath(dump), precision, outputs,
        )  # fmt: skip

    def _open(self, pieces: Pieces) -> str:
        first, *more = pieces.undecided
        others = f" (and {len(more)} more)" if more else ""
        return f"the outputs differ, and a piece cannot be compared: {first}{others}; {HINT}"

    # -- agreement of every piece

    def _amplified(self, side: Side, plain: PlainSide, pieces: Pieces) -> Side:
        """The side after rows are separated that differ because the model amplifies rounding."""
        found = plain.found
        moves: dict[int, Mapping[str, float]] = {}
        for number in sorted({row.set for row in side.rows if not row.result}):
            try:
                feeds = found.sets[number][1]
                moves[number] = isolated(amplification, str(self.source), feeds, limit=self.settings.limit)
            except IsolatedError as error:
                self.notes.append(f"whether the model amplifies rounding is not known: {brief(error)}")
        rows = []
        for row in side.rows:
            if not row.result and self._is_amplified(row, moves.get(row.set, {}), bool(pieces.lost_nan)):
                expected = dict(found.expected[row.set]).get(row.output)
                row = replace(row, result=replace(row.result, kind=AMPLIFIED, message=_words(row, expected)))
            rows.append(row)
        status = PASSED if all(row.result for row in rows) else DIFFERS
        return replace(side, rows=tuple(rows), status=status)

    @staticmethod
    def _is_amplified(row: Row, moves: Mapping[str, float], loses_nan: bool) -> bool:
        if row.result.kind == "shape":
            return math.isinf(moves.get(row.output, 0.0))
        if row.result.kind != "values":
            return False
        return loses_nan or explains(moves, row.output, row.result.largest_abs)


def _words(row: Row, expected: Any) -> str:
    """The difference of an output whose pieces all agree."""
    if row.result.kind == "shape":
        return f"agrees in every piece; rounding alone changes the shape: {row.result.message}"
    scale = largest_number(expected)
    relative = row.result.largest_abs / scale if scale else 0.0
    power = math.ceil(math.log10(relative / UNIT)) if relative > UNIT else 0
    return (
        f"agrees in every piece; the model itself amplifies rounding by 10^{power}: "
        f"outputs differ by {row.result.largest_abs:.3g}"
    )
