"""If, also around branches that cannot run, and the parts that it shares with loops: the types of states and of
results of branches, while bodies are translated.

    settled(body, ...)        the body of a loop, translated with types of states that hold in every iteration
    with_ranks_of(...)        initial values with the ranks that the states have in the body

A BuiltBody is the body of a Loop that a translator makes of operations, around the nodes of a graph attribute:

    body = BuiltBody(decoder, scope, states=2, outputs=0, make=make)
    loop(trip_count, condition, *initial, body=body, node=node)

    def make(scope, iteration, states):                        # called for each assumed type of the states
        logits, cache = decoder.within(scope).inline(states)   # the nodes of the attribute, in the body
        limit = scope["limit"]                                 # a value of the enclosing graph, captured
        return [condition, *next_states, *scan_outputs]
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mo_loop import ops as operations
from mo_loop.errors import ConversionErrors, MoLoopError, TypeError_, UnsupportedError
from mo_loop.frontend.context import TranslatedBody
from mo_loop.frontend.rank_variants import MOST, SQUEEZED, least_rank, varying, with_equal_ranks, with_rank
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import Body, Context, Graph, ModelError, Value, ops, translates
from mo_loop.graph import Symbol, assume_equal, element_count, fresh, low
from mo_loop.graph.types import UNKNOWN, OptionalType, SequenceType, TensorType, boolean
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.front import Failed
from mo_loop.ops.infer import symbols_in, widen_types
from mo_loop.ops.port_map import Branched, Selected


def settled(
    body: Body, first: list[Any], carried: list[TensorType], last: Sequence[Any], least: list[int | None],
    skip: int = 0,
) -> TranslatedBody:
    """The body, translated with state types that hold in every iteration; `skip` results precede the states.

    Translators use types, so if a state needs a wider type than assumed, or has a lower rank than the `least` one, the
    body is translated again. The wider types are cached for each ONNX body and only grow: for nested loops the
    translations are a sum, not a product.
    """
    remembered = body.widened
    while len(remembered) < len(carried):
        remembered.append(None)
    assumed = [
        type_
        if known is None or not (type(known) is type(type_) and known.dtype is type_.dtype)
        else widen_types(*with_equal_ranks(known, type_), set(symbols_in(known)))
        for type_, known in zip(carried, remembered, strict=True)
    ]
    outer = {symbol for type_ in carried for symbol in symbols_in(type_)}
    ranks = body.scope.least_ranks
    while True:
        lowest = [*(None for _ in first), *least]
        translated = body.translate([*first, *assumed, *last], lowest)
        # A node that reads an element fails while the sequence is empty: it may have elements in the next iteration.
        # So may a state have more rows, and a branch that needs them runs only then.
        is_empty = any(isinstance(type_, SequenceType) and type_.is_empty for type_ in assumed)
        may_fit = translated.is_ill_typed_inside or is_empty
        if translated.has_failed and not may_fit:
            return translated
        results = translated.results[skip : skip + len(assumed)]
        wide = _widened(assumed, results, least, outer)
        if wide is None and translated.has_failed:
            loose = (body.translate([*first, *each, *last], lowest) for each in _loosened(assumed, results))
            found = (each.results[skip : skip + len(assumed)] for each in loose if not each.has_failed)
            wide = next(filter(None, (_widened(assumed, each, least, outer) for each in found)), None)
        pairs = zip(least, results, strict=True)
        lower = [None if rank is None else lower_of(rank, result.value, ranks) for rank, result in pairs]
        if wide is None and lower == least:
            return translated
        least = lower
        if wide is not None:
            assumed = remembered[: len(assumed)] = wide


def _widened(
    assumed: list[Any], results: Sequence[Result], least: Sequence[int | None], outer: set[Symbol]
) -> list[Any] | None:
    """Types that cover the assumed ones and those that the body returns; None if the assumed ones do."""
    pairs: dict[int, tuple[Any, Any]] = {}
    for i, result in enumerate(results):
        old, new = assumed[i], result.value.type
        if new is UNKNOWN:
            continue
        require_one_kind(old, new)
        if not (type(old) is type(new) and old.dtype is new.dtype):
            start, end = (each.dtype or each for each in (old, new))
            raise TypeError_(f"state {i} starts as {start} and becomes {end}", code="ML239")
        lowest = least[i]
        if lowest is not None and (result.value.rank or 0) - lowest <= MOST:
            padded, new = with_equal_ranks(old, new)
            old = old if padded.rank == old.rank else padded
        pairs[i] = old, new
    # Of all states at once: the conversion begins again.
    tensors = [(old.shape, new.shape) for old, new in pairs.values() if isinstance(old, TensorType)]
    sizes = [each for old, new in tensors for each in zip(old or (), new or (), strict=False)]
    assume_equal([old for old, _ in sizes], [new for _, new in sizes])
    found = [widen_types(*pairs[i], outer) if i in pairs else type_ for i, type_ in enumerate(assumed)]
    return found if any(new is not old for new, old in zip(found, assumed, strict=True)) else None


def _loosened(assumed: list[Any], results: Sequence[Result]) -> Iterator[list[Any]]:
    """The types of states with any size along the empty axes, and along all axes, where the next value is not known."""
    for is_open in (lambda dim: dim == 0, lambda dim: True):
        loose = [
            TensorType(type_.dtype, tuple(fresh() if is_open(dim) else dim for dim in type_.shape))
            if result.value.type is UNKNOWN and isinstance(type_, TensorType) and type_.shape is not None
            else type_
            for type_, result in zip(assumed, results, strict=True)
        ]
        if loose != assumed:
            yield loose


def least_of(value: Value, ranks: Mapping[Value, int]) -> int | None:
    """The least rank of a tensor; None if it is not known."""
    return least_rank(value, ranks) if isinstance(value.type, TensorType) and value.rank is not None else None


def lower_of(least: int | None, value: Value, ranks: Mapping[Value, int]) -> int | None:
    """The lower one of a least rank and that of a value."""
    other = least_of(value, ranks)
    if least != other and SQUEEZED in (least, other) and None not in (least, other):
        raise UnsupportedError(
            "a loop or an If joins a value of one rank with one whose rank depends on sizes of 1", code="ML328",
            why="the IR has one rank for a value", hint="give the Squeeze its axes",
        )
    return other if least is None else least if other is None else min(least, other)


def with_ranks_of(parameters: Sequence[Parameter], initial: list[Value], results: Sequence[Result]) -> list[Value]:
    """The initial values of states with the ranks of their Parameters, which the `results` get as well."""
    found = []
    for parameter, value, result in zip(parameters, initial, results, strict=False):
        rank = getattr(parameter.output.type, "rank", None)
        if rank is None or UNKNOWN in (value.type, result.value.type):
            found.append(value)
            continue
        result.graph.set_input(result, 0, with_rank(result.value, rank))
        found.append(with_rank(value, rank))
    return found


def set_final_ranks(node: Context, made: Any, initial: Sequence[Value], last: Sequence[Value]) -> None:
    """Record the least ranks of final values: an initial value is one if there may be no iteration."""
    ranks = node.scope.least_ranks
    runs = low(made.count) > 0
    for output, start, end in zip(made.outputs, initial, last, strict=False):
        if isinstance(output.type, TensorType):
            least = least_of(end, ranks)
            node.scope.set_least_rank(output, least if runs else lower_of(least, start, ranks))


def require_one_rank(reader: str, value: Value, scope: Scope) -> None:
    """UnsupportedError if the rank of a value differs between iterations or branches."""
    if value in scope.least_ranks:
        raise varying(reader, value, scope.least_ranks)


def require_one_kind(a: Any, b: Any) -> None:
    """An optional sequence is a sequence as long as it is known to be present."""
    kinds = [isinstance(type_, OptionalType) for type_ in (a, b)]
    if kinds[0] != kinds[1] and UNKNOWN not in (a, b):
        raise UnsupportedError(f"a value is {a} or {b}: only a tensor can be optional", code="ML325")


Make = Callable[[Scope, Value, list[Value]], Sequence[Value]]


class BuiltBody(Body):
    """A body without a GraphProto of its own: `make` builds its nodes."""

    def __init__(self, part: Body, scope: Scope, states: int, outputs: int, make: Make) -> None:
        """`part` is the graph attribute that the body contains, `scope` encloses the body."""
        super().__init__(part._translation, part.proto, scope, part.origin)
        self._inputs = ["iteration", "condition", *(f"state {place}" for place in range(states))]
        self._outputs = [*self._inputs[1:], *(f"output {place}" for place in range(outputs))]
        self._make = make

    @property
    def inputs(self) -> list[str]:
        return self._inputs

    @property
    def outputs(self) -> list[str]:
        return self._outputs

    def declared(self, index: int) -> Any:
        """Nothing is declared."""
        return UNKNOWN

    def declared_output(self, index: int) -> Any:
        """Nothing is declared."""
        return UNKNOWN

    def translate(self, types: Sequence[Any], least: Sequence[int | None] = ()) -> TranslatedBody:
        """The body with its inputs of these types."""
        graph = Graph(self.origin.operator or "body")
        graph.scope = self.origin.scope
        scope = Scope(graph, self.scope, self.origin.scope)
        scope.require_depth(self.origin)
        parameters = [Parameter(graph=graph, type=each) for each in types]
        for each, rank in zip(parameters, least, strict=False):
            scope.set_least_rank(each.output, rank)
            require_one_rank("a loop carries a value", each.output, scope)
        iteration, _, *states = (each.output for each in parameters)
        results = [Result(each) for each in self._make(scope, iteration, states)]
        return TranslatedBody(graph, parameters, results, scope)


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
        reason = failures[0].first
        node.translation.doubts.branch_left_out(
            node.proto,
            f"{node.path}: {dead} is assumed never to run, because its shapes do not fit ({reason.where}: "
            f"{reason.message}); the model is converted with {alive} alone",
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
    )
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
    return bool(known[0]) if known is not None and len(known) == 1 else None


def set_value(result: Result, value: Value) -> None:
    result.graph.set_input(result, 0, value)


def failed_outputs(
    node: Context, body: TranslatedBody, inputs: Sequence[Value], other: TranslatedBody | None = None,
    graph: Graph | None = None,
) -> Failed:
    """A Failed node with the errors of the bodies; `unsupported_operators` finds further errors."""
    errors = [*body.failures(), *(other.failures() if other is not None else ())]
    error: MoLoopError | None = ConversionErrors(errors) if errors else None
    captured = [each.outer for one in (body, other) if one is not None for each in one.captures]
    home = graph or node.graph
    read = [value for value in captured if isinstance(value.node, Failed) and value.graph is home]
    return Failed(*inputs, *read, graph=home, error=error, count=max(len(node.outputs), 1), name=node.path)
