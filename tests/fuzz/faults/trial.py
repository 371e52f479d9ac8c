"""The verdict of `verify` about a planted fault.

    found = fault_trial(FaultTask(5, 17))   # seed and number; runs native code: call it in a worker
    found.result                            # FOUND, OTHER_PLACE, NOT_DECIDED, MISSED; UNSEEN faults do not count
"""

import tempfile
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

from mo_loop.compare.oracle.oracle import OnnxRuntime, with_copies
from mo_loop.compare.verifying import verify
from mo_loop.errors import MoLoopError
from tests.fuzz.faults.converters import NotWritten, write_ir
from tests.fuzz.faults.here import here
from tests.fuzz.faults.models import KINDS
from tests.fuzz.faults.planting import plant
from tests.running.samples import OURS

FOUND, OTHER_PLACE, NOT_DECIDED, MISSED = "found", "another place", "not decided", "missed"
UNSEEN = "changes no output"
TRIES = 8
"""Many nodes of a random model reach no output: those of branches that are not taken, of loops that do not run."""


class Trial(NamedTuple):
    """`kind` is that of the model, `fault` that of the fault and its place, `text` what `verify` says."""

    kind: str
    fault: str
    result: str
    text: str = ""


class FaultTask(NamedTuple):
    """The converter (converters.py) writes the IR of the changed model. A crash ends the process, if it `is_here`."""

    seed: int
    number: int
    converter: str = OURS
    is_here: bool = True


def fault_trial(task: FaultTask) -> Trial:
    """Plant a fault and let `verify` judge the IR of the changed model."""
    seed, number, converter, is_here = task
    rng = np.random.default_rng((seed, number))
    kind = list(KINDS)[number % len(KINDS)]
    with warnings.catch_warnings(action="ignore"):
        model, feeds = KINDS[kind](rng)
        planted = (plant(model, rng) for _ in range(TRIES))
        fault = next((each for each in planted if each is not None and _is_seen(model, each.model, feeds)), None)
        if fault is None:
            return Trial(kind, "none", UNSEEN)
        what = f"{fault.kind} at {fault.nodes[0]}"
        with tempfile.TemporaryDirectory() as name:
            path, changed, ir = (Path(name, each) for each in ("model.onnx", "changed.onnx", "wrong.xml"))
            onnx.save(model, path)
            onnx.save(fault.model, changed)
            try:
                write_ir(changed, ir, converter)
                with here() if is_here else nullcontext():
                    report = verify(path, ir, inputs=[feeds])
            except (MoLoopError, NotWritten) as error:
                return Trial(kind, what, UNSEEN, str(error))
    return Trial(kind, what, *_judged(report, fault.nodes))


def _judged(report: Any, nodes: tuple[str, ...]) -> tuple[str, str]:
    if report.passed:
        return MISSED, str(report).splitlines()[0]
    found = report.layers
    if not hasattr(found, "path"):
        return NOT_DECIDED, report.sides[0].message or str(found)
    own = {each.rpartition("/")[2] for each in nodes}  # a loop around the fault is named as well as the node itself
    is_named = found.path in nodes or any(each.rpartition(" (")[0] in own for each in found.between)
    return (FOUND if is_named else OTHER_PLACE), str(found)


def _is_seen(right: onnx.ModelProto, wrong: onnx.ModelProto, feeds: Any) -> bool:
    """Whether the fault moves an output beyond the tolerance of the ends."""
    try:
        expected, found = (OnnxRuntime(with_copies(each)).run(feeds) for each in (right, wrong))
    except Exception:  # the errors of ONNX Runtime share no base class: the changed model does not run
        return False
    return any(_differs(value, other) for (_, value), (_, other) in zip(expected, found, strict=True))


def _differs(value: Any, other: Any) -> bool:
    if not isinstance(value, np.ndarray) or not isinstance(other, np.ndarray) or value.shape != other.shape:
        return isinstance(value, np.ndarray) and isinstance(other, np.ndarray)
    if value.dtype.kind != "f":
        return value.dtype.kind in "iub" and not np.array_equal(value, other)
    a, b = value.astype(np.float64), other.astype(np.float64)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    small = value.dtype == np.float16
    scale = np.abs(a).max(initial=0.0)
    return bool((np.abs(a - b) > (2e-3 if small else 1e-3) * np.abs(a) + (1e-3 if small else 1e-5) * scale).any())
