"""A random model under construction: typed values, nested scopes, captured names.

Every value has a shape of ints and symbols. Equal symbols are equal sizes at run time; operators that need equal
dimensions choose by them. A symbol whose size may be 0 has `minimum` 0, which operators that refuse empty tensors
check. `mag` bounds the magnitude of the elements: larger results are reduced, so that numbers can be compared.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from .values import BOOL, FLOAT, INT32, INT64, LIMIT, NUMPY, Dim, Seq, Shape, Val


@dataclass
class Input:
    """A model input and how its values are drawn: from `choices` for integers and conditions, else random numbers.

    With `choices`, all elements of an input set are equal; with `mixed` each is drawn separately.
    """

    val: Val
    declared: tuple[Dim | None, ...] | None
    choices: Sequence[int] | None = None
    mixed: bool = False


@dataclass
class Context:
    """The state that all scopes of one model share.

    `lists` is the share of operators on lists; with `widens` there are states that their first type does not hold,
    with `recurs` loops over sequences of many steps.
    `undeclared` to `broken` describe how the converters' model differs from ONNX Runtime's (disguise).
    """

    rng: random.Random
    numbers: np.random.Generator
    opset: int
    shadowing: bool = False
    lists: float = 0.0
    widens: bool = False
    recurs: bool = False
    features: Counter[str] = field(default_factory=Counter)
    minimum: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, Sequence[int]] = field(default_factory=dict)
    scan_ranks: dict[str, list[int]] = field(default_factory=dict)
    undeclared: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    inputs: list[Input] = field(default_factory=list)
    functions: list[FunctionProto] = field(default_factory=list)
    list_names: set[str] = field(default_factory=set)
    count: int = 0

    def fresh(self, prefix: str = "v") -> str:
        """A unique name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def dim(self, minimum: int = 0) -> str:
        """A symbol of unknown size."""
        name = self.fresh("d")
        self.minimum[name] = minimum
        return name

    def symbol(self) -> str:
        """A symbol of an input, with one size per input set."""
        if self.sizes and self.rng.random() < 0.6:
            return self.rng.choice(list(self.sizes))
        name = self.fresh("N")
        sizes = [self.rng.randint(1, 5) for _ in range(3)]
        if self.rng.random() < 0.3:
            sizes[self.rng.randint(1, 2)] = 0
            self.features["length 0"] += 1
        self.sizes[name], self.minimum[name] = sizes, min(sizes)
        return name

    def at_least(self, dim: Dim, size: int) -> bool:
        """Whether a dimension is known to be at least this large."""
        return (dim if isinstance(dim, int) else self.minimum[dim]) >= size

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    @property
    def carries_lists(self) -> bool:
        """Whether loops carry lists, branches return them, and Identity copies them."""
        return bool(self.lists) and self.opset >= 16


