"""The verdict about an IR: the ends decide where they agree, the pieces where they do not.

    deciding = Deciding(path, source, settings, notes, plain)
    side = deciding.decided(side)                       # the side with its final status
    layers, passes = deciding.explained(sides)          # where and why outputs differ

`agrees` needs agreement of the ends, or of every piece while the model itself amplifies rounding. A piece that differs
is a fault; without one, a piece that cannot be compared leaves the verdict open. With a folder for a dump, all tensors
are compared, and a page in it shows how far each is from that of the ONNX model.
"""

import copy
import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mo_loop.compare.execution.isolated import IsolatedError, brief, isolated
from mo_loop.compare.input_sets.expected_sets import GIVEN
from mo_loop.compare.input_sets.given import save
from mo_loop.compare.ir_runs import IrRuns, worker_pool
from mo_loop.compare.layers import Heat, History, PieceFindings, assign_origins, compared
from mo_loop.compare.layers.findings import NOT_REPRODUCED
from mo_loop.compare.layers.rounding import amplification, explains
from mo_loop.compare.layers.tensor_differences import FAILED
from mo_loop.compare.passes import PassDifference, changing_pass
from mo_loop.compare.results.array_comparison import AMPLIFIED, ArrayComparison, largest_number
from mo_loop.compare.results.report import DIFFERS, NOT_DECIDED, NOT_RESHAPABLE, PASSED, Row, Side
from mo_loop.compare.verify_options import F32, VerifyOptions, properties_of
from mo_loop.conversion import Conversion
from mo_loop.converted_model import compressed, read_model
from mo_loop.graph import Graph
from mo_loop.look.dump.dumper import Dumper
from mo_loop.support.workers import CRASH, Pool
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.manager import Observer

UNIT = 2.0**-24
"""The largest relative error of one rounding of f32."""

HINT = "give other inputs (--input-data), or tolerances for the outputs (--rtol, --atol)"

CONVERTED_RIGHT = "The conversion of the model gives the right numbers: the IR that was given is another one."
CONVERTED_AGAIN = (
    "The IR of another conversion of the model gives the right numbers: the difference does not show every time."
)


@dataclass(frozen=True)
class Question:
    """A model, the arguments of `verify`, with absolute paths, and the sets of inputs whose outputs differ.

    `reference` is the model that ONNX Runtime runs: the model itself, or one that is cut as the conversion is. OpenVINO
    computes in `precision` (empty: f32). `outputs` are those of the whole IR, with their differences. Where the IR
    `runs`, a piece that does not is not a difference. With `one_by_one` every tensor is computed alone, so that a crash
    has a place.
    """

    model: str
    reference: str
    settings: VerifyOptions
    sets: Sequence[tuple[str, Mapping[str, Any]]]
    precision: str
    outputs: Sequence[tuple[str, ArrayComparison]]
    runs: bool
    one_by_one: bool = False


