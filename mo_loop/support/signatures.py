"""Functions whose keyword arguments are the fields of a dataclass.

    @takes(ConvertOptions)
    def check(model, **options): ...

    inspect.signature(check)             # (model, *, input: ... = None, output: ... = None, ...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar

from mo_loop.support.flags import described

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
NEWLINE = "\n"


def takes(arguments: Callable[P, object]) -> Callable[[Callable[..., R]], Callable[Concatenate[Any, P], R]]:
    """The function has the arguments that a dataclass has, by keyword; type checkers and `help` show them.

    In its docstring they replace the line that describes the last argument. A field that is not by keyword alone can be
    its second argument.
    """

    def decorated(function: Callable[..., R]) -> Callable[Concatenate[Any, P], R]:
        own, more = signature(function), signature(arguments).parameters
        first = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        named = [each.replace(kind=each.KEYWORD_ONLY) for name, each in more.items() if name not in own.parameters]
        function.__signature__ = own.replace(parameters=[*first, *named])  # type: ignore[attr-defined]
        last = next(each.name for each in own.parameters.values() if each.kind is each.VAR_KEYWORD)
        head, _, rest = (function.__doc__ or "").partition(f"        {last}: ")
        function.__doc__ = f"{head}{described(arguments, indent=8)}{rest.partition(NEWLINE)[2]}"
        return function

    return decorated


def made_of(cls: Callable[..., T], arguments: Mapping[str, Any], function: str) -> T:
    """An instance of a dataclass. The TypeError for an unknown argument names the function that the caller called."""
    known = signature(cls).parameters
    for name in arguments:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f": did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")
    return cls(**arguments)
