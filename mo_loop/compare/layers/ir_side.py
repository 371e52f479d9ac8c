"""The side of the IR: graphs that are run in segments, on demand.

    frame = IrFrame(IrSide(), graph, {parameter.output: array})
    frame.need([value])                 # runs what the value depends on and has not run yet
    frame.values[value]

A segment is a graph of its own: Parameters for values that exist already, copies of the nodes between, Results for the
requested values and for those that later nodes read. OpenVINO compiles it from memory. A node with bodies is part of a
segment like any other, unless it was driven: then its outputs are values already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from mo_loop.compare.execution.isolated import essential
from mo_loop.compare.execution.runtime import Compiled, read_in_memory
from mo_loop.graph import Graph, Node, TensorType, Value, fresh, high, low
from mo_loop.ir.xml import in_memory
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.control import Control, If
from mo_loop.origin import Origin
from mo_loop.support.traversal import by_key, reached
from mo_loop.transforms.runtime.inference import computed_from_constants

Key = tuple[tuple[str, ...], str]
"""The scope path of an ONNX graph, and the name of a tensor in it."""


class IrRunError(Exception):
    """A segment cannot be compiled or run. `stage` is "compile" or "run"."""

    def __init__(self, stage: str, text: str) -> None:
        super().__init__(text)
        self.stage = stage


@contextmanager
def _errors_of(stage: str) -> Iterator[None]:
    """Let errors of the runtime be IrRunErrors of this stage."""
    try:
        yield
    except Exception as error:  # the runtime's errors share no base class
        raise IrRunError(stage, essential(str(error)).rstrip(".")) from error


class IrSide:
    """The data that all frames of a graph and its bodies share."""

    def __init__(self, compile_: Callable[[Any], Any] = Compiled) -> None:
        self.index = cache(_index)
        """The values of a graph that contain each tensor of the ONNX model."""
        self.fixed = cache(computed_from_constants)
        """The nodes that depend on constants alone: the runtime may need them as such, for example weights."""
        self.segments: dict[Any, Any] = {}
        """The compiled segments of bodies."""
        self.compile = compile_


def _index(graph: Graph) -> Mapping[Key, list[Value]]:
    values = (value for node in graph.ordered() for value in node.outputs)
    return by_key(((each.scope, each.output), value) for value in values for each in value.origins)


class IrFrame:
    """One run of a graph.

    `values` are the arrays that exist, `branches` the frames of the If nodes that were entered, `driven` the loops
    that were driven.
    """

    def __init__(self, side: IrSide, graph: Graph, values: Mapping[Value, Any], outer: IrFrame | None = None) -> None:
        self.side = side
        self.graph = graph
        self.outer = outer
        self.values: dict[Value, Any] = dict(values)
        self.branches: dict[Node, IrFrame] = {}
        self.driven: set[Node] = set()
        self._given = set(self.values)
        self._done: set[Node] = set()

    # -- tensors of the ONNX model

    def find(self, key: Key) -> list[tuple[IrFrame, Value]]:
        """The values that contain a tensor: of this graph, of the branches taken in it, else of a graph around it."""
        return list(self._own(key)) or ([] if self.outer is None else self.outer.find(key))

    def _own(self, key: Key) -> Iterator[tuple[IrFrame, Value]]:
        yield from ((self, value) for value in self.side.index(self.graph).get(key, ()))
        for branch in self.branches.values():
            yield from branch._own(key)

    # -- computing

    def get(self, value: Value) -> Any:
        """The array of one value."""
        self.need([value])
        return value.node.array if isinstance(value.node, Constant) else self.values[value]

    def need(self, wanted: Sequence[Value]) -> None:
        """Compute values. IrRunError if the runtime does not compile or run them."""
        values = [each for each in wanted if not isinstance(each.node, Constant)]
        try:
            self.need_apart(dict.fromkeys(values))
        except IrRunError as error:
            if error.stage != "compile":
                raise
            # Some inputs have to be constants, which they are only where what they are computed from is compiled too.
            missing = [each for each in values if each not in self.values]
            self._run(missing, self._given & self.values.keys(), {})

    def need_apart(self, given: Mapping[Value, Any]) -> dict[Value, Any]:
        """Compute each of these values from the values before it: those of `given`, and those that exist.

        One compiled graph has all pieces: a value that is given is the result of one piece, and the input of others.
        Afterwards the values that are given exist, with the arrays that are given. Returns what was computed.
        """
        found = {value: self.values[value] for value in given if self._has(value)}
        wanted = [value for value in given if value not in found]
        if wanted:
            fitting = {value: self.fit(value, given[value]) for value in wanted}
            cut = {value: array for value, array in fitting.items() if array is not None}
            found |= self._run(wanted, self.values.keys() | cut.keys(), cut)
        self.force(given)
        return {value: found[value] for value in given}

    def _has(self, value: Value) -> bool:
        """Whether a value exists. An output of an If that was entered is taken from the frame of the branch."""
        if value not in self.values and value.node in self.branches:
            node: Any = value.node
            branch, entry = self.branches[node], node.output_map[value.index]
            self.values[value] = branch.get((entry.then if branch.graph is node.then_body else entry.else_).value)
        return value in self.values

    def force(self, given: Mapping[Value, Any]) -> None:
        """Replace arrays by those that are given, where they have the form of the value."""
        for value, array in given.items():
            fitting = self.fit(value, array)
            if fitting is not None:
                self.values[value] = fitting

    def fit(self, value: Value, array: Any) -> Any:
        """An array of the ONNX model as one of this value; None if its shape is another one, or it has to stay."""
        is_fixed = isinstance(value.node, Constant) or value.node in self.side.fixed(self.graph)
        if isinstance(array, list) or array is None or is_fixed or value.dtype.numpy is None:
            return None
        array = np.asarray(array)
        known = self.values.get(value)
        if known is not None and known.shape != array.shape:
            return array.astype(known.dtype).reshape(known.shape) if known.size == array.size else None
        if array.dtype.name.lstrip("u") in ("int1", "int2", "int4"):
            return None
        dims = value.shape
        if dims is not None and len(dims) != array.ndim:
            return None
        if array.dtype in (np.int64, np.uint64):  # the device has 32 bits: it limits results, and cuts off inputs
            array = np.clip(array, -(1 << 31) if array.dtype == np.int64 else 0, (1 << 31) - 1)
        is_text = array.dtype.kind in "OSU"
        return array if is_text or array.dtype == value.dtype.numpy else array.astype(value.dtype.numpy)

    def piece(self, value: Value) -> list[Node]:
        """The nodes that compute a value from the values that exist; none for a value that the caller gives."""
        is_given = isinstance(value.node, Parameter) or value.node in self.branches
        return [] if is_given else list(self._region([value], self.values)[0])

    def compute_alone(self, value: Value) -> Any:
        """Compute a value once more, apart from the values that were computed together with it."""
        (self.values[value],) = self.computed_from(value, [lambda each: each])
        return self.values[value]

    def computed_from(self, value: Value, changes: Sequence[Callable[[Any], Any]]) -> list[Any]:
        """The arrays of a value for each of `changes`, functions that change the arrays of its piece's inputs."""
        nodes, inputs = self._region([value], self.values)
        arrays = [self.values[each] for each in inputs]
        segment = self._compiled(nodes, inputs, arrays, [value])
        with _errors_of("run"):
            return [segment.run([change(each) for each in arrays])[0][1] for change in changes]

    def _region(self, wanted: Iterable[Value], known: Collection[Value]) -> tuple[Collection[Node], list[Value]]:
        """The nodes that compute `wanted` from known values, and the known values that they read.

        The nodes of `wanted` are computed also where they are known to their readers.
        """
        inputs: dict[Value, None] = {}

        def makers(node: Node) -> list[Node]:
            if isinstance(node, Parameter):
                raise IrRunError("run", f"{node.path} has no value")
            read = [each for each in node.inputs if each is not None]
            begins = [each for each in read if each in known or (each.node in self.branches and self._has(each))]
            inputs.update(dict.fromkeys(begins))
            return [each.node for each in read if each not in inputs]

        nodes = dict.fromkeys(reached([value.node for value in wanted], makers))
        return nodes.keys(), list(inputs)

    def _run(self, wanted: Sequence[Value], known: Collection[Value], cut: Mapping[Value, Any]) -> dict[Value, Any]:
        """Compute values; those of `cut` have these arrays for the nodes that read them, whatever is computed.

        Returns the arrays of the computed values, which exist afterwards: those that are wanted, and those that later
        nodes read.
        """
        nodes, inputs = self._region(wanted, known)
        running = [node for node in nodes if not isinstance(node, Constant)]
        later = [
            value
            for node in running
            for value in node.outputs
            if any(use.node not in nodes and use.node not in self._done for use in value.uses)
        ]
        outputs = tuple(dict.fromkeys([*wanted, *later]))
        arrays = [cut[value] if value in cut else self.values[value] for value in inputs]
        key = (self.graph, outputs, tuple(inputs), tuple(np.ndim(each) for each in arrays))
        segment = self.side.segments.get(key) or self._compiled(nodes, inputs, arrays, outputs)
        if self.outer is not None:
            self.side.segments[key] = segment
        with _errors_of("run"):
            found = segment.run(arrays)
        computed = dict(zip(outputs, (array for _, array in found), strict=True))
        self.values.update(computed)
        self._done.update(running)
        return computed

    def _compiled(
        self, nodes: Collection[Node], inputs: Sequence[Value], arrays: Sequence[Any], outputs: Sequence[Value]
    ) -> Any:
        graph = Graph("segment")
        pairs = zip(inputs, arrays, strict=True)
        made = _Copies({value: Parameter(graph=graph, type=_type_for(value, array)).output for value, array in pairs})
        graph.adopt(self.graph, nodes, made)
        for value in outputs:
            Result(made.computed[value])
        with _errors_of("compile"):
            return self.side.compile(read_in_memory(*in_memory(graph)))

    def release(self) -> None:
        """Forget the values that no node reads any more, except those that were given: others hold them anyway."""
        done = self._done
        for value in list(self.values):
            if not isinstance(value.node, Parameter) and all(use.node in done for use in value.uses):
                del self.values[value]

    @property
    def size(self) -> int:
        """The bytes of its values."""
        return sum(array.nbytes for array in self.values.values())

    # -- nodes with bodies

    def enter(self, node: If) -> IrFrame:
        """The frame of the branch that an If takes."""
        if node not in self.branches:
            condition = node.inputs[0]
            assert condition is not None
            is_true = bool(np.asarray(self.get(condition)).reshape(-1)[0])
            fed = [(entry.then if is_true else entry.else_, value) for entry, value in node.fed]
            self.need([value for parameter, value in fed if parameter is not None])
            given = {parameter.output: self.get(value) for parameter, value in fed if parameter is not None}
            self.branches[node] = IrFrame(self.side, node.then_body if is_true else node.else_body, given, self)
            self._done.add(node)
        return self.branches[node]

    def set_outputs(self, node: Node, arrays: Sequence[Any]) -> None:
        """The outputs of a node that was driven."""
        self.values.update(zip(node.outputs, arrays, strict=True))
        self._given.update(node.outputs)
        self._done.add(node)


