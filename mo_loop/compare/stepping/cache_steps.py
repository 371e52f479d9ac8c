"""Steps of a model whose caller carries states: caches of a decoder, or the states of a recurrent model.

    inputs = CacheInputs(model, known, caches, seed=0)
    step = inputs.begin(0, PLANS[0])                # the first step of sequence 0
    feeds = inputs.draw(step)                       # tokens, masks, positions
    states = inputs.initial(step, feeds, {})        # empty caches
    step = inputs.following(step)

Sizes and values of the inputs have to agree with the states: a mask is as long as all tokens so far, positions continue
where the last step ended. The names of dimensions show which ones these are; where they do not, a StepPlan has an
assumption. The first step of a sequence can have several tokens (a prompt), the others have one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.compare.input_sets.generated import UNNAMED, Generator, bound_sizes, expression_in, input_of, size_of
from mo_loop.compare.input_sets.roles import CHOICE, INDEX, MASK, Input, possible
from mo_loop.compare.stepping.state_variables import Carried
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import all_graphs, operator_of

PROMPTS = (3, 1, 4)
"""The tokens of the first step of the sequences, in turn."""

TOTAL = "tokens so far"
"""The name of a dimension that has the length of all tokens."""

_APART = 1000
"""Steps of one sequence draw other numbers than the next sequence."""


@dataclass(frozen=True)
class StepPlan:
    """A form of the steps: with a `prompt` of several tokens, and masks as long as all tokens so far (`total`)."""

    prompt: bool
    total: bool


PLANS = (StepPlan(True, True), StepPlan(True, False), StepPlan(False, True), StepPlan(False, False))


@dataclass(frozen=True)
class CacheStep:
    """The position in a sequence: the number of earlier tokens, and of the tokens of this step."""

    sequence: int
    plan: StepPlan
    number: int = 0
    past: int = 0
    tokens: int = 1


def _declared(output: Any) -> tuple[int | str, ...]:
    """The dimensions of an output; none where the model does not declare its type, as it may."""
    return input_of(output).dims if output.type.WhichOneof("value") else ()


class CacheInputs:
    """The inputs of a model step by step. `known` are the shapes that the IR declares."""

    def __init__(
        self, model: OnnxModel, known: Mapping[str, Sequence[int | None] | None], caches: Sequence[Carried], seed: int
    ) -> None:
        self._caches = caches
        self.generator = Generator(model, known, seed)
        self._larger: Mapping[str, int] = {}
        carried = {each.input for each in caches}
        self._inputs = [each for each in self.generator.inputs if each.name not in carried]
        self._carried = {each.name: each for each in self.generator.inputs if each.name in carried}
        outputs = {each.name: each for each in model.proto.graph.output}
        self._returned = {each.output: _declared(outputs[each.output]) for each in caches}
        operators = {operator_of(node) for graph in all_graphs(model) for node in graph.nodes}
        self._is_padded = not any(each.startswith("com.") for each in operators)
        """Operators of other domains may need masks without padding, and leave memory unwritten where there is some."""
        self._grows = {each.input: self._growing(each) for each in caches}
        self._new, self._fixed = self._new_dimensions()

    def grow(self, sizes: Mapping[str, int]) -> None:
        """Give dimensions that are not those of tokens and caches these sizes in all sequences from now on."""
        self._larger = sizes

    # -- the course of a sequence

    def begin(self, sequence: int, plan: StepPlan) -> CacheStep:
        """The first step of a sequence."""
        tokens = PROMPTS[sequence % len(PROMPTS)] if plan.prompt else 1
        return CacheStep(sequence, plan, tokens=self._fixed or (tokens if self._new else 1))

    def following(self, step: CacheStep) -> CacheStep:
        """The step after one: it has one token."""
        return CacheStep(step.sequence, step.plan, step.number + 1, step.past + step.tokens, self._fixed or 1)

    def initial(
        self, step: CacheStep, feeds: Mapping[str, Any], computed: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The states before the first step, which has the inputs `feeds`: zeros, of length 0 where they grow.

        `computed` are the initial values of the IR by the ids of its variables: only the IR has sizes that the ONNX
        model leaves open. Other sizes are those of the other inputs.
        """
        sizes = self._sizes(step) | bound_sizes(self._inputs, feeds)
        found = {}
        for each in self._caches:
            entry, value = self._carried[each.input], computed.get(each.variable.id)
            if each.variable.grows is None and value is not None:
                self._grows[each.input] = tuple(axis for axis, size in enumerate(value.shape) if not size)
            shape = [
                dim if isinstance(dim, int) else 0 if axis in self._grows[each.input]
                else value.shape[axis] if value is not None and value.ndim == len(entry.dims) else size_of(dim, sizes)
                for axis, dim in enumerate(entry.dims)
            ]  # fmt: skip
            with possible(each.input):
                found[each.input] = np.zeros(shape, entry.dtype.numpy)
        return found

    def batch(self, step: CacheStep, feeds: Mapping[str, Any]) -> int:
        """The number of rows that `beam_idx` reorders, in a step with the inputs `feeds`."""
        first = self._caches[0]
        dim = self._carried[first.input].dims[first.variable.batch or 0]
        return dim if isinstance(dim, int) else size_of(dim, self._sizes(step) | bound_sizes(self._inputs, feeds))

    def draw(self, step: CacheStep) -> dict[str, Any]:
        """The inputs of a step, without the states."""
        sizes = self._sizes(step)
        found = {}
        for each in self._inputs:
            with possible(each.name):
                found[each.name] = self._value(each, self._shape(each, step, sizes), step)
        return found

    # -- sizes

    def _growing(self, cache: Carried) -> tuple[int, ...]:
        """The axes along which a state grows: those of the IR, or those that ONNX names otherwise after the model."""
        dims, after = self._carried[cache.input].dims, self._returned[cache.output]
        if cache.variable.grows is not None:
            return tuple(axis for axis in cache.variable.grows if axis < len(dims))
        if len(dims) != len(after):
            return ()
        return tuple(axis for axis, (a, b) in enumerate(zip(dims, after, strict=True)) if isinstance(a, str) and a != b)

    def _new_dimensions(self) -> tuple[set[str], int | None]:
        """The dimensions of new tokens, and their size if it is fixed."""
        found: set[int | str] = set()
        for names, axis in (each for cache in self._caches for each in cache.variable.by):
            found |= {each.dims[axis] for each in self._inputs if each.name in names and axis < len(each.dims)}
        if not found and any(self._grows.values()):  # the IR does not show it: rows of tables are tokens
            tokens = [each for each in self._inputs if each.role.kind == INDEX and not each.role.is_position]
            found = {each.dims[-1] for each in tokens if each.dims}
        fixed = [each for each in found if isinstance(each, int)]
        return {each for each in found if isinstance(each, str)}, fixed[0] if fixed else None

    def _sizes(self, step: CacheStep) -> dict[str, int]:
        total = step.past + step.tokens
        sizes = {**self.generator.sizes(step.sequence), **self._larger}
        for each in self._caches:
            dims, after = self._carried[each.input].dims, self._returned[each.output]
            for axis in self._grows[each.input]:
                if axis < len(after) and isinstance(after[axis], str):
                    sizes[str(after[axis])] = total
                sizes[str(dims[axis])] = step.past
        return sizes | dict.fromkeys(self._new, step.tokens) | {TOTAL: total}

    def _shape(self, each: Input, step: CacheStep, sizes: Mapping[str, int]) -> tuple[int, ...]:
        dims = list(each.dims)
        if step.plan.total and dims and self._is_total(each):
            dims[-1] = TOTAL
        return tuple(dim if isinstance(dim, int) else size_of(dim, sizes) for dim in dims)

    def _is_total(self, each: Input) -> bool:
        """Whether the last dimension of a mask may be that of all tokens: no other input has one of this name."""
        last = each.dims[-1]
        if each.role.kind != MASK or isinstance(last, int) or expression_in(last) is not None:
            return False
        others = [other for other in (*self._inputs, *self._carried.values()) if other.role.kind != MASK]
        return last.startswith(UNNAMED) or all(last not in other.dims for other in others)

    # -- values

    def _value(self, each: Input, shape: tuple[int, ...], step: CacheStep) -> Any:
        total, name = step.past + step.tokens, each.name.lower()
        is_number = each.dtype.kind in ("int", "uint")
        if each.role.is_position and is_number:
            return self._positions(each, shape, step)
        if each.role.kind == MASK and (is_number or each.dtype.kind == "bool"):
            return self._mask(shape, step).astype(each.dtype.numpy)
        if is_number and "seqlens_k" in name:  # of GroupQueryAttention: the last place of each row
            return np.full(shape, total - 1, each.dtype.numpy)
        if is_number and "total_sequence_length" in name:
            return np.full(shape, total, each.dtype.numpy)
        if each.role.kind == CHOICE:  # all steps of a sequence have the same
            return self.generator.array(each, shape, step.sequence)
        return self.generator.array(each, shape, step.sequence * _APART + step.number)

    def _positions(self, each: Input, shape: tuple[int, ...], step: CacheStep) -> np.ndarray:
        """Numbers that continue where the last step ended, below the length of the table that they select from."""
        if not shape:
            return np.asarray(step.past, each.dtype.numpy)
        last = step.past + np.arange(shape[-1])
        if each.role.below is not None:
            last %= each.role.below
        return np.broadcast_to(last, shape).astype(each.dtype.numpy)

    def _mask(self, shape: tuple[int, ...], step: CacheStep) -> np.ndarray:
        """Ones; in every other sequence the first place of the first row is padding, in all of its steps."""
        found = np.ones(shape)
        if self._is_padded and step.sequence % 2 == 0 and len(shape) == 2 and shape[0] > 1 and shape[1] > 1:
            found[0, 0] = 0
        return found


def reordering(step: CacheStep, batch: int) -> np.ndarray:
    """The rows of `beam_idx`: all in their places, rotated, or one of them twice, in turn."""
    rows = np.arange(batch, dtype=np.int32)
    if step.number % 3 == 1:
        return np.roll(rows, 1)
    return np.maximum(rows - 1, 0) if step.number and step.number % 3 == 0 else rows
