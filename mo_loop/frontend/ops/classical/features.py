"""ai.onnx.ml operators that scale, encode and concatenate features. Strings are refused: the IR cannot compare them.

TfIdfVectorizer counts n-grams of numbers, with gaps between their members.

[1, 5, 1, 5, 7] with the 2-grams (1, 5) and (5, 5), gaps up to 1   ->   (1, 5) twice, (5, 5) once
"""

import json
import warnings
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from mo_loop.errors import ConversionWarning
from mo_loop.frontend.ops.normalisation import ranked
from mo_loop.frontend.ops.shared import full, number, ones, zeros
from mo_loop.frontend.vocabulary import Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f32, i64, string
from mo_loop.ops.front import Failed
from mo_loop.ops.lengths import vector
from mo_loop.ops.ranges import FewOrNone, Floats, Ints, Strings, require_parts

DOMAIN = "ai.onnx.ml"


def no_strings(what: str) -> UnsupportedError:
    """The error for a form of an operator that reads or makes strings."""
    return UnsupportedError(
        f"{what}: the IR has no operation that compares or makes strings", code="ML303",
        hint="give the model numbers in place of the strings, and translate them outside",
    )


def without_strings(made: Sequence[Any], labels: Strings | None, node: Context) -> list[Any]:
    """The labels and the scores; instead of string labels a value that is an error only if an output depends on it."""
    if not labels:
        return list(made)
    error = node.located(no_strings("labels of strings"))
    return [Failed(graph=node.graph, error=error, count=1, name=node.path).output, *made[1:]]


def _require_numbers(*values: Value) -> None:
    if any(value.dtype is string for value in values):
        raise no_strings("an input of strings")


@translates("ArrayFeatureExtractor", since=1, domain=DOMAIN)
def array_feature_extractor(x, y):
    """Elements of the last axis; a vector is one row."""
    _require_numbers(x)
    rank = ranked(x, "ArrayFeatureExtractor")
    if not rank:
        raise ModelError("ArrayFeatureExtractor of a scalar", code="ML227")
    picked = ops.Gather(x, vector(y), rank - 1)
    return ops.Unsqueeze(picked, 0) if rank == 1 else picked


@translates("Binarizer", since=1, domain=DOMAIN)
def binarizer(x, *, threshold: float = 0.0):
    """1 above the threshold, else 0."""
    if x.dtype.is_integer:
        above: Any = x > number(x, np.floor(threshold))
    else:
        above = ops.Less(number(x, threshold), x)
    return above.astype(x.dtype)


@translates("Scaler", since=1, domain=DOMAIN)
def scaler(x, *, offset: Floats | None = None, scale: Floats | None = None):
    """(x - offset) * scale, one number for all features or one for each."""
    y = x.astype(f32)
    if offset:
        y = y - _row(offset)
    return y * _row(scale) if scale else y


def _row(numbers: Sequence[float]):
    array = np.array(numbers, np.float32)
    return array.reshape(()) if array.size == 1 else array


@translates("Normalizer", since=1, domain=DOMAIN)
def normalizer(x, *, norm: str = "MAX"):
    """Each row divided by its largest element, the sum of its magnitudes, or its length; by 1 where that is 0."""
    rows = {
        "MAX": lambda y: ops.ReduceMax(y, [-1], keep_dims=True),
        "L1": lambda y: ops.ReduceL1(y, [-1], keep_dims=True),
        "L2": lambda y: ops.ReduceL2(y, [-1], keep_dims=True),
    }
    if norm not in rows:
        raise ModelError(f"norm {norm!r}: ONNX defines MAX, L1 and L2", code="ML227")
    if ranked(x, "Normalizer") not in (1, 2):
        raise ModelError(f"Normalizer of a tensor of rank {x.rank}, not [N, C] or [C]", code="ML227")
    y = x.astype(f32)
    size = rows[norm](y)
    return y / ops.Select(ops.Equal(size, 0), number(y, 1), size)


