"""The inputs and outputs of the graph; with --sequence-io packed a sequence becomes two tensors.

x: seq(f32[?,4])   ->   x.data: f32[?]      the elements flattened and concatenated
                        x.shapes: i64[?,2]  one row for each element

The declared sizes of inputs are symbols, because an IR may be given other sizes, with what a conversion assumes.

    sizes = InputSizes()
    while True:
        try:
            return translate(model, cut, sizes=sizes)   # x: f32[1,3,224,224], four symbols that print as numbers
        except Assumption as needed:
            sizes.assume(needed)                            # in the next attempt x[0] is the number 1

The pass WriteSizes writes the declared sizes into the inputs of the IR, and checks of what was assumed. A BatchCut
sets their batch sizes (--batch). Inputs and vectors whose sizes are not known get the ranks that other nodes force, or
that the model declares:

    start = with_rank(start, scope, translation)    # an input of the model, of the rank that the nodes after it force
    inputs = with_length(node, inputs)              # Reshape(x, v): v has as many elements as the result dimensions

`Ranks` (declared_types.py) finds the ranks. A rank that only a declaration gives is a warning.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from mo_loop import ops
from mo_loop.conversion_limits import budget
from mo_loop.errors import ExtensionError, InternalError, LimitError, MoLoopError, UnsupportedError, UsageError
from mo_loop.frontend.context import Context, Translation
from mo_loop.frontend.cut import Cut, Start
from mo_loop.frontend.declared_types import type_from
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import main_graph
from mo_loop.frontend.scope import Scope
from mo_loop.graph import Graph, OptionalType, SequenceType, TensorType, Value, i64, string
from mo_loop.graph.dimension import Assumption, Dim, Dimension, Symbol, fresh, opened
from mo_loop.graph.shape import assume_elements, assume_fixed
from mo_loop.ops.base import Constant, Identity, Op, Parameter, Result
from mo_loop.ops.front import Failed
from mo_loop.ops.sequences import Optional
from mo_loop.origin import Origin, made_for
from mo_loop.preprocessing import Layout, PerInput

T = TypeVar("T")

FIXED = frozenset({"com.microsoft::DynamicSparseAttention"})
"""The operators whose forms need the sizes of all inputs."""

OF_ELEMENTS = frozenset({"GRU", "LSTM", "RNN"})
"""The operators with another form for tensors without elements. transforms/total_operations.py knows the operations
of which the runtime does not compute tensors without elements."""

OF_VECTORS = frozenset({"Pad", "Slice", "Tile"})
"""The operators whose other inputs are vectors with a number for each axis. Those whose vector decides the rank of the
output are in SHAPED."""


@dataclass
class InputSizes:
    """The assumptions of a conversion about the sizes of inputs. With `all_fixed` every size is a number."""

    all_fixed: bool = False
    has_open: bool = False
    """Whether an input of the last attempt has a size that is not fixed."""
    _fixed: set[str] = field(default_factory=set)
    _least: dict[str, int] = field(default_factory=dict)
    _equal: dict[str, Symbol] = field(default_factory=dict)
    """The name of a symbol -> the symbol that stands for it."""

    def own(self, name: str, type_: TensorType) -> tuple[Dim | None, ...]:
        """The symbol of each declared size of an input; None for a size that the model does not declare."""
        shape = type_.shape or ()
        return tuple(opened(name, axis, size) if isinstance(size, int) else None for axis, size in enumerate(shape))

    def opened(self, name: str, type_: TensorType) -> TensorType:
        """The type of an input with symbols for its declared sizes, as far as they are not fixed."""
        if type_.shape is None or self.all_fixed:
            return type_
        pairs = zip(type_.shape, self.own(name, type_), strict=True)
        dims = tuple(size if own is None else self._dimension(own) for size, own in pairs)
        self.has_open |= dims != type_.shape
        return type_.with_shape(dims)

    def _dimension(self, own: Dim) -> Dimension:
        """Inputs without elements have forms of their own: a size of 0 is fixed."""
        assert own.symbol is not None and own.now is not None
        found = self._equal.get(own.symbol.name, own.symbol)
        if found.name in self._fixed or own.now == 0:
            return own.now
        least = self._least.get(found.name, found.lo)
        return Dim(((Symbol(found.name, least, None, found.now), 1),))

    def assume(self, needed: Assumption) -> None:
        """Add assumptions. InternalError if they are not new: the same attempt would follow without end."""
        before = (set(self._fixed), dict(self._least), dict(self._equal))
        for group in needed.equal:
            self._unite(group)
        self._fixed |= {self._equal.get(each.name, each).name for each in needed.fixed}
        for symbol, least in needed.least.items():
            name = self._equal.get(symbol.name, symbol).name
            self._least[name] = max(least, self._least.get(name, 0))
        if before == (self._fixed, self._least, self._equal):
            raise InternalError("an assumption about the sizes of inputs is needed again", code="ML400")

    def _unite(self, group: set[Symbol]) -> None:
        """Let one symbol stand for all of a group, and for all that these stand for."""
        heads = {self._equal.get(each.name, each) for each in group}
        head = min(heads, key=lambda symbol: symbol.name)
        names = {each.name for each in heads}
        for name, symbol in list(self._equal.items()):
            if symbol.name in names:
                self._equal[name] = head
        self._equal |= {name: head for name in names}
        if names & self._fixed:
            self._fixed.add(head.name)
        least = max((self._least.get(name, 0) for name in names), default=0)
        if least:
            self._least[head.name] = least


def attempted(make: Callable[[InputSizes], T | None], sizes: InputSizes) -> T | None:
    """The result of `make` once it needs no more assumptions about `sizes`.

    A model that cannot be converted for other sizes is converted for the declared ones alone; if this fails too, its
    error is raised.
    """
    while True:
        budget().begin()
        sizes.has_open = False
        try:
            made = make(sizes)
        except Assumption as needed:
            sizes.assume(needed)
            continue
        except MoLoopError as error:
            of_options = isinstance(error, UsageError | ExtensionError | LimitError)
            if not sizes.has_open or of_options or error.exit_code == 4:
                raise
        else:
            if made is not None or not sizes.has_open:
                return made
        sizes.all_fixed = True


def require_sizes_of(operator: str, inputs: Sequence[Value | None]) -> None:
    """Assumption if the operator needs sizes that are open: one of `FIXED`, `OF_ELEMENTS` or `OF_VECTORS`, or one of
    classical machine learning, whose attributes are made for a number of features."""
    if operator in FIXED:
        assume_fixed(_dimensions(inputs))
    elif operator.startswith("ai.onnx.ml::"):
        assume_fixed(shape[-1] for each in inputs if each is not None and (shape := each.shape))
        assume_elements(_dimensions(inputs))
    elif operator in OF_ELEMENTS:
        assume_elements(_dimensions(inputs))
    elif operator in OF_VECTORS:
        assume_fixed(each.type.dims[0] for each in inputs[1:] if each is not None and each.rank == 1)


def require_sizes_of_failures(graph: Graph) -> None:
    """Assumption if nodes could not be translated and sizes of inputs are open: fixed sizes may be what they need."""
    failed = [node for scope in graph.scopes() for node in scope.of(Failed) if node.error is not None]
    for is_vector in (True, False):  # the length of a vector may decide a rank
        inputs = [each for node in failed for each in node.inputs if each is not None]
        assume_fixed(_dimensions(each for each in inputs if not is_vector or each.rank == 1))


def _dimensions(inputs: Iterable[Value | None]) -> Iterator[Dimension]:
    """All sizes, and known numbers, of tensors."""
    for value in inputs:
        type_ = None if value is None else value.type
        if isinstance(type_, TensorType):
            yield from type_.shape or ()
            yield from () if type_.known is None else type_.known.flat


SHAPED = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0, "Squeeze": 1, "Unsqueeze": 1}
"""Operator -> the input whose number of elements decides the rank of the output."""


def with_rank(start: Start, scope: Scope, translation: Translation) -> Start:
    """The input; if its rank is not known, with the one that the nodes after it force."""
    if not isinstance(start.type, TensorType) or start.type.rank is not None or start.value is not None:
        return start
    rank = _forced_rank(start.name, scope, translation)
    return start if rank is None else start._replace(type=start.type.with_shape(tuple(fresh() for _ in range(rank))))


def _forced_rank(name: str, scope: Scope, translation: Translation) -> int | None:
    found = scope.ranks.of(name) if scope.ranks is not None and name else None
    if found is not None and found.by_declaration:
        translation.doubts.declared_rank(scope.path, name, found.rank)
    return None if found is None else found.rank


def with_length(context: Context, inputs: list[Value | None]) -> list[Value | None]:
    """The inputs of a node whose output has the number of dimensions that a vector has elements: if this number is
    not known, the one that forced ranks give."""
    place = SHAPED[context.op_type]
    vector = inputs[place] if place < len(inputs) and not context.domain else None
    if vector is None or vector.rank != 1 or isinstance(vector.type.dims[0], int):
        return inputs
    assume_fixed(vector.type.dims)
    count = _forced_rank(context.outputs[0], context.scope, context.translation)
    data = inputs[0]
    if count is not None and context.op_type in ("Squeeze", "Unsqueeze") and data is not None:
        count = None if data.rank is None else abs(count - data.rank)
    return inputs if count is None else [*inputs[:place], vector.reshape([count]), *inputs[place + 1 :]]


@dataclass
class BatchCut(Cut):
    """A cut whose inputs have the batch size `batch`: in the dimension N of their layout, else in the first one.

    An input whose layout has no N has no batch. Without a layout, a static first dimension other than 0 or 1 may not be
    a batch, so it is refused.
    """

    batch: int = 1
    layouts: PerInput[tuple[Layout | None, Layout]] | None = None

    def parameters(self, model: OnnxModel) -> Iterator[Start]:
        starts = list(super().parameters(model))
        open_ = [start for start in starts if start.value is None]
        said = self.layouts.among([{start.name} for start in open_]) if self.layouts else {}
        types = {start.name: self._typed(start, said.get(place)) for place, start in enumerate(open_)}
        if all(types[start.name] is start.type for start in open_):
            raise UsageError(f"--batch {self.batch} changes no input: it is their batch size already")
        yield from (start._replace(type=types.get(start.name, start.type)) for start in starts)

    why_changed: ClassVar[str] = "--batch gives inputs another size"

    def changed_shapes(self, model: OnnxModel) -> str:
        before = {start.name: start.type for start in super().parameters(model)}
        changed = [start.name for start in self.parameters(model) if start.type is not before[start.name]]
        return ", ".join(f"{name} as {before[name]}" for name in changed)

    def _typed(self, start: Start, said: tuple[Layout | None, Layout] | None) -> Any:
        """The type with the batch size; the same object where nothing changes."""
        type_ = start.type.element if isinstance(start.type, OptionalType) else start.type
        if not isinstance(type_, TensorType) or type_.shape is None:
            what = "its rank is unknown" if isinstance(type_, TensorType) else f"it is a {type_}"
            raise self._refused(start.name, what, "give its shape with --input instead")
        axis: int | None = 0
        if said is not None:
            layout = said[0] or said[1]
            if not layout.fits(type_.rank):
                raise UsageError(f"the layout {layout} does not fit the input {start.name!r}: {type_}")
            axis = layout.axis("N", len(type_.shape))
        elif not type_.shape:
            hint = f"if only this one is a scalar, declare it: --layout '{start.name}([])'"
            raise self._refused(start.name, "it is a scalar, without dimensions", hint)
        elif type_.shape[0] not in (0, 1, self.batch) and isinstance(type_.shape[0], int):
            hint = f"if it is, declare it: --layout '{start.name}(n...)'; else give the shapes with --input"
            raise self._refused(start.name, f"its first dimension, {type_.shape[0]}, need not be a batch", hint)
        if axis is None or type_.shape[axis] == self.batch:
            return start.type
        shape = (*type_.shape[:axis], self.batch, *type_.shape[axis + 1 :])
        changed = TensorType(type_.dtype, shape)
        return OptionalType(changed) if isinstance(start.type, OptionalType) else changed

    def _refused(self, name: str, why: str, hint: str) -> UsageError:
        return UsageError(f"--batch {self.batch} cannot be set on the input {name!r}: {why}", hint=hint)


PACK = "give --sequence-io packed: it becomes its data and its shapes, two tensors"


def made_start(graph: Graph, packed: bool, sizes: InputSizes, name: str, start: Start) -> Value:
    """The node of an input: a Parameter, or a Constant if the input is frozen."""
    origin = Origin(output=name)
    if start.value is not None:
        with made_for((origin,)):
            value = Constant(start.value, graph=graph, dtype=start.type.dtype, name=name).output
        value.define(origin)
        return value
    if not isinstance(start.type, TensorType):
        return made_input(graph, name, start.type, packed)
    value = made_input(graph, name, sizes.opened(name, start.type), packed)
    value.node.__dict__["sizes"] = sizes.own(name, start.type)
    return value


def made_input(graph: Graph, name: str, type_: TensorType | SequenceType | OptionalType, packed: bool) -> Value:
    """The Parameter of an input. A sequence has two Parameters, and a node that builds the sequence from them.

    With packed sequences, an optional input is assumed to be present.
    """
    origin = Origin(output=name)
    if isinstance(type_, TensorType):
        with made_for((origin,)):
            value = Parameter(graph=graph, type=type_, name=name).output
        value.define(origin)
        return value
    if not packed:
        raise refused(f"the input {name!r}", "enter", type_, origin)
    if isinstance(type_, OptionalType):
        return made_input(graph, name, type_.element, packed)
    element = type_.element
    if element.dtype is None or element.shape is None or element.dtype is string:
        what = "strings" if element.dtype is string else "tensors of unknown rank"
        raise UnsupportedError(
            f"the input {name!r} is a sequence of {what}: it cannot be packed", code="ML310", where=origin,
            hint="" if element.dtype is string else f"give the shape of an element: --input '{name}[?,?]'",
        )
    data = made_input(graph, f"{name}.data", TensorType(element.dtype, (fresh(),)), packed)
    shapes = made_input(graph, f"{name}.shapes", TensorType(i64, (fresh(), max(len(element.shape), 1))), packed)
    dims = tuple(dim if isinstance(dim, int) else -1 for dim in element.shape)
    with made_for((origin,)):
        return ops.PackedSequence(data, shapes, dims=dims, name=name).output


def make_result(value: Value, name: str, packed: bool) -> None:
    """A model output, two for a sequence. The node before a Result has the same name, so each needs a separate node."""
    if isinstance(value.type, OptionalType) and isinstance(value.node, Optional) and value.node.inputs and packed:
        assert value.node.inputs[0] is not None
        value = value.node.inputs[0]
    if isinstance(value.type, SequenceType) and packed:
        for each, part in zip(ops.PackSequence(value).outputs, ("data", "shapes"), strict=True):
            make_result(Identity(each).output, f"{name}.{part}", packed)
        return
    if isinstance(value.type, SequenceType | OptionalType):
        origin = next((each for each in value.origins if each.output == name), Origin(output=name))
        raise refused(f"the output {name!r}", "leave", value.type, origin)
    node = value.node
    taken = any(use.node.type == "Result" for use in value.uses if isinstance(use.node, Op))
    if node.name != name and (isinstance(node, Parameter | Constant) or (taken and len(node.outputs) == 1)):
        node = Identity(value)
        node.output.take_output(value, name)
        value = node.output
    if not isinstance(node, Parameter | Constant):
        node.name = name
    value.add_name(name)
    Result(value, name=f"{name}/sink_port_0", names=(name,))


def refused(what: str, way: str, type_: SequenceType | OptionalType, origin: Origin) -> UnsupportedError:
    """The error for an input or output that is not a tensor; `way` is "enter" or "leave"."""
    text = f"{what} is a {type_}: only tensors can {way} an IR"
    return UnsupportedError(text, code="ML310", where=origin, hint=PACK)


def boundary_errors(model: OnnxModel, cut: Cut, packed: bool) -> Iterator[UnsupportedError]:
    """The errors of all inputs and outputs that are not tensors. Translation alone would stop at the first of them."""
    scratch = Graph("inputs")
    for start in cut.parameters(model):
        if start.value is not None or start.if_needed:
            continue
        try:
            made_input(scratch, start.name, start.type, packed)
        except UnsupportedError as error:
            yield error
    if packed:
        return
    declared: dict[str, Any] = {entry.name: entry.type for entry in model.proto.graph.output}
    for name in cut.outputs or declared:
        if name in declared and declared[name].WhichOneof("value") in ("sequence_type", "optional_type"):
            try:
                type_ = type_from(declared[name], symbolic=True)
            except UnsupportedError:
                continue  # a sequence of maps: it depends on the node that makes it
            if isinstance(type_, SequenceType | OptionalType):
                yield refused(f"the output {name!r}", "leave", type_, main_graph(model).tensor(name))
