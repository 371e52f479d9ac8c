"""Changes of element type."""

from typing import Any

import numpy as np

from mo_loop.ops.base import Op
from mo_loop.ops.values import each, fitting, truth
from mo_loop.types import ElementType, TensorType, boolean


class Convert(Op, opset=1):
    """The same values in another element type. Spec: Convert-1."""

    destination_type: ElementType

    def infer(self, x: Any) -> Any:
        to = self.destination_type
        if x.known is None or not (to.is_integer or to is boolean):
            return TensorType(to, x.shape)
        known = each(truth)(x.known) if to is boolean else x.known
        return TensorType(to, x.shape, fitting(known, to))

    def evaluate(self, *inputs: Any) -> Any:
        with np.errstate(all="ignore"):
            return inputs[0].astype(self.destination_type.numpy)
