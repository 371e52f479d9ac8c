"""The random choices of a description.

    def top_k(d):
        x = d.data(d.shape(1, 4))
        axis = d.axis(x)
        return d.node([x, d.parameter([d.size(1, x.shape[axis])])], outputs=2, axis=d.maybe(axis), largest=d.maybe(0))

A description runs once for each input set of a model. The structure of the model (ranks, types, attributes, constants)
is drawn from `structure`, which starts in the same state each time; sizes that differ between the sets, and all values,
are drawn from sources of the set. Therefore no choice about the model may depend on a size: every draw takes the same
number of steps for all sizes.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .kernels import Constraints, kernels, schema
from .values import numbers

OMITTED = object()
"""The value of an attribute that is omitted if ONNX gives it a default."""

WEIGHTS = {"float": 12, "float16": 3, "double": 1, "int64": 3, "int32": 3, "int8": 1.5, "uint8": 1.5, "bool": 1.5,
           "int16": 0.5, "uint16": 0.5, "uint32": 0.5, "uint64": 0.3, "bfloat16": 0.4, "string": 0.3}
"""How often an element type is drawn; one that is not listed is drawn only if a description lists it."""

_FILLED = {"strides": 1, "dilations": 1, "pads": 0}
"""Attributes that are filled with a number where they are left out."""


@dataclass
class Port:
    """An input of the node: its value in this set, and its source.

    `given` is one of input, constant (an initializer), node (a Constant node), reshaped, sliced, selected (computed
    from a model input, so that its dimensions are known at run time only). The sizes of a `fixed` one are not symbols
    unless they differ between the sets.
    """

    array: Any
    given: str = "input"
    fixed: bool = False
    unknown: bool = False
    """Whether it is a parameter whose sizes may be symbols."""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def rank(self) -> int:
        return int(self.array.ndim)


@dataclass
class Node:
    """A drawn configuration, for one input set."""

    op: str
    opset: int
    ports: list[Port | None]
    attributes: dict[str, Any]
    outputs: tuple[str, ...]
    symbolic: bool
    rtol: float | None = None
    atol: float | None = None
    narrow: bool = False
    """Whether the outputs are of 4 bits."""
    every: bool = False
    """Whether all dimensions of a symbolic model are symbols."""


class Draw:
    """Random choices about one operator."""

    def __init__(self, op: str, opset: int, seed: str, number: int) -> None:
        self.op, self.opset = op, opset
        self.schema = schema(op, opset)
        self.since = self.schema.since_version
        self.structure = random.Random(seed)
        self.sizes = random.Random(f"{seed}/{number}")
        self.values = np.random.default_rng([number, random.Random(f"values/{seed}").getrandbits(32)])
        self.dims = self.structure.choices(("static", "symbolic", "computed"), (3, 5, 3))[0]
        self.kernels: list[Constraints] = list(kernels(op, opset))
        self.types: dict[str, str] = {}
        self.fed = 0
        """The number of ports so far that are model inputs."""

    # -- choices about the model

    def chance(self, share: float) -> bool:
        return self.structure.random() < share

    def pick(self, *options: Any) -> Any:
        return options[int(self.structure.random() * len(options))]

    def integer(self, low: int, high: int) -> int:
        """A number of the model, both ends included."""
        return low + int(self.structure.random() * (high - low + 1))

    def number(self, low: float, high: float) -> float:
        return round(low + self.structure.random() * (high - low), 3)

    def maybe(self, value: Any, share: float = 0.6) -> Any:
        """The value of an attribute, or none."""
        return value if self.chance(share) else OMITTED

    def order(self, count: int) -> list[int]:
        """A permutation."""
        return sorted(range(count), key=[self.structure.random() for _ in range(count)].__getitem__)

    def some(self, count: int, least: int = 0) -> list[int]:
        """Some of the numbers below `count`, in any order."""
        return self.order(count)[: self.integer(min(least, count), count)]

    def signed(self, axis: int, rank: int) -> int:
        """The axis, counted from either end if the opset allows it."""
        return axis - rank if self.chance(0.4) and self.has_negative_axes else axis

    @property
    def has_negative_axes(self) -> bool:
        return self.opset >= 11

    def axis(self, rank: int) -> int:
        return self.signed(self.integer(0, rank - 1), rank)

    def axes(self, rank: int, least: int = 0) -> list[int]:
        """Axes in any order, each counted from either end."""
        return [self.signed(axis, rank) for axis in self.some(rank, least)]

    # -- element types

    def dtype(self, constraint: str = "T", only: str = "", default: str = "") -> np.dtype:
        """An element type that the constraint and a kernel allow, always the same for one constraint."""
        from onnx import helper

        if constraint.startswith("tensor("):
            self.types[constraint] = constraint[len("tensor(") : -1]
        if constraint not in self.types:
            self.types[constraint] = self._drawn_type(constraint, only.split(), default)
        return np.dtype(object) if self.types[constraint] == "string" else _numpy(self.types[constraint], helper)

    def _drawn_type(self, constraint: str, only: list[str], default: str) -> str:
        allowed = next(
            (each.allowed_type_strs for each in self.schema.type_constraints if each.type_param_str == constraint), ()
        )
        names = [each[len("tensor(") : -1] for each in allowed if each.startswith("tensor(")]
        # ONNX Runtime computes float16 in float if it has no kernel for it.
        known = {name for each in self.kernels for name in each.get(constraint, names)} or set(names)
        if "float" in known:
            known.add("float16")
        options = [name for name in names if name in known and (name in only if only else name in WEIGHTS)] or [default]
        if not options[0]:
            raise NoKernel(f"{self.op}-{self.opset} has no kernel for {' '.join(only) or 'the usual types'}")
        name = self.structure.choices(options, [WEIGHTS.get(each, 1) for each in options])[0]
        computed = "float" if name == "float16" and not self._has_kernel(constraint, name) else name
        self.kernels = [each for each in self.kernels if computed in each.get(constraint, (computed,))]
        return name

    def _has_kernel(self, constraint: str, name: str) -> bool:
        return any(name in each.get(constraint, ()) for each in self.kernels)

    # -- sizes

    def size(self, low: int = 1, high: int = 5, empty: float = 0.03) -> int:
        """A dimension, both ends included; the same in all sets unless dimensions are symbolic."""
        varies = self.structure.random() < 0.6 and self.dims != "static"
        steady, own = self.structure.random(), self.sizes.random()
        nothing, own_nothing = self.structure.random() < empty, self.sizes.random() < empty * 2
        if (own_nothing if varies else nothing) and low <= 1:
            return 0
        return low + int((own if varies else steady) * (high - low + 1))

    def shape(self, least: int = 0, most: int = 5, *, low: int = 1, high: int = 5, empty: float = 0.03) -> list[int]:
        """Dimensions of a random rank."""
        rank = self.integer(least, most)
        return [self.size(low, high if rank < 5 else min(high, 3), empty) for _ in range(rank)]

    def broadcast(self, count: int, most: int = 4) -> list[list[int]]:
        """Shapes that numpy broadcasts to one shape; the first is often that shape."""
        whole, shapes = self.shape(0, most), []
        for number in range(count):
            kept = len(whole) if number == 0 and self.chance(0.7) else self.integer(0, len(whole))
            ones = [self.chance(0.25) for _ in whole]
            cut = [1 if one else dim for one, dim in zip(ones, whole, strict=True)]
            if number == 0 and self.chance(0.6):
                cut = whole
            shapes.append(cut[len(whole) - kept :])
        return shapes

    # -- ports

    def data(self, shape: Sequence[int], dtype: Any = None, values: str = "any", *, constant: float = 0.12,
             computed: bool = True) -> Port:
        """An input whose shape and values differ between sets; rarely a constant, with the values of the first set."""
        kind = self.dtype() if dtype is None else np.dtype(dtype)
        array = numbers(self.values, tuple(shape), kind, values)
        return self.given(array, constant if self.fed else 0.01, computed, not computed)

    def given(self, array: Any, constant: float, computed: bool = False, fixed: bool = False) -> Port:
        """A port for an array that is a constant with the probability `constant`."""
        way, where = self.structure.random(), self.structure.random()
        how = self.pick("reshaped", "sliced", "selected")
        if way < constant:
            return Port(array, "constant" if where < 0.6 else "node", fixed)
        self.fed += 1
        plain = not computed or self.dims != "computed" or where < 0.2 or array.ndim == 0 or array.dtype.isbuiltin != 1
        return Port(array, "input" if plain else how, fixed)

    def parameter(self, array: Any, dtype: Any = np.int64, constant: float = 0.55) -> Port:
        """A parameter: axes, a shape, pads, k. A constant or a model input.

        Its length is rarely unknown, because the rank of the result often depends on it.
        """
        unknown = self.chance(0.04)
        return replace(self.given(np.asarray(array, dtype), constant, fixed=not unknown), unknown=unknown)

    def optional(self, port: Port, share: float = 0.6) -> Port | None:
        """The port, or none."""
        return port if self.chance(share) else None

    # -- the node

    def node(self, ports: Sequence[Port | None], outputs: int | Sequence[str] = 1, *, rtol: float | None = None,
             atol: float | None = None, narrow: bool = False, **attributes: Any) -> Node:
        """The configuration, without attributes and inputs that the opset does not have."""
        known = self.schema.attributes
        written = {name: value for name, value in attributes.items()
                   if name in known and value is not OMITTED and value is not None}
        written = {name: each for name, each in written.items() if not self._is_default(name, each) or self.chance(0.5)}
        kept = list(ports[: self.schema.max_input])
        while kept and kept[-1] is None:
            kept.pop()
        names = tuple(f"y{i}" for i in range(outputs)) if isinstance(outputs, int) else tuple(outputs)
        names, symbolic = names[: self.schema.max_output], self.dims != "static"
        return Node(self.op, self.opset, kept, written, names, symbolic, rtol, atol, narrow)


    def _is_default(self, name: str, value: Any) -> bool:
        """Whether the attribute may be left out, and has this value then."""
        from onnx import helper

        held = self.schema.attributes[name]
        if name in _FILLED:
            return not held.required and set(value) == {_FILLED[name]}
        return bool(held.default_value.name) and helper.make_attribute(name, value) == held.default_value


class NoKernel(Exception):
    """Raised if ONNX Runtime has no kernel for any type that the description allows."""


def _numpy(name: str, helper: Any) -> np.dtype:
    from onnx import TensorProto

    plain = {"float": "FLOAT", "double": "DOUBLE"}.get(name, name.upper())
    return np.dtype(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, plain)))
