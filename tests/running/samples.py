"""One model with expected values: convert it, run the IR, compare, and give the result as one word.

    sample = Sample("scan", model_bytes, feeds=[{"x": x}], expected=[[("y", y)]], order=(0, 0))
    with Pool("tests.running.samples:judge", limit=60) as pool:
        verdict = settle(pool.call(("mo_loop", sample)), pool.call)      # passed, refused, bug, wrong, crash, hang ...

`judge` and `judge_ir` run native code: call them in a worker process.
"""

import functools
import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.isolated import LIMIT, SERVE, Hosted, brief
from mo_loop.compare.execution.runtime import compile_ir, read_ir
from mo_loop.compare.ir_runs import convert_with_ovc
from mo_loop.compare.oracle.oracle import (
    EXACT_OPERATORS,
    ONNX_RUNTIME,
    REFERENCE,
    OnnxRuntime,
    not_implemented,
    operators_of,
    reference_for,
)
from mo_loop.compare.results.array_comparison import Named, by_wanted_name, compare_all, largest_number
from mo_loop.compare.verify_options import PEER, properties_of
from mo_loop.graph import Graph
from mo_loop.support.workers import Pool, TaskOutcome, report_stage
from tools.runtimes import device

PASSED, REFUSED, BUG, FAILED, WRONG = "passed", "refused", "bug", "fails", "wrong"
NOT_READABLE, NOT_COMPILABLE = "not readable", "not compilable"
CRASH, HANG, EXCUSED = "crash", "hang", "excused"
CLASSES = (PASSED, EXCUSED, REFUSED, BUG, NOT_READABLE, NOT_COMPILABLE, FAILED, WRONG, CRASH, HANG)

Arrays = dict[str, Any]

ROUNDED = 0.02
"""The tolerance of numbers in the default precision of a device."""

FILLED = {"MALLOC_PERTURB_": "165"}
"""Environment of workers: glibc fills memory that it allocates and frees, so that reading it always gives wrong values.
"""


class Inferred:
    """The types of a graph's inputs and outputs, without the graph: small enough for another process."""

    def __init__(self, graph: Graph) -> None:
        self._inputs = [(node.name, node.output.shape) for node in graph.parameters]
        self._names = [name for name, _ in self._inputs]
        self._outputs = [(str(node.value.type), node.value.shape) for node in graph.results]

    def contradiction(self, feeds: Mapping[str, Any] | Sequence[Any], found: Sequence[tuple[str, Any]]) -> str:
        """The first output whose array has not the inferred shape, in words; empty if there is none."""
        lengths = self._lengths(feeds if isinstance(feeds, Mapping) else dict(zip(self._names, feeds, strict=True)))
        for (text, shape), (name, array) in zip(self._outputs, found, strict=True):
            if shape is None:
                continue
            fits = [_fits(dim, length, lengths) for dim, length in zip(shape, array.shape, strict=False)]
            if len(shape) != array.ndim or not all(fits):
                return f"{name} is inferred as {text} and has the shape {list(array.shape)}"
        return ""

    def _lengths(self, feeds: Mapping[str, Any]) -> dict[Any, int]:
        """Symbol -> its value in these inputs."""
        lengths: dict[Any, int] = {}
        for name, shape in self._inputs:
            if name not in feeds or shape is None:
                continue
            for dim, length in zip(shape, np.shape(feeds[name]), strict=True):
                if not isinstance(dim, int) and dim.symbol is not None:
                    lengths[dim.symbol] = length
        return lengths


def _fits(dim: Any, length: int, lengths: Mapping[Any, int]) -> bool:
    if isinstance(dim, int):
        return dim == length
    if all(symbol in lengths for symbol in dim.symbols()):
        return bool(dim.const + sum(factor * lengths[symbol] for symbol, factor in dim.terms) == length)
    return bool(dim.lo <= length and (dim.hi is None or length <= dim.hi))


