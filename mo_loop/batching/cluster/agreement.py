"""The checks before work begins: there are workers, they have the same versions, and they see the files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mo_loop.errors import ClusterError

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
        ) from None  # fmt: skip


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
            )  # fmt: skip
    scheduler = _versions(answers["scheduler"])
    everywhere = {"the scheduler": scheduler, **{f"worker {where}": each for where, each in workers.items()}}
    different = {
        where: each for where, each in everywhere.items() if any(own[key] != each[key] for key in _known_packages(each))
    }  # fmt: skip
    if different:
        others = [f"{where}: {versions_text(each)}" for where, each in _grouped(different).items()]
        lists = [f"here: {versions_text(own)}", *others]
        raise ClusterError(
            "the versions on the cluster differ from those on this machine", why="; ".join(lists), code="ML293",
            hint=_INSTALL,
        )  # fmt: skip


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
        )  # fmt: skip


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
    groups: dict[str, list[str]] = {}
    for where, each in versions.items():
        groups.setdefault(versions_text(each), []).append(where)
    grouped = {}
    for places in groups.values():
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        grouped[places[0] + more] = versions[places[0]]
    return grouped
