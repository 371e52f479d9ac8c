"""LayerDifference: the first tensor of an ONNX model that differs in its IR, as data and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from mo_loop.compare.results.array_comparison import ArrayComparison, compare
from mo_loop.printable import printable

COUNT, BRANCH, FAILED = "iterations", "branch", "failed"
OUTPUT, BODY_INPUT, MODEL_OUTPUT = "output", "body input", "model output"

AROUND = 3
"""The elements shown before and after the worst one."""


@dataclass(frozen=True)
class ElementWindow:
    """The elements around one, along the last axis: `start` is the index of the first."""

    start: tuple[int, ...]
    expected: tuple[Any, ...]
    actual: tuple[Any, ...]


@dataclass(frozen=True)
class Elements:
    """The difference of two arrays of one shape. `index` is the element that differs most."""

    index: tuple[int, ...]
    expected: Any
    actual: Any
    count: int
    size: int
    largest_abs: float
    largest_rel: float
    window: ElementWindow


@dataclass(frozen=True)
class LayerDifference:
    """The first tensor that differs, in the order of the ONNX model.

    `kind` is one of "values", "shape", "type", "iterations" (a loop ends earlier or later), "branch" (an If takes the
    other one) and "failed" (the layers cannot be run). `tensor` is an "output" of the node, a "body input" that it
    gives to its body, or a "model output": this is its `role`. `iterations` holds the path and the iteration of every
    enclosing loop, outermost first. `between` are the nodes before this one whose tensors could not be compared: the
    difference may come from any of them. `vanishes` means that the layer gives the right numbers when it is computed
    apart from its neighbours. `limited` are earlier tensors of 64-bit integers whose numbers beyond 32 bits OpenVINO
    limits. `precision` is that of OpenVINO, empty for f32. `steps` is above 1 if each iteration of the loop in the IR
    has that many steps: the loop was compared as a whole or, with `apart`, another conversion of the model, with one
    step in each iteration. `became` are the layers made for the node, `passes` those that made or removed them.
    `compared` and `not_compared` count tensors, the latter by the reason.
    """

    kind: str
    message: str
    scope: tuple[str, ...]
    node: str
    operator: str
    tensor: str
    role: str = OUTPUT
    iterations: tuple[tuple[str, int], ...] = ()
    elements: Elements | None = None
    agreeing: tuple[str, ...] = ()
    differing_weights: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    became: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    vanishes: bool = False
    limited: tuple[str, ...] = ()
    precision: str = ""
    steps: int = 1
    apart: bool = False
    compared: int = 0
    not_compared: Mapping[str, int] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The path of the ONNX node."""
        return "/".join((*self.scope, self.node))

    def as_json(self) -> dict[str, Any]:
        """All fields, in types that JSON has."""
        found = {key: _plain(value) for key, value in asdict(self).items()}
        found["iterations"] = [{"loop": path, "iteration": number} for path, number in self.iterations]
        return {**found, "path": self.path}

    @property
    def brief(self) -> str:
        """The place and the size of the difference."""
        return f"{self._node}{self._when()}: {self.message}"

    def __str__(self) -> str:
        agreeing, weights = self.agreeing, self.differing_weights
        loop = f"Each iteration of the loop in the IR has {self.steps} steps"
        notes = [
            (self.vanishes, "Computed apart from its neighbours, the layer gives the right numbers: the runtime fuses "
             "them, or they share memory."),
            (agreeing, f"Its input{_s(agreeing)} {_listed(agreeing)} before it agree{'s' * (len(agreeing) == 1)}."),
            (weights, f"The IR has other values for the weight{_s(weights)} {_listed(weights)}."),
            (self.between, f"The tensors before it, of {_listed(self.between)}, have no counterpart in the IR: the "
             "difference may come from there."),
            (self.limited, f"Before it, OpenVINO limits integers of {_listed(self.limited)} to 32 bits: the difference "
             "may come from there."),
            (self.apart, f"{loop}: this is the first difference of a conversion with one step in each iteration."),
            (self.steps > 1 and not self.apart, f"{loop}, so the loop is compared as a whole. Convert with "
             "--disable-pass StepsPerIteration to compare it step by step."),
            (self.became, f"The IR has for this node: {_listed(self.became)}."),
            (self.passes, f"Passes that made, replaced or removed layers of this node: {_listed(self.passes)}."),
        ]  # fmt: skip
        told = [f"{self.message}.", *self._around(), *(text for holds, text in notes if holds), self._counts()]
        return "\n".join(map(printable, [self._first_line(), *(f"  {line}" for line in told)]))

    def _first_line(self) -> str:
        node = self._node
        what = {
            OUTPUT: f"{self.tensor!r}, an output of {node}",
            BODY_INPUT: f"{self.tensor!r}, which {node} gives to its body",
            MODEL_OUTPUT: f"the output {self.tensor!r} of the model, made by {node}",
        }[self.role]
        the = f"In {self.precision}, the" if self.precision else "The"
        if self.kind in (COUNT, BRANCH):
            return f"{the} first difference is in {node}{self._when()}."
        if self.kind == FAILED:
            return f"{the} first tensor that the IR cannot compute is {what}{self._when()}."
        return f"{the} first tensor that differs is {what}{self._when()}."

    @property
    def _node(self) -> str:
        return f"the node {self.path} ({self.operator})" if self.node else "the model"

    def _when(self) -> str:
        parts = ", ".join(f"iteration {number} of {path}" for path, number in self.iterations)
        return f", in {parts} (counted from 0)" if parts else ""

    def _around(self) -> list[str]:
        if self.elements is None or len(self.elements.window.expected) < 2:
            return []
        window = self.elements.window
        place = ", ".join(map(str, window.start))
        expected, actual = (", ".join(map(number, side)) for side in (window.expected, window.actual))
        first = f"From element [{place}] on, ONNX Runtime has {expected}"
        return [first, f"{'':{len(place) + 17}}and OpenVINO has {actual}"]

    def _counts(self) -> str:
        text = f"{self.compared} tensor{'s were' if self.compared != 1 else ' was'} compared up to here"
        reasons = "; ".join(f"{count} {reason}" for reason, count in self.not_compared.items())
        return f"{text}, {sum(self.not_compared.values())} could not be: {reasons}." if reasons else f"{text}."