@dataclass
class Verdict:
    """The result of one model and one converter: one of `CLASSES`, and a message."""

    result: str
    message: str = ""
    code: str = ""
    seconds: float = 0.0
    difference: float = 0.0
    """The largest absolute difference of all inferences, of a model that passed."""

    @property
    def bad(self) -> bool:
        """Whether it did not pass."""
        return self.result not in (PASSED, EXCUSED)


@dataclass
class Sample:
    """A model with expected values, ready for converters.

    Each of `feeds` holds arrays by name, or in the order of the inputs; `order` are the inferences on one compiled
    model, by the index of their feed. `rtol` and `atol` replace the usual tolerances; `values=False` compares shapes
    and element types only. With `exact` a result without elements has to have the expected shape too, and every result
    the shape that conversion inferred. `arguments` are more arguments of convert_model; a refusal with one of the codes
    in `excuses` is excused. `python` is the interpreter of another OpenVINO release, which is to run the IR. With
    `without`, names of passes, the expected values are those of the IR that is converted without these.

    `precision` may be `default`, that of the device: numbers may then differ by 2%, also of the largest of a tensor.
    The inferences run on so many `requests` of one compiled model.
    """

    name: str
    model: bytes
    feeds: Sequence[Mapping[str, Any] | Sequence[Any]]
    expected: Sequence[Named]
    order: tuple[int, ...]
    features: dict[str, int] = field(default_factory=dict)
    dropped_sets: int = 0
    rtol: float | None = None
    atol: float | None = None
    values: bool = True
    exact: bool = False
    arguments: Arrays = field(default_factory=dict)
    excuses: tuple[str, ...] = ()
    inferred: Inferred | None = None
    python: str | None = None
    without: tuple[str, ...] = ()
    precision: str = "f32"
    requests: int = 1

    def tolerances(self, expected: Named) -> dict[str, tuple[float, float]]:
        """Those of outputs in the default precision, by name."""
        if self.precision == "f32":
            return {}
        return {name: (ROUNDED, ROUNDED * largest_number(array)) for name, array in expected}


def judge(task: tuple[str, Sample]) -> Verdict:
    """Convert with a converter of `CONVERTERS`, save, read back, compile once, run every input set, compare."""
    converter, sample = task
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "model.onnx"), Path(folder, "ir.xml")
        source.write_bytes(sample.model)
        report_stage("convert")
        try:
            inferred = CONVERTERS[converter](source, target, sample.arguments)
        except Exception as error:  # those of other converters share no base class
            return _refusal(converter, sample, error)
        if sample.without:
            sample = replace(sample, expected=_without(source, sample))
        return judge_ir(target, replace(sample, inferred=inferred) if sample.exact else sample)


def _without(source: Path, sample: Sample) -> list[Named]:
    """The results of the IR that is converted without some passes."""
    from mo_loop.transforms.config import PassConfig

    config = PassConfig()
    config.disable(*sample.without)
    target = source.with_name("without.xml")
    CONVERTERS[OURS](source, target, {**sample.arguments, "config": config})
    compiled = _compiled(target, sample)
    return [compiled.run(feeds) for feeds in sample.feeds]


class CompiledElsewhere(Hosted):
    """A compiled model in the worker of an interpreter; the next one compiled there replaces it."""

    def __init__(self, path: str | Path, python: str, precision: str = "f32") -> None:
        """Raises IsolatedError if the IR does not compile, or the process crashes. The precision may be the device's
        `default`."""
        on = device(python)
        properties = properties_of(precision, on) if on != "CPU" or precision != "f32" else None
        super().__init__(compile_ir, str(path), properties, on, pool=_pool(python))

    def run(self, feeds: Any) -> Any:
        """As `Hosted.run`. Arrays are sent in C order: another release of numpy may not read those of Fortran order."""
        if isinstance(feeds, Mapping):
            return super().run({name: np.asarray(value, order="C") for name, value in feeds.items()})
        return super().run([np.asarray(value, order="C") for value in feeds])


def read_elsewhere(path: str | Path, python: str) -> None:
    """Raises IsolatedError if an interpreter's OpenVINO does not read an .xml file."""
    Hosted(read_ir, str(path), pool=_pool(python))


