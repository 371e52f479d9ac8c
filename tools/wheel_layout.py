"""The layout of a wheel: the folder transforms/ is installed as the package mo_loop.transforms."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Layout(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the folder at its place. An editable install finds it next to mo_loop (mo_loop/__init__.py)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"]["transforms"] = "mo_loop/transforms"
