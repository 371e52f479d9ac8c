"""The roles of the integer inputs of a model, which decide the values that make sense for them.

    roles(model)["tokens"]            # Role("index", below=30522): reads rows of a table of that length
    roles(model)["steps"]             # Role("count"): the trip count of a Loop
    roles(model)["sr"]                # Role("choice", values=(8000, 16000)): compared with one of them

An input is followed through operators that keep its values (`KEEPS`), and into bodies, to the operators that read it.
`values_of` draws values for a role.
"""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from mo_loop.errors import InputError, error_of_numbers
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.node_order import names_defined_in
from mo_loop.frontend.onnx_graphs import body_protos, graph_protos, operator_of
from mo_loop.graph.types import ElementType

INDEX, COUNT, LENGTH, AXIS, SIZE, SCALE, MASK, ANY = "index", "count", "length", "axis", "size", "scale", "mask", ""
CHOICE = "choice"

PORTS = {
    ("Gather", 1): INDEX, ("GatherElements", 1): INDEX, ("GatherND", 1): INDEX, ("ScatterElements", 1): INDEX,
    ("Scatter", 1): INDEX, ("ScatterND", 1): INDEX, ("OneHot", 0): INDEX, ("SequenceAt", 1): INDEX,
    ("com.microsoft::EmbedLayerNormalization", 0): INDEX, ("com.microsoft::EmbedLayerNormalization", 1): INDEX,
    ("Loop", 0): COUNT, ("TopK", 1): COUNT, ("Range", 1): COUNT, ("OneHot", 1): COUNT, ("Tile", 1): COUNT,
    ("Upsample", 1): SCALE, ("Resize", 2): SCALE,
    ("LSTM", 4): LENGTH, ("GRU", 4): LENGTH, ("RNN", 4): LENGTH, ("ReverseSequence", 1): LENGTH,
    ("CumSum", 1): AXIS, ("Squeeze", 1): AXIS, ("Unsqueeze", 1): AXIS, ("ReduceSum", 1): AXIS, ("ReduceMean", 1): AXIS,
    ("Slice", 3): AXIS, ("SequenceErase", 1): AXIS, ("SequenceInsert", 2): AXIS,
    ("ConstantOfShape", 0): SIZE, ("Expand", 1): SIZE, ("Resize", 3): SIZE, ("Slice", 2): SIZE,
    ("com.microsoft::GroupQueryAttention", 5): LENGTH, ("com.microsoft::Attention", 3): MASK,
}
"""(operator, number of the input) -> the role of the value that it reads there."""

KEEPS = frozenset((
    "Cast", "CastLike", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Transpose", "Tile",
    "Slice", "Gather", "Concat", "Min", "Clip", "SequenceConstruct",
))
"""Operators whose first output has values of their first input. Concat has those of every input."""


_INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)

_LENGTH_NAME = re.compile(r"length|(^|_)(seq_?)?lens?($|_)")
"""The name of an input with lengths of sequences."""

RATES = (8000, 16000)
"""Sampling rates: of a model that compares an input with one of them, the other one is the rate that it means else."""


@dataclass(frozen=True)
class Role:
    """The meaning of the values: an `INDEX` is `below` a length, if that is known; a `CHOICE` is one of `values`.

    With `is_position`, step after step continues the numbers of the one before (step_inputs.py). `words` are strings
    that the model knows.
    """

    kind: str = ANY
    below: int | None = None
    is_position: bool = False
    values: tuple[int, ...] = ()
    words: tuple[str, ...] = ()


def roles(model: OnnxModel) -> dict[str, Role]:
    """The role of each input of the main graph that has one."""
    graph = model.proto.graph
    tables = {each.name: tuple(each.dims) for each in graph.initializer}
    found = {}
    for entry in graph.input:
        if entry.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            found[entry.name] = Role(words=_words_of(model.proto.graph))
            continue
        role = _role(model.proto, entry, tables)
        role = replace(role, is_position="position" in entry.name.lower() and role.kind in (ANY, INDEX))
        if role.kind or role.is_position:
            found[entry.name] = role
    return found


