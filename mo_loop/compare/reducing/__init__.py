"""reduce: the smallest model that still shows a condition, by delta debugging.

    found = reduce("model.onnx", "differs")
    found.save("small.onnx")

The search begins at the nodes that the error or the piece names. Each phase removes parts of one kind; the phases
repeat until none finds anything. Nodes are removed in halves, quarters and so on (delta debugging), several trials at a
time. No candidate has more nodes than the model. `candidates` has a model with its inputs, its size, and smaller ones;
`trial` the condition that the model has to show, and a candidate that is converted and run for it.
"""

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from mo_loop.compare.execution.isolated import SERVE, IsolatedError, isolated
from mo_loop.compare.input_sets.expected_sets import SetSearch, oracle_of, sizes_in
from mo_loop.compare.input_sets.generated import Generator
from mo_loop.compare.input_sets.given import read_sets
from mo_loop.compare.reducing.candidates import (
    Candidate,
    lengths,
    shortened,
    unwrapped,
    with_nodes,
    with_outputs,
    with_simpler_numbers,
)
from mo_loop.compare.reducing.trial import Condition, Trial
from mo_loop.compare.verify_options import VerifyOptions, require_packages
from mo_loop.conversion import Conversion
from mo_loop.errors import InputError, MoLoopError, UsageError
from mo_loop.frontend.model import OnnxModel, load
from mo_loop.frontend.node_order import NamesRead
from mo_loop.frontend.onnx_graphs import operator_of, with_data
from mo_loop.options import ConvertOptions
from mo_loop.printable import PLAIN, ShownResult, Style, printable
from mo_loop.support.workers import Pool

LEAST_SECONDS = 2.0
"""The least time of a trial; a process that is replaced needs most of it for its imports."""


