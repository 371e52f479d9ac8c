"""The source of the trip count of a loop, as the page shows it."""

import pytest

from mo_loop.look.records.node_records import Describer
from mo_loop.look.records.of_graph import structure_of as structure_of
from mo_loop.look.records.trip_counts import set_trip_counts
from mo_loop.look.records.trip_counts import trip_count as trip_count
from mo_loop.text import parse
from tests.cases import read_cases
from tests.texts import texts

TEXTS = texts(__file__)

LOOP = TEXTS["loop"]

SLICES = TEXTS["slices"]

NESTED = TEXTS["nested"]


def trip_counts(text: str) -> list[str | None]:
    state = Describer().state(parse(text))
    set_trip_counts(state)
    return [each["port_map"].get("trip_count") for each in state.nodes.values() if "port_map" in each]


@pytest.mark.parametrize(("trips", "start", "goes_on", "expected"), [
    ("7", "true", "true", "7"), ("%m", "true", "true", "n (Parameter)"), ("-1", "true", "true", "no limit"),
    ("7", "false", "true", "0: the execution condition is false"),
    ("7", "%f", "true", "at most 7, while f (Parameter) is true"),
    ("-1", "true", "%less", "while less (Less) is true"),
    ("%n", "%f", "%less", "at most n (Parameter), while f (Parameter) and less (Less) are true"),
])
def test_loop(trips: str, start: str, goes_on: str, expected: str) -> None:
    assert trip_counts(LOOP.format(trips=trips, start=start, goes_on=goes_on)) == [expected]


@pytest.mark.parametrize(("dim", "settings", "expected"), [
    ("6", "", "6 (dimension 0 of x)"),
    ("6", ", stride: 2, part_size: 2", "3 (dimension 0 of x)"),
    ("6", ", start: -1, end: 0, stride: -1", "6 (dimension 0 of x)"),
    ("6", ", start: 1, end: 5", "4 (dimension 0 of x)"),
    ("N", "", "dimension 0 of x: N"),
    ('"N, M"', "", 'dimension 0 of x: "N, M"'),
])
def test_slices(dim: str, settings: str, expected: str) -> None:
    assert trip_counts(SLICES.format(dim=dim, settings=settings)) == [expected]


@pytest.mark.parametrize(
    ("index", "expected"),
    [("0", "dimension 0 of z: N"), ("-1", "4 (dimension -1 of z)"), ("[1]", "4 (dimension 1 of z)")],
)
def test_a_dimension_that_is_read_from_a_shape(index: str, expected: str) -> None:
    size = f'%z = Parameter : f32[N,4] "z"\n%shape = ShapeOf(%z)\n%size = Gather(%shape, {index}, 0)\n'
    assert trip_counts(size + LOOP.format(trips="%size", start="true", goes_on="true")) == [expected]


def test_a_value_is_followed_out_of_the_body() -> None:
    assert trip_counts(NESTED) == ["3", "n (Parameter)"]


read_cases(globals())
