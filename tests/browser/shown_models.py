"""The models that the tests show: small ones with all kinds of control flow, a large one, one with hostile names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.texts import texts

TEXTS = texts(__file__)

NESTED = TEXTS["nested"]


BLOCKS_OF_STEPS = TEXTS["blocks of steps"]


def nested(path: Path, replaced: Mapping[str, str] | None = None) -> Path:
    """A Scan, and a Loop that holds an If that holds a Loop; bodies read values of the graphs around them."""
    text = NESTED
    for old, new in (replaced or {}).items():
        assert old in text
        text = text.replace(old, new)
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def layered(path: Path, layers: int, seed: int = 0) -> Path:
    """Blocks of 20 nodes whose names have scopes, /layers/3/attn/MatMul_60; a few passes change them."""
    one = numpy_helper.from_array(np.float32(1), "one")
    weight = numpy_helper.from_array(np.random.default_rng(seed).normal(size=(8, 8)).astype(np.float32), "w")
    nodes, x = [], "x"

    def add(op: str, scope: str, *inputs: str) -> str:
        name = f"/{scope}/{op}_{len(nodes)}"
        nodes.append(helper.make_node(op, inputs, [name], name=name))
        return name

    for layer in range(layers):
        for part in ("attn", "mlp"):
            scope, start = f"layers/{layer}/{part}", x
            for function in ("Tanh", "Softsign"):
                x = add(function, scope, add("Add", scope, add("MatMul", scope, x, "w"), start))
            x = add("Add", scope, add("Mul", scope, add("Neg", scope, add("Neg", scope, x)), "one"), start)
    graph = helper.make_graph(
        nodes, "layered", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["n", 8])], [weight, one],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def modules(path: Path, layers: int) -> Path:
    """A decoder as torch.onnx writes it: names without paths, and metadata with the modules around each node."""
    weight = numpy_helper.from_array(np.eye(8, dtype=np.float32), "w")
    nodes, x = [], "x"

    def add(op: str, module: str, *inputs: str) -> str:
        name = f"node_{op}_{len(nodes)}"
        node = helper.make_node(op, inputs, [name], name=name)
        parts = module.split("/")
        scopes = ["", *(".".join(parts[: depth + 1]) for depth in range(len(parts))), name]
        node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=str(scopes))
        nodes.append(node)
        return name

    for layer in range(layers):
        module, start = f"model/layers.{layer}", x
        for _ in range(3):
            x = add("Tanh", f"{module}/norm", x)
        scores = add("Softmax", f"{module}/self_attn", add("MatMul", f"{module}/self_attn", x, "w"))
        x = add("MatMul", f"{module}/self_attn", scores, "w")
        for op in ("Sigmoid", "Neg", "Abs"):
            x = add(op, f"{module}/mlp", x)
        x = add("Add", module, x, start)
    for op in ("Tanh", "Neg", "Abs", "Softmax"):
        x = add(op, "model/norm", x)
    graph = helper.make_graph(
        nodes, "modules", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["n", 8])], [weight],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


HOSTILE = {
    "markup": "<b onclick=alert(1)>&amp;</b>",
    "script": "</script><script>alert(1)</script>",
    "comment": "<!--<script>",
    "image": "\"'><img src=x onerror=alert(1)>",
    "svg": "<svg onload=alert(1)><a href='javascript:alert(1)'>x</a></svg>",
    "address": "javascript:alert(1)",
    "template": "${alert(1)}{{alert(1)}}",
    "graphviz": '"];b[label=<<b>x</b>>,URL="javascript:alert(1)"]//',
    "escape": "\\N\\G\\l\\",
    "right-to-left": "a\u202eb\u2066c",
    "terminal": "\x1b[31mred\x07",
    "separators": "a\u2028b\u2029c\r\nd",
    "key": "__proto__",
    "long": "x" * 10_000,
}
"""Names that would have an effect if a page took them for more than text."""


def hostile(path: Path) -> Path:
    """Names of nodes, tensors, bodies, inputs, dimensions, operators, attributes and metadata that are HOSTILE."""
    names = list(HOSTILE.values())
    value = helper.make_tensor_value_info
    nodes, x = [], "x"
    for number, name in enumerate(names):
        tensor = f"{name} {number}"
        nodes.append(helper.make_node("Tanh", [x], [tensor], name=name, doc_string=name))
        x = tensor
    i, state, total = value("i", TensorProto.INT64, []), *(value(each, TensorProto.FLOAT, [2]) for each in ("s", "sum"))
    on, again = (value(each, TensorProto.BOOL, []) for each in ("on", "again"))
    body = helper.make_graph(
        [helper.make_node("Identity", ["on"], ["again"]), helper.make_node("Add", ["s", x], ["sum"], name=names[1])],
        names[0], [i, on, state], [again, total], doc_string=names[2],
    )
    nodes.append(helper.make_node("Loop", ["trips", "", x], ["</text><b>y</b>"], body=body, name=names[3]))
    graph = helper.make_graph(
        nodes, names[1], [value("x", TensorProto.FLOAT, [2]), value("trips", TensorProto.INT64, [])],
        [value("</text><b>y</b>", TensorProto.FLOAT, [2])], doc_string=names[2],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    helper.set_model_props(model, {name: name for name in names})
    onnx.save(model, path)
    return path


def unknown_operators(path: Path) -> Path:
    """Operators, domains and attributes with hostile names: a model to look at, not to convert."""
    nodes, x = [], "x"
    for number, name in enumerate(HOSTILE.values()):
        nodes.append(helper.make_node(name, [x], [f"t{number}"], domain=name, **{name: name, "list": [name, name]}))
        x = f"t{number}"
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["<i>", 2])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, None)],
    )
    domains = [helper.make_opsetid(name, 1) for name in HOSTILE.values()]
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), *domains], ir_version=10)
    onnx.save(model, path)
    return path
