"""The layout of what is installed: the folder transforms/ is the package mo_loop.transforms."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Layout(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the folder at its place in a wheel. An editable install finds it next to mo_loop (mo_loop/__init__.py)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            _link(Path(self.root))
        else:
            build_data["force_include"]["transforms"] = "mo_loop/transforms"


def _link(root: Path) -> None:
    """Make the folder that an editable install adds to the import path. It holds a link to mo_loop, nothing else."""
    link = root / ".editable" / "mo_loop"
    link.parent.mkdir(exist_ok=True)
    if link.exists():
        return
    if os.name == "nt":  # a symbolic link needs a privilege there, a junction does not
        import _winapi

        _winapi.CreateJunction(os.fspath(root / "mo_loop"), os.fspath(link))
    else:
        link.symlink_to(Path("..", "mo_loop"), target_is_directory=True)
