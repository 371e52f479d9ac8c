"""The targets of tools/bench_states.py, and what its decoders are given."""

import numpy as np

from tools.bench_states import judge, table
from tools.states.decoders import Steps, pairs
from tools.states.speed import AGAIN, EXPLICIT, OURS, PEER, Row, difference


def row(explicit: float, peer: float, again: float = 1.0, differs: float = 1e-6) -> Row:
    made = Row("gpt2_cached", "", 12, differs, 1e-6, 1e-3, {OURS: 0.01}, {EXPLICIT: explicit, PEER: peer, AGAIN: again})
    judge(made)
    return made


def test_a_row_meets_its_targets_or_says_which_it_misses() -> None:
    assert row(1.2, 1.0).missed == [] and row(1.19, 1.5).missed == ["not 1.2 times as fast as explicit"]
    assert row(1.5, 0.95).missed == ["slower than ovc"] and row(1.5, 0.95, again=1.06).missed == []
    assert row(1.5, 1.5, differs=2e-4).missed == ["numbers"]


def test_the_table_has_what_was_missed() -> None:
    assert table([row(1.5, 1.5)]).endswith("all targets are met")
    failed = Row("t5_cached", "explicit: no file", missed=["explicit: no file"])
    assert table([row(1.5, 1.5), failed]).endswith("t5_cached: explicit: no file")


def test_caches_of_an_encoder_are_no_pairs() -> None:
    names = ["input_ids", "past_key_values.0.decoder.key", "past_key_values.0.encoder.key"]
    assert pairs(names) == {"past_key_values.0.decoder.key": "present.0.decoder.key"}


def test_inputs_continue_those_before() -> None:
    steps = Steps(["input_ids", "attention_mask", "position_ids"], {})
    steps.inputs(np.zeros((2, 3), np.int64))
    given = steps.inputs(np.zeros((2, 1), np.int64))
    assert list(given) == ["input_ids", "attention_mask", "position_ids"] and given["attention_mask"].shape == (2, 4)
    assert given["position_ids"].tolist() == [[3], [3]]


def test_differences_are_parts_of_the_largest_magnitude() -> None:
    assert difference(np.float32([1, -4]), np.float32([1, -3])) == 0.25
    assert difference(np.float32([1]), np.float32([np.nan])) == float("inf")
