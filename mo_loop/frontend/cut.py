"""Cut: the tensors at which a conversion starts and ends, which become inputs, constants and outputs.

    Cut.of(model, "x[1,3,?,224..512],sr->16000", "logits")
    Cut.of(model, {"x": [1, 3, None, (224, 512)]}, ["logits", "block_3:0"])
    Cut.of(model, [1, 3, 224, 224], None)                       # the shape of the first input

Tensors have their ONNX names. The name of a node means its first output, `node:1` its output 1, `1:node` its input 1; a
name that several nodes have is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mo_loop.errors import ModelError, UnsupportedError, UsageError
from mo_loop.frontend.declared_types import type_from, types_of
from mo_loop.frontend.input_text import KEEP, InputEntry, dtype_of, parse_inputs, shape_of
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import all_graphs, tensors_of
from mo_loop.graph import UNKNOWN, ElementType, OptionalType, SequenceType, Shape, TensorType, is_static
from mo_loop.origin import Origin
from mo_loop.printable import did_you_mean
from mo_loop.support.flags import shown, whole_number
from mo_loop.support.traversal import by_key


@dataclass
class Cut:
    """The entries of the inputs by name, and the names of the outputs; None means those of the model. `given` is the
    argument with the inputs."""

    inputs: dict[str, InputEntry] | None = None
    outputs: list[str] | None = None
    given: Any = None

    @classmethod
    def of(cls, model: OnnxModel, input: Any, output: Any, freeze: Mapping[str, Any] | None = None) -> Cut:
        """From the arguments of convert_model.

        Raises:
            ModelError: neither the model nor `output` names an output.
            UsageError: a name that the model does not have, or an `output` without names.
        """
        if output is None and not model.proto.graph.output:
            raise _no_outputs(model)
        if output is not None and not output:
            raise UsageError("output has no name", hint="name a tensor, or omit the option", code="ML202")
        if input is None and output is None and not freeze:
            return cls()
        names = _Names(model)
        inputs: dict[str, InputEntry] | None = None
        if input is not None:
            listed = names.of_inputs()
            inputs = {}
            for place, entry in enumerate(_entries(input, names)):
                if not entry.name and place >= len(listed):
                    raise UsageError(
                        f"there are more shapes ({place + 1}) than inputs ({len(listed)})", code="ML202",
                        why="shapes without a name are those of the inputs in their order",
                        hint=f"name them: {', '.join(f'{each}[...]' for each in listed[:4])}",
                    )
                name = names.resolved(entry.name) if entry.name else listed[place]
                if name in inputs:
                    raise UsageError(f"{name!r} is named twice among the inputs", code="ML202")
                inputs[name] = replace(entry, name=name)
        for text, value in (freeze or {}).items():
            found = parse_inputs(text, names)
            if len(found) != 1 or not found[0].name or found[0].value is not None:
                raise UsageError(f"{text!r} names no tensor to freeze", hint="write name=value", code="ML202")
            frozen = replace(found[0], value=value)
            name = names.resolved(frozen.name)
            inputs = inputs or {}
            inputs[name] = _joined(inputs.get(name, InputEntry(name)), replace(frozen, name=name))
        outputs = None
        if output is not None:
            wanted = [output] if isinstance(output, str) else list(output)
            outputs = list(dict.fromkeys(names.resolved(name) for name in wanted))
        return cls(inputs, outputs, input)

    why_changed: ClassVar[str] = "inputs were given other shapes"
    """The reason of the shapes of `changed_shapes`."""

    def changed_shapes(self, model: OnnxModel) -> str:
        """The declared types of the inputs that have another shape here, as text; empty if there are none."""
        declared = {entry.name: entry.type for entry in model.proto.graph.input}
        return ", ".join(
            f"{name} as {type_from(declared[name], symbolic=True)}"
            for name, entry in (self.inputs or {}).items()
            if entry.shape is not KEEP and name in declared
        )

    def parameters(self, model: OnnxModel) -> Iterator[Start]:
        """The inputs at which the conversion starts, in order.

        They have the order of the model unless all its inputs, or an inner tensor, are named. In the second case, other
        inputs of the model are kept if the outputs still need them. An initializer listed as an input, as IR version 3
        requires, is not an input.

        Raises:
            UsageError: a type is neither declared nor given, or a value does not fit it.
        """
        proto = model.proto.graph
        constants = {each.name for each in proto.initializer} | {each.values.name for each in proto.sparse_initializer}
        listed = {entry.name: entry.type for entry in proto.input if entry.name not in constants}
        declared = {entry.name: entry.type for entry in (*proto.value_info, *proto.output)} | listed
        entries = self.inputs or {}
        open_ = [name for name, entry in entries.items() if entry.shape is KEEP or entry.dtype is None]
        undeclared = [name for name in open_ if name not in declared]
        declared |= types_of(model, undeclared) if undeclared else {}
        cuts = not set(entries) <= set(listed)
        names = listed if set(entries) < set(listed) else dict.fromkeys((*entries, *listed))
        for name in names:
            try:
                type_ = type_from(declared[name], symbolic=True) if name in declared else UNKNOWN
            except UnsupportedError as error:
                raise error.at(Origin(output=name)) from error.__cause__
            yield Start(name, *_with_entry(name, type_, entries.get(name)), cuts and name not in entries)


class Start(NamedTuple):
    """One input. `value` is None unless it is frozen. With `if_needed` the input is kept only if something reads it."""

    name: str
    type: Any
    value: Any
    if_needed: bool


def _no_outputs(model: OnnxModel) -> ModelError:
    last = next((name for node in reversed(model.proto.graph.node) for name in reversed(node.output) if name), "")
    return ModelError(
        "the model has no outputs", why="only nodes that an output needs are converted: there are none", code="ML220",
        hint=f"name the tensors that become the outputs, for example {last!r}" if last else "export the model again",
    )


def _with_entry(name: str, type_: Any, entry: InputEntry | None) -> tuple[Any, Any]:
    """The type and the value (None unless frozen) of an input, with its entry applied."""
    if isinstance(type_, OptionalType):
        element, value = _with_entry(name, type_.element, entry)
        return OptionalType(element), value
    if isinstance(type_, SequenceType) and entry is not None and entry.shape is not KEEP:
        return SequenceType(TensorType(entry.dtype or type_.element.dtype, entry.shape)), None
    if not isinstance(type_, TensorType):
        return type_, None
    if entry is not None:
        shape = type_.shape if entry.shape is KEEP else entry.shape
        type_ = TensorType(entry.dtype or type_.dtype, shape)
    if type_.dtype is None:
        raise UsageError(
            f"the element type of {name!r} is not known: it cannot become an input", code="ML202",
            why="the model does not declare it, and inference does not find it",
            hint=f"give the type as well: {name}{{f32}}",
        )
    return type_, None if entry is None or entry.value is None else _frozen(name, type_, type_.dtype, entry.value)


def _frozen(name: str, type_: TensorType, dtype: ElementType, value: Any) -> Any:
    """The value as an array of the input's type."""
    try:
        array = np.asarray(value)
        if array.dtype.kind == "c" and dtype.kind != "complex":
            raise TypeError("numpy would drop the imaginary part")
        with np.errstate(invalid="ignore"):  # a value that does not fit raises an error below
            cast = array.astype(dtype.numpy)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{shown(value)} is not a value of {dtype} for the input {name!r}", code="ML202") from None
    if not dtype.is_float and not np.array_equal(cast, array):
        raise UsageError(f"the input {name!r} is of {dtype}, which cannot hold {shown(value)}", code="ML202")
    shape: Shape = type_.shape
    if shape is None or cast.shape == shape:
        return cast
    if is_static(shape):
        sizes: Any = shape
        if cast.size == np.prod(sizes, dtype=np.int64):
            return cast.reshape(sizes)
        if cast.ndim == 0:
            return np.broadcast_to(cast, sizes)
    elif cast.ndim == len(shape):
        return cast
    elif cast.size == 1:
        return cast.reshape([1] * len(shape))
    raise UsageError(f"a value of shape {list(cast.shape)} does not fit the input {name!r}: {type_}", code="ML202")


