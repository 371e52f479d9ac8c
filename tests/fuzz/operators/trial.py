"""One random configuration of an operator, and the values ONNX Runtime computes for it. Runs in a worker process."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mo_loop.support.workers import report_stage
from tests.running.samples import Sample

if TYPE_CHECKING:
    from .draw import Node

SETS, TRIES = 3, 6

NO_KERNEL = ("Could not find an implementation", "NOT_IMPLEMENTED", "not implemented", "Unsupported type", "no kernel",
             "Mismatched attribute type")
"""Parts of ONNX Runtime's messages if it lacks an operator for a type or an attribute."""


@dataclass(frozen=True)
class Facts:
    """The facts of a configuration, for the table of those that do not pass."""

    op: str
    opset: int
    since: int
    attributes: Mapping[str, Any]
    types: tuple[str, ...]
    given: tuple[str, ...]
    shapes: tuple[tuple[tuple[int, ...], ...], ...]
    """For each set, the shapes of the inputs; () for an absent one."""
    outputs: tuple[str, ...]
    dims: tuple[tuple[int | None, ...], ...]
    """For each input, the dimensions that are known before the run; None for an unknown one."""
    notes: tuple[str, ...] = ()
    """Properties of the inputs of any set: nan, infinite, large (integers beyond 2^24), empty (no elements);
    unknown length: a parameter is a vector whose length is known at run time only."""

    def __str__(self) -> str:
        pairs = zip(self.types, self.shapes[0], self.given, strict=True)
        ports = ", ".join(f"{kind}{list(shape)} {how}" if kind else "-" for kind, shape, how in pairs)
        said = " ".join(f"{name}={' '.join(str(value).split())}" for name, value in self.attributes.items())
        return f"{self.op}-{self.opset}({ports}) {said} {' '.join(self.notes)}".strip()


@dataclass
class Trial:
    """A configuration with expected values, or the reason why there is none."""

    name: str
    op: str
    facts: Facts | None = None
    sample: Sample | None = None
    skipped: str = ""
    redrawn: dict[str, int] = field(default_factory=dict)
    """The reasons why ONNX Runtime did not run earlier draws."""


def oracle(task: tuple[int, int, str, int | None]) -> Trial:
    """The configuration (seed, index) of an operator, at one opset or at any.

    A configuration for which ONNX Runtime has no kernel is drawn again; one that it calls invalid is skipped.
    """
    seed, index, op, opset = task
    name = f"{op}/{seed}/{index}"
    redrawn: dict[str, int] = {}
    for attempt in range(TRIES):
        try:
            facts, sample = drawn(f"{name}/{attempt}", name, op, opset)
            return Trial(name, op, facts, sample, "", redrawn)
        except Missing as error:
            reason = str(error)
            redrawn[reason] = redrawn.get(reason, 0) + 1
        except Invalid as error:
            return Trial(name, op, None, None, str(error), redrawn)
    return Trial(name, op, None, None, f"no kernel: {reason}", redrawn)


class Missing(Exception):
    """Raised if ONNX Runtime has no kernel for the configuration."""


class Invalid(Exception):
    """Raised if the configuration is not valid."""


def nodes_of(text: str, op: str, opset: int | None = None, describe: Callable[..., Any] | None = None,
             count: int = SETS) -> list["Node"]:
    """Draw the node of each set of a configuration from a seed, at one opset or at any."""
    from .draw import Draw, NoKernel
    from .kernels import opsets
    from .table import OPERATORS

    groups = [tuple(each for each in group if opset in (None, each)) for group in opsets(op)]
    groups = [group for group in groups if group]
    if not groups:
        raise Missing(f"{op} at opset {opset}" if opset else op)
    source = random.Random(text)
    chosen = source.choice(source.choice(groups))
    report_stage(f"draw {op}-{chosen}")
    try:
        describe = describe or (lambda *arguments: OPERATORS[op](Draw(*arguments)))
        return [describe(op, chosen, text, number) for number in range(count)]
    except NoKernel as error:
        raise Missing(str(error)) from error


