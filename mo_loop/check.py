"""Checks of a graph: its invariants, and what the runtime needs before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mo_loop.errors import ConversionErrors, MoLoopError, UnsupportedError
from mo_loop.graph import Graph
from mo_loop.ops.base import Op
from mo_loop.ops.control import TensorIterator
from mo_loop.ops.front import Failed
from mo_loop.types import TensorType

# -- the last check before emission: one function a gap of the runtime; passes establish each form, this verifies


def failures(graph: Graph) -> list[MoLoopError]:
    """The errors of all nodes that could not be translated, bodies included, each on its own."""
    found = [node.error for scope in graph.scopes() for node in scope.of(Failed) if node.error is not None]
    return list(ConversionErrors(found).errors) if found else []


def _front_operations(graph: Graph) -> Iterator[MoLoopError]:
    for node in graph.ordered():
        if isinstance(node, Op) and not node.opset:
            yield UnsupportedError(f"{node.type} was not lowered to IR operations", where=node.path, code="ML320")


def _port_types(graph: Graph) -> Iterator[MoLoopError]:
    for node in graph.ordered():
        for output in node.outputs:
            type_ = output.type
            if not isinstance(type_, TensorType):
                yield UnsupportedError(f"a value of type {type_}: the IR has tensors only", where=node.path, code="ML321")
            elif type_.dtype is None or type_.dtype.precision is None:
                yield UnsupportedError(f"element type {type_.dtype} does not exist in the IR", where=node.path, code="ML322")
            elif type_.shape is None:
                yield UnsupportedError(
                    "a tensor of unknown rank: the runtime compiles known ranks only", where=node.path, code="ML323",
                    hint="declare the shapes of the inputs, or export with fixed ranks",
                )  # fmt: skip


def _nested_iterators(graph: Graph) -> Iterator[MoLoopError]:
    if isinstance(graph.owner, TensorIterator):
        for node in graph.of(TensorIterator):
            yield UnsupportedError("a TensorIterator directly inside another one", where=node.path, code="ML324")


LAST_CHECKS: tuple[Callable[[Graph], Iterator[MoLoopError]], ...] = (
    _front_operations,
    _port_types,
    _nested_iterators,
)


def last_check(graph: Graph) -> None:
    """Raise ConversionErrors with everything in the graph or its bodies that the runtime would refuse or miscompute."""
    errors = failures(graph)
    errors += [error for check in LAST_CHECKS for scope in graph.scopes() for error in check(scope)]
    if errors:
        raise ConversionErrors(errors)
