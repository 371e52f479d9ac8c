"""Normalisation and Dropout, compared with ONNX Runtime or the ONNX reference evaluator."""

import numpy as np

from mo_loop.target import Processor as Processor
from tests.cases import read_cases
from tests.running.processor import wrong_under as wrong_under

RNG = np.random.default_rng(13)


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def statistics(*shape, dtype=np.float32):
    """Scale, bias, mean and variance."""
    values = [RNG.uniform(0.5, 2, shape).astype(dtype) for _ in range(4)]
    return dict(zip(("scale", "bias", "mean", "variance"), values, strict=True))


read_cases(globals())
