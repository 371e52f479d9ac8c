"""tests/running/together.py: the models of one test are judged together, and a wrong one is found among them."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop.api import convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from tests.harness import check_node, f32, node_model, raised
from tests.running import together
from tests.running.samples import Sample


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about models that run."""
    monkeypatch.setattr(together, "FOLDER", "")


def negated(folder: Path, name: str, expected: Any, dynamic: bool) -> tuple[str, Sample]:
    """The IR of a model of Neg, and a sample with two sets of inputs; the second gives `expected`."""
    path, x = folder / f"{name}.xml", f32(1, 2, 3)
    save_model(convert_model(node_model("Neg", {"x": x}, opset=13, outputs=["y"], dynamic=dynamic)), path)
    return str(path), Sample(name, b"", [{"x": x}, {"x": 2 * x}], [[("y", -x)], [("y", expected)]], (0, 1), exact=True)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("place", range(3))
def test_one_wrong_value_is_found(place: int, dynamic: bool, tmp_path: Path) -> None:
    right = f32(-2, -4, -6)
    wrong = [right + (number == place) for number in range(3)]
    assert isolated(together.pass_together, [negated(tmp_path, f"m{n}", right, dynamic) for n in range(3)])
    tasks = [negated(tmp_path, f"m{n}", each, dynamic) for n, each in enumerate(wrong)]
    assert not isolated(together.pass_together, tasks)


def test_the_shape_that_conversion_inferred_counts(tmp_path: Path) -> None:
    tasks = [negated(tmp_path, f"m{n}", f32(-2, -4, -6), False) for n in range(2)]
    assert not isolated(together.pass_together, [tasks[0], negated(tmp_path, "m1", np.float32([[-2, -4, -6]]), False)])


def test_inputs_that_the_runtime_refuses_do_not_pass(tmp_path: Path) -> None:
    tasks = [negated(tmp_path, f"m{n}", f32(-2, -4, -6), False) for n in range(2)]
    tasks[1][1].feeds = [{"x": f32(1)}, {"x": f32(2)}]
    assert not isolated(together.pass_together, tasks)


def test_the_error_names_the_line_that_made_the_model() -> None:
    check_node("Neg", {"x": f32(1)}, opset=13)
    check_node("Neg", {"x": f32(1)}, opset=13, expected=[f32(1)])
    with pytest.raises(AssertionError,
                       match=r"test_together.py:\d+: wrong: inference 0 .input set 0., values: ") as error:
        together.judge_all()
    line = int(str(error.value).split("test_together.py:")[1].split(":")[0])
    assert "expected=[f32(1)]" in Path(__file__).read_text(encoding="utf-8").splitlines()[line - 1]
    together.judge_all()  # nothing waits any more


def test_a_model_is_judged_before_very_many_wait() -> None:
    for _ in range(together.MOST - 1):
        check_node("Neg", {"x": f32(1)}, opset=13)
    check_node("Neg", {"x": f32(1)}, opset=13, expected=[f32(1)])
    assert not together._waiting
    raised(AssertionError, together.judge_all, match="wrong")


def test_a_test_that_failed_leaves_no_files() -> None:
    folder = tempfile.TemporaryDirectory()
    together.later(folder, Path(folder.name, "model.xml"), Sample("m", b"", [], [], ()), "")
    together.forget()
    assert not Path(folder.name).exists()