def _joined(entry: InputEntry, frozen: InputEntry) -> InputEntry:
    """Join an entry of `--input` and an entry of `--freeze` for the same tensor."""
    if entry.value is not None:
        why = "--input and --freeze both name one"
        raise UsageError(f"{entry.name!r} is given a value twice", why=why, hint="freeze it once", code="ML202")
    for one, other, what in ((entry.shape, frozen.shape, "shapes"), (entry.dtype, frozen.dtype, "element types")):
        if one not in (KEEP, None) and other not in (KEEP, None):
            why = "--input and --freeze both give one"
            raise UsageError(f"{entry.name!r} is given two {what}", why=why, hint="give one of them", code="ML202")
    shape = entry.shape if frozen.shape is KEEP else frozen.shape
    return InputEntry(entry.name, shape, frozen.dtype or entry.dtype, frozen.value)


def _entries(given: Any, names: _Names) -> list[InputEntry]:
    """The argument `input`, in any of its forms, as entries. One without a name means the input at its position."""
    if isinstance(given, str):
        return parse_inputs(given, names)
    if isinstance(given, Mapping):
        return [_entry((name, *(each if _is_entry(each) else (each,)))) for name, each in given.items()]
    if not _is_shape(given):  # an element type
        return [_entry((given,))]
    parts = tuple(given)
    if _is_bare_shape(parts):
        return [_entry((parts,))]
    if isinstance(given, tuple) and _is_entry(given):
        parts = (given,)
    found: list[InputEntry] = []
    for each in parts:
        if isinstance(each, str):
            found.extend(parse_inputs(each, names))
        else:
            found.append(_entry(each if isinstance(each, tuple) and _is_entry(each) else (each,)))
    return found


