"""connected: a client of the scheduler of a cluster; the checks before work begins.

    with connected("tcp://host:8786") as client: ...
    with connected("local", jobs=2) as client: ...          # a LocalCluster, which ends with the block
        require_workers(client)

The checks: there are workers, they have the same versions, and they see the files.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mo_loop.errors import ClusterError, InputError, UsageError
from mo_loop.printable import first_few
from mo_loop.support.traversal import by_key

if TYPE_CHECKING:
    from distributed import Client


WORKERS = 30.0
"""Seconds in which the first worker has to be there."""

PACKAGES = ("mo_loop", "onnx", "numpy")
_INSTALL = "install the same versions everywhere: on the scheduler Python and distributed alone are enough"


def require_workers(client: Client) -> None:
    """ClusterError if there is no worker in time."""
    try:
        client.wait_for_workers(1, timeout=WORKERS)
    except TimeoutError:
        raise ClusterError(
            "the cluster has no workers", why=f"no worker connected within {WORKERS:g} s", code="ML291",
            hint="start `dask worker` with the address of the scheduler",
        ) from None


def require_versions(client: Client) -> None:
    """ClusterError if a worker lacks a package, or a version there or on the scheduler is not that of this process."""
    answers: Any = client.get_versions(packages=list(PACKAGES))
    own = _versions(answers["client"])
    workers = {address: _versions(each) for address, each in sorted(answers["workers"].items())}
    for address, each in workers.items():
        missing = [name for name in PACKAGES if each[name] is None]
        if missing:
            raise ClusterError(
                f"the worker {address} does not have {' and '.join(missing)}", code="ML292",
                why="models are converted on the workers", hint="install mo_loop in the Python of the worker",
            )
    scheduler = _versions(answers["scheduler"])
    everywhere = {"the scheduler": scheduler, **{f"worker {where}": each for where, each in workers.items()}}
    different = {
        where: each for where, each in everywhere.items() if any(own[key] != each[key] for key in _known_packages(each))
    }
    if different:
        others = [f"{where}: {versions_text(each)}" for where, each in _grouped(different).items()]
        lists = [f"here: {versions_text(own)}", *others]
        raise ClusterError(
            "the versions on the cluster differ from those on this machine", why="; ".join(lists), code="ML293",
            hint=_INSTALL,
        )


def require_folder(client: Client, folder: Path) -> None:
    """ClusterError if a worker does not see a local folder."""
    # A local function is pickled by its content: the scheduler does not have mo_loop.
    seen = client.run(lambda path: os.path.isdir(path), str(folder.absolute()))
    blind = sorted(address for address, is_there in seen.items() if not is_there)
    if blind:
        raise ClusterError(
            f"the worker {blind[0]} does not see {folder}", code="ML296",
            why=f"it is a folder of this machine, and {len(blind)} of {len(seen)} workers do not have it",
            hint="use a folder that all of them share, or URLs for the models and the outputs",
        )


def own_versions() -> dict[str, str | None]:
    """The versions in this process, as they are compared."""
    from distributed.versions import get_versions

    return _versions(get_versions(packages=list(PACKAGES)))


def _versions(process: Mapping[str, Any]) -> dict[str, str | None]:
    """Package -> version; None if it is not there. Of Python the first two numbers."""
    python = ".".join(str(process["host"]["python"]).split(".")[:2])
    packages = process["packages"]
    if not isinstance(packages, Mapping):
        packages = dict(packages)
    return {**{name: packages.get(name) for name in PACKAGES}, "Python": python}


def _known_packages(each: Mapping[str, str | None]) -> list[str]:
    """The installed packages. A scheduler needs none of them."""
    return [name for name, version in each.items() if version is not None]


def versions_text(versions: Mapping[str, str | None]) -> str:
    """`onnx 1.23.2, numpy 2.4.6, Python 3.11`."""
    return ", ".join(f"{name} {versions[name]}" for name in _known_packages(versions))


def _grouped(versions: Mapping[str, dict[str, str | None]]) -> dict[str, dict[str, str | None]]:
    """The same with one name for all that have equal versions."""
    groups = by_key((versions_text(each), where) for where, each in versions.items())
    return {first_few(places, 1): versions[places[0]] for places in groups.values()}


LOCAL = "local"

CONNECT = 10.0
"""Seconds in which a scheduler has to answer."""

CLOSE = 10.0
"""Seconds that the end of a client or of a cluster on this machine may take."""

_ADDRESS = re.compile(r"(tcp|tls|ws|wss)://[^/\s]+")
_LOUD = ("distributed", "tornado", "asyncio", "bokeh")


def require_address(address: str) -> None:
    """UsageError unless it is `local` or the address of a scheduler; InputError if distributed is not installed."""
    if address != LOCAL and not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"{address!r} is not the address of a scheduler", hint="write tcp://host:8786, tls://, ws://, or local"
        )
    if find_spec("distributed") is None:
        raise InputError(
            "distributed cannot be imported", why="--scheduler runs the batch on a cluster of Dask", code="ML203",
            hint="pip install distributed fsspec",
        )


@contextmanager
def connected(address: str, jobs: int = 1, *, is_debug: bool = False) -> Iterator[Client]:
    """A client. For `local`, of a new cluster of `jobs` processes on this machine.

    Raises:
        UsageError, InputError: as `require_address`.
        ClusterError: no scheduler answers at this address.
    """
    require_address(address)
    with ExitStack() as stack:
        if not is_debug:
            stack.enter_context(_silent_logs())
        where = _local_cluster(stack, jobs) if address == LOCAL else address
        client = _client(where, address)
        stack.callback(within, CLOSE, client.close, CLOSE / 2)
        yield client


def within(seconds: float, call: Any, *arguments: Any) -> bool:
    """Call a function that may wait for a cluster which is gone; whether it returned in this time, without an error."""
    done: list[bool] = []

    def run() -> None:
        with suppress(Exception):
            call(*arguments)
            done.append(True)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(done)


def _client(where: Any, address: str) -> Client:
    from distributed import Client

    try:
        if where == address:
            asyncio.run(asyncio.wait_for(_asked(address), CONNECT))
        return Client(where, timeout=CONNECT, set_as_default=False)
    except Exception as error:  # of sockets, of TLS, of the protocol, of packages that a protocol needs
        said = f"{type(error).__name__}: {error}".partition("\n")[0] if str(error) else "there is no answer"
        raise ClusterError(
            f"the scheduler {address} cannot be reached", why=said,
            hint="check the address, the network, and that `dask scheduler` runs there; tls:// needs certificates: "
            "distributed.comm.tls in the configuration of Dask",
        ) from error


async def _asked(address: str) -> None:
    """Request the identity of the scheduler: a client that cannot connect does not always give up in its time."""
    from distributed.comm.core import connect
    from distributed.security import Security

    comm = await connect(address, timeout=CONNECT - 1, **Security().get_connection_args("client"))
    try:
        await comm.write({"op": "identity", "reply": True})
        answer: Any = await comm.read()
        if answer["type"] != "Scheduler":
            raise ValueError(f"a {answer['type']} of Dask is there")
    finally:
        comm.abort()


def local_memory(jobs: int) -> int:
    """The bytes of memory of each of `jobs` workers of a cluster on this machine."""
    from distributed.system import MEMORY_LIMIT

    return int(MEMORY_LIMIT // jobs)


def _local_cluster(stack: ExitStack, jobs: int) -> Any:
    import dask.config
    from distributed import LocalCluster

    # A model is tried once more when its worker dies.
    stack.enter_context(dask.config.set({"distributed.scheduler.allowed-failures": 1}))
    memory = local_memory(jobs)
    try:
        with _shielded():
            cluster = LocalCluster(
                n_workers=jobs, threads_per_worker=1, processes=True, memory_limit=memory,
                host="127.0.0.1", dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL, resources={"MEMORY": memory},
            )
    except Exception as error:
        raise ClusterError(
            "a cluster on this machine cannot be started", why=f"{type(error).__name__}: {error}",
            hint="run the batch without --scheduler",
        ) from error
    stack.callback(within, CLOSE, cluster.close, CLOSE / 2)
    return cluster


@contextmanager
def _shielded() -> Iterator[None]:
    """Ctrl-C at a terminal reaches all processes; those that are started here, and the threads that start them again,
    are to leave it to this one."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # at its first process it would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _silent_logs() -> Iterator[None]:
    """Keep distributed from logging: our own messages report the same. Workers, too, read its settings at import."""
    names = {f"DASK_LOGGING__{name.upper()}": "CRITICAL" for name in _LOUD}
    before = {name: os.environ.get(name) for name in names}
    os.environ |= names
    import distributed  # noqa: F401 (its import sets the levels of its loggers)

    known = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _LOUD]
    levels = {each: each.level for each in map(logging.getLogger, {*known, *_LOUD})}
    try:
        for each in levels:
            each.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for each, level in levels.items():
            each.setLevel(level)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
