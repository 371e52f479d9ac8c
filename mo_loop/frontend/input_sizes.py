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

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mo_loop.errors import ExtensionError, InternalError, LimitError, MoLoopError, UsageError
from mo_loop.graph import Graph, Node
from mo_loop.graph.dimension import Assumption, Dim, Dimension, Symbol, open_symbols, opened
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import TensorType
from mo_loop.ops.front import Failed

T = TypeVar("T")


@dataclass
class InputSizes:
    """The assumptions of a conversion about the sizes of inputs. With `all_fixed` every size is a number."""

    all_fixed: bool = False
    is_dynamic: bool = False
    """Whether the model declares some sizes as unknown."""
    has_open: bool = False
    """Whether an input of the last attempt has a size that is not fixed."""
    _fixed: set[str] = field(default_factory=set)
    _least: dict[str, int] = field(default_factory=dict)
    _equal: dict[str, Symbol] = field(default_factory=dict)
    """The name of a symbol -> the symbol that stands for it."""

    def of_inputs(self, types: Iterable[Any]) -> None:
        """Leave all sizes as they are declared, without checks, if the model declares some of them as unknown."""
        shapes = [type_.shape for type_ in types if isinstance(type_, TensorType)]
        self.is_dynamic = not self.all_fixed and not all(is_static(shape) for shape in shapes)

    def own(self, name: str, type_: TensorType) -> tuple[Dimension | None, ...]:
        """The symbol of each declared size of an input, its number if it is not checked; None for one not declared."""
        shape = type_.shape or ()
        if self.is_dynamic:
            return tuple(size if isinstance(size, int) else None for size in shape)
        return tuple(opened(name, axis, size) if isinstance(size, int) else None for axis, size in enumerate(shape))

    def opened(self, name: str, type_: TensorType) -> TensorType:
        """The type of an input with symbols for its declared sizes, as far as they are not fixed."""
        if type_.shape is None or self.all_fixed or self.is_dynamic:
            return type_
        pairs = zip(type_.shape, self.own(name, type_), strict=True)
        dims = tuple(self._dimension(own) if isinstance(own, Dim) else size for size, own in pairs)
        self.has_open |= dims != type_.shape
        return type_.with_shape(dims)

    def _dimension(self, own: Dim) -> Dimension:
        assert own.symbol is not None and own.now is not None
        found = self._equal.get(own.symbol.name, own.symbol)
        if found.name in self._fixed:
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


def require_sizes_of_failures(graph: Graph) -> None:
    """Assumption if nodes could not be translated and sizes of inputs are open: fixed sizes may be what they need."""
    found: set[Symbol] = set()
    for scope in graph.scopes():
        for node in scope.of(Failed):
            if node.error is not None:
                found |= open_symbols(_dimensions(node))
    if found:
        raise Assumption(fixed=found)


def _dimensions(node: Node) -> Iterator[Dimension]:
    """All sizes, and known numbers, of the inputs of a node."""
    for value in node.inputs:
        type_ = None if value is None else value.type
        if isinstance(type_, TensorType):
            yield from type_.shape or ()
            yield from () if type_.known is None else type_.known.flat
