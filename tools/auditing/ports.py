"""Compares our types of every port with those that the runtime infers when it reads the same file.

`audit` runs in a worker: it converts a model, writes it, has OpenVINO read the file, pairs the layers of all graphs by
name, and puts every output port (an input port holds what the output port feeding it holds) into one class:

    equal           the same element type, rank and bounds of every dimension
    more precise    our bounds lie within the runtime's, or our dimension is an expression of the sizes of the inputs
                    and the runtime's has bounds only
    less precise    the runtime's bounds exclude values that ours allow
    contradiction   a different element type or rank, disjoint bounds, or a missing layer

If there are inputs to run the model on, every value of the main graph becomes an output, and its inferred type (rank,
bounds, and equal symbols for equal sizes) is compared with its shape in each run. So are the runtime's own bounds where
they are tighter. A loop without iterations and a value that is not computed have sizes of 0, which are accepted.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mo_loop.graph.dimension import Dim, Dimension, Symbol, high, low
from mo_loop.graph.shape import Shape, show
from mo_loop.support.workers import report_stage

EQUAL, MORE, LESS, CONTRADICTION = "equal", "more precise", "less precise", "contradiction"
CLASSES = (EQUAL, MORE, LESS, CONTRADICTION)

INPUT = "an input"

UNLIMITED = 2**31 - 2
"""Upper bounds from here on come from the width of the runtime's counters, not from the tensor."""


@dataclass
class Task:
    """A model and the inputs to run it on."""

    source: str
    name: str
    model: bytes | str
    feeds: list[dict[str, Any]]


@dataclass
class Report:
    """The results of one model.

    `ports` counts by (operation, class), `notes` contains (operation, class, text) of all ports that are not equal.
    `confirmed` counts the ports of the main graph compared with runs, `verified` the more precise ones among them;
    `untrue` are types that a run contradicted; `overclaimed` are less precise ports for which a run contradicted the
    runtime's bounds; `unverified` is the reason why the model did not run.
    """

    ports: Counter[tuple[str, str]] = field(default_factory=Counter)
    notes: list[tuple[str, str, str]] = field(default_factory=list)
    in_bodies: int = 0
    verified: int = 0
    confirmed: int = 0
    untrue: list[str] = field(default_factory=list)
    overclaimed: set[tuple[str, int]] = field(default_factory=set)
    unverified: str = ""
    refused: str = ""


def audit(task: Task) -> Report:
    """The results of one model; only `refused` if it does not convert."""
    import mo_loop
    from mo_loop.compare.execution.runtime import read_ir
    from mo_loop.errors import MoLoopError

    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        report_stage("convert")
        try:
            model = mo_loop.convert_model(task.model)
            mo_loop.save_model(model, path)
        except MoLoopError as error:
            report.refused = f"{error.code}: {error.message}"
            return report
        report_stage("read")
        runtime = read_ir(path)
        report_stage("compare")
        classes = _compare(model.graph, runtime, report)
        if task.feeds:
            report_stage("run")
            _verify(model.graph, runtime, task.feeds, classes, report)
    return report


# -- statically


def _compare(graph: Any, model: Any, report: Report) -> dict[tuple[str, int], str]:
    """Fill in `ports` and `notes`; returns the class of each port of the main graph by layer name and output number."""
    classes = {}
    pending = [(graph, model, "")]
    while pending:
        ours, theirs, path = pending.pop()
        layers = {each.get_friendly_name(): each for each in theirs.get_ops()}
        for name, node in _named(ours):
            layer = layers.get(name)
            if layer is None and node.outputs and not node.is_used:
                continue  # the runtime drops nodes that reach no Result
            kind = f"{node.type}-{node.opset}"
            for output in node.outputs:
                label, text = _classified(output.type, layer, output.index)
                report.ports[kind, label] += 1
                report.in_bodies += bool(path)
                if label is not EQUAL:
                    report.notes.append((kind, label, f"{path}{name}:{output.index} {text}"))
                if not path:
                    classes[name, output.index] = label
            bodies = () if layer is None else _bodies(layer, len(node.bodies))
            for number, (body, inner) in enumerate(zip(node.bodies, bodies, strict=False)):
                pending.append((body, inner, f"{path}{name}/{number}/"))
    return classes


def _named(graph: Any) -> Iterator[tuple[str, Any]]:
    from mo_loop.ir.xml import layer_names, layer_order

    order = layer_order(graph)
    return zip(layer_names(order), order, strict=True)


def _bodies(layer: Any, count: int) -> list[Any]:
    if count == 2:
        return [layer.get_function(0), layer.get_function(1)]
    return [layer.get_function()] if count else []


def _classified(ours: Any, layer: Any, index: int) -> tuple[str, str]:
    if layer is None or index >= layer.get_output_size():
        return CONTRADICTION, "is not there"
    port = layer.output(index)
    dtype, shape = port.get_element_type().get_type_name(), port.get_partial_shape()
    if dtype != ours.dtype.name:
        return CONTRADICTION, f"{ours} is {dtype}{shape}"
    return classified(ours.shape, _bounds(shape)), f"ours {ours}, runtime {shape}"