def elements_of(expected: Any, actual: Any, rtol: float | None, atol: float | None) -> Elements:
    """Return the difference of two arrays of one shape."""
    sides = [np.asarray(expected), np.asarray(actual)]
    found = compare(sides[0], sides[1], rtol=rtol, atol=atol, dtype=False)
    index = found.worst or ()
    low = max(index[-1] - AROUND, 0) if index else 0
    rows = [side[index[:-1]][low : index[-1] + AROUND + 1] if index else side.reshape(1) for side in sides]
    window = ElementWindow((*index[:-1], low) if index else (), *(tuple(map(_item, row)) for row in rows))
    left, right = (_item(side[index]) for side in sides)
    return Elements(index, left, right, found.count, found.size, found.largest_abs, found.largest_rel, window)


def _item(value: Any) -> Any:
    """A Python number or text."""
    item = value.item() if hasattr(value, "item") else value
    if isinstance(item, bool | int | str | float):
        return item
    return str(item) if isinstance(item, complex | bytes) else float(item)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def number(value: Any) -> str:
    """A number in a message."""
    return f"{value:.7g}" if isinstance(value, float) else repr(value) if isinstance(value, str) else str(value)


def _listed(items: tuple[str, ...], most: int = 8) -> str:
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return f"{', '.join(items[:most])}{more}"


def _s(items: tuple[str, ...]) -> str:
    """The ending of the plural."""
    return "" if len(items) == 1 else "s"


def is_overwritten(actual: Any) -> bool:
    """Whether an array of booleans has bytes other than 0 and 1: a neighbouring layer wrote into its memory."""
    is_bool = isinstance(actual, np.ndarray) and actual.dtype == np.bool_
    return is_bool and bool((np.ascontiguousarray(actual).view(np.uint8) > 1).any())


def message(result: ArrayComparison, elements: Elements | None) -> str:
    """The difference of two arrays, in words."""
    if elements is None:
        return f"OpenVINO has {result.message.replace(' instead of ', ', ONNX Runtime has ')}"
    place = ", ".join(map(str, elements.index))
    return (
        f"{elements.count} of {elements.size} elements differ, the largest difference is {elements.largest_abs:.3g} "
        f"(relative {elements.largest_rel:.3g}); at [{place}] ONNX Runtime has {number(elements.expected)} "
        f"and OpenVINO has {number(elements.actual)}"
    )
