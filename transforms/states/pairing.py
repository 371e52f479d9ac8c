"""Pairs of inputs of a model and the outputs that are their next values.

    pairs = find_pairs(graph, {"h0": "hN", "mask": ""})
    [(pair.input, pair.output, pair.evidence) for pair in pairs.found]
    # [("h0", "hN", "given"), ("past.0.key", "present.0.key", "Concat along axis 2")]

The graph decides. Strong evidence is a trail (cache_updates.py): the output is the input with something appended or
written into it. Weak evidence is an output of the type and shape of an input that depends on it. It counts if both have
no other partner, and if other inputs and outputs remain, because the main output of a model is not a state; with strong
pairs the names must fit as well. Otherwise names only decide between several partners. A pass-through is not a pair
unless it is given.

Outputs that continue inputs, by the names that exporters give them; the names of states.

>>> is_next("past_key_values.0.key", "present.0.key"), is_next("h0", "hN"), is_next("past_0", "present_1")
(True, True, False)
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeVar

from mo_loop.errors import UsageError
from mo_loop.graph.shape import has_equal_sizes_now
from mo_loop.graph.types import TensorType
from mo_loop.transforms.states.cache_updates import Trail, growth_of, misfit, trails_of
from mo_loop.transforms.vocabulary import Graph, Parameter, Result, Value

Given = Mapping[str, str] | Iterable[tuple[str, str]]
N = TypeVar("N")


@dataclass(frozen=True)
class Pair:
    """An input and the output that is its next value; `growing` is the axis along which it grows."""

    parameter: Parameter
    result: Result
    input: str
    output: str
    growing: int | None
    evidence: str
    strength: Literal["given", "strong", "weak"]

    @classmethod
    def found(
        cls, parameter: Parameter, result: Result, growing: int | None, evidence: str,
        strength: Literal["strong", "weak"],
    ) -> Self:
        """A pair that the graph shows, by the first names of both."""
        return cls(parameter, result, input_names(parameter)[0], output_names(result)[0], growing, evidence, strength)

    @property
    def variable_id(self) -> str:
        """The name of its variable."""
        return variable_id(self.input, self.output)


@dataclass(frozen=True)
class Ambiguity:
    """Inputs and outputs that continue each other in more than one way."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class StatePairs:
    """The result of `find_pairs`, in the order of the inputs; `kept` are the inputs that the caller keeps as inputs."""

    found: tuple[Pair, ...]
    ambiguous: tuple[Ambiguity, ...]
    kept: tuple[str, ...]

    def require_clear(self) -> None:
        """UsageError if a pair is ambiguous."""
        if not self.ambiguous:
            return
        texts = [f"{_listed(each.inputs)} with {_listed(each.outputs)} ({each.reason})" for each in self.ambiguous]
        example = self.ambiguous[0]
        raise UsageError(
            f"which outputs continue which inputs is not clear: {'; '.join(texts)}", code="ML202",
            why="the graph and the names allow several pairs",
            hint=f"give the pair, --stateful-pair {example.inputs[0]}={example.outputs[0]}, or keep the input, "
            f"--stateful-pair {example.inputs[0]}=",
        )


def find_pairs(graph: Graph, given: Given = ()) -> StatePairs:
    """The pairs of a model, translated or later; `given` ones are taken as they are, `(name, "")` keeps an input.

    Raises:
        UsageError: a given name does not exist, or is given twice.
        UnsupportedError: a given pair does not fit.
    """
    search = _Search(graph)
    kept = search.take_given(given)
    ambiguous = search.take("strong")
    ambiguous += search.take("weak")
    order = {parameter: number for number, parameter in enumerate(graph.parameters)}
    return StatePairs(tuple(sorted(search.pairs, key=lambda pair: order[pair.parameter])), tuple(ambiguous), kept)


def given_pairs(graph: Graph, given: Given) -> tuple[Pair, ...]:
    """The given pairs alone, with the errors of `find_pairs`."""
    search = _Search(graph)
    search.take_given(given)
    return tuple(search.pairs)