def _words_of(graph: Any) -> tuple[str, ...]:
    """The first strings in lists of attributes, such as keys and n-grams, and a text of all of them."""
    listed = (each for node in graph.node for attribute in node.attribute for each in attribute.strings)
    words = list(dict.fromkeys(each.decode(errors="replace") for each in islice(listed, 16)))
    return (*words, " ".join(words)) if words else ()


def _role(model: Any, entry: Any, tables: dict[str, tuple[int, ...]]) -> Role:
    """The first role among COUNT, LENGTH ...; of several indices the smallest length."""
    name = entry.name
    uses = list(_uses(model.graph, name))
    kinds = {PORTS.get(use[1:]) for use in uses}
    for kind in (COUNT, SIZE, SCALE, AXIS, LENGTH):
        if kind in kinds:
            return Role(kind)
    if INDEX in kinds:
        lengths = [_length(use[0], use[2], tables) for use in uses if PORTS.get(use[1:]) == INDEX]
        return Role(INDEX, min((each for each in lengths if each is not None), default=None))
    if "mask" in name.lower() or MASK in kinds:
        return Role(MASK)
    if _LENGTH_NAME.search(name.lower()):
        return Role(LENGTH)
    shape = entry.type.tensor_type
    if not shape.HasField("shape") or any(dim.dim_value != 1 for dim in shape.shape.dim):
        return Role()
    constants, compared = constant_integers(model), set[int]()  # those with which Equal compares the one element
    for node, operator, port in uses:
        if operator == "Equal":
            compared.update(constants.get(node.input[1 - port], ()))
    if compared.intersection(RATES):
        compared.update(RATES)
    return Role(CHOICE, values=tuple(sorted(compared))) if compared else Role()


def constant_integers(model: Any, most: int = 16) -> dict[str, tuple[int, ...]]:
    """The elements of integer constants of at most `most` elements, of initializers and Constant nodes, bodies and
    functions included, by their names."""
    found: dict[str, tuple[int, ...]] = {}
    for graph in graph_protos(model):
        named = [(each.name, each) for each in getattr(graph, "initializer", ())]
        for node in graph.node:
            if node.op_type == "Constant":
                named += [(node.output[0], each.t) for each in node.attribute if each.name == "value"]
                found.update((node.output[0], (each.i,)) for each in node.attribute if each.name == "value_int")
        for name, tensor in named:
            is_here = tensor.data_location != onnx.TensorProto.EXTERNAL
            if is_here and tensor.data_type in _INTEGERS and math.prod(tensor.dims) <= most:
                found[name] = tuple(map(int, numpy_helper.to_array(tensor).ravel()))
    return found


def _uses(graph: Any, name: str) -> Iterator[tuple[Any, str, int]]:
    """(node, operator, input) of every node that reads the values of `name`, bodies included."""
    pending, seen = [(graph, name)], set()
    while pending:
        scope, read = pending.pop()
        if (id(scope), read) in seen:
            continue
        seen.add((id(scope), read))
        for node in scope.node:
            operator = operator_of(node)
            pending += [(body, read) for body in body_protos(node) if read not in names_defined_in(body)]
            for port, each in enumerate(node.input):
                if each != read:
                    continue
                yield node, operator, port
                if operator in KEEPS and (port == 0 or operator == "Concat"):
                    pending.append((scope, node.output[0]))
                if operator == "Scan" or (operator == "Loop" and port >= 2):  # the body has the values as an input
                    bodies = body_protos(node)
                    pending += [(body, body.input[port].name) for body in bodies if port < len(body.input)]


def _length(node: Any, port: int, tables: dict[str, tuple[int, ...]]) -> int | None:
    """The length of the constant dimension that an index selects from."""
    if node.op_type == "EmbedLayerNormalization":  # the tables of words and segments; that of positions is between them
        return next(iter(tables.get(node.input[2 + 2 * port], ())), None)
    shape = tables.get(node.input[0]) if port else None
    if not shape:
        return None
    if node.op_type.endswith("ND"):
        return min(shape)
    axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
    return shape[axis] if -len(shape) <= axis < len(shape) else None


