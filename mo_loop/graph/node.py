"""Nodes of a graph, their values, and the uses of a value: an edge of the graph is one use.

    add = relu.output.uses[0].node     # the first consumer of a value
    add.inputs[0].node                 # the producer of an input

Values and nodes are changed by the methods of their Graph alone, apart from names, origins and attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from mo_loop.errors import InternalError
from mo_loop.graph.shape import Shape
from mo_loop.graph.types import ElementType
from mo_loop.origin import Origin, Origins, union

if TYPE_CHECKING:
    from mo_loop.graph.graph import Graph


class Use(NamedTuple):
    """One consumer of a value: input `port` of `node`."""

    node: Node
    port: int


def use_of(node: Node, port: int) -> Use:
    return tuple.__new__(Use, (node, port))  # half the time of Use(node, port), and every edge makes one


_Operator = Callable[..., "Value"]


@cache
def _function(name: str) -> _Operator:
    from mo_loop.ops import functional  # a family of operations is loaded when one of them is used

    function: _Operator = getattr(functional, name)
    return function


def _operator(name: str) -> _Operator:
    def applied(*operands: Any) -> Value:
        return _function(name)(*operands)

    return applied


def _reflected(operator: _Operator) -> _Operator:
    return lambda right, left: operator(left, right)


def _of_lengths(name: str) -> _Operator:
    """A method that mo_loop/ops/lengths.py has as a function."""

    def applied(value: Value, *given: Any) -> Any:
        from mo_loop.ops import lengths

        return getattr(lengths, name)(value, *given)

    return applied


class Operand:
    """An operand of Python's operators: a value, or a node of one output. `a * b + 1` makes a Multiply and an Add.

    Any other operand becomes a Constant, as in the constructors of operations. `&`, `|` and `~` are logical operators;
    `==` compares identities. `x > y` is `y < x`: the runtime's Greater holds for NaN.
    """

    __slots__ = ()

    __array_ufunc__ = None
    """numpy leaves operators with an array on the left to the value."""

    __add__ = _operator("Add")
    __sub__ = _operator("Subtract")
    __mul__ = _operator("Multiply")
    __truediv__ = __floordiv__ = _operator("Divide")  # of integers it rounds down
    __mod__ = _operator("FloorMod")
    __matmul__ = _operator("MatMul")
    __and__ = _operator("LogicalAnd")
    __or__ = _operator("LogicalOr")
    __lt__ = _operator("Less")
    __le__ = _operator("LessEqual")
    __neg__ = _operator("Negative")
    __invert__ = _operator("LogicalNot")
    __gt__ = _reflected(__lt__)
    __ge__ = _reflected(__le__)
    __radd__ = _reflected(__add__)
    __rsub__ = _reflected(__sub__)
    __rmul__ = _reflected(__mul__)
    __rtruediv__ = __rfloordiv__ = _reflected(__truediv__)
    __rmod__ = _reflected(__mod__)


class Value(Operand):
    """One output of a node.

    `names` are its tensor names, `origins` the tensors of the ONNX model that it contains.

        x[:, 1:]               # elements, in the notation of numpy: slices, None for a new axis, and ...
        x.cut(axis, 1)         # the same slice along an axis that is a variable
        x.size(1)              # the length along an axis: an int if it is known, else a scalar Value
        x.sizes[2:]            # all lengths as a vector, and some of them
        x.reshape([None, -1])  # lengths, None for the same one; -1 is the rest
        x.astype(f32)          # x itself if it is of this type
    """

    __slots__ = ("_uses", "index", "names", "node", "origins", "type")

    __getitem__ = _of_lengths("part")
    cut = _of_lengths("cut")
    __iter__ = None
    """A value has no items to count: without this, Python would read x[0], x[1] .. without end."""
    size = _of_lengths("dimension")
    sizes = property(_operator("ShapeOf"))
    reshape = _of_lengths("reshaped")
    astype = _of_lengths("as_type")

    _uses: Use | dict[Use, None] | None
    """Its consumers, in the order in which they were linked. Nearly every value has one: a Use needs a third of the
    memory of a dictionary."""

    def __init__(self, node: Node, index: int, type_: Any) -> None:
        self.node = node
        self.index = index
        self.type = type_
        self.names: Sequence[str] = ()
        self.origins: Origins = ()
        self._uses = None

    @property
    def dtype(self) -> ElementType:
        """The element type; the types of values that are not tensors have none."""
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        """The dimensions, ints and symbols; None if the rank is not known."""
        return self.type.shape

    @property
    def rank(self) -> int | None:
        """The number of dimensions; None if it is not known."""
        return None if self.type.shape is None else len(self.type.shape)

    @property
    def known(self) -> Any:
        """The elements as far as inference knows them: ints and symbols of a short tensor of integers, else None."""
        return self.type.known

    @property
    def graph(self) -> Graph:
        """The graph of its node."""
        return self.node.graph

    @property
    def constant(self) -> Any:
        """The values as a numpy array if they are constant, else None; small computations are evaluated."""
        return _constant(self, 16)

    @property
    def uses(self) -> tuple[Use, ...]:
        """A snapshot of all consumers; later changes of the graph do not change the tuple."""
        uses = self._uses
        if uses is None:
            return ()
        return tuple(uses) if isinstance(uses, dict) else (uses,)

    @property
    def is_used(self) -> bool:
        """Whether a node reads it."""
        return self._uses is not None

    @property
    def only_use(self) -> Use | None:
        """The only consumer; None without a consumer or with several."""
        uses = self.uses
        return uses[0] if len(uses) == 1 else None

    def _link(self, node: Node, port: int) -> None:
        uses = self._uses
        if uses is None:
            self._uses = use_of(node, port)
        elif isinstance(uses, dict):
            uses[use_of(node, port)] = None
        else:
            self._uses = {uses: None, use_of(node, port): None}

    def _unlink(self, node: Node, port: int) -> None:
        uses = self._uses
        if isinstance(uses, dict):
            del uses[use_of(node, port)]
            if uses:
                return
        self._uses = None
        self.node.graph._unread[self.node] = None

    def replace_with(self, other: Value) -> None:
        """Make every consumer of this value read `other`, except the node of `other`."""
        if other is self:
            return
        for node, port in self.uses:
            if node is not other.node:
                node.graph.set_input(node, port, other)

    @property
    def origin(self) -> Origin:
        """The tensor of the ONNX model that it contains, else the origin of its node."""
        return self.origins[0] if self.origins else self.node.origin

    def add_name(self, name: str) -> None:
        """Add a tensor name, if it has it not yet."""
        self.names = union(self.names, (name,))

    def define(self, tensor: Origin, name: str = "") -> None:
        """Mark this value as a tensor of the ONNX model, with its origin, and its name unless another is given."""
        self.names = union(self.names, (name or tensor.output,))
        self.origins = union(self.origins, (tensor,))

    def copy_names(self, other: Value) -> None:
        """Add the names and origins of `other`, which has the same content."""
        self.names = union(self.names, other.names)
        self.origins = union(self.origins, other.origins)

    def take_names(self, other: Value) -> None:
        """Replace `other` by this value: the names and origins of `other` move here."""
        if other is not self:
            self.copy_names(other)
            other.names = ()
            other.origins = ()

    def take_output(self, other: Value, name: str) -> None:
        """Make this value the model output `name` in place of `other`."""
        self.add_name(name)
        other.names = tuple(each for each in other.names if each != name)
        moved = tuple(each for each in other.origins if each.output == name and not each.scope)
        self.origins = union(self.origins, moved)
        other.origins = tuple(each for each in other.origins if each not in moved)

    def __reduce__(self) -> Any:
        return _output_of, (self.node, self.index)

    def __repr__(self) -> str:
        return f"{self.node.name or type(self.node).__name__}:{self.index} {self.type}"


class Node(Operand):
    """A node of a graph; the operations in mo_loop.ops derive from it."""

    __slots__ = ("_rt_info", "graph", "id", "inputs", "name", "origins", "outputs", "symbols_made")

    graph: Graph
    id: int
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value, ...]
    name: str
    origins: Origins
    """The nodes of the ONNX model that it was made for; may be empty."""

    bodies: tuple[Graph, ...] = ()
    symbols_made: tuple[int, int]
    """The numbers of the fresh symbols that the inference of its types made: after the first, up to the second. Not
    set where it made none."""
    is_kept: ClassVar[bool] = False
    """Whether it stays without readers: Parameters, Results, and sinks, which have an effect at run time."""

    @property
    def output(self) -> Value:
        """The only output."""
        if len(self.outputs) != 1:
            raise InternalError(f"{self!r} has {len(self.outputs)} outputs, not one", where=self.origin)
        return self.outputs[0]

    @property
    def operands(self) -> tuple[Value, ...]:
        """The inputs without those that are absent."""
        inputs: tuple[Any, ...] = self.inputs
        return inputs if None not in inputs else tuple([value for value in inputs if value is not None])

    @property
    def rt_info(self) -> dict[str, Any]:
        """Additional attributes that passes preserve and the writer writes."""
        info: dict[str, Any] | None = getattr(self, "_rt_info", None)
        if info is None:
            info = {}
            object.__setattr__(self, "_rt_info", info)
        return info

    @property
    def origin(self) -> Origin:
        """The node of the ONNX model that it was made for; without one, its own place in the graph."""
        if getattr(self, "graph", None) is None:
            return Origin((), self.name, type_of(self))
        return self.origins[0] if self.origins else Origin(self.graph.scope, self.label, type_of(self))

    @property
    def label(self) -> str:
        """Its name; without one, the name of its class with a number."""
        return self.name or f"{type(self).__name__}#{self.id}"

    @property
    def path(self) -> str:
        """The path of this node: the names of the enclosing control-flow nodes, then its own."""
        graph = getattr(self, "graph", None)
        return self.name if graph is None else graph.path_of(self)

    def infer_types(self) -> Sequence[Any]:
        """The types of the outputs, from those of the inputs."""
        raise NotImplementedError

    @property
    def acts(self) -> bool:
        """Whether a body contains a sink; then the node stays without readers."""
        return any(body.acts for body in self.bodies)

    @property
    def is_used(self) -> bool:
        """Whether anything reads one of its outputs."""
        for output in self.outputs:  # noqa: SIM110  # `any` takes twice as long
            if output._uses is not None:
                return True
        return False

    @property
    def consumers(self) -> list[Node]:
        """The nodes that read one of its outputs, each once."""
        return list({use.node: None for output in self.outputs for use in output.uses})

    @property
    def producers(self) -> list[Node]:
        """The nodes whose outputs it reads, each once."""
        return list({value.node: None for value in self.inputs if value is not None})

    def remap_bodies(self, clone: Callable[[Graph], tuple[Graph, dict[Node, Node]]]) -> None:
        """Give a copied control-flow node separate bodies, and change its port maps accordingly."""

    def __reduce__(self) -> Any:
        """For pickle: a node is a part of its graph."""
        return _node_at, (self.graph, self.graph.places[self])

    def __repr__(self) -> str:
        count = len(getattr(self, "inputs", ()))
        return f"{type(self).__name__}({count} input{'' if count == 1 else 's'})"


def _node_at(graph: Graph, place: int) -> Node:
    return graph.ordered()[place]


def _output_of(node: Node, index: int) -> Value:
    return node.outputs[index]


def _constant(value: Value, depth: int) -> Any:
    """The constant values of `value`, evaluated through at most `depth` nodes of small constants."""
    node: Any = value.node
    if hasattr(node, "tensor"):
        return node.tensor.array()
    integers = value.type.integers
    if integers is not None:
        return np.array(integers, value.dtype.numpy).reshape(value.type.known.shape)
    if not depth or not node.inputs or node.bodies or node.random or len(node.outputs) != 1:
        return None
    arrays = []
    for each in node.inputs:
        array = None if each is None else _constant(each, depth - 1)
        if each is not None and (array is None or array.nbytes > 1 << 16):
            return None
        arrays.append(array)
    result = node.evaluate(*arrays)
    return None if result is NotImplemented else np.asarray(result)


def type_of(node: Node) -> str:
    """The type of the operation in the IR."""
    return str(getattr(node, "type", type(node).__name__))