@dataclass
class Deciding:
    """The verdicts of one verification. `source` is the model that ONNX Runtime runs, `plain` ran the IR."""

    path: Path
    source: Path
    settings: VerifyOptions
    notes: list[str]
    plain: IrRuns
    pieces: PieceFindings | None = None
    """The answer of the pieces, where they decide."""

    def decided(self, side: Side) -> Side:
        """The side with the verdict."""
        settings, ends_differ = self.settings, side.status == DIFFERS
        if settings.has_tolerance or self.plain.found.oracle == GIVEN or side.status not in (PASSED, DIFFERS):
            return side  # the ends decide alone
        if not ends_differ and not settings.layers:
            return side
        pieces = self.pieces = pieces_of(self.question(side))
        self.notes += [f"{layer}: the runtime has numbers where ONNX has NaN (ML505)" for layer in pieces.lost_nan]
        self.notes += [
            f"{name}: OpenVINO has the exact numbers, those of ONNX Runtime differ from them by up to {error:.2g}"
            for name, error in pieces.inexact.items()
        ]
        if pieces.difference is not None:
            message = "" if ends_differ else f"the outputs agree, and a piece does not: {pieces.difference.brief}"
            if settings.save is not None and pieces.piece is not None:
                folder, (model, inputs) = Path(settings.save), pieces.piece
                (folder / "piece.onnx").write_bytes(model)
                save(folder / "piece.npz", inputs.items())
                files = f"{folder / 'piece.onnx'} is the piece that differs, and {folder / 'piece.npz'} its inputs"
                self.notes.append(files)
            return replace(side, status=DIFFERS, message=message)
        if not ends_differ:
            self.notes += [f"not compared by itself: {each}" for each in pieces.open_ones]
            return side
        if pieces.undecided:
            first, *more = pieces.open_ones
            others = f" (and {len(more)} more)" if more else ""
            message = f"the outputs differ, and a piece cannot be compared: {first}{others}; {HINT}"
            return replace(side, status=NOT_DECIDED, message=message)
        return self._amplified(side, pieces)

    def question(self, side: Side, *, has_page: bool = False) -> Question:
        """The question about a side. A worker that started earlier may be in another folder."""
        sets, given, numbers = self.plain.found.sets, self.settings, self._numbers(side)
        outputs = [(row.output, row.result) for row in side.rows if row.set in numbers]
        paths = given.ir, given.dump if has_page else None
        ir, dump = (None if each is None else os.path.abspath(each) for each in paths)
        settings = replace(given, ir=ir, dump=dump, inputs=(), expected=())  # which `sets` are made of
        return Question(
            os.path.abspath(self.path), os.path.abspath(self.source), settings,
            [(sets[number].name, sets[number].feeds) for number in numbers],
            "" if side.name == F32 else side.name, outputs, runs=side.status in (PASSED, DIFFERS),
        )

    def _numbers(self, side: Side) -> list[int]:
        """The sets in which a side differs, else all that it ran, else all."""
        numbers = sorted({row.set for row in side.rows if not row.result} or {row.set for row in side.rows})
        return numbers or list(range(len(self.plain.found.sets)))

    def _amplified(self, side: Side, pieces: PieceFindings) -> Side:
        """The side, of which every piece agrees, after rows are separated that differ because the model amplifies
        rounding."""
        found = self.plain.found
        moves: dict[int, Mapping[str, float]] = {}
        for number in self._numbers(side):
            try:
                given = str(self.source), found.sets[number].feeds, pieces.inexact
                moves[number] = isolated(amplification, *given, limit=self.settings.limit)
            except IsolatedError as error:
                self.notes.append(f"whether the model amplifies rounding is not known: {brief(error)}")
        rows = []
        for row in side.rows:
            kind, moved = row.result.kind, moves.get(row.set, {})
            is_explained = kind == "shape" and math.isinf(moved.get(row.output, 0.0))
            if kind == "values":
                is_explained = bool(pieces.lost_nan) or explains(moved, row.output, row.result.largest_abs)
            if is_explained:
                expected = dict(found.sets[row.set].expected).get(row.output)
                row = replace(row, result=replace(row.result, kind=AMPLIFIED, message=_words(row, expected, pieces)))
            rows.append(row)
        status = PASSED if all(row.result for row in rows) else DIFFERS
        return replace(side, rows=tuple(rows), status=status)

    # -- reasons

    def explained(self, sides: Sequence[Side]) -> tuple[Any, Any]:
        """The first piece that differs and the pass that changed the numbers, if they are wanted and there are any.

        For a page all tensors are compared, whether outputs differ or not. The side is the one in f32, but if it
        passes, the one in the other precision.
        """
        settings, pieces = self.settings, self.pieces
        found: Any = None if pieces is None else pieces.difference
        own = [side for side in sides if not side.is_peer]
        side = own[-1] if own[0].passed else own[0]
        has_page = settings.dump is not None
        wanted = has_page or ((settings.layers or settings.passes) and not side.passed)
        if not wanted or side.status == NOT_RESHAPABLE:
            return found, None
        if settings.layers and (found is None or has_page):
            if pieces is None or side.name != F32 or has_page:
                pieces = pieces_of(self.question(side, has_page=has_page))
            found = pieces.answer
        if side.passed or side.name != F32:  # passes change the numbers in f32 too
            return None if side.passed and found == NOT_REPRODUCED else found, None
        return found, self._passes(side) if settings.passes or is_of_runtime(found) else None

    def _passes(self, side: Side) -> PassDifference | str:
        """The pass that changed the numbers; a sentence if there is none."""
        settings = replace(self.settings, save=None, dump=None)
        with worker_pool(settings) as pool:
            plain = IrRuns(self.plain.found, settings, [], pool, self._numbers(side))
            found = changing_pass(str(self.path), settings.conversion, plain)
        return found or (CONVERTED_AGAIN if self.settings.ir is None else CONVERTED_RIGHT)


def is_of_runtime(layers: Any) -> bool:
    """Whether the answer of `--layers` is that every tensor is right when it is computed alone."""
    return layers == NOT_REPRODUCED or getattr(layers, "vanishes", False)