COUNTS = (3, 0, 1, 5, 2)
"""The trip counts of the sets, in turn."""

_WORDS = ("", "a", "Loop", "zero", "naïve", "Two words, a comma")


@dataclass(frozen=True)
class Input:
    """An input: its element type, and its dimensions as sizes or names. A `sequence` has such tensors."""

    name: str
    dtype: ElementType
    dims: tuple[int | str, ...]
    role: Role
    is_sequence: bool = False


@contextmanager
def possible(name: str) -> Iterator[None]:
    """InputError for values of the input `name` whose sizes exceed the memory, or the limits of numpy."""
    try:
        yield
    except (MemoryError, OverflowError, ValueError) as error:
        refused = error_of_numbers(error)
        if refused is None:
            raise
        raise InputError(
            f"no values can be generated for the input {name!r}", why=refused.message, code="ML242",
            hint="give values: --input-data FILE.npz, or other sizes: --input",
        ) from None


def values_of(
    each: Input, shape: tuple[int, ...], number: int, random: Any, *, careful: bool = False, longest: int = 1
) -> np.ndarray:
    """Values for the set of this number: `longest` is the size that a length may have, `careful` keeps integers 0 or 1.
    """
    kind, dtype = each.role.kind, each.dtype
    if dtype.kind == "string":
        found = np.empty(shape, dtype=object)
        words = (*_WORDS, *each.role.words)
        found[...] = random.choice(words, shape) if shape else str(random.choice(words))
        return found
    if dtype.kind == "bool":
        if kind == MASK and shape:
            return _mask(shape, random).astype(bool)
        # One condition is true in the first set, and in every other one.
        return random.random(shape) < 0.7 if shape else np.asarray(number % 2 == 0)
    if kind == SCALE:
        return np.ones(shape, dtype.numpy)
    if kind or dtype.kind in ("int", "uint"):  # a float can be an index, or a size
        return _integers(each, shape, number, random, careful, longest).astype(dtype.numpy)
    plain = random.random(shape) if number % 2 else random.standard_normal(shape)
    return np.asarray(plain).astype(dtype.numpy)


def _integers(each: Input, shape: tuple[int, ...], number: int, random: Any, careful: bool, longest: int) -> np.ndarray:
    kind, bits = each.role.kind, each.dtype.bits
    if kind == COUNT:
        return np.full(shape, COUNTS[number % len(COUNTS)])
    if kind == CHOICE:
        return np.full(shape, each.role.values[number % len(each.role.values)])
    if kind == MASK:
        return _mask(shape, random)
    low, end = 0, 2 if careful else 8
    if kind == SIZE:
        low, end = 1, 2 if careful else 9
    elif kind == LENGTH:
        low, end = 1, 2 if careful else max(1, longest) + 1
    elif kind == AXIS:
        end = 1
    elif kind == INDEX:
        below = 1 if each.role.below is None else each.role.below
        end = max(1, min(below, 2) if careful else below)
    elif bits <= 8 and not careful:
        low = -(1 << (bits - 1)) if each.dtype.kind == "int" else 0
        end = low + (1 << bits)
    found = np.asarray(random.integers(low, end, shape))
    if kind == LENGTH:  # the first is that of the longest sequence, which all of them can have
        found.reshape(-1)[:1] = end - 1
    return found


def _mask(shape: tuple[int, ...], random: Any) -> np.ndarray:
    """Ones, then zeros along the last dimension; at least one 1."""
    if not shape:
        return np.asarray(1)
    kept = random.integers(1, shape[-1] + 1, shape[:-1]) if shape[-1] else np.zeros(shape[:-1])
    return (np.arange(shape[-1]) < np.asarray(kept)[..., None]).astype(np.int64)
