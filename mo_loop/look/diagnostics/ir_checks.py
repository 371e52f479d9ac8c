"""Checks of the converted graph: warnings about other numbers, notes about costs and about states."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from mo_loop import ops
from mo_loop.graph import Dim, Dimension, Graph, Node, TensorType, Value, f64, i64, now, type_of, u32, u64
from mo_loop.look.diagnostics.diagnostic import Diagnostic
from mo_loop.ops.arithmetic import Binary, Convert, Negative, Power
from mo_loop.ops.base import Constant, Parameter, SameElements
from mo_loop.ops.control import If, Iteration, Loop
from mo_loop.ops.filling import Broadcast, RandomUniform
from mo_loop.ops.port_map import Concatenated, Merged, Sliced
from mo_loop.ops.quantization import quantised_constant
from mo_loop.ops.recurrent import Sequence
from mo_loop.origin import Origin
from mo_loop.printable import counted, first_few
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.low_precision.weights import integer_layers, rounded_products, rounding_text
from mo_loop.transforms.manager import Phase, Step
from mo_loop.transforms.states.pairing import find_pairs, is_next
from mo_loop.transforms.states.step_axes import mixing_along
from mo_loop.transforms.vocabulary import source_of

N = TypeVar("N", bound=Node)

DEEP = 16
"""The depth of nested Ifs at which compiling takes seconds."""

_LOOKED_AT = 1 << 20
"""The number of elements of an integer constant above which its values are not checked."""

_SHOWN = 3
"""The number of pairs that a message names."""

_SATURATING = frozenset(("Slice", "StridedSlice", "Minimum", "Maximum", "Clamp"))
"""Operations whose result is the same if a constant above 32 bits becomes the limit of 32 bits."""

_LOSES_NAN = frozenset(
    (
        "ReLU", "Clamp", "HardSigmoid", "Exp", "SoftMax", "LogSoftmax", "Maximum", "Minimum", "MaxPool", "ReduceMax",
        "ReduceMin",
    )
)

_RANDOM = frozenset(("RandomUniform", "Multinomial"))

EXPLAINED = ("PackSequences",)
"""The passes whose explanations are read."""

BEFORE_LOOPS = ("FuseRecurrentCells", "LowLatency2", "MakeStateful")
"""The passes after which the loops of the model have their last form."""


@dataclass
class Seen:
    """An observer of facts that only a running conversion shows. `config` is that of its passes."""

    config: PassConfig
    uncounted_loops: set[Origin] = field(default_factory=set)
    """The origins of Loops whose trip count is not in the model."""
    states: list[Diagnostic] | None = None
    """The notes about states, of the graph before the passes that shorten loops."""

    def __call__(self, event: Step | Phase) -> None:
        if isinstance(event, Step) and event.name in BEFORE_LOOPS:
            self.states = list(state_diagnostics(event.graph))
        if isinstance(event, Phase) and event.name == "passes" and event.seconds is None and event.graph is not None:
            loops = (node for scope in event.graph.scopes() for node in scope.of(Loop))
            self.uncounted_loops = {node.origin for node in loops if now(node.count) is None}

    @property
    def packed(self) -> list[Origin]:
        """The origins of operations on sequences that are kept as packed data."""
        said = (each for each in self.config.explanations if each.pass_name == "PackSequences")
        return [each.origin for each in said if each.outcome == "changed"]


def diagnostics(graph: Graph, seen: Seen) -> Iterator[Diagnostic]:
    """All diagnostics of the graph; `seen` observed its conversion."""
    for check in (
        _doubles, _wide_integers, _integer_powers, _random, _lost_nan, _saturating, _rounded, _expanded_weights,
        _empty_sizes, _growing, _nested_ifs, _unread_inputs,
    ):
        yield from check(graph)
    for node in _all(graph, Loop):
        if node.origin in seen.uncounted_loops:
            yield Diagnostic.of_code("ML520", "the trip count is known only at run time", node.origin)
    for origin in dict.fromkeys(seen.packed):
        if origin.operator in ("SequenceInsert", "SequenceErase"):  # these change a list
            yield Diagnostic.of_code("ML522", "a list that is stored as packed data is changed", origin)


def _all(graph: Graph, kind: type[N]) -> Iterator[N]:
    """The nodes of a class in the graph and in all bodies."""
    return (node for scope in graph.scopes() for node in scope.of(kind))


def _ordered(graph: Graph) -> Iterator[Node]:
    """All nodes of the graph and of all bodies."""
    return (node for scope in graph.scopes() for node in scope.ordered())


def _doubles(graph: Graph) -> Iterator[Diagnostic]:
    nodes = [
        node for node in _ordered(graph) if not isinstance(node, Constant)
        and any(isinstance(each.type, TensorType) and each.type.dtype is f64 for each in node.outputs)
    ]
    if nodes:
        inputs = sum(isinstance(node, Parameter) and node.graph is graph for node in nodes)
        others = len(nodes) - inputs
        text = " and ".join(counted(n, what) for n, what in ((inputs, "input"), (others, "operation")) if n)
        yield Diagnostic.of_code("ML501", f"{text} of f64: computed in f32", nodes[0].origin)


def _wide_integers(graph: Graph) -> Iterator[Diagnostic]:
    for node in _all(graph, Constant):
        tensor = node.tensor
        if tensor.dtype not in (i64, u32, u64) or not 0 < tensor.size <= _LOOKED_AT:
            continue
        low, high = (int(pick(node.array)) for pick in (np.min, np.max))
        if low >= -(2**31) and high < 2**31:
            continue
        readers = [
            use.node for use in node.output.uses
            if type_of(use.node) not in _SATURATING and not (isinstance(use.node, Loop) and use.port == 0)
        ]
        if readers:
            worst = high if high >= 2**31 else low
            yield Diagnostic.of_code("ML502", f"the constant {worst} exceeds 32 bits", readers[0].origin)


def _saturating(graph: Graph) -> Iterator[Diagnostic]:
    for each in integer_layers(graph):
        if not each.saturates:
            continue
        other = "other activations"
        if each.weights is not None:
            other = f"weights of 8 bits up to {np.abs(each.weights.array.astype(np.int64)).max(initial=0)}"
        text = f"{other} are multiplied by activations of 8 bits"
        yield Diagnostic.of_code("ML508", text, each.node.origin)


def _rounded(graph: Graph) -> Iterator[Diagnostic]:
    products = rounded_products(graph)
    if products:
        yield Diagnostic.of_code("ML500", rounding_text(len(products)), products[0].origin)


def _expanded_weights(graph: Graph) -> Iterator[Diagnostic]:
    for node in _all(graph, Negative):
        weights = quantised_constant(node.output)
        if weights is not None:
            kept, size = weights.tensor.nbytes, weights.tensor.size
            text = f"{kept} bytes of {weights.tensor.dtype} weights become {4 * size} of f32"
            yield Diagnostic.of_code("ML509", text, node.origin)


def _random(graph: Graph) -> Iterator[Diagnostic]:
    for node in _ordered(graph):
        if type_of(node) in _RANDOM and not _is_known(node):
            yield Diagnostic.of_code("ML503", "random numbers are drawn", node.origin)


def _is_known(node: Node) -> bool:
    """Whether only one number can be drawn: one that the runtime does not fold (transforms/runtime)."""
    if not isinstance(node, RandomUniform) or not node.output_type.is_integer:
        return False
    low, high = (None if value is None else value.type.integers for value in node.inputs[1:3])
    return low is not None and high is not None and high[0] == low[0] + 1


def _integer_powers(graph: Graph) -> Iterator[Diagnostic]:
    """Powers of integers, and those of integers converted to f32 that become integers again."""
    for node in _all(graph, Power):
        base, use = node.operands[0].node, node.output.only_use
        ends = [node.output]
        if isinstance(base, Convert) and use is not None and isinstance(use.node, Convert):
            ends = [base.operands[0], use.node.output]
        if _is_integer(node.output) or all(map(_is_integer, ends)):
            yield Diagnostic.of_code("ML506", "the base is an integer", node.origin)


def _is_integer(value: Value | None) -> bool:
    return value is not None and isinstance(value.type, TensorType) and value.dtype.is_integer


def _lost_nan(graph: Graph) -> Iterator[Diagnostic]:
    nodes = [node for node in _ordered(graph) if loses_nan(node)]
    if nodes:
        text = "1 operation loses" if len(nodes) == 1 else f"{len(nodes)} operations lose"
        yield Diagnostic.of_code("ML505", f"{text} NaN", nodes[0].origin)


def loses_nan(node: Node) -> bool:
    """Whether the runtime gives a number for NaN where ONNX gives NaN."""
    if type_of(node) not in _LOSES_NAN or not node.outputs[0].dtype.is_float:
        return False
    sources = {each.node.inputs[0] if isinstance(each.node, Negative) else each for each in node.inputs if each}
    return len(sources) == len(node.inputs)  # not a copy max(x, x), nor an absolute value max(-x, x): they keep NaN


def _empty_sizes(graph: Graph) -> Iterator[Diagnostic]:
    for node in _all(graph, Broadcast):
        if node.mode == "bidirectional" and any(isinstance(each.node, Binary) for each in node.output.uses):
            yield Diagnostic.of_code("ML507", "the sizes are computed in the model", node.origin)


def _growing(graph: Graph) -> Iterator[Diagnostic]:
    for node in _all(graph, Iteration):
        for entry in node.input_map:
            if isinstance(entry, Merged) and _grows(entry):
                name = entry.parameter.name
                text = f"the state {name!r} grows in each iteration" if name else "a state grows in each iteration"
                yield Diagnostic.of_code("ML521", text, node.origin)


def _grows(entry: Merged) -> bool:
    """Whether the next value of a state is a Concat of it and something else."""
    joined = _source(entry.result.value).node
    if type_of(joined) != "Concat" or len(joined.inputs) < 2:
        return False
    return any(value is not None and _source(value).node is entry.parameter for value in joined.inputs)


def _source(value: Value) -> Value:
    """The value that a value is a view or a copy of."""
    value = source_of(value, (SameElements, Convert))
    node = value.node
    is_copy = type_of(node) in ("Maximum", "LogicalOr") and node.inputs[0] is node.inputs[1]
    return _source(node.operands[0]) if is_copy else value


def _nested_ifs(graph: Graph) -> Iterator[Diagnostic]:
    """One diagnostic for each outermost If with too many levels of Ifs in it; loops between them do not count."""
    depths: dict[Graph, int] = {}
    worst: dict[Node, int] = {}
    tops: dict[Graph, Node] = {}
    for scope in graph.scopes():
        owner = scope.owner
        if owner is not None and owner.graph in tops:
            tops[scope] = tops[owner.graph]
        elif isinstance(owner, If):
            tops[scope] = owner
        depths[scope] = (depths[owner.graph] if owner is not None else 0) + isinstance(owner, If)
        if scope in tops:
            worst[tops[scope]] = max(worst.get(tops[scope], 0), depths[scope])
    for node, depth in worst.items():
        if depth >= DEEP:
            yield Diagnostic.of_code("ML530", f"Ifs are nested {depth} deep", node.origin)


def _unread_inputs(graph: Graph) -> Iterator[Diagnostic]:
    for parameter in graph.parameters:
        if not parameter.output.is_used:
            yield Diagnostic.of_code("ML540", f"nothing reads the input {parameter.name!r}", parameter.origin)


def clipped(graph: Graph) -> Iterator[Diagnostic]:
    """Weights that change when they are compressed to f16. Reads all weights."""
    from mo_loop.transforms.low_precision.compress_weights import CompressFloatConstants

    compressing = CompressFloatConstants()
    compressing.run(graph.clone())
    count = compressing.counts.clipped
    if count:
        yield Diagnostic.of_code("ML504", f"{count} weight{'s are' if count > 1 else ' is'} beyond the range of f16")


# -- states: variables which the runtime keeps between inferences, from which a model would gain


def state_diagnostics(graph: Graph) -> Iterator[Diagnostic]:
    """One note for all inputs that the caller fills with outputs, and those about the loops of the graph and of the
    branches in it. A model that was converted with states has nothing left to say.

    The result of a loop is of the type of its initial value in models that are not called in turn, too: a pair counts
    if it grows, or if its names show that the caller carries it.
    """
    found = find_pairs(graph).found
    pairs = [each for each in found if each.growing is not None or is_next(each.input, each.output)]
    if pairs and len(pairs) < len(graph.parameters):  # a model whose every input is a state computes nothing new
        names = [f"{each.input} -> {each.output}" for each in pairs]
        many = "1 input and output is a state" if len(pairs) == 1 else f"{len(pairs)} inputs and outputs are states"
        origin = next((parameter.origin for parameter in graph.parameters if parameter.name == pairs[0].input), None)
        yield Diagnostic.of_code("ML550", f"{many} that the caller carries ({first_few(names, _SHOWN)})", origin)
    yield from _stepped(graph, graph)


def _stepped(graph: Graph, model: Graph) -> Iterator[Diagnostic]:
    """A note for each loop and recurrent operation that goes forward through a sequence of the model's inputs."""
    for node in graph.ordered():
        if isinstance(node, If):
            condition = node.operands[0].type.integers
            runs = node.bodies if condition is None else node.bodies[:1] if condition[0] else node.bodies[1:]
            for body in runs:
                yield from _stepped(body, model)
        for value, axis in _sequences(node):
            name = _input_of(model, value, axis)
            if name:
                text = f"it steps through a sequence of the input {name!r}"
                yield Diagnostic.of_code("ML551", text, node.origin)
                break


