"""The graph that a drawing fills: nodes, constants, and values of known shape."""

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import helper, numpy_helper

Dim = int | str
FLOAT: Any = np.float32
MOST_ELEMENTS, MOST_RANK = 4096, 5


class Value(NamedTuple):
    """A tensor: its shape has numbers and names of sizes."""

    name: str
    shape: tuple[Dim, ...]
    kind: Any = FLOAT

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def known(self) -> list[int]:
        """The axes of known size."""
        return [axis for axis, size in enumerate(self.shape) if isinstance(size, int)]

    def size(self, axis: int) -> int:
        """The known size along an axis."""
        found = self.shape[axis]
        assert isinstance(found, int)
        return found

    def with_size(self, axis: int, size: Dim) -> tuple[Dim, ...]:
        """The shape with another size along an axis."""
        return (*self.shape[:axis], size, *self.shape[axis + 1 :])


class Graph:
    """Nodes in the order of execution. Inputs are values too."""

    def __init__(self, choices: random.Random, numbers: np.random.Generator) -> None:
        self.choices, self.numbers = choices, numbers
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Value] = []
        self.values: list[Value] = []
        self.used: set[str] = set()
        self.most_rank, self.opset = MOST_RANK, 18
        self.filled: dict[str, Callable[[list[int]], Any]] = {}
        """The numbers of the inputs of which not any will do, as functions of the shape."""
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def chance(self, share: float) -> bool:
        return self.choices.random() < share

    def choice_of(self, *options: Any) -> Any:
        return self.choices.choice(options)

    def input(
        self, shape: Sequence[Dim], kind: Any = FLOAT, filled: Callable[[list[int]], Any] | None = None
    ) -> Value:
        """Add an input of the model; without `filled`, its numbers are drawn."""
        made = Value(self.name(), tuple(shape), kind)
        self.inputs.append(made)
        self.values.append(made)
        if filled is not None:
            self.filled[made.name] = filled
        return made

    def constant(self, array: Any, kind: Any = None) -> str:
        """Add a constant; float32 if it has fractions, else int64."""
        found = np.asarray(array)
        kind = kind or (FLOAT if found.dtype.kind == "f" else np.int64)
        self.constants.append(numpy_helper.from_array(found.astype(kind), f"c{self.name()}"))
        return str(self.constants[-1].name)

    def normal(self, *shape: int, scale: float = 1.0) -> str:
        return self.constant(self.numbers.normal(0, scale, shape))

    def positive(self, *shape: int) -> str:
        return self.constant(self.numbers.uniform(0.3, 1.5, shape))

    def node(self, op: str, *inputs: Value | str, outputs: int = 1, **attributes: Any) -> list[str]:
        """Add a node whose results are not read by later steps; their names."""
        names = [each if isinstance(each, str) else each.name for each in inputs]
        results = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, names, results, **attributes))
        self.used.update(names)
        return results

    def add(self, op: str, *inputs: Value | str, shape: Sequence[Dim], kind: Any = FLOAT, **attributes: Any) -> Value:
        """Add a node with one result."""
        made = Value(self.node(op, *inputs, **attributes)[0], tuple(shape), kind)
        self.values.append(made)
        return made

    def pick(self) -> Value:
        """The last value, or any."""
        return self.values[-1] if self.chance(0.55) else self.choices.choice(self.values)


def broadcast(*shapes: Sequence[Dim]) -> tuple[Dim, ...] | None:
    """The shape of a result that broadcasts; None if a name meets another size than 1 and itself."""
    rank, found = max(map(len, shapes)), []
    for sizes in zip(*((1,) * (rank - len(each)) + tuple(each) for each in shapes), strict=True):
        others = {each for each in sizes if each != 1}
        if len(others) > 1:
            return None
        found.append(others.pop() if others else 1)
    return tuple(found)


def may_grow_to(shape: Sequence[Dim]) -> bool:
    """Whether a shape is within the bounds of a drawing; a named size counts as 4."""
    elements = np.prod([each if isinstance(each, int) else 4 for each in shape], dtype=np.int64)
    return len(shape) <= MOST_RANK and bool(elements <= MOST_ELEMENTS)
