"""Labels of values in the texts of a dump: the same in all files of a run.

    labels = Labels()
    labels.of(17, "add")       # "add"; "17" if another node has the label, or the name is not a word

A label is not given to another node when its node is removed.
"""

from __future__ import annotations

from mo_loop.text.scanner import WORD

LONGEST = 24
"""Characters of a name that is a label."""


class Labels:
    """Labels by the ids of nodes."""

    def __init__(self) -> None:
        self._labels: dict[int, str] = {}
        self._taken: set[str] = set()

    def of(self, number: int, name: str) -> str:
        """The label of a node, which keeps it when it is renamed."""
        found = self._labels.get(number)
        if found is None:
            fits = len(name) <= LONGEST and name not in self._taken and WORD.fullmatch(name)
            found = self._labels[number] = name if fits else str(number)
            self._taken.add(found)
        return found
