"""Our inference is as strict as the runtime's: OpenVINO reads all shapes and element types that it accepts, and infers
none that contradict ours."""

from random import Random
from typing import Any

import numpy as np
import openvino
import pytest

from mo_loop import ops
from mo_loop.errors import MoLoopError
from mo_loop.graph import Graph
from mo_loop.graph.dimension import Dimension, fresh, high, low
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.graph.types import TensorType, bf16, boolean, f16, f32, f64, i8, i16, i32, i64, u8, u64
from mo_loop.ir.xml import in_memory
from mo_loop.ops.base import Constant, Parameter, Result, type_of_tensor
from tests.running.rows import turn
from tests.unit.ops.examples import EXAMPLES, SOURCES, Example

CORE = openvino.Core()
DRAWS = 12
ELEMENTS = (boolean, i8, u8, i16, i32, i64, u64, f16, bf16, f32, f64)
READ_WITH_OTHERS = {"Assign"}
"""Operations that the runtime reads beside another one only."""
ACCEPTED = {"Col2Im": "to_shape was called on a dynamic shape"}
"""Errors of the runtime for sizes that are not known, which a translator of ONNX makes as constants."""

OWN = [each for each in EXAMPLES if not getattr(ops, each.name).library]  # of OpenVINO, not of a library
WRITTEN = [each for each in OWN if getattr(ops, each.name).opset and each.name not in SOURCES | READ_WITH_OTHERS]


@pytest.mark.parametrize("number", range(len(WRITTEN)))
def test_what_is_inferred_is_read(number: int) -> None:
    example = WRITTEN[number]
    check_read(example, example.types)
    for draw in turn(range(DRAWS), 4):
        check_read(example, other_types(example, Random(f"{example.name} {number} {draw}")))


@pytest.mark.parametrize("number", range(len(WRITTEN)))
def test_what_is_inferred_of_other_element_types_is_read(number: int) -> None:
    example = WRITTEN[number]
    for draw in turn(range(DRAWS), 4):
        check_read(example, other_elements(example, Random(f"{example.name} {number} {draw}")))


def check_read(example: Example, types: list[TensorType | None]) -> None:
    graph = applied(example, types)
    if graph is None:
        return
    try:
        read = CORE.read_model(*in_memory(graph))
    except RuntimeError as error:
        said = str(error).strip().splitlines()[-1]
        allowed = ACCEPTED.get(example.name)
        assert allowed is not None and allowed in said, f"{example.name}{list(map(shown, types))}: {said}"
        return
    for ours, theirs in zip(graph.results, read.results, strict=True):
        found, wanted = ours.value.type, theirs.output(0)
        fits = str(found.dtype) == wanted.element_type.to_string() and agrees(found, wanted.partial_shape)
        assert fits, f"{example.name}{list(map(shown, types))}: {found}, not {wanted} as the runtime infers"


def agrees(ours: TensorType, theirs: openvino.PartialShape) -> bool:
    """Whether a tensor can have both shapes."""
    if ours.shape is None or theirs.rank.is_dynamic:
        return True
    return len(ours.shape) == len(theirs) and all(map(have_common_size, ours.shape, theirs))


def have_common_size(ours: Dimension, theirs: openvino.Dimension) -> bool:
    """Whether the bounds overlap; those of the runtime are below 0 if they are not known."""
    top, most = high(ours), theirs.max_length
    return (top is None or theirs.min_length <= top) and (most < 0 or low(ours) <= most)


def other_elements(example: Example, random: Random) -> list[TensorType | None]:
    """The types of an example, with another element type at one input or at all that have the same."""
    types = list(example.types)
    given = [port for port, type_ in enumerate(types) if type_ is not None and type_.known is None]
    if not given:
        return types
    changed, dtype = types[random.choice(given)], random.choice(ELEMENTS)
    assert changed is not None
    alone = random.random() < 0.4
    for port in given:
        type_ = types[port]
        if type_ is changed if alone else type_ is not None and type_.dtype is changed.dtype:
            types[port] = TensorType(dtype, type_.shape)
    return types


def other_types(example: Example, random: Random) -> list[TensorType | None]:
    """The types of an example, one or two of them with another rank, size or value."""
    types = list(example.types)
    given = [port for port, type_ in enumerate(types) if type_ is not None]
    for port in random.sample(given, min(random.choice((1, 1, 2)), len(given))):
        type_ = types[port]
        assert type_ is not None
        types[port] = other_shape(type_, random) if type_.known is None else other_values(type_, random)
    return types


def other_shape(type_: TensorType, random: Random) -> TensorType:
    dims: list[Any] = list(type_.dims)
    kind, place = random.choice(("shorter", "longer", "size", "size", "open", "scalar")), random.randrange(9)
    if kind == "longer":
        dims.insert(place % (len(dims) + 1), random.choice((1, 2, 3, fresh())))
    elif kind == "scalar":
        dims = []
    elif kind == "open":
        dims = [fresh() if random.random() < 0.5 else dim for dim in dims]
    elif kind == "shorter":
        del dims[place % max(len(dims), 1) : place % max(len(dims), 1) + 1]
    elif dims:
        size = dims[place % len(dims)]
        dims[place % len(dims)] = random.choice((1, 2, 3, 4, 5, 7, fresh(), size + 1, size * 2))
    return TensorType(type_.dtype, tuple(dims))


def other_values(type_: TensorType, random: Random) -> TensorType:
    values = known_array(type_)
    kind = random.choice(("value", "value", "fewer", "more", "nested", "scalar", "run time"))
    if kind == "run time":
        return TensorType(type_.dtype, random.choice((values.shape, (fresh(),), (values.size + 1,))))
    if kind == "value" and values.size:
        values.flat[random.randrange(values.size)] = random.choice((0, 1, -1, 2, 3, 5, -2, 7, -7))
    elif kind == "fewer":
        values = values.reshape(-1)[: random.randint(0, values.size)]
    elif kind == "more":
        values = np.append(values, random.randint(-2, 3))
    elif kind == "nested":
        values = values[None]
    elif kind == "scalar" and values.size == 1:
        values = values.reshape(())
    return type_of_tensor(ArrayTensor(values))


def known_array(type_: TensorType) -> np.ndarray:
    assert type_.known is not None
    return np.array(type_.known.tolist(), np.int64).reshape(type_.known.shape)


def applied(example: Example, types: list[TensorType | None]) -> Graph | None:
    """A graph with the operation; None if our inference refuses the types, or a rank is unknown."""
    graph = Graph("strict")
    values: list[Any] = [None if type_ is None
                         else Parameter(graph=graph, dtype=type_.dtype, shape=type_.shape).output if type_.known is None
                         else Constant(ArrayTensor(known_array(type_)), graph=graph).output for type_ in types]
    try:
        node = getattr(ops, example.name)(*values, graph=graph, **example.attributes)
    except MoLoopError:
        return None
    if any(output.rank is None for output in node.outputs):
        return None
    for output in node.outputs:
        Result(output)
    return graph


def shown(type_: TensorType | None) -> str:
    return str(type_) if type_ is None or type_.known is None else f"{type_} {known_array(type_).tolist()}"
