"""Op, the base class of all operations, with Parameter, Result and Constant.

    class Softmax(Op, opset=8, type="SoftMax"):
        axis: int = 1                            # an attribute: validated, printed, written to the XML

        def infer(self, x):                      # the parameters are the input ports: TensorTypes, None if absent
            self.require(x.rank is None or -x.rank <= self.axis < x.rank, "...")
            return x                             # the output's type; a tuple for several outputs

    Softmax(value, axis=-1).output

`Softmax(...)` takes Values, single-output nodes, None (an absent optional input), or scalars and arrays, which become
Constants: of type i64 at the ports named in the class keyword `index`, else of the type of the first Value. The graph
is that of the first Value. Inference runs before the node is attached, so a failed construction does not change it.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import new_class
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin

import numpy as np

from mo_loop.errors import InternalError, MoLoopError, TypeError_, error_of_numbers
from mo_loop.graph import ArrayTensor, Graph, Node, Shape, Tensor, Value, normalise_axis, require_sizes
from mo_loop.graph.dimension import Dimension, fresh_symbols
from mo_loop.graph.inference_cache import inferred_once, type_of_numbers, unique
from mo_loop.graph.types import KNOWN_LIMIT, UNKNOWN, ElementType, TensorType, boolean
from mo_loop.ops.ranges import Kind, Range, kinds_of, range_of
from mo_loop.origin import Origin
from mo_loop.support.traversal import reached

OpOf = TypeVar("OpOf", bound="Op")

_MISSING = object()

_set = object.__setattr__
"""Sets a field that is not an attribute of the operation: it needs no check, and every node sets several."""

_IN_GRAPHS = (Value, Node)

_INTS = tuple[int, ...]
_ONLY_INT = {int}

_OF_ONE = (0, 1)
"""The ranks of a tensor of one number."""


class _OpSignature:
    """The signature of an operation: its ports, its attributes, and the arguments of every operation. `help` shows it.
    """

    def __get__(self, _: object, cls: "type[Op]") -> inspect.Signature:
        own = list(inspect.signature(cls.__init__).parameters.values())[1:]
        hands_on = bool(cls.attributes) and own[-1].kind is inspect.Parameter.VAR_KEYWORD
        if cls.__init__ is not Op.__init__ and not hands_on:
            return inspect.Signature(own)
        ports = list(inspect.signature(cls.infer).parameters.values())[1:]
        attributes = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, annotation=cls._kinds[name],
                default=inspect.Parameter.empty if default is _MISSING else default,
            )
            for name, default in cls.attributes.items()
        ]
        common = [each for each in own if each.kind is each.KEYWORD_ONLY]
        return inspect.Signature([*ports, *attributes, *common])


class Op(Node):
    """Base of all operations. Class keywords: `opset` (the lowest that has it), `type` (the IR's name, default the
    class name), `index` (input ports whose scalars and arrays become i64), `ranks` (input port -> its rank, or ranks),
    `single` (input ports of one number: a scalar or a vector of length 1), `types` (input port -> the element types
    that it takes), `abstract` (a base class of a family), `random` (two equal nodes are not the same value), `kept` (a
    node without readers stays: a sink, which has an effect when it runs), `along` (the input or attribute that has the
    axes of the first input along which it works), `keeps_axes` (the results have the axes of the first input), `rule`
    (one value of the result from one of each input, for shape arithmetic), `numpy` (the function that folds it). The
    base classes of families use the last two. The bases `Elementwise`, `Movement` and `View` below state facts of
    several families."""

    type: ClassVar[str] = ""
    opset: ClassVar[int] = 0
    """The IR opset that first has the operation; 0 for operations that never reach the IR."""
    library: ClassVar[str] = ""
    """The package whose library has the operation; empty for those of OpenVINO itself."""
    opset_name: ClassVar[str] = ""
    """The operation set as the IR names it: opset8, or extension."""
    attributes: ClassVar[dict[str, Any]] = {}
    """Attribute name -> default; `Op.REQUIRED` without a default."""
    index_ports: ClassVar[frozenset[int]] = frozenset()
    random: ClassVar[bool] = False
    named_along: ClassVar[str] = ""
    """The class keyword `along`."""
    keeps_axes: ClassVar[bool] = False
    port_info: ClassVar[Mapping[tuple[str, int], Any]] = {}
    """The rt_info of ports: ("input" or "output", index) -> rt_info."""
    abstract: ClassVar[bool] = True
    REQUIRED: ClassVar[object] = _MISSING
    __signature__: ClassVar[Any] = _OpSignature()

    _rule: ClassVar[Any] = None
    _numpy: ClassVar[Any] = None
    _kinds: ClassVar[dict[str, Any]] = {}
    _ranges: ClassVar[Mapping[str, Range]] = {}
    _required: ClassVar[tuple[str, ...]] = ()
    _ports: ClassVar[tuple[str, ...]] = ()
    _variadic: ClassVar[bool] = False
    _least: ClassVar[int] = 0
    _port_ranks: ClassVar[Mapping[int, tuple[int, ...]]] = {}
    _single_ports: ClassVar[frozenset[int]] = frozenset()
    _port_types: ClassVar[Mapping[int, Kind]] = {}
    _limited_ports: ClassVar[tuple[int, ...]] = ()

    def __init_subclass__(
        cls, *, opset: int = 0, type: str = "", index: Sequence[str] | None = None, abstract: bool = False,
        random: bool = False, kept: bool = False, ranks: Mapping[str, int | tuple[int, ...]] | None = None,
        single: Sequence[str] = (), types: Mapping[str, Kind] | None = None, along: str = "", keeps_axes: bool = False,
        rule: Callable[..., Any] | None = None, numpy: Callable[..., Any] | None = None,
    ) -> None:
        super().__init_subclass__()
        cls.abstract = abstract
        cls.type = type or cls.__name__
        cls.opset = opset
        cls.opset_name = "extension" if cls.library else f"opset{opset}"
        cls.random = random
        cls.is_kept = kept
        cls.named_along = along or cls.named_along
        cls.keeps_axes = keeps_axes or cls.keeps_axes
        if rule is not None:
            cls._rule = staticmethod(rule)
        if numpy is not None:
            cls._numpy = staticmethod(numpy)
        cls.attributes = dict(cls.attributes)
        cls._kinds = dict(cls._kinds)
        for name, kind in inspect.get_annotations(cls).items():
            origin: Any = get_origin(kind)
            if origin is ClassVar or name.startswith("_"):
                continue
            limits = range_of(kind)
            if limits is not None:
                cls._ranges = {**cls._ranges, name: limits}
                (kind,) = kinds_of(kind)
            cls._kinds[name] = _INTS if kind == _INTS else kind
            cls.attributes[name] = cls.__dict__.get(name, _MISSING)
        cls._required = tuple(name for name, default in cls.attributes.items() if default is _MISSING)
        code = cls.infer.__code__  # inspect.signature would take a third of the time that loading the operations takes
        cls._variadic = bool(code.co_flags & inspect.CO_VARARGS)
        cls._ports = code.co_varnames[1 : code.co_argcount]
        cls._least = len(cls._ports) - len(cls.infer.__defaults__ or ())
        if index is not None:
            cls.index_ports = frozenset(cls._ports.index(name) for name in index)
        if single:
            cls._single_ports = frozenset(cls._ports.index(name) for name in single)
        if ranks is not None or single:
            given = {**dict.fromkeys(single, _OF_ONE), **(ranks or {})}
            cls._port_ranks = {
                cls._ports.index(name): rank if isinstance(rank, tuple) else (rank,) for name, rank in given.items()
            }
        if types is not None:
            cls._port_types = {cls._ports.index(name): kind for name, kind in types.items()}
        cls._limited_ports = tuple(dict.fromkeys((*cls.index_ports, *cls._port_ranks, *cls._port_types)))

    def __init__(self, *inputs, graph: Graph | None = None, name: str = "", **attributes: Any) -> None:
        _set(self, "name", name)  # first: the error of an attribute reads it
        if attributes or self.attributes:
            self._set_attributes(attributes)
        if graph is None:
            for each in inputs:
                if isinstance(each, _IN_GRAPHS):
                    graph = each.graph
                    break
            else:
                if None in inputs:
                    raise TypeError_(f"{self.type}: its inputs are absent", code="ML234")
                raise InternalError(f"{self.type} needs a graph: give a Value among its inputs, or graph=")
        self._attach(graph, self._values(inputs))

    # -- construction

    def _set_attributes(self, given: dict[str, Any]) -> None:
        store, known = self.__dict__, self.attributes
        store.update(known)
        for key, value in given.items():
            if key not in known:
                raise InternalError(f"{self.type} has no attribute {key}")
            store[key] = _checked(self, key, value)
        for key in self._required:
            if key not in given:
                raise InternalError(f"{self.type} needs the attribute {key}")
        for key, limits in self._ranges.items():
            limits.require(key, store[key])

    def _values(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Values, None, and Constants not yet attached; a tuple if all are Values."""
        if not self._least <= len(inputs) or (not self._variadic and len(inputs) > len(self._ports)):
            raise TypeError_(f"{self.type} got {len(inputs)} inputs, expects {', '.join(self._ports)}", code="ML234")
        while inputs and inputs[-1] is None and len(inputs) > self._least and not self._variadic:
            inputs = inputs[:-1]
        for given in inputs:
            if type(given) is not Value:
                break
        else:  # nearly every node
            return tuple(inputs)
        return [
            given if given is None or isinstance(given, Value)
            else given.output if isinstance(given, Node)
            else self._constant(port, given, inputs)
            for port, given in enumerate(inputs)
        ]

    def _constant(self, port: int, given, inputs: Sequence[Any]) -> "Constant":
        if isinstance(given, Tensor):
            return Constant._detached(given)
        if port in self.index_ports:
            return Constant._detached(ArrayTensor(np.asarray(given, np.int64)))
        like = next((v.output if isinstance(v, Node) else v for v in inputs if isinstance(v, _IN_GRAPHS)), None)
        if isinstance(given, np.ndarray | np.generic) or like is None or like.dtype is None:
            return Constant._detached(ArrayTensor(np.asarray(given)))
        return Constant._detached(ArrayTensor(np.asarray(given).astype(like.dtype.numpy), like.dtype))

    def _attach(self, graph: Graph, values: Sequence[Any]) -> None:
        is_plain = type(values) is tuple
        constants = [] if is_plain else [value for value in values if isinstance(value, Constant)]
        if constants:
            types = [None if v is None else v.type if isinstance(v, Value) else v.outputs[0].type for v in values]
        else:
            types = [None if value is None else value.type for value in values]
        start = fresh_symbols()
        result = self._inferred(types)
        made = fresh_symbols()
        if made > start:
            _set(self, "symbols_made", (start, made))
        if constants:
            graph.require_own((value for value in values if isinstance(value, Value)), self)
            for constant in constants:
                graph.add(constant)
            values = [value.outputs[0] if isinstance(value, Constant) else value for value in values]
        _set(self, "inputs", tuple(values))
        _set(self, "outputs", tuple([Value(self, position, each) for position, each in enumerate(result)]))
        graph.add(self)
        for constant in constants:
            constant.origins = self.origins

    # -- inference

    def infer(self, *inputs):
        """The type of the output, or a tuple of types, from the TensorTypes of the inputs."""
        raise NotImplementedError

    def evaluate(self, *inputs: np.ndarray[Any, Any] | None):
        """The operation in numpy: arrays in, an array or a tuple out; NotImplemented without an implementation."""
        return NotImplemented

    # -- axes

    def integers(self, name: str) -> tuple[int, ...] | None:
        """The numbers of an attribute or an input; None for an input that is absent or not known."""
        if name in self.attributes:
            return (self.__dict__[name],)
        port = self._ports.index(name)
        value = self.inputs[port] if port < len(self.inputs) else None
        return None if value is None else value.type.integers

    @property
    def port_along(self) -> int | None:
        """The input with the axes along which the operation works; None if an attribute has them, or there are none."""
        return self._ports.index(self.named_along) if self.named_along in self._ports else None

    @property
    def along(self) -> tuple[int, ...] | None:
        """The axes of the first input along which the operation works, as a reduction does, from the front; None if
        they or the rank are not known."""
        axes, rank = self.integers(self.named_along) if self.named_along else (), self.operands[0].rank
        return None if axes is None or rank is None else tuple({normalise_axis(axis, rank): axis for axis in axes})

    def axis_map(self, port: int) -> tuple[int | None, ...]:
        """For each axis of the results, the axis of the input whose slices it consists of: all or some of them, in any
        order. None for an axis without such an input, or if it is not known. Empty if the rank of the results is
        unknown."""
        return self._from_end(port) if self.keeps_axes and port == 0 else self._no_axes

    @property
    def _no_axes(self) -> tuple[int | None, ...]:
        return (None,) * (self.outputs[0].rank or 0)

    def _from_end(self, port: int) -> tuple[int | None, ...]:
        """The axes of an input, which are those of the results counted from the end."""
        value = self.inputs[port]
        if value is None or value.rank is None:
            return self._no_axes
        new = len(self._no_axes) - value.rank
        return (*[None] * new, *range(max(-new, 0), value.rank))

    def infer_types(self) -> Sequence[Any]:
        return self._inferred([None if value is None else value.type for value in self.inputs])

    def _inferred(self, types: Sequence[Any]) -> Sequence[Any]:
        for each in types:
            if each is UNKNOWN:
                return [UNKNOWN] * len(getattr(self, "outputs", (0,)))
        if not types or self.bodies:
            return self._inferred_now(types)
        return inferred_once((type(self), *self.__dict__.values()), types, self._inferred_now)

    def _inferred_now(self, types: Sequence[Any]) -> Sequence[Any]:
        try:
            self._require_inputs(types)
            result = self.infer(*types)
            results: Sequence[Any] = result if isinstance(result, tuple | list) else (result,)
            for each in results:
                if each.shape is not None:
                    require_sizes(each.shape)
        except (MoLoopError, ArithmeticError, MemoryError, ValueError) as found:
            error = found if isinstance(found, MoLoopError) else error_of_numbers(found)
            if error is None:
                raise
            message = error.message
            if isinstance(error, TypeError_) and self.type not in message:
                shown = ", ".join(str(each) for each in types)
                message = f"{self.type}({shown}): {message}"
            raise error.at(None if error.where else self._place, message=message) from error.__cause__
        # An input type that is returned as the output type does not mean equal values.
        return [
            r.without_known() if isinstance(r, TensorType) and any(r is each for each in types) else r for r in results
        ]

    def _require_present(self, types: Sequence[Any]) -> None:
        """Raise TypeError_ if a required input, or one of a list, is absent."""
        for port, each in enumerate(types):
            if each is None and (port < self._least or (port >= len(self._ports) and not self.bodies)):
                name = self._ports[port] if port < len(self._ports) else port
                raise TypeError_(f"its input {name!r} is absent", code="ML234")

    def _require_inputs(self, types: Sequence[Any]) -> None:
        """Raise TypeError_ if a required input is absent, if an element type or a rank is another."""
        for each in types:
            if each is None:
                self._require_present(types)
                break
        for port in self._limited_ports:
            each = types[port] if port < len(types) else None
            if each is None:
                continue
            kind = self._port_types.get(port)
            if kind is not None and each.dtype is not None and each.dtype not in kind.types:
                raise TypeError_(f"its input {self._ports[port]!r} is {each}, and must be {kind.text}", code="ML240")
            if port in self.index_ports and each.dtype is not None and not is_index(each.dtype):
                raise TypeError_(f"its input {self._ports[port]!r} is {each}, and must be integers", code="ML240")
            if port not in self._port_ranks or each.shape is None:
                continue
            allowed = self._port_ranks[port]
            if len(each.shape) not in allowed:
                rank = " or ".join(map(str, allowed))
                text = f"its input {self._ports[port]!r} is {each}, and must be of rank {rank}"
                raise TypeError_(text, code="ML235")
            if port in self._single_ports and each.shape and isinstance(each.shape[0], int) and each.shape[0] != 1:
                raise TypeError_(f"its input {self._ports[port]!r} is {each}, and must be one number", code="ML235")

    @property
    def _place(self) -> Origin | None:
        """The place of an error of this operation; None if it is under construction without a name."""
        return self.origin if self.name or hasattr(self, "graph") else None

    def require(self, condition, message: str) -> None:
        """Raise a TypeError_ with `message` unless `condition` holds."""
        if not condition:
            raise TypeError_(message, code="ML235")

    # -- attributes

    def __setattr__(self, key: str, value) -> None:
        if key in self.attributes:
            value = _checked(self, key, value)
            if key in self._ranges:
                self._ranges[key].require(key, value)
            if hasattr(self, "graph"):
                self.graph.touch(self)
        object.__setattr__(self, key, value)

    def attribute_values(self) -> dict[str, Any]:
        """All attributes by name."""
        return {key: self.__dict__[key] for key in self.attributes}

    def xml_attributes(self) -> dict[str, Any]:
        """The attributes of <data>; None omits one. Override this if the IR uses another spelling."""
        return self.attribute_values()

    @classmethod
    def from_xml(cls, data: dict[str, str]) -> dict[str, str]:
        """Attribute name -> its text, from <data>: the inverse of the spelling in `xml_attributes`."""
        return data


