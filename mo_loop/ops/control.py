"""Loop-5, TensorIterator-1 and If-8; mo_loop/ops/port_map.py connects them with their bodies."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from mo_loop.errors import TypeError_
from mo_loop.graph import UNKNOWN, Graph, Node, TensorType, Value, boolean, element_count, i32, i64, normalise_axis
from mo_loop.graph.dimension import Dimension, Symbol, fresh, high, least, low
from mo_loop.ops.base import Constant, Op, Parameter
from mo_loop.ops.infer import covers_type, exported, join_types, symbols_in, widen_types
from mo_loop.ops.port_map import Concatenated, Invariant, Merged, Sliced

STEPS = "steps_per_iteration"
"""The entry of the rt_info of a loop with several steps in each iteration."""


def slice_count(dim: Dimension, start: int, end: int, stride: int, part_size: int) -> Dimension:
    """The number of slices of a dimension; negative `start` and `end` count from the end, -1 is the end itself."""
    step = abs(stride) or 1
    first, last = (start, end) if stride > 0 else (end, start)
    if first == 0 and last == -1:
        span: Dimension = dim
    elif isinstance(dim, int):
        span = max((last + dim + 1 if last < 0 else last) - (first + dim + 1 if first < 0 else first), 0)
    elif (first < 0) == (last < 0):
        span = max(last - first, 0)
    else:
        return fresh()
    return span if step == 1 else (span + (step - 1) if part_size < step else span) // step


def iteration_count(
    trip: TensorType | None, sliced: Sequence[Dimension], *, starts: bool = True, goes_on: bool = True,
    stops: bool = False,
) -> Dimension:
    """The number of iterations, as exactly as it is known.

    Args:
        trip: type of the trip count input; None without one (TensorIterator, Scan).
        sliced: number of slices of each sliced input, if there is no trip count.
        starts: the execution condition is proven true before the first iteration.
        goes_on: the condition of the body is proven true.
        stops: the condition of the body is proven false: there is no second iteration.
    """
    if trip is None:
        static = [count for count in sliced if isinstance(count, int)]
        return static[0] if static else sliced[0] if sliced else 1
    limit: Any = trip.known.reshape(-1)[0] if trip.known is not None and trip.known.size == 1 else None
    if isinstance(limit, int) and limit < 0:
        return fresh(1 if starts else 0, 1 if stops else None)
    if stops:
        return fresh(min(max(least(limit), 0), 1) if starts and limit is not None else 0, 1)
    if limit is None:
        return fresh()
    if not isinstance(limit, int) and limit.lo < 0:
        known = None if limit.now is None or not (starts and goes_on) else max(limit.now, 0)
        return fresh(now=known, sources=tuple(limit.symbols()))
    dimension: Dimension = limit
    return dimension if starts and goes_on else fresh(min(low(dimension), 1) if starts else 0, high(dimension))


class Control(Op, abstract=True):
    """Base of the operations with bodies."""

    input_map: tuple[Any, ...]
    output_map: tuple[Any, ...]

    first_data_port: ClassVar[int] = 0

    def __init__(self, *inputs, graph: Graph | None = None, name: str = "", **attributes: Any) -> None:
        super().__init__(*inputs, graph=graph, name=name, **attributes)
        for body in self.bodies:
            body.owner = self

    @property
    def fed(self) -> list[tuple[Any, Value]]:
        """The entries of the input map, each with its outer value."""
        pairs = zip(self.input_map, self.data_inputs, strict=True)
        return [(entry, value) for entry, value in pairs if value is not None]

    @property
    def returned(self) -> list[tuple[Any, Value]]:
        """The entries of the output map, each with its output."""
        return list(zip(self.output_map, self.outputs, strict=True))

    def outer(self, parameter: Parameter) -> Value | None:
        """The outer value that a Parameter of a body starts from; None for one without an input: the iteration."""
        return next((value for entry, value in self.fed if parameter in vars(entry).values()), None)

    @property
    def data_inputs(self) -> tuple[Value | None, ...]:
        """The inputs that have an entry in the input map: all except trip count and condition."""
        return self.inputs[self.first_data_port :]

    def xml_attributes(self) -> dict[str, Any]:
        return {}

    def _remapped(self, nodes: dict[Node, Node]) -> None:
        def swap(entry):
            changes = {k: nodes[v] for k, v in vars(entry).items() if isinstance(v, Node) and v in nodes}
            return replace(entry, **changes)

        self.__dict__["input_map"] = tuple(swap(entry) for entry in self.input_map)
        self.__dict__["output_map"] = tuple(swap(entry) for entry in self.output_map)


class Iteration(Control, abstract=True):
    """Base of Loop and TensorIterator: one body, states, slices. An iteration is `steps` steps of the model's loop."""

    body: Graph

    def __init__(self, *inputs, graph: Graph | None = None, name: str = "", **attributes: Any) -> None:
        self.__dict__["_initial"] = None
        super().__init__(*inputs, graph=graph, name=name, **attributes)

    @property
    def bodies(self) -> tuple[Graph, ...]:  # type: ignore[override]  # computed here, a constant in Node
        return (self.body,)

    @property
    def steps(self) -> int:
        """The number of steps of the model's loop in an iteration."""
        return int(self.rt_info.get(STEPS, {"value": "1"})["value"])

    @steps.setter
    def steps(self, number: int) -> None:
        self.rt_info[STEPS] = {"value": str(number)}

    @property
    def back_edges(self) -> list[Merged]:
        return [entry for entry in self.input_map if isinstance(entry, Merged)]

    @property
    def count(self) -> Dimension:
        """The number of iterations."""
        sliced = [self._slice_type(entry, value.type)[1] for entry, value in self.fed if isinstance(entry, Sliced)]
        return iteration_count(None, sliced)

    def remap_bodies(self, clone: Callable[[Graph], tuple[Graph, dict[Node, Node]]]) -> None:
        body, nodes = clone(self.body)
        self.__dict__["body"] = body
        self._remapped(nodes)

    def _infer_body(self, types: Sequence[TensorType]) -> list[Dimension]:
        """Infer the types of the body by fixpoint from the initial types; returns the numbers of slices."""
        if len(types) != len(self.input_map):
            raise TypeError_(f"{len(types)} inputs for a port map of {len(self.input_map)}", code="ML237")
        # Widening starts again only after the inputs changed, and not because an outer loop widens its states: then the
        # types only become wider. Otherwise the costs of nested growing states multiply.
        before = self.__dict__["_initial"]
        afresh = before is not None and before != list(types) and not self._is_in_widening()
        self.__dict__["_initial"] = list(types)
        outer = _symbols_of(types)
        former = [(entry.parameter, entry.parameter.outputs[0].type) for entry in self.back_edges if afresh]
        counts: list[Dimension] = []
        for entry, type_ in zip(self.input_map, types, strict=True):
            if isinstance(entry, Sliced):
                piece, count = self._slice_type(entry, type_)
                counts.append(count)
                entry.parameter.retype(piece)
            elif isinstance(entry, Invariant):
                entry.parameter.retype(type_)
            elif afresh or not covers_type(entry.parameter.outputs[0].type, type_, outer):
                entry.parameter.retype(type_.without_known())
        try:
            for _ in range(1000):
                try:
                    self.body.validate()
                except TypeError_:
                    # A branch that does not run yet may refuse the initial sizes: the former types were wider.
                    wide = [(each, widen_types(type_, each.outputs[0].type, outer)) for each, type_ in former]
                    former = []
                    if all(type_ == each.outputs[0].type for each, type_ in wide):
                        raise
                    for each, type_ in wide:
                        each.retype(type_)
                else:
                    if not self._widen_states(outer):
                        return counts
                self.body.widens = True
        finally:
            self.body.widens = False
        raise TypeError_("the types of the states do not converge", code="ML238")

    def _is_in_widening(self) -> bool:
        """Whether a loop around this one is widening the types of its states."""
        graph: Graph | None = self.graph
        while graph is not None and not graph.widens:
            graph = getattr(graph.owner, "graph", None)  # none yet while the owner is under construction
        return graph is not None

    def _widen_states(self, outer: set[Symbol]) -> bool:
        changed = False
        for entry in self.back_edges:
            old, new = entry.parameter.outputs[0].type, entry.result.value.type
            if UNKNOWN not in (old, new) and (type(old) is not type(new) or old.dtype is not new.dtype):
                start, end = (each.dtype or each for each in (old, new))
                raise TypeError_(f"a state starts as {start} and becomes {end}", code="ML239")
            wide = widen_types(old, new, outer)
            if wide is not old:
                entry.parameter.retype(wide)
                changed = True
        return changed

    def _slice_type(self, entry: Sliced, type_: TensorType) -> tuple[TensorType, Dimension]:
        """The type of one slice, and the number of slices."""
        if type_.shape is None:
            return type_.without_known(), fresh()
        axis = normalise_axis(entry.axis, len(type_.shape))
        count = slice_count(type_.shape[axis], entry.start, entry.end, entry.stride, entry.part_size)
        return type_.with_size(axis, entry.part_size), count

    def _concatenated_type(
        self, entry: Concatenated, inner: TensorType, count: Dimension, visible: set[Symbol]
    ) -> TensorType:
        piece = exported(inner, visible)
        if piece.shape is None:
            return piece
        axis = normalise_axis(entry.axis, len(piece.shape))
        return piece.with_size(axis, piece.shape[axis] * count)

    def _output_types(self, types: Sequence[TensorType], count: Dimension) -> tuple[TensorType, ...]:
        visible = _symbols_of(types)
        pairs = zip(self.input_map, types, strict=True)
        initial = {entry.result: type_ for entry, type_ in pairs if isinstance(entry, Merged)}
        outputs = []
        for entry in self.output_map:
            inner = entry.result.value.type
            if isinstance(entry, Concatenated):
                outputs.append(self._concatenated_type(entry, inner, count, visible))
            elif entry.result in initial and low(count) < 1:
                outputs.append(exported(join_types(inner, initial[entry.result]), visible))
            else:
                outputs.append(exported(inner, visible))
        return tuple(outputs)