def _words(row: Row, expected: Any, pieces: PieceFindings) -> str:
    """The difference of an output whose pieces all agree."""
    if row.result.kind == "shape":
        return f"agrees in every piece; rounding alone changes the shape: {row.result.message}"
    scale = largest_number(expected)
    relative = row.result.largest_abs / scale if scale else 0.0
    power = math.ceil(math.log10(relative / UNIT)) if relative > UNIT else 0
    why = f"the model itself amplifies rounding by 10^{power}"
    if pieces.inexact:
        why = f"ONNX Runtime is inexact at {', '.join(pieces.inexact)}"
    return f"agrees in every piece; {why}: outputs differ by {row.result.largest_abs:.3g}"


# -- the pieces


def pieces_of(question: Question) -> PieceFindings:
    """Compare the pieces, in a worker process, within the limit of the settings."""
    with Pool(f"{__name__}:compared_sets", limit=question.settings.limit) as pool:
        outcome = pool.call(question)
        if outcome.status == CRASH:  # once more, so that the stage names the tensor
            outcome = pool.call(replace(question, one_by_one=True))
        if not outcome.ok:
            at = f" at the stage {outcome.stage!r}" if outcome.stage else ""
            return PieceFindings(undecided={"": f"{outcome.message}{at}"})
        found: PieceFindings = outcome.value
        first, settings = found.difference, question.settings
        if first is not None and first.kind == FAILED and question.runs:
            undecided = {**found.undecided, first.path: first.message}
            return replace(found, difference=None, undecided=undecided, piece=None)
        if first is not None and first.steps > 1 and settings.ir is None and settings.dump is None:
            # In a conversion with one step in each iteration, the difference is in a step.
            options = settings.conversion
            config = PassConfig() if options.config is None else copy.deepcopy(options.config)
            config.disable("StepsPerIteration")
            single = replace(settings, options=replace(options, config=config))
            apart: PieceFindings | None = pool.call(replace(question, settings=single)).value
            if apart is not None and apart.difference is not None:
                found = replace(found, difference=replace(apart.difference, steps=first.steps, apart=True))
    return found


def compared_sets(question: Question) -> PieceFindings:
    """Compare the sets in turn, in the worker, until one shows a tensor that differs."""
    history, settings = History(), question.settings
    dumper = None if settings.dump is None else Dumper(settings.dump)
    heat = None if dumper is None else Heat()
    with warnings.catch_warnings(action="ignore"):
        graph = _graph(question, history, dumper)
    found = PieceFindings()
    properties = properties_of(question.precision, "CPU") if question.precision else None
    try:
        for name, feeds in question.sets:
            if heat is not None:
                heat.sets.append(name)
                heat.precision = question.precision
            compared(
                question.reference, graph, feeds, rtol=settings.rtol, atol=settings.atol, memory=settings.memory,
                history=history, one_by_one=question.one_by_one, heat=heat, properties=properties,
                with_piece=settings.save is not None, samples=not settings.layers, pieces=found,
            )
            if found.difference is not None:
                break
    finally:
        if dumper is not None and heat is not None:
            write_page(dumper, heat, graph, question.outputs)
    if found.difference is not None:
        found.difference = replace(found.difference, precision=question.precision)
    return found


def _graph(question: Question, history: History, dumper: Dumper | None) -> Graph:
    """The graph of the IR, which the page shows: converted, or read and compared with a conversion."""
    options, ir = question.settings.conversion, question.settings.ir
    if ir is None:
        observers: list[Observer] = [history] if dumper is None else [history, dumper]
        graph = Conversion(options, observers).run(question.model)
        return compressed(graph, observers) if options.compress_to_fp16 else graph
    graph = read_model(ir).graph
    known = options if options.config is not None else None  # else those that the IR records
    assign_origins(graph, question.model, known, [history], options.allowed_folders)
    if dumper is not None:
        dumper.show(graph, Path(ir).name)
    return graph


def write_page(dumper: Dumper, heat: Heat, graph: Graph, outputs: Iterable[tuple[str, ArrayComparison]]) -> None:
    """Write the page again, with the differences of the tensors so far, and of the outputs of the whole IR."""
    agree = all(found for found, _ in heat.tensors.values())
    results = {name: result for result in graph.results for name in (*result.output_names, *result.value.names)}
    for name, found in outputs:
        if name not in results:
            continue
        heat.add(results[name].value, ((), name), found)
        if agree and found.multiple > 1:
            heat.notes[NOT_REPRODUCED] = None
    dumper.colour(heat.as_json, heat.notes)
