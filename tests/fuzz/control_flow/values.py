"""The values of a random model: tensors and lists, with element type, shape, and a bound of their magnitude."""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

FLOAT, INT64, INT32, BOOL = (
    int(kind) for kind in (TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)
)
NUMPY: dict[int, type] = {FLOAT: np.float32, INT64: np.int64, INT32: np.int32, BOOL: np.bool_}
LIMIT = {FLOAT: 8.0, INT64: 500.0, INT32: 500.0, BOOL: 1.0}
STATE_LIMIT = {FLOAT: 2.0, INT64: 20.0, INT32: 20.0, BOOL: 1.0}

Dim = int | str
Shape = tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Val:
    """A value: its name, element type, shape, and a bound of its magnitude."""

    name: str
    dtype: int
    shape: Shape
    mag: float = 1.0

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        return all(isinstance(d, int) for d in self.shape)


@dataclass(frozen=True, slots=True)
class Seq:
    """A list of tensors: its name, the element type, the sizes of an element, the least length, a bound of magnitude.

    A size of None differs between elements.
    """

    name: str
    dtype: int
    sizes: tuple[Dim | None, ...]
    least: int = 0
    mag: float = 1.0

    @property
    def rank(self) -> int:
        return len(self.sizes)
