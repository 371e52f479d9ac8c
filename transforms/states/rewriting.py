"""Replaces the Parameter and the Result of each pair by the operations of a variable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mo_loop import ops
from mo_loop.errors import UnsupportedError
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.dimension import Dim, fresh
from mo_loop.graph.origin import made_for
from mo_loop.graph.types import TensorType, i32
from mo_loop.ops.base import Parameter
from mo_loop.transforms.replace import replace_node
from mo_loop.transforms.states.initial import InitialValues, variable_shape
from mo_loop.transforms.states.pairing import Pair
from mo_loop.transforms.states.sequence_axes import sequence_axes
from mo_loop.transforms.states.variable import GraphVariable, drop_unobserved


def startable(graph: Graph, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs without weak ones of which no initial value is known: these may be the main input and output of the
    model."""
    chosen = list(pairs)
    while True:
        taken = {pair.parameter for pair in chosen}
        initial = InitialValues(graph, [each for each in graph.parameters if each not in taken])
        lost = [pair for pair in chosen if pair.strength == "weak" and not _starts(initial, pair)]
        if not lost:
            return chosen
        chosen.remove(lost[0])  # its input may give the sizes of the others


def _starts(initial: InitialValues, pair: Pair) -> bool:
    try:
        initial.require(pair, variable_shape(pair))
    except UnsupportedError:
        return False
    return True


def _require_distinct(graph: Graph, pairs: Sequence[Pair]) -> None:
    """UnsupportedError if two variables would have one id."""
    known: dict[str, str] = {node.variable_id: "the variable of the model" for node in graph.of(ops.ReadValue)}
    for pair in pairs:
        other = known.get(pair.variable_id)
        if other is not None:
            raise UnsupportedError(
                f"the states {other} and {pair.input!r} -> {pair.output!r} are both named {pair.variable_id!r}",
                where=pair.parameter.origin, why="OpenVINO names a variable by the input followed by the output",
                code="ML327", hint=f'keep one of them an input (--stateful-pair "{pair.input}="), or rename its input '
                "or output in the ONNX model",
            )  # fmt: skip
        known[pair.variable_id] = f"{pair.input!r} -> {pair.output!r}"


class Rewriting:
    """One graph and its pairs. `beam_index` is the name of the input that reorders sequences, or empty."""

    def __init__(self, graph: Graph, pairs: Sequence[Pair], beam_index: str = "") -> None:
        taken = {pair.parameter for pair in pairs}
        self.graph = graph
        self.pairs = pairs
        self.remaining = [each for each in graph.parameters if each not in taken]
        self.initial = InitialValues(graph, self.remaining)
        # Everything that can fail comes before the first change.
        _require_distinct(graph, pairs)
        self.shapes = {pair: variable_shape(pair) for pair in pairs}
        for pair in pairs:
            self.initial.require(pair, self.shapes[pair])
        self.batch_axes = sequence_axes(graph, pairs, self.remaining) if beam_index else dict.fromkeys(pairs)
        self.beams = self._beam_input(beam_index) if beam_index else None

    def run(self) -> Iterator[tuple[Pair, Node]]:
        """Each pair with its ReadValue."""
        for pair in self.pairs:
            with made_for(pair.parameter.origins):
                variable, read = self._read(pair)
            with made_for(pair.result.value.node.origins):
                value = pair.result.value
                self.graph.remove(pair.result)
                variable.assign(value)
            yield pair, read
        self.graph.sweep()
        drop_unobserved(self.graph)

    def _beam_input(self, name: str) -> Value:
        """[number of sequences] of i32: the symbol of the caches, if they have one."""
        pairs = [(pair, axis) for pair, axis in self.batch_axes.items() if axis is not None]
        sizes = {self.shapes[pair][axis] for pair, axis in pairs}
        size = sizes.pop() if len(sizes) == 1 else fresh()
        shape = (size if isinstance(size, Dim) else fresh(),)
        parameter = Parameter(dtype=i32, shape=shape, graph=self.graph, name=name)
        parameter.output.add_name(name)
        return parameter.output

    def _read(self, pair: Pair) -> tuple[GraphVariable, Node]:
        """The variable in place of the Parameter, which is removed."""
        parameter, shape, axis = pair.parameter, self.shapes[pair], self.batch_axes[pair]
        initial = self.initial.of(pair, shape)
        if self.beams is not None and axis is not None:  # the number of beams may change between two inferences
            shape = (*shape[:axis], fresh(), *shape[axis + 1 :])
        type_ = TensorType(parameter.output.dtype, shape)
        variable = GraphVariable(pair.variable_id, type_, label=parameter.name)
        read = variable.read(initial)
        read.copy_names(parameter.output)
        readers = parameter.output.uses
        value = read
        if self.beams is not None and axis is not None:
            value = ops.Gather(read, self.beams, axis).output
        for node, port in readers:
            if isinstance(node, ops.ShapeOf) and axis is not None and value is not read:
                self._replace_shape(node, read, axis)
            else:
                self.graph.set_input(node, port, value)
        self.graph.remove(parameter)
        return variable, read.node

    def _replace_shape(self, node: ops.ShapeOf, read: Value, axis: int) -> None:
        """The shape after the Gather, without reading it: only the attention may read the reordered cache."""
        assert self.beams is not None
        rank = read.type.known_rank
        whole = ops.ShapeOf(read, output_type=node.output_type)
        before, after = list(range(axis)), list(range(axis + 1, rank))
        parts = [ops.ShapeOf(self.beams, output_type=node.output_type).output]
        if before:
            parts.insert(0, ops.Gather(whole, before, 0).output)
        if after:
            parts.append(ops.Gather(whole, after, 0).output)
        replace_node(node, ops.Concat(*parts, axis=0))
