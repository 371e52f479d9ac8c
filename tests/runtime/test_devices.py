"""Errors of the ARM plugin and the GPU plugin that the IR avoids, and random models, on the devices of `make arm` and
`make gpu`.

`make test-devices` runs them. A device whose environment has not been made is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop.api import convert_model, save_model
from mo_loop.compare.results.array_comparison import compare_all
from mo_loop.target import CPU, Gap
from tests.harness import Feeds, floats, oracle, parsed
from tests.running.samples import CompiledElsewhere
from tests.runtime.probing import probes, run
from tools import fuzz_controlflow
from tools.gap_table import GAPS
from tools.runtimes import interpreter

pytestmark = pytest.mark.usefixtures("_asked")

FRACTIONS = np.array([0.9, -0.3, 2.6, -1.7], np.float32)


@pytest.fixture(scope="module")
def _asked(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("devices"):
        pytest.skip("run them with --devices")


@pytest.fixture(params=["arm", "gpu"])
def python(request: pytest.FixtureRequest) -> str:
    """The interpreter of a device."""
    return interpreter_of(request.param)


def interpreter_of(name: str) -> str:
    """The interpreter of an environment; the test is skipped where it has not been made."""
    try:
        return interpreter(name)
    except FileNotFoundError:
        pytest.skip(f"`make {name}` has not made the device")


@pytest.mark.parametrize("gap", [gap for gap in GAPS if gap.device != CPU], ids=lambda gap: gap.id)
def test_a_gap_of_a_device(gap: Gap) -> None:
    """Its probe shows it, and not with its rule."""
    python, probe = interpreter_of(gap.device.lower()), probes()[gap.id]
    verdict = run(probe, probe.as_written(), python=python)
    assert not verdict.is_right, "the probe is right"
    verdict = run(probe, probe.avoided(to=gap.converted_for), python=python)
    assert verdict.is_right, f"{verdict.result}: {verdict.message}"


@pytest.mark.parametrize("readers", [
    "y = Add (n, k)", "y = Mul (k, n)", "y = Mod (n, k)", "y = Abs (n)", "y = Max (n, k)",
    "c = Equal (n, k)  y = Where (c, k, n)", "c = Less (x, f)  y = Where (c, n, k)",
    "m = Cast <to = 7> (xx)  y = Add (n, m)", "y = Div (n, k)",
])
def test_truncated_numbers_are_read_as_integers(readers: str, python: str, tmp_path: Path) -> None:
    """ARM: an elementwise operation read the numbers before the Cast, and quotients below 0 were rounded down."""
    model = parsed(f"""main (float[N] x) => (int64[N] y) <int64[1] k = {{5}}, float[1] f = {{0.5}}> {{
      xx = Mul (x, x)  n = Cast <to = 7> (x)  {readers} }}""")
    compare(model, python, tmp_path, {"x": FRACTIONS}, {"x": 3 * FRACTIONS})


@pytest.mark.parametrize("precision", ["f32", "default"])
def test_a_size_of_zero_that_inference_does_not_know(precision: str, python: str, tmp_path: Path) -> None:
    """A size that followed from random numbers did not compile on ARM, and ended the process of the GPU plugin."""
    model = parsed("""main (float[2] x) => (float[p,2] y, float[2] z) <int64[2] none = {0,2}> {
      y = ConstantOfShape (none)  z = Tanh (x) }""")
    compare(model, python, tmp_path, {"x": floats(2)}, {"x": floats(2, seed=1)}, precision=precision)


@pytest.mark.parametrize("sizes", ["2", "N"])
@pytest.mark.parametrize("precision", ["f32", "default"])
def test_a_counted_loop(precision: str, sizes: str, python: str, tmp_path: Path) -> None:
    model = parsed(f"""main (float[{sizes}] x, int64 n) => (float[{sizes}] y) {{
      y = Loop (n, "", x) <body = step (int64 i, bool c, float[{sizes}] s) => (bool d, t) {{
        d = Identity (c)  t = Sin (s) }}> }}""")
    sets = [{"x": floats(2, seed=each), "n": np.array(each + 1)} for each in range(3)]
    compare(model, python, tmp_path, *sets, precision=precision)


SEED, COUNT = 31, 10
WRONG: dict[str, dict[str, str]] = {"arm": {}, "gpu": {}}
"""The models of the seed that are not right on a device, and why."""


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("name", WRONG)
def test_random_control_flow(name: str, part: int, tmp_path: Path) -> None:
    """In an IR for the device, forwards and backwards on one compiled model."""
    interpreter_of(name)
    file, first = tmp_path / "results.json", part * COUNT
    where = ("--runtime", name, "--device", name.upper(), "--jobs", "1", "--limit", "90")
    numbers = ("--seed", str(SEED), "--start", str(first), "--count", str(COUNT))
    fuzz_controlflow.main([*numbers, *where, "--against", "mo_loop", "--json", str(file)])
    results = json.loads(file.read_text("utf-8"))["results"]["mo_loop"]
    expected = {case for case in WRONG[name] if first <= int(case.split("-")[1]) < first + COUNT}
    assert {each["case"]: each["message"] for each in results if each["result"] != "passed"}.keys() == expected


def compare(
    model: onnx.ModelProto, python: str, folder: Path, *sets: Feeds, precision: str = "f32"
) -> None:
    """Forwards and backwards on one compiled model, with ONNX Runtime's results; within 2% in another precision."""
    save_model(convert_model(model), folder / "model.xml")
    limits: Mapping[str, Any] = {} if precision == "f32" else {"rtol": 0.02, "atol": 0.02}
    compiled, expected = CompiledElsewhere(folder / "model.xml", python, precision), oracle(model, sets).values
    for number in (*range(len(sets)), *reversed(range(len(sets)))):
        different = [each for each in compare_all(expected[number], compiled.run(sets[number]), **limits) if not each]
        assert different == []
