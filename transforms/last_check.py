"""The last check of a graph before it is written: one function for each limitation of the runtime.

Passes bring the graph into a form that the runtime supports; this module only verifies it. `NOT_AVOIDED` has
the errors of the runtime that nothing avoids.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Any

from mo_loop.errors import ConversionErrors, MoLoopError, UnsupportedError
from mo_loop.graph.types import OptionalType, SequenceType, TensorType, string
from mo_loop.ops.control import Control, If, TensorIterator
from mo_loop.ops.unknown_rank import SAME_RANK, advice, decision
from mo_loop.target import CRASH, ERROR, SLOW
from mo_loop.transforms.vocabulary import Gap, Graph, Node, Op, Parameter, is_static, ops

AVOIDS = (
    Gap("strings", "`Slice`, `Split`, `Convert` and `Gather` of strings corrupt memory", "refused, ML303", CRASH),
)
"""The errors of the runtime that the check refuses."""


def failures(graph: Graph) -> list[MoLoopError]:
    """The errors of all nodes that could not be translated, also in bodies."""
    found = [node.error for scope in graph.scopes() for node in scope.of(ops.Failed) if node.error is not None]
    once = {(each.code, each.message, each.where): each for each in found}
    return list(ConversionErrors(once.values()).errors) if found else []


def outputs_without(graph: Graph) -> list[str]:
    """The names of the outputs of the model that depend on no `Failed` node."""
    failed = graph.descendants(graph.of(ops.Failed))
    return [result.output_names[0] for result in graph.results if result not in failed and result.output_names]


def _front_operations(graph: Graph) -> Iterator[MoLoopError]:
    of_front = [cls for cls in graph.classes if issubclass(cls, Op) and not cls.opset]
    for node in graph.ordered() if of_front else ():
        if isinstance(node, Op) and not node.opset:
            reason = _unheld(node)
            yield UnsupportedError(
                f"{node.type} was not lowered to IR operations{': ' if reason else ''}{reason}",
                where=node.origin, code="ML320", hint="declare the shapes of the inputs" if "rank" in reason else "",
            )


def _unheld(node: Node) -> str:
    """Why tensors cannot represent a sequence that the operation makes or reads."""
    for value in (*node.outputs, *node.inputs):
        type_ = None if value is None else value.type
        if isinstance(type_, OptionalType):
            return f"a value of type {type_}: only a tensor can be optional"
        if isinstance(type_, SequenceType) and type_.element.dtype is string:
            return "a sequence of strings"
        if isinstance(type_, SequenceType) and type_.element.shape is None and not type_.is_empty:
            return "a sequence of tensors of unknown rank, or of several ranks"
        if isinstance(type_, SequenceType) and type_.is_empty:
            return "an element of a sequence that is always empty"
    return ""


def _types(graph: Graph) -> Collection[Any]:
    """The types of all values, the same object once: most nodes have that of another one."""
    return {id(output.type): output.type for node in graph.ordered() for output in node.outputs}.values()


def _is_written(type_: Any) -> bool:
    return type_.dtype is not None and type_.shape is not None and type_.dtype.precision is not None


def _port_types(graph: Graph) -> Iterator[MoLoopError]:
    for node in () if all(map(_is_written, _types(graph))) else graph.ordered():
        for output in node.outputs:
            type_, where = output.type, node.origin
            if not isinstance(type_, TensorType):
                yield UnsupportedError(f"a value of type {type_}: the IR has tensors only", where=where, code="ML321")
            elif type_.dtype is None or type_.dtype.precision is None:
                yield UnsupportedError(f"the IR has no element type {type_.dtype}", where=where, code="ML322")
            elif type_.shape is None and _is_origin(node):
                yield UnsupportedError(
                    "a tensor of unknown rank: the runtime compiles known ranks only", where=where, code="ML323",
                    hint=advice(output),
                )


def _is_origin(node: Node) -> bool:
    """Whether the rank becomes unknown at this node. For a control-flow node, that happens in its bodies."""
    if isinstance(node, Control):
        return False
    if isinstance(node, Parameter):
        owner = node.graph.owner
        fed = owner.outer(node) if isinstance(owner, Control) else None
        return fed is None or fed.rank is not None
    return all(value is None or value.rank is not None for value in node.inputs)


def _unknown_ranks(graph: Graph) -> Iterator[MoLoopError]:
    """The errors of all ports of unknown rank, if no node is found at which the rank becomes unknown."""
    for scope in graph.scopes():
        for node in () if all(each.shape is not None for each in _types(scope)) else scope.ordered():
            if any(isinstance(output.type, TensorType) and output.rank is None for output in node.outputs):
                yield UnsupportedError("a tensor of unknown rank", where=node.origin, code="ML323")


def _branch_ranks(graph: Graph) -> Iterator[MoLoopError]:
    for node in graph.of(If):
        for number, entry in enumerate(node.output_map):
            then, else_ = entry.then.value.rank, entry.else_.value.rank
            # From a scalar and a [1], the runtime makes a [1]: another rank than in ONNX, so this is refused as well.
            if then != else_ and None not in (then, else_):
                yield UnsupportedError(
                    f"output {number} of If has rank {then} in then_branch and {else_} in else_branch",
                    code="ML315", where=node.origin,
                    hint=SAME_RANK if node.inputs[0] is None else decision(node.inputs[0]),
                )


def _nested_iterators(graph: Graph) -> Iterator[MoLoopError]:
    if isinstance(graph.owner, TensorIterator):
        for node in graph.of(TensorIterator):
            yield UnsupportedError("a TensorIterator directly inside another one", where=node.origin, code="ML324")


FILTERS = {
    "Convolution": 1, "GroupConvolution": 1, "ConvolutionBackpropData": 1, "GroupConvolutionBackpropData": 1,
    "DeformableConvolution": 2,
}
"""Operations with filters, and the port of these."""

# Operations that support strings on the CPU device. Others give wrong values or corrupt the memory of the process.
_STRING_SAFE = frozenset(
    (
        "Parameter", "Const", "Result", "ShapeOf", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Pad",
        "StringTensorUnpack", "StringTensorPack",
    )
)


def _strings(graph: Graph) -> Iterator[MoLoopError]:
    if not any(each.dtype is string for each in _types(graph)):
        return
    for node in graph.ordered():
        if not isinstance(node, Op) or isinstance(node, If) or node.type in _STRING_SAFE:
            continue
        if any(port.dtype is string for port in (*node.operands, *node.outputs)):
            yield UnsupportedError(
                f"{node.type} of strings: the runtime does not support it", where=node.origin, code="ML303",
                hint="cut the model after its text processing, so that its inputs are numbers",
            )


def _filters(graph: Graph) -> Iterator[MoLoopError]:
    found = [cls for cls in graph.classes if issubclass(cls, Op) and cls.type in FILTERS]
    for node in graph.ordered() if found else ():
        filters = node.inputs[FILTERS[node.type]] if isinstance(node, Op) and node.type in FILTERS else None
        if filters is not None and filters.rank is not None and not is_static(filters.shape):
            yield UnsupportedError(
                f"a convolution with filters {filters.type}: the runtime compiles static ones only",
                where=node.origin, code="ML329",
                hint="give the inputs static shapes (--input), or make the filters constants",
            )


LAST_CHECKS: tuple[Callable[[Graph], Iterator[MoLoopError]], ...] = (
    _front_operations,
    _branch_ranks,
    _port_types,
    _nested_iterators,
    _strings,
    _filters,
)


def last_check(graph: Graph) -> None:
    """Raise ConversionErrors with everything in the graph or its bodies that the runtime would refuse or miscompute."""
    errors = failures(graph)
    errors += [error for check in LAST_CHECKS for scope in graph.scopes() for error in check(scope)]
    errors = errors or list(_unknown_ranks(graph))
    if errors:
        raise ConversionErrors(errors)


NOT_AVOIDED: tuple[Gap, ...] = (
    Gap(
        "deep-ifs", "compiling nested Ifs takes time exponential in their depth: seconds at 16, minutes at 32",
        severity=SLOW,
    ),
    Gap(
        "computed-bidirectional-broadcast",
        "a bidirectional `Broadcast` with computed sizes is moved after its elementwise reader; with a tensor with a "
        "dimension of 1 a size of 0 at run time may become 1; `check` reports the place (ML507)",
    ),
    Gap(
        "failed-check-with-one-thread",
        "with `INFERENCE_NUM_THREADS` of 1 an inference in which a check of shapes fails (`Reshape`, `MatMul`, "
        "`Concat`, `Broadcast`, `Add`, `Convolution` and others) returns, with the results of the inference before",
        since="2025.2.0",
    ),
    Gap(
        "inference-after-failed-check",
        "an inference request in which a check of shapes has failed may fail with any inputs from then on, or give "
        "wrong values",
    ),
    Gap(
        "integers-of-32-bits",
        "integers are read as 32 bits: a trip count above 2^31 - 1 that is known only at run time cannot be "
        "distinguished from a negative one",
    ),
    Gap("select-of-large-integers", "`Select` of integers above 2^24 rounds them to f32", until="2025.2.0"),
    Gap(
        "concatenated-nothing",
        "concatenated outputs without elements keep only the dimensions that are known before run time",
    ),
    Gap(
        "sum-with-smaller-convolution",
        "a `Convolution` whose width or height is 1 at run time is refused if a tensor of at least 2, and of another "
        "size that is not known, is added to it",
        severity=ERROR,
    ),
    Gap(
        "pool-of-empty-batch",
        "`AvgPool` and `MaxPool` refuse a batch of 0 at run time; rows for them to read would make each model whose "
        "batch is not known slower",
        severity=ERROR,
    ),
    Gap(
        "sum-of-product-over-nothing",
        "an elementwise operation of a `MatMul` whose inner size is 0 at run time does not happen, or the result "
        "keeps its shape",
    ),
    Gap(
        "reshape-of-nothing",
        "`Reshape` of a tensor without elements to other sizes is refused if a 0 in its pattern copies a size of 0",
        severity=ERROR, until="2024.6.0",
    ),
    Gap(
        "sequence-lens-of-zero",
        "recurrent sequence operations write neither outputs nor last states of a sequence whose length is given as 0",
    ),
    Gap("unsigned-of-32-bits", "numbers of u32 above 2^31 - 1 are read as 2^31 - 1", until="2025.3.0"),
    Gap(
        "infinities-of-f64",
        "f64 is computed in f32; infinities become its largest number at any conversion to or from f64",
    ),
    Gap("relu-of-nan", "`ReLU` loses NaN; `check` reports it (ML505)"),
    Gap("hard-sigmoid-of-nan", "`HardSigmoid` loses NaN; `check` reports it (ML505)"),
    Gap("exp-of-nan", "`Exp` of NaN is infinite; `check` reports it (ML505)"),
    Gap("softmax-of-nan", "`Softmax` and `LogSoftmax` are NaN only where the input is; `check` reports it (ML505)"),
    Gap("max-pool-of-nan", "`MaxPool` loses NaN; `check` reports it (ML505)"),
    Gap("clamp-of-nan", "`Clamp` loses NaN; `check` reports it (ML505)"),
    Gap("maximum-of-nan", "`Maximum` and `Minimum` lose NaN if it is the first input; `check` reports it (ML505)"),
    Gap("reduced-nan", "`ReduceMax` and `ReduceMin` lose NaN; `check` reports it (ML505)"),
)
