"""Why outputs differ: the first tensor, and the pass. For a report that found a difference.

    question = Question("model.onnx", "model.onnx", None, options, names, sets)
    answer = first_tensor(question)                                             # in a worker process

With a folder, all tensors are compared, and a page in it shows how far each is from that of the ONNX model.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mo_loop.api import compressed, read_model
from mo_loop.compare.execution.isolated import IsolatedError
from mo_loop.compare.layers import History, LayerDifference, assign_origins, first_difference
from mo_loop.compare.layers.distance import Distance
from mo_loop.compare.results.verify_settings import Sizes
from mo_loop.compare.verdict.heat_page import HeatPage
from mo_loop.compare.verdict.passes import PassDifference, changing_pass
from mo_loop.conversion import Conversion
from mo_loop.graph import Graph
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
UNKNOWN = "The cause is not known: "


@dataclass(frozen=True)
class Question:
    """A model, its IR or None, the options of the conversion, and the sets of inputs whose outputs differ.

    `names` are those of the sets. `reference` is the model that ONNX Runtime runs: the model itself, or one that is cut
    as the conversion is. With `one_by_one` every tensor is computed alone, so that a crash has a place. `dump` is a
    folder for the page. OpenVINO computes in `precision` (empty: f32), with `properties`. `outputs` are those of the
    whole IR, with their differences, `sizes` those that inputs of the IR are given.
    """

    model: str
    reference: str
    ir: str | None
    options: ConvertOptions
    names: Sequence[str]
    sets: Sequence[Mapping[str, Any]]
    rtol: float | None = None
    atol: float | None = None
    memory: int | None = None
    one_by_one: bool = False
    dump: str | None = None
    precision: str = ""
    properties: Mapping[str, Any] | None = None
    outputs: Sequence[tuple[str, Distance]] = ()
    sizes: Sizes | None = None


def layers_of(question: Question, limit: float) -> LayerDifference | str:
    """The first tensor that differs, found in a worker process within `limit` seconds; a sentence if there is none."""
    with Pool(f"{__name__}:first_tensor", limit=limit) as pool:
        outcome = pool.call(question)
        if outcome.status == CRASH:  # once more, so that the stage names the tensor
            outcome = pool.call(replace(question, one_by_one=True))
        if not outcome.ok:
            at = f" at the stage {outcome.stage!r}" if outcome.stage else ""
            return f"{UNKNOWN}{outcome.message}{at}."
        found: LayerDifference | None = outcome.value
        if found is not None and found.steps > 1 and question.ir is None and question.dump is None:
            # In a conversion with one step in each iteration, the difference is in a step.
            apart: LayerDifference | None = pool.call(replace(question, options=_single_steps(question.options))).value
            found = found if apart is None else replace(apart, steps=found.steps, apart=True)
    return VANISHES if found is None else found


def _single_steps(options: ConvertOptions) -> ConvertOptions:
    config = PassConfig() if options.config is None else copy.deepcopy(options.config)
    config.disable("StepsPerIteration")
    return replace(options, config=config)


def first_tensor(question: Question) -> LayerDifference | None:
    """Compare the sets in turn, in the worker, until one shows a tensor that differs."""
    history = History()
    page = None if question.dump is None else HeatPage(question.dump, question.precision)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = _graph(question, history, page)
    try:
        for name, feeds in zip(question.names, question.sets, strict=True):
            if page is not None:
                page.heat.sets.append(name)
            found = first_difference(
                question.reference, graph, feeds, rtol=question.rtol, atol=question.atol, memory=question.memory,
                history=history, one_by_one=question.one_by_one, heat=None if page is None else page.heat,
                properties=question.properties,
            )  # fmt: skip
            if found is not None:
                return replace(found, precision=question.precision)
    finally:
        if page is not None:
            page.add_outputs(graph, question.outputs, VANISHES)
            page.write()
    return None


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
            question.model, question.options, question.sets, rtol=question.rtol, atol=question.atol,
            reference=question.reference, sizes=question.sizes,
        )  # fmt: skip
    except IsolatedError as error:
        return f"{UNKNOWN}{str(error).splitlines()[0]}"
    if found is not None:
        return found
    return CONVERTED_AGAIN if question.ir is None else CONVERTED_RIGHT
