"""Damage of the elements of an .xml: ids, edges, ports, port maps, attributes, dimensions, weights, bodies."""

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.fuzz.damage.amounts import INTEGERS, SIZES, TEXTS

IDS = ("id", "from-layer", "from-port", "to-layer", "to-port", "external_port_id", "internal_layer_id")

NUMBERS = (*map(str, INTEGERS), *map(str, SIZES), str(2**63), str(2**64), str(10**19), "9" * 40, "9" * 5000,
           "-" + "9" * 5000, "1e5", "1.5", "0x10", "\u0663", " 1 ", "+1", "1_000", "-0", "nan", "inf", "-inf", "1e400",
           "1e-400")
SHAPES = ("", "?", "...", "1..", "..5", "5..1", "1..9999999999999999999", ",", "1,,2", "[1,2]", "1,2,3,4,5,6,7,8,9",
          f"{2**31},{2**31},{2**31}", f"{2**62}", f"0,{2**63}", "-1", "-1,-1", "?,?", "0", "1," * 3000 + "1")
WORDS = ("true", "false", "f32", "i64", "boolean", "string", "nf4", "dynamic", "undefined", "FP32", "I64", "BOOL", "U1",
         "body", "opset1", "opset15", "extension", "current_iteration", "execution_condition", "\\", "a\\,b,", ",,",
         *(text for text in TEXTS if text.isprintable()))
TAGS = ("net", "layers", "layer", "edges", "edge", "port", "dim", "data", "input", "output", "rt_info", "attribute",
        "body", "then_body", "else_body", "port_map", "back_edges", "meta_data", "quantization_parameters", "info",
        "other")


class Damage:
    """The state of one damaging: the root of a file, the random choices, and the root of another file."""

    def __init__(self, root: Any, draw: Random, other: Any) -> None:
        self.root, self.draw, self.other = root, draw, other

    def one(self, *tags: str) -> Any:
        """An element of one of these tags; of any tag if there are none."""
        found = [each for each in self.root.iter(*tags or ("*",)) if isinstance(each.tag, str)]
        return self.draw.choice(found) if found else self.root

    def with_attributes(self, *tags: str) -> Any:
        """An element that has attributes."""
        found = [each for each in self.root.iter(*tags or ("*",)) if each.attrib]
        return self.draw.choice(found) if found else self.root

    def text(self) -> str:
        """A value for an attribute."""
        return self.draw.choice(self.draw.choice((NUMBERS, NUMBERS, SHAPES, WORDS)))


def damage_elements(root: Any, draw: Random, other: Any) -> None:
    """One to four damages, in place."""
    state = Damage(root, draw, other)
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 4))):
        draw.choices(_DAMAGES, _SHARES)[0](state)


# -- ids, edges, ports


def _id(state: Damage) -> None:
    """Another id in an element: one of the file, or none."""
    draw = state.draw
    element = state.one("layer", "port", "edge", "input", "output")
    keys = [key for key in IDS if key in element.attrib]
    if keys:
        known = [value for each in state.root.iter() for key, value in each.attrib.items() if key in IDS]
        element.set(draw.choice(keys), draw.choice(known) if draw.random() < 0.8 else state.text())


def _edge(state: Damage) -> None:
    draw, edges = state.draw, state.one("edges", "back_edges")
    found = [each for each in edges if each.tag == "edge"]
    kind = draw.randrange(5)
    if not found or kind == 0:
        ids = [each.get("id", "") for each in state.root.iter("layer", "port")] or ["0"]
        keys = ("from-layer", "from-port", "to-layer", "to-port")
        edges.append(edges.makeelement("edge", {key: draw.choice(ids) for key in keys}))
    elif kind == 1:
        edges.remove(draw.choice(found))
    elif kind == 2:
        edges.append(copy.deepcopy(draw.choice(found)))
    else:
        one, two = draw.choice(found), draw.choice(found)
        for key in draw.choice((("from-layer", "from-port"), ("to-layer", "to-port"), ("from-layer",), ("to-layer",))):
            a, b = one.get(key), two.get(key)
            if a is not None and b is not None:
                one.set(key, b)
                two.set(key, a)


def _port(state: Damage) -> None:
    """Remove, repeat, add, retype or exchange a port."""
    draw, port = state.draw, state.one("port")
    parent, kind = port.getparent(), draw.randrange(6)
    if port.tag != "port" or parent is None:
        return
    if kind == 0:
        parent.remove(port)
    elif kind == 1:
        parent.append(copy.deepcopy(port))
    elif kind == 2:
        added = copy.deepcopy(port)
        added.set("id", str(draw.choice((99, 7, 2**63))))
        parent.insert(draw.randrange(len(parent) + 1), added)
    elif kind == 3:
        port.set("precision", draw.choice(("FP32", "FP16", "I64", "I32", "BOOL", "STRING", "U4", "U1", "NF4", *WORDS)))
    elif kind == 4:
        port.set("names", state.text())
    else:
        target = state.one("input", "output")
        if target not in port.iter():  # an earlier damage may have put it there
            target.append(port)


