"""The random numbers of a test do not depend on the tests before it.

A test module may have a generator of numpy as a global name. Its state after the import of the module is restored
before each test and each row, so that a test draws the same data alone, in any order, and in any process of xdist.
"""

from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

_STATES: dict[str, list[tuple[np.random.Generator, Any]]] = {}


def record(modules: Iterable[ModuleType]) -> None:
    """Record the state of each global generator of the modules, which have just been imported."""
    for module in modules:
        generators = [each for each in vars(module).values() if isinstance(each, np.random.Generator)]
        _STATES.setdefault(module.__name__, [(each, each.bit_generator.state) for each in generators])


def restart(module: str) -> None:
    """Restore the recorded states of the generators of a module."""
    for generator, state in _STATES.get(module, ()):
        generator.bit_generator.state = state