def operation(spec: str, what: str, base: type[OpOf], module: str, **keywords: Any) -> type[OpOf]:
    """The operation `Sqrt-1` of a specification, which differs from its base in class keywords alone. Its docstring is
    `what`, and the specification; `module` is the family that defines it."""
    name, _, opset = spec.partition("-")
    members = {"__doc__": f"{what} Spec: {spec}.", "__module__": module}
    return new_class(name, (base,), {"opset": int(opset), **keywords}, lambda namespace: namespace.update(members))


def is_index(dtype: ElementType) -> bool:
    """Whether numbers of the type can be indices and sizes; smaller integers are weights."""
    return dtype.is_integer and dtype.bits >= 8


def _checked(op: Op, key: str, value):
    """`value` in the declared kind of attribute `key`: numpy scalars become Python's, lists tuples."""
    kind = op._kinds[key]
    if kind is Any or type(value) is kind:
        return value
    if kind is _INTS and type(value) is tuple and set(map(type, value)) == _ONLY_INT:  # strides, pads, dilations
        return value
    if kind is int and isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if kind is float and isinstance(value, int | float | np.floating | np.integer):
        return float(value)
    if kind is bool and isinstance(value, bool | np.bool_ | int):
        return bool(value)
    if kind is str and isinstance(value, str):
        return value
    if kind is ElementType and isinstance(value, ElementType):
        return value
    if get_origin(kind) is Literal and value in get_args(kind):
        return value
    if get_origin(kind) is tuple and isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        item = get_args(kind)[0]
        if item is int:
            return tuple(int(each) for each in value)
        return tuple(float(each) for each in value) if item is float else tuple(value)
    if isinstance(kind, type) and isinstance(value, kind):
        return value
    raise TypeError_(f"{op.type}: {value!r} is not a valid {key}", code="ML236", where=op._place)