@dataclass(frozen=True, repr=False)
class Reduced(ShownResult):
    """The smallest candidate, the one at the beginning, the number of trials, and the seconds that they took."""

    model: str
    best: Candidate
    start: Candidate
    trials: int
    seconds: float

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the smallest model, and its inputs next to it as .npz."""
        self.best.save(Path(path))

    def text(self, style: Style = PLAIN, target: str = "reduced") -> str:
        """The text that `mo-loop reduce` prints; `target` is the name of the smallest model."""
        counts = Counter(operator_of(node) for graph in self.best.graphs for node in graph.node)
        operators = ", ".join(f"{count} {name}" if count > 1 else name for name, count in counts.items())
        lines = (
            f"{self.model}: {self.start}", f"{target}: {self.best}: {operators}",
            f"{self.trials} trials, {self.seconds:.1f} s",
        )
        return "\n".join(map(printable, lines))

    def to_dict(self) -> dict[str, Any]:
        """The sizes before and after, the trials and the seconds."""
        return {
            "schema": "mo-loop reduce", "version": 1, "model": self.model, "before": self.start.sizes(),
            "after": self.best.sizes(), "trials": self.trials, "seconds": round(self.seconds, 3),
        }

    def _brief(self) -> str:
        return f"{self.model}: {self.start.size.all_nodes} -> {self.best.size.all_nodes} nodes"


def reduce(
    model: str | os.PathLike[str], condition: str, *, inputs: Sequence[str | Path | Mapping[str, Any]] = (),
    sets: int = 3, seed: int = 0, rtol: float | None = None, atol: float | None = None, seconds: float = 600.0,
    trial_seconds: float = 60.0, jobs: int = 2, options: ConvertOptions | Mapping[str, Any] | None = None,
    better: Callable[[Candidate, int], None] | None = None,
) -> Reduced:
    """Make a model as small as possible while it still shows a condition.

    Args:
        model: The path of an .onnx file.
        condition: The condition that smaller models still show: "differs", "crashes", "unreadable", "uncompilable",
            "fails", "fails CODE", or a command that exits with 0, in which {} is the path of the model.
        inputs: Sets of inputs, as for `verify`. By default inputs are generated.
        sets: The number of sets of inputs that are generated.
        seed: The seed of the generated inputs.
        rtol: The relative tolerance of "differs".
        atol: The absolute tolerance of "differs".
        seconds: The time in seconds after which the search ends.
        trial_seconds: The time in seconds after which a trial ends.
        jobs: The number of worker processes.
        options: The options of the conversion, as ConvertOptions or by name: {"target": "2026.4"}.
        better: A function that is called with each smaller candidate and the number of trials so far.

    Returns:
        The smallest model that was found; `save` writes it.

    Raises:
        InputError: the model cannot be read, does not show the condition, or an argument is wrong.
    """
    begin = time.monotonic()
    options = ConvertOptions.of(options)
    settings = VerifyOptions(inputs=inputs, sets=sets, seed=seed, rtol=rtol, atol=atol, options=options)
    wanted = Condition.parse(condition)
    if wanted.runs_ir:
        require_packages()
    opened = load(str(model), options.allowed_folders)
    if options.input or options.output or options.freeze or options.rename:
        raise UsageError(
            "the options name tensors of the model", why="a smaller model does not have all of them",
            hint="reduce without --input, --output, --freeze and --rename",
        )
    Conversion(options)  # wrong names of passes and extensions are errors here, not in every trial
    data = with_data(opened).SerializeToString()
    start = Candidate(data, _sets(data, opened, wanted, settings))
    with Pool(SERVE, jobs=jobs, limit=trial_seconds) as pool:
        search = ReductionSearch(Trial(start, wanted, replace(settings, inputs=())), pool, better or (lambda *_: None))
        if search.tried([start]) is None:
            raise InputError(
                f"{model} does not show the condition", why=f"this does not hold: {wanted}",
                hint="give the options and the inputs with which it does", code="ML205",
            )
        search.run(seconds)
    return Reduced(str(model), search.best, start, search.trials, time.monotonic() - begin)


def _sets(data: bytes, model: OnnxModel, wanted: Condition, settings: VerifyOptions) -> tuple[Mapping[str, Any], ...]:
    """The sets of inputs. Without given ones they are generated, if ONNX Runtime runs the model."""
    if settings.inputs:
        return tuple(feeds for _, feeds in read_sets(settings.inputs, model))
    try:
        with closing(oracle_of(data, settings, [], "correct the model as the reason says", "the model")) as oracle:
            search = SetSearch(Generator(model, {}, settings.seed), sizes_in(model))
            return tuple(each.feeds for each in search.accepted(settings.sets, oracle.run))
    except MoLoopError:
        if wanted.runs_ir:
            raise
        return ()


class ReductionSearch:
    """The search for a smaller candidate. `best` is the smallest so far, `trials` the number of trials."""

    def __init__(self, start: Trial, pool: Pool, better: Callable[[Candidate, int], None]) -> None:
        """`better` is called with each smaller candidate that shows the condition, and the number of trials."""
        self.best = replace(start.candidate)  # the values that it computes are not kept with the result
        self.trials = 0
        self._start = start
        self._most = self.best.size.all_nodes
        self._pool = pool
        self._slowest = 0.0
        self._end = math.inf
        self._better = better

    def run(self, seconds: float) -> None:
        """Find the smallest candidate, for at most this time."""
        self._end = time.monotonic() + seconds
        # A smaller model can run forever, for example with a condition that became constant.
        self._pool.limit = min(self._pool.limit, LEAST_SECONDS + 2 * self._slowest)
        self._named()
        before = None
        while self.best is not before and not self._is_late():
            before = self.best
            self._first(Candidate(before.model, (feeds,)) for feeds in before.sets)
            self._reduce([each.name for each in self.best.proto.graph.output], partial(with_outputs, self.best))
            self._nodes(0)
            while self._first(unwrapped(self.best, number) for number in range(1, len(self.best.graphs))) is not None:
                pass
            number = 1
            while number < len(self.best.graphs):
                self._nodes(number)
                number += 1
            for size in lengths(self.best):
                self._first(shortened(self.best, size, new) for new in (1, 2) if new < size)
            while self._first(with_simpler_numbers(self.best)) is not None:
                pass

    def tried(self, candidates: Sequence[Candidate]) -> int | None:
        """The place of the first candidate that shows the condition; all are tried at once."""
        trials = [replace(self._start, candidate=each) for each in candidates]
        showing = list[Trial]()
        for outcome in self._pool.map((Trial.shows, (each,)) for each in trials):
            self.trials += 1
            self._slowest = max(self._slowest, outcome.seconds)
            showing += outcome.task[1] if self._start.is_shown(outcome) else ()
        return next((place for place, each in enumerate(trials) if any(each is one for one in showing)), None)

    def _is_late(self) -> bool:
        return time.monotonic() > self._end

    def _first(self, candidates: Iterable[Candidate | None]) -> int | None:
        """The place of the first smaller candidate that shows the condition, which is the best then."""
        source, best = enumerate(candidates), self.best.size
        while not self._is_late() and (some := list(islice(source, self._pool.jobs))):
            smaller = [(place, each) for place, each in some
                       if each is not None and each.size < best and each.size.all_nodes <= self._most]
            found = self.tried([each for _, each in smaller])
            if found is not None:
                place, self.best = smaller[found]
                self._better(self.best, self.trials)
                return place
        return None

    def _reduce(self, items: Sequence[Any], build: Callable[[Sequence[Any]], Candidate | None]) -> None:
        """Delta debugging: the smallest part of `items` from which `build` makes a candidate with the condition."""
        kept, size = list(items), len(items)
        while len(kept) > 1 and size and not self._is_late():
            size = min(size, (len(kept) + 1) // 2)
            parts = [kept[:start] + kept[start + size :] for start in range(0, len(kept), size)]
            place = self._first(map(build, parts))
            if place is None:
                size //= 2
            else:
                kept = parts[place]

    def _nodes(self, number: int) -> None:
        """Fewer nodes of the graph of this number."""
        self._reduce(range(len(self.best.graphs[number].node)), partial(with_nodes, self.best, number))

    def _named(self) -> None:
        """The node that the error or the verdict names, with as many nodes around it as the condition needs."""
        graph, place = self.best.proto.graph, None
        with suppress(IsolatedError):
            place = isolated(Trial.suspect, replace(self._start, candidate=self.best))
        if place is not None and len(graph.node) > 1:
            self._first(with_nodes(self.best, 0, kept) for kept in windows(graph, place))


def windows(graph: Any, number: int) -> Iterator[list[int]]:
    """The node alone, and the nodes within 1, 2, 4 ... steps before and after it; the last one has less than all."""
    names, near = NamesRead(), [set[int]() for _ in graph.node]
    makers = {name: place for place, node in enumerate(graph.node) for name in node.output if name}
    for place, node in enumerate(graph.node):
        for source in (makers[name] for name in names.of_node(node) if name in makers):
            near[place].add(source)
            near[source].add(place)
    kept, edge, steps = {number}, {number}, 0
    while edge and len(kept) < len(near):
        if steps & (steps - 1) == 0:  # a power of two, or zero
            yield sorted(kept)
        edge = set[int]().union(*(near[each] for each in edge)) - kept
        kept |= edge
        steps += 1
