"""Facts of operations: axes, signs, attributes, versions."""

from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.errors import TypeError_
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import is_static
from mo_loop.ops.base import Constant, Op, Parameter
from mo_loop.ops.exact import is_not_negative
from mo_loop.text import parse
from tests.harness import raised
from tests.unit.graph.graphs import parameter
from tests.unit.ops.examples import EXAMPLES, Example, operations

# -- `axis_map` and `along` of operations, and the facts that their bases state


EACH = pytest.mark.parametrize("example", EXAMPLES, ids=[f"{n}-{each.name}" for n, each in enumerate(EXAMPLES)])


def node_of(example: Example) -> Op:
    graph = Graph()
    inputs = [
        None if type_ is None
        else Parameter(graph=graph, type=type_) if type_.known is None
        else Constant(np.array(type_.known.tolist()), graph=graph, dtype=type_.dtype)
        for type_ in example.types
    ]
    made: Op = getattr(ops, example.name)(*inputs, graph=graph, **example.attributes)
    return made


@EACH
def test_every_axis_of_the_results_is_one_of_the_input_or_none(example: Example) -> None:
    node = node_of(example)
    for port, value in enumerate(node.inputs):
        axes = node.axis_map(port)
        own = [axis for axis in axes if axis is not None]
        assert len(axes) == (node.outputs[0].rank or 0)
        assert len(set(own)) == len(own) and all(0 <= axis < (value.rank if value else 0) for axis in own)
    assert node.along is None or all(0 <= axis < (node.operands[0].rank or 0) for axis in node.along)


@EACH
def test_a_movement_gives_elements_of_its_first_input(example: Example) -> None:
    node = node_of(example)
    if not isinstance(node, ops.Movement):
        return
    x, *others = (_array(each) for each in node.operands)
    if x is None:
        return
    x = np.arange(x.size).reshape(x.shape) + 7
    found: Any = node.evaluate(x, *others)
    for array in () if found is NotImplemented else found if isinstance(found, tuple) else (found,):
        assert set(array.flat) <= set(x.flat)
        assert not isinstance(node, ops.SameElements) or list(array.flat) == list(x.flat)


def _array(value: Value) -> Any:
    """The numbers of a constant; zeros of the shape otherwise, None if a size is unknown."""
    if isinstance(value.node, Constant):
        return value.node.array
    return np.zeros(value.type.dims, np.int64) if is_static(value.shape) else None


@pytest.mark.parametrize(
    ("name", "attributes", "inputs", "port", "axes"),
    [
        ("Add", {}, ["f32[2,1,3]", "f32[4,1]"], 1, (None, 0, 1)),
        ("PReLU", {}, ["f32[2,3,4]", "f32[3]"], 0, (0, 1, 2)),
        ("PReLU", {}, ["f32[2,3,4]", "f32[3]"], 1, (None, None, None)),
        ("Transpose", {}, ["f32[2,3,4]", [2, 0, 1]], 0, (2, 0, 1)),
        ("Squeeze", {}, ["f32[1,3,1]", [0, -1]], 0, (1,)),
        ("Unsqueeze", {}, ["f32[2,3]", [0, -1]], 0, (None, 0, 1, None)),
        ("Reshape", {}, ["f32[2,3,4,5]", [2, 12, 5]], 0, (0, None, 3)),
        ("Reshape", {}, ["f32[6]", [2, 3]], 0, (None, None)),
        ("ReduceSum", {}, ["f32[2,3,4]", [1]], 0, (0, 2)),
        ("ReduceSum", {"keep_dims": True}, ["f32[2,3,4]", [1]], 0, (0, None, 2)),
        ("Gather", {}, ["f32[2,3,4]", 0, 1], 0, (0, 2)),
        ("Gather", {}, ["f32[2,3,4]", [0, 2], 1], 0, (0, 1, 2)),
        ("Gather", {}, ["f32[2,3,4]", [[0], [2]], 1], 0, (0, None, None, 2)),
        ("Broadcast", {}, ["f32[3,1]", [2, 3, 4]], 0, (None, 0, 1)),
        ("Concat", {"axis": 1}, ["f32[2,3]", "f32[2,4]"], 1, (0, 1)),
        ("MatMul", {}, ["f32[2,1,3,4]", "f32[5,4,6]"], 0, (0, 1, 2, None)),
        ("MatMul", {}, ["f32[2,1,3,4]", "f32[5,4,6]"], 1, (None, 0, None, 2)),
        ("MatMul", {"transpose_a": True, "transpose_b": True}, ["f32[4,3]", "f32[6,4]"], 0, (1, None)),
        ("MatMul", {"transpose_a": True, "transpose_b": True}, ["f32[4,3]", "f32[6,4]"], 1, (None, 0)),
        ("MatMul", {}, ["f32[2,3,4]", "f32[4]"], 0, (0, 1)),
        ("MatMul", {}, ["f32[4]", "f32[2,4,3]"], 1, (0, 2)),
        ("Einsum", {"equation": "bij,bjk->kbi"}, ["f32[2,3,4]", "f32[2,4,5]"], 0, (None, 0, 1)),
        (
            "Convolution", {"strides": (1,), "pads_begin": (0,), "pads_end": (0,), "dilations": (1,)},
            ["f32[2,3,9]", "f32[5,3,3]"], 0, (0, None, 2),
        ),
        ("ReduceSum", {}, ["f32[2,3,4]", "i64[1]"], 0, ()),
        ("NonZero", {}, ["f32[2,3]"], 0, (None, None)),
    ],
)
def test_axes_of_results(name: str, attributes: dict[str, Any], inputs: list[Any], port: int, axes: Any) -> None:
    assert node_of(Example(name, attributes, *inputs)).axis_map(port) == axes