@functools.cache
def _pool(python: str) -> Pool:
    """Workers of another interpreter, in which glibc fills memory that it allocates and frees."""
    return Pool(SERVE, limit=LIMIT, python=python, env=FILLED)


def _compiled(target: str | Path, sample: Sample) -> Any:
    if sample.python is None:
        return compile_ir(target, None if sample.precision == "f32" else properties_of(sample.precision, "CPU"))
    return CompiledElsewhere(target, sample.python, sample.precision)


def judge_ir(target: str | Path, sample: Sample) -> Verdict:
    """Compile an IR file once, run the input sets of a sample in their order and compare."""
    report_stage("compile")
    try:
        compiled = _compiled(target, sample)
    except Exception as error:  # the runtime's errors share no base class
        verdict = _failure(error, NOT_COMPILABLE, "compile")
        is_read = verdict.result != NOT_COMPILABLE or _is_read(target, sample.python)
        return verdict if is_read else replace(verdict, result=NOT_READABLE)
    largest = 0.0
    for request, (position, number) in itertools.product(range(sample.requests), enumerate(sample.order)):
        if request and not position:
            compiled.call("renew") if isinstance(compiled, Hosted) else compiled.renew()
        report_stage(f"infer {position}")
        try:
            found = compiled.run(sample.feeds[number])
        except Exception as error:
            return _failure(error, FAILED, f"inference {position}")
        verdict = judge_results(sample, position, found)
        if verdict.bad:
            return verdict
        largest = max(largest, verdict.difference)
    return Verdict(PASSED, difference=largest)


def _is_read(target: str | Path, python: str | None) -> bool:
    """Whether OpenVINO reads a file that it does not compile."""
    try:
        read_ir(target) if python is None else read_elsewhere(target, python)
    except Exception:  # the runtime's errors share no base class
        return False
    return True


def _failure(error: Exception, result: str, stage: str) -> Verdict:
    """The verdict of an error of the runtime, or of the process in which it runs."""
    ended = {"crash": CRASH, "timeout": HANG}.get(getattr(error, "status", ""))
    if ended is not None:
        return Verdict(ended, f"{stage}: {error}")
    return Verdict(result, f"{stage}: {brief(error)}" if result == FAILED else brief(error))


def judge_results(sample: Sample, position: int, found: Named) -> Verdict:
    """The verdict of one inference, which is the one at `position` in the order of the sample."""
    number = sample.order[position]
    where, largest = f"inference {position} (input set {number})", 0.0
    wanted = sample.expected[number]
    tolerances = sample.tolerances(wanted)
    for result in compare_all(wanted, found, rtol=sample.rtol, atol=sample.atol, tolerances=tolerances):
        if not result and _counts(result, sample, wanted, found):
            return Verdict(WRONG, f"{where}, {result.kind}: {result}")
        largest = max(largest, result.largest_abs)
    contradiction = sample.inferred.contradiction(sample.feeds[number], found) if sample.inferred else ""
    return Verdict(BUG, f"{where}: {contradiction}") if contradiction else Verdict(PASSED, difference=largest)


def _counts(result: Any, sample: Sample, expected: Named, found: Named) -> bool:
    """Whether this sample forbids a difference."""
    if result.kind == "values":
        return sample.values
    return sample.exact or not empty_alike(result.name, expected, found)


def empty_alike(name: str, expected: Named, found: Named) -> bool:
    """Two empty results that differ only where ONNX Runtime has another dimension or rank after no iterations.

    It writes 0 for such a dimension, and [0] for an unknown rank.
    """
    if len(expected) != len(found) and name not in dict(found):
        return False
    left, right = dict(expected).get(name), by_wanted_name(expected, found).get(name)
    if left is None or right is None or left.size or right.size or left.dtype != right.dtype:
        return False
    if left.shape == (0,):
        return True
    return left.ndim == right.ndim and all(a in (0, b) for a, b in zip(left.shape, right.shape, strict=True))



