"""Estimates of memory and time, and the order of the models."""

from dataclasses import replace
from pathlib import Path

from mo_loop.batching.estimates import BASE, HEAD, Earlier, earlier_of, estimate, largest_first
from mo_loop.batching.plan import Planned
from mo_loop.batching.storage.locations import Location
from mo_loop.batching.storage.stores import Info

MB = 1 << 20


def test_a_larger_model_needs_more() -> None:
    found = [estimate(size) for size in (0, MB, HEAD, HEAD + MB, 10 * HEAD, 1000 * HEAD)]
    assert found == sorted(found, key=lambda each: (each.memory, each.seconds)) and found[0].memory == BASE
    assert not found[0].is_measured


def test_weights_that_stay_in_the_file_count_little() -> None:
    assert estimate(2 << 30).memory < 1 << 30


def test_an_earlier_result_tells_more() -> None:
    plain = estimate(MB, Earlier(MB, 0, 1000, 0, 2.0))
    assert plain.is_measured and plain.seconds == 2.0 and BASE < plain.memory < estimate(MB).memory + 12 * MB
    assert estimate(MB, Earlier(MB, 0, 1000, 3, 2.0)).memory > plain.memory  # control flow
    assert estimate(3 * MB, Earlier(MB, 0, 1000, 0, 2.0)).seconds == 6.0
    assert estimate(MB, Earlier(MB, MB, 1000, 0, 2.0)).seconds == 2.0  # the external data is as large as before
    assert estimate(MB, Earlier(MB, 0, 1000, 0, None)).seconds == estimate(MB).seconds


def test_results_of_a_report() -> None:
    sizes = {"model": 300, "external": 20, "xml": 1, "bin": 1}
    good = {"status": "converted", "sizes": sizes, "layers": 12, "control_flow": {"Loop": 1, "If": 2}, "seconds": 0.5}
    models = [
        {"name": "a", **good},
        {"name": "b", **good, "status": "skipped"},
        {"name": "c", "status": "failed", "sizes": None, "layers": None, "control_flow": {}, "seconds": 9},
    ]
    models.append({"name": "d", **good, "status": "skipped", "conversion": {"seconds": 2, "memory": 7, "peak": 9}})
    models.append({"name": "e", **good, "comparison": {"seconds": 0.375}})
    found = earlier_of({"models": models})
    assert found == {
        "a": Earlier(300, 20, 12, 3, 0.5), "b": Earlier(300, 20, 12, 3, None), "d": Earlier(300, 20, 12, 3, 2.0, 7, 9),
        "e": Earlier(300, 20, 12, 3, 0.125, compared=0.375),
    }


def test_a_measured_conversion_is_not_said_to_need_more_than_it_had() -> None:
    """40,000 nodes in a Loop: the formula gives 897 MB, the peak was 125 MB."""
    assert estimate(917_974, Earlier(917_974, 0, 40_013, 1, 5.0)).memory > 800 * MB
    measured = Earlier(917_974, 0, 40_013, 1, 5.0, 110 * MB, 125 * MB)
    assert estimate(917_974, measured).memory == BASE
    assert estimate(917_974, replace(measured, memory=300 * MB, peak=300 * MB)).memory == 300 * MB


def test_what_an_earlier_model_left_in_the_process_is_not_taken_for_the_need() -> None:
    """The formula bounds the peak from above; the growth of the process bounds it from below."""
    small = Earlier(MB, 0, 100, 0, 0.1, 80 * MB, 3000 * MB)
    assert estimate(MB, small).memory == estimate(MB, replace(small, memory=None, peak=None)).memory
    assert estimate(MB, replace(small, memory=2000 * MB)).memory == 2000 * MB


def test_a_comparison_loads_the_weights() -> None:
    """Measured: 723 MiB for 286 MiB of embedded weights, 429 MiB for as much external data."""
    weights = 286 * MB
    assert 723 * MB < estimate(weights, with_comparison=True).memory < 1000 * MB
    earlier = Earlier(1000, weights, 10, 0, 1.0, 64 * MB, 64 * MB)
    assert 429 * MB < estimate(1000, earlier, with_comparison=True).memory < 700 * MB
    assert estimate(1000, earlier).memory == BASE


def test_a_comparison_takes_time() -> None:
    """More than the conversion of a small model, and that of the earlier one where it is known."""
    plain, compared = estimate(MB), estimate(MB, with_comparison=True)
    assert compared.seconds > plain.seconds + 1
    earlier = Earlier(MB, 0, 10, 0, 2.0, compared=3.0)
    assert (estimate(MB, earlier).seconds, estimate(2 * MB, earlier, with_comparison=True).seconds) == (2.0, 10.0)


def test_a_time_without_a_measurement_is_not_called_measured() -> None:
    assert not estimate(MB, Earlier(MB, 0, 1000, 0, None)).is_measured


def test_the_largest_first(tmp_path: Path) -> None:
    (tmp_path / "local").write_bytes(b"x" * 50)
    models = [Planned(Location(f"s3://b/{name}"), Path(name), name, Info(size)) for name, size in (("a", 9), ("b", 9))]
    models += [Planned(tmp_path / "local", Path("c"), "c"), Planned(tmp_path / "gone", Path("d"), "d")]
    assert [models[place].name for place in largest_first(models)] == ["c", "a", "b", "d"]
