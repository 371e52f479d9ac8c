"""The transformations that `--transform` names, in the spelling of the Model Optimizer:

    LowLatency2[use_const_initializer=False],MakeStateful[param_res_names={'h0':'hN','c0':'cN'}]

Each name can have arguments in brackets, separated by commas or semicolons; values are Python literals. In Python the
option is this text, a name with a dict of arguments, or a list of both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mo_loop.errors import UsageError
from mo_loop.support.flags import literal, shown

NAMES = ("LowLatency2", "MakeStateful")
"""The passes that the option can name; the fields of their classes are the arguments."""

_FORM = "write LowLatency2[use_const_initializer=False] or MakeStateful[param_res_names={'in':'out'}]"
_CLOSING = {"[": "]", "{": "}", "(": ")"}


@dataclass(frozen=True)
class Transformation:
    """One transformation and its arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        given = ";".join(f"{key}={value!r}" for key, value in self.arguments.items())
        return f"{self.name}[{given}]" if given else self.name


def transformations(given: Any) -> tuple[Transformation, ...]:
    """The transformations of the option `transform`; UsageError for names and arguments that do not exist."""
    if given is None:
        return ()
    found: list[Transformation] = []
    for each in _items(given):
        if each.name == "Pruning":
            raise UsageError("--transform Pruning is not available", hint="prune the model before it is exported")
        if each.name not in NAMES:
            names = " and ".join(NAMES)
            raise UsageError(
                f"--transform names {shown(each.name)}", why=f"the transformations are {names}", hint=_FORM
            )
        if any(each.name == other.name for other in found):
            raise UsageError(f"--transform names {each.name} twice", hint="name it once")
        _check(each)
        found.append(each)
    return tuple(found)


def _check(given: Transformation) -> None:
    from mo_loop.transforms.states.low_latency2 import LowLatency2  # options without transformations load no pass
    from mo_loop.transforms.states.make_stateful import MakeStateful

    known = LowLatency2.arguments() if given.name == LowLatency2.__name__ else MakeStateful.arguments()
    for key, value in given.arguments.items():
        if key not in known:
            raise UsageError(
                f"{given.name} has no argument {shown(key)}", why=f"its arguments are {', '.join(known)}", hint=_FORM
            )
        if why := _contradiction(value, known[key]):
            raise UsageError(f"{given.name}: {key} is {shown(value)}", why=why, hint=_FORM)


def _contradiction(value: Any, kind: type) -> str:
    """Why an argument of this type cannot have a value; empty if it can."""
    if type(value) is not kind:
        return f"it is a {kind.__name__}"
    if isinstance(value, int) and value.bit_length() > 63:
        return "it is a number of 64 bits"
    if isinstance(value, dict) and not all(isinstance(name, str) for pair in value.items() for name in pair):
        return "it maps names to names"
    return ""


def _items(given: Any) -> Iterator[Transformation]:
    if isinstance(given, Sequence) and not isinstance(given, str) and not _is_pair(given):
        for each in given:
            yield from _named(each)
    else:
        yield from _named(given)


def _named(given: Any) -> Iterator[Transformation]:
    """The transformations of a text, one in two parts, or one that was made before."""
    if isinstance(given, str):
        yield from (_parsed(text) for text in _parts(given, ","))
    elif isinstance(given, Transformation):
        yield given
    elif _is_pair(given):
        yield Transformation(given[0], dict(given[1]))
    else:
        raise UsageError(f"transform is {shown(given)}", why="it is a text, or a name with a dict", hint=_FORM)


def _is_pair(given: Any) -> bool:
    """Whether it is a name with a dict of arguments."""
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], Mapping)


def _parsed(text: str) -> Transformation:
    name, bracket, rest = text.partition("[")
    if not bracket:
        return Transformation(name.strip())
    if not rest.rstrip().endswith("]"):
        raise UsageError(f"--transform {shown(text)} cannot be understood", why="a ] is missing at its end", hint=_FORM)
    arguments: dict[str, Any] = {}
    for part in _parts(rest.rstrip()[:-1], ",;"):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not equals or not key:
            raise UsageError(f"--transform {shown(text)}: {shown(part)} is not key=value", hint=_FORM)
        if key in arguments:
            raise UsageError(f"--transform {shown(text)} gives {shown(key)} twice", hint="give it once")
        arguments[key] = _value(text, value)
    return Transformation(name.strip(), arguments)


def _value(text: str, value: str) -> Any:
    """A Python literal; the Model Optimizer also took names of numbers without regard to their case."""
    spelled = {"true": "True", "false": "False"}.get(value.lower(), value)
    try:
        return literal(spelled)
    except ValueError:
        raise UsageError(
            f"--transform {shown(text)}: {shown(value)} is not a value",
            why="values are Python literals, and a dict names each key once", hint=_FORM,
        ) from None


def _parts(text: str, separators: str) -> Iterator[str]:
    """The parts between separators that are neither in brackets nor in quotes; UsageError without any."""
    expected: list[str] = []
    quote = ""
    start = 0
    found = 0
    for place, sign in enumerate(f"{text}{separators[0]}"):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in _CLOSING:
            expected.append(_CLOSING[sign])
        elif expected and sign == expected[-1]:
            expected.pop()
        elif sign in separators and not expected:
            part = text[start:place].strip()
            start = place + 1
            if part:
                found += 1
                yield part
    if quote or expected:
        raise UsageError(
            f"--transform {shown(text)} cannot be understood", why="a bracket or a quote is open", hint=_FORM
        )
    if not found and text.strip():
        raise UsageError(f"--transform {shown(text)} names nothing", hint=_FORM)