class Parameter(Op, opset=1, kept=True):
    """An input of a graph. `shape` None is an unknown rank. Spec: Parameter-1.

    `sizes` are the symbols of the declared sizes of a model's input, None for a size that is not declared. The type may
    have another symbol, or a number, if the conversion assumes one. Sizes that are numbers are not checked.
    """

    value_type: ClassVar[Any]
    sizes: ClassVar[tuple[Dimension | None, ...] | None] = None

    def __init__(
        self, *, graph: Graph, dtype: ElementType | None = None, shape: Shape = None, name: str = "",
        type=None, attach: bool = True,
    ) -> None:
        """Either `dtype` and `shape`, or a whole `type`. With `attach` it is appended to the graph's parameters."""
        self.name = name
        self.__dict__["value_type"] = type if type is not None else TensorType(dtype, shape)
        self.inputs = ()
        self.outputs = (Value(self, 0, self.value_type),)
        graph.add(self)
        if attach:
            graph.parameters.append(self)

    def retype(self, type_) -> None:
        """Give the Parameter another type; dependent types are inferred again."""
        if type_ != self.value_type:
            self.__dict__["value_type"] = type_
            self.graph.touch(self)

    def infer(self):
        return self.value_type

    def xml_attributes(self) -> dict[str, Any]:
        shape = "..." if self.value_type.shape is None else self.value_type.shape
        return {"shape": shape, "element_type": self.value_type.dtype}


