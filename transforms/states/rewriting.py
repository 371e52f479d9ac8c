"""Replaces the Parameter and the Result of each pair by the operations of a variable, which begins with zeros.

    past [B,2,T,8], growing along axis 2, and an input ids [B,L]:

    variable_shape [B,2,T,8], which the file writes as ?,2,?,8
    %batch = Gather(ShapeOf(%ids), [0], 0)
    %none = Divide(%batch, 2147483647)                 0, which the runtime does not see
    %initial = Broadcast(0.0, Concat(%batch, [2], %none, [8]))

The CPU plugin computes the initial value inside the ReadValue, and takes its sizes for those that the variable always
has: a variable that grows from a size that is known to be 0 does not compile (OpenVINO 2025.4 to 2026.4). The size is
therefore computed, in a form that still has bounds. Without them the other sizes would be unknown as well.

An index of sequences reorders a state along the axis that has one part for each sequence of a batch.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np

from mo_loop.errors import UnsupportedError
from mo_loop.graph import Dim, Dimension, ElementType, TensorType, fresh, i32
from mo_loop.ops import recurrent
from mo_loop.origin import made_for
from mo_loop.transforms.replace import replace_node
from mo_loop.transforms.states.cache_updates import trails_of
from mo_loop.transforms.states.pairing import Pair
from mo_loop.transforms.states.variable import GraphVariable, drop_unobserved
from mo_loop.transforms.vocabulary import F, Graph, Node, Parameter, Value, ops

HUGE = 2**31 - 1
"""More than any size: the quotient is 0."""

Size: TypeAlias = int | tuple[Parameter, int] | None
"""A static size, or that of an axis of an input; None is that of the axis that grows, which is 0."""


def variable_shape(pair: Pair) -> tuple[Dimension, ...]:
    """The dimensions of a variable: those of the input, without bounds where they vary. The growing one starts at 0."""
    dims = pair.parameter.output.type.dims
    return tuple(dim if isinstance(dim, int) and axis != pair.growing else _free(dim) for axis, dim in enumerate(dims))


def _free(dim: Dimension) -> Dimension:
    """A symbol without bounds as it is. The runtime compares bounds with those of the initial value."""
    is_free = isinstance(dim, Dim) and dim.symbol is not None and dim.lo == 0 and dim.hi is None
    return dim if is_free else fresh()


class InitialValues:
    """Makes the initial values of one graph. States of one shape share the nodes that compute it."""

    def __init__(self, graph: Graph, remaining: Sequence[Parameter]) -> None:
        self.graph = graph
        self.remaining = [each for each in remaining if each.output.shape is not None]
        self._sizes: dict[tuple[Parameter, int], Value] = {}
        self._shapes: dict[tuple[Size, ...], Value] = {}
        self._zeros: dict[ElementType, Value] = {}

    def require(self, pair: Pair, shape: tuple[Dimension, ...]) -> None:
        """UnsupportedError if there are no zeros of the type, or if a dimension is not known."""
        dtype = pair.parameter.output.dtype
        if dtype.kind in ("string", "complex"):
            raise _unknown(pair, f"there is no initial value of type {dtype}")
        self._sources(pair, shape)

    def of(self, pair: Pair, shape: tuple[Dimension, ...]) -> Value:
        """Zeros of the shape of a variable."""
        dtype = pair.parameter.output.dtype
        sizes = self._sources(pair, shape)
        static = [size or 0 for size in sizes if not isinstance(size, tuple)]
        if len(static) == len(sizes):
            return F.Constant(np.zeros(static, dtype.numpy), graph=self.graph, dtype=dtype)
        if dtype not in self._zeros:
            self._zeros[dtype] = F.Constant(np.zeros((), dtype.numpy), graph=self.graph, dtype=dtype)
        if sizes not in self._shapes:
            self._shapes[sizes] = self._joined(sizes)
        return F.Broadcast(self._zeros[dtype], self._shapes[sizes])

    def _sources(self, pair: Pair, shape: tuple[Dimension, ...]) -> tuple[Size, ...]:
        return tuple(
            None if axis == pair.growing else dim if isinstance(dim, int) else self._source(pair, axis)
            for axis, dim in enumerate(shape)
        )

    def _source(self, pair: Pair, axis: int) -> tuple[Parameter, int]:
        """The input, and its axis, that has the size of an axis of a state.

        Exporters may give it another name at the input; the next value has the name that the graph computes.
        """
        dims, after = pair.parameter.output.type.dims, pair.result.value.type.dims
        for dim in dims[axis], after[axis]:
            for parameter in self.remaining if isinstance(dim, Dim) else ():
                if dim in parameter.output.type.dims:
                    return parameter, parameter.output.type.dims.index(dim)
        unknown = [at for at, each in enumerate(dims) if isinstance(each, Dim) and at != pair.growing]
        found = self._any_size() if len(unknown) == 1 else None
        if found is None:
            what = f"dimension {axis} of its initial value is not known: {dims[axis]} is the size of no other input"
            raise _unknown(pair, what)
        return found

    def _any_size(self) -> tuple[Parameter, int] | None:
        """The first size that is only known at run time of an input; any other one, if all such sizes are the same."""
        for parameter in self.remaining:
            if parameter.output.shape and isinstance(parameter.output.shape[0], Dim):
                return parameter, 0
        sizes = [
            (parameter, axis) for parameter in self.remaining for axis, dim in enumerate(parameter.output.type.dims)
            if isinstance(dim, Dim)
        ]
        return sizes[0] if len({parameter.output.type.dims[axis] for parameter, axis in sizes}) == 1 else None

    def _joined(self, sizes: Sequence[Size]) -> Value:
        """The vector of some sizes."""
        known = next(self.size(*size) for size in sizes if isinstance(size, tuple))
        parts: list[Value] = []
        for kind, group in groupby(sizes, type):
            if kind is int:
                parts.append(F.Constant(np.array(list(group), np.int64), graph=self.graph))
                continue
            parts += [self.size(*size) if isinstance(size, tuple) else F.Divide(known, HUGE) for size in group]
        return parts[0] if len(parts) == 1 else F.Concat(*parts, axis=0)

    def size(self, parameter: Parameter, axis: int) -> Value:
        """One dimension of an input, as a vector of one element."""
        if (parameter, axis) not in self._sizes:
            self._sizes[parameter, axis] = F.Gather(parameter.output.sizes, [axis], 0)
        return self._sizes[parameter, axis]


def _unknown(pair: Pair, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"the input {pair.input!r}, {pair.parameter.output.type}, cannot be a state with the output {pair.output!r}: "
        f"{what}",
        where=pair.parameter.origin, why="a variable starts with zeros of a shape that the other inputs determine",
        code="ML327", hint=f'give its sizes with --input, or keep it an input (--stateful-pair "{pair.input}=")',
    )


def sequence_axes(graph: Graph, pairs: Sequence[Pair], remaining: Sequence[Parameter]) -> dict[Pair, int | None]:
    """The axis of each state; None for a state that all sequences share.

    It is the axis whose size is the first dimension of another input, or the only one of unknown size (unless another
    input has it as a later dimension), or that of the batch in an LSTM, GRU or RNN; in a cache it is axis 0 otherwise.
    Where all sizes are known, it is the axis with the size of the sequences of other states, or of the first dimension
    of other inputs.

    Raises:
        UnsupportedError: the number of sequences is not known, so it is not known whether a state has them.
    """
    shapes = [each.output.shape for each in remaining if each.output.shape]
    firsts = dict.fromkeys(shape[0] for shape in shapes)
    others = {dim for shape in shapes for dim in shape[1:]}  # the width of a picture, the length of a sequence
    by_layers = dict(_of_layers(graph))
    found: dict[Pair, int | None] = {pair: _seen(pair, firsts, others, by_layers) for pair in pairs}
    known = {pair.parameter.output.type.dims[axis] for pair, axis in found.items() if axis is not None}
    for pair in pairs:
        if found[pair] is None:
            found[pair] = _of_size(pair, known, firsts)
    return found


def _seen(
    pair: Pair, firsts: dict[Dimension, None], others: set[Dimension], by_layers: dict[Parameter, int]
) -> int | None:
    """The axis, as far as names of sizes and the graph show it."""
    dims, after = pair.parameter.output.type.dims, pair.result.value.type.dims
    unknown = [axis for axis, dim in enumerate(dims) if axis != pair.growing and isinstance(dim, Dim)]
    for axis in unknown:
        if dims[axis] in firsts or after[axis] in firsts:
            return axis
    if pair.parameter in by_layers:
        return by_layers[pair.parameter]
    if len(unknown) == 1 and dims[unknown[0]] not in others:
        return unknown[0]
    return 0 if pair.growing not in (None, 0) else None


def _of_layers(graph: Graph) -> Iterator[tuple[Parameter, int]]:
    """The axes of Parameters that become the batch of recurrent layers."""
    for value, trails in trails_of(graph).items():
        for use in value.uses:
            first = isinstance(use.node, recurrent.Cell | recurrent.Sequence) and 1 <= use.port <= _states(use.node)
            for parameter, trail in trails.items() if first else ():
                if trail.axes and trail.axes[0] is not None:
                    yield parameter, trail.axes[0]


def _states(layer: recurrent.Cell | recurrent.Sequence) -> int:
    return len(layer.outputs) - isinstance(layer, recurrent.Sequence)


def _of_size(pair: Pair, known: set[Dimension], firsts: dict[Dimension, None]) -> int | None:
    """The axis of a state whose sizes are known, by its size."""
    dims = pair.parameter.output.type.dims
    given = [dim for dim in known or firsts if isinstance(dim, int)]
    sizes = [size for size in given if size != 1] or given
    axes = [axis for axis, dim in enumerate(dims) if axis != pair.growing and dim in sizes]
    if axes and len({dims[axis] for axis in axes}) == 1:
        return axes[0]
    if not axes and (known or all(dim == 1 for dim in dims)):
        return None
    raise UnsupportedError(
        f"the state {pair.input!r}, {pair.parameter.output.type}, cannot be reordered by --beam-idx: which of its "
        "dimensions counts sequences is not known",
        where=pair.parameter.origin, why="no dimension of it has the size of the first dimension of another input, or "
        "several have", code="ML327",
        hint=f'give the batch of the inputs with --input, keep it an input (--stateful-pair "{pair.input}="), or omit '
        "--beam-idx",
    )


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
            )
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
        value = F.Gather(read, self.beams, axis) if self.beams is not None and axis is not None else read
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
        whole = F.ShapeOf(read, output_type=node.output_type)
        before, after = list(range(axis)), list(range(axis + 1, rank))
        parts = [F.ShapeOf(self.beams, output_type=node.output_type)]
        if before:
            parts.insert(0, F.Gather(whole, before, 0))
        if after:
            parts.append(F.Gather(whole, after, 0))
        replace_node(node, ops.Concat(*parts, axis=0))
