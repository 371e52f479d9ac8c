"""changing_pass: which pass of a conversion changed the numbers.

    found = changing_pass("model.onnx", ConvertOptions(), plain)
    print(found)                # the pass, or the range of passes; None: the numbers of the IR are right

The IR after each pass is run where it can be, by bisection: half of the passes that come into question are excluded by
each run. After some passes the graph cannot be written or run, because a later pass lowers what they leave: then the
answer is a range. OpenVINO runs in a worker process, so a crash counts as "cannot be run".
"""

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mo_loop.compare.execution.isolated import brief
from mo_loop.compare.ir_runs import IrRuns
from mo_loop.compare.results.report import DIFFERS
from mo_loop.compare.verify_options import F32
from mo_loop.conversion import Conversion
from mo_loop.converted_model import Model, write_pair
from mo_loop.errors import MoLoopError
from mo_loop.graph import Graph
from mo_loop.options import ConvertOptions
from mo_loop.printable import printable
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.manager import Observer, Phase, Step

AGREES, NOT_RUN = "agrees", "cannot be run"
PASS, RANGE, TRANSLATION, WRITING, SWITCHED_OFF = "pass", "range", "translation", "writing", "switched off"

FIRST_LINES = {
    PASS: "The pass {} changes the numbers: they agree before it and differ after it.",
    RANGE: "One of these passes changes the numbers, and the IR cannot be run between them: {}.",
    TRANSLATION: "The numbers differ before any pass: the translation of a node is wrong, or the runtime is.",
    WRITING: "The numbers differ because the weights are stored as f16.",
    SWITCHED_OFF: "The numbers agree if {} {}.",
}
WITHOUT = {
    AGREES: "Without it, the numbers agree.",
    DIFFERS: "Without it, the numbers differ, too.",
    NOT_RUN: "Without it, the model cannot be converted or run.",
}


