"""The structure of a model, the same for ONNX, IR and dumps, which is inspected, compared and shown.

    Structure            the model: its main scope, functions, opsets, metadata
      ScopeRecord        a graph: items in topological order, parameters and results
        Item             a node: operator, attributes, inputs, types of outputs, data of a constant, bodies
          Feed           how the node that holds a body feeds one of its parameters: slices, back edge, outer value
          Drain          what an output of that node takes from its bodies

Attributes and types are text: equal text is equal meaning. A Ref is an output of an item, in the same scope or, for a
value that a body captures, in an enclosing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from mo_loop.look.records.data import Data
from mo_loop.support.traversal import producers_first
from mo_loop.text.spelling import quoted, unquoted

ONNX, IR, DUMP = "ONNX", "IR", "dump"

_NUMBERED = re.compile(r"_\d+$")

Shape = list[int | str] | None
"""Numbers, names of symbols and "?"; None for an unknown rank."""

_MARKS = re.compile('[],"[]')

_DIM = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^",])+')
"""A dimension in a shape: a quoted symbol can hold commas."""


class Ref(NamedTuple):
    """An output of an item, by its number."""

    item: Item
    output: int

    @property
    def made(self) -> Output:
        """The output; an empty one that a damaged model does not have."""
        return self.item.outputs[self.output] if self.output < len(self.item.outputs) else Output()


def shown(ref: Ref | None) -> str:
    """A value for people: its item, with the number of the output where there are several."""
    if ref is None:
        return ""
    item = ref.item
    if item.data is not None and item.is_generated and item.data.brief:
        return f"{item.label} ({item.data.brief})"
    return f"{item.label}:{ref.output}" if len(item.outputs) > 1 else item.label


@dataclass(slots=True)
class Output:
    """An output of an item: the names of the tensor, its element type and its dimensions as text; "" if not known."""

    names: tuple[str, ...] = ()
    dtype: str = ""
    shape: str = ""


@dataclass(slots=True)
class Feed:
    """The source of a parameter of a body. `kind` is the field's word: invariant, merged, sliced, iteration ...

    `source` is the outer value, or that of the first iteration; `next` the inner value that the back edge brings.
    `settings` has axis, start, end, stride and part size of a slice.
    """

    kind: str
    source: Ref | None = None
    next: Ref | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Drain:
    """The source of an output of a node with bodies: the inner value by the tag of its body."""

    kind: str
    sources: Mapping[str, Ref | None]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Item:
    """A node, a parameter or a constant.

    `direct` is the number of inputs that are compared by their place; the others of a node with bodies are compared by
    the `feed` of the parameters that they reach. `captures` are the outer values that the bodies read: the operators
    that read each, and their ports. `condition` is the inner value that lets a loop continue. `mapped` has
    attributes that the feeds and drains give. `ports` is the port map, with items and results as its ends
    (node_records.py), `made_of` the object that the item describes: a Node, a Layer, or a NodeProto; an initializer or
    input of an ONNX model has none. `id` is that of its record (node_records.py), once it is described.
    """

    operator: str
    name: str
    scope: ScopeRecord
    version: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    mapped: dict[str, str] = field(default_factory=dict)
    inputs: list[Ref | None] = field(default_factory=list)
    input_names: tuple[str, ...] = ()
    outputs: list[Output] = field(default_factory=list)
    data: Data | None = None
    origins: tuple[str, ...] = ()
    info: dict[str, str] = field(default_factory=dict)
    bodies: dict[str, ScopeRecord] = field(default_factory=dict)
    feed: Feed | None = None
    drains: list[Drain] = field(default_factory=list)
    condition: Ref | None = None
    direct: int | None = None
    captures: dict[Ref, list[str]] = field(default_factory=dict)
    ports: Mapping[str, Any] | None = None
    place: int = 0
    made_of: Any = None
    id: int = -1

    @property
    def is_generated(self) -> bool:
        """Whether the name has no meaning: it is empty, or the operator with a number."""
        return not self.name or _NUMBERED.sub("", self.name) == self.operator

    @property
    def label(self) -> str:
        """A name for people: its own, else that of its first tensor, else its place; of a variable its id.

        A ReadValue or Assign has a name of its own only where a model gave it one.
        """
        variable = self.attributes.get("variable_id", "") if self.is_generated else ""
        names = [variable, self.name, *(name for each in self.outputs for name in each.names)]
        return next(filter(None, names), f"{self.operator}#{self.place}")

    @property
    def is_constant(self) -> bool:
        """Its data can be in a missing file, or an attribute of a function."""
        return self.data is not None or self.operator == "Constant"

    @property
    def called(self) -> str:
        """The name that a function of the model has if this is a call of it."""
        overload = self.attributes.get("overload")
        return f"{self.operator}::{overload}" if overload else self.operator

    @property
    def is_loop(self) -> bool:
        return self.operator == "Loop" and self.direct is not None

    def port(self, place: int = 0) -> TensorPort:
        """An output with its type."""
        return tensor_port(Ref(self, place))

    def input(self, place: int) -> Ref | None:
        """None for an absent input."""
        return self.inputs[place] if place < len(self.inputs) else None


@dataclass(eq=False, slots=True)
class OutputRecord:
    """An output of a model or a body. `id` and `made_of` as of an Item."""

    name: str
    ref: Ref | None
    dtype: str = ""
    shape: str = ""
    made_of: Any = None
    id: int = -1


@dataclass(eq=False, slots=True)
class ScopeRecord:
    """A graph. `path` has the name of each enclosing node, followed by the tag of its body.

    `info` is its rt_info, `settings` are the opsets and attributes of a function, `id` is that of its record.
    """

    path: tuple[str, ...] = ()
    owner: Item | None = None
    tag: str = ""
    items: list[Item] = field(default_factory=list)
    parameters: list[Item] = field(default_factory=list)
    results: list[OutputRecord] = field(default_factory=list)
    info: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    id: str = ""

    @property
    def text(self) -> str:
        return "/".join(self.path)

    @property
    def kind(self) -> str:
        """The tag of a body, "function", or "model" for the main graph."""
        return self.tag or ("function" if self.path else "model")

    @property
    def constants(self) -> list[Item]:
        return [item for item in self.items if item.is_constant]

    @property
    def nodes(self) -> list[Item]:
        """The items that compute something: no constants and no parameters."""
        parameters = set(map(id, self.parameters))
        return [item for item in self.items if not item.is_constant and id(item) not in parameters]

    @property
    def entries(self) -> Iterator[Item | OutputRecord]:
        """The items, then the results."""
        yield from self.items
        yield from self.results

    def all(self, depth: int | None = None) -> Iterator[ScopeRecord]:
        """This scope and all below, outer before inner; down to `depth` levels of bodies."""
        stack = [(self, 0)]
        while stack:
            scope, level = stack.pop()
            yield scope
            if depth is None or level < depth:
                stack += reversed([(body, level + 1) for item in scope.items for body in item.bodies.values()])


@dataclass(slots=True)
class Structure:
    """A model. `kind` is ONNX, IR or dump; `source` its file, for people; `made_of` the ModelProto, the Graph or
    the JSON data.

    `layers` has the ids of the layers in the file of an IR, by Node.
    """

    kind: str
    source: str
    main: ScopeRecord
    functions: dict[str, ScopeRecord] = field(default_factory=dict)
    opsets: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    made_of: Any = None
    layers: dict[Any, str] = field(default_factory=dict)

    def scopes(self) -> Iterator[ScopeRecord]:
        for start in (self.main, *self.functions.values()):
            yield from start.all()

    @property
    def nodes(self) -> int:
        """The number of items."""
        return sum(len(scope.items) for scope in self.scopes())


def in_order(items: list[Item]) -> list[Item]:
    """Producers before consumers; among those that could be next, the first. Items of a cycle come last.

    A value that a body captures counts as an input of the node with the body.
    """
    places = {id(item): place for place, item in enumerate(items)}
    refs = [[*item.inputs, *item.captures] for item in items]
    reads = [[places[id(ref.item)] for ref in each if ref is not None and id(ref.item) in places] for each in refs]
    places_in_order = producers_first(reads)
    order = [items[place] for place in places_in_order]
    if len(order) < len(items):
        left = set(range(len(items))) - set(places_in_order)
        order += [items[place] for place in sorted(left)]
    for place, item in enumerate(order):
        item.place = place
    return order


# -- values as names, types and shapes


@dataclass
class TensorPort:
    """An input or output. `type` is an element type, or text such as "seq(f32[?])" for a value that is not a tensor."""

    name: str
    type: str = "?"
    shape: Shape = None

    def __str__(self) -> str:
        if "(" in self.type:
            return self.type
        return self.type + ("[...]" if self.shape is None else shown_dims(self.shape))

    @property
    def is_known(self) -> bool:
        """Whether anything is known of the type."""
        return self.type != "?" or self.shape is not None


def shown_dims(shape: Iterable[object]) -> str:
    """Dimensions as text; a symbol is quoted if it holds the marks of a shape."""
    texts = map(str, shape)
    return f"[{','.join([quoted(text) if _MARKS.search(text) else text for text in texts])}]"


def tensor_name(ref: Ref | None) -> str:
    """The name of a tensor; of one without a name that of its node, with the number of the output where there are
    several."""
    if ref is None:
        return ""
    item, place = ref
    return ref.made.names[0] if ref.made.names else f"{item.label}:{place}" if len(item.outputs) > 1 else item.label


def tensor_port(ref: Ref | None) -> TensorPort:
    """A tensor with its type; without a name if there is none."""
    return TensorPort("") if ref is None else port_of(tensor_name(ref), ref.made.dtype, ref.made.shape)


def result_port(end: OutputRecord) -> TensorPort:
    """An output of a graph, with the type that is declared, else that of its tensor."""
    if end.dtype or end.ref is None:
        return port_of(end.name, end.dtype, end.shape)
    return replace(tensor_port(end.ref), name=end.name)


def split(shown: str) -> tuple[str, str]:
    """The element type and the dimensions of a type: `f32[2,N]` -> (f32, [2,N])."""
    head, bracket, rest = shown.partition("[")
    return (head, bracket + rest) if head.isalnum() or head == "?" else (shown, "")


def port_of(name: str, dtype: str, shape: str) -> TensorPort:
    """A value of an element type and of dimensions in brackets, both as a Structure has them; "" is not known."""
    dims = None if shape in ("", "[...]") else list(map(_dim, _DIM.findall(shape[1:-1])))
    return TensorPort(name, dtype or "?", dims)


def _dim(text: str) -> int | str:
    if text.isascii() and text.isdecimal() and len(text) < 20:
        return int(text)
    return unquoted(text) if len(text) > 1 and text[0] == text[-1] == '"' else text
