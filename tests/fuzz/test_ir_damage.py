"""Damaged IR files; `tools/fuzz_bytes.py --kind ir` runs any number of them."""

import re

import pytest

from mo_loop.graph.types import BY_IR_NAME
from mo_loop.ir.reader.layer_types import classes
from tests.fuzz.damage.running import run
from tests.fuzz.ir_damage.ir_damaging import Pair, damaged_pair, pairs
from tests.fuzz.ir_damage.reading import use

SEED, COUNT = 2026, 500


def test_there_is_a_pair_with_every_layer_and_element_type() -> None:
    texts = [xml.decode() for _, xml, _ in pairs()]
    layers = {found for text in texts for found in re.findall(r'<layer .*type="(\w+)" version="(\w+)"', text)}
    assert set(classes()) - layers == set()
    constants = {found for text in texts for found in re.findall(r'<data element_type="(\w+)" .*offset=', text)}
    assert constants == set(BY_IR_NAME)


def test_the_pairs_are_right_before_they_are_damaged() -> None:
    for _, xml, data in pairs()[::8]:
        use(Pair(xml, data))


def test_a_number_gives_the_same_damage_again() -> None:
    first = [damaged_pair(SEED, number) for number in range(40)]
    assert first == [damaged_pair(SEED, number) for number in range(40)]
    assert len({pair for _, pair in first}) > 35


@pytest.mark.sweep(2)
@pytest.mark.parametrize("half", range(2))
def test_damaged_pairs_are_read_or_refused(half: int) -> None:
    found = run("ir", SEED, half * COUNT, COUNT, jobs=1)
    assert not found.failures, [f"{each.place}: {each.text}, seed {SEED}, {each.number}" for each in found.failures]
    assert found.accepted + sum(found.refused.values()) == COUNT
    assert found.accepted > COUNT / 4 and len(found.refused) > 10
