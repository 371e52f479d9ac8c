"""If, also around branches that cannot run, and the parts that it shares with loops."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop import ops as operations
from mo_loop.errors import ConversionErrors, MoLoopError
from mo_loop.frontend.context import TranslatedBody
from mo_loop.frontend.loop_bodies import least_of, lower_of, require_one_kind
from mo_loop.frontend.rank_variants import with_equal_ranks, with_rank
from mo_loop.frontend.vocabulary import Body, Context, Graph, ModelError, Value, ops, translates
from mo_loop.graph.shape import element_count
from mo_loop.graph.types import TensorType, boolean
from mo_loop.ops.base import Result
from mo_loop.ops.front import Failed
from mo_loop.ops.port_map import Branched, Selected

_NAMES = ("then_branch", "else_branch")


@translates("If", since=1)
def if_(condition, *, then_branch: Body, else_branch: Body, node: Context):
    """If-8, or one branch alone if the condition is known."""
    return selected(condition, then_branch, else_branch, node)


def selected(condition: Value, then_branch: Body, else_branch: Body, node: Context, *, by_ones: bool = False) -> Any:
    """An If; with `by_ones`, outputs whose ranks differ by leading sizes of 1 alone get the wider rank."""
    decided = is_decided(condition)
    if decided is not None:
        return (then_branch if decided else else_branch).inline()
    flag = as_condition(condition)
    then, else_ = then_branch.translate([]), else_branch.translate([])
    for branch, other in ((then, else_branch), (else_, then_branch)):
        if cannot_run(branch):
            return other.inline()
    impossible = [_is_impossible(then) and not else_.has_failed, _is_impossible(else_) and not then.has_failed]
    if any(impossible):
        (dead, alive), failures = _NAMES if impossible[0] else _NAMES[::-1], (*then.failures(), *else_.failures())
        node.translation.doubts.branch_left_out(
            node.proto,
            f"{node.path}: {dead} is assumed never to run, because its shapes do not fit ({failures[0].where}: "
            f"{failures[0].message}); the model is converted with {alive} alone",
            node.origin,
        )
        return (else_branch if impossible[0] else then_branch).inline()
    node.translation.doubts.branch_left_out(node.proto)
    if then.has_failed or else_.has_failed:
        return failed_outputs(node, then, [flag], else_)
    if len(then.results) != len(else_.results):
        raise ModelError(
            f"numbers of outputs of then_branch ({len(then.results)}) and else_branch ({len(else_.results)}) differ",
            code="ML226",
        )
    pairs = list(zip(then.results, else_.results, strict=True))
    for a, b in pairs:
        require_one_kind(a.value.type, b.value.type)
    ranks = node.scope.least_ranks
    least = [lower_of(least_of(a.value, ranks), b.value, ranks) for a, b in pairs]
    for a, b in pairs if by_ones else ():
        one, other = with_equal_ranks(a.value.type, b.value.type, by_ones=True)
        set_value(a, with_rank(a.value, getattr(one, "rank", None)))
        set_value(b, with_rank(b.value, getattr(other, "rank", None)))
    values: dict[Value, None] = dict.fromkeys(c.outer for c in (*then.captures, *else_.captures))
    then_of = {capture.outer: capture.parameter for capture in then.captures}
    else_of = {capture.outer: capture.parameter for capture in else_.captures}
    made = operations.If(
        flag, *values, graph=node.graph, then_body=then.graph, else_body=else_.graph,
        input_map=tuple(Branched(then_of.get(value), else_of.get(value)) for value in values),
        output_map=tuple(Selected(a, b) for a, b in pairs),
    )  # fmt: skip
    for output, rank in zip(made.outputs, least, strict=True):
        if isinstance(output.type, TensorType):
            node.scope.set_least_rank(output, rank)
    return made


def cannot_run(body: TranslatedBody) -> bool:
    """Whether the only error is that a body reads an absent element: then no successful run executes the body."""
    failures = body.failures()  # none if each failed node reads one that failed outside
    return bool(failures) and all(error.code in ("ML241", "ML243") for error in failures)


def _is_impossible(body: TranslatedBody) -> bool:
    """Whether the only errors are shapes that do not fit an operation: then no successful run executes the body.

    In a loop they may be those of the first iteration. Later ones have other shapes only through a branch that runs.
    """
    failures = body.failures()
    return bool(failures) and all(error.code in ("ML231", "ML232", "ML233", "ML235") for error in failures)


def one_element(value: Value) -> Value:
    """A tensor of one element and any rank as a scalar."""
    if value.rank == 0:
        return value
    count = element_count(value.shape)
    if isinstance(count, int) and count != 1:
        raise ModelError(f"a trip count or condition has {count} elements, not one", code="ML229")
    return ops.Reshape(value, np.zeros(0, np.int64), special_zero=False)


def as_condition(value: Value) -> Value:
    """The condition as a boolean scalar; old exporters write conditions of integer type."""
    if value.dtype is not boolean:
        value = ops.NotEqual(value, 0)
    return one_element(value)


def is_decided(condition: Value) -> bool | None:
    """The value of a constant condition, None for any other."""
    known = condition.type.integers
    if known is not None and len(known) == 1:
        return bool(known[0])
    return None


def set_value(result: Result, value: Value) -> None:
    result.graph.set_input(result, 0, value)


def failed_outputs(
    node: Context,
    body: TranslatedBody,
    inputs: Sequence[Value],
    other: TranslatedBody | None = None,
    graph: Graph | None = None,
) -> Failed:
    """A Failed node with the errors of the bodies; `unsupported_operators` finds further errors."""
    errors = [*body.failures(), *(other.failures() if other is not None else ())]
    error: MoLoopError | None = ConversionErrors(errors) if errors else None
    captured = [each.outer for one in (body, other) if one is not None for each in one.captures]
    home = graph or node.graph
    read = [value for value in captured if isinstance(value.node, Failed) and value.graph is home]
    return Failed(*inputs, *read, graph=home, error=error, count=max(len(node.outputs), 1), name=node.path)
