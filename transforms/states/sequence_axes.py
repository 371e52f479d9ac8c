"""Along which axis a state has one part for each sequence of a batch, so that an index of sequences can reorder it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mo_loop.errors import UnsupportedError
from mo_loop.graph import Graph
from mo_loop.graph.dimension import Dim, Dimension
from mo_loop.graph.types import TensorType
from mo_loop.ops import recurrent
from mo_loop.ops.base import Parameter
from mo_loop.transforms.states.cache_updates import trails_of
from mo_loop.transforms.states.pairing import Pair


def sequence_axes(graph: Graph, pairs: Sequence[Pair], remaining: Sequence[Parameter]) -> dict[Pair, int | None]:
    """The axis of each state; None for a state that all sequences share.

    It is the axis whose size is the first dimension of another input, or the only one of unknown size (unless another
    input has it as a later dimension), or that of the batch in an LSTM, GRU or RNN; in a cache it is axis 0 otherwise.
    Where all sizes are known, it is the axis with the size of the sequences of other states, or of the first dimension
    of other inputs.

    Raises:
        UnsupportedError: the number of sequences is not known, so it is not known whether a state has them.
    """
    shapes = [each.output.shape for each in remaining if isinstance(each.output.type, TensorType) and each.output.shape]
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
    )  # fmt: skip
