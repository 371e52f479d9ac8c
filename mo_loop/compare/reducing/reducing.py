"""reduce: the smallest model that still shows a condition.

    found = reduce("model.onnx", "differs")
    found.save("small.onnx")
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mo_loop.compare.execution.isolated import Hosted, IsolatedError, brief
from mo_loop.compare.input_sets.accepted_sets import SetSearch, sizes_in
from mo_loop.compare.input_sets.generated import Generator
from mo_loop.compare.input_sets.given import read_sets
from mo_loop.compare.oracle.checked_oracle import Oracle
from mo_loop.compare.packages import require_packages
from mo_loop.compare.reducing.candidate import Candidate, graphs
from mo_loop.compare.reducing.search import ReductionSearch
from mo_loop.compare.reducing.trial import Condition, Trials
from mo_loop.conversion import Conversion
from mo_loop.errors import InputError, MoLoopError, NotComparableError, UsageError
from mo_loop.frontend.model import load
from mo_loop.frontend.onnx_graphs import needs_permission, operator_of, with_data
from mo_loop.options import ConvertOptions
from mo_loop.support.printable import printable
from mo_loop.support.shown_result import PLAIN, ShownResult, Style

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
        counts = Counter(operator_of(node) for graph in graphs(self.best.proto) for node in graph.node)
        operators = ", ".join(f"{count} {name}" if count > 1 else name for name, count in counts.items())
        lines = (
            f"{self.model}: {self.start}", f"{target}: {self.best}: {operators}",
            f"{self.trials} trials, {self.seconds:.1f} s",
        )  # fmt: skip
        return "\n".join(map(printable, lines))

    def to_dict(self) -> dict[str, Any]:
        """The sizes before and after, the trials and the seconds."""
        return {
            "schema": "mo-loop reduce", "version": 1, "model": self.model, "before": self.start.sizes(),
            "after": self.best.sizes(), "trials": self.trials, "seconds": round(self.seconds, 3),
        }  # fmt: skip

    def _brief(self) -> str:
        return f"{self.model}: {self.start.size.all_nodes} -> {self.best.size.all_nodes} nodes"


def reduce(
    model: str | os.PathLike[str],
    condition: str,
    *,
    inputs: Sequence[str | Path | Mapping[str, Any]] = (),
    sets: int = 3,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    seconds: float = 600.0,
    trial_seconds: float = 60.0,
    jobs: int = 2,
    options: ConvertOptions | Mapping[str, Any] | None = None,
    better: Callable[[Candidate, int], None] = lambda candidate, trials: None,
) -> Reduced:
    """Make a model as small as possible while it still shows a condition.

    Args:
        model: The path of an .onnx file.
        condition: "differs", "crashes", "unreadable", "uncompilable", "fails", "fails CODE", or a command that exits
            with 0, in which {} is the path of the model.
        inputs: Sets of inputs, as for `verify`. Without them, `sets` of them are generated from `seed`.
        sets: The number of generated sets.
        seed: The seed of generated inputs.
        rtol: The relative tolerance of "differs".
        atol: The absolute tolerance of "differs".
        seconds: End the search after this time.
        trial_seconds: End one trial after this time.
        jobs: Worker processes.
        options: The options of the conversion, as ConvertOptions or by name: {"target": "2026.4"}.
        better: Is called with each smaller candidate and the number of trials so far.

    Returns:
        The smallest model that was found; `save` writes it.

    Raises:
        InputError: the model cannot be read, does not show the condition, or an argument is wrong.
    """
    begin = time.monotonic()
    options = ConvertOptions.of(options)
    wanted = Condition.parse(condition)
    if wanted.runs_ir:
        require_packages()
    opened = load(str(model), options.allowed_folders)
    _require_uncut(options)
    data = with_data(opened).SerializeToString()
    start = Candidate(data, _sets(opened, data if needs_permission(opened) else str(model), wanted, inputs, sets, seed))
    trials = Trials(wanted, options, jobs=jobs, seconds=trial_seconds, rtol=rtol, atol=atol)
    try:
        if trials.first([start]) is None:
            raise InputError(
                f"{model} does not show the condition", why=f"this does not hold: {wanted}",
                hint="give the options and the inputs with which it does", code="ML205",
            )  # fmt: skip
        # A smaller model can run forever, for example with a condition that became constant.
        trials.seconds = min(trial_seconds, LEAST_SECONDS + 2 * trials.slowest)
        search = ReductionSearch(start, trials, seconds=seconds, better=lambda found: better(found, trials.count))
        best = search.run()
        return Reduced(str(model), best, start, trials.count, time.monotonic() - begin)
    finally:
        trials.close()


def _require_uncut(options: ConvertOptions) -> None:
    """InputError for options that name tensors of the whole model, which a smaller one does not have."""
    if options.input or options.output or options.freeze or options.rename:
        raise UsageError(
            "the options name tensors of the model", why="a smaller model does not have all of them",
            hint="reduce without --input, --output, --freeze and --rename",
        )  # fmt: skip
    Conversion(options)  # wrong names of passes and extensions are errors here, not in every trial


def _sets(
    opened: Any, model: bytes | str, wanted: Condition, inputs: Sequence[Any], count: int, seed: int
) -> tuple[Mapping[str, Any], ...]:
    """The sets of inputs. Without given ones they are generated, if ONNX Runtime runs the model."""
    if inputs:
        return tuple(feeds for _, feeds in read_sets(inputs, opened))
    try:
        oracle = Hosted(Oracle, model)
        try:
            sets = SetSearch(Generator(opened, {}, seed), sizes_in(opened))
            return tuple(feeds for _, feeds in sets.accepted(count, oracle.run).sets)
        finally:
            oracle.close()
    except (IsolatedError, MoLoopError) as error:
        if not wanted.runs_ir:
            return ()
        if isinstance(error, MoLoopError):
            raise
        raise NotComparableError(
            "ONNX Runtime does not run the model", why=brief(error), hint="correct the model as the reason says"
        ) from None