class Scope:
    """One graph under construction: the main graph, or a body whose surrounding scope is `outer`."""

    def __init__(self, context: Context, outer: Scope | None = None) -> None:
        self.context, self.outer = context, outer
        self.rng = context.rng
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        self.parameters: list[Val | Seq] = []
        self.own: list[Val] = []
        self.lists: list[Seq] = []
        self.captured: set[str] = set()
        self.hidden: set[str] = set()
        self.names: set[str] = set()
        self.used: set[str] = set()
        self.iteration: Val | None = None
        self.kind = ""
        self.carries = False
        self.style = "full"
        self.pinned: list[Val] = []

    @property
    def root(self) -> Scope:
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope

    @property
    def level(self) -> int:
        return 0 if self.outer is None else self.outer.level + 1

    # ------------------------------------------------------------------------------------------------------- values

    @property
    def counter(self) -> Val | None:
        """The iteration number of the nearest enclosing loop, if it is visible here."""
        scope: Scope | None = self
        while scope is not None and scope.iteration is None:
            scope = scope.outer
        val = scope.iteration if scope is not None else None
        return val if val in self.visible() else None

    def visible(self) -> list[Val]:
        """The scope's own values, then those of the enclosing scopes whose names are not hidden."""
        found, hidden, scope = [], set[str](), self
        while scope is not None:
            found += [val for val in scope.own if val.name not in hidden]
            hidden |= scope.hidden
            scope = scope.outer  # type: ignore[assignment]
        return found

    def visible_lists(self) -> list[Seq]:
        """The visible lists, in the same order."""
        found, hidden, scope = [], set[str](), self
        while scope is not None:
            found += [each for each in scope.lists if each.name not in hidden]
            hidden |= scope.hidden
            scope = scope.outer  # type: ignore[assignment]
        return found

    def candidates(self, accepts: Callable[[Val], bool]) -> list[Val]:
        return [val for val in self.visible() if accepts(val)]

    def pick(self, accepts: Callable[[Val], bool], local: float = 0.7) -> Val | None:
        """A random visible value, from this scope with the given probability, then from any."""
        own = [val for val in self.own if accepts(val)]
        if own and self.context.chance(local):
            return self.rng.choice(own[-8:] if self.context.chance(0.6) else own)
        found = self.candidates(accepts)
        return self.rng.choice(found) if found else None

    def note_use(self, name: str) -> None:
        """Record a capture: in this scope and those between it and the owner."""
        self.used.add(name)
        scope, crossed = self, 0
        while scope is not None and name not in scope.names:
            scope.captured.add(name)
            scope, crossed = scope.outer, crossed + 1  # type: ignore[assignment]
        if scope is None:
            return
        scope.used.add(name)
        if crossed:
            self.context.features["capture" if crossed == 1 else "capture through levels"] += 1
        if crossed and name in self.context.list_names:
            self.context.features[f"list captured by {self.kind}"] += 1

    def _parameter_name(self, lists: bool = False) -> str:
        """A fresh name, or rarely one that hides an outer value not yet used here. (Outputs of nodes must not.)"""
        if self.outer is None or not self.context.shadowing or not self.context.chance(0.15):
            return self.context.fresh()
        taken = self.names | self.captured
        outer = self.outer.visible_lists() if lists else self.outer.visible()
        names = [val.name for val in outer if val.name not in taken]
        if not names:
            return self.context.fresh()
        name = self.rng.choice(names)
        self.hidden.add(name)
        self.context.features["shadowed name"] += 1
        return name

    def add(self, dtype: int, shape: Shape, mag: float, name: str | None = None) -> Val:
        val = Val(name or self.context.fresh(), dtype, tuple(shape), mag)
        self.own.append(val)
        self.names.add(val.name)
        return val

    def add_list(self, like: Seq, least: int, name: str | None = None) -> Seq:
        """A list of the same kind."""
        made = replace(like, name=name or self.context.fresh("s"), least=least)
        self.lists.append(made)
        self.names.add(made.name)
        self.context.list_names.add(made.name)
        return made

    def parameter(self, dtype: int, shape: Shape, mag: float) -> Val:
        """A body input."""
        val = self.add(dtype, shape, mag, self._parameter_name())
        self.parameters.append(val)
        return val

    def list_parameter(self, like: Seq, least: int) -> Seq:
        """A body input that is a list."""
        made = self.add_list(like, least, self._parameter_name(lists=True))
        self.parameters.append(made)
        return made

    # -------------------------------------------------------------------------------------------------------- nodes

    def node(self, op: str, inputs: Sequence[Val | Seq | str | None], outputs: Sequence[str],
             **attributes: Any) -> NodeProto:
        """Append a node; None is an omitted input."""
        names = [val.name if isinstance(val, Val | Seq) else val or "" for val in inputs]
        for name in names:
            if name:
                self.note_use(name)
        made = helper.make_node(op, names, list(outputs), name=self.context.fresh("n"), **attributes)
        self.nodes.append(made)
        return made

    def emit(self, op: str, inputs: Sequence[Val | Seq | str | None], dtype: int, shape: Shape, mag: float = 1.0,
             **attributes: Any) -> Val:
        """Append a node of one output; reduce its magnitude if it is too large."""
        name = self.context.fresh()
        self.node(op, inputs, [name], **attributes)
        val = self.add(dtype, shape, mag, name)
        return self.squash(val) if mag > LIMIT[dtype] else val

    def emit_list(self, op: str, inputs: Sequence[Val | Seq | None], like: Seq, least: int, **attributes: Any) -> Seq:
        """Append a node that makes a list of the same kind."""
        name = self.context.fresh("s")
        self.node(op, inputs, [name], **attributes)
        return self.add_list(like, least, name)

    def copy(self, val: Val | Seq) -> Any:
        """The value through an Identity."""
        if isinstance(val, Seq):
            return self.emit_list("Identity", [val], val, val.least)
        return self.emit("Identity", [val], val.dtype, val.shape, val.mag)

    def dropped(self, op: str, inputs: Sequence[Val], dtype: int, shape: Shape, **attributes: Any) -> Val:
        """A node that ONNX Runtime needs and converters do not get: they read its first input instead of its output."""
        made = self.emit(op, inputs, dtype, shape, 1.0, **attributes)
        self.context.dropped.add(self.nodes[-1].name)
        self.own.remove(made)  # it has another type for converters: only conditions may use it
        return made

    def squash(self, val: Val, limit: float | None = None) -> Val:
        """Bring the magnitude below a limit, in one of several ways."""
        bound = LIMIT[val.dtype] / 4 if limit is None else limit
        if val.mag <= bound or val.dtype == BOOL:
            return val
        opset = self.context.opset
        if val.dtype == FLOAT and (bound < 1.5 or opset < 11 or self.context.chance(0.5)):
            return self.emit("Tanh", [val], FLOAT, val.shape, 1.0)
        if opset < 10:
            divisor = self.scalar(np.ceil(val.mag / bound), val.dtype)
            return self.emit("Div", [val, divisor], val.dtype, val.shape, bound)
        way = self.rng.choice(("Clip", "MinMax", "Mod")) if opset >= 12 else "Mod"
        if way == "Clip" or val.dtype == FLOAT:
            low, high = (self.constant(np.array(v, NUMPY[val.dtype])) for v in (-int(bound), int(bound)))
            return self.emit("Clip", [val, low, high], val.dtype, val.shape, bound)
        if way == "MinMax":
            low, high = (self.constant(np.array(v, NUMPY[val.dtype])) for v in (-int(bound), int(bound)))
            cut = self.emit("Max", [val, low], val.dtype, val.shape, min(val.mag, LIMIT[val.dtype]))
            return self.emit("Min", [cut, high], val.dtype, val.shape, bound)
        divisor = self.constant(np.array(int(bound), NUMPY[val.dtype]))
        return self.emit("Mod", [val, divisor], val.dtype, val.shape, bound)

    # ---------------------------------------------------------------------------------------------------- constants

    def constant(self, array: np.ndarray, here: bool = False, data: bool = False) -> Val:
        """A constant: a Constant node, an initializer here, or a captured initializer of the main graph.

        `here` excludes the main graph, `data` lets other pieces use it too.
        """
        dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
        mag = float(np.abs(array.astype(np.float64)).max(initial=0.0))
        kind = self.rng.choice(("node", "node", "here") if here or self.outer is None else ("node", "here", "root"))
        scope = self.root if kind == "root" else self
        name = self.context.fresh("c")
        tensor = numpy_helper.from_array(array, name)
        if kind == "node":
            scope.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            scope.initializers.append(tensor)
            if scope.outer is not None:
                self.context.features["initializer in body"] += 1
            elif self.outer is not None:
                self.context.features["captured initializer"] += 1
        scope.names.add(name)
        val = Val(name, dtype, tuple(int(d) for d in array.shape), mag)
        if data:
            scope.own.append(val)
        return val

    def ints(self, *values: int) -> Val:
        """A constant int64 vector (axes, shapes, bounds)."""
        return self.constant(np.array(values, np.int64))

    def scalar(self, value: float, dtype: int = FLOAT) -> Val:
        return self.constant(np.array(value, NUMPY[dtype]))

    def random_constant(self, dtype: int, shape: Sequence[int]) -> Val:
        """A constant that other pieces may use too."""
        return self.constant(random_numbers(self.context.numbers, dtype, tuple(shape)), data=True)

    def input(self, dtype: int, shape: Shape, choices: Sequence[int] | None = None, declared: str | None = None,
              mixed: bool = False) -> Val:
        """A new model input, from any scope; `choices` are its possible values, one per input set (or `mixed`)."""
        mag = float(max((abs(c) for c in choices), default=1)) if choices else {INT64: 4.0, INT32: 4.0}.get(dtype, 1.0)
        val = Val(self.context.fresh("x"), dtype, tuple(shape), mag)
        style = declared or self.rng.choice(("exact", "exact", "exact", "rank"))
        dims = None if style == "none" else tuple(d if style == "exact" else None for d in val.shape)
        self.context.inputs.append(Input(val, dims, choices, mixed))
        self.root.own.append(val)
        self.root.names.add(val.name)
        return val

    # ------------------------------------------------------------------------------------------------------- graphs

    def graph(self, name: str, outputs: Sequence[Val | Seq]) -> GraphProto:
        """The body as a GraphProto. Its `style` is how much of the types is declared: full, rank, type, nothing.

        The rank of the parameters in `pinned` is always declared.
        """
        style = self.style
        return helper.make_graph(self.nodes, name,
                                 [declare(val, "full" if val in self.pinned else style) for val in self.parameters],
                                 [declare(val, style) for val in outputs], self.initializers)