class _Search:
    """The inputs and outputs that have no partner yet."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.pairs: list[Pair] = []
        self.kept = 0  # inputs that the caller keeps, although an output continues them
        self.inputs = [each for each in graph.parameters if isinstance(each.output.type, TensorType)]
        self.outputs = [each for each in graph.results if isinstance(each.value.type, TensorType)]
        self.trails = trails_of(graph)

    # -- given pairs

    def take_given(self, given: Given) -> tuple[str, ...]:
        kept: list[str] = []
        by_input = _by_name((each, input_names(each)) for each in self.graph.parameters)
        by_output = _by_name((each, output_names(each)) for each in self.graph.results)
        items = given.items() if isinstance(given, Mapping) else given
        for before, after in items:
            parameter = by_input.get(before)
            if parameter is None:
                raise _unknown(f"the model has no input {before!r}", [input_names(p) for p in self.graph.parameters])
            result = by_output.get(after) if after else None
            if after and result is None:
                raise _unknown(f"the model has no output {after!r}", [output_names(r) for r in self.graph.results])
            if parameter not in self.inputs:
                raise UsageError(f"the input {before!r} is in two pairs, or is not a tensor", code="ML202")
            if result is None:
                likely = (*self._strong(), *(each for each in self._weak() if _fits_by_name(each)))
                self.kept += any(each.parameter is parameter for each in likely)
                self.inputs.remove(parameter)
                kept.append(before)
                continue
            if result not in self.outputs:
                raise UsageError(
                    f"the output {after!r} cannot be the next value of {before!r}: it is that of another input, or no "
                    "tensor", hint="name each output once", code="ML202",
                )
            self._take(parameter, result, before, after)
        return tuple(kept)

    def _take(self, parameter: Parameter, result: Result, before: str, after: str) -> None:
        trail = self.trails.get(result.value, {}).get(parameter)
        growth = growth_of(parameter, result, None if trail is None else trail.appended)
        if isinstance(growth, str):
            raise misfit(before, after, parameter, result, growth)
        self._accept(Pair(parameter, result, before, after, growth, "given", "given"))

    def _accept(self, pair: Pair) -> None:
        self.inputs.remove(pair.parameter)
        self.outputs.remove(pair.result)
        self.pairs.append(pair)

    # -- found pairs

    def take(self, strength: Literal["strong", "weak"]) -> list[Ambiguity]:
        """Take pairs until none is unique any more; the remaining ones are ambiguous.

        Weak ones begin with those whose names fit: any of the others can be the main input and output of the model.
        """
        candidates = list(self._strong() if strength == "strong" else self._weak())
        orders = (_is_unique, _is_named) if strength == "strong" else (_is_named, _is_unique)
        while True:
            free = [each for each in candidates if each.parameter in self.inputs and each.result in self.outputs]
            if strength == "weak" and not self._leaves_others(1):
                return []
            chosen = next((each for fits in orders for each in free if fits(each, free)), None)
            if chosen is None:
                return list(_ambiguities(free, strength))
            fits = _is_named if _is_named(chosen, free) else _is_unique
            rest = [each for each in free if fits(each, free)]
            if strength == "weak" and not self._leaves_others(len(rest)):
                return [_ambiguity(rest, "they cannot all be states, because no other input or output would remain")]
            self._accept(chosen)

    def _leaves_others(self, more: int) -> bool:
        """Whether the model has inputs and outputs besides states and `more` pairs. Inputs that are kept can be states.
        """
        taken = len(self.pairs) + more
        return len(self.graph.parameters) - self.kept > taken and len(self.graph.results) > taken

    def _strong(self) -> Iterator[Pair]:
        for result in self.outputs:
            for parameter, trail in self.trails.get(result.value, {}).items():
                if parameter not in self.inputs or not trail.changes or not _in_place(trail, parameter):
                    continue
                growth = growth_of(parameter, result, trail.appended)
                if isinstance(growth, str):
                    continue
                found = Pair.found(parameter, result, growth, ", ".join(trail.changes), "strong")
                if not trail.by_name or _fits_by_name(found):
                    yield found

    def _weak(self) -> Iterator[Pair]:
        """Pairs with outputs that do not contain the input. With strong pairs the names must fit: such a model has its
        states."""
        reached = _dependencies(self.graph)
        has_strong = any(pair.strength == "strong" for pair in self.pairs)
        for result in self.outputs:
            mask = reached.get(result.value, 0)
            for number, parameter in enumerate(self.graph.parameters):
                own = parameter.output
                if parameter not in self.inputs or result.value is own:
                    continue
                if own.shape is None or own.dtype is not result.value.dtype or own.rank != result.value.rank:
                    continue
                if not has_equal_sizes_now(own.type.dims, result.value.type.dims):
                    continue
                if parameter in self.trails.get(result.value, {}):  # passed through, or moved
                    continue
                found = Pair.found(parameter, result, None, f"depends on it, and is {own.type} as well", "weak")
                is_named = _fits_by_name(found)
                if mask >> number & 1:
                    if is_named or not has_strong:
                        yield found
                elif is_named:
                    yield replace(found, evidence=f"is {own.type} as well, and the names fit")


def _in_place(trail: Trail, parameter: Parameter) -> bool:
    """Whether no axis has moved. One of size 1 may: the elements keep their order, and the shapes are compared."""
    sizes = parameter.output.type.dims
    return all(axis in (None, number) or sizes[axis] == 1 for number, axis in enumerate(trail.axes))


def _is_unique(each: Pair, free: list[Pair]) -> bool:
    return sum(other.parameter is each.parameter or other.result is each.result for other in free) == 1


def _is_named(each: Pair, free: list[Pair]) -> bool:
    """Whether the names fit, and those of no other candidate for the same input or output do as well."""
    rivals = [other for other in free if other.parameter is each.parameter or other.result is each.result]
    fitting = [other for other in rivals if _fits_by_name(other)]
    if len(fitting) > 1:  # past_k and k, which is appended to it, with new_k
        fitting = [other for other in fitting if any(map(is_past, input_names(other.parameter)))]
    return fitting == [each]


def _fits_by_name(each: Pair) -> bool:
    outputs = output_names(each.result)
    return any(is_next(before, after) for before in input_names(each.parameter) for after in outputs)


def _ambiguities(free: list[Pair], strength: str) -> Iterator[Ambiguity]:
    """The candidates in groups that share an input or an output."""
    rest = list(free)
    while rest:
        group = [rest.pop(0)]
        for each in group:
            near = [other for other in rest if other.parameter is each.parameter or other.result is each.result]
            group += near
            rest = [other for other in rest if other not in near]
        is_strong = strength == "strong"
        yield _ambiguity(group, group[0].evidence if is_strong else "the outputs depend on inputs of their type")


def _ambiguity(group: list[Pair], reason: str) -> Ambiguity:
    inputs = dict.fromkeys(input_names(each.parameter)[0] for each in group)
    outputs = dict.fromkeys(output_names(each.result)[0] for each in group)
    return Ambiguity(tuple(inputs), tuple(outputs), reason)


def _dependencies(graph: Graph) -> dict[Value, int]:
    """For each value the Parameters that it depends on, as bits."""
    reached = {parameter.output: 1 << number for number, parameter in enumerate(graph.parameters)}
    for node in graph.ordered():
        mask = 0
        for value in node.inputs:
            mask |= 0 if value is None else reached.get(value, 0)
        if mask:
            for output in node.outputs:
                reached[output] = reached.get(output, 0) | mask
    return reached


# -- names


def input_names(parameter: Parameter) -> tuple[str, ...]:
    """The names of an input, the first of which identifies it."""
    return _names((*parameter.output.names, parameter.name), parameter.label)


def output_names(result: Result) -> tuple[str, ...]:
    """The names of an output, the first of which identifies it."""
    node = result.value.node
    of_node = (node.name,) if len(node.outputs) == 1 else ()  # an If has the name of one of its outputs
    return _names((*result.output_names, *result.value.names, *of_node), result.label)


def _names(names: Iterable[str], otherwise: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name)) or (otherwise,)


def _by_name(ports: Iterable[tuple[N, tuple[str, ...]]]) -> dict[str, N]:
    found: dict[str, N] = {}
    for port, names in ports:
        for name in names:
            found.setdefault(name, port)
    return found


def _unknown(message: str, names: list[tuple[str, ...]]) -> UsageError:
    shown = ", ".join(each[0] for each in names[:20]) + (", ..." if len(names) > 20 else "")
    return UsageError(message, why=f"those of the model are {shown}", hint="give one of these names", code="ML202")


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


_WORDS = re.compile(r"\d+|[A-Za-z]+")

_PAST = frozenset(("past", "old", "prev", "previous", "last"))

_TIMES = _PAST | frozenset(
    ("present", "new", "next", "in", "out", "input", "output", "initial", "init", "final", "updated", "cur", "current")
) | {"l"}
"""Words that show which of the two a name is, and not the carried tensor; torch begins the name of an input with `l_`.
"""

BEAM_INDEX = "beam_idx"
"""The input that reorders caches along the batch, by the name that openvino_genai and optimum-intel expect."""


def variable_id(before: str, after: str) -> str:
    """OpenVINO's name of the variable of an input and of the output that is its next value."""
    return before + after


def is_next(before: str, after: str) -> bool:
    """Whether two names differ as those of a state before and after an inference do."""
    if before == after or not before or not after:
        return False
    if after in (f"{before}n", f"{before}N", f"{before}_n", f"{before}_N"):
        return True
    stem = re.fullmatch(r"(.+?)_?0", before)
    if stem is not None and after.lower() in (f"{stem[1]}n".lower(), f"{stem[1]}_n".lower()):
        return True
    return (before, after) == ("past", "present") or _carried(before) == _carried(after) != ()


def is_past(name: str) -> bool:
    """Whether a name shows that the value is that of an earlier inference."""
    return not _PAST.isdisjoint(word.lower() for word in _WORDS.findall(name))


def _carried(name: str) -> tuple[str, ...]:
    """The words of a name without those of `_TIMES`; `past_key_values` and `present_key_values` are such words too."""
    name = re.sub(r"(past|present)_key_values?(?=$|[^a-z])", r"\1", name)
    return tuple(word for word in (found.lower() for found in _WORDS.findall(name)) if word not in _TIMES)