class TensorIterator(Iteration, opset=1):
    """Runs the body once for every slice of its sliced inputs. Spec: TensorIterator-1.

    `input_map` has an entry for each input and `output_map` one for each output (mo_loop/ops/port_map.py).
    """

    def infer(self, *types):
        return self._output_types(types, iteration_count(None, self._infer_body(types)))


class Loop(Iteration, opset=5, index=("trip_count",)):
    """Runs the body while a condition holds and a trip count is not reached. Spec: Loop-5.

    Inputs: trip count (i32 or i64, below 0 is unlimited), execution condition, then the data inputs. `input_map` has an
    entry for each data input and `output_map` one for each output (mo_loop/ops/port_map.py). `iteration` is the body
    Parameter that receives the iteration number (None: not read), `condition` the body Result that decides whether
    another iteration follows. With `none_below_zero` a negative trip count means no iteration, as in ONNX;
    GuardTripCounts changes the trip count to the meaning of Loop-5. With `starts` there is at least one iteration, even
    if the types of the trip count and the condition do not prove it.
    """

    iteration: Any = None
    condition: Any
    none_below_zero: bool = False
    starts: bool = False

    first_data_port = 2

    def infer(self, trip_count, execution_condition, *types):
        self.require(trip_count.dtype in (i32, i64), f"the trip count is {trip_count.dtype}, not i32 or i64")
        self.require(execution_condition.dtype is boolean, f"the condition is {execution_condition.dtype}, not boolean")
        for each, what in ((trip_count, "trip count"), (execution_condition, "condition")):
            count = element_count(each.shape)
            self.require(not isinstance(count, int) or count == 1, f"the {what} has {count} elements, not one")
        self._infer_body(types)
        return self._output_types(types, self.count_for(trip_count, execution_condition))

    def count_for(self, trip_count: TensorType, condition: TensorType) -> Dimension:
        if condition.integers == (0,) or trip_count.integers == (0,):
            return 0
        if self.none_below_zero and trip_count.integers is not None and trip_count.integers[0] < 0:
            return 0
        count = iteration_count(
            trip_count, (), starts=condition.integers == (1,), goes_on=self.continues_always,
            stops=self.condition.value.type.integers == (0,),
        )
        return fresh(1, high(count)) if self.starts and low(count) == 0 else count

    @property
    def continues_always(self) -> bool:
        """Whether the condition of the body is proven true."""
        value = self.condition.value
        return value.type.integers == (1,) or (isinstance(value.node, Constant) and bool(value.node.array.all()))

    @property
    def count(self) -> Dimension:
        """The number of iterations, as far as it is known."""
        trip, condition = self.inputs[0], self.inputs[1]
        assert trip is not None and condition is not None
        return self.count_for(trip.type, condition.type)

    def remap_bodies(self, clone: Callable[[Graph], tuple[Graph, dict[Node, Node]]]) -> None:
        body, nodes = clone(self.body)
        self.__dict__["body"] = body
        self.__dict__["condition"] = nodes[self.condition]
        self.__dict__["iteration"] = None if self.iteration is None else nodes[self.iteration]
        self._remapped(nodes)