@dataclass(frozen=True)
class PassDifference:
    """The part of a conversion that changed the numbers.

    `kind` is one of "pass" (the one in `passes` changed them), "range" (one of `passes`: the IR cannot be run between
    them), "translation" (they differ before any pass), "writing" (they differ when weights are stored as f16) and
    "switched off" (they agree if `passes` run, which the configuration switches off). `rules` are the matchers in the
    pass without which the numbers agree. `without` is the result of the IR without the pass: "agrees", "differs" or
    "cannot be run". `difference` is in words, of the first output that differs. `runs` has for each tried step its
    number, name and result.
    """

    kind: str
    passes: tuple[str, ...]
    difference: str
    rules: tuple[str, ...] = ()
    without: str = ""
    not_run: Mapping[str, str] = field(default_factory=dict)
    runs: tuple[tuple[int, str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """All fields, in types that JSON has."""
        runs = [{"step": number, "name": name, "result": result} for number, name, result in self.runs]
        return {**asdict(self), "passes": list(self.passes), "rules": list(self.rules), "runs": runs}

    def __str__(self) -> str:
        switched = "run: they are switched off" if len(self.passes) > 1 else "runs: it is switched off"
        lines = [FIRST_LINES[self.kind].format(", ".join(self.passes), switched), f"  {self.difference}."]
        if self.rules:
            lines.append(f"  Without the rule {' or '.join(self.rules)} in it, the numbers agree.")
        elif self.without:
            lines.append(f"  {WITHOUT[self.without]}")
        lines += [f"  After {name} the IR cannot be run: {why}." for name, why in list(self.not_run.items())[:3]]
        lines.append(f"  The IR was run after {sum(result != NOT_RUN for *_, result in self.runs)} steps.")
        return "\n".join(map(printable, lines))


def changing_pass(model: Any, options: ConvertOptions, plain: IrRuns) -> PassDifference | None:
    """The pass that changed the numbers; None if the IR gives the right ones.

    Args:
        model: the ONNX model, as a path, bytes or an `onnx.ModelProto`.
        options: of the conversion.
        plain: runs the IR of a step with sets of inputs, and compares it as the one that is verified.

    Raises:
        MoLoopError: the model cannot be converted.
    """
    with tempfile.TemporaryDirectory(prefix="mo-loop-") as folder:
        return _Trials(model, options, plain, Path(folder)).answer()


class _Taken(Exception):
    """Ends a conversion whose graph was taken after a pass."""


@dataclass
class _Trials:
    """The runs of one search."""

    model: Any
    options: ConvertOptions
    plain: IrRuns
    folder: Path
    steps: list[Step] = field(default_factory=list)
    results: dict[int, tuple[str, str]] = field(default_factory=dict)

    def answer(self) -> PassDifference | None:
        graph = self._converted(self.options, [self._keep])
        last = len(self.steps)
        result, text = self.results[last] = self._ran(graph)
        if result == AGREES:
            result, text = self._ran(graph, compress=True) if self.options.compress_to_fp16 else (AGREES, "")
            return None if result == AGREES else PassDifference(WRITING, (), text, runs=self._runs())
        if result == NOT_RUN:
            text = f"the IR cannot be run: {text}"
            self.results[last] = DIFFERS, text
        if off := self._switched_off():
            return PassDifference(SWITCHED_OFF, off, text, runs=self._runs())
        low, high = self._bisected(last)
        names = tuple(self._name(number) for number in range(low + 1, high + 1))
        between = {self._name(number): self.results[number][1] for number in range(low + 1, high)}
        found = PassDifference(PASS, names, text, not_run=between, runs=self._runs())
        if not high:
            return replace(found, kind=TRANSLATION, passes=())
        if len(names) > 1:
            return replace(found, kind=RANGE)
        matched = [name for name, count in self.steps[high - 1].matchers if count]
        rules = tuple(name for name in matched if self._with(disabled=[name]) == AGREES)
        return replace(found, rules=rules, without=self._with(disabled=names))

    def _keep(self, event: Step | Phase) -> None:
        if isinstance(event, Step) and event.changed:
            self.steps.append(event)

    def _name(self, number: int) -> str:
        return "translation" if not number else self.steps[number - 1].name

    def _runs(self) -> tuple[tuple[int, str, str], ...]:
        return tuple((number, self._name(number), result) for number, (result, _) in sorted(self.results.items()))

    # -- the search

    def _bisected(self, last: int) -> tuple[int, int]:
        """The last step after which the numbers agree (-1: none), and the next one after which they differ.

        After all steps between them the graph cannot be run.
        """
        low, high = -1, last
        while True:
            untried = [number for number in range(low + 1, high) if number not in self.results]
            if not untried:
                return low, high
            middle = min(untried, key=lambda number: abs(2 * number - low - high))
            result, _ = self.results[middle] = self._tried(middle)
            if result == AGREES:
                low = middle
            elif result == DIFFERS:
                high = middle

    def _tried(self, number: int) -> tuple[str, str]:
        """The result of the graph after the step of a number, 0 for the translation."""
        from mo_loop.transforms.runtime.lower_barriers import LowerBarriers

        taken: list[Graph] = []
        left = number

        def take(event: Step | Phase) -> None:
            nonlocal left
            if isinstance(event, Step):
                left -= event.changed
            elif event.name != "passes" or event.seconds is not None:
                return
            if not left and event.graph is not None:
                taken.append(event.graph.clone())
                raise _Taken

        with suppress(_Taken):
            self._converted(self.options, [take])
        (graph,) = taken
        LowerBarriers().run(graph)  # the IR does not have them
        graph.validate()
        return self._ran(graph)

    def _switched_off(self) -> tuple[str, ...]:
        """The passes that the configuration switches off and without which the numbers differ."""
        off = [] if self.options.config is None else self.options.config.disabled
        if not off or self._with(enabled=off) != AGREES:
            return ()
        alone = [name for name in off if len(off) > 1 and self._with(enabled=[name]) == AGREES]
        return tuple(alone[:1] or off)

    def _with(self, *, enabled: Sequence[str] = (), disabled: Sequence[str] = ()) -> str:
        """The result of the whole conversion with other passes."""
        config = PassConfig()
        config.disable(*disabled)
        config.enable(*enabled)
        if self.options.config is not None:
            config.adopt(self.options.config)
        try:
            return self._ran(self._converted(replace(self.options, config=config)))[0]
        except MoLoopError:
            return NOT_RUN

    # -- one run

    def _converted(self, options: ConvertOptions, observers: Sequence[Observer] = ()) -> Graph:
        with warnings.catch_warnings(action="ignore"):
            return Conversion(options, observers).run(self.model)

    def _ran(self, graph: Graph, compress: bool = False) -> tuple[str, str]:
        """Whether the numbers agree; the difference, or the reason why the graph cannot be run."""
        path = self.folder / "step.xml"
        try:
            write_pair(Model(graph), path, compress)
        except Exception as error:  # operations that later passes lower have no form in the IR
            return NOT_RUN, " ".join(brief(error).split()).rstrip(".")
        side = self.plain.ran(F32, path)
        if side.status == DIFFERS and side.first is not None:
            return DIFFERS, str(side.first.result)
        return (AGREES, "") if side.passed else (NOT_RUN, " ".join(side.message.split()).rstrip("."))
