"""The output of --explain-pass: for each candidate of a pass, its outcome and the reason.

    explanations = Explanations(config, {"NopElimination": ["EliminatePad", "EliminateConvert"]})
    Conversion(options, [explanations]).run("model.onnx")
    explanations.lines()
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from mo_loop.printable import printable
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.manager import Phase, Step


class Explanations:
    """An observer of the passes whose decisions `config` records."""

    def __init__(self, config: PassConfig, names: Mapping[str, Sequence[str]]) -> None:
        """`names`: each name in --explain-pass -> the names of the passes that it selects."""
        self._config = config
        self._names = names
        self._changed: dict[str, bool] = {}
        config.explain(*(name for each in names.values() for name in each))

    def __call__(self, event: Step | Phase) -> None:
        if not isinstance(event, Step):
            return
        self._changed[event.name] = event.changed or self._changed.get(event.name, False)
        for name, count in event.matchers:
            self._changed[name] = count > 0 or self._changed.get(name, False)

    def lines(self) -> Iterator[str]:
        """The decisions; for a pass without any, the reason."""
        for name, held in self._names.items():
            found = [line for each in held for line in self._decisions(each)]
            yield from map(printable, found or [self._nothing(name)])

    def _decisions(self, name: str) -> Iterator[str]:
        found = [each for each in self._config.explanations if each.pass_name == name]
        if found:
            outcomes = Counter(each.outcome for each in found)
            yield f"{name}: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        for each in found:
            depth = f" ({each.depth} of the pattern matched before)" if each.outcome == "refused" and each.depth else ""
            yield f"  {each.node}: {each.outcome}" + (f": {each.reason}{depth}" if each.reason else "")

    def _nothing(self, name: str) -> str:
        if name not in self._changed:
            return f"{name}: the conversion ended before it ran"
        if self._changed[name]:
            return f"{name}: changed the graph; it does not record single candidates"
        return f"{name}: no candidates recorded"
