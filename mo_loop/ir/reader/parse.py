"""The IR reader: model.xml and model.bin to a Graph.

    graph = read(Path("model.xml"))        # constants are spans of model.bin, not loaded

Versions 10 and 11 are read. This module turns the XML into records (mo_loop/ir/reader/layer_records.py) and refuses
files that are not IR; mo_loop/ir/reader/graphs.py makes the Graph. In records the ids of layers and ports are text.

Nothing outside the file is loaded: a document type is refused, entities are not resolved.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lxml import etree

from mo_loop.conversion_limits import Limits, budget, limited
from mo_loop.errors import FileError, IrError, UnsupportedError
from mo_loop.graph import Graph, Node
from mo_loop.ir.reader.graphs import GraphReader
from mo_loop.ir.reader.layer_records import (
    Edge,
    Info,
    Layer,
    LayerPort,
    Link,
    Net,
    PortMap,
    SliceRange,
    WeightFile,
    integer,
    ir_error,
    require_dimensions,
    shortened,
)

VERSIONS = (10, 11)

_PORT_MAPS = ("port_map", "then_port_map", "else_port_map")
_BODIES = ("body", "then_body", "else_body")
_INFOS = ("rt_info", "meta_data", "quantization_parameters")
_NAME = re.compile(r"(?:[^\\,]|\\.?)+", re.DOTALL)
"""A tensor name in a list: it ends at a comma without a backslash before it."""


def read(path: Path, weights: Path | None = None, limits: Limits | None = None) -> Graph:
    """The graph in an .xml file. `weights` is the .bin; by default the one of the same name in the same folder.

    `limits` are those of the .xml, layers, names, nesting and time; by default those of a `limited` block around the
    call, or else the default limits.

    Raises:
        FileError: a file is missing or cannot be read, is not IR, or is shorter than the model declares.
        IrError: the model breaks a rule of the format.
        UnsupportedError: the IR is of another version, or has a part that cannot be read.
        LimitError: the IR exceeds one of `limits`.
    """
    return read_with_ids(path, weights, limits)[0]


def read_with_ids(
    path: Path, weights: Path | None = None, limits: Limits | None = None
) -> tuple[Graph, dict[Node, str]]:
    """The graph, and the id of the layer of each node, also in bodies. Errors as of `read`."""
    with limited(limits):
        net, version = records(path, limits)
        reader = GraphReader(net, WeightFile(weights or path.with_suffix(".bin")), version)
        return reader.graph, reader.ids


def records(path: Path, limits: Limits | None = None) -> tuple[Net, int]:
    """The records in the .xml and its version; the .bin is not opened. Errors as of `read`."""
    with limited(limits):
        root = _root(path)
        version = _version(root, path)
        return _net(root, root.get("name", ""), "", path), version


def _root(path: Path) -> Any:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        with open(path, "rb") as file:
            budget().document(path.name, os.fstat(file.fileno()).st_size)
            start = file.read(64)
            file.seek(0)
            tree: Any = etree.parse(file, parser) if start.strip() else None  # the stubs have half of its docinfo
    except IsADirectoryError:
        raise FileError(f"{path} is a folder, not an IR file", code="ML211") from None
    except FileNotFoundError:
        raise FileError(f"the file {path} does not exist", code="ML210", hint="check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{path} cannot be read: {reason}", code="ML212") from None
    except etree.XMLSyntaxError as error:
        if start.startswith(b"version https://git-lfs"):
            raise FileError(f"{path.name} is a Git LFS pointer", code="ML214", hint="run: git lfs pull") from None
        if "depth" in str(error):
            raise UnsupportedError(f"{path.name} nests its bodies too deeply to be read", code="ML312") from None
        raise FileError(
            f"{path.name} is not XML, or is truncated: {shortened(str(error))}", code="ML214",
            hint="give the .xml of a model; if it is one, copy or export it again",
        ) from None
    if tree is None:
        raise FileError(f"{path.name} is empty", why="it has no bytes", hint="download or copy it again", code="ML214")
    if tree.docinfo.doctype:
        raise FileError(f"{path.name} declares a document type, which an IR does not have", code="ML214",
                        hint="remove the DOCTYPE if you trust the file")
    return tree.getroot()


def _version(root: Any, path: Path) -> int:
    if root.tag != "net" or root.find("layers") is None:
        raise FileError(f"{path.name} is XML, but not IR: it has no net with layers", code="ML214",
                        hint="give the .xml that was saved with a .bin")
    text = root.get("version", "")
    if text not in map(str, VERSIONS):
        raise UnsupportedError(
            f"IR version {text[:20] or '(none)'} cannot be read, only {' and '.join(map(str, VERSIONS))}",
            code="ML330", where=path.name, hint="convert the original model again",
        )
    return int(text)


# -- nets and layers


def _net(element: Any, name: str, path: str, file: Path) -> Net:
    """A model or body. `path` is empty for the model."""
    net = Net(name, path, [], [], {})
    seen: set[str] = set()
    for child in element:
        tag = child.tag
        if tag in seen:
            raise _wrong(child, f"a second <{tag}>", path)
        seen.add(tag)
        if tag == "layers":
            net.layers = [_layer(each, path, file) for each in _only(child, "layer", path)]
        elif tag == "edges":
            net.edges = [_edge(each, path) for each in _only(child, "edge", path)]
        elif tag in _INFOS:
            net.rt_info.update(_info(child, path))
        else:
            raise _unsupported(child, path, file)
    return net


def _layer(element: Any, path: str, file: Path) -> Layer:
    id_, type_ = _text(element, "id", path), _text(element, "type", path)
    name = element.get("name", "")
    where = f"{path}/{name or id_}" if path else name or id_
    layer = Layer(where, id_, name, type_, element.get("version", ""), {})
    layer.output_names = _names(element.get("output_names", ""))
    within = budget()
    within.node(name, type_, layer.output_names)
    within.name(id_)
    for child in element:
        tag = child.tag
        if tag == "data":
            layer.data.update(_fields(child, where))
        elif tag == "input":
            layer.inputs += [_port(each, where) for each in _only(child, "port", where)]
        elif tag == "output":
            layer.outputs += [_port(each, where) for each in _only(child, "port", where)]
        elif tag == "rt_info":
            layer.rt_info.update(_attributes(child, where))
        elif tag in _PORT_MAPS:
            layer.port_maps[tag] = _port_map(child, where)
        elif tag == "back_edges":
            edges = _only(child, "edge", where)
            layer.back_edges += [(_text(each, "from-layer", where), _text(each, "to-layer", where)) for each in edges]
        elif tag in _BODIES:
            layer.bodies[tag] = _net(child, tag, f"{where}/{tag}", file)
        else:
            raise _unsupported(child, where, file)
    return layer


def _edge(element: Any, path: str) -> Edge:
    keys = ("from-layer", "from-port", "to-layer", "to-port")
    return Edge(*(_text(element, key, path) for key in keys))


# -- ports


def _port(element: Any, where: str) -> LayerPort:
    dims = []
    info: Info = {}
    for child in element:
        if child.tag == "dim":
            dims.append(_dim(child, where))
        elif child.tag == "rt_info":
            info = _attributes(child, where)
        else:
            raise _wrong(child, f"<{child.tag}> inside a port", where)
    try:
        require_dimensions(len(dims))
    except ValueError as error:
        raise _wrong(element, f"a port: {error}", where) from None
    precision, names = element.get("precision", ""), _names(element.get("names", ""))
    for name in names:
        budget().name(name)
    return LayerPort(_text(element, "id", where), precision, tuple(dims), names, info)


def _dim(element: Any, where: str) -> int:
    try:
        return integer(element.text or "", -1)
    except ValueError as error:
        raise _wrong(element, f"the dimension {error}", where) from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(found.replace("\\,", ",") for found in _NAME.findall(text))


# -- port maps


def _port_map(element: Any, where: str) -> PortMap:
    found = PortMap()
    for child in element:
        if child.tag not in ("input", "output"):
            raise _wrong(child, f"<{child.tag}> inside a port map", where)
        (found.inputs if child.tag == "input" else found.outputs).append(_link(child, where))
    return found


def _link(element: Any, where: str) -> Link:
    port = _text(element, "external_port_id", where)
    cut = None
    if element.get("axis") is not None:
        start, end, stride, part = (
            _number(element, key, default, where)
            for key, default in (("start", 0), ("end", -1), ("stride", 1), ("part_size", 1))
        )
        if not stride or part < 1:
            raise _wrong(element, f"slices of {part} with the stride {stride}", where)
        cut = SliceRange(_number(element, "axis", 0, where), start, end, stride, part)
    outer = None if port.startswith("-") else port
    return Link(outer, _text(element, "internal_layer_id", where), element.get("purpose", ""), cut)


# -- additional info


def _attributes(element: Any, where: str) -> Info:
    """The <rt_info> of a layer or port: `<attribute name="layout" version="0" layout="[N,C]" />`."""
    found: Info = {}
    for child in element:
        fields = _fields(child, where)
        found[fields.pop("name", child.tag)] = fields
    return found


def _info(element: Any, where: str) -> dict[str, Any]:
    """The <rt_info> of a model as nested dictionaries; a leaf is its `value`, or all its attributes."""
    found: dict[str, Any] = {}
    for child in element:
        fields = _fields(child, where)
        key = fields.pop("name", child.tag) if child.tag == "info" else child.tag
        if len(child):
            found[key] = _info(child, where)
        else:
            found[key] = fields["value"] if fields.keys() == {"value"} else fields
    return found


# -- elements


def _only(element: Any, tag: str, where: str) -> Iterator[Any]:
    for child in element:
        if child.tag != tag:
            raise _wrong(child, f"<{child.tag}> inside <{element.tag}>", where)
        yield child


def _fields(element: Any, where: str) -> dict[str, str]:
    """All attributes of an element; attributes of XML namespaces are refused."""
    fields = dict(element.attrib)
    if any(key.startswith("{") for key in fields):
        raise _wrong(element, f"attributes of a namespace in <{element.tag}>", where)
    return fields


def _text(element: Any, key: str, where: str) -> str:
    text: str | None = element.get(key)
    if not text:
        raise _wrong(element, f"<{element.tag}> without {key}", where)
    return text


def _number(element: Any, key: str, default: int, where: str) -> int:
    text = element.get(key)
    try:
        return default if text is None else integer(text)
    except ValueError as error:
        raise _wrong(element, f"{key}: {error}", where) from None


def _wrong(element: Any, message: str, where: str) -> IrError:
    return ir_error(f"line {element.sourceline}: {message}", where)


def _unsupported(element: Any, where: str, file: Path) -> UnsupportedError:
    return UnsupportedError(
        shortened(f"line {element.sourceline} of {os.path.basename(file)}: <{element.tag}> cannot be read"),
        code="ML331", where=shortened(where),
        hint="versions 10 and 11 of the IR, as OpenVINO writes them, have nothing of that name",
    )
