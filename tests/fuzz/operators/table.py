"""Operator -> description, and short forms for most operators of a family.

A description is a function of a `Draw` that returns the node it draws. A family is a module here with a table
`OPERATORS`:

    OPERATORS = {
        "Abs": unary(),
        "Elu": unary(alpha=between(0.2, 2)),
        "Add": binary(),
        "TopK": top_k,                          # a function of its own
    }

Attributes are written with a probability of 60 %, and only if the opset has them.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from mo_loop.frontend.registry import FAMILIES as ALL

from .draw import Draw, Node

Description = Callable[[Draw], Node]
Choice = Callable[[Draw], Any]

FAMILIES = (
    "tensors", "elementwise.arithmetic", "elementwise.logic", "elementwise.activation", "reduction", "linear",
    "normalisation", "images.convolution", "images.pooling", "recurrent.recurrent", "images.resize",
    "images.detection", "quantization.quantization", "movement", "filling", "indexing",
    "attention.dot_product_attention", "attention.multi_head_attention", "attention.grouped_query_attention",
    "attention.masked_decoder_attention", "attention.sparse_attention", "repeated_tokens",
    "attention.rotary_embedding", "attention.causal_convolution", "attention.linear_attention",
    "attention.gated_delta_net", "legacy", "elementwise.gelu", "quantization.packed_weights",
    "quantization.quantized_operators", "quantization.quantized_products", "quantization.packed_tables",
    "quantization.experts", "skip_normalisation", "images.fused_products", "elementwise.biased", "tensor_operators",
    "elementwise.mathematics", "images.image_operators", "images.masked_pooling", "residual_streams",
)
"""The modules with descriptions."""

UNDESCRIBED = ("control", "conditional", "sequences", "signal", "classical.", "beam_search", "greedy_search")
"""Families of the registry, or their folders, without descriptions: control flow and lists have fuzzers."""


def between(low: float, high: float) -> Choice:
    """A number of the model."""
    return lambda d: d.number(low, high)


def one_of(*options: Any) -> Choice:
    """One of the options."""
    return lambda d: d.pick(*options)


def unary(values: str = "any", least: int = 0, most: int = 5, only: str = "", **attributes: Choice) -> Description:
    """One input, of any shape."""

    def describe(d: Draw) -> Node:
        x = d.data(d.shape(least, most), d.dtype(_constraint(d, 0), only), values)
        return d.node([x], **{name: d.maybe(choice(d)) for name, choice in attributes.items()})

    return describe


def binary(values: str = "any", second: str = "", only: str = "", **attributes: Choice) -> Description:
    """Two inputs that are broadcast; before opset 7 of one shape, or by the attributes `broadcast` and `axis`."""

    def describe(d: Draw) -> Node:
        a_type, b_type = d.dtype(_constraint(d, 0), only), d.dtype(_constraint(d, 1), only)
        shapes = d.broadcast(2)
        if d.opset < 7:
            shapes = [shapes[0], shapes[0]]
        a, b = d.data(shapes[0], a_type, values), d.data(shapes[1], b_type, second or values, constant=0.3)
        if d.chance(0.5) and d.opset >= 7:
            a, b = _swapped(a, b, values == (second or values))
        return d.node([a, b], **{name: d.maybe(choice(d)) for name, choice in attributes.items()})

    return describe


def _swapped(a: Any, b: Any, alike: bool) -> Any:
    return (b, a) if alike and a.array.dtype == b.array.dtype else (a, b)


def variadic(values: str = "any") -> Description:
    """One to four inputs that are broadcast (from opset 8 on)."""

    def describe(d: Draw) -> Node:
        dtype, count = d.dtype(), d.integer(1, 4)
        shapes = d.broadcast(count)
        if d.opset < 8:
            shapes = [shapes[0]] * count
        return d.node([d.data(shape, dtype, values, constant=0.25) for shape in shapes])

    return describe


def _constraint(d: Draw, port: int) -> str:
    return str(d.schema.inputs[min(port, len(d.schema.inputs) - 1)].type_str)


class _Operators(dict[str, Description]):
    """All families, imported on first use."""

    def __missing__(self, op: str) -> Description:
        for family in FAMILIES:
            self.update(import_module(f"tests.fuzz.operators.{family}").OPERATORS)
        if op not in self:
            raise KeyError(f"no description of {op}")
        return self[op]


OPERATORS: dict[str, Description] = _Operators()


def operators_of(family: str) -> list[str]:
    """The operators of a family that ONNX Runtime runs."""
    from .kernels import opsets

    return [op for op in import_module(f"tests.fuzz.operators.{family}").OPERATORS if opsets(op)]


def undescribed() -> set[str]:
    """The operators that ONNX Runtime runs and that have no description, but for those of families without any."""
    from .kernels import opsets

    wanted = [op for family, names in ALL.items() if not family.startswith(UNDESCRIBED) for op in names.split()]
    return {op for op in wanted if opsets(op)} - {op for family in FAMILIES for op in operators_of(family)}
