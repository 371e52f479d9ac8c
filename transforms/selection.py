"""The selection of passes of a pipeline, and the check that the names that a user gave are names of passes.

    chosen = Selection(Manager(default_pipeline(), config=config), stop_after="LoopToTI")
    chosen.require("LoopToTi")          # UsageError: did you mean 'LoopToTI'?
    chosen.runs("PortRenumbering")      # False: it comes after the last pass
    chosen.skipped                      # the passes that run by default, and not now
    chosen.held("NopElimination")       # the matchers of that GraphRewrite

No pass is run and no observer is made.

Passes of extensions at their places in a pipeline.

    placed = [Placed(MyPass, before="LoopToTI"), Placed(Other, at="end")]
    Manager(arranged(default_pipeline(), placed)).run(graph)

Several passes at one place run in the order in which they are given. A place may be another placed pass.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mo_loop.errors import ExtensionError, MoLoopError, UsageError, extension_failed
from mo_loop.transforms.config import did_you_mean, name_of
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.manager import Manager, flattened
from mo_loop.transforms.pipelines import PLACES
from mo_loop.transforms.rewrite import GraphRewrite

PARTS = "give the pass that contains it, or one that it contains; --passes lists them"


@dataclass(frozen=True)
class ListedPass:
    """One pass at its position. `depth` is the number of Managers and GraphRewrites that contain it."""

    each: FunctionPass
    depth: int
    enabled: bool
    by_default: bool
    reached: bool

    @property
    def name(self) -> str:
        return self.each.name

    @property
    def runs(self) -> bool:
        return self.enabled and self.reached


class Selection:
    """The passes of `manager` that run with its configuration and `stop_after`.

    Raises:
        UsageError: a name is not that of a pass, or the last pass is disabled.
    """

    def __init__(self, manager: Manager, stop_after: str | None = None) -> None:
        self._config = manager.config
        stop_after = None if stop_after is None else name_of(stop_after)
        self._last = None
        self._reached = True
        self._steps = flattened(manager.passes)
        if stop_after is not None:
            self._last = next((each for each in reversed(self._steps) if each.name == stop_after), None)
        self.entries: list[ListedPass] = list(self._walk(manager.passes, 0, True, True))
        self.require(*sorted(self._config.named), *([] if stop_after is None else [stop_after]))
        if stop_after is not None and self._last is None:
            raise UsageError(f"the run cannot stop after {stop_after}: it is not a step", hint=PARTS)
        if not all(entry.enabled for entry in self.entries if entry.each is self._last):
            raise UsageError(f"the run cannot stop after {stop_after}: it is disabled")

    def _walk(self, passes: Iterable[FunctionPass], depth: int, on: bool, default: bool) -> Iterator[ListedPass]:
        for each in passes:
            enabled = on and self._config.is_enabled(each)
            by_default = default and each.enabled_by_default
            yield ListedPass(each, depth, enabled, by_default, self._reached)
            if isinstance(each, Manager | GraphRewrite):
                yield from self._walk(each.passes, depth + 1, enabled, by_default)
            if each is self._last:
                self._reached = False

    def require(self, *names: str) -> None:
        """UsageError for the first of `names` that is not the name of a pass."""
        known = {entry.name for entry in self.entries}
        for name in map(name_of, names):
            if name not in known:
                hint = did_you_mean(name, sorted(known), "the passes are listed by --passes")
                raise UsageError(f"no pass is called {name!r}", hint=hint)

    @property
    def steps(self) -> list[str]:
        """The names of the passes that observers are called for: no Managers, and no matchers of a GraphRewrite."""
        return [each.name for each in self._steps]

    def held(self, name: str) -> list[str]:
        """The names of the matchers in the pass of that name that run; its own name if it contains none."""
        name = name_of(name)
        found: list[str] = []
        within: int | None = None
        for entry in self.entries:
            within = within if within is not None and entry.depth > within else None
            if within is not None and entry.runs and not isinstance(entry.each, Manager | GraphRewrite):
                found.append(entry.name)
            if within is None and entry.name == name:
                within = entry.depth
        return list(dict.fromkeys(found)) or [name]

    def runs(self, name: str) -> bool:
        """Whether a pass of that name runs at least once."""
        return any(entry.runs for entry in self.entries if entry.name == name)

    @property
    def skipped(self) -> list[str]:
        """The passes that run by default and do not run now, in order, without the passes that they contain."""
        found: list[str] = []
        above: int | None = None  # the depth of a skipped pass that contains the next entries
        for entry in self.entries:
            if above is not None and entry.depth > above:
                continue
            above = entry.depth if entry.by_default and not entry.runs else None
            if above is not None:
                found.append(entry.name)
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Placed:
    """A pass, as an instance or as a class that is instantiated for each conversion, and its place.

    `before` and `after` name a pass, `at` one of PLACES; exactly one of the three is given. If a pass is in the
    pipeline more than once, `before` refers to the first and `after` to the last. `origin` is the extension, for error
    messages.
    """

    each: FunctionPass | type[FunctionPass]
    before: str = ""
    after: str = ""
    at: str = ""
    origin: str = "an extension"
    where: str = ""
    """The line of the extension that places it."""

    def made(self) -> FunctionPass:
        """The instance that runs. ExtensionError if the class cannot be called without arguments."""
        if isinstance(self.each, FunctionPass):
            made = self.each
        else:
            try:
                made = self.each()
            except Exception as error:
                raise extension_failed(f"the pass {name_of(self.each)}", self.origin, error, "ML265") from error
        for inner in made.walk():
            inner.origin = self.origin
        return made


def arranged(pipeline: Iterable[FunctionPass], placed: Iterable[Placed]) -> list[FunctionPass]:
    """The passes of `pipeline` and the `placed` ones in order. ExtensionError for a place that does not exist."""
    passes = list(pipeline)
    follows: dict[FunctionPass, str] = {}  # placed pass -> the name that it comes after: the next one comes after it
    for each in placed:
        new = each.made()
        name = PLACES.get(each.at, "") or name_of(each.before or each.after)
        # The place is next to the outermost pass that has the name, or contains one that has it.
        found = [index for index, other in enumerate(passes) if any(inner.name == name for inner in other.walk())]
        if not found:
            raise _no_such_place(each, passes)
        if each.after:
            index = found[-1] + 1
            while index < len(passes) and follows.get(passes[index]) == name:
                index += 1
            follows[new] = name
        else:
            index = found[0]
        passes.insert(index, new)
    return passes


def _no_such_place(each: Placed, passes: Iterable[FunctionPass]) -> MoLoopError:
    names = [inner.name for other in passes for inner in other.walk()]
    what, known = ("place", list(PLACES)) if each.at else ("pass", names)
    name = each.at or each.before or each.after
    listed = "the places are " + ", ".join(PLACES) if each.at else "transforms/pipelines.py lists the passes"
    return ExtensionError(
        f"{each.origin} puts {name_of(each.each)} at the {what} {name!r}, which does not exist", where=each.where,
        code="ML264", hint=did_you_mean(name, known, listed),
    )