def settle(outcome: TaskOutcome, again: Callable[[Any], TaskOutcome]) -> Verdict:
    """The verdict of a worker's outcome; a crash is tried once more, in a fresh process.

    Native code that writes where it should not may bring down the process in a later task, so the model at hand is not
    always to blame.
    """
    verdict = verdict_of(outcome)
    if verdict.result != CRASH:
        return verdict
    second = verdict_of(again(outcome.task))
    if second.result == PASSED:
        second.message = f"crashed in a used process, not in a fresh one: {verdict.message}"
    return second


def verdict_of(outcome: TaskOutcome) -> Verdict:
    """The verdict of a worker's outcome, crashes and hangs included."""
    if outcome.ok:
        verdict: Verdict = outcome.value
        verdict.seconds = outcome.seconds
        return verdict
    if outcome.status == "timeout":
        return Verdict(HANG, f"{outcome.stage}: {outcome.message}", seconds=outcome.seconds)
    if outcome.status == "crash":
        return Verdict(CRASH, f"{outcome.stage}: {outcome.message} {_last_line(outcome.detail)}".strip())
    return Verdict(BUG, f"{outcome.stage}: {outcome.message}", outcome.code)


def _refusal(converter: str, sample: Sample, error: Exception) -> Verdict:
    found = getattr(error, "code", "")
    code = found if isinstance(found, str) else ""
    if converter != OURS:
        return Verdict(REFUSED, brief(error), code)
    if code in sample.excuses:
        return Verdict(EXCUSED, brief(error), code)
    # The models are valid: an error about an invalid model is a bug, as an internal error is.
    return Verdict(REFUSED if getattr(error, "exit_code", None) == 3 else BUG, brief(error), code)


def convert_with_mo_loop(source: Path, target: Path, arguments: Arrays | None = None) -> Inferred:
    """Write IR to `target`."""
    from mo_loop.api import convert_model, save_model

    given: Arrays = {"check_passes": True, **(arguments or {})}
    converted = convert_model(str(source), **given)
    save_model(converted, str(target), compress_to_fp16=False)
    return Inferred(converted.graph)


OURS = "mo_loop"
CONVERTERS: dict[str, Callable[..., Inferred | None]] = {OURS: convert_with_mo_loop, PEER: convert_with_ovc}



def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[:200]


# -- Expected values of tests: those of ONNX Runtime, or of the reference evaluator where ONNX Runtime is not exact.
#
# expected = expected_values(model, [{"x": x}, {"x": y}])
# expected.values[1]                 # [("out", array)], in the order of the model's outputs
# expected.source, expected.reason   # who computed them, and why it was not ONNX Runtime
#
# The values do not depend on the CPU: models with `EXACT_OPERATORS` go to the evaluator.


@dataclass(frozen=True)
class Expected:
    """The outputs of a model for each set of inputs; `reason` is why `source` is not ONNX Runtime."""

    values: list[Named]
    source: str = ONNX_RUNTIME
    reason: str = ""


def expected_values(model: Any, sets: Sequence[Mapping[str, Any]]) -> Expected:
    """The values of ONNX Runtime, or of the reference evaluator where ONNX Runtime has no exact implementation.

    Every other error of ONNX Runtime is raised: a model that it refuses has no expected values. NotComparableError for
    operators that the evaluator does not have either.
    """
    exact = exact_operators(model)
    if exact:
        return _by_reference(model, sets, f"{', '.join(exact)}: exact integer arithmetic")
    try:
        runtime = OnnxRuntime(model)
        return Expected([runtime.run(feeds) for feeds in sets])
    except Exception as error:  # its errors share no base class
        text = not_implemented(error)
        if not text:
            raise
        return _by_reference(model, sets, text)


def exact_operators(model: Any) -> list[str]:
    """The operators of the model whose sums of products saturate in ONNX Runtime on some processors."""
    return sorted(EXACT_OPERATORS.intersection(operators_of(model)))


def _by_reference(model: Any, sets: Sequence[Mapping[str, Any]], reason: str) -> Expected:
    evaluator = reference_for(model, reason)
    return Expected([evaluator.run(feeds) for feeds in sets], REFERENCE, reason)