def test_axes_along_which_an_operation_works_are_counted_from_the_front() -> None:
    assert node_of(Example("Softmax", {"axis": -1}, "f32[2,3]")).along == (1,)
    assert node_of(Example("MVN", {}, "f32[2,3,4]", [1, -1])).along == (1, 2)
    assert node_of(Example("MVN", {}, "f32[2,3,4]", "i64[2]")).along is None
    assert node_of(Example("Add", {}, "f32[2]", "f32[2]")).along == ()


# -- Which integers are at least 0: what `is_not_negative` proves, and what it must not


INPUTS = '%x = Parameter : f32[M,N] "x"\n%i = Parameter : i64[K] "i"\n'

PROVEN = [
    "%z = NonZero(%x)\n%t = Transpose(%z, [1, 0])\n%y = Unsqueeze(%t, [2])",
    "%v, %p = TopK(%x, 3) {axis: 0, mode: max, sort: value}\n%y = Convert(%p) {destination_type: i64}",
    "%v, %p = TopK(%x, 3) {axis: 0, mode: max, sort: value}\n%y = Gather(%p, %i, 0)",
    "%s = ShapeOf(%x)\n%a = Abs(%i)\n%m = Multiply(%a, [3])\n%y = Concat(%s, %m, [0]) {axis: 0}",
    "%a = Abs(%i)\n%b = Add(%a, [1])\n%c = Divide(%b, [4])\n%y = Minimum(%c, %a)",
    "%a = Abs(%i)\n%s = ReduceSum(%a, [-1]) {keep_dims: true}\n%c = CumSum(%s, -1)\n%y = Mod(%c, [-3])",
    "%y = Maximum(%i, [0])",
    "%y = FloorMod(%i, [5])",
    "%a = Abs(%i)\n%l = Less(%i, [0])\n%y = Select(%l, %a, [7])",
    "%y = Range(0, 9, 2) {output_type: i64}",
    "%z = Abs(%i)\n%y = Split(%z, 0) {num_splits: 1}",
]
DOUBTFUL = [
    "%y = Add(%i, [1])",
    "%v, %p = TopK(%x, 3) {axis: 0, mode: max, sort: value}\n%y = Subtract(%p, [1])",
    "%v, %p = TopK(%x, 3) {axis: 0, mode: max, sort: value}\n%y = Negative(%p)",
    "%y, %p = TopK(%i, 3) {axis: 0, mode: max, sort: value}",
    "%y = Convert(%x) {destination_type: i64}",
    "%a = Abs(%i)\n%y = Convert(%a) {destination_type: i8}",
    "%a = Abs(%i)\n%y = Concat(%a, [-1]) {axis: 0}",
    "%a = Abs(%i)\n%y = Minimum(%a, %i)",
    "%y = Maximum(%i, [-1])",
    "%a = Abs(%i)\n%y = FloorMod(%a, [-5])",
    "%a = Abs(%i)\n%l = Less(%a, [0])\n%y = Select(%l, %i, %a)",
    "%y = Range(5, -3, -1) {output_type: i64}",
    "%y = Multiply(%i, %i)",
]


def proven(text: str) -> bool:
    graph = parse(f"{INPUTS}{text}\nResult(%y)")
    return is_not_negative(graph.results[0].inputs[0])