def _sequences(node: Node) -> Iterator[tuple[Value, int]]:
    """The values that a node steps through from the beginning to the end, and their axes; none if it has no state."""
    if isinstance(node, Sequence):
        x = node.inputs[0]
        if node.direction == "forward" and x is not None:
            yield x, 1
    if not isinstance(node, Iteration) or not any(isinstance(each, Merged) for each in node.input_map):
        return
    slices = [each for each in (*node.input_map, *node.output_map) if isinstance(each, Sliced | Concatenated)]
    if any(each.stride < 0 for each in slices):
        return
    for entry, value in zip(node.input_map, node.inputs[node.first_data_port :], strict=True):
        if isinstance(entry, Sliced) and value is not None:
            yield value, entry.axis


def _input_of(graph: Graph, value: Value, axis: int) -> str:
    """The input of the model that has the dimension `axis` of a value; empty if none has, or if it is 1.

    Empty as well if something else in the model needs several steps of the sequence: LowLatency2 refuses it.
    """
    shape = value.shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return ""
    dim: Dimension = shape[axis]
    length = now(dim)
    if length is not None:
        source = _maker(value)
        is_longer = length > 1 and isinstance(source, Parameter) and length in map(now, source.output.shape or ())
        return source.name if is_longer else ""
    assert isinstance(dim, Dim)
    if any(True for _ in mixing_along(graph, frozenset(dim.symbols()))):
        return ""
    for parameter in graph.parameters:
        own = [each for each in parameter.output.shape or () if isinstance(each, Dim)]
        if any(symbol in each.symbols() for symbol in dim.symbols() for each in own):
            return parameter.name
    return ""


def _maker(value: Value) -> Node:
    """The node that makes the elements of a value, outside of the branches that the value is in."""
    node = source_of(value, (SameElements, ops.Transpose, Convert)).node
    owner = node.graph.owner
    outer = owner.outer(node) if isinstance(node, Parameter) and isinstance(owner, If) else None
    return node if outer is None else _maker(outer)
