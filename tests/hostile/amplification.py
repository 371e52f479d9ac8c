"""Small files that ask for much: each part takes work, memory or bytes of the output that grow faster than the file."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.hostile.cases import add_models, ints, model, node

KIND = "amplification"


def _chain(op: str, count: int, *more: str, **attributes: Any) -> list[onnx.NodeProto]:
    """Each node reads the one before, and `more`."""
    names = ["x", *(f"t{i}" for i in range(1, count)), "y"]
    return [node(op, " ".join([names[i], *more]), names[i + 1], **attributes) for i in range(count)]


def _sizes(op: str, count: int, *, same: bool, by: int = 3) -> onnx.ModelProto:
    """The size of the input, multiplied by itself, added to itself or divided again and again."""
    nodes = [node("Shape", "x", "s0")]
    for i in range(count):
        nodes.append(node(op, f"s{i} s{i}" if same else f"s{i} by", f"s{i + 1}"))
    nodes.append(node("Cast", f"s{count}", "y", to=TensorProto.FLOAT))
    return model(nodes, constants=[] if same else [ints("by", by)], shape=("N",))


def _unknown_attributes(count: int) -> onnx.ModelProto:
    made = model([node("Relu")])
    made.graph.node[0].attribute.extend(helper.make_attribute(f"a{i}", 1) for i in range(count))
    return made


def _equal_constants(count: int) -> onnx.ModelProto:
    names = [f"w{i}" for i in range(count)]
    weights = [numpy_helper.from_array(np.float32([3]), name) for name in names]
    return model([node("Sum", " ".join(["x", *names]))], constants=weights)


def _functions(count: int) -> onnx.ModelProto:
    imports = [helper.make_opsetid("", 18)]
    made = [
        helper.make_function("local", f"f{i}", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], imports)
        for i in range(count)
    ]
    calls = [helper.make_node(f"f{i}", [f"t{i}" if i else "x"], [f"t{i + 1}"], domain="local") for i in range(count)]
    return model(calls, functions=made, outputs=[f"t{count}"])


def _sum_of_symbols(count: int) -> onnx.ModelProto:
    names = [f"x{i}" for i in range(count)]
    made = model([node("Concat", " ".join(names), axis=0)], shape=("N",))
    made.graph.input.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"n_{name}"]) for name in names)
    return made


def _outputs(count: int) -> onnx.ModelProto:
    names = [f"y{i}" for i in range(count)]
    return model([node("Identity", "x", name) for name in names], outputs=names)


add_models(KIND, {
    "size_multiplied_by_itself_60_times": lambda: _sizes("Mul", 60, same=True),
    "size_added_to_itself_500_times": lambda: _sizes("Add", 500, same=True),
    "size_divided_300_times": lambda: _sizes("Div", 300, same=False),
    "size_multiplied_500_times": lambda: _sizes("Mul", 500, same=False, by=2**40),
    "sum_of_500_symbols": lambda: _sum_of_symbols(500),
    "activations_2000_times": lambda: model(_chain("Relu", 2000)),
    "identities_5000_times": lambda: model(_chain("Identity", 5000)),
    "equal_constants_150": lambda: _equal_constants(150),
    "unknown_attributes_50000": lambda: _unknown_attributes(50_000),
    "functions_1000": lambda: _functions(1000),
    "outputs_of_one_tensor_1000": lambda: _outputs(1000),
})  # fmt: skip
