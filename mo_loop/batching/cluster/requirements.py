"""The requirements of a batch on a worker of a cluster, checked on the worker; and the reply of one that does not meet
them.

    lacking = requirements.missing()                  # in the setup of a worker: an error, or None
    lacking = requirements.missing(with_writing=True) # after the store has refused a model of it

A missing requirement is never the result of a model: other workers convert the models.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from mo_loop.batching.assignment import Answer
from mo_loop.batching.cluster.agreement import own_versions, versions_text
from mo_loop.batching.storage.locations import Location
from mo_loop.errors import ClusterError, MoLoopError

OF_WORKERS = ("ML280", "ML281")
"""Codes of failures of a model whose cause can be its worker: no package for the URL, no credentials."""


@dataclass(frozen=True)
class Unable:
    """The answer of a worker that cannot convert the models of a batch: its address, and its error as texts."""

    worker: str
    code: str
    message: str
    why: str = ""
    hint: str = ""

    @classmethod
    def by(cls, worker: str, error: BaseException) -> Unable:
        """Because of an exception on the worker."""
        if isinstance(error, MoLoopError):
            return cls(worker, error.code, error.message, error.why, error.hint)
        why = f"{type(error).__name__}: {error}"
        return cls(worker, "ML297", "the worker cannot convert models", why, "see the log of the worker")

    @property
    def error(self) -> ClusterError:
        """The error of a package that is missing."""
        return ClusterError(f"{self.message} (worker {self.worker})", why=self.why, hint=self.hint, code=self.code)


@dataclass(frozen=True)
class Requirements:
    """The versions of packages, the local folders that have to be there, and an object and a prefix of a store: the
    first model and its output."""

    versions: Mapping[str, str | None]
    folders: tuple[str, ...] = ()
    model: Location | None = None
    output: Location | None = None

    def missing(self, *, with_writing: bool = False) -> MoLoopError | None:
        """The error for the first requirement that this process does not meet; None if it meets all. A store that does
        not answer, or a missing model, is not an error here."""
        own = own_versions()
        if own != self.versions:
            lists = f"of the batch: {versions_text(self.versions)}\n         of the worker: {versions_text(own)}"
            return ClusterError(
                "the worker has other versions", why=lists, code="ML293", hint="install the same versions everywhere"
            )
        blind = next((each for each in self.folders if not os.path.isdir(each)), None)
        if blind is not None:
            return ClusterError(
                f"the worker does not see {blind}", code="ML296", hint="use a folder that all workers share, or URLs"
            )
        try:
            self._access(with_writing)
        except MoLoopError as error:
            return error if error.code in OF_WORKERS else None
        return None

    def _access(self, with_writing: bool) -> None:
        if self.model is None and self.output is None:
            return
        from mo_loop.batching.storage.stores import delete, find, listed, put
        from mo_loop.batching.url_records import FOLDER

        if self.model is not None:
            find(self.model)
        if self.output is None:
            return
        next(iter(listed(self.output)), None)
        if with_writing:
            mark = self.output / f"{FOLDER}/access-{uuid.uuid4().hex[:12]}"
            put(mark, b"")
            delete(mark)


def is_of_worker(answer: Answer) -> bool:
    """Whether a model failed for a cause that can be its worker."""
    done = getattr(answer.result, "value", None)
    return any(each.code in OF_WORKERS for each in getattr(done, "errors", ()))