class Result(Op, opset=1, kept=True):
    """An output of a graph. `name` is the layer's; `output_names` are the tensor names. Spec: Result-1."""

    output_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, value, *, name: str = "", names: tuple[str, ...] = (), attach: bool = True) -> None:
        super().__init__(value, name=name)
        self.__dict__["output_names"] = names
        if attach:
            self.graph.results.append(self)

    def infer(self, value):
        return ()

    def _inferred(self, types: Sequence[Any]) -> Sequence[Any]:
        return ()  # also if the type of the value is unknown

    @property
    def value(self) -> Value:
        """The value that is the output of the graph."""
        assert self.inputs[0] is not None
        return self.inputs[0]


class Constant(Op, opset=1, type="Const"):
    """A constant. Made from an array, scalars, or a Tensor. Spec: Constant-1."""

    tensor: ClassVar[Any]

    def __init__(self, value, *, graph: Graph, dtype: ElementType | None = None, name: str = "") -> None:
        if not isinstance(value, Tensor):
            array = np.asarray(value)
            value = ArrayTensor(array if dtype is None or dtype.bits == 0 else array.astype(dtype.numpy), dtype)
        self._prepare(value)
        _set(self, "name", name)
        graph.add(self)

    @classmethod
    def _detached(cls, tensor: Tensor) -> "Constant":
        constant: Constant = object.__new__(cls)
        _set(constant, "name", "")
        constant._prepare(tensor)
        return constant

    def _prepare(self, tensor: Tensor) -> None:
        self.__dict__["tensor"] = tensor
        _set(self, "inputs", ())
        _set(self, "outputs", (Value(self, 0, type_of_tensor(tensor)),))

    @property
    def array(self) -> np.ndarray[Any, Any]:
        return self.tensor.array()

    def infer(self):
        return self.outputs[0].type

    def evaluate(self, *inputs):
        return self.array

    def xml_attributes(self) -> dict[str, Any]:
        return {"element_type": self.tensor.dtype, "shape": self.tensor.shape}


