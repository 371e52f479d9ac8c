"""Runs passes one after another and validates types after each that changed something.

    Manager([ScanLowering(), PortRenumbering()], observers=[dumper]).run(graph)

An observer is called with the pass and the graph after every pass that changed it: timing, dumps and checks are built
on this one hook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mo_loop.errors import InternalError, MoLoopError
from mo_loop.graph import Graph
from transforms.base import FunctionPass

Observer = Callable[[FunctionPass, Graph], None]


class Manager:
    """An ordered list of passes."""

    def __init__(self, passes: Iterable[FunctionPass] = (), observers: Iterable[Observer] = ()) -> None:
        self.passes = list(passes)
        self.observers = list(observers)

    def register(self, each: FunctionPass) -> FunctionPass:
        """Append a pass."""
        self.passes.append(each)
        return each

    def run(self, graph: Graph) -> bool:
        """Run all passes; True if any changed the graph. A pass that raises is named in the error."""
        changed = False
        for each in self.passes:
            try:
                if not each.run(graph):
                    continue
                graph.validate()
            except MoLoopError as error:
                error.hint = error.hint or f"raised by the pass {each.name}"
                raise
            except Exception as error:
                raise InternalError(f"{type(error).__name__} in the pass {each.name}: {error}") from error
            changed = True
            for observer in self.observers:
                observer(each, graph)
        return changed
