"""One valid application, or more, of every operation: attributes, and inputs as types.

    Example("ReduceSum", {"keep_dims": True}, "f32[2,3]", [1])

An input is a type as the text of graphs writes it, or values of i64 (a list or a number), which are then known; None is
an absent one. Operations with bodies are whole graphs in `BODIES`, whose Parameters are the inputs.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.graph import types
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Op, type_of_tensor
from mo_loop.text.spelling import Scanner, parse_type
from tests.cases import split
from tests.texts import texts

TEXTS = texts(__file__)

Given = str | list[Any] | int | None


class Example:
    """An operation applied to types. The lengths of the `counted` inputs are the numbers of outputs."""

    def __init__(self, name: str, attributes: dict[str, Any] | None = None, *inputs: Given) -> None:
        self.name = name
        self.attributes = attributes or {}
        self.types = [typed(each) for each in inputs]
        self.counted = {2} if name == "VariadicSplit" else set()

    def infer(self, types: list[TensorType | None]) -> list[TensorType]:
        """The types of the outputs for other types of the inputs. MoLoopError when the operation refuses them."""
        node: Any = object.__new__(getattr(ops, self.name))
        node.name = ""
        node._set_attributes(self.attributes)
        return list(node._inferred(types))

    def __repr__(self) -> str:
        return f"{self.name} {self.attributes} {self.types}"


def typed(given: Given) -> TensorType | None:
    """The type that an input of an example describes."""
    if given is None:
        return None
    if isinstance(given, str):
        found: TensorType = parse_type(Scanner(given))
        return found
    return type_of_tensor(ArrayTensor(np.asarray(given, np.int64)))


_TEXT = ("i32[4]", "i32[4]", "u8[9]")
"""Four strings: where they begin and end, and their bytes."""


def operations() -> list[str]:
    """The names of all operations that infer types from inputs, except those on sequences, which are not tensors."""
    names = [name for key, family in ops.FAMILIES.items() for name in family.split() if key != "sequences"]
    classes = {name: getattr(ops, name) for name in names}
    return [name for name, cls in classes.items() if isinstance(cls, type) and issubclass(cls, Op) and not cls.abstract]


SOURCES = {"Parameter", "Constant", "Failed", "Opaque", "OpaqueSink", "ReadValue", "Result"}
"""Operations whose types are attributes, not inferred."""

_WINDOW: dict[str, Any] = {"strides": (2, 1), "pads_begin": (1, 0), "pads_end": (1, 0)}
_DETECTRON = {
    "score_threshold": 0.05, "nms_threshold": 0.5, "max_delta_log_wh": 4.1, "num_classes": 2, "post_nms_count": 10,
    "max_detections_per_image": 5, "deltas_weights": (10.0, 10.0, 5.0, 5.0),
}
_CONVOLUTION = {**_WINDOW, "dilations": (1, 2)}
_POOL = {**_WINDOW, "kernel": (3, 2)}
_RESIZE = {"shape_calculation_mode": "sizes", "mode": "nearest"}
_REGIONS = {"pooled_h": 2, "pooled_w": 3, "sampling_ratio": 0, "spatial_scale": 1.0, "mode": "avg"}
_CELL = {"hidden_size": 3}
_SEQUENCE = {"hidden_size": 3, "direction": "bidirectional"}

_FLOATS = [
    "Floor", "Ceiling", "Sqrt", "Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh",
    "Asinh", "Acosh", "Atanh", "Erf", "Round", "Sigmoid", "HSigmoid", "HSwish", "Swish", "Mish", "SoftPlus",
    "SoftSign", "Gelu", "Softmax", "LogSoftmax", "IsNaN", "IsInf", "IsFinite", "Identity",
]
_INTEGERS = ["Abs", "Negative", "Sign", "ReLU", "Floor", "Ceiling", "Identity", "BitwiseNot"]
_ARITHMETIC = [
    "Add", "Subtract", "Multiply", "Divide", "FloorMod", "Mod", "Power", "Maximum", "Minimum", "SquaredDifference",
    "Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "BitwiseLeftShift", "BitwiseRightShift",
]
_LOGICAL = ["LogicalAnd", "LogicalOr", "LogicalXor"]
_REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"]

def _examples() -> Iterator[Example]:
    """Those of the text; a line that begins with `*` is one for each name of a list of this module."""
    for line in re.split(r"\n(?! )", TEXTS["examples"].strip()):
        name, given, inputs = re.findall(r"(\*?\w+)(?: <(.*?)>)? \((.*)\)", re.sub(r"\n\s+", " ", line))[0]
        values: list[Given] = []
        for each in split(inputs)[0]:
            values += [each] if re.match(r"[a-z]+\d*\[", each) else eval(f"[{each}]")
        for operation in globals()[name[1:]] if name[0] == "*" else [name]:
            yield Example(operation, eval(f"dict({given})", vars(types) | globals()), *values)


EXAMPLES = [
    *_examples(),
    *(
        Example(name, {}, *(f"{'i32' if name.startswith('Bitwise') else 'f32'}[{dims}]" for dims in ("2,1,3", "4,1")))
        for name in _ARITHMETIC
    ),
]

_STATES = TEXTS["states"]

BODIES = {
    "Loop": _STATES.format(
        loop="Loop(%n, true, %x, %w, %xs)", sliced="Invariant(%piece)", extra=", condition: @go",
        condition="Result(true) @go"),
    "TensorIterator": _STATES.format(
        loop="TensorIterator(%x, %w, %xs)", sliced="Sliced(%piece, axis: 0)", extra="", condition=""),
    "Scan": _STATES.format(loop="Scan(%x, %w, %xs)", sliced="Sliced(%piece, axis: 0)", extra="", condition=""),
    "If": TEXTS["If"],
}
"""A graph for every operation with bodies."""
