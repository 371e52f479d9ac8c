"""Small IR files written by hand, and functions that read and write them.

read(tmp_path, net(layer("Parameter", 0, 'shape="2" element_type="f32"', outputs={0: "FP32 2"}), ...))
"""

from collections.abc import Mapping
from pathlib import Path

from mo_loop.api import Model, read_model, save_model
from mo_loop.graph import Graph
from mo_loop.graph.verifier import invariants
from mo_loop.ops.front import Opaque


def layer(type_: str, id_: object, data: str = "", *, inputs: Mapping[int, str] | None = None,
          outputs: Mapping[int, str] | None = None, version: str = "opset1", inner: str = "",
          name: str | None = None) -> str:
    """One layer; ports are label -> "PRECISION dim dim", `inner` goes between data and ports."""
    text = f'<layer id="{id_}" name="{f"{type_}_{id_}" if name is None else name}" type="{type_}" version="{version}">'
    text += f"<data {data} />" if data else ""
    return text + inner + ports("input", inputs or {}) + ports("output", outputs or {}) + "</layer>"


def ports(tag: str, labels: Mapping[int, str]) -> str:
    """<input> or <output>."""
    if not labels:
        return ""
    made = ""
    for label, text in labels.items():
        precision, *dims = text.split()
        made += f'<port id="{label}" precision="{precision}">{"".join(f"<dim>{dim}</dim>" for dim in dims)}</port>'
    return f"<{tag}>{made}</{tag}>"


def graph(layers: str, *edges: str) -> str:
    """<layers> and <edges>; an edge is "from:port to:port"."""
    made = ""
    for edge in edges:
        (a, p), (b, q) = (end.split(":") for end in edge.split())
        made += f'<edge from-layer="{a}" from-port="{p}" to-layer="{b}" to-port="{q}" />'
    return f"<layers>{layers}</layers><edges>{made}</edges>"


def net(layers: str, *edges: str, version: object = 11, rt_info: str = "") -> str:
    """A whole document."""
    return f'<?xml version="1.0"?><net name="net" version="{version}">{graph(layers, *edges)}{rt_info}</net>'


def parameter(id_: object, shape: str = "2", label: int = 0) -> str:
    """A Parameter of f32."""
    dims = " ".join(dim if dim.isdecimal() else "-1" for dim in shape.split(",") if dim)
    return layer("Parameter", id_, f'shape="{shape}" element_type="f32"', outputs={label: f"FP32 {dims}"})


def result(id_: object, port: str = "FP32 2", label: int = 0) -> str:
    """A Result."""
    return layer("Result", id_, inputs={label: port})


def read(folder: Path, text: str, data: bytes = b"") -> Graph:
    """Write both files, read them, check the invariants of the graph."""
    path = folder / "in.xml"
    path.write_text(text, encoding="utf-8")
    path.with_suffix(".bin").write_bytes(data)
    found = read_model(path).graph
    assert invariants(found) == []
    return found


def written(folder: Path, graph: Graph) -> str:
    """The .xml of a graph."""
    save_model(Model(graph), folder / "out.xml")
    return (folder / "out.xml").read_text(encoding="utf-8")


def both(path: Path) -> tuple[bytes, bytes]:
    """The bytes of an .xml and its .bin."""
    return path.read_bytes(), path.with_suffix(".bin").read_bytes()


def opaque(graph: Graph) -> list[str]:
    """Types of all opaque operations, bodies included."""
    return [node.kind for scope in graph.scopes() for node in scope.of(Opaque)]


def assert_identical(model: Model, folder: Path, *, compress_to_fp16: bool = False) -> Graph:
    """Saved, read and saved again, the model gives the same bytes. Returns the graph that was read."""
    first, second = folder / "first.xml", folder / "second.xml"
    save_model(model, first, compress_to_fp16=compress_to_fp16)
    found = read_model(first)
    assert invariants(found.graph) == []
    save_model(found, second)
    assert both(first) == both(second)
    assert (found.inputs, found.outputs) == (model.inputs, model.outputs)
    return found.graph
