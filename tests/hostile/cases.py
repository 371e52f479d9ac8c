"""Hostile files: how each is made, and the required answer of the converter.

    @case("external data", cves="CVE-2022-25882")
    def absolute_location(folder: Path) -> Path:
        return stored(folder, external(location="/etc/passwd"))

A function makes the file, and what it refers to, in an empty folder, and returns its path. answers.py has the code of
the error with which `mo-loop convert` must end.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.hostile.answers import code_of

Make = Callable[[Path], Path]


@dataclass(frozen=True)
class Case:
    """One hostile file.

    Args:
        kind: the class of the attack.
        name: its name in the list of tests.
        make: writes it into a folder.
        code: the code of the error; empty if the file is converted.
        cves: the published vulnerabilities of this class in onnx, protobuf, lxml or the runtime's reader.
    """

    kind: str
    name: str
    make: Make
    code: str
    cves: tuple[str, ...] = ()


CASES: list[Case] = []


def case(kind: str, *, cves: str = "") -> Callable[[Make], Make]:
    """Add a function to CASES."""

    def add(make: Make) -> Make:
        add_case(kind, make.__name__, make, cves)
        return make

    return add


def add_case(kind: str, name: str, make: Make, cves: str = "") -> None:
    CASES.append(Case(kind, name, make, code_of(kind, name), tuple(cves.split())))


def add_models(kind: str, models: dict[str, Callable[[], Any]]) -> None:
    """Add a case for each model: a function that makes a ModelProto, or the bytes of a file."""
    for name, make in models.items():
        add_case(kind, name, lambda folder, make=make: stored(folder, make()))


# -- parts of models


def stored(folder: Path, content: Any, name: str = "model.onnx") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    return path


def model(
    nodes: Iterable[Any], *, constants: Iterable[Any] = (), shape: Any = (2, 3), outputs: Iterable[str] = ("y",),
    opset: int = 18, functions: Iterable[Any] = (), dtype: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """A model with one input x; its outputs have no declared shape."""
    graph = helper.make_graph(
        list(nodes), "g", [helper.make_tensor_value_info("x", dtype, shape)],
        [onnx.ValueInfoProto(name=name) for name in outputs], list(constants),
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=9)


def node(op: str, inputs: str = "x", outputs: str = "y", **attributes: Any) -> onnx.NodeProto:
    made: onnx.NodeProto = helper.make_node(op, inputs.split(), outputs.split(), name=f"n_{outputs.split()[0]}")
    for name, value in attributes.items():
        made.attribute.append(value if isinstance(value, onnx.AttributeProto) else helper.make_attribute(name, value))
    return made


def ints(name: str, *values: int) -> onnx.TensorProto:
    found: onnx.TensorProto = numpy_helper.from_array(np.array(values, np.int64), name)
    return found


def scalar(name: str, value: int) -> onnx.TensorProto:
    found: onnx.TensorProto = numpy_helper.from_array(np.array(value, np.int64), name)
    return found


def floats(name: str, *shape: int) -> onnx.TensorProto:
    found: onnx.TensorProto = numpy_helper.from_array(np.ones(shape, np.float32), name)
    return found


def tensor(name: str = "w", dims: Iterable[int] = (2, 3), data: bytes = bytes(24), **fields: Any) -> onnx.TensorProto:
    """A tensor with the fields as they are given, whether they fit or not."""
    made = onnx.TensorProto(name=name, data_type=fields.pop("data_type", TensorProto.FLOAT), raw_data=data, **fields)
    made.dims.extend(dims)
    return made


def external(location: str | None = "data.bin", **entries: Any) -> onnx.ModelProto:
    """A model that adds external weights f32[2,3] to its input."""
    weights = onnx.TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    if location is not None:
        weights.external_data.add(key="location", value=location)
    for key, value in entries.items():
        weights.external_data.add(key=key, value=str(value))
    return model([node("Add", "x w")], constants=[weights])
