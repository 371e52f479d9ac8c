"""Inverse matrices and distances."""

from dataclasses import replace

import numpy as np

from tests.fuzz.operators.draw import Draw, Node


def inverse(d: Draw) -> Node:
    """Matrices that are far from singular."""
    dtype, size = d.dtype("T"), d.size(1, 5, 0)
    x = d.data([*d.shape(0, 2), size, size], dtype, "unit")
    array = x.array.astype(np.float64) / max(size, 1) + np.diag(np.resize((2.0, -1.5, 1.0), size))
    rolled = np.roll(array, 1, axis=-2) if d.chance(0.4) else array
    return d.node([replace(x, array=rolled.astype(dtype))], atol=1e-4 if dtype.itemsize > 2 else 1e-2)


def distances(d: Draw) -> Node:
    dtype, size = d.dtype("T"), d.size(empty=0)
    a, b = d.data([d.size(), size], dtype), d.data([d.size(), size], dtype, constant=0.4)
    return d.node([a, b], metric=d.maybe(d.pick("sqeuclidean", "euclidean")), atol=1e-2)


OPERATORS = {"com.microsoft::Inverse": inverse, "com.microsoft::CDist": distances}
