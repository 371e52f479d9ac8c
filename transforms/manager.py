"""Runs passes one after another and validates types after each that changed something.

    manager = Manager([ScanLowering(), GraphRewrite([GeluFusion()])], observers=[profile])
    manager.config.disable("GeluFusion")
    manager.run(graph)

An observer is called with a Step after every pass: timing, dumps, checks and pictures are built on this one hook. Those
of a whole conversion (mo_loop/conversion.py) are called with a Phase as well, when a part of it begins and ends. A
Manager is a pass itself; one inside another shares its configuration and its observers.

Profile: an observer that makes a table of the time and the changes of each pass.

    profile = Profile()
    model = convert_model("model.onnx", observers=[profile])     # or of passes alone: Manager(passes, [profile])
    save_model(model, "model.xml", observers=[profile])
    print(profile.table())

                       ms  share  matches  nodes
    reading          1.12    10%
    translating      7.02    60%
    ConstantFolding  0.64     6%      yes  38 -> 35
    LoopToTI         0.12     1%        -  35
    checking         0.08     1%
    writing          2.58    22%
    passes           0.76     7%           38 -> 35
    all             11.56

The table does not include the time of observers.
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
from mo_loop.printable import aligned
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
            within.check_time()
            step = _run_one(each, graph, bool(observers))
            changed = changed or step.changed
            for observer in observers:
                observer(step)
        return changed


def _run_one(each: FunctionPass, graph: Graph, observed: bool) -> Step:
    before = _count(graph) if observed else 0
    counted = _matches(each) if observed else {}
    start = time.perf_counter()
    each.at = None
    try:
        changed = each.run(graph)
        each.at = None  # an error of inference names its own node
        if each.origin:  # a pass of an extension may return False by mistake
            changed = bool(changed) or graph.is_dirty
        if changed:
            Validate().run(graph)
        if each.origin and changed:
            _require_whole(graph)
    except Assumption:  # the conversion begins again
        raise
    except Exception as error:
        raise blamed(error, each)  # noqa: B904  # an error of another kind becomes its cause
    seconds = time.perf_counter() - start
    matches = {name: count - counted[name] for name, count in _matches(each).items()} if observed else {}
    own = matches.pop("", 0)
    after = _count(graph) if observed and changed else before
    return Step(each, graph, changed, seconds, own + sum(matches.values()), tuple(matches.items()), before, after)


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


NUMBERS = (1, 2, 3)
"""The columns of the table that hold numbers."""


class Profile:
    """Collects the steps of a run, and the phases before and after them."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.phases: list[dict[str, Any]] = []
        self._before = 0  # the number of phases before the passes

    def __call__(self, event: Step | Phase) -> None:
        if isinstance(event, Step):
            self._add(event)
        elif event.name == "passes":
            self._before = len(self.phases) if event.seconds is None else self._before
        elif event.seconds is not None:
            self.phases.append({"phase": event.name, "seconds": event.seconds})

    def _add(self, step: Step) -> None:
        self.rows.append(
            {
                "pass": step.name,
                "seconds": step.seconds,
                "changed": step.changed,
                "matches": step.matches,
                "matchers": dict(step.matchers),
                "nodes_before": step.nodes_before,
                "nodes_after": step.nodes_after,
            }
        )

    @property
    def seconds(self) -> float:
        """The total time of all passes."""
        return sum(row["seconds"] for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        """The rows and their sum, and the phases around them, as plain data. Times are in seconds."""
        rows = {"passes": self.rows, "seconds": self.seconds, "phases": self.phases}
        return {"schema": "mo-loop profile", "version": 1, **rows}

    def lines(self) -> list[tuple[str, ...]]:
        """The cells of the table, in the order of the run: name, milliseconds, share, matches, nodes of all scopes.

        `matches` is the number of places changed, `yes` where a pass changed something without counting.
        """
        everything = self.seconds + sum(row["seconds"] for row in self.phases)
        whole = everything or 1.0

        def timed(name: str, seconds: float, matches: str = "", nodes: str = "") -> tuple[str, ...]:
            return name, f"{1000 * seconds:.2f}", f"{100 * seconds / whole:.0f}%", matches, nodes

        rows = [timed(row["pass"], row["seconds"], *_counts(row)) for row in self.rows]
        inner = [[(f"  {name}", "", "", str(n), "") for name, n in row["matchers"].items() if n] for row in self.rows]
        phases = [timed(row["phase"], row["seconds"]) for row in self.phases]
        lines = [("", "ms", "share", "matches", "nodes"), *phases[: self._before]]
        lines += [line for row, under in zip(rows, inner, strict=True) for line in (row, *under)]
        lines += phases[self._before :]
        if self.rows:
            span = {"nodes_before": self.rows[0]["nodes_before"], "nodes_after": self.rows[-1]["nodes_after"]}
            lines.append(timed("passes", self.seconds, "", _nodes(span)))
        lines.append(timed("all", everything))
        return lines

    def table(self) -> str:
        """The lines as aligned text."""
        return aligned(self.lines(), NUMBERS)


def _counts(row: dict[str, Any]) -> tuple[str, str]:
    return str(row["matches"]) if row["matches"] else "yes" if row["changed"] else "-", _nodes(row)


def _nodes(row: dict[str, Any]) -> str:
    before, after = row["nodes_before"], row["nodes_after"]
    return str(before) if before == after else f"{before} -> {after}"
