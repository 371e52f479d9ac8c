"""What is refused, or computed otherwise, of operators that are translated: the sentences of the operator table.

    of("Div")       # (Limit("Div Mod", "integers of 32 bits beyond 2^24", "the runtime divides in f32"),)

That an unknown rank is refused where axes depend on it goes without saying, and is not repeated here. What random
configurations of operators meet of this (`tools/fuzz_ops.py`) is held against these entries by their names.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """`operators` are names with spaces between, with their domain where it is not the default one; * is all."""

    operators: str
    condition: str
    reason: str

    def __str__(self) -> str:
        return f"{self.condition}: {self.reason}"


_RANK = "the rank of the result hangs on it, and the runtime compiles known ranks only"
_NO_TYPE = "refused; the IR does not have them"
_STRINGS = "refused; the IR passes strings through, and has no operation on them"

LIMITS: dict[str, Limit] = {
    # -- of all operators
    "strings": Limit("*", "strings", "the runtime's operations on strings corrupt memory, or do not exist"),
    "infinite doubles": Limit(
        "*", "f64 with infinities", "the runtime computes f64 in f32 and brings infinities to its largest number"
    ),
    "wide integers": Limit(
        "*",
        "integers of 64 bits, or of 32 without sign, beyond 2^24",
        "the runtime holds all integers in 32 bits with a sign, and compares, divides and adds up in f32",
    ),
    "empty constants": Limit(
        "*",
        "a constant without elements beside a tensor of unknown size",
        "the runtime does not survive the compilation",
    ),
    "unknown lengths": Limit(
        "*", "axes, a shape or repeats of which not even the number is known before the run", _RANK
    ),
    # -- of some
    "small floats": Limit(
        "QuantizeLinear Cast CastLike",
        "to 8-bit floats",
        "the runtime rounds to 16 bits first: a number beside the middle between two others goes the other way",
    ),
    "integer division": Limit("Div Mod", "integers of 32 bits beyond 2^24", "the runtime divides in f32"),
    "reducing no integers": Limit(
        "ReduceMax ReduceMin",
        "no integers of 64 bits",
        "the limit of the type does not fit into the 32 bits of the runtime",
    ),
    "empty products": Limit(
        "Gemm",
        "sums over nothing",
        "the runtime leaves what was in memory where the common dimension is 0 and something is added",
    ),
    "unknown depth": Limit("GatherND", "indices whose last dimension is known at run time only", _RANK),
    "squeezing unknown sizes": Limit("Squeeze", "no axes, and a dimension that is known at run time only", _RANK),
    "samples by region": Limit(
        "RoiAlign",
        "mode max without a number of samples",
        "how many samples there are hangs on the size of each region; the runtime's own maximum is another one",
    ),
    "NaN beside bounds": Limit("Clip Relu Max Min", "NaN", "the runtime's Clamp, Maximum and Minimum do not keep it"),
    "absent bounds": Limit(
        "Clip",
        "infinities, and a bound that is absent",
        "an absent bound is no bound: ONNX takes the largest finite number",
    ),
    "unknown filters": Limit(
        "Conv ConvTranspose ConvInteger QLinearConv",
        "filters, or their zero points, of which a size is known at run time only",
        "the runtime has no convolution for them",
    ),
    "far slices": Limit("Slice", "bounds of the run beyond 32 bits", "the runtime cuts 64-bit inputs off at 32 bits"),
    "empty batches": Limit(
        "MaxPool AveragePool LpPool", "a batch of 0", "the runtime gives no tensor of the right shape"
    ),
    "no steps": Limit(
        "LSTM GRU RNN", "a length of 0", "the runtime's sequences of length 0 leave their last state as it was"
    ),
    "no channels": Limit("BatchNormalization", "no channels", "the runtime wants one at least"),
    "places without padding": Limit(
        "MaxPool",
        "indices, and padding by a rule that hangs on a size known at run time only",
        "the runtime finds the indices without that padding",
    ),
    "one hidden unit": Limit(
        "LSTM GRU RNN",
        "a hidden size of 1",
        "the runtime does not compile two products in a row with inner dimensions of 1",
    ),
    "mean of nothing": Limit("ReduceMean", "nothing", "the mean of nothing is 0 in the runtime"),
    "training on nothing": Limit(
        "BatchNormalization", "training on nothing", "the mean of nothing is 0 in the runtime"
    ),
    "types of casts": Limit("Cast CastLike", "f8e4m3fnuz, f8e5m2fnuz, i2 and complex numbers", _NO_TYPE),
    "rounding of casts": Limit("Cast CastLike", "to f4e2m1 and f8e8m0", "refused; the runtime rounds otherwise"),
    "types of quantisation": Limit("QuantizeLinear DequantizeLinear", "f8e4m3fnuz, f8e5m2fnuz and i2", _NO_TYPE),
    "products of small floats": Limit(
        "QLinearMatMul", "8-bit floats", "refused; DequantizeLinear and MatMul do the same"
    ),
    "bits of floats": Limit(
        "BitCast", "between floats and integers known at run time only", "refused; arithmetic loses the bits of NaN"
    ),
    "strings of words": Limit(
        "Equal TfIdfVectorizer ai.onnx.ml::ArrayFeatureExtractor ai.onnx.ml::LinearClassifier "
        "ai.onnx.ml::LabelEncoder ai.onnx.ml::OneHotEncoder",
        "strings",
        _STRINGS,
    ),
    "wide keys": Limit(
        "ai.onnx.ml::LabelEncoder ai.onnx.ml::OneHotEncoder",
        "keys beyond 32 bits",
        "refused; the runtime holds integers in 32 bits",
    ),
    "seeds": Limit(
        "RandomUniform RandomUniformLike RandomNormal RandomNormalLike Bernoulli Multinomial",
        "a seed",
        "gives the same numbers each time the model is loaded, but not those of other runtimes",
    ),
    "votes": Limit(
        "ai.onnx.ml::TreeEnsembleClassifier",
        "two classes of which not all leaves vote for the first",
        "refused; the text of ONNX and what runtimes do contradict each other",
    ),
    "support vectors": Limit(
        "ai.onnx.ml::SVMClassifier",
        "fitted probabilities, or no support vectors",
        "refused; the votes of pairs of classes are not translated",
    ),
    "deformed volumes": Limit("DeformConv", "other tensors than images", "refused; the runtime has images alone"),
    "cubic volumes": Limit("GridSample", "cubic interpolation of volumes", "refused; linear and nearest are composed"),
    "unknown axes": Limit(
        "Squeeze Unsqueeze Tile", "axes or repeats known at run time only, and their number too", _RANK
    ),
    "far trips": Limit(
        "Loop",
        "a trip count beyond 2^31 - 1 that is known at run time only",
        "the runtime cannot tell it from a negative one",
    ),
}
"""Name -> limit. Those of all operators come first."""


def of(operator: str) -> tuple[Limit, ...]:
    """The limits of one operator by itself, given with its domain where that is not the default one."""
    return tuple(limit for limit in LIMITS.values() if operator in limit.operators.split())


def of_all() -> tuple[Limit, ...]:
    """The limits of all operators."""
    return tuple(limit for limit in LIMITS.values() if limit.operators == "*")
