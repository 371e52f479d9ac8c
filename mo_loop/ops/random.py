"""Random numbers."""


from mo_loop.graph.dimension import fresh
from mo_loop.graph.types import ElementType, TensorType
from mo_loop.ops.base import Op
from mo_loop.ops.infer import dims_of, same_dtype, vector_length


class RandomUniform(Op, opset=8, index=("shape",), ranks={"shape": 1}, single=("low", "high"), random=True):
    """Uniformly distributed in [low, high); if both seeds are 0, new in every inference. Spec: RandomUniform-8."""

    output_type: ElementType
    global_seed: int = 0
    op_seed: int = 0

    def infer(self, shape, low, high):
        self.require(same_dtype(low, high) is self.output_type, f"bounds of {low.dtype} for {self.output_type}")
        if shape.known is not None:
            return TensorType(self.output_type, dims_of(shape.known))
        length = vector_length(shape)
        return TensorType(self.output_type, None if length is None else tuple(fresh() for _ in range(length)))