def _bounds(shape: Any) -> list[tuple[int, int | None]] | None:
    if shape.rank.is_dynamic:
        return None
    found = []
    for dim in shape:
        top = dim.get_max_length()
        found.append((dim.get_min_length(), None if top < 0 or top >= UNLIMITED else top))
    return found


def classified(ours: Shape, theirs: Sequence[tuple[int, int | None]] | None) -> str:
    """The class of a port, from our shape and the runtime's bounds of every dimension."""
    if ours is None or theirs is None:
        return EQUAL if ours is None and theirs is None else LESS if ours is None else MORE
    if len(ours) != len(theirs):
        return CONTRADICTION
    classes = {_dim_class(dim, bounds) for dim, bounds in zip(ours, theirs, strict=True)}
    return next((each for each in (CONTRADICTION, LESS, MORE) if each in classes), EQUAL)


def _dim_class(dim: Dimension, theirs: tuple[int, int | None]) -> str:
    infinite = 2**63
    (a, b), (c, d) = ((lo, infinite if hi is None or hi >= UNLIMITED else hi) for lo, hi in (_limits(dim), theirs))
    if (a, b) == (c, d):
        return EQUAL
    if b < c or d < a:
        return CONTRADICTION
    is_expression = isinstance(dim, Dim) and not dim.has_fresh() and c < d
    return MORE if is_expression or (c <= a and b <= d) else LESS


def _limits(dim: Dimension) -> tuple[int, int | None]:
    return low(dim), high(dim)


# -- at run time


def _verify(graph: Any, model: Any, feeds: Sequence[Any], classes: dict[tuple[str, int], str], report: Report) -> None:
    from mo_loop.compare.execution.runtime import compile_model

    layers = {each.get_friendly_name(): each for each in model.get_ops()}
    watched = {
        (name, output.index): output.type
        for name, node in _named(graph)
        for output in node.outputs
        if node.type not in ("Const", "Parameter") and name in layers
    }
    inputs = [parameter.outputs[0].type for parameter in graph.parameters]
    try:
        model.add_outputs([layers[name].output(index) for name, index in watched])
        sources = [result.input_value(0) for result in model.get_results()]
        bounds = {key: _bounds(layers[key[0]].output(key[1]).get_partial_shape()) for key in watched}
        places = {(each.get_node().get_friendly_name(), each.get_index()): n for n, each in enumerate(sources)}
        for number, each in enumerate(feeds):
            compiled = compile_model(model)  # again: outputs of a loop without iterations keep old values
            shapes = [found.shape for _, found in compiled.run(each)]
            statement = Statement()
            for type_, array in zip(inputs, compiled._bind(each), strict=True):
                statement.add(INPUT, type_.shape, getattr(array, "shape", ()))
            for (name, index), type_ in watched.items():
                shape = shapes[places[name, index]]
                statement.add(f"{name}:{index}", type_.shape, shape)
                if classes[name, index] is LESS and not _is_within(shape, bounds[name, index]):
                    report.overclaimed.add((name, index))
            report.untrue += [f"inference {number}: {text}" for text in statement.untrue()]
    except (RuntimeError, KeyError) as error:
        report.unverified = str(error).strip().splitlines()[-1][:200]
        return
    report.confirmed = len(watched)
    report.verified = sum(classes[key] is MORE for key in watched)


def _is_within(shape: Sequence[int], bounds: list[tuple[int, int | None]] | None) -> bool:
    if bounds is None:
        return True
    return len(shape) == len(bounds) and all(
        lo <= size and (hi is None or size <= hi) for size, (lo, hi) in zip(shape, bounds, strict=True)
    )


class Statement:
    """Inferred and actual shapes of one run; a symbol stands for the same size everywhere."""

    def __init__(self) -> None:
        self._pairs: list[tuple[str, Shape, tuple[int, ...]]] = []
        self._sizes: dict[Symbol, int] = {}

    def add(self, what: str, said: Shape, found: Sequence[int]) -> None:
        """Add the value `what` with the inferred shape `said` and the actual shape `found`."""
        self._pairs.append((what, said, tuple(found)))
        if said is None or len(said) != len(found):
            return
        for dim, size in zip(said, found, strict=True):
            symbol = dim.symbol if isinstance(dim, Dim) else None
            if symbol is not None and (size or what == INPUT):
                self._sizes.setdefault(symbol, size)

    def untrue(self) -> list[str]:
        """The values whose actual shape contradicts the inferred one."""
        return [
            f"{what} is {list(found)}, said to be {show(said)}"
            for what, said, found in self._pairs
            if said is not None
            and (len(said) != len(found) or not all(map(self._holds, said, found)))
            and not self._is_left_over(said, found)
        ]

    def _is_left_over(self, said: tuple[Dimension, ...], found: tuple[int, ...]) -> bool:
        """Whether all differences are sizes of 0."""
        return len(said) == len(found) and all(
            size == 0 or self._holds(dim, size) for dim, size in zip(said, found, strict=True)
        )

    def _holds(self, dim: Dimension, size: int) -> bool:
        top = high(dim)
        if size < low(dim) or (top is not None and size > top):
            return False
        if isinstance(dim, int) or any(symbol not in self._sizes for symbol in dim.symbols()):
            return True
        return size == dim.const + sum(factor * self._sizes[symbol] for symbol, factor in dim.terms)
