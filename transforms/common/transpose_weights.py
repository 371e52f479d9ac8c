"""Weights of matrix products in the form that the runtime packs faster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

from mo_loop import ops
from mo_loop.graph import Graph, Use
from mo_loop.graph.tensor import ArrayTensor, FileTensor, Tensor
from mo_loop.graph.transposed_tensor import TransposedTensor
from mo_loop.graph.types import bf16, f16, f32
from mo_loop.ops.base import Constant
from mo_loop.transforms.function_pass import FunctionPass

LEAST = 1 << 16
"""Bytes of the smallest weights that are transposed: smaller ones compile in the same time in both forms."""
MOST = 1 << 29
"""Bytes of all weights of a model that are transposed: of more of them, transposing takes longer than copying."""


class TransposeWeights(FunctionPass):
    """MatMul(x, w : [K, N])  ->  MatMul(x, transposed w : [N, K]) {transpose_b}, where w is a Constant

    The runtime computes with [N, K], and transposes other weights while it compiles a model. ovc writes this form, too.
    The weights are transposed while the .bin is written. Weights that anything else reads, in any scope, stay:
    the .bin would hold them twice.
    """

    bodies = "never"  # all scopes are examined together

    def run_on_graph(self, graph: Graph) -> bool:
        alike: dict[Hashable, list[Constant]] = defaultdict(list)
        for scope in graph.scopes():
            for constant in scope.of(Constant):
                if _is_large_matrix(constant.tensor):
                    alike[_span(constant.tensor)].append(constant)
        chosen = [each for each in alike.values() if self._can_be_transposed(each)]
        if sum(each[0].tensor.nbytes for each in chosen) > MOST:
            return False
        for constants in chosen:
            self._transpose(constants)
        return bool(chosen)

    def _can_be_transposed(self, constants: Sequence[Constant]) -> bool:
        """Whether matrix products alone read the constants of one tensor, and not transposed."""
        for each in constants:
            if self.leaves(each):
                return False
            if not all(map(_reads_columns, each.output.uses)):
                return self.refuse(each, "not only the columns of matrix products read it")
        return True

    def _transpose(self, constants: Sequence[Constant]) -> None:
        tensor = TransposedTensor(constants[0].tensor)
        for old in constants:
            self.at = old
            new = Constant(tensor, graph=old.graph, name=old.name)
            new.rt_info.update(old.rt_info)
            for node, port in old.output.uses:
                assert isinstance(node, ops.MatMul)
                old.graph.set_input(node, port, new.output)
                node.transpose_b = True
            new.output.take_names(old.output)
            old.graph.remove(old)
            self.accept(new)
        self.at = None


def _reads_columns(use: Use) -> bool:
    return isinstance(use.node, ops.MatMul) and use.port == 1 and not use.node.transpose_b


def _is_large_matrix(tensor: Tensor) -> bool:
    """Whether a tensor is a matrix, also in several dimensions of 1, that can be read in blocks and is worth it."""
    shape = tensor.shape
    if len(shape) < 2 or shape[-1] * shape[-2] * tensor.dtype.bits < 8 * LEAST:  # most constants are small
        return False
    is_matrix = min(shape[-2:]) > 1 and all(each == 1 for each in shape[:-2])
    return is_matrix and tensor.dtype in (f32, f16, bf16) and isinstance(tensor, ArrayTensor | FileTensor)


def _span(tensor: Tensor) -> Hashable:
    """Equal for tensors of the same bytes of a file; otherwise for the same tensor."""
    if isinstance(tensor, FileTensor):
        return tensor.path, tensor.offset, tensor.dtype, tensor.shape
    return tensor
