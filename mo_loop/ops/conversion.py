"""Changes of element type."""

from typing import Any

import numpy as np

from mo_loop.ops.base import Op
from mo_loop.types import ElementType, TensorType, boolean


class Convert(Op, opset=1):
    """The same values in another element type. Spec: Convert-1."""

    destination_type: ElementType

    def infer(self, x: Any) -> Any:
        known = x.known if self.destination_type.is_integer else None
        if self.destination_type is boolean and x.integers is not None:
            known = (x.known != 0).astype(int).astype(object)
        return TensorType(self.destination_type, x.shape, known)

    def evaluate(self, *inputs: Any) -> Any:
        with np.errstate(all="ignore"):
            return inputs[0].astype(self.destination_type.numpy)
