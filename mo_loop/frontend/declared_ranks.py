"""Values whose rank differs between runs, with the rank that the model declares for them."""

from __future__ import annotations

from collections.abc import Iterable

from mo_loop import ops
from mo_loop.frontend.doubts import Doubts
from mo_loop.frontend.leading_ones import SQUEEZED, decided, shown_least
from mo_loop.frontend.scope import Scope
from mo_loop.graph import Value
from mo_loop.graph.dimension import may_be_one


def of_declared_rank(value: Value, name: str, scope: Scope, doubts: Doubts) -> Value:
    """The value called `name`; if its rank differs between runs, with the declared one, where its sizes show it."""
    least = scope.least_ranks.get(value)
    rank = None if least is None else _declared(name, scope)  # which reads the whole graph
    made = None if least is None or rank is None else decided(value, least, rank)
    if made is None:
        return value
    doubts.declared_rank(scope.path, name, rank)
    return made


def of_declared_ranks(
    values: Iterable[Value | None], names: Iterable[str], scope: Scope, doubts: Doubts
) -> list[Value | None]:
    """The inputs of a node with the declared ranks."""
    return [value and of_declared_rank(value, name, scope, doubts) for value, name in zip(values, names, strict=True)]


def output_of_one_rank(name: str, scope: Scope, doubts: Doubts) -> Value:
    """An output of the model; if its rank differs between runs, with the declared rank, else with the widest one."""
    value = scope[name]
    least = scope.least_ranks.get(value)
    if least is None:
        return value
    rank, dims, lowest = _declared(name, scope), value.type.dims, shown_least(value, scope.least_ranks)
    widest = len(dims)
    if rank is not None and lowest <= rank < widest:
        extra = list(range(widest - rank))
        if least == SQUEEZED:
            value = decided(value, least, rank) or value
        elif all(dim == 1 or may_be_one(dim) for dim in dims[: len(extra)]):
            value = ops.Squeeze(value, extra).output  # the runtime refuses another size
    doubts.output_rank(name, lowest, widest, len(value.type.dims))
    return value


def _declared(name: str, scope: Scope | None) -> int | None:
    """The rank that the nodes or the declarations of this graph, or of one around it, give to a name."""
    while scope is not None:
        found = scope.ranks.of(name) if scope.ranks is not None else None
        if found is not None:
            return found.rank
        name, scope = scope.aliases.get(name, name), scope.outer
    return None
