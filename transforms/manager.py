"""Runs passes one after another and validates types after each that changed something.

    manager = Manager([ScanLowering(), GraphRewrite([GeluFusion()])], observers=[profile])
    manager.config.disable("GeluFusion")
    manager.run(graph)

An observer is called with a Step after every pass: timing, dumps, checks and pictures are built on this one hook. Those
of a whole conversion (mo_loop/conversion.py) are called with a Phase as well, when a part of it begins and ends. A
Manager is a pass itself; one inside another shares its configuration and its observers.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mo_loop.conversion_limits import budget
from mo_loop.errors import InternalError, MoLoopError, UsageError
from mo_loop.graph import Graph
from mo_loop.graph.dimension import Assumption
from mo_loop.graph.verifier import invariants
from mo_loop.transforms.config import PassConfig, name_of
from mo_loop.transforms.function_pass import FunctionPass, blamed
from mo_loop.transforms.rewrite import GraphRewrite


class Validate(FunctionPass):
    """the types of changed nodes, and of all nodes that depend on them  ->  inferred again

    The Manager runs this pass after each pass that changed something. Code that runs passes without a Manager calls it.
    """

    bodies = "never"  # inference visits bodies itself, when it infers their owner

    def run_on_graph(self, graph: Graph) -> bool:
        was_dirty = graph.is_dirty
        try:
            graph.validate()
        except MoLoopError:
            raise
        except Exception as error:
            node = graph.waiting
            where = None if node is None else node.origin
            raise InternalError(f"inference: {type(error).__name__}: {error}", where=where) from error
        return was_dirty


@dataclass(frozen=True)
class Step:
    """The effect of one pass on the whole graph, its bodies included.

    `seconds` is the time of the pass and of the inference after it. `matches` is the number of places that it changed,
    `matchers` that of each matcher of a GraphRewrite; passes that do not count have 0. Nodes are those of all scopes.
    """

    each: FunctionPass
    graph: Graph
    changed: bool
    seconds: float
    matches: int
    matchers: tuple[tuple[str, int], ...]
    nodes_before: int
    nodes_after: int

    @property
    def name(self) -> str:
        return self.each.name


@dataclass
class Phase:
    """A part of a conversion, such as "translating": it begins while `seconds` is None, and has ended when it is set.

    `graph` is the graph by then, None before there is one; `subject` is the other object that the phase makes or reads
    (mo_loop/conversion.py lists the phases). Both calls get the same object.
    """

    name: str
    graph: Graph | None = None
    subject: Any = None
    seconds: float | None = None


StepObserver = Callable[[Step], None]
"""An observer of a Manager."""

Observer = Callable[[Step | Phase], None]
"""An observer of a conversion."""


class Stop(Exception):
    """Raised by an observer: the passes after this one do not run. Not an error."""


class Manager(FunctionPass):
    """An ordered list of passes of any kind."""

    bodies = "never"  # each pass decides when it visits bodies

    def __init__(
        self,
        passes: Iterable[FunctionPass] = (),
        observers: Iterable[StepObserver] = (),
        *,
        config: PassConfig | None = None,
    ) -> None:
        self.passes: list[FunctionPass] = []
        self.observers = list(observers)
        if config is not None:
            self.use(config)
        for each in passes:
            self.register(each)

    def register(self, each: FunctionPass) -> FunctionPass:
        """Append a pass: a FunctionPass, a MatcherPass, a GraphRewrite, or another Manager."""
        self.passes.append(each)
        each.use(self.config)
        return each

    def run_on_graph(self, graph: Graph) -> bool:
        """Run all passes that are enabled; True if any changed the graph. An error names the pass and the node."""
        try:
            return self._run(graph, self.observers)
        except Stop:
            return True

    def _run(self, graph: Graph, observers: list[StepObserver]) -> bool:
        changed = False
        within = budget()
        for each in self.passes:
            if not self.config.is_enabled(each):
                continue
            if isinstance(each, Manager):
                changed = each._run(graph, [*observers, *each.observers]) or changed
                continue
            if not observers and each.is_idle(graph):  # most passes
                continue
            within.check_time()
            if not observers:
                changed = _run_one(each, graph) or changed
                continue
            step = _step(each, graph)
            changed = changed or step.changed
            for observer in observers:
                observer(step)
        return changed


def _step(each: FunctionPass, graph: Graph) -> Step:
    """Run a pass, and return its effect."""
    before, counted = _count(graph), _matches(each)
    start = time.perf_counter()
    changed = _run_one(each, graph)
    seconds = time.perf_counter() - start
    matches = {name: count - counted[name] for name, count in _matches(each).items()}
    own = matches.pop("", 0)
    after = _count(graph) if changed else before
    return Step(each, graph, changed, seconds, own + sum(matches.values()), tuple(matches.items()), before, after)


def _run_one(each: FunctionPass, graph: Graph) -> bool:
    """Run a pass, and infer the types of what it changed; True if it changed anything."""
    each._at = None
    before = _marks(graph) if each.origin else []
    try:
        changed = each.run(graph)
        each._at = None  # an error of inference names its own node
        if each.origin:  # a pass of an extension may return False by mistake
            changed = bool(changed) or graph.is_dirty or _marks(graph) != before
        if changed:
            Validate().run(graph)
        if each.origin and changed:
            _require_whole(graph)
    except Assumption:  # the conversion begins again
        raise
    except Exception as error:
        raise blamed(error, each)  # noqa: B904  # an error of another kind becomes its cause
    return changed


def _marks(graph: Graph) -> list[object]:
    """One object for each scope, and another one when a node or an edge of the scope has changed."""
    return [scope.note("mark", object) for scope in graph.scopes()]


def _matches(each: FunctionPass) -> dict[str, int]:
    """The counts so far: of the pass itself under an empty name, and of its matchers."""
    found = {"": each.matches}
    for inner in each.passes if isinstance(each, GraphRewrite) else ():
        found[inner.name] = found.get(inner.name, 0) + inner.matches
    return found


def _count(graph: Graph) -> int:
    return sum(len(scope) for scope in graph.scopes())


# -- observers that belong to every pipeline


def stop_after(name: str, passes: Iterable[FunctionPass]) -> StepObserver:
    """An observer that ends the run after the last pass called `name`; UsageError if there is none."""
    last = [each for each in flattened(passes) if each.name == name_of(name)]
    if not last:
        raise UsageError(f"no pass is called {name!r}", hint="the passes are listed by --passes")

    def observer(step: Step) -> None:
        if step.each is last[-1]:
            raise Stop

    return observer


def check_invariants(step: Step) -> None:
    """An observer that checks the invariants of the graph after each pass that changed it."""
    if not step.changed:
        return
    try:
        _require_whole(step.graph)
    except InternalError as error:
        raise error.at(during=f"the pass {step.name}") from error.__cause__


def _require_whole(graph: Graph) -> None:
    found = invariants(graph)
    if found:
        raise InternalError(f"the graph violates its invariants: {'; '.join(found[:5])}", code="ML410")


def flattened(passes: Iterable[FunctionPass]) -> list[FunctionPass]:
    """The passes in the order in which they run, with those of nested Managers."""
    found: list[FunctionPass] = []
    for each in passes:
        found.extend(flattened(each.passes) if isinstance(each, Manager) else [each])
    return found