@translates("FeatureVectorizer", since=1, domain=DOMAIN)
def feature_vectorizer(*x, inputdimensions: Ints | None = None):
    """The inputs concatenated along the rows, each sliced or padded with zeros to its number of features."""
    widths: Sequence[int | None] = inputdimensions or [None] * len(x)
    if len(widths) != len(x):
        raise ModelError(f"{len(widths)} inputdimensions for {len(x)} inputs", code="ML227")
    parts = [_features(each, width) for each, width in zip(x, widths, strict=True)]
    return parts[0] if len(parts) == 1 else ops.Concat(*parts, axis=1)


def _features(x: Value, width: int | None) -> Value:
    rank = ranked(x, "FeatureVectorizer")
    if rank not in (1, 2):
        raise ModelError(f"an input of rank {rank}, not [N, C] or [C]", code="ML227")
    row = x.astype(f32) if rank == 2 else ops.Unsqueeze(x.astype(f32), 0)
    have = row.size(1)
    if width is None or have == width:
        return row
    if isinstance(have, int):
        missing: Any = [0, max(width - have, 0)]
    else:
        missing = ops.Concat([0], ops.Unsqueeze(ops.Maximum(np.int64(width) - have, 0), 0), axis=0)
    return ops.Pad(row[:, :width], [0, 0], missing, np.float32(0))


@translates("Imputer", since=1, domain=DOMAIN)
def imputer(
    x, *, imputed_value_floats: Floats | None = None, imputed_value_int64s: Ints | None = None,
    replaced_value_float: float = 0.0, replaced_value_int64: int = 0,
):
    """Elements equal to one value become another, one for all features or one for each."""
    given = imputed_value_floats if x.dtype.is_float else imputed_value_int64s
    if not given:
        raise ModelError(f"Imputer has no value to put into a tensor of {x.dtype}", code="ML227")
    new = np.array(given, x.dtype.numpy)
    if x.dtype.is_integer:
        found: Any = _is_integer(x, replaced_value_int64)
    elif np.isnan(replaced_value_float):
        found = ops.IsNaN(x)
    else:
        found = ops.Equal(x, number(x, replaced_value_float))
    return ops.Select(found, new.reshape(()) if new.size == 1 else new, x)


def _is_integer(x: Value, key):
    """Whether integers are equal to others. The runtime compares in f32: the difference to 0 is exact."""
    return ops.Equal(x - np.array(key, x.dtype.numpy), number(x, 0))


@translates("OneHotEncoder", since=1, domain=DOMAIN, ignored="zeros")
def one_hot_encoder(x, *, cats_int64s: Ints | None = None, cats_strings: Strings | None = None, zeros: int = 1):
    """A last dimension with a 1 at the index of the category. A category that is not listed gives zeros, whatever
    `zeros` is: an IR cannot raise errors at run time."""
    _require_numbers(x)
    if not cats_int64s:
        raise no_strings("categories of strings") if cats_strings else ModelError("no categories", code="ML227")
    places = ops.Unsqueeze(x.astype(i64), -1)
    _require_narrow(np.array(cats_int64s))
    return _is_integer(places, cats_int64s).astype(f32)


@translates("LabelEncoder", since=1, domain=DOMAIN, ignored="x classes_strings default_int64 default_string")
def label_encoder_1(
    x, *, classes_strings: Strings | None = None, default_int64: int = -1, default_string: str = "_Unused"
):
    """Strings to integers, or back."""
    raise no_strings("LabelEncoder of version 1")


@translates("LabelEncoder", since=2, domain=DOMAIN, ignored="default_string")
def label_encoder_2(
    x, *, default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
    keys_floats: Floats | None = None, keys_int64s: Ints | None = None, keys_strings: Strings | None = None,
    values_floats: Floats | None = None, values_int64s: Ints | None = None, values_strings: Strings | None = None,
):
    """The first of equal keys is used."""
    _require_numbers(x)
    if keys_strings or values_strings:
        raise no_strings("keys or values of strings")
    default = np.float32(default_float) if values_floats else np.int64(default_int64)
    values = values_floats or values_int64s
    return _encoded(x, keys_floats or keys_int64s, values, default, is_last=False)


