"""Models of one operator in a chosen size, from the descriptions of the random operators in tests/fuzz/operators.

    sample = model("TopK", 100_000, "dynamic", "float", 0)      the first drawn configuration, with expected values

Dimensions are drawn as there and multiplied by one number, so that the largest tensor has about the wanted elements.
Operators without a description there have one here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.operators.draw import Draw, Node, NoKernel, Port
from tests.fuzz.operators.kernels import opsets
from tests.fuzz.operators.table import FAMILIES, OPERATORS, operators_of

FORMS = {"static": "static", "dynamic": "symbolic"}
MOST_WRITTEN = 16
"""The size of the result of broadcast inputs, in elements of the largest."""
FARTHEST = 32
"""A range that ends above is not that of a size, but depends on one."""


class Enlarged(Draw):
    """Draws sizes that are `factor` times those of `Draw`, of type `kind` where it is allowed."""

    def __init__(self, op: str, opset: int, seed: str, number: int, factor: float, form: str, kind: str) -> None:
        super().__init__(op, opset, seed, number)
        self.factor, self.dims, self.kind = factor, FORMS[form], kind

    def size(self, low: int = 1, high: int = 5, empty: float = 0) -> int:
        drawn = super().size(low, high, 0)
        return drawn if high > FARTHEST else max(low, round(drawn * self.factor))

    def shape(self, least: int = 0, most: int = 5, **limits: Any) -> list[int]:
        most = min(most, 4) if least <= 4 else most
        return super().shape(max(least, min(2, most)), most, **limits)

    def given(self, array: Any, constant: float, computed: bool = False, fixed: bool = False) -> Port:
        """Not computed from other tensors, whose operators would take time, too."""
        return super().given(array, constant, False, fixed)

    def _drawn_type(self, constraint: str, only: list[str], default: str) -> str:
        if not only or self.kind in only:
            try:
                return super()._drawn_type(constraint, [self.kind], "")
            except NoKernel:
                pass
        return super()._drawn_type(constraint, only, default)


def operators() -> list[str]:
    """The operators that ONNX Runtime runs and that have a description."""
    return [*dict.fromkeys([op for family in FAMILIES for op in operators_of(family)]), *MORE]


def model(op: str, elements: int, form: str, kind: str, number: int) -> Any:
    """The facts and the sample of a configuration; None if it has no tensor of the type or of about that size."""
    from tests.fuzz.operators.trial import drawn

    text = f"{op}/{kind}/{number}"
    newest = opsets(op)[-1][-1]
    factor = 1.0
    for _ in range(4):
        port = _largest(_described(op, newest, text, 0, factor, form, kind))
        if port is None or port.array.size == 0 or port.rank == 0:
            return None
        factor *= (elements / port.array.size) ** (1 / port.rank)
    is_wanted = port.array.dtype.name == ("float32" if kind == "float" else kind)
    if not is_wanted or not elements / 4 <= port.array.size <= elements * 4:
        return None
    facts, sample = drawn(text, text, op, newest, lambda *given: _described(*given, factor, form, kind), 1)
    written = max(array.size for _, array in sample.expected[0])
    return (facts, sample) if written <= MOST_WRITTEN * elements else None


def _described(op: str, opset: int, seed: str, number: int, factor: float, form: str, kind: str) -> Node:
    describe: Callable[[Draw], Node] = MORE.get(op) or OPERATORS[op]
    node = describe(Enlarged(op, opset, seed, number, factor, form, kind))
    node.every = True
    return node


def _largest(node: Node) -> Port | None:
    return max((port for port in node.ports if port), key=lambda port: port.array.size, default=None)


# -- operators without a description


def _fourier(d: Draw) -> Node:
    real = d.chance(0.5)
    x = d.data([d.size(1, 3), d.size(), 1 if real else 2], d.dtype("T1", "float"), constant=0)
    inverse = not real and d.chance(0.5)
    return d.node([x, None, d.parameter(np.array(1), constant=1)], onesided=int(real), inverse=int(inverse), atol=1e-1)


def _short_time_fourier(d: Draw) -> Node:
    x = d.data([d.size(1, 2), d.size(3, 6), 1], d.dtype("T1", "float"), constant=0)
    frame = max(4, x.shape[1] // 32)
    step, length = (d.parameter(np.array(each), constant=1) for each in (max(1, frame // 2), frame))
    window = d.given(np.hanning(frame).astype(np.float32), 1)
    return d.node([x, step, window, length], atol=1e-1)


def _determinant(d: Draw) -> Node:
    side = d.integer(2, 4)
    return d.node([d.data([d.size(), side, side], d.dtype("T", "float"), "unit", constant=0)], atol=1e-3)


def _features(**attributes: Any) -> Callable[[Draw], Node]:
    """An operator of ai.onnx.ml over rows of 8 features."""

    def describe(d: Draw) -> Node:
        return d.node([d.data([d.size(), 8], np.float32, constant=0)], **attributes)

    return describe


def _labels(d: Draw) -> Node:
    x = d.data([d.size()], np.int64, constant=0)
    return d.node([x], keys_int64s=list(range(-12, 13)), values_floats=[each / 4 for each in range(25)])


def _one_hot(d: Draw) -> Node:
    return d.node([d.data([d.size()], np.int64, constant=0)], cats_int64s=list(range(-12, 13)), zeros=1)


def _extracted(d: Draw) -> Node:
    x = d.data([d.size(), 8], np.float32, constant=0)
    return d.node([x, d.parameter(np.array([[0, 3, 5]]), constant=1)])


def _supports(count: int, **attributes: Any) -> Callable[[Draw], Node]:
    """A support vector machine of `count` vectors of 8 features."""

    def describe(d: Draw) -> Node:
        source = np.random.default_rng(1)
        vectors, weights = source.standard_normal(count * 8), source.standard_normal(count)
        return d.node(
            [d.data([d.size(), 8], np.float32, constant=0)], coefficients=weights.tolist(), kernel_type="RBF",
            kernel_params=[0.1, 0.0, 3.0], support_vectors=vectors.tolist(), rho=[0.3], atol=1e-3, **attributes,
        )

    return describe


def _ngrams(d: Draw) -> Node:
    x = d.data([d.size(), 16], np.int64, constant=0)
    pool = [*range(-6, 6), *(each % 12 - 6 for each in range(24))]
    return d.node(
        [x], max_gram_length=2, max_skip_count=0, min_gram_length=1, mode="TF", ngram_counts=[0, 12],
        ngram_indexes=list(range(24)), pool_int64s=pool,
    )


MORE: dict[str, Callable[[Draw], Node]] = {
    "DFT": _fourier, "STFT": _short_time_fourier, "Det": _determinant, "TfIdfVectorizer": _ngrams,
    "ai.onnx.ml::Binarizer": _features(threshold=0.5), "ai.onnx.ml::Normalizer": _features(norm="L2"),
    "ai.onnx.ml::Imputer": _features(imputed_value_floats=[1.5], replaced_value_float=0.5),
    "ai.onnx.ml::Scaler": _features(offset=[0.5] * 8, scale=[2.0] * 8),
    "ai.onnx.ml::LinearRegressor": _features(coefficients=[0.1 * each for each in range(16)], targets=2),
    "ai.onnx.ml::SVMRegressor": _supports(32, n_supports=32),
    "ai.onnx.ml::LabelEncoder": _labels, "ai.onnx.ml::OneHotEncoder": _one_hot,
    "ai.onnx.ml::ArrayFeatureExtractor": _extracted,
}
