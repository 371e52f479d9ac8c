"""Activations, compared with ONNX Runtime."""

import numpy as np

from tests.cases import read_cases

RNG = np.random.default_rng(11)
X = np.concatenate([RNG.uniform(-8, 8, 27), [0.0, -0.0, 30.0, -30.0, 0.5, -0.5, 1.0, -1.0, 6.0]]).astype(np.float32)
X = X.reshape(2, 3, 6)


read_cases(globals())
