"""Public names of a package whose modules are imported when a name is first used.

    if not TYPE_CHECKING:
        __getattr__, __dir__ = lazy_names(globals(), {"mo_loop.api": ("Model", "convert_model")})

Type checkers read plain imports under `if TYPE_CHECKING` instead.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    namespace: dict[str, Any], modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the package with this namespace; `modules`: module -> the names it defines."""
    module_of = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        namespace[name] = getattr(import_module(module_of[name]), name)
        return namespace[name]

    def listed() -> list[str]:
        return sorted(namespace["__all__"])

    return load, listed