def as_element(value: Value, array: Any, expected: Any) -> Any:
    """The array of a body Parameter as the tensor of ONNX.

    A slice has an axis of one element more than the element that Scan gives, and a value that a loop slices or carries
    can have one more leading dimension of 1 (AddLeadingDimension).
    """
    shape, wanted = np.shape(array), np.shape(expected)
    if len(shape) <= len(wanted) or not isinstance(value.node, Parameter):
        return array
    longer = [dim for dim in shape if dim != 1] == [dim for dim in wanted if dim != 1]
    return np.reshape(array, wanted) if longer else array


class _Copies(dict[Value, Value]):
    """Values in a segment: readers get the Parameter of a value that is an input, also if its node is computed too."""

    def __init__(self, inputs: Mapping[Value, Value]) -> None:
        super().__init__(inputs)
        self.computed: dict[Value, Value] = {}

    def update(self, pairs: Any) -> None:
        """Add the outputs of a node."""
        for value, copy in pairs:
            self.computed[value] = copy
            self.setdefault(value, copy)


def _type_for(value: Value, array: Any) -> TensorType:
    """The type of a Parameter for a value: the inferred one, as far as it agrees with the array."""
    shape = np.shape(array)
    dims = value.shape if value.shape is not None and len(value.shape) == len(shape) else (fresh(),) * len(shape)
    pairs = [(dim, low(dim) <= size <= (size if (most := high(dim)) is None else most))
             for dim, size in zip(dims, shape, strict=True)]
    return TensorType(value.dtype, tuple(dim if may_be else fresh() for dim, may_be in pairs))


