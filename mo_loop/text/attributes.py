"""Prints and parses attributes and rt_info: `{axis: 1, mode: bidirectional, pads: [0, 1], output_type: i64}`.

Port maps of control flow in text: `input_map: [Merged(%s, @n), Sliced(%e, axis: 1)], iteration: %i`.

The header of a control-flow node comes before its bodies, so references are kept as labels until the bodies are parsed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, get_args, get_origin

from mo_loop import errors
from mo_loop.errors import ConversionErrors, MoLoopError
from mo_loop.graph import BY_NAME, Dim, ElementType, Graph, TensorType, Value, i64
from mo_loop.ops.base import Result
from mo_loop.ops.control import Control, Iteration
from mo_loop.ops.port_map import Branched, Concatenated, Final, Invariant, Merged, Selected, Sliced
from mo_loop.text.literals import parse_scalar
from mo_loop.text.spelling import (
    INTEGER,
    RESULT,
    VALUE,
    WORD,
    Scanner,
    parse_dim,
    parse_element_type,
    quoted,
    show_dim,
    word_or_quoted,
)

CODE = re.compile(r"ML\d{3}")
_ERRORS: dict[str, type[MoLoopError]] = {
    "ML200": errors.InputError, "ML20": errors.UsageError, "ML21": errors.FileError, "ML22": errors.ModelError,
    "ML23": errors.TypeError_, "ML24": errors.TypeError_, "ML2": errors.InputError, "ML3": errors.UnsupportedError,
    "ML4": errors.InternalError,
}


def show_attribute(value: Any, kind: Any) -> str:
    """A value as text. A string needs no quotes if the declared `kind` of the attribute is a string."""
    if isinstance(value, str) and kind is not Any and WORD.fullmatch(value):
        return value
    if isinstance(value, tuple | list):
        return f"[{', '.join(show_attribute(each, _item_kind(kind)) for each in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{word_or_quoted(k)}: {show_attribute(v, Any)}' for k, v in value.items())}}}"
    if isinstance(value, ConversionErrors):
        return f"[{', '.join(show_attribute(each, Any) for each in value.errors)}]"
    if isinstance(value, MoLoopError):
        more = "".join(f", {key}: {quoted(getattr(value, key))}" for key in ("where", "hint") if getattr(value, key))
        return f"{value.code}({quoted(value.message)}{more})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "none"
    if isinstance(value, Dim):
        return show_dim(value)
    return repr(value) if isinstance(value, int | float | ElementType) else quoted(str(value))


def parse_attribute(scanner: Scanner, kind: Any) -> Any:
    """Take a value of the declared `kind`."""
    if kind is ElementType:
        return parse_element_type(scanner)
    if scanner.sees("["):
        items: list[Any] = []
        # A plain tuple is a shape; one of numbers or strings declares its items.
        item = parse_dim if kind is tuple else lambda scanner: parse_attribute(scanner, _item_kind(kind))
        parse_list(scanner, "[", "]", lambda: items.append(item(scanner)))
        found = [item for item in items if isinstance(item, MoLoopError)]
        return ConversionErrors(found) if found else tuple(items)
    text = scanner.string()
    if text is not None:
        return text
    if kind is Any:
        return _anything(scanner)
    return scanner.match(WORD) if scanner.sees(WORD) and kind not in (bool, int, float) else parse_scalar(scanner)


def _anything(scanner: Scanner) -> Any:
    if scanner.sees("{"):
        return parse_info(scanner)
    if scanner.sees(CODE):
        return _error(scanner)
    if scanner.accept("none"):
        return None
    word = WORD.match(scanner.text, scanner.position)
    return parse_element_type(scanner) if word is not None and word.group() in BY_NAME else parse_scalar(scanner)


def parse_info(scanner: Scanner) -> dict[str, Any]:
    """Take a dictionary of anything."""
    found: dict[str, Any] = {}

    def entry() -> None:
        key = scanner.word_or_string("a key")
        scanner.expect(":")
        found[key] = parse_attribute(scanner, Any)

    parse_list(scanner, "{", "}", entry)
    return found


def parse_list(scanner: Scanner, opening: str, closing: str, item: Callable[[], Any]) -> None:
    """Take `opening`, items, `closing`; `item` takes one. A last comma is optional, in braces every comma."""
    scanner.expect(opening)
    while not scanner.accept(closing):
        item()
        if not scanner.accept(",") and not scanner.sees(closing) and opening != "{":
            scanner.expect(",")


def _error(scanner: Scanner) -> MoLoopError:
    code = scanner.require(CODE, "an error code")
    cls = next(cls for prefix, cls in _ERRORS.items() if code.startswith(prefix))
    error = cls("", code=code)

    def part() -> None:
        key = "message"
        if not scanner.sees('"'):
            key = scanner.require(re.compile("where|hint"), "where or hint")
            scanner.expect(":")
        text = scanner.string()
        if text is None:
            raise scanner.fail("expected a string")
        setattr(error, key, text)

    parse_list(scanner, "(", ")", part)
    error.args = (error.message,)
    return error


def _item_kind(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is tuple else Any


PORTS = ("iteration", "condition", "input_map", "output_map")
"""Attributes of control-flow nodes that refer to nodes of a body, in the order in which they are printed."""

BODIES = ("body", "then_body", "else_body")

ENTRIES = {cls.__name__: cls for cls in (Invariant, Merged, Sliced, Final, Concatenated, Branched, Selected)}


class Names:
    """The labels of one graph. `feeds` are the types of Parameters that have no type in the text."""

    def __init__(self, graph: Graph, feeds: Mapping[str, Any]) -> None:
        self.graph = graph
        self.feeds = feeds
        self.values: dict[str, Value] = {}
        self.results: dict[str, Result] = {}


class PortMapEntry(NamedTuple):
    """An entry of a port map: labels of Parameters and Results (None for none), then numbers by name."""

    cls: type
    labels: list[str | None]
    numbers: dict[str, int | tuple[int, ...]]
    line: int


def parse_ports(scanner: Scanner) -> list[PortMapEntry] | str | None:
    """Take a list of entries, or one label."""
    if not scanner.sees("["):
        return _label(scanner)
    entries: list[PortMapEntry] = []
    parse_list(scanner, "[", "]", lambda: entries.append(_entry(scanner)))
    return entries


def _label(scanner: Scanner) -> str | None:
    label = scanner.match(VALUE) or scanner.match(RESULT)
    if label is None:
        scanner.expect("_")
    return label


def _entry(scanner: Scanner) -> PortMapEntry:
    line = scanner.line
    word = scanner.require(WORD, "an entry of a port map")
    if word not in ENTRIES:
        raise scanner.fail(f"{word!r} is not an entry of a port map", hint=f"one of {', '.join(ENTRIES)}")
    entry = PortMapEntry(ENTRIES[word], [], {}, line)
    keys = [field.name for field in fields(entry.cls)]

    def part() -> None:
        if scanner.sees("_") or not scanner.sees(WORD):
            entry.labels.append(_label(scanner))
            return
        key = scanner.require(WORD, "a number's name")
        if key not in keys:
            raise scanner.fail(f"{word} has no {key!r}", hint=f"it has {', '.join(keys)}")
        scanner.expect(":")
        entry.numbers[key] = _numbers(scanner)

    parse_list(scanner, "(", ")", part)
    return entry


def _numbers(scanner: Scanner) -> int | tuple[int, ...]:
    if not scanner.sees("["):
        return int(scanner.require(INTEGER, "an integer"))
    found: list[int] = []
    parse_list(scanner, "[", "]", lambda: found.append(int(scanner.require(INTEGER, "an integer"))))
    return tuple(found)


def fed_types(cls: type[Control], ports: dict[str, Any], types: list[Any], branch: int) -> dict[str, Any]:
    """The initial types of the Parameters of a body, by label; `branch` is 1 for else_body."""
    feeds: dict[str, Any] = {}
    if ports.get("iteration"):
        feeds[ports["iteration"][1:]] = TensorType(i64, ())
    for entry, type_ in zip(ports.get("input_map", ()), types, strict=False):
        place = branch if entry.cls is Branched else 0
        label = entry.labels[place] if len(entry.labels) > place else None
        if label is None:
            continue
        if entry.cls is Sliced and issubclass(cls, Iteration):
            cut = Sliced(None, **{"axis": 0, **entry.numbers})  # type: ignore[arg-type]  # its Parameter is yet to come
            type_ = object.__new__(cls)._slice_type(cut, type_)[0]
        feeds[label[1:]] = type_.without_known() if entry.cls is Merged else type_
    return feeds


def resolved(
    scanner: Scanner, line: int, cls: type[Control], ports: dict[str, Any], bodies: dict[str, Names]
) -> dict[str, Any]:
    """Bodies and port maps as attributes: the labels become nodes."""
    both = [*bodies.values()] * (2 if len(bodies) == 1 else 1)
    found: dict[str, Any] = {tag: names.graph for tag, names in bodies.items()}
    found |= {"input_map": (), "output_map": ()}
    for key, value in ports.items():
        if isinstance(value, list):
            found[key] = tuple(_built(scanner, entry, both) for entry in value)
        else:
            found[key] = _node(scanner, value, both[0], line)
    if "condition" in cls.attributes and "condition" not in found:
        raise scanner.fail(f"{cls.__name__} needs a condition: the Result with the next execution condition", line)
    return found


def _built(scanner: Scanner, entry: PortMapEntry, bodies: list[Names]) -> Any:
    nodes = [_node(scanner, label, names, entry.line) for label, names in zip(entry.labels, bodies, strict=False)]
    try:
        return entry.cls(*nodes, **entry.numbers)
    except TypeError:
        wanted = ", ".join(field.name for field in fields(entry.cls))
        raise scanner.fail(f"{entry.cls.__name__} takes {wanted}", entry.line) from None


def _node(scanner: Scanner, label: str | None, names: Names, line: int) -> Any:
    if label is None:
        return None
    known: Mapping[str, Any] = names.results if label[0] == "@" else names.values
    found = known.get(label[1:])
    if found is None:
        raise scanner.fail(f"{label} is not defined in the body", line)
    return found if isinstance(found, Result) else found.node
