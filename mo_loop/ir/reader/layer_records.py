"""The records of an IR file: layers, ports, edges and port maps, with ids, labels and attributes as text."""

from __future__ import annotations

from dataclasses import dataclass, field

from mo_loop.errors import IrError

LONGEST, LONGEST_NAME = 400, 40
"""Characters of the message of an error, and of an id or type in it: those of a file may have any length."""

Info = dict[str, dict[str, str]]
"""The <rt_info> of a layer or port: name of an attribute -> its fields."""


def shortened(text: str, longest: int = LONGEST) -> str:
    """A text of the file, for a message."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def _name(text: str) -> str:
    return shortened(text, LONGEST_NAME)


def ir_error(message: str, where: str, code: str = "ML250") -> IrError:
    """An error with texts of the file in it."""
    return IrError(shortened(message), where=shortened(where), code=code)


@dataclass(slots=True)
class LayerPort:
    """A port of a layer. `dims` holds -1 for an unknown dimension; () is a scalar or an unknown rank."""

    label: str
    precision: str
    dims: tuple[int, ...]
    names: tuple[str, ...]
    rt_info: Info


@dataclass(slots=True)
class SliceRange:
    """The way in which a port map cuts a tensor into slices, or concatenates slices to a tensor."""

    axis: int
    start: int
    end: int
    stride: int
    part_size: int


@dataclass(slots=True)
class Link:
    """A line of a port map. `port` is the label of the outer port, or None."""

    port: str | None
    layer: str
    purpose: str
    cut: SliceRange | None


@dataclass(slots=True)
class PortMap:
    """The inputs and outputs that a port map connects with layers of a body."""

    inputs: list[Link] = field(default_factory=list)
    outputs: list[Link] = field(default_factory=list)


@dataclass(slots=True)
class Layer:
    """A layer. `where` is its place in the model, for messages."""

    where: str
    id: str
    name: str
    type: str
    version: str
    data: dict[str, str]
    inputs: list[LayerPort] = field(default_factory=list)
    outputs: list[LayerPort] = field(default_factory=list)
    output_names: tuple[str, ...] = ()
    rt_info: Info = field(default_factory=dict)
    port_maps: dict[str, PortMap] = field(default_factory=dict)
    back_edges: list[tuple[str, str]] = field(default_factory=list)
    """(Result, Parameter): ids of layers of the body."""
    bodies: dict[str, Net] = field(default_factory=dict)

    def wrong(self, message: str, code: str = "ML250") -> IrError:
        """An error at this layer."""
        return ir_error(f"layer {_name(self.id)} ({_name(self.type)}): {message}", self.where, code)


@dataclass(slots=True)
class Edge:
    """An edge between two ports."""

    from_layer: str
    from_port: str
    to_layer: str
    to_port: str

    def __str__(self) -> str:
        ends = map(_name, (self.from_layer, self.from_port, self.to_layer, self.to_port))
        return "the edge from layer {}:{} to layer {}:{}".format(*ends)


@dataclass(slots=True, eq=False)
class Net:
    """A model or a body. Several can have the same path, because layers can have the same name."""

    name: str
    path: str
    layers: list[Layer]
    edges: list[Edge]
    rt_info: dict[str, object]
