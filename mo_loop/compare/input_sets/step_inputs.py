"""The states of an IR with their counterparts in the ONNX model, and the inputs of its steps.

    found = state_variables(graph, inputs, outputs)      # of the IR; names of the ONNX model

A variable whose id is the name of an input of the ONNX model followed by that of an output is a state which the caller
of the ONNX model carries. Every other one replaces a state of a loop or a sequence operation.

    inputs = CacheInputs(model, known, states, seed=0, has_beam=False)
    first = inputs.first(0, *PLANS[0])              # the first step of sequence 0
    steps = inputs.drawn(first, 4)                  # for each step: tokens, masks, positions
    states = inputs.initial(first, steps[0], {})    # empty caches

CacheInputs are for a model whose caller carries states: caches of a decoder, or the states of a recurrent model. Sizes
and values of the inputs have to agree with the states: a mask is as long as all tokens so far, positions continue where
the last step ended. The names of dimensions show which ones these are; where they do not, the plan of the steps has an
assumption. The first step of a sequence can have several tokens (a prompt), the others have one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.compare.input_sets import generated
from mo_loop.compare.input_sets.roles import CHOICE, INDEX, MASK, Input, possible
from mo_loop.compare.verify_options import Feeds
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import all_graphs, operator_of
from mo_loop.graph import Dim, Graph, Value
from mo_loop.transforms.states.pairing import BEAM_INDEX, variable_id
from mo_loop.transforms.vocabulary import integers, source_of

Axes = tuple[int, ...] | None
Growth = tuple[Axes, tuple[tuple[tuple[str, ...], int], ...]]


@dataclass(frozen=True)
class StateVariable:
    """A variable, and the input and the output of the ONNX model that take and return it; both empty for another state.

    `grows` are the axes along which an inference makes it longer, None if the types do not show it, and `by` are the
    dimensions of inputs by which it does: (names of the input, axis). `batch` is the axis along which the input
    `beam_idx` reorders it, if it does.
    """

    id: str
    input: str
    output: str
    grows: Axes = None
    by: tuple[tuple[tuple[str, ...], int], ...] = ()
    batch: int | None = None


def has_states(graph: Graph) -> bool:
    """Whether an inference leaves something for the next one."""
    return any(_variable_nodes(graph))


def state_variables(graph: Graph, inputs: Sequence[str], outputs: Sequence[str]) -> list[StateVariable]:
    """The variables that the main graph reads, in its order, and those that only a body reads, by the `inputs` of the
    ONNX model that the IR lacks, and all its `outputs`."""
    pairs = {variable_id(before, after): (before, after) for before in inputs if before for after in outputs}
    assigned = {name: node.inputs[0] for node, name in _variable_nodes(graph) if node.type == "Assign"}
    found: dict[str, StateVariable] = {}
    for node, name in _variable_nodes(graph):
        if node.type == "ReadValue" and name not in found:
            before, after = pairs.get(name, ("", ""))
            if before in [each.input for each in found.values()]:
                before, after = "", ""
            growth = _growth(graph, node.outputs[0], assigned.get(name)) if node.graph is graph else (None, ())
            found[name] = StateVariable(name, before, after, *growth, _batch_axis(node.outputs[0]))
    return list(found.values())


def _variable_nodes(graph: Graph) -> Iterator[tuple[Any, str]]:
    """The nodes that read and assign variables, those of bodies last, and the ids of these. Older ones are Opaque."""
    nodes: Iterator[Any] = (node for scope in graph.scopes() for node in scope)
    found = (each for each in nodes if each.type in ("ReadValue", "Assign"))
    return ((each, str(each.xml_attributes().get("variable_id", ""))) for each in found)


def _growth(graph: Graph, value: Value, assigned: Value | None) -> Growth:
    """The axes along which the assigned value is the variable and something more, and the inputs that give it."""
    shape, after = value.shape, None if assigned is None else assigned.shape
    if shape is None or after is None or len(shape) != len(after):
        return None, ()
    axes, added = [], set()
    for axis, (old, new) in enumerate(zip(shape, after, strict=True)):
        if isinstance(old, int) or isinstance(new, int) or new == old:
            continue
        before, now = set(old.symbols()), set(new.symbols())
        if before <= now:
            axes.append(axis)
            added |= now - before
        elif new.has_fresh():
            return None, ()
    return tuple(axes), tuple(
        ((parameter.name, *parameter.output.names), axis) for parameter in graph.parameters
        for axis, dim in enumerate(parameter.output.shape or ())
        if isinstance(dim, Dim) and not added.isdisjoint(dim.symbols())
    )


def _batch_axis(value: Value) -> int | None:
    """The axis along which a Gather with the indices `beam_idx`, or a cast of them, selects from a variable."""
    for use in value.uses:
        if isinstance(use.node, ops.Gather) and use.port == 0:
            rows, axis = source_of(use.node.operands[1], ops.Convert), integers(use.node, 2)
            is_beam = isinstance(rows.node, ops.Parameter) and BEAM_INDEX in (rows.node.name, *rows.names)
            if is_beam and axis:
                return axis[0] + len(value.shape) if axis[0] < 0 and value.shape is not None else axis[0]
    return None


# -- inputs of the steps

PLANS = tuple(product((True, False), repeat=2))
"""The forms of the steps in the order in which they are tried: whether the first has a prompt of several tokens, and
whether masks are as long as all tokens so far."""

PROMPTS = (3, 1, 4)
"""The tokens of the first step of the sequences, in turn."""

TOTAL = "tokens so far"
"""The name of a dimension that has the length of all tokens."""

_APART = 1000
"""Steps of one sequence draw other numbers than the next sequence."""


@dataclass(frozen=True)
class CacheStep:
    """The position in a sequence: the number of earlier tokens, and of the tokens of this step. `has_total` is that of
    its plan."""

    sequence: int
    has_total: bool
    tokens: int
    number: int = 0
    past: int = 0


@dataclass
class _Cache:
    """A state, the input that takes it, and the dimensions of the output that returns it; it grows along axes."""

    state: StateVariable
    input: Input
    after: tuple[int | str, ...]
    grows: tuple[int, ...]


class CacheInputs:
    """The inputs of a model step by step. `known` are the shapes that the IR declares; with `has_beam`, it alone has
    the input `beam_idx`."""

    def __init__(
        self, model: OnnxModel, known: Mapping[str, Sequence[int | None] | None], states: Sequence[StateVariable],
        seed: int, *, has_beam: bool,
    ) -> None:
        self.generator = generated.Generator(model, known, seed)
        self.larger: Mapping[str, int] = {}
        """The sizes of dimensions that are not those of tokens and caches, where they are not the usual ones."""
        self._has_beam = has_beam
        declared = {each.name: each for each in self.generator.inputs}
        outputs = {each.name: each for each in model.proto.graph.output}
        self._caches = [_cache(each, declared.pop(each.input), outputs[each.output]) for each in states]
        self._inputs = list(declared.values())
        operators = {operator_of(node) for graph in all_graphs(model) for node in graph.nodes}
        self._is_padded = not any(each.startswith("com.") for each in operators)
        """Operators of other domains may need masks without padding, and leave memory unwritten where there is some."""
        new = {
            each.dims[axis] for state in states for names, axis in state.by for each in self._inputs
            if each.name in names and axis < len(each.dims)
        }
        if not new and any(each.grows for each in self._caches):  # the IR does not show it: rows of tables are tokens
            indices = [each for each in self._inputs if each.role.kind == INDEX and not each.role.is_position]
            new = {each.dims[-1] for each in indices if each.dims}
        self._new = {each for each in new if isinstance(each, str)}
        """The dimensions of new tokens, and their size if it is fixed."""
        self._fixed = next((each for each in new if isinstance(each, int)), None)

    # -- the course of a sequence

    def first(self, sequence: int, has_prompt: bool, has_total: bool) -> CacheStep:
        """The first step of a sequence."""
        tokens = PROMPTS[sequence % len(PROMPTS)] if has_prompt and self._new else 1
        return CacheStep(sequence, has_total, self._fixed or tokens)

    def drawn(self, step: CacheStep, count: int) -> list[Feeds]:
        """The inputs of `count` steps, without the states. All but the first have one token."""
        found: list[Feeds] = []
        for _ in range(count):
            sizes = self._sizes(step)
            found.append({})
            for each in self._inputs:
                dims = [*each.dims[:-1], TOTAL] if step.has_total and self._is_total(each) else each.dims
                with possible(each.name):
                    shape = tuple(generated.size_of(dim, sizes) for dim in dims)
                    found[-1][each.name] = self._value(each, shape, step)
            self.reorder(step, found[-1])
            step = replace(step, number=step.number + 1, past=step.past + step.tokens, tokens=self._fixed or 1)
        return found

    def initial(self, step: CacheStep, feeds: Feeds, computed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The states before the first step, which has the inputs `feeds`: zeros, of length 0 where they grow.

        `computed` are the initial values of the IR by the ids of its variables: only the IR has sizes that the ONNX
        model leaves open. Other sizes are those of the other inputs.
        """
        sizes = self._sizes(step) | generated.bound_sizes(self._inputs, feeds)
        found = {}
        for each in self._caches:
            dims, value = each.input.dims, computed.get(each.state.id)
            if each.state.grows is None and value is not None:
                each.grows = tuple(axis for axis, size in enumerate(value.shape) if not size)
            shape = [
                dim if isinstance(dim, int) else 0 if axis in each.grows
                else value.shape[axis] if value is not None and value.ndim == len(dims)
                else generated.size_of(dim, sizes)
                for axis, dim in enumerate(dims)
            ]
            with possible(each.input.name):
                found[each.input.name] = np.zeros(shape, each.input.dtype.numpy)
        return found

    def reorder(self, step: CacheStep, feeds: Feeds) -> None:
        """Add `beam_idx`, if the IR has it: all rows in their places, rotated, or one of them twice, in turn."""
        if not self._has_beam:
            return
        dim = self._caches[0].input.dims[self._caches[0].state.batch or 0]
        sizes = self._sizes(step) | generated.bound_sizes(self._inputs, feeds)
        rows = np.arange(generated.size_of(dim, sizes), dtype=np.int32)
        orders = np.maximum(rows - 1, 0) if step.number else rows, np.roll(rows, 1), rows
        feeds.setdefault(BEAM_INDEX, orders[step.number % 3])

    # -- sizes

    def _sizes(self, step: CacheStep) -> dict[str, int]:
        total = step.past + step.tokens
        sizes = {**self.generator.sizes(step.sequence), **self.larger}
        for each in self._caches:
            for axis in each.grows:
                if axis < len(each.after) and isinstance(after := each.after[axis], str):
                    sizes[after] = total
                sizes[str(each.input.dims[axis])] = step.past
        return sizes | dict.fromkeys(self._new, step.tokens) | {TOTAL: total}

    def _is_total(self, each: Input) -> bool:
        """Whether the last dimension of a mask may be that of all tokens: no other input has one of this name."""
        last = each.dims[-1] if each.dims else 0
        if each.role.kind != MASK or isinstance(last, int) or generated.expression_in(last) is not None:
            return False
        others = (each for each in (*self._inputs, *(cache.input for cache in self._caches)) if each.role.kind != MASK)
        return last.startswith(generated.UNNAMED) or all(last not in other.dims for other in others)

    # -- values

    def _value(self, each: Input, shape: tuple[int, ...], step: CacheStep) -> Any:
        total, name = step.past + step.tokens, each.name.lower()
        is_number = each.dtype.kind in ("int", "uint")
        if each.role.is_position and is_number:
            # They continue where the last step ended, below the length of the table that they select from.
            last = step.past + np.arange(shape[-1] if shape else 1)
            return np.resize(last % each.role.below if each.role.below else last, shape).astype(each.dtype.numpy)
        if each.role.kind == MASK and (is_number or each.dtype.kind == "bool"):
            mask = np.ones(shape, each.dtype.numpy)
            # In every other sequence the first place of the first row is padding, in all of its steps.
            if self._is_padded and step.sequence % 2 == 0 and len(shape) == 2 and min(shape) > 1:
                mask[0, 0] = 0
            return mask
        if is_number and "seqlens_k" in name:  # of GroupQueryAttention: the last place of each row
            return np.full(shape, total - 1, each.dtype.numpy)
        if is_number and "total_sequence_length" in name:
            return np.full(shape, total, each.dtype.numpy)
        if each.role.kind == CHOICE:  # all steps of a sequence have the same
            return self.generator.array(each, shape, step.sequence)
        return self.generator.array(each, shape, step.sequence * _APART + step.number)


def _cache(state: StateVariable, entry: Input, output: Any) -> _Cache:
    """It grows along the axes of the IR, or those that ONNX names otherwise after the model. The model may not declare
    the type of an output."""
    dims, after = entry.dims, generated.input_of(output).dims if output.type.WhichOneof("value") else ()
    if state.grows is not None:
        return _Cache(state, entry, after, tuple(axis for axis in state.grows if axis < len(dims)))
    pairs = enumerate(zip(dims, after, strict=True)) if len(dims) == len(after) else ()
    return _Cache(state, entry, after, tuple(axis for axis, (a, b) in pairs if isinstance(a, str) and a != b))