class If(Control, opset=8):
    """Runs one of two bodies. Inputs: the condition, then the data inputs. Spec: If-8.

    `input_map` has an entry for each data input and `output_map` one for each output (mo_loop/ops/port_map.py).
    """

    then_body: Graph
    else_body: Graph

    first_data_port = 1

    @property
    def bodies(self) -> tuple[Graph, ...]:  # type: ignore[override]  # computed here, a constant in Node
        return (self.then_body, self.else_body)

    def remap_bodies(self, clone: Callable[[Graph], tuple[Graph, dict[Node, Node]]]) -> None:
        then_body, then_nodes = clone(self.then_body)
        else_body, else_nodes = clone(self.else_body)
        self.__dict__.update(then_body=then_body, else_body=else_body)
        self._remapped(then_nodes | else_nodes)

    def infer(self, condition, *types):
        count = element_count(condition.shape)
        self.require(not isinstance(count, int) or count == 1, f"the condition has {count} elements, not one")
        never = {(0,): self.then_body, (1,): self.else_body}.get(condition.integers)  # its inputs keep their types
        for entry, type_ in zip(self.input_map, types, strict=True):
            for parameter in (entry.then, entry.else_):
                if parameter is not None and parameter.graph is not never:
                    parameter.retype(type_)
        for body in self.bodies:
            body.validate()
        visible = _symbols_of(types)
        outputs = []
        for number, entry in enumerate(self.output_map):
            a, b = entry.then.value.type, entry.else_.value.type
            if UNKNOWN not in (a, b) and (type(a) is not type(b) or a.dtype is not b.dtype):
                raise TypeError_(f"output {number} is {a} in then_branch, {b} in else_branch", code="ML239")
            if condition.integers is not None:
                outputs.append(exported(a if condition.integers == (1,) else b, visible))
                continue
            outputs.append(exported(join_types(a, b), visible))
        return tuple(outputs)


def _symbols_of(types: Sequence[Any]) -> set[Symbol]:
    return {symbol for type_ in types for symbol in symbols_in(type_)}
