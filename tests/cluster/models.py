"""Models with external data for the tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper


def with_external(folder: Path, tensors: dict[str, tuple[str, int, int]], name: str = "model.onnx") -> Path:
    """A model that adds tensors to its input; each is a location, an offset and a number of f32 elements.

    The files of the locations are not made.
    """
    nodes: list[Any] = []
    initializers = []
    value = "x"
    for number, (tensor, (location, offset, count)) in enumerate(tensors.items()):
        proto = TensorProto(name=tensor, data_type=TensorProto.FLOAT, dims=[count])
        proto.data_location = TensorProto.EXTERNAL
        for key, text in (("location", location), ("offset", str(offset)), ("length", str(4 * count))):
            proto.external_data.add(key=key, value=text)
        initializers.append(proto)
        nodes += [
            helper.make_node("ReduceSum", [tensor], [f"s{number}"], keepdims=0),
            helper.make_node("Add", [value, f"s{number}"], [f"a{number}"]),
        ]
        value = f"a{number}"
    ports = [helper.make_tensor_value_info(each, TensorProto.FLOAT, [3]) for each in ("x", value)]
    graph = helper.make_graph(nodes, "external", ports[:1], ports[1:], initializers)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    return path


def numbers(count: int, seed: int = 0) -> bytes:
    """f32 elements that differ."""
    return np.random.default_rng(seed).random(count, np.float32).tobytes()


def loads(xml: bytes, data: bytes, folder: Path) -> onnx.ModelProto:
    """Read a pair; fails if the .bin is not that of the .xml."""
    from mo_loop import read_model

    (folder / "read.xml").write_bytes(xml)
    (folder / "read.bin").write_bytes(data)
    return read_model(folder / "read.xml")
