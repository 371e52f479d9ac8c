"""The option --scheduler of `mo-loop batch`: the engine that does the work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mo_loop.cli.error_output import message

if TYPE_CHECKING:
    from mo_loop.batching.batch_options import BatchOptions
    from mo_loop.batching.cluster.dask_engine import DaskEngine


def machines_of(scheduler: str, jobs: int, *, is_debug: bool) -> tuple[int, int]:
    """The threads of the workers of a scheduler, and the bytes of memory of the one with most; nothing is started.

    Raises:
        ClusterError: there is no scheduler, or no worker.
        InputError: distributed is not installed.
    """
    from mo_loop.batching.cluster.connecting import LOCAL, connected, local_memory, require_address

    require_address(scheduler)
    if scheduler == LOCAL:
        return jobs, local_memory(jobs)
    from mo_loop.batching.cluster.agreement import require_workers

    with connected(scheduler, is_debug=is_debug) as client:
        require_workers(client)
        from mo_loop.batching.cluster.watching import machines

        return machines(client)


@contextmanager
def engine_of(
    scheduler: str, jobs: int | None, options: BatchOptions, files: Iterable[str], *, is_quiet: bool, is_debug: bool
) -> Iterator[DaskEngine]:
    """The engine for a scheduler, to whose workers the files are sent; `jobs` as the user gave them.

    Raises:
        ClusterError: there is no scheduler, no worker, or a worker with other versions.
        InputError: distributed is not installed.
    """
    from mo_loop.batching.cluster.connecting import LOCAL, connected, require_address

    require_address(scheduler)
    from mo_loop.batching.cluster.agreement import require_versions, require_workers
    from mo_loop.batching.cluster.sent_files import read_files

    sent = read_files(files)
    with connected(scheduler, options.workers, is_debug=is_debug) as client:
        require_workers(client)
        require_versions(client)
        from mo_loop.batching.cluster.dask_engine import DaskEngine

        if jobs is not None and scheduler != LOCAL and not is_quiet:
            message("warning", "-j has no effect: the workers of the cluster have their own number of threads")
        engine = DaskEngine(client, options, sent)
        if not is_quiet and (link := engine.dashboard):
            message("note", f"dashboard: {link}")
        yield engine
