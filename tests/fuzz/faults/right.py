"""The verdict of `verify --layers` about right models: of tests/models, random ones, ONNX's own suite, quantised ones.

    for task in tasks("models"):                # see SOURCES
        right_trial(task)                       # runs native code in this process: call it in a worker
"""

import functools
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import onnx

from mo_loop.compare.verifying import verify
from mo_loop.errors import MoLoopError
from tests.conformance.cases import RANDOM, collect
from tests.fuzz.control_flow.generator import generate
from tests.fuzz.faults.converters import NotWritten, write_ir
from tests.fuzz.faults.here import here
from tests.fuzz.graphs import draw as draw_graph
from tests.fuzz.operators.table import FAMILIES, operators_of
from tests.fuzz.operators.trial import oracle
from tests.fuzz.quantised import draw as draw_quantised
from tests.running.samples import OURS

MODELS = Path(__file__).resolve().parents[2] / "models"
SUITE = ("node", "simple", "pytorch-converted", "pytorch-operator")
SOURCES = ("models", "control_flow", "graphs", "operators", "suite", "quantised")
REFUSED, NO_MODEL = "refused", "no model"


class RightTask(NamedTuple):
    """A model of a source: a name, or the number of a random one."""

    source: str
    name: str | int
    seed: int = 0
    converter: str = OURS
    is_here: bool = True
    """Whether it runs in the process that calls, which a crash of ONNX Runtime ends; else `verify` has other inputs."""


class RightTrial(NamedTuple):
    """`verdict` is the status of the report; REFUSED models are not converted or not run. `open` tensors were not
    compared by themselves."""

    verdict: str
    text: str = ""
    open: int = 0


def tasks(source: str, count: int, seed: int, converter: str = OURS) -> Iterator[RightTask]:
    """The models of a source: all, or `count` random ones."""
    names: Sequence[str | int] = range(count)
    if source == "models":
        names = [str(path.relative_to(MODELS)) for path in sorted(MODELS.rglob("*.onnx"))]
    elif source == "suite":
        names = [each.name for each in collect(SUITE) if not RANDOM.search(each.name)]
    return (RightTask(source, name, seed, converter) for name in names)


def right_trial(task: RightTask) -> RightTrial:
    """Convert a model, and let `verify` compare all its pieces."""
    with warnings.catch_warnings(action="ignore"):
        drawn = _drawn(task)
        if drawn is None:
            return RightTrial(NO_MODEL)
        model, feeds, arguments = drawn
        with tempfile.TemporaryDirectory() as name, here() if task.is_here else nullcontext():
            path = Path(name, "model.onnx") if not isinstance(model, Path) else model
            if not isinstance(model, Path):
                path.write_bytes(model)
            ir = None if task.converter == OURS else Path(name, "model.xml")
            try:
                if ir is not None:
                    write_ir(path, ir, task.converter)
                report = verify(path, ir, inputs=feeds, sets=2, layers=True, options=arguments)
            except (MoLoopError, NotWritten) as error:
                return RightTrial(REFUSED, str(error))
    undecided = () if report.pieces is None else report.pieces.undecided
    return RightTrial(report.status, "" if report.passed else _told(report), len(undecided))


def _told(report: Any) -> str:
    side = report.sides[0]
    rows = [str(row.result) for row in side.worst if not row.result]
    return "\n".join(filter(None, (side.message, *rows, "" if report.layers is None else str(report.layers))))


Model = tuple[Any, Sequence[Mapping[str, Any]], Mapping[str, Any]]
"""A path or bytes, sets of inputs, and arguments of the conversion."""


def _drawn(task: RightTask) -> Model | None:
    if task.source == "models":
        return MODELS / str(task.name), (), {}
    if task.source == "suite":
        sample = _suite()[str(task.name)]
        return sample.model, [_named(sample.model, each) for each in sample.feeds[:1]], dict(sample.arguments)
    number = int(task.name)
    if task.source == "control_flow":
        case = generate(task.seed, number)
        return case.declared.SerializeToString(), list(case.feeds[:2]), {}
    if task.source == "graphs":
        drawn = draw_graph(task.seed, number)
        return (drawn.model.SerializeToString(), drawn.sets[:2], {}) if drawn.model.graph.node else None
    if task.source == "quantised":
        network = draw_quantised(task.seed, number)
        return network.model.SerializeToString(), network.sets[:2], {}
    operators = _operators()
    found = oracle((task.seed, number, operators[number * 7 % len(operators)], None)).sample
    return None if found is None else (found.model, [_named(found.model, each) for each in found.feeds[:2]], {})


@functools.cache
def _suite() -> dict[str, Any]:
    return {each.name: each.sample for each in collect(SUITE)}


@functools.cache
def _operators() -> list[str]:
    return [each for family in FAMILIES for each in operators_of(family)]


def _named(model: bytes, feeds: Any) -> Mapping[str, Any]:
    """Inputs by name; those of a sample may be in the order of the model."""
    if isinstance(feeds, Mapping):
        return feeds
    graph = onnx.load_from_string(model).graph
    held = {each.name for each in graph.initializer}
    return dict(zip([each.name for each in graph.input if each.name not in held], feeds, strict=False))
