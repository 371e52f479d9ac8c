"""SideRun: which row of an output stays, and how a side ends."""

from mo_loop.compare.execution.isolated import IsolatedError
from mo_loop.compare.ir_runs import SideRun
from mo_loop.compare.results.array_comparison import ArrayComparison
from mo_loop.compare.results.report import Row


def row(inference: int, difference: float, kind: str = "equal", set_: int = 0) -> Row:
    return Row(set_, inference, "", "", ArrayComparison("y", kind, largest_abs=difference))


def kept(*rows: Row) -> list[int]:
    run = SideRun("f32")
    with run.running():
        run.add(rows)
    return [each.inference for each in run.side().rows]


def test_of_rows_that_agree_the_largest_difference_stays() -> None:
    assert kept(row(0, 0.1), row(1, 0.3), row(2, 0.2)) == [1]


def test_of_rows_that_differ_the_first_stays() -> None:
    assert kept(row(0, 0.1), row(1, 5.0, "values"), row(2, 9.0, "values"), row(3, 0.1)) == [1]


def test_each_set_has_its_own() -> None:
    assert kept(row(0, 0.1), row(1, 0.2, set_=1)) == [0, 1]


def test_an_error_of_the_worker_is_the_status() -> None:
    for place, status, said in (("", "not compilable", "boom"), ("inference 0 (a)", "fails", "inference 0 (a): boom")):
        run = SideRun("f32")
        with run.running():
            if place:
                run.reaches(place)
            raise IsolatedError("boom", "error")
        side = run.side()
        assert (side.status, side.message, side.passed) == (status, said, False)
