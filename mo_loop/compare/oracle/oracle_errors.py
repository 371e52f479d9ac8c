"""ORACLE_ERRORS: the known errors of ONNX Runtime, and how a comparison handles each.

    row("scan-returns-input")
    list(errors_in(nodes))                # the rows that concern a model

`tools/probe_oracle.py` has a model for each that shows it, and compares an installed release with the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mo_loop.target import version

LEFT_OUT = "the set of inputs is left out"
EXACT = "the values are computed with exact integer arithmetic"
COPIED = "ONNX Runtime gets the model with an Identity before the output of the body"
NOTED = "the report says so"

MEASURED = ("1.20.1", "1.23.2", "1.27.0", "1.31.1", "1.32.0")
"""The releases on which the probes have run."""

UNSTABLE, SHAPE = "unstable", "shape"
"""How a set shows an error: its values depend on the contents of the memory; its shapes are not those of ONNX."""

EXACT_OPERATORS = frozenset({"ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"})
"""Operators that add products of 8-bit integers, and that the reference evaluator of the onnx package computes."""

RANDOM_OPERATORS = frozenset({
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
})  # fmt: skip

_REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare", "ArgMax", "ArgMin",
)  # fmt: skip


@dataclass(frozen=True)
class OracleError:
    """One error of ONNX Runtime: its operators, its condition, and how it is handled.

    `shows` is `UNSTABLE` or `SHAPE` where a set shows it; otherwise `concerns` decides from the attributes of a node
    whether it can have it. `since` and `until` are the first and the last of `MEASURED` that have it, "" if there is
    no bound.
    """

    id: str
    operators: tuple[str, ...]
    sentence: str
    treatment: str
    shows: str = ""
    concerns: Callable[[Any], bool] = lambda node: True
    since: str = ""
    until: str = ""

    def is_in(self, release: str) -> bool:
        """Whether a release of ONNX Runtime, such as "1.32.0", has it."""
        number = tuple(int(part) for part in release.split(".")[:3] if part.isdigit())  # a nightly build has more parts
        return version(self.since or "0") <= number <= version(self.until or "9999")


def _attribute(node: Any, name: str, default: int) -> int:
    return next((each.i for each in node.attribute if each.name == name), default)


def _votes_for_both(node: Any) -> bool:
    """Whether a node has two classes, other than 0 and 1, and leaves for both."""
    numbers = {each.name: each.ints for each in node.attribute if each.ints}
    labels = list(numbers.get("classlabels_int64s", ()))
    return len(labels) == 2 and labels != [0, 1] and {0, 1} <= set(numbers.get("class_ids", ()))


ORACLE_ERRORS = (
    OracleError(
        "cell-state-of-no-steps", ("LSTM",),
        "the final cell state of a sequence without steps is memory that was never written", LEFT_OUT, UNSTABLE,
    ),
    OracleError(
        "product-over-nothing", ("MatMul",),
        "a product that sums over a dimension of 0 misses dimensions that are broadcast", LEFT_OUT, SHAPE,
        until="1.31.1",
    ),
    OracleError(
        "reduction-of-nothing", _REDUCTIONS,
        "an axis of 0 elements that is counted from the end is not reduced, and others are kept or removed wrongly",
        LEFT_OUT, SHAPE, until="1.31.1",
    ),
    OracleError(
        "scan-returns-input", ("Scan",),
        "a body that returns one of its inputs gives memory that was freed or never written", COPIED,
    ),
    OracleError(
        "loop-returns-number", ("Loop",),
        "a body that returns its iteration number gives the last number for every iteration", COPIED,
    ),
    OracleError(
        "saturating-products", tuple(sorted(EXACT_OPERATORS)),
        "sums of two products of u8 and s8 saturate on processors without VNNI, except with weights that are constants",
        EXACT,
    ),
    OracleError(
        "causal-attention-of-one-query", ("Attention",),
        "with is_causal, and a mask or a past, the one query sees the keys after it before opset 25", NOTED,
        concerns=lambda node: _attribute(node, "is_causal", 0) == 1 and any(node.input[3:5]), since="1.23.2",
        until="1.27.0",
    ),
    OracleError(
        "labels-of-two-classes", ("TreeEnsembleClassifier",),
        "an ensemble of two classes whose leaves vote for both returns 0 and 1 in place of the labels", NOTED,
        concerns=_votes_for_both,
    ),
    OracleError(
        "grid-of-one-pixel", ("AffineGrid",),
        "with align_corners an axis of one pixel lies at its beginning, not in its middle", NOTED,
        concerns=lambda node: _attribute(node, "align_corners", 0) == 1,
    ),
)  # fmt: skip


def row(id: str) -> OracleError:
    """The row of this id."""
    return next(each for each in ORACLE_ERRORS if each.id == id)


def errors_in(nodes: Iterable[Any]) -> Iterator[tuple[OracleError, Any]]:
    """The rows that a node shows by its attributes, each with the node."""
    for node in nodes:
        for each in ORACLE_ERRORS:
            if not each.shows and node.op_type in each.operators and each.concerns(node):
                yield each, node