@translates("LabelEncoder", since=4, domain=DOMAIN, ignored="default_string")
def label_encoder_4(
    x, *, default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
    default_tensor: Any = None, keys_floats: Floats | None = None, keys_int64s: Ints | None = None,
    keys_strings: Strings | None = None, keys_tensor: Any = None, values_floats: Floats | None = None,
    values_int64s: Ints | None = None, values_strings: Strings | None = None, values_tensor: Any = None,
):
    """The last of equal keys is used; keys and values of other types are tensors."""
    _require_numbers(x)
    is_strings = [each is not None and each.dtype is string for each in (keys_tensor, values_tensor)]
    if keys_strings or values_strings or any(is_strings):
        raise no_strings("keys or values of strings")
    keys = keys_floats or keys_int64s or (None if keys_tensor is None else keys_tensor.array().reshape(-1))
    if default_tensor is not None:
        default = default_tensor.reshaped(()).array()
    else:
        is_float = values_floats or (values_tensor is not None and values_tensor.dtype.is_float)
        default = np.float32(default_float) if is_float else np.int64(default_int64)
    values = values_floats or values_int64s
    if values_tensor is not None:
        values = values_tensor.array().reshape(-1)
        default = default.astype(values.dtype)
    return _encoded(x, keys, values, default, is_last=True)


def _encoded(x: Value, keys, values, default, is_last: bool):
    if keys is None or values is None or len(keys) != len(values):
        raise ModelError("LabelEncoder needs as many values as keys", code="ML227")
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
        _require_narrow(keys)
        return _is_integer(x, keys)
    found: Any = ops.Equal(x, keys)
    if np.any(np.isnan(keys)):
        found = ops.Select(np.isnan(keys), ops.IsNaN(x), found)
    return found


def _require_narrow(keys) -> None:
    info = np.iinfo(np.int32)
    if np.any((keys < info.min) | (keys > info.max)):
        raise UnsupportedError("keys outside 32 bits, in which the runtime reads integers", code="ML316")


@translates("ZipMap", since=1, domain=DOMAIN)
def zip_map(x, *, classlabels_int64s: Ints | None = None, classlabels_strings: Strings | None = None, node: Context):
    """A map from labels to probabilities for each row. At an output of the model it stays the tensor [N, labels]."""
    labels = classlabels_int64s or classlabels_strings or ()
    if not node.is_unread_model_output():
        raise UnsupportedError(
            "ZipMap whose maps are read in the model: the IR has only tensors, and no maps from keys to values",
            code="ML311", hint="cut the model at the input of ZipMap (--output), which has the same numbers",
        )
    rank = ranked(x, "ZipMap")
    width = x.type.dims[-1] if rank else 0
    if rank not in (1, 2) or (isinstance(width, int) and width != len(labels)):
        raise ModelError(f"ZipMap of {x.type} for {len(labels)} labels", code="ML227")
    name = node.outputs[0]
    node.graph.rt_info.setdefault("class_labels", {})[name] = json.dumps(list(labels))
    shown = ", ".join(map(str, labels[:3])) + (", ..." if len(labels) > 3 else "")
    text = f"the output {name!r} is a tensor [N, {len(labels)}] in place of maps; its columns are the labels {shown}"
    warnings.warn(ConversionWarning(text, where=node.origin, code="ML560"), stacklevel=2)
    return ops.Identity(x) if rank == 2 else ops.Unsqueeze(x, 0)


