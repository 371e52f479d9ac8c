"""LayerDifference: the first tensor of an ONNX model that differs in its IR, as data and in words; Heat: how far every
compared tensor is from that of the ONNX model, and how this grows in loops.

    heat = Heat()
    first_difference(model, graph, feeds, heat=heat)        # continues past the first difference
    heat.as_json(describer.id)                              # the page's data, with the ids of nodes there

Of all comparisons of a tensor the worst is kept. Each loop has a curve for each tensor of its body: the worst
difference by iteration. A loop that runs several times has the worst of its runs; above POINTS iterations
neighbours share a point, which is the worst of them.
"""

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from mo_loop.compare.layers.ir_side import Key
from mo_loop.compare.results.array_comparison import BEYOND, ArrayComparison, compare, json_ready
from mo_loop.graph import Node, Value
from mo_loop.ops.base import Constant
from mo_loop.printable import first_few, printable

COUNT, BRANCH, FAILED = "iterations", "branch", "failed"
OUTPUT, BODY_INPUT, MODEL_OUTPUT = "output", "body input", "model output"

_listed = partial(first_few, most=8)

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
        iterations = [{"loop": path, "iteration": number} for path, number in self.iterations]
        found: dict[str, Any] = json_ready(asdict(self))
        return {**found, "iterations": iterations, "path": self.path}

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
            (agreeing, f"Its input{'s' * (len(agreeing) > 1)} {_listed(agreeing)} before it "
             f"agree{'s' * (len(agreeing) == 1)}."),
            (weights, f"The IR has other values for the weight{'s' * (len(weights) > 1)} {_listed(weights)}."),
            (self.between, f"The tensors before it, of {_listed(self.between)}, have no counterpart in the IR: the "
             "difference may come from there."),
            (self.limited, f"Before it, OpenVINO limits integers of {_listed(self.limited)} to 32 bits: the difference "
             "may come from there."),
            (self.apart, f"{loop}: this is the first difference of a conversion with one step in each iteration."),
            (self.steps > 1 and not self.apart, f"{loop}, so the loop is compared as a whole. Convert with "
             "--disable-pass StepsPerIteration to compare it step by step."),
            (self.became, f"The IR has for this node: {_listed(self.became)}."),
            (self.passes, f"Passes that made, replaced or removed layers of this node: {_listed(self.passes)}."),
        ]
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


def number(value: Any) -> str:
    """A number in a message."""
    return f"{value:.7g}" if isinstance(value, float) else repr(value) if isinstance(value, str) else str(value)


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


# -- all tensors

POINTS = 512
"""The most points of a curve."""

CURVES = 8
"""The most outputs of a body whose curves are shown; more than these are the ones that differ least."""

NOT_COMPARED = -1.0


class Heat:
    """The differences of one graph. It holds a few numbers for each value and each iteration, and no arrays."""

    def __init__(self) -> None:
        self.tensors: dict[Value, tuple[ArrayComparison, int | None]] = {}
        """The worst comparison, and the iteration of the innermost loop in which it was found."""
        self.loops: dict[Node, Curves] = {}
        self.first: tuple[Node, int, str] | None = None
        """The node and the port of the first difference, and its description."""
        self.sets: list[str] = []
        """The names of the sets of inputs that were compared."""
        self.precision = ""
        """The precision of OpenVINO; empty for f32."""
        self.notes: dict[str, None] = {}
        """The reasons why some tensors were not compared."""

    def iteration(self, loop: Node, number: int, outputs: Iterable[Key]) -> "Recorded":
        """An iteration of a loop, for the tensors in it; `outputs` are those of the body."""
        curves = self.loops.setdefault(loop, Curves(tuple(outputs)))
        curves.iterations = max(curves.iterations, number + 1)
        return curves, number

    def add(self, value: Value, key: Key, found: ArrayComparison, inside: "Recorded | None" = None) -> None:
        """Record a comparison of the value that contains the tensor `key` of the ONNX model, maybe in an iteration."""
        curves, number = (None, None) if inside is None or isinstance(value.node, Constant) else inside
        known = self.tensors.get(value)
        if known is None or found.multiple > known[0].multiple:
            self.tensors[value] = found, number
        if curves is not None and number is not None:
            curves.add(key, number, found.multiple)

    def as_json(self, id_of: Callable[[Node], int]) -> dict[str, Any]:
        """The data of the page."""
        found: dict[str, Any] = {
            "tensors": [[id_of(value.node), value.index, _of_distance(*each)] for value, each in self.tensors.items()],
            "loops": {str(id_of(loop)): curves.as_json() for loop, curves in self.loops.items()},
            "sets": self.sets, "precision": self.precision or "f32",
        }
        if self.first is not None:
            node, port, text = self.first
            found["first"] = {"node": id_of(node), "port": port, "text": text}
        return found


class Curves:
    """The tensors of the body of a loop: their worst difference by iteration."""

    def __init__(self, outputs: tuple[Key, ...]) -> None:
        self.outputs = outputs
        self.iterations = 0
        self._curves: dict[Key, array[float]] = {}
        self._begins: Key | None = None

    def add(self, key: Key, iteration: int, worst: float) -> None:
        """Keep the larger of `worst` and the worst difference of an iteration so far."""
        curve = self._curves.setdefault(key, array("f"))
        curve.extend([NOT_COMPARED] * (iteration + 1 - len(curve)))
        curve[iteration] = max(curve[iteration], worst)
        if self._begins is None and worst > 1:
            self._begins = key

    def as_json(self) -> dict[str, Any]:
        """The curves that are shown: where the body begins to differ, and its outputs."""
        scope, step = self.outputs[0][0] if self.outputs else (), 1
        while max(map(len, self._curves.values()), default=0) > POINTS * step:
            step *= 2
        plain: dict[str, Any] = {}
        for (path, name), curve in ((key, self._curves[key]) for key in self._shown()):
            points = [max(curve[place : place + step]) for place in range(0, len(curve), step)]
            plain["/".join((*path[len(scope) :], name))] = [None if each < 0 else _rounded(each) for each in points]
        return {"iterations": self.iterations, "per_point": step, "tensors": plain}

    def _shown(self) -> list[Key]:
        outputs = [key for key in self.outputs if key in self._curves] or list(self._curves)
        kept = sorted(outputs, key=lambda key: -max(self._curves[key]))[:CURVES]
        begins = [] if self._begins is None or self._begins in kept else [self._begins]
        return [*begins, *(key for key in outputs if key in kept)]


Recorded = tuple[Curves, int]
"""The curves of a loop, and the number of an iteration of it."""


def _of_distance(found: ArrayComparison, iteration: int | None) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "worst": _rounded(found.multiple), "abs": _rounded(found.largest_abs), "rel": _rounded(found.largest_rel),
        "count": found.count, "size": found.size,
    }
    if iteration is not None:
        plain["iteration"] = iteration
    return {**plain, "text": found.message} if found.multiple >= BEYOND else plain


def _rounded(number: float) -> float:
    """Three digits: the numbers are many, and are for the eye."""
    return float(f"{number:.3g}")
