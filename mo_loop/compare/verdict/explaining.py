"""Whether the pieces of an IR agree with those of the ONNX model, and which pass changed the numbers.

    question = Question("model.onnx", "model.onnx", None, options, [("set 0", feeds)], settings)
    answer = pieces_of(question, limit, runs=True)
    answer.status                                       # "agrees", "differs" or "not decided"

With a folder, all tensors are compared, and a page in it shows how far each is from that of the ONNX model.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mo_loop.api import compressed, read_model
from mo_loop.compare.execution.isolated import IsolatedError
from mo_loop.compare.layers import Heat, History, LayerDifference, PieceFindings, assign_origins, compared
from mo_loop.compare.layers.heat import Distance
from mo_loop.compare.layers.layer_difference import FAILED
from mo_loop.compare.results.verify_settings import VerifyOptions, properties_of
from mo_loop.compare.verdict.passes import PassDifference, changing_pass
from mo_loop.conversion import Conversion
from mo_loop.graph import Graph
from mo_loop.look.dump.dumper import Dumper
from mo_loop.options import ConvertOptions
from mo_loop.support.workers import CRASH, Pool
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.manager import Observer

VANISHES = (
    "No tensor differs when inner tensors become outputs: the difference comes from work of the runtime on the whole "
    "model, such as fusing layers or computing in place."
)  # fmt: skip
CONVERTED_RIGHT = "The conversion of the model gives the right numbers: the IR that was given is another one."
CONVERTED_AGAIN = (
    "The IR of another conversion of the model gives the right numbers: the difference does not show every time."
)
UNKNOWN = "the pieces are not compared: "


@dataclass(frozen=True)
class Question:
    """A model, its IR or None, the options of the conversion, and the sets of inputs whose outputs differ.

    `reference` is the model that ONNX Runtime runs: the model itself, or one that is cut as the conversion is. `dump`
    is a folder for the page. OpenVINO computes in `precision` (empty: f32). `outputs` are those of the whole IR, with
    their differences. With `one_by_one` every tensor is computed alone, so that a crash has a place.
    """

    model: str
    reference: str
    ir: str | None
    options: ConvertOptions
    sets: Sequence[tuple[str, Mapping[str, Any]]]
    settings: VerifyOptions
    dump: str | None = None
    precision: str = ""
    outputs: Sequence[tuple[str, Distance]] = ()
    one_by_one: bool = False


@dataclass(frozen=True)
class Pieces:
    """The verdict of the pieces. `difference` is the first piece that differs; `undecided` are sentences about those
    that could not be compared; `lost_nan` are layers in which the runtime has numbers for NaN; `count` tensors were
    compared. `piece` is the model of the piece that differs, with its inputs."""

    difference: LayerDifference | None = None
    undecided: tuple[str, ...] = ()
    lost_nan: tuple[str, ...] = ()
    count: int = 0
    piece: tuple[bytes, Mapping[str, Any]] | None = None

    @property
    def status(self) -> str:
        """The verdict in a word."""
        return "differs" if self.difference is not None else "not decided" if self.undecided else "agrees"

    def as_json(self) -> dict[str, Any]:
        """All but the difference, which the report has as `layers`."""
        return {"status": self.status, "undecided": list(self.undecided), "lost_nan": list(self.lost_nan),
                "compared": self.count}  # fmt: skip


def pieces_of(question: Question, limit: float, *, runs: bool) -> Pieces:
    """Compare the pieces, in a worker process, within `limit` seconds.

    With `runs` the whole IR runs, so that a piece that does not is not a difference.
    """
    with Pool(f"{__name__}:compared_sets", limit=limit) as pool:
        outcome = pool.call(question)
        if outcome.status == CRASH:  # once more, so that the stage names the tensor
            outcome = pool.call(replace(question, one_by_one=True))
        if not outcome.ok:
            at = f" at the stage {outcome.stage!r}" if outcome.stage else ""
            return Pieces(undecided=(f"{outcome.message}{at}",))
        found: PieceFindings = outcome.value
        undecided = tuple(f"{name}: {why}" for name, why in found.undecided.items())
        first = found.difference
        if first is not None and first.kind == FAILED and runs:
            return Pieces(None, (*undecided, f"{first.path}: {first.message}"), found.lost_nan, found.count)
        if first is not None and first.steps > 1 and question.ir is None and question.dump is None:
            # In a conversion with one step in each iteration, the difference is in a step.
            apart: PieceFindings | None = pool.call(replace(question, options=_single_steps(question.options))).value
            if apart is not None and apart.difference is not None:
                first = replace(apart.difference, steps=first.steps, apart=True)
    return Pieces(first, undecided, found.lost_nan, found.count, found.piece)


def _single_steps(options: ConvertOptions) -> ConvertOptions:
    config = PassConfig() if options.config is None else copy.deepcopy(options.config)
    config.disable("StepsPerIteration")
    return replace(options, config=config)


def compared_sets(question: Question) -> PieceFindings:
    """Compare the sets in turn, in the worker, until one shows a tensor that differs."""
    history = History()
    page = None if question.dump is None else HeatPage(question.dump, question.precision)
    with warnings.catch_warnings(action="ignore"):
        graph = _graph(question, history, page)
    total, settings = PieceFindings(), question.settings
    properties = properties_of(question.precision, "CPU") if question.precision else None
    try:
        for name, feeds in question.sets:
            if page is not None:
                page.heat.sets.append(name)
            found = compared(
                question.reference, graph, feeds, rtol=settings.rtol, atol=settings.atol, memory=settings.memory,
                history=history, one_by_one=question.one_by_one, heat=None if page is None else page.heat,
                properties=properties, with_piece=settings.save is not None,
            )  # fmt: skip
            first = found.difference
            total = PieceFindings(
                None if first is None else replace(first, precision=question.precision),
                {**total.undecided, **found.undecided}, tuple(dict.fromkeys((*total.lost_nan, *found.lost_nan))),
                max(total.count, found.count), found.piece,
            )  # fmt: skip
            if first is not None:
                break
    finally:
        if page is not None:
            page.add_outputs(graph, question.outputs, VANISHES)
            page.write()
    return total


def _graph(question: Question, history: History, page: HeatPage | None) -> Graph:
    """The graph of the IR, which the page shows: converted, or read and compared with a conversion."""
    if question.ir is None:
        observers: list[Observer] = [history] if page is None else [history, page.dumper]
        graph = Conversion(question.options, observers).run(question.model)
        return compressed(graph, observers) if question.options.compress_to_fp16 else graph
    graph = read_model(question.ir).graph
    known = question.options if question.options.config is not None else None  # else those that the IR records
    assign_origins(graph, question.model, known, [history], question.options.allowed_folders)
    if page is not None:
        page.dumper.show(graph, Path(question.ir).name)
    return graph


def passes_of(question: Question) -> PassDifference | str:
    """The pass that changed the numbers; a sentence if there is none, or it cannot be found."""
    try:
        found = changing_pass(
            question.model, question.options, [feeds for _, feeds in question.sets], settings=question.settings,
            reference=question.reference,
        )  # fmt: skip
    except IsolatedError as error:
        return f"{UNKNOWN}{str(error).splitlines()[0]}"
    if found is not None:
        return found
    return CONVERTED_AGAIN if question.ir is None else CONVERTED_RIGHT


class HeatPage:
    """The page in a folder, with the files of a dump."""

    def __init__(self, folder: str | os.PathLike[str], precision: str = "") -> None:
        self.dumper = Dumper(folder)
        self.heat = Heat()
        self.heat.precision = precision

    def add_outputs(self, graph: Graph, outputs: Iterable[tuple[str, Distance]], vanishes: str) -> None:
        """Add the differences of the outputs of the whole IR; `vanishes` is noted if no other tensor differs."""
        agree = all(found.worst <= 1 for found, _ in self.heat.tensors.values())
        results = {name: result for result in graph.results for name in (*result.output_names, *result.value.names)}
        for name, found in outputs:
            if name not in results:
                continue
            self.heat.add(results[name].value, ((), name), found)
            if agree and found.worst > 1:
                self.heat.notes[vanishes] = None

    def write(self) -> None:
        """Write the differences so far."""
        self.dumper.colour(self.heat.as_json, self.heat.notes)
