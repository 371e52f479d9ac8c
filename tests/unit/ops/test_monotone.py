"""Inference is monotone: less knowledge of the inputs never gives more of the outputs, and never an error."""

import re
from random import Random
from typing import Any

import pytest

from mo_loop.graph.dimension import LEAST, Dimension, fresh, high, least, low, most, named, unknown
from mo_loop.graph.types import TensorType, known_array
from mo_loop.text import parse
from tests.running.rows import turn
from tests.unit.ops.examples import BODIES, EXAMPLES, SOURCES, Example, operations

DRAWS = 60


def test_every_operation_has_an_example() -> None:
    covered = {example.name for example in EXAMPLES} | BODIES.keys()
    assert [name for name in operations() if name not in covered | SOURCES] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"{n}-{each.name}" for n, each in enumerate(EXAMPLES)])
def test_monotone(example: Example) -> None:
    precise = example.infer(example.types)
    for seed in turn(range(DRAWS), 3):
        random = Random(seed)
        types, found = example.types, precise
        for step in range(2):
            types = [weaker(each, random, port in example.counted, step == 0) for port, each in enumerate(types)]
            wider = example.infer(types)
            assert_covered(found, wider)
            found = wider


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"{n}-{each.name}" for n, each in enumerate(EXAMPLES)])
def test_monotone_in_each_dimension_alone(example: Example) -> None:
    """At the ends of its bounds."""
    precise = example.infer(example.types)
    for port, type_ in enumerate(example.types):
        if type_ is None or type_.shape is None or type_.known is not None:
            continue
        for place, size in enumerate(type_.shape):
            first, top = low(size), high(size)
            above = None if top is None else top + 1
            for weak in (fresh(), fresh(first), fresh(0, top), fresh(first, above), fresh(max(first - 1, 0), top)):
                shape = (*type_.shape[:place], weak, *type_.shape[place + 1 :])
                types = [*example.types[:port], TensorType(type_.dtype, shape), *example.types[port + 1 :]]
                assert_covered(precise, example.infer(types))


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("seed", turn(range(DRAWS), 3))
def test_monotone_through_bodies(name: str, seed: int) -> None:
    """On a graph made for the weaker types, and on one that had the precise types before."""
    random = Random(seed)
    graph = parse(BODIES[name])
    found = [result.value.type for result in graph.results]
    types = [weaker(parameter.output.type, random) for parameter in graph.parameters]
    anew = parse(BODIES[name])
    for each in (graph, anew):
        for parameter, type_ in zip(each.parameters, types, strict=True):
            parameter.retype(type_)
        each.validate()
        assert_covered(found, [result.value.type for result in each.results])


def weaker(type_: TensorType | None, random: Random, keep_shape: bool = False, may_name: bool = True) -> Any:
    """The type with less known of its dimensions, its rank or its values; or unchanged.

    A name means that all sizes of that name are equal: a number gets one only while nothing else has it.
    """
    if type_ is None:
        return None
    if type_.known is not None and (keep_shape or random.random() < 0.6):
        items = [weaker_value(item, random, may_name) for item in type_.known.flat]
        return TensorType(type_.dtype, type_.shape, known_array(items, type_.known.shape))
    if type_.shape is None or random.random() < 0.15:
        return TensorType(type_.dtype, None)
    return TensorType(type_.dtype, tuple(weaker_dim(dim, random, may_name) for dim in type_.shape))


def weaker_dim(dim: Dimension, random: Random, may_name: bool) -> Dimension:
    top = high(dim)
    choices = [dim, dim, fresh(), fresh(random.randint(0, low(dim)))]
    if isinstance(dim, int) and may_name:
        choices.append(named(f"size{dim}"))
    if top is not None:
        choices.append(fresh(random.randint(0, low(dim)), top + random.randint(0, 3)))
    return random.choice(choices)


def weaker_value(value: Dimension, random: Random, may_name: bool) -> Dimension:
    lo, hi = least(value), most(value)
    choices = [value, value, unknown()]
    if isinstance(value, int) and value > 0 and may_name:  # a size of 0 in a pattern does not copy a dimension
        choices.append(named(f"size{value}"))
    if hi is not None and lo > LEAST:
        # Bounds from 0 on are those of a size; a 0 that copies a dimension is weakened to any number.
        choices.append(unknown(lo - random.randint(int(value == 0), 3), hi + random.randint(0, 3)))
    return random.choice(choices)


def assert_covered(precise: list[Any], weak: list[Any]) -> None:
    assert len(precise) == len(weak)
    for tight, wide in zip(precise, weak, strict=True):
        assert wide.dtype is tight.dtype
        if wide.shape is not None:
            assert tight.shape is not None and len(tight.shape) == len(wide.shape), f"{wide} for {tight}"
            assert all(map(dim_covers, wide.shape, tight.shape)), f"{wide} for {tight}"
        if wide.known is not None:
            assert tight.known is not None, f"{wide.known} for unknown values"
            assert all(map(value_covers, wide.known.flat, tight.known.flat)), f"{wide.known} for {tight.known}"


def dim_covers(wide: Dimension, tight: Dimension) -> bool:
    size = number(tight)
    top, limit = high(wide), high(size)
    inside = low(wide) <= low(size) and (top is None or (limit is not None and limit <= top))
    return inside and agrees(wide, size)


def value_covers(wide: Dimension, tight: Dimension) -> bool:
    value = number(tight)
    top, limit = most(wide), most(value)
    inside = least(wide) <= least(value) and (top is None or (limit is not None and limit <= top))
    return inside and agrees(wide, value)


def agrees(wide: Dimension, tight: Dimension) -> bool:
    found = number(wide)
    return not isinstance(found, int) or not isinstance(tight, int) or found == tight


def number(dim: Dimension) -> Dimension:
    """The value of an expression of the symbols `size2`, `size3`, ... for those sizes; other expressions unchanged."""
    if isinstance(dim, int) or not all(re.fullmatch(r"size\d+", symbol.name) for symbol in dim.symbols()):
        return dim
    return dim.const + sum(factor * int(symbol.name[4:]) for symbol, factor in dim.terms)


def test_regions_have_the_channels_of_every_level() -> None:
    levels = "f32[1,1..10,16,16]", "f32[1,5..12,8,8]"
    attributes = {"output_size": 7, "sampling_ratio": 2, "pyramid_scales": (4, 8)}
    example = Example("ExperimentalDetectronROIFeatureExtractor", attributes, "f32[9,4]", *levels)
    channels = example.infer(example.types)[0].shape[1]
    assert (low(channels), high(channels)) == (5, 10)


def test_the_only_length_that_is_not_a_number_is_the_rest() -> None:
    """Only one without a name was: with a name, less was known of the pieces than without."""
    example = Example("VariadicSplit", {}, [5, 6, 7], 0, [1, 2])
    x, axis, lengths = example.types
    given = known_array([1, named("size2")], lengths.known.shape)
    found = example.infer([x, axis, TensorType(lengths.dtype, lengths.shape, given)])
    assert [each.shape for each in found] == [(1,), (2,)] and [list(each.known) for each in found] == [[5], [6, 7]]
