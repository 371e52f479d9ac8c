"""The goal of a row of tools/bench_operators.py, and the rows that are above it, each with its reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tools.benching.loop_times import Row

OF_OVC, OF_ORT = 1.1, 2.0
START_OF_OVC, START_OF_ORT = 3.0, 30.0
"""Microseconds that an inference may take more: they are those of a node, and of the start of an inference."""


@dataclass(frozen=True)
class Slow:
    """Rows above their goal, by patterns of their names, and why; with `as_peer` those that take ovc's IR as long."""

    rows: str
    reason: str
    as_peer: bool = False

    def covers(self, row: Row) -> bool:
        is_named = any(fnmatchcase(row.name, each) for each in self.rows.split())
        return is_named and (not self.as_peer or ("ovc" in row.times and row.times["ours"] <= longest_of_ovc(row)))


KERNEL = "the plugin computes it one element at a time, or without the processor's vectors"

SLOW: tuple[Slow, ...] = (
    Slow("*", "the IR of ovc takes as long: the plugin has no faster form of the operation", as_peer=True),
    Slow(
        "ReduceMax/* ReduceMin/*",
        "floats are halved before and doubled after, integers of 32 bits are reduced in two steps: the runtime's "
        "operation returns the largest finite number for infinities, and compares in f32",
    ),
    Slow("TopK/*", "equal elements keep their order, which the runtime's fast search does not"),
    Slow(
        "Hardmax/*/dynamic/* ArgMax/*/dynamic/* ArgMin/*/dynamic/*",
        "a row of unknown length may have more places than f32 counts: they are reduced in two steps",
    ),
    Slow(
        "QuantizeLinear/* *::QuantizeLinear/* DynamicQuantizeLinear/* *::DynamicQuantizeMatMul/*",
        "a quotient near a half is rounded as ONNX does, which FakeQuantize does not, and with sizes that are unknown "
        "the plugin converts to 8 bits one element at a time",
    ),
    Slow("Upsample/* Resize/* *::CropAndResize/*", "Interpolate gives other numbers, so that several operators sample"),
    Slow("GatherElements/* GatherND/* *::GatherND/* OneHot/*", "indices may count from the end"),
    Slow("GlobalAveragePool/*", "ReduceMean adds equal channels in different orders, AvgPool does not"),
    Slow("GroupNormalization/*", "MVN, whose result the plugin stores before it is scaled"),
    Slow("BatchNormalization/*", "training: the plugin stores the centred batch, its squares and the result"),
    Slow("MatMul/*/dynamic*", "a product that may have two columns gets three zeros: it is wrong without AVX2"),
    Slow("LRN/*", "LRN of the runtime has no window of even size, and fails for an unknown number of channels"),
    Slow("Tile/*", "Tile with several repeats of the run gives wrong values: there is one for each axis"),
    Slow("Softsign/*/dynamic/* LpNormalization/*/dynamic/* Celu/*", "two operators, which the plugin does not join"),
    Slow(
        "Cast/* CastLike/* Identity/* Floor/* Expand/* Split/*",
        "the model is one copy, whose time is that of its start, or of the memory",
    ),
    Slow(
        "*::Unique/*",
        "TopK sorts 100,000 elements in 14 ms, Unique of the plugin in 6 without places, which take n^2 steps; "
        "SearchSorted, which would find them, takes more than a minute",
    ),
    Slow("CumProd/*", "the IR has no running product: log2(n) steps double the number of factors"),
    Slow(
        "*::LinearAttention/* *::GatedDeltaNet/* *::VarlenCausalConvWithState/* *::EngramGate/* *::MoE/* "
        "*::MaxpoolWithMask/* *::GroupQueryAttention/* *::DecoderMaskedMultiHeadAttention/* *::SVMRegressor/* "
        "*::Imputer/*",
        "the IR has no such operation: it is composed",
    ),
    Slow("GRU/* RNN/*", "with lengths, the plugin computes all steps; its cell before the reset is slow"),
    Slow("TensorScatter/* ScatterElements/* MaxUnpool/*", "the IR needs an index for each element, or row of them"),
    Slow("Pad/* *::Pad/*", "pads by a rule that the runtime lacks, or a Pad that it does not vectorise"),
    Slow(
        "NonMaxSuppression/* DeformConv/* *::Inverse/* *::ConvTransposeWithDynamicPads/* Det/* "
        "*::LinearAttentionGate/*/dynamic/*",
        KERNEL,
    ),
    Slow("Greater*/* Less*/* Equal/* ImageScaler/*", "the plugin converts the result, which takes longer"),
)


def goal(row: Row) -> float:
    """The time of ours divided by the longest that is allowed; 0 without times, infinite for wrong numbers."""
    if row.problem:
        return float("inf")
    return row.times["ours"] / min(OF_ORT * row.times["ort"] + START_OF_ORT, longest_of_ovc(row))


def longest_of_ovc(row: Row) -> float:
    """The longest time that is allowed, relative to ovc's IR."""
    return OF_OVC * row.times["ovc"] + START_OF_OVC if "ovc" in row.times else float("inf")


def reason(row: Row) -> str:
    """Why the row is above its goal; empty if nothing is known."""
    return next((each.reason for each in SLOW if each.covers(row)), "")


def stale(rows: Sequence[Row]) -> list[str]:
    """The entries whose rows were all measured and are within their goals."""
    found = []
    for each in SLOW:
        covered = [row for row in rows if each.covers(row)]
        if covered and all(goal(row) <= 1 for row in covered):
            found.append(f"no longer holds: {each.rows}: {each.reason}")
    return found
