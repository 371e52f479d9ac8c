"""The declared sizes of inputs: symbols, because an IR may be given other sizes, with what a conversion assumes.

    sizes = InputSizes()
    while True:
        try:
            return translate(model, cut, sizes=sizes)   # x: f32[1,3,224,224], four symbols that print as numbers
        except Assumption as needed:
            sizes.assume(needed)                            # in the next attempt x[0] is the number 1

The pass WriteSizes writes the declared sizes into the inputs of the IR, and checks of what was assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from mo_loop.conversion_limits import budget
from mo_loop.errors import ExtensionError, InternalError, LimitError, MoLoopError, UsageError
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import Assumption, Dim, Dimension, Symbol, opened
from mo_loop.graph.shape import assume_elements, assume_fixed
from mo_loop.graph.types import TensorType
from mo_loop.ops.front import Failed

T = TypeVar("T")

FIXED = frozenset({"com.microsoft::DynamicSparseAttention"})
"""The operators whose forms need the sizes of all inputs."""

OF_ELEMENTS = frozenset({"GRU", "LSTM", "RNN"})
"""The operators with another form for tensors without elements. transforms/needed_elements.py knows the operations
of which the runtime does not compute tensors without elements."""

OF_VECTORS = frozenset({"Pad", "Slice", "Tile"})
"""The operators whose other inputs are vectors with a number for each axis. Those whose vector decides the rank of the
output are SHAPED in assumed_ranks.py."""


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
