"""KeptResults: the results of a batch while it runs, on disk, in the order of the plan.

    results = KeptResults(plan.models)
    results.put(3, result)
    results[3], results[4].status                     # the result; "cancelled" for a model that has none
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

from mo_loop.batching.plan import Planned
from mo_loop.batching.result import CANCELLED, ModelResult
from mo_loop.support.disk_table import DiskSequence, DiskTable


class KeptResults(DiskSequence[ModelResult]):
    """A result for each model."""

    def __init__(self, models: Sequence[Planned]) -> None:
        self._models = models
        # The file is private to this process: nobody else can write what is unpickled.
        self._table = DiskTable("CREATE TABLE results (number INTEGER PRIMARY KEY, content BLOB)")

    def put(self, number: int, result: ModelResult) -> None:
        """Keep the result of the model at a place of the plan."""
        self._table.run("INSERT OR REPLACE INTO results VALUES (?, ?)", number, pickle.dumps(result, protocol=5))

    def __len__(self) -> int:
        return len(self._models)

    def __iter__(self) -> Iterator[ModelResult]:
        kept = self._table.rows("SELECT * FROM results ORDER BY number")
        place, content = next(kept, (None, b""))
        for number, model in enumerate(self._models):
            if number == place:
                yield pickle.loads(content)
                place, content = next(kept, (None, b""))
            else:
                yield ModelResult(model, CANCELLED)

    def _at(self, place: int) -> ModelResult:
        row = self._table.row("SELECT content FROM results WHERE number = ?", place)
        result: ModelResult = ModelResult(self._models[place], CANCELLED) if row is None else pickle.loads(row[0])
        return result