@pytest.mark.parametrize("text", PROVEN)
def test_proven(text: str) -> None:
    assert proven(text)


@pytest.mark.parametrize("text", DOUBTFUL)
def test_not_proven(text: str) -> None:
    assert not proven(text)


@pytest.mark.parametrize(("length", "is_proven"), [(40, True), (80, False)])
def test_a_long_chain_is_not_followed_to_its_end(length: int, is_proven: bool) -> None:
    chain = "".join(f"%a{k + 1} = Add(%a{k}, [1])\n" for k in range(length))
    assert proven(f"%a0 = Abs(%i)\n{chain}%y = Add(%a{length}, [1])") == is_proven


# -- Attributes: those that a specification makes optional have its defaults, and values of another kind are refused


RESIZING = {
    "antialias": False, "coordinate_transformation_mode": "half_pixel", "cube_coeff": -0.75,
    "nearest_mode": "round_prefer_floor", "pads_begin": (0,), "pads_end": (0,),
}


@pytest.mark.parametrize(("name", "expected"), [
    ("Interpolate", RESIZING), ("Interpolate11", RESIZING), ("Gather", {"batch_dims": 0}),
    ("ReverseSequence", {"batch_axis": 0, "seq_axis": 1}),
    ("ScatterElementsUpdate12", {"reduction": "none", "use_init_val": True}),
])
def test_defaults(name: str, expected: dict[str, Any]) -> None:
    declared = getattr(ops, name).attributes
    assert {key: value for key, value in declared.items() if value is not Op.REQUIRED} == expected


@pytest.mark.parametrize("name", ["", "layer"])
def test_an_attribute_with_another_value_is_refused(name: str) -> None:
    x = parameter(Graph(), 2, 3)
    caught = raised(TypeError_, ops.Softmax, x, axis="last", name=name, match="SoftMax: 'last' is not a valid axis")
    assert caught.code == "ML236" and caught.where == name


# -- Attributes and inputs that no model should have: operations refuse them with a code, with every reader of models


STRIDES = {"pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}


@pytest.mark.parametrize("example", [
    Example("Einsum", {"equation": "ij,jk->i,"}, "f32[2,3]", "f32[3,4]"),
    Example("Einsum", {"equation": "ij,jk->x"}, "f32[2,3]", "f32[3,4]"),
    Example("Einsum", {"equation": ""}), Example("Concat", {"axis": 0}),
    Example("Convolution", {**STRIDES, "strides": (0, 1)}, "f32[1,1,4,4]", "f32[1,1,2,2]"),
    Example("Convolution", {**STRIDES, "strides": (1, 1), "dilations": (1, -1)}, "f32[1,1,4,4]", "f32[1,1,2,2]"),
    Example("GroupNormalization", {"num_groups": 0, "epsilon": 0.0}, "f32[1,2,3]", "f32[2]", "f32[2]"),
    Example("Split", {"num_splits": 0}, "f32[4]", 0), Example("Split", {"num_splits": 2**40}, "f32[?]", 0),
    Example("Gather", {"batch_dims": 2}, "f32[4]", "i64[2]", 0),
    Example("Gather", {"batch_dims": -(2**40)}, "f32[4]", "i64[2]", "i64[]"),
    Example("Unsqueeze", {}, "f32[4]", f"i64[{2**40}]"), Example("Reshape", {}, "f32[?]", f"i64[{2**40}]"),
], ids=str)
def test_refused(example: Example) -> None:
    assert raised(TypeError_, example.infer, list(example.types)).code in ("ML234", "ML235", "ML236", "ML242")


# -- Operations are written with the version of their specification, which their documentation names


WITHOUT_SPECIFICATION = {
    "AtLeast", "Barrier", "Dequantize", "DynamicQuantize", "Failed", "Identity", "IntegerMatMul", "Opaque",
    "OpaqueSink", "Quantize", "RoundedOrExact", "Scan",
}
"""Operations that are not written, or with the name and version of another one."""

OTHER_NAMES = {"Const": "Constant"}
"""Types whose specification has another name."""


@pytest.mark.parametrize("name", sorted(
    name for name in {*operations()} - WITHOUT_SPECIFICATION if not getattr(ops, name).library
))
def test_the_opset_is_that_of_the_specification(name: str) -> None:
    cls = getattr(ops, name)
    documentation = (cls.__doc__ or "").rpartition("Spec: ")[2]
    assert documentation.startswith(f"{OTHER_NAMES.get(cls.type, cls.type)}-{cls.opset}.")