Wanted = Callable[[Control], bool]


def counterpart(ir: IrFrame | None, origin: Origin, wanted: Wanted) -> tuple[IrFrame, Any] | None:
    """A wanted node that was not driven yet, with its frame: `ir`, the branches taken in it, or a frame around it.

    It can be in a branch of an If that the conversion made for it: then the If is entered.
    """
    if ir is None:
        return None
    return _in_frame(ir, origin, wanted) or counterpart(ir.outer, origin, wanted)


def _in_frame(frame: IrFrame, origin: Origin, wanted: Wanted) -> tuple[IrFrame, Control] | None:
    def rank(node: Node) -> int:
        """The place of the origin among those of a node: its own comes first, merged ones follow."""
        return next(place for place, each in enumerate(node.origins) if each[:2] == origin[:2])

    controls: list[Any] = frame.graph.nodes_with_bodies()
    nodes = [node for node in controls if is_for(node, origin) and node not in frame.driven]
    guards = []
    for node in sorted(nodes, key=rank):
        if wanted(node):
            return frame, node
        if isinstance(node, If) and any(wanted(each) for body in node.bodies for each in controls_for(body, origin)):
            guards.append(node)
    branches = (*map(frame.enter, guards), *frame.branches.values())
    found = (_in_frame(branch, origin, wanted) for branch in branches)
    return next((each for each in found if each is not None), None)


def controls_for(graph: Graph, origin: Origin) -> Iterator[Control]:
    """The nodes with bodies that were made for an ONNX node, in a graph and its bodies."""
    nodes: Iterator[Any] = (node for each in graph.scopes() for node in each.nodes_with_bodies())
    return (node for node in nodes if is_for(node, origin))


def is_for(node: Node, origin: Origin) -> bool:
    """Whether a layer was made for an ONNX node."""
    return any(each[:2] == origin[:2] for each in node.origins)