def drawn(
    text: str, name: str, op: str, opset: int | None, describe: Callable[..., Any] | None = None, count: int = SETS
) -> tuple[Facts, Sample]:
    """Draw a configuration from a seed, which may be any text, and compute its expected values with ONNX Runtime.

    `describe` draws the node of one of `count` sets from what `Draw` takes, in place of the description of `OPERATORS`.
    """
    from mo_loop.compare.oracle.oracle import OnnxRuntime

    from .model import Model

    sets = nodes_of(text, op, opset, describe, count)
    model = Model(_alike(sets))
    report_stage("session")
    try:
        session = OnnxRuntime(model.proto())
    except Exception as error:
        raise _refusal(error) from error
    facts = _facts(sets, model)
    sample = Sample(name, b"", [], [], (), rtol=model.first.rtol, atol=model.first.atol, exact=True)
    refused = None
    for number, feeds in enumerate(model.feeds):
        report_stage(f"run {number}")
        try:
            found = _answer(session, model, facts, feeds)
        except Exception as error:
            refused = refused or error
            continue
        sample.feeds.append(feeds)
        sample.expected.append(found)
    if not sample.feeds:
        raise _refusal(refused)
    report_stage("check")
    proto = model.proto(list(_ends(session, sample.expected[0])))
    _check(proto)
    sample.model = proto.SerializeToString()
    sample.dropped_sets = len(model.feeds) - len(sample.feeds)
    sample.order = (*range(len(sample.feeds)), 0)
    return facts, sample


def _answer(session: Any, model: Any, facts: Facts, feeds: Mapping[str, Any]) -> list[tuple[str, Any]]:
    from mo_loop.compare.oracle.oracle import Reference

    from .known import deviation

    found = list(session.run(feeds))
    other = deviation(facts)
    if other is None:
        return found
    right = Reference(model.proto()).run(feeds)
    if other.shapes and all(x.shape == np.shape(y) for (_, x), (_, y) in zip(found, right, strict=True)):
        return found
    return [(name, np.asarray(y).astype(x.dtype)) for (name, x), (_, y) in zip(found, right, strict=True)]


def _alike(sets: Sequence[Any]) -> list[Any]:
    """The sets that have the same form as the first one."""
    form = [_form(each) for each in sets]
    return [each for each, own in zip(sets, form, strict=True) if own == form[0]]


def _form(node: Any) -> Any:
    """The form that all sets share; a constant has the values of the first set, so dependent sizes must be equal."""
    return [None if port is None else
            (port.array.dtype, port.array.ndim, port.given, port.shape if port.given in ("constant", "node") else ())
            for port in node.ports]


def _facts(sets: Sequence[Any], model: Any) -> Facts:
    from .kernels import schema

    first = model.first
    dims = tuple(model.known(index) for index in range(len(first.ports)))
    types = tuple("" if port is None else "string" if port.array.dtype.kind == "O" else port.array.dtype.name
                  for port in first.ports)
    given = tuple("absent" if port is None else port.given for port in first.ports)
    shapes = tuple(tuple(() if port is None else port.shape for port in each.ports) for each in sets)
    since = schema(first.op, first.opset).since_version
    notes = tuple(dict.fromkeys(note for each in sets for port in each.ports if port for note in _notes(port.array)))
    if any(port and port.unknown and None in known for port, known in zip(first.ports, dims, strict=True)):
        notes += ("unknown length",)
    attributes = dict(first.attributes)
    return Facts(first.op, first.opset, since, attributes, types, given, shapes, first.outputs, dims, notes)


def _notes(array: Any) -> Iterator[str]:
    if array.size == 0:
        yield "empty"
    if array.dtype.kind == "f" and np.isnan(array).any():
        yield "nan"
    if array.dtype.kind == "f" and np.isinf(array).any():
        yield "infinite"
    if array.dtype.kind in "iu" and array.size and np.abs(array.astype(np.float64)).max() > 2**24:
        yield "large"


def _ends(session: Any, found: Sequence[tuple[str, Any]]) -> Any:
    """Names, ONNX element types and ranks of the outputs."""
    from onnx import TensorProto

    plain = {"float": "FLOAT", "double": "DOUBLE"}
    for port, (_, array) in zip(session._session.get_outputs(), found, strict=True):
        name = port.type[len("tensor(") : -1]
        yield port.name, getattr(TensorProto, plain.get(name, name.upper())), array.ndim


def _check(proto: Any) -> None:
    import onnx

    try:
        onnx.checker.check_model(proto)
    except Exception as error:
        if "No Op registered for" in str(error):
            return  # an operator that ONNX Runtime adds to the default domain
        raise Invalid(f"checker: {_line(error)}") from error


def _refusal(error: BaseException | None) -> Exception:
    text = _line(error)
    return Missing(text) if any(mark in text for mark in NO_KERNEL) else Invalid(text)


def _line(error: BaseException | None) -> str:
    return " ".join(str(error).split()).split(" Status Message: ")[-1][:260] or type(error).__name__