class Elementwise(Op, abstract=True):
    """Each element of the result depends on one element of each input; inputs are broadcast as in numpy, but for the
    slopes of PReLU."""

    def axis_map(self, port):
        return self._from_end(port)


class Movement(Op, abstract=True):
    """The results consist of elements of the first input, some perhaps several times; the other inputs select them."""


class SameElements(Movement, abstract=True):
    """The result consists of the elements of the first input in their order."""


class View(SameElements, abstract=True):
    """The elements of the first input in their order, in another shape."""


class Identity(SameElements, opset=1, type="Convert", keeps_axes=True):
    """The input unchanged, as a node with its own name.

    The IR has Identity since opset 16; it is written as a Convert to the same type, which older runtimes have."""

    def infer(self, x):
        return TensorType(x.dtype, x.shape, x.known) if isinstance(x, TensorType) else x

    def evaluate(self, *inputs):
        return inputs[0]

    def xml_attributes(self) -> dict[str, Any]:
        return {"destination_type": self.outputs[0].dtype}


def follows_from_constants(value: Value) -> bool:
    """Whether a value follows from constants alone, so that the runtime computes it while it compiles the model."""
    sources = reached([value], lambda each: each.node.operands)
    return all(each.node.operands or isinstance(each.node, Constant) for each in sources)


def type_of_tensor(tensor: Tensor) -> TensorType:
    """The type of a constant; small integer and boolean tensors have all their values known."""
    if (tensor.dtype.is_integer or tensor.dtype is boolean) and tensor.size <= KNOWN_LIMIT and tensor.dtype.bits >= 8:
        return type_of_numbers(tensor.dtype, tensor.array().reshape(tensor.shape))
    return unique(TensorType(tensor.dtype, tensor.shape))  # weights of repeated layers have equal types