@translates("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(
    x, *, max_gram_length: int, max_skip_count: FewOrNone, min_gram_length: int, mode: str, ngram_counts: Ints,
    ngram_indexes: Ints, pool_int64s: Ints | None = None, pool_strings: Strings | None = None,
    weights: Floats | None = None,
):
    """[N, count] of [N, C], [count] of [C]."""
    if x.dtype is string or pool_strings:
        raise no_strings("n-grams of strings")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise ModelError(f"mode {mode!r}: ONNX defines TF, IDF and TFIDF", code="ML227")
    rank = ranked(x, "TfIdfVectorizer")
    if rank not in (1, 2):
        raise ModelError(f"TfIdfVectorizer of a tensor of rank {rank}, not [C] or [N, C]", code="ML227")
    pools = _pools(pool_int64s or (), ngram_counts)
    if sum(len(each) for each in pools) != len(ngram_indexes):
        raise ModelError(f"{len(ngram_indexes)} ngram_indexes for another number of n-grams", code="ML227")
    counted = {
        length: range(1, 2 if length == 1 else max_skip_count + 2)
        for length, pool in enumerate(pools, 1)
        if len(pool) and min_gram_length <= length <= max_gram_length
    }
    require_parts(sum(length * len(gaps) for length, gaps in counted.items()), "the members of n-grams with all gaps")
    found = []
    for length, pool in enumerate(pools, 1):
        if length in counted:
            found.append(reduce(ops.Add, [_counted(x, pool, gap) for gap in counted[length]]))
        elif len(pool):
            count = len(pool)
            rows = x.sizes[:-1]
            found.append(ops.Broadcast(np.float32(0), ops.Concat(rows, np.array([count]), axis=0)))
    return _weighed(ops.Concat(*found, axis=rank - 1), ngram_indexes, mode, weights)


def _pools(pool: Ints, starts: Ints) -> list[Any]:
    """The n-grams [count, n] for n = 1, 2, ..."""
    if not starts:
        raise ModelError("TfIdfVectorizer has no ngram_counts", code="ML227")
    ends = [*starts[1:], len(pool)]
    pieces = [pool[start:end] for start, end in zip(starts, ends, strict=True)]
    if any(len(piece) % n for n, piece in enumerate(pieces, 1)):
        raise ModelError("ngram_counts cut the pool inside an n-gram", code="ML227")
    return [np.array(piece, np.int64).reshape(-1, n) for n, piece in enumerate(pieces, 1)]


def _counted(x: Value, pool, gap: int) -> Value:
    """[N, count]: how often each n-gram occurs with its members `gap` places apart."""
    length = pool.shape[1]
    hits: Any = None
    for place in range(length):
        rest = (length - 1 - place) * gap
        piece = x.cut(-1, place * gap, -rest or 2**30)
        # The runtime compares integers in f32: their difference to 0 is exact.
        gone = ops.Unsqueeze(piece, -1) - pool[:, place].astype(x.dtype.numpy)
        here = ops.Equal(gone, number(x, 0))
        hits = here if hits is None else hits & here
    return ops.ReduceSum(hits.astype(f32), [-2], keep_dims=False)


def _weighed(counts: Value, places: Sequence[int], mode: str, weights: Floats | None):
    """The counts of n-grams at their places, n-grams of one place added up."""
    size = max(places) + 1
    matrix = zeros((len(places), size), np.float32)
    matrix[np.arange(len(places)), list(places)] = 1
    # One row times the matrix: a vector is made one, and back.
    row = counts if counts.rank == 2 else ops.Unsqueeze(counts, 0)
    made = row @ matrix
    if mode == "IDF":
        made = ops.Minimum(made, np.float32(1))
    if mode != "TF" and weights:
        made = made * _at_places(weights, places, size)
    return made if counts.rank == 2 else ops.Squeeze(made, 0)


def _at_places(weights: Floats, places: Sequence[int], size: int):
    """The weight of each place. ONNX gives it to the n-gram, ONNX Runtime to the place of that number."""
    found = ones([size], np.float32)
    found[list(places)] = weights
    agreed = all(place < len(weights) and weights[place] == each for place, each in zip(places, weights, strict=True))
    if not agreed:
        raise UnsupportedError(
            "weights in another order than ngram_indexes: runtimes differ in which weight they use",
            code="ML316", hint="order ngram_indexes and weights alike",
        )
    return found
