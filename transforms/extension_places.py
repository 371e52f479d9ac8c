"""Passes of extensions at their places in a pipeline.

    placed = [Placed(MyPass, before="LoopToTI"), Placed(Other, at="end")]
    Manager(arranged(default_pipeline(), placed)).run(graph)

Several passes at one place run in the order in which they are given. A place may be another placed pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mo_loop.errors import ExtensionError, MoLoopError, extension_failed
from mo_loop.transforms.config import did_you_mean, name_of
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.pipelines import PLACES


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
    behind: dict[FunctionPass, str] = {}  # placed pass -> the name that it comes after: the next one comes after it
    for each in placed:
        new = each.made()
        name = PLACES.get(each.at, "") or name_of(each.before or each.after)
        # The place is next to the outermost pass that has the name, or contains one that has it.
        found = [index for index, other in enumerate(passes) if any(inner.name == name for inner in other.walk())]
        if not found:
            raise _no_such_place(each, passes)
        if each.after:
            index = found[-1] + 1
            while index < len(passes) and behind.get(passes[index]) == name:
                index += 1
            behind[new] = name
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
    )  # fmt: skip
