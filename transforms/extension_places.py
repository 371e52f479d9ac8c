"""Passes of extensions put into a pipeline.

    placed = [Placed(MyPass, before="LoopToTI"), Placed(Other, at="end")]
    Manager(arranged(default_pipeline(), placed)).run(graph)

Several at one place stand in the order in which they are given. A place may be a pass that was placed before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from mo_loop.errors import ExtensionError, MoLoopError, extension_failed
from transforms.config import name_of
from transforms.function_pass import FunctionPass
from transforms.pipelines import PLACES


@dataclass(frozen=True)
class Placed:
    """A pass (a class, of which every conversion makes an instance, or an instance) and where it goes.

    `before` and `after` name a pass, `at` one of PLACES; exactly one of the three is given. Where a pass stands in the
    pipeline more than once, `before` means the first time and `after` the last. `origin` is the extension, for errors.
    """

    each: FunctionPass | type[FunctionPass]
    before: str = ""
    after: str = ""
    at: str = ""
    origin: str = "an extension"
    where: str = ""
    """The line that asked for it."""

    def made(self) -> FunctionPass:
        """The instance that runs. ExtensionError when the class cannot be called without arguments."""
        if isinstance(self.each, FunctionPass):
            made = self.each
        else:
            try:
                made = self.each()
            except Exception as error:
                raise extension_failed(f"the pass {name_of(self.each)}", self.origin, error, "ML265") from error
        _mark(made, self.origin)
        return made


def arranged(pipeline: Iterable[FunctionPass], placed: Iterable[Placed]) -> list[FunctionPass]:
    """The passes of `pipeline` with the `placed` ones among them. ExtensionError for a place that there is not."""
    passes = list(pipeline)
    behind: dict[FunctionPass, str] = {}  # what was placed after which name: the next one goes behind it
    for each in placed:
        new = each.made()
        name = PLACES.get(each.at, "") or name_of(each.before or each.after)
        found = [index for index, other in enumerate(passes) if _is_called(other, name)]
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


def _is_called(each: FunctionPass, name: str) -> bool:
    """Whether a pass, or one that it holds, has the name; the place is beside the one that holds it."""
    return each.name == name or any(_is_called(inner, name) for inner in getattr(each, "passes", ()))


def _names(passes: Iterable[FunctionPass]) -> list[str]:
    return [name for each in passes for name in (each.name, *_names(getattr(each, "passes", ())))]


def _mark(each: FunctionPass, origin: str) -> None:
    each.origin = origin
    for inner in getattr(each, "passes", ()):
        _mark(inner, origin)


def _no_such_place(each: Placed, passes: Iterable[FunctionPass]) -> MoLoopError:
    what, known = ("place", list(PLACES)) if each.at else ("pass", _names(passes))
    name = each.at or each.before or each.after
    close = get_close_matches(name.lower(), [other.lower() for other in known], 1, 0.5)
    meant = next((other for other in known if [other.lower()] == close), "")
    listed = "the places are " + ", ".join(PLACES) if each.at else "the passes are those of transforms/pipelines.py"
    return ExtensionError(
        f"{each.origin} puts {name_of(each.each)} at the {what} {name!r}, which there is not", where=each.where,
        code="ML264", hint=f"did you mean {meant!r}?" if meant else listed,
    )  # fmt: skip