def _dim(state: Damage) -> None:
    draw, port = state.draw, state.one("port")
    dims = [each for each in port if each.tag == "dim"]
    if not dims or draw.random() < 0.2:
        added = port.makeelement("dim", {})
        added.text = draw.choice(NUMBERS)
        port.insert(0, added)
    elif draw.random() < 0.2:
        port.remove(draw.choice(dims))
    else:
        draw.choice(dims).text = draw.choice(NUMBERS)


def _sizes(state: Damage) -> None:
    """One size becomes another, wherever it is: the file stays consistent in itself."""
    draw = state.draw
    found = sorted({each.text for each in state.root.iter("dim") if each.text})
    if not found:
        return
    old, new = draw.choice(found), str(draw.choice(SIZES))
    for each in state.root.iter("dim", "data"):
        if each.text == old:
            each.text = new
        shape = each.get("shape")
        if shape is not None and "offset" not in each.attrib:
            each.set("shape", ",".join(new if dim == old else dim for dim in shape.split(",")))


# -- attributes


def _attribute(state: Damage) -> None:
    """Change, remove, rename, add or exchange an attribute of an element."""
    _damage_attribute(state, state.with_attributes())


def _data(state: Damage) -> None:
    """The same for the attributes of an operation."""
    _damage_attribute(state, state.with_attributes("data"))


def _damage_attribute(state: Damage, element: Any) -> None:
    draw, kind = state.draw, state.draw.randrange(10)
    key = draw.choice(sorted(element.attrib)) if element.attrib else "id"
    if kind == 0:
        element.attrib.pop(key, None)
    elif kind == 1:
        element.set(draw.choice(("unknown", "axis", "shape", "value", "name", "offset", "size")), state.text())
    elif kind == 2:
        value = element.attrib.pop(key, "")
        local = key.rpartition("}")[2]  # it may have been renamed before
        element.set(draw.choice(("unknown", "axis", "name", local.upper(), f"{{urn:x}}{local}")), value)
    elif kind == 3:
        other = state.with_attributes(element.tag)
        element.set(key, other.attrib.get(key, draw.choice([*other.attrib.values(), ""])))
    elif kind == 4:
        values = element.get(key, "").split(",")
        values[draw.randrange(len(values))] = draw.choice(NUMBERS)
        element.set(key, ",".join(values))
    elif kind == 5:
        element.set(key, ",".join([element.get(key, "")] * draw.choice((2, 3))))
    else:
        element.set(key, state.text())


def _kind(state: Damage) -> None:
    """A layer gets another type or version."""
    draw, layer = state.draw, state.one("layer")
    other = draw.choice([*state.other.iter("layer")] or [layer])
    kind = draw.randrange(4)
    if kind <= 1:
        layer.set("type", other.get("type", ""))
        layer.set("version", other.get("version", ""))
    elif kind == 2:
        layer.set("version", draw.choice(("", "opset1", "opset5", "opset8", "opset13", "extension", *WORDS)))
    else:
        layer.set("type", draw.choice(("", "Loop", "If", "TensorIterator", "Parameter", "Result", "Const", *WORDS)))


def _net(state: Damage) -> None:
    state.root.set("version", state.draw.choice(("10", "10", "10", "11", "9", "12", "", "011", "11.0", *NUMBERS)))


def _weights(state: Damage) -> None:
    """The data of a constant: place, size, shape, element type."""
    draw = state.draw
    constants = [each for each in state.root.iter("data") if "offset" in each.attrib]
    if not constants:
        return
    data, kind = draw.choice(constants), draw.randrange(6)
    if kind == 0:
        data.set("offset", draw.choice(NUMBERS))
    elif kind == 1:
        data.set("size", draw.choice(NUMBERS))
    elif kind == 2:
        data.set("shape", draw.choice(SHAPES))
    elif kind == 3:
        data.set("element_type", draw.choice(("i64", "f32", "f64", "i4", "u1", "boolean", "string", "f8e4m3", *WORDS)))
    elif kind == 4:
        other = draw.choice(constants)
        for key in draw.sample(("offset", "size", "shape", "element_type"), draw.choice((1, 3, 4))):
            data.set(key, other.get(key, ""))
    else:
        dims = [each for each in data.get("shape", "").split(",") if each]
        data.set("shape", ",".join([*dims, draw.choice(("1", "0", "1,1"))]))


