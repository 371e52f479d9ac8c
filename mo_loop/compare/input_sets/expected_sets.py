"""The inputs of a verification, and the expected outputs: from files, or from ONNX Runtime.

    found = ExpectedSets(Path("model.onnx"), model, settings, notes, shapes_of(converted))
    found.sets, found.oracle

Without given inputs, sets are generated that ONNX Runtime accepts, and whose values are the same in two runs. Which
sizes a model needs is found by trying larger ones:

    search = SetSearch(Generator(model, known), sizes_in(model))
    search.accepted(3, oracle.run)                  # the sets
    search.missing                                  # the others, with the errors

A set with the usual small sizes is refused where a window is longer than its input, where the sizes do not divide, or
where they have to fit a constant. Then the dimensions other than the batch change together, after that one by one, and
in the end all of them; the sizes are small ones, the usual ones of images and audio, and those that the model itself
contains. The search ends after `SECONDS`, and leaves out sets of more than `ELEMENTS`.
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.isolated import Hosted, IsolatedError, brief, isolated
from mo_loop.compare.input_sets.generated import SIZES, Generator, Known, sizes_text
from mo_loop.compare.input_sets.given import read_outputs, read_sets, take_outputs
from mo_loop.compare.input_sets.roles import constant_integers
from mo_loop.compare.oracle.checked_oracle import Oracle, UnstableError, misshapen_by
from mo_loop.compare.oracle.oracle import ONNX_RUNTIME
from mo_loop.compare.results.array_comparison import Named, by_wanted_name, compare_all
from mo_loop.compare.results.report import Row, shape_in
from mo_loop.compare.verify_options import Feeds, VerifyOptions
from mo_loop.errors import InputError, NotComparableError
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import graph_protos

LARGER = (
    *range(2, 9), 16, 32, 64, 96, 128, 160, 224, 256, 320, 400, 512, 640, 800, 1000, 1024, 1600, 2048, 4096, 8000,
    16000,
)
"""The sizes that are tried in turn where small ones are refused."""

SECONDS = 60.0
"""The time after which no other sizes are tried."""

ELEMENTS = 1 << 25
"""The most elements of all inputs of a set that is tried."""

LEAST, GREATEST, MOST = 2, 16_384, 32
"""The integers of a model that are tried as sizes: the least and the greatest of them, and how many."""

Sizes = Mapping[str, int]
Candidate = tuple[Sizes, dict[str, Any]]


@dataclass(frozen=True)
class StepRun:
    """One inference of the IR: its inputs, the outputs that it has to give, and values of variables by their ids.

    Where ONNX Runtime runs a whole sequence at once, `expected` are the outputs of all, and this is the step `number`
    of `count`.
    """

    feeds: Feeds
    expected: Named
    states: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0
    count: int = 1

    def compared(self, outputs: Named) -> tuple[Named, Named]:
        """The outputs that can be compared after the step, and those of the IR: of outputs with the axis of the
        sequence the slices, the others at last."""
        if self.count == 1:
            return self.expected, outputs
        found, wanted = by_wanted_name(self.expected, outputs), []
        for name, array in self.expected:
            shape = np.shape(array)
            small = np.shape(found[name]) if name in found else shape
            axes = [axis for axis, (a, b) in enumerate(zip(shape, small, strict=False)) if a != b]
            if len(shape) == len(small) and len(axes) == 1 and (shape[axes[0]], small[axes[0]]) == (self.count, 1):
                wanted.append((name, np.take(array, [self.number], axes[0])))
            elif self.number == self.count - 1:
                wanted.append((name, array))
        # Otherwise an output lacks, which the comparison reports.
        return wanted, [*found.items()] if len(outputs) == len(self.expected) else outputs


@dataclass(frozen=True)
class ExpectedSet:
    """A set of inputs with the outputs: of one inference, or of the steps from one reset of the states to the next.
    `sizes` are those of the dynamic dimensions of generated inputs."""

    name: str
    steps: Sequence[StepRun]
    sizes: Sizes = field(default_factory=dict)

    @property
    def feeds(self) -> Feeds:
        """The inputs of the first step."""
        return self.steps[0].feeds

    @property
    def expected(self) -> Named:
        """The outputs of the first step."""
        return self.steps[0].expected


class SetSearch:
    """Looks for sets that a runtime accepts. `missing` are the others, with the error of the first try."""

    def __init__(self, generator: Generator, constants: Iterable[int] = ()) -> None:
        """`constants` are sizes that are tried in addition to `LARGER`."""
        self._generator = generator
        self._larger = sorted({*LARGER, *constants})
        self._fitting: list[Sizes] = []
        self.missing: dict[str, IsolatedError] = {}
        self._end = time.monotonic() + SECONDS

    def accepted(self, count: int, run: Callable[[Feeds], Named]) -> list[ExpectedSet]:
        """`count` sets, and sets with a dimension of size 0.

        `run` raises IsolatedError for a set that the runtime refuses. NotComparableError if it refuses all of them.
        """
        found: list[ExpectedSet] = []
        for number in range(count):
            found += self._first(f"generated {number}", self.candidates(number), run)
        if found:
            for symbol in [each for each in self._generator.symbols if self._generator.allows(each, 0)][:2]:
                sizes = {**found[0].sizes, symbol: 0}
                found += self._first(f"{symbol} = 0", [(sizes, self._generator.sized(0, sizes))], run)
            return found
        name, error = next(iter(self.missing.items()))
        if unstable_text(error):
            raise NotComparableError(
                "ONNX Runtime gives no result that can be compared", why=f"{name}: {unstable_text(error)}",
                hint="make the tensor an input (--input), or give the outputs: --expected FILE",
            )
        raise NotComparableError(
            "no inputs could be generated that ONNX Runtime accepts", why=f"{name}: {brief(error)}",
            hint="give inputs: --input-data FILE.npz",
        )

    def _first(
        self, name: str, candidates: Iterable[Candidate], run: Callable[[Feeds], Named]
    ) -> Iterator[ExpectedSet]:
        """The first candidate that `run` accepts, if there is one."""
        for sizes, feeds in candidates:
            try:
                expected = run(feeds)
            except IsolatedError as error:
                self.missing.setdefault(name, error)
                if error.status == "timeout":
                    return
                continue
            self.missing.pop(name, None)
            if 0 not in sizes.values():
                self.fits(sizes)
            yield ExpectedSet(name, [StepRun(feeds, expected)], sizes)
            return

    def fits(self, sizes: Sizes) -> None:
        """Try these sizes first in the sets that follow."""
        self._fitting.insert(0, sizes)

    def candidates(self, number: int, above: Sizes | None = None) -> Iterator[Candidate]:
        """Sets of this number; with `above`, only those that are larger in each dimension that grows.

        The usual sizes come first, then those with which an earlier set was accepted, then larger ones.
        """
        draw, usual = self._generator, self._generator.sizes(number)
        if above is None:
            equal = dict.fromkeys(usual, SIZES[number % len(SIZES)][0])
            yield usual, draw.draw(number)
            yield equal, draw.sized(number, equal, careful=True)
        for sizes in self.larger_sizes(number):
            growth = {name: size - above[name] for name, size in sizes.items()} if above is not None else {"": 1}
            shrinks = any(change < 0 for name, change in growth.items() if name not in draw.batches)
            if not shrinks and max(growth.values(), default=0) > 0:
                yield sizes, draw.sized(number, sizes, careful=True)

    def larger_sizes(self, number: int) -> Iterator[Sizes]:
        """Sizes that are tried for the set of this number: those that fitted before, then larger ones."""
        tried: list[Sizes] = []
        for sizes in self._choices(number):
            if time.monotonic() > self._end:
                return
            if sizes not in tried and self._generator.elements(sizes) <= ELEMENTS:
                tried.append(sizes)
                yield sizes

    def _choices(self, number: int) -> Iterator[Sizes]:
        usual = self._generator.sizes(number)
        symbols, batches = self._generator.symbols, self._generator.batches
        growing = [name for name in symbols if name not in batches]
        for sizes in self._fitting:
            if number > 1:  # odd sizes, if the model takes them
                yield {**sizes, **{name: sizes[name] + 1 for name in growing}}
            yield sizes
        for group in [growing, *([name] for name in growing if len(growing) > 1), *([symbols] if batches else [])]:
            rest = batches.difference(group)
            for size in self._larger if group else ():
                for others in ({}, dict.fromkeys(rest, 1)) if rest else ({},):
                    yield {**usual, **others, **dict.fromkeys(group, size)}


def sizes_in(model: OnnxModel) -> list[int]:
    """Integers of a model, bodies and functions included, that can be sizes of its inputs: those of kernels and of
    small constants, with their sums and products, and the dimensions of inputs and weights."""
    found: dict[int, None] = {}
    dims: dict[int, None] = {}
    for graph in graph_protos(model.proto):
        weights = {each.name: each.dims for each in getattr(graph, "initializer", ())}
        for node in graph.node:
            integers = {each.name: each.ints or (each.i,) for each in node.attribute}
            found.update(dict.fromkeys(integers.get("kernel_shape", ())))
            for name in node.input[1:2] if node.op_type == "Conv" else ():  # the channels are in groups
                dims.update((size * integers.get("group", (1,))[0], None) for size in weights.get(name, ())[1:2])
        dims.update(dict.fromkeys(size for shape in weights.values() for size in shape))
    for values in constant_integers(model.proto).values():
        found.update(dict.fromkeys((*values, sum(values), math.prod(map(abs, values)))))
    dims.update((dim.dim_value, None) for each in model.proto.graph.input for dim in each.type.tensor_type.shape.dim)
    return [size for size in found | dims if LEAST <= size <= GREATEST][:MOST]


# -- the expected outputs

GIVEN = "the given outputs"
"""The source of expected values that come from files."""


def oracle_of(source: Any, settings: VerifyOptions, notes: list[str], hint: str, named: Path | str = "") -> Hosted:
    """ONNX Runtime in a process, or who computes in its place, with a note. NotComparableError with the `hint` if it
    does not run the model `source`, a path or bytes, which the message calls `named`."""
    try:
        oracle = Hosted(Oracle, source, [os.fspath(each) for each in settings.custom_ops], limit=settings.limit)
    except IsolatedError as error:
        text = f"ONNX Runtime does not run {named or source}"
        if "construct locale" in str(error):
            hint = "install this locale on the system: ONNX Runtime needs it, the IR does not; or export with C.UTF-8"
        raise NotComparableError(text, why=brief(error).removeprefix("ML206: "), hint=hint) from None
    name, reason = oracle.facts
    if reason:
        notes.append(f"the expected values are those of {name}: {reason}")
    return oracle


class ExpectedSets:
    """`sets` are those that can be compared, `oracle` is the source of their outputs."""

    has_states = False

    def __init__(
        self, source: Path, model: OnnxModel, settings: VerifyOptions, notes: list[str],
        shapes: Mapping[str, Sequence[Known] | None],
    ) -> None:
        """`source` is the file of `model`; `shapes` are those of the inputs of the IR.

        Raises:
            NotComparableError: ONNX Runtime does not run the model, and no outputs are given; or it accepts none
                of the generated sets, or never gives values twice.
            InputError: it does not accept the given sets.
        """
        self._source, self._model, self._settings, self._notes = source, model, settings, notes
        self.sets: list[ExpectedSet] = []
        self.oracle = GIVEN
        if settings.inputs:
            self._take_given()
            return
        with closing(self.hosted()) as oracle:
            self.search = search = SetSearch(Generator(model, shapes, settings.seed), sizes_in(model))
            try:
                self.sets = search.accepted(settings.sets, oracle.run)
            except NotComparableError as error:
                raise self._of_sizes(error) from None
        unstable = {name: text for name, error in search.missing.items() if (text := unstable_text(error))}
        notes += [f"{name} is left out: {text}" for name, text in unstable.items()]
        if refused := ", ".join(name for name in search.missing if name not in unstable):
            notes.append(f"ONNX Runtime does not accept these inputs, which were left out: {refused}")

    def hosted(self) -> Hosted:
        """ONNX Runtime in a process. NotComparableError if it does not run the model."""
        hint = "give the expected outputs (--expected FILE), or the library of its operators (--custom-ops LIB)"
        oracle = oracle_of(self._source, self._settings, self._notes, hint)
        self.oracle = oracle.facts[0]
        return oracle

    # -- given sets

    def _take_given(self) -> None:
        """The given sets, with the outputs that files have for them, else those of ONNX Runtime."""
        sets = read_sets(self._settings.inputs, self._model)
        given = [take_outputs(name, feeds, self._model) for name, feeds in sets]
        if self._settings.expected:
            given = read_outputs(self._settings.expected, self._model, len(sets))
        oracle: Hosted | None = None
        try:
            oracle = self.hosted()
        except NotComparableError as error:
            if not all(given):
                raise
            self._notes.append(f"ONNX Runtime does not run the model: {error.why}")
        if all(given):
            self.oracle = GIVEN
        with nullcontext() if oracle is None else closing(oracle):
            for (name, feeds), outputs in zip(sets, given, strict=True):
                self._add(name, feeds, outputs, oracle)
        if not self.sets:
            raise NotComparableError("no set of inputs can be compared", why=self._notes[-1], hint="give other inputs")

    def _add(self, name: str, feeds: Feeds, outputs: Feeds, oracle: Hosted | None) -> None:
        """A set, unless the values of ONNX Runtime change."""
        computed: Named = []
        try:
            computed = oracle.run(feeds) if oracle is not None else []
        except IsolatedError as error:
            if unstable_text(error):
                self._notes.append(f"{name} is left out: {unstable_text(error)}")
                return
            if not outputs:
                raise self._of_sizes(InputError(
                    f"ONNX Runtime does not accept the inputs {name}", why=brief(error),
                    hint="check their shapes and types",
                )) from None
            self._notes.append(f"ONNX Runtime does not run {name}: {brief(error)}")
        both = [(output, value) for output, value in computed if output in outputs]
        for result in compare_all([(each, outputs[each]) for each, _ in both], both):
            if not result:
                self._notes.append(f"ONNX Runtime differs from the given outputs of {name}: {result}")
        expected = [*outputs.items(), *(each for each in computed if each[0] not in outputs)]
        self.sets.append(ExpectedSet(name, [StepRun(feeds, expected)]))

    def _of_sizes(self, error: InputError) -> InputError:
        """The error for inputs that ONNX Runtime refuses: with --sizes, their sizes are the first thing to question."""
        sizes = self._settings.given_sizes
        if not sizes:
            return error
        text = ",".join(f"{name}{sizes_text(each)}" for name, each in sizes.items())
        return error.at(
            message=f"ONNX Runtime does not run the model with the sizes {text}: the model itself cannot have them",
            hint="give sizes that fit the weights and constants of the model, or inputs: --input-data FILE.npz",
        )

    # -- values that are not ONNX's

    def leave_out_misshapen(self, differing: Iterable[Row]) -> bool:
        """Leave out the sets of these rows for which ONNX infers the shape that OpenVINO gives, and not that of ONNX
        Runtime; whether there are any."""
        shapes: dict[int, dict[str, list[int]]] = {}
        for row in differing if self.oracle == ONNX_RUNTIME else ():
            shapes.setdefault(row.set, {})[row.output] = shape_in(row.found)
        before = self.sets
        for number, other in shapes.items():
            each = before[number]
            with suppress(IsolatedError):  # the inference of onnx fails: the shapes may still be right
                if text := isolated(misshapen_by, str(self._source), each.feeds, each.expected, other):
                    self._notes.append(f"{each.name} is left out: {text}")
                    self.sets = [kept for kept in self.sets if kept is not each]
        return self.sets is not before


def unstable_text(error: IsolatedError) -> str:
    """The sentence of an UnstableError; empty for another error."""
    return str(error).partition(": ")[2].partition("\n")[0] if error.error == UnstableError.__name__ else ""
