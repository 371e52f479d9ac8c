"""Labels: LabelEncoder, CategoryMapper, and the strings of classifiers.

Strings become numbers and numbers become strings by lists of the strings; between them, labels are numbers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop.frontend.ops.classical.features import DOMAIN, is_integer, no_strings, require_narrow
from mo_loop.frontend.ops.shared import full
from mo_loop.frontend.ops.texts.strings import as_bytes, encoded, labelled_by
from mo_loop.frontend.vocabulary import Context, ModelError, Value, ops, translates
from mo_loop.graph.types import i64, string
from mo_loop.ops.front import Failed
from mo_loop.ops.ranges import Floats, Ints, Strings


def with_labels(made: Sequence[Any], labels: Strings | None, node: Context) -> list[Any]:
    """The labels and the scores, where string labels replace their numbers. One label alone has no number for the other
    class: that is an error only if an output depends on it."""
    if not labels:
        return list(made)
    if len(labels) == 1:
        error = node.located(no_strings("one label of strings for two classes"))
        return [Failed(graph=node.graph, error=error, count=1, name=node.path).output, *made[1:]]
    return [labelled_by(made[0], as_bytes(labels)), *made[1:]]


@translates("LabelEncoder", since=1, domain=DOMAIN)
def label_encoder_1(
    x, *, classes_strings: Strings | None = None, default_int64: int = -1, default_string: str = "_Unused"
):
    """Strings to their numbers, or back."""
    words, numbers = classes_strings or (), tuple(range(len(classes_strings or ())))
    return category_mapper(
        x, cats_int64s=numbers, cats_strings=words, default_int64=default_int64, default_string=default_string
    )


@translates("CategoryMapper", since=1, domain=DOMAIN)
def category_mapper(
    x, *, cats_int64s: Ints | None = None, cats_strings: Strings | None = None, default_int64: int = -1,
    default_string: str = "_Unused",
):
    """Strings to numbers by two lists, or back."""
    numbers, words = cats_int64s or (), cats_strings or ()
    if x.dtype is string:
        return _encoded(x, as_bytes(words), numbers, np.int64(default_int64))
    return _encoded(x, numbers, as_bytes(words), default_string.encode())


@translates("LabelEncoder", since=2, domain=DOMAIN)
def label_encoder_2(
    x, *, default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
    keys_floats: Floats | None = None, keys_int64s: Ints | None = None, keys_strings: Strings | None = None,
    values_floats: Floats | None = None, values_int64s: Ints | None = None, values_strings: Strings | None = None,
):
    """The first of equal keys is used."""
    default: Any = np.float32(default_float) if values_floats else np.int64(default_int64)
    values: Any = values_floats or values_int64s
    if values_strings:
        values, default = as_bytes(values_strings), default_string.encode()
    keys = as_bytes(keys_strings) if keys_strings else keys_floats or keys_int64s
    return _encoded(x, keys, values, default)


@translates("LabelEncoder", since=4, domain=DOMAIN)
def label_encoder_4(
    x, *, default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
    default_tensor: Any = None, keys_floats: Floats | None = None, keys_int64s: Ints | None = None,
    keys_strings: Strings | None = None, keys_tensor: Any = None, values_floats: Floats | None = None,
    values_int64s: Ints | None = None, values_strings: Strings | None = None, values_tensor: Any = None,
):
    """The last of equal keys is used; keys and values of other types are tensors."""
    keys: Any = as_bytes(keys_strings) if keys_strings else keys_floats or keys_int64s or _listed(keys_tensor)
    values: Any = as_bytes(values_strings) if values_strings else values_floats or values_int64s
    values = _listed(values_tensor) if values_tensor is not None else values
    if isinstance(values, list):
        default: Any = default_string.encode() if default_tensor is None else _listed(default_tensor)[0]
        return _encoded(x, keys, values, default, is_last=True)
    if default_tensor is not None:
        default = default_tensor.reshaped(()).array()
    else:
        is_float = values_floats or (values_tensor is not None and values_tensor.dtype.is_float)
        default = np.float32(default_float) if is_float else np.int64(default_int64)
    if values_tensor is not None:
        default = default.astype(values.dtype)
    return _encoded(x, keys, values, default, is_last=True)


def _listed(tensor: Any) -> Any:
    """The elements of an attribute: an array of numbers, or a list of strings."""
    if tensor is None:
        return None
    array = tensor.array().reshape(-1)
    return as_bytes(array.tolist()) if tensor.dtype is string else array


def _encoded(x: Value, keys, values, default, is_last: bool = False):
    if keys is None or values is None or len(keys) != len(values) or (isinstance(keys, list) and not keys):
        raise ModelError("the node needs as many values as keys", code="ML227")
    if isinstance(values, list):
        numbers = np.arange(len(values))
        return labelled_by(_encoded(x, keys, numbers, np.int64(len(values)), is_last), [*values, default])
    if isinstance(keys, list) is not (x.dtype is string):
        raise ModelError(f"keys of {'strings' if isinstance(keys, list) else 'numbers'} for {x.type}", code="ML227")
    if isinstance(keys, list):
        pairs = list(zip(keys, values, strict=True))
        known = dict(pairs if is_last else reversed(pairs))
        table = np.array([*known.values(), default], default.dtype)
        return ops.Gather(table, encoded(x, list(known), len(known)), 0)
    if x.dtype.is_integer and _are_dense(np.array(keys, np.int64)):
        return _from_table(x, np.array(keys, np.int64), np.array(values, default.dtype), default, is_last)
    table = np.array([default, *values], default.dtype)
    order = np.arange(1, len(keys) + 1)
    if not is_last:
        order = order[::-1]  # the largest number wins below
        table = np.concatenate([table[:1], table[:0:-1]])
    places = _found(ops.Unsqueeze(x, -1), np.array(keys, x.dtype.numpy))
    numbers = ops.Select(places, order, np.int64(0))
    return ops.Gather(table, ops.ReduceMax(numbers, [-1], keep_dims=False), 0)


def _are_dense(keys) -> bool:
    """Whether a table of all integers from the least to the largest key is small, and f32 holds them."""
    is_near = len(keys) and int(keys.max()) - int(keys.min()) < 4 * len(keys) + 64
    return bool(is_near and keys.min() > -(2**24) and keys.max() < 2**24)


def _from_table(x: Value, keys, values, default, is_last: bool):
    """The default is at both ends of the table, and between the keys."""
    low, high = int(keys.min()) - 1, int(keys.max()) + 1
    table = full((high - low + 1,), default, default.dtype)
    order = slice(None) if is_last else slice(None, None, -1)
    table[keys[order] - low] = values[order]
    place = ops.Maximum(ops.Minimum(x.astype(i64), np.int64(high)), np.int64(low))
    return ops.Gather(table, place - np.int64(low), 0)


def _found(x: Value, keys):
    """The mask of the key to which an element [..., 1] is equal."""
    if x.dtype.is_integer:
        require_narrow(keys)
        return is_integer(x, keys)
    found: Any = ops.Equal(x, keys)
    if np.any(np.isnan(keys)):
        found = ops.Select(np.isnan(keys), ops.IsNaN(x), found)
    return found