# -- elements


def _element(state: Damage) -> None:
    """Remove, repeat, rename, move or empty an element, or give it text."""
    draw, element = state.draw, state.one()
    parent = element.getparent()
    if parent is None:
        return
    kind = draw.randrange(8)
    if kind == 0:
        parent.remove(element)
    elif kind == 1:
        parent.insert(draw.randrange(len(parent) + 1), copy.deepcopy(element))
    elif kind == 2:
        element.tag = draw.choice(TAGS)
    elif kind == 3:
        target = state.one()
        if not any(each is element for each in (target, *target.iterancestors())):
            target.insert(draw.randrange(len(target) + 1), element)
    elif kind == 4:
        for child in list(element):
            element.remove(child)
    elif kind == 5:
        element.text = state.text()
    elif kind == 6:
        element.tail = state.text()
    else:
        items = list(parent)
        draw.shuffle(items)
        parent[:] = items


def _graft(state: Damage) -> None:
    """An element of the other file, in the place of one of this or beside it."""
    draw, element = state.draw, state.one()
    others = [each for each in state.other.iter(element.tag) if each is not state.other]
    parent = element.getparent()
    if parent is None or not others:
        return
    added = copy.deepcopy(draw.choice(others))
    place = parent.index(element)
    if draw.random() < 0.6:
        parent[place] = added
    else:
        parent.insert(place, added)


# -- port maps and bodies


def _port_map(state: Damage) -> None:
    """Change a line of a port map: its slices, purpose or ends; remove or repeat it."""
    draw = state.draw
    found = [each for parent in state.root.iter(*_MAPS) for each in parent if isinstance(each.tag, str)]
    if not found:
        _data(state)
        return
    line, kind = draw.choice(found), draw.randrange(8)
    parent = line.getparent()
    if kind == 0:
        parent.remove(line)
    elif kind == 1:
        parent.append(copy.deepcopy(line))
    elif kind == 2:
        line.set("purpose", draw.choice(("current_iteration", "execution_condition", "", "x")))
    elif kind == 3:
        if not line.attrib:  # an earlier damage took the last one
            return
        key = draw.choice(sorted(line.attrib))
        line.set(key, draw.choice([each.get(key, "0") for each in found]))
    else:
        line.set("axis", draw.choice(("0", "1", "-1", draw.choice(NUMBERS))))
        for key in ("start", "end", "stride", "part_size"):
            if draw.random() < 0.4:
                line.set(key, draw.choice(("0", "1", "-1", "2", draw.choice(NUMBERS))))


def _body(state: Damage) -> None:
    """Exchange bodies, put one into itself, or take layers or edges from one."""
    draw = state.draw
    bodies = list(state.root.iter("body", "then_body", "else_body"))
    if not bodies:
        _element(state)
        return
    body, kind = draw.choice(bodies), draw.randrange(6)
    if kind == 0:
        other = draw.choice(bodies)
        a, b = copy.deepcopy(list(body)), copy.deepcopy(list(other))
        body[:], other[:] = b, a
    elif kind == 1:
        body[:] = copy.deepcopy(list(state.root))
    elif kind == 2:
        _into_itself(body, draw)
    elif kind == 3:
        for layer in _layers(body, draw.choice(("Parameter", "Result", "Const"))):
            layer.getparent().remove(layer)
    elif kind == 4:
        body.getparent().append(copy.deepcopy(body))
    else:
        body.tag = draw.choice(("body", "then_body", "else_body"))


def _layers(body: Any, type_: str) -> Iterator[Any]:
    yield from [each for each in body.findall("layers/layer") if each.get("type") == type_]


def _into_itself(body: Any, draw: Random) -> None:
    """The node of a body becomes a layer of this body, some levels deep."""
    node = body.getparent()
    for _ in range(draw.choice((1, 2, 5))):
        layers = body.find("layers")
        if layers is None or len(list(node.iter())) > 3000:
            return
        inner = copy.deepcopy(node)
        inner.set("id", "inner")
        layers.append(inner)


_MAPS = ("port_map", "then_port_map", "else_port_map", "back_edges")

_DAMAGES, _SHARES = zip((_id, 10), (_edge, 8), (_port, 8), (_dim, 8), (_sizes, 4), (_attribute, 12), (_data, 14),
                        (_kind, 6), (_net, 1), (_weights, 8), (_element, 10), (_graft, 5), (_port_map, 10), (_body, 6),
                        strict=True)