def declare(val: Val | Seq, style: str) -> ValueInfoProto:
    """A ValueInfoProto with the whole type, the rank, the element type, or only the name."""
    if style == "nothing":
        return ValueInfoProto(name=val.name)
    if isinstance(val, Seq):
        sizes = [d if isinstance(d, int) and style == "full" else None for d in val.sizes]
        return helper.make_tensor_sequence_value_info(val.name, val.dtype, None if style == "type" else sizes)
    if style == "type":
        return helper.make_tensor_value_info(val.name, val.dtype, None)
    shape = [d if style == "full" and (isinstance(d, int) or d.startswith("N")) else None for d in val.shape]
    return helper.make_tensor_value_info(val.name, val.dtype, shape)


def random_numbers(numbers: np.random.Generator, dtype: int, shape: tuple[int, ...]) -> np.ndarray:
    """Random values: floats in [-1, 1), integers in [-3, 4], booleans."""
    if dtype == FLOAT:
        return np.asarray(numbers.uniform(-1, 1, shape), np.float32).reshape(shape)
    if dtype == BOOL:
        return np.asarray(numbers.integers(0, 2, shape)).astype(np.bool_).reshape(shape)
    return np.asarray(numbers.integers(-3, 5, shape)).astype(NUMPY[dtype]).reshape(shape)


def known_outside(scope: Scope) -> set[Dim]:
    """Symbols that mean the same size in every iteration of a body opened in this scope."""
    return {d for val in scope.visible() for d in val.shape}


def dims(shape: Shape) -> Iterator[tuple[int, int]]:
    """Axis and size of each static dimension."""
    return ((axis, d) for axis, d in enumerate(shape) if isinstance(d, int))
