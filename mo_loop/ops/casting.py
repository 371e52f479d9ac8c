"""Changes of element type."""


import numpy as np

from mo_loop.graph.types import ElementType, TensorType, boolean
from mo_loop.ops.base import Elementwise
from mo_loop.ops.values import each, fitting, truth


class Convert(Elementwise, opset=1):
    """The same values in another element type. Spec: Convert-1."""

    destination_type: ElementType

    def infer(self, x):
        to = self.destination_type
        if x.known is None or not (to.is_integer or to is boolean):
            return TensorType(to, x.shape)
        known = each(truth)(x.known) if to is boolean else x.known
        return TensorType(to, x.shape, fitting(known, to))

    def evaluate(self, *inputs):
        with np.errstate(all="ignore"):
            return inputs[0].astype(self.destination_type.numpy)
