"""Results that depend on constants alone: the runtime folds them, or computes them once when it compiles the model."""

from collections.abc import Container, Iterable

import numpy as np

from mo_loop.graph.shape import element_count, is_static
from mo_loop.graph.types import string
from mo_loop.ops.control import Control, Loop
from mo_loop.target import CRASH, ERROR, GPU, NEVER, Processor
from mo_loop.transforms.function_pass import node_pass
from mo_loop.transforms.port_maps import iteration_number
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.runtime import inference
from mo_loop.transforms.vocabulary import Constant, F, FunctionPass, Gap, Graph, Node, Value, ops

ELEMENTWISE = (ops.Binary, ops.Select, ops.PReLU)
"""Operations that write into the memory of their first input. A chain of them is one operation of the runtime, so the
first input of the chain may be any input of its nodes."""


class CopyComputedConstants(FunctionPass):
    """Maximum(v, x)  ->  Maximum(Barrier(v, memory), x), where v depends on constants alone and x does not
       MatMul(c, w)  ->  MatMul(Barrier(c, memory), w), where c is constant and w compressed
       Slice(c, 0, n)  ->  Slice(c, 0, Barrier(n, value)), where the result depends on constants and its size is unknown

    The runtime computes v once, when it compiles the model. Constants that it folds are safe, because it never writes
    into them: those operations have a numpy form here too. It folds no Gather and no MatMul of compressed weights:
    constants that are left in one are too large to be folded here, and compressed to f16 later.
    """

    instead = "`Tile` by a number known only at run time"
    avoids = (
        Gap(
            "constant-iterator-in-place",
            "a TensorIterator of constants is computed once, and an elementwise operation after it overwrites its "
            "result",
        ),
        Gap(
            "constant-operation-in-place",
            "other operations of constants that the runtime does not fold, such as ReverseSequence, Convolution and "
            "LSTMSequence, are computed once, and an elementwise operation after them overwrites the result",
        ),
        Gap(
            "computed-constant-overwritten",
            "a result of constants alone that is not folded, such as that of a TensorIterator, is computed once; an "
            "elementwise operation overwrites it, and later inferences read the new values",
        ),
        Gap(
            "compressed-constant-in-place",
            "a `MatMul` or `Gather` of constants is computed once, and an elementwise operation after it overwrites "
            "the result, if a constant is compressed: to 8 bits or less, or to f16 in a `MatMul`",
        ),
        Gap(
            "constant-times-compressed", "`MatMul` of a constant and weights of at most 8 bits does not compile",
            "`Tile` of the constant by a number known only at run time", ERROR, since="2025.0.0",
            on={Processor.SSE41: NEVER},
        ),
        Gap(
            "constant-of-unknown-size",
            "an operation of constants does not compile if the runtime does not fold it and its result has an "
            "unknown size", "a number plus a zero that cannot be folded", ERROR,
        ),
    )

    def run_on_graph(self, graph: Graph) -> bool:
        computed = inference.computed_from_constants(graph)
        if changed := self._hide_numbers(_computed_once(computed)):
            computed = inference.computed_from_constants(graph)
        for product in self.candidates(graph, ops.MatMul) if computed else ():
            if product in computed and self._compute_at_run_time(product):
                changed, computed = True, inference.computed_from_constants(graph)
        once = _computed_once(computed)
        for kind in ELEMENTWISE if once else ():
            for node in self.candidates(graph, kind):
                changed = self._isolate(node, once) or changed
        return changed

    def _hide_numbers(self, once: Iterable[Node]) -> bool:
        """Hide an input of each first node whose result has an unknown size."""
        hidden: set[Node] = set()
        for node in once:
            if any(each.node in hidden for each in node.operands):
                hidden.add(node)
            elif not isinstance(node, Loop) and not all(is_static(each.shape) for each in node.outputs):
                numbers = [(port, each) for port, each in enumerate(node.inputs) if each is not None and each.dtype]
                if not numbers:  # an operator that could not be converted
                    continue
                port, value = min(numbers, key=lambda each: _cost(each[1]))
                node.graph.set_input(node, port, F.Barrier(value, hides="value"))
                hidden.add(node)
                self.accept(node)
        return bool(hidden)

    def _compute_at_run_time(self, product: ops.Op) -> bool:
        """2024.6 packs a second factor that is hidden before it is computed: always hide the first."""
        first = product.operands[0]
        if not any(map(_is_compressed, product.inputs)):
            return self.refuse(product, "no factor is compressed")
        product.graph.set_input(product, 0, F.Barrier(first, hides="memory"))
        return self.accept(product)

    def _isolate(self, node: ops.Op, once: Container[Node]) -> bool:
        values = [] if node in once else [each for each in node.inputs if each and each.node in once]
        exposed = [each for each in values if _fits(each, node.output)]
        if not exposed:
            return self.refuse(node, "no input is computed once and overwritten")
        for value in dict.fromkeys(exposed):
            readers = [use for use in value.uses if use.node not in once]
            move_readers(value, F.Barrier(value, hides="memory"), readers)
        return self.accept(node)


def _cost(value: Value) -> tuple[bool, bool, int]:
    """The preference for the input to which a zero is added: integers, computed ones, and few."""
    count = element_count(value.shape)
    return not value.dtype.is_integer, isinstance(value.node, Constant), count if isinstance(count, int) else 0


def _computed_once(computed: Iterable[Node]) -> dict[Node, None]:
    """The nodes of `computed` that the runtime does not fold, and all that depend on them, producers first."""
    found: dict[Node, None] = {}
    for node in computed:
        if not _is_folded(node) or any(each is not None and each.node in found for each in node.inputs):
            found[node] = None
    return found


def _is_folded(node: Node) -> bool:
    if isinstance(node, ops.Dequantize):  # its simple operations are
        return True
    if isinstance(node, ops.MatMul | ops.CumSum) or (isinstance(node, ops.Gather) and _is_compressed(node.inputs[0])):
        return False
    return isinstance(node, ops.Op) and not isinstance(node, Control) and type(node).evaluate is not ops.Op.evaluate


def _is_compressed(value: Value | None) -> bool:
    """Whether a value has at most 8 bits, with scales, in the file."""
    while value is not None and isinstance(value.node, ops.View | ops.Transpose):
        value = value.node.inputs[0]
    return value is not None and isinstance(value.node, ops.Dequantize)


def _fits(value: Value, result: Value) -> bool:
    """Whether the runtime may write `result` into the memory of `value`."""
    if not is_static(value.shape) or value.dtype is string:
        return False
    return not is_static(result.shape) or element_count(value.shape) == element_count(result.shape)


@node_pass((Loop,), "a `Select` by the iteration number", Gap(
    "gpu-state-of-constant",
    "a state that becomes a constant has the memory of the constant, into which the first value is written: the "
    "process ends",
    severity=CRASH, device=GPU,
))
def ComputeConstantStates(node: Loop) -> str:
    """state = c in each iteration  ->  state = Select(i >= 0, c, 0), where i is the number of the iteration"""
    results = [each.result for each in node.back_edges if isinstance(each.result.value.node, Constant)]
    if not results:
        return "no state becomes a constant"
    is_run = F.GreaterEqual(iteration_number(node), 0)
    for result in results:
        value = result.value
        zero = F.Constant(np.zeros((), value.dtype.numpy), graph=node.body, dtype=value.dtype)
        node.body.set_input(result, 0, F.Select(is_run, value, zero))
    return ""