def _is_bare_shape(parts: tuple[Any, ...]) -> bool:
    """Whether these are dimensions, possibly of OpenVINO, and not names, shapes or element types."""
    if any(isinstance(each, int | np.integer) or hasattr(each, "get_min_length") for each in parts):
        return True
    return None in parts and all(each is None or isinstance(each, tuple) for each in parts)


def _is_entry(given: Any) -> bool:
    """Whether this is a tuple of a name, a shape and an element type, where the first or the last may be absent."""
    if not isinstance(given, tuple) or len(given) < 2 or _is_bare_shape(given):
        return False
    first, *others = given
    if isinstance(first, str):
        return not all(isinstance(each, str) for each in others)
    return _is_shape(first) and not _is_entry(first) and len(others) == 1 and not _is_shape(others[0])


def _entry(parts: tuple[Any, ...]) -> InputEntry:
    """Whether an item of a tuple is a shape: shapes can be iterated over, element types cannot."""
    entry = InputEntry()
    if isinstance(parts[0], str):
        entry, parts = InputEntry(parts[0]), parts[1:]
    for part in parts:
        if part is None or part is KEEP:
            continue
        entry = replace(entry, shape=shape_of(part)) if _is_shape(part) else replace(entry, dtype=dtype_of(part))
    return entry


def _is_shape(given: Any) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, str | Mapping)


def tensor_of_node(model: OnnxModel, name: str) -> str | None:
    """The tensor that the name of a node, or of one of its ports, means; None for the name of a tensor, or of nothing.

    UsageError for a name that several nodes have.
    """
    names = _Names(model)
    return None if name in names.tensors or not names.has_node(name) else names.resolved(name)


class _Names:
    """The names by which a user can refer to a model's tensors."""

    def __init__(self, model: OnnxModel) -> None:
        graph = model.proto.graph
        self._model = model
        self._graph = graph
        self.tensors = {entry.name for entry in (*graph.input, *graph.initializer, *graph.output)}
        self.tensors.update(name for node in graph.node for name in node.output if name)
        self._nodes = by_key((node.name, node) for node in graph.node if node.name)

    def __contains__(self, name: object) -> bool:
        return name in self.tensors or name in self._nodes

    def of_inputs(self) -> list[str]:
        constants = {each.name for each in self._graph.initializer}
        return [entry.name for entry in self._graph.input if entry.name not in constants]

    def has_node(self, name: str) -> bool:
        """Whether a name is that of a node, or of a port of one."""
        parts = {name, name.rpartition(":")[0], name.partition(":")[2]}
        return any(each in self._nodes for each in parts)

    def resolved(self, name: str) -> str:
        """The tensor that `name` means: a tensor's own name, a node's, or a node's with a port."""
        if name in self.tensors:
            return name
        if name in self._nodes:
            return self._port(name, self._node(name).output, "0")
        node, _, port = name.rpartition(":")
        if node in self._nodes and port.isdecimal():
            return self._port(name, self._node(node).output, port)
        port, _, node = name.partition(":")
        if node in self._nodes and port.isdecimal():
            return self._port(name, self._node(node).input, port)
        inputs = ", ".join(self.of_inputs()[:6])
        elsewhere = self._elsewhere(name)
        raise UsageError(
            f"the {'main graph' if elsewhere else 'model'} has no tensor {name!r}",
            why=elsewhere or "no tensor and no node of the main graph has this name",
            hint=did_you_mean(name, (*self.tensors, *self._nodes), f"its inputs are {inputs}" if inputs else "", 0.6),
            code="ML202",
        )

    def _node(self, name: str) -> Any:
        """The one node of this name; ONNX lets several nodes have one."""
        node, *others = self._nodes[name]
        if others:
            outputs = [each for every in (node, *others) for each in every.output if each]
            raise UsageError(
                f"{1 + len(others)} nodes have the name {name!r}", why="the name does not identify one of them",
                hint=f"name a tensor: {', '.join(outputs[:6])}", code="ML202",
            )
        return node

    def _elsewhere(self, name: str) -> str:
        """The reason if a body has a tensor of that name or path; otherwise empty."""
        for scope in all_graphs(self._model):
            names = {tensor.name for tensor in tensors_of(scope)}
            paths = (Origin(scope.scope, output=each).path for each in names)
            if scope.scope and (name in names or name in paths):
                return f"it is in the body {scope.path}, and a model can be cut only in its main graph"
        return ""

    def _port(self, name: str, ports: Iterable[str], digits: str) -> str:
        ports, number = list(ports), whole_number(digits)
        if number is None or number >= len(ports) or not ports[number]:
            present = ", ".join(f"{place} ({port})" for place, port in enumerate(ports) if port)
            raise UsageError(
                f"{shown(name)} has no port {shown(number)}", why=f"the ports of the node: {present or 'none'}",
                hint="node:0 is its first output, 0:node its first input", code="ML202",
            )
        return ports[number]
