"""reduce: the smallest model that still shows a condition.

    found = reduce("model.onnx", "differs", options=ConvertOptions(), better=save)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mo_loop.compare.execution.hosted_object import Hosted
from mo_loop.compare.execution.isolated import IsolatedError
from mo_loop.compare.input_sets.accepted_sets import SetSearch, sizes_in
from mo_loop.compare.input_sets.generated import Generator
from mo_loop.compare.input_sets.given import read_sets
from mo_loop.compare.oracle.checked_oracle import Oracle
from mo_loop.compare.packages import require_packages
from mo_loop.compare.reducing.candidate import Candidate
from mo_loop.compare.reducing.condition import Condition
from mo_loop.compare.reducing.search import ReductionSearch
from mo_loop.compare.reducing.trial import Trials
from mo_loop.conversion import Conversion
from mo_loop.errors import InputError, MoLoopError
from mo_loop.frontend.external_data import needs_permission, with_data
from mo_loop.frontend.model import load
from mo_loop.options import ConvertOptions

LEAST_SECONDS = 2.0
"""The least time of a trial; a process that is replaced needs most of it for its imports."""


@dataclass(frozen=True)
class Reduced:
    """The smallest candidate, the one at the beginning, and the number of trials."""

    best: Candidate
    start: Candidate
    trials: int


def reduce(
    model: str | Path,
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
    options: ConvertOptions | None = None,
    better: Callable[[Candidate, int], None] = lambda candidate, trials: None,
) -> Reduced:
    """Reduce a model. `better` is called with each smaller candidate and the number of trials so far.

    Raises:
        InputError: the model cannot be read, does not show the condition, or an argument is wrong.
    """
    wanted = Condition.parse(condition)
    if wanted.runs_ir:
        require_packages()
    opened = load(str(model), options.allowed_folders if options is not None else ())
    _require_uncut(options)
    data = with_data(opened).SerializeToString()
    start = Candidate(data, _sets(opened, data if needs_permission(opened) else str(model), wanted, inputs, sets, seed))
    trials = Trials(wanted, options or ConvertOptions(), jobs=jobs, seconds=trial_seconds, rtol=rtol, atol=atol)
    try:
        if trials.first([start]) is None:
            raise InputError(
                f"{model} does not show the condition", why=f"it is not so that {wanted}",
                hint="give the options and the inputs with which it does", code="ML203",
            )  # fmt: skip
        # A smaller model can run forever, for example with a condition that became constant.
        trials.seconds = min(trial_seconds, LEAST_SECONDS + 2 * trials.slowest)
        search = ReductionSearch(start, trials, seconds=seconds, better=lambda found: better(found, trials.count))
        return Reduced(search.run(), start, trials.count)
    finally:
        trials.close()


def _require_uncut(options: ConvertOptions | None) -> None:
    """InputError for options that name tensors of the whole model, which a smaller one does not have."""
    if options is not None and (options.input or options.output or options.freeze or options.rename):
        raise InputError(
            "the options name tensors of the model", why="a smaller model does not have all of them", code="ML203",
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
    except (IsolatedError, MoLoopError):
        if wanted.runs_ir:
            raise
        return ()
