"""Weights of matrix products: the form that the runtime packs faster, and matrices that are read in both ways."""

from collections import defaultdict
from collections.abc import Hashable, Sequence

from mo_loop.graph.tensor import SAMPLE, ArrayTensor, DeferredTensor, FileTensor, Tensor, same_bytes
from mo_loop.graph.transposed_tensor import TransposedTensor
from mo_loop.graph.types import bf16, f16, f32
from mo_loop.transforms.replace import drop_dead
from mo_loop.transforms.vocabulary import Constant, FunctionPass, Graph, Value, node_pass, ops


@node_pass((ops.Transpose,))
def TransposeMatMul(node: ops.Transpose) -> str:
    """MatMul(x, Transpose(w))  ->  MatMul(x, w) {transpose_b}, where w is constant and its last two axes change places

    The .bin holds the weights as the model has them, and the runtime does not transpose them while it compiles. w may
    be converted, dequantised or reshaped.
    """
    weights, order = node.operands[0], node.inputs[1]
    if not _is_constant(weights):
        return "its input is not constant"
    axes = None if order is None else order.type.integers
    rank = weights.rank
    if axes is None or rank is None or tuple(axes) != (*range(rank - 2), rank - 1, rank - 2):
        return "it does not exchange the last two axes"
    products = [use.node for use in node.output.uses if use.port == 1 and isinstance(use.node, ops.MatMul)]
    if not products:
        return "no MatMul has it as second input"
    for product in products:
        product.graph.set_input(product, 1, weights)
        product.transpose_b = not product.transpose_b
    drop_dead([node])
    return ""


def _is_constant(value: Value) -> bool:
    """Whether a value is a constant, or one that is converted, dequantised or reshaped."""
    node = value.node
    while isinstance(node, ops.SameElements | ops.Convert) and node.inputs[0] is not None:
        node = node.inputs[0].node
    parts = node.inputs if isinstance(node, ops.Dequantize) else (node.outputs[0],)
    return all(each is None or isinstance(each.node, Constant) for each in parts)


class _Matrices:
    """The large constant matrices of a graph and its bodies by type, shape, and first and last element."""

    def __init__(self, graph: Graph) -> None:
        self._of_shape: dict[Hashable, list[Constant]] = defaultdict(list)
        self._by_ends: dict[Hashable, dict[bytes, list[Constant]]] = {}
        for scope in graph.scopes():
            for constant in scope.of(Constant):
                if _is_large(constant.tensor):
                    self._of_shape[constant.tensor.dtype, constant.tensor.shape].append(constant)

    def __bool__(self) -> bool:
        return bool(self._of_shape)

    def transposed(self, tensor: Tensor) -> list[Constant]:
        """The tensors that may have the content of `tensor` transposed. Only the ends of these candidates are read."""
        kind = tensor.dtype, tensor.shape[::-1]
        if kind not in self._of_shape:
            return []
        by_ends = self._by_ends.get(kind)
        if by_ends is None:
            by_ends = self._by_ends[kind] = defaultdict(list)
            for each in self._of_shape[kind]:
                by_ends[_ends(each.tensor)].append(each)
        return by_ends.get(_ends(tensor), [])


class ShareTransposedConstants(FunctionPass):
    """MatMul(x, w), Gather(v, i) where v is w transposed  ->  MatMul(x, v) {transpose_b}, Gather(v, i)

    Language models embed tokens and compute their scores with one matrix; exporters write it a second time, transposed.
    The .bin then holds it once. The matrices are of floats, with more than SAMPLE bytes. v may be in another scope.
    """

    bodies = "never"  # all scopes are examined together

    def run_on_graph(self, graph: Graph) -> bool:
        matrices = _Matrices(graph)
        changed = False
        for scope in graph.scopes() if matrices else ():
            for node in self.candidates(scope, ops.MatMul):
                changed = self._share(node, matrices) or changed
        return changed

    def _share(self, node: ops.MatMul, matrices: _Matrices) -> bool:
        weights = None if node.inputs[1] is None else node.inputs[1].node
        if node.transpose_b or not isinstance(weights, Constant) or not _is_large(weights.tensor):
            return self.refuse(node, "its weights are not a large constant matrix, or are transposed already")
        for other in matrices.transposed(weights.tensor):
            if other is not weights and other in other.graph and _is_transposed(weights.tensor, other.tensor):
                node.graph.set_input(node, 1, _in_scope(other, node.graph).output)
                node.transpose_b = True
                drop_dead([weights])
                return self.accept(node)
        return self.refuse(node, "no constant holds its weights transposed")


def _is_large(tensor: Tensor) -> bool:
    shape = tensor.shape
    if len(shape) != 2 or shape[0] * shape[1] * tensor.dtype.bits <= 8 * SAMPLE:  # most constants are small
        return False
    return min(shape) > 1 and tensor.dtype.is_float and not isinstance(tensor, DeferredTensor)


def _ends(tensor: Tensor) -> bytes:
    """The bits of the first and of the last element, which a matrix has in common with the transposed one."""
    sample, size = tensor.sample(), tensor.dtype.size_of(1)
    return sample[:size] + sample[-size:]


def _is_transposed(a: Tensor, b: Tensor) -> bool:
    """Whether two large matrices have the same bits, one of them transposed; samples are compared first."""
    transposed = TransposedTensor(a)
    return transposed.sample() == b.sample() and same_bytes(transposed, b)


def _in_scope(constant: Constant, graph: Graph) -> Constant:
    """The constant, or another one of its tensor in another scope: the .bin holds it once."""
    if constant.graph is graph:
        return constant
    made = Constant(constant.tensor, graph=graph, name=constant.name)
    made.origins = constant.origins
    return made


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
            uses = [(use.node, use.port) for use in each.output.uses]
            if not all(isinstance(node, ops.MatMul) and port == 1 and not node.transpose_b for node, port in uses):
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


def _is_large_matrix(tensor: Tensor) -> bool:
    """Whether a tensor is a matrix, also in several dimensions of 1, that can be read in blocks and is worth it."""
    shape = tensor.shape
    if len(shape) < 2 or shape[-1] * shape[-2] * tensor.dtype.bits < 8 * LEAST:  # most constants are small
        return False
    is_matrix = min(shape[-2:]) > 1 and all(each == 1 for each in shape[:-2])
    return is_matrix and tensor.dtype in (f32, f16, bf16) and isinstance(tensor, ArrayTensor | FileTensor)


def _span(tensor: Tensor) -> Hashable:
    """Equal for tensors of the same bytes of a file; otherwise for the same tensor."""
    return (tensor.path, tensor.offset, tensor.dtype, tensor.shape) if isinstance(tensor, FileTensor) else tensor
