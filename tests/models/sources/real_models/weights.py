"""Random weights that keep the deviation of a signal near 1 through a deep network."""

import math

import numpy as np

RESIDUAL = 0.3
"""The factor of a residual branch, so that the sum of many branches stays small."""


def steady_weights(name: str, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Matrices and kernels with a deviation of 1 / sqrt(inputs of a result), factors around 1, small offsets.

    A network computes something of its input only if its signal neither vanishes nor grows: quantisation to eight bits
    would show nothing otherwise.
    """
    values = random.standard_normal(shape, dtype=np.float32)
    if name.endswith("running_var"):
        return np.float32(1) + np.float32(0.2) * np.abs(values)
    if len(shape) < 2:
        is_factor = name.endswith("weight")
        centre = (RESIDUAL if _ends_branch(name) else 1) if is_factor else 0
        return np.float32(centre) + np.float32(0.05 * (centre if is_factor else 1)) * values
    return values * np.float32(_gain(shape) / math.sqrt(math.prod(shape[1:])))


def _ends_branch(name: str) -> bool:
    """The last normalisation of a residual branch of ResNet."""
    return ".bn3." in name


def _gain(shape: tuple[int, ...]) -> float:
    """A rectifier after a convolution halves the mean square."""
    return math.sqrt(2) if len(shape) == 4 else 1.0
