"""Task and Done: the messages to and from a worker. They are not in job.py, which loads the converter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from mo_loop.batching.entries import StateEntry
from mo_loop.batching.result import Error
from mo_loop.options import ConvertOptions

if TYPE_CHECKING:
    from mo_loop.batching.storage.locations import Location
    from mo_loop.batching.storage.scratch import Scratch
    from mo_loop.batching.storage.stamps import Info
    from mo_loop.batching.url_records import StateRecord


class IrComparison(Protocol):
    """Compares the IR of one model with another runtime: what a batch knows of `Comparing`.

    `inputs` are files that it reads; `limit` is in seconds; with `strict` a model that cannot be compared fails. It is
    pickled.
    """

    @property
    def inputs(self) -> tuple[str, ...]: ...

    @property
    def limit(self) -> float: ...

    @property
    def strict(self) -> bool: ...

    def require(self) -> None:
        """InputError unless this machine can compare."""

    def compare(self, source: str, ir: str, options: ConvertOptions) -> tuple[Any, int, str]:
        """Compare the IR of one model: the report as plain data, the exit code, and a text about the difference.

        NotComparableError if that is not possible.
        """

    def with_inputs(self, inputs: tuple[str, ...]) -> Self:
        """The same with other files."""


@dataclass(frozen=True)
class Work:
    """The options of the conversion of a model, its comparison, and the hash of both."""

    options: ConvertOptions
    digest: str
    comparing: IrComparison | None = None


@dataclass(frozen=True)
class Remote:
    """The additional data of a task with URLs: space on the local disk, and the facts of the listing about the model.

    If the outputs are at a URL, their prefix, the name of the .xml below it, whether none was there, and the records of
    earlier conversions.
    """

    scratch: Scratch
    listed: Info | None = None
    prefix: Location | None = None
    name: str = ""
    is_new: bool = False
    records: tuple[StateRecord, ...] = ()


@dataclass(frozen=True)
class Task:
    """A model, its draft .xml, its final .xml, its work, and whether the files must be on the disk at the end. `source`
    and `target` are paths, or URLs if there is `remote`."""

    source: str
    draft: str
    target: str
    work: Work
    durable: bool = False
    remote: Remote | None = None


@dataclass(frozen=True)
class Done:
    """The result of one conversion: an entry if it succeeded, else errors; `detail` is a traceback.

    `comparison` is the report of the comparison as plain data; `difference` describes the difference, and there is no
    entry.
    """

    entry: StateEntry | None = None
    errors: tuple[Error, ...] = ()
    exit_code: int = 0
    detail: str = ""
    warnings: tuple[str, ...] = ()
    difference: str = ""
    comparison: Any = None
