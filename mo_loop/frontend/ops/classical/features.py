"""ai.onnx.ml operators that scale, encode and concatenate features, and those of labels: LabelEncoder, CategoryMapper,
and the strings of classifiers.

Strings become numbers and numbers become strings by lists of the strings; between them, features and labels are
numbers. Other operators refuse strings: the IR cannot compare them.

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
from mo_loop.frontend.ops.shared import full, number, ones, ranked, require_choice, zeros
from mo_loop.frontend.ops.texts.strings import as_bytes, constant_strings, encoded, labelled_by
from mo_loop.frontend.vocabulary import Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f32, i64, string
from mo_loop.ops.front import Failed
from mo_loop.ops.lengths import vector
from mo_loop.ops.ranges import FewOrNone, Floats, Ints, Strings, require_parts

DOMAIN = "ai.onnx.ml"


def no_strings(what: str) -> UnsupportedError:
    """The error for a form of an operator that reads or makes strings."""
    return UnsupportedError(
        f"{what}: the IR has no operation that computes this with strings", code="ML303",
        hint="give the model numbers in place of the strings, and translate them outside",
    )


def _require_numbers(*values: Value) -> None:
    if any(value.dtype is string for value in values):
        raise no_strings("an input of strings")


@translates("ArrayFeatureExtractor", since=1, domain=DOMAIN)
def array_feature_extractor(x, y):
    """Elements of the last axis; a vector is one row."""
    labels = constant_strings(x)
    if labels is None:
        _require_numbers(x)
    rank = ranked(x)
    if not rank:
        raise ModelError("the input is a scalar, and has no features", code="ML227")
    if labels is not None and rank == 1 and labels:
        return ops.Unsqueeze(labelled_by(vector(y), labels), 0)
    if labels is not None:
        raise no_strings(f"strings of the shape {x.type}")
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


def _row(numbers: Sequence[float], kind: Any = np.float32):
    array = np.array(numbers, kind)
    return array.reshape(()) if array.size == 1 else array


@translates("Normalizer", since=1, domain=DOMAIN)
def normalizer(x, *, norm: str = "MAX"):
    """Each row divided by its largest element, the sum of its magnitudes, or its length; by 1 where that is 0."""
    rows = {
        "MAX": lambda y: ops.ReduceMax(y, [-1], keep_dims=True),
        "L1": lambda y: ops.ReduceL1(y, [-1], keep_dims=True),
        "L2": lambda y: ops.ReduceL2(y, [-1], keep_dims=True),
    }
    require_choice("norm", norm, rows)
    if ranked(x) not in (1, 2):
        raise ModelError(f"the input has rank {x.rank}, and must be [N, C] or [C]", code="ML227")
    y = x.astype(f32)
    size = rows[norm](y)
    return y / ops.Select(ops.Equal(size, 0), number(y, 1), size)


@translates("FeatureVectorizer", since=1, domain=DOMAIN)
def feature_vectorizer(*x, inputdimensions: Ints | None = None):
    """The inputs concatenated along the rows, each sliced or padded with zeros to its number of features."""
    widths: Sequence[int | None] = inputdimensions or [None] * len(x)
    if len(widths) != len(x):
        raise ModelError(f"inputdimensions has {len(widths)} numbers for {len(x)} inputs", code="ML227")
    parts = [_features(each, width) for each, width in zip(x, widths, strict=True)]
    return parts[0] if len(parts) == 1 else ops.Concat(*parts, axis=1)


def _features(x: Value, width: int | None) -> Value:
    rank = ranked(x)
    if rank not in (1, 2):
        raise ModelError(f"an input has rank {rank}, and must be [N, C] or [C]", code="ML227")
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
    if x.dtype.is_integer:
        found: Any = is_integer(x, replaced_value_int64)
    elif np.isnan(replaced_value_float):
        found = ops.IsNaN(x)
    else:
        found = ops.Equal(x, number(x, replaced_value_float))
    return ops.Select(found, _row(given, x.dtype.numpy), x)


def is_integer(x: Value, key):
    """Whether integers are equal to others. The runtime compares in f32: the difference to 0 is exact."""
    return ops.Equal(x - np.array(key, x.dtype.numpy), number(x, 0))


@translates("OneHotEncoder", since=1, domain=DOMAIN, ignored="zeros")
def one_hot_encoder(x, *, cats_int64s: Ints | None = None, cats_strings: Strings | None = None, zeros: int = 1):
    """A last dimension with a 1 at the index of the category. A category that is not listed gives zeros, whatever
    `zeros` is: an IR cannot raise errors at run time."""
    if cats_strings and x.dtype is string:
        x, cats_int64s = encoded(x, as_bytes(cats_strings), -1), tuple(range(len(cats_strings)))
    _require_numbers(x)
    if not cats_int64s:
        raise no_strings("categories of strings") if cats_strings else ModelError("it has no categories", code="ML227")
    places = ops.Unsqueeze(x.astype(i64), -1)
    require_narrow(np.array(cats_int64s))
    return is_integer(places, cats_int64s).astype(f32)


def require_narrow(keys) -> None:
    info = np.iinfo(np.int32)
    if np.any((keys < info.min) | (keys > info.max)):
        raise UnsupportedError("keys outside 32 bits, in which the runtime reads integers", code="ML316")


@translates("ZipMap", since=1, domain=DOMAIN)
def zip_map(x, *, classlabels_int64s: Ints | None = None, classlabels_strings: Strings | None = None, node: Context):
    """A map from labels to probabilities for each row. At an output of the model it stays the tensor [N, labels]."""
    labels = classlabels_int64s or classlabels_strings or ()
    if not node.makes_model_output() or node.translation.is_read(node.outputs[0]):
        raise UnsupportedError(
            "ZipMap whose maps are read in the model: the IR has only tensors, and no maps from keys to values",
            code="ML311", hint="cut the model at the input of ZipMap (--output), which has the same numbers",
        )
    rank = ranked(x)
    width = x.type.dims[-1] if rank else 0
    if rank not in (1, 2) or (isinstance(width, int) and width != len(labels)):
        raise ModelError(f"the input is {x.type}, and there are {len(labels)} labels", code="ML227")
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
    if pool_strings and x.dtype is string:
        words = list(dict.fromkeys(as_bytes(pool_strings)))
        numbers = {word: number for number, word in enumerate(words)}
        x, pool_int64s = encoded(x, words, -1), tuple(numbers[each] for each in as_bytes(pool_strings))
    elif x.dtype is string or pool_strings:
        raise ModelError(f"n-grams of {'strings' if pool_strings else 'integers'} for an input {x.type}", code="ML227")
    require_choice("mode", mode, ("TF", "IDF", "TFIDF"))
    rank = ranked(x)
    if rank not in (1, 2):
        raise ModelError(f"the input has rank {rank}, and must be [C] or [N, C]", code="ML227")
    pools = _pools(pool_int64s or (), ngram_counts)
    if sum(len(each) for each in pools) != len(ngram_indexes):
        raise ModelError(f"there are {len(ngram_indexes)} ngram_indexes, and another number of n-grams", code="ML227")
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
            found.append(ops.Broadcast(np.float32(0), ops.Concat(x.sizes[:-1], np.array([len(pool)]), axis=0)))
    return _weighed(ops.Concat(*found, axis=rank - 1), ngram_indexes, mode, weights)


def _pools(pool: Ints, starts: Ints) -> list[Any]:
    """The n-grams [count, n] for n = 1, 2, ..."""
    if not starts:
        raise ModelError("the node has no ngram_counts", code="ML227")
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
        here = ops.Equal(ops.Unsqueeze(piece, -1) - pool[:, place].astype(x.dtype.numpy), number(x, 0))
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


# -- labels


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


@translates("LabelEncoder", since=2, domain=DOMAIN, without="default_tensor keys_tensor values_tensor")
@translates("LabelEncoder", since=4, domain=DOMAIN)
def label_encoder_2(
    x, *, default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
    default_tensor: Any = None, keys_floats: Floats | None = None, keys_int64s: Ints | None = None,
    keys_strings: Strings | None = None, keys_tensor: Any = None, values_floats: Floats | None = None,
    values_int64s: Ints | None = None, values_strings: Strings | None = None, values_tensor: Any = None, node: Context,
):
    """The first of equal keys is used, and from version 4 on the last; keys and values of other types are tensors."""
    is_last = node.opset >= 4
    keys: Any = as_bytes(keys_strings) if keys_strings else keys_floats or keys_int64s or _listed(keys_tensor)
    values: Any = as_bytes(values_strings) if values_strings else values_floats or values_int64s
    values = _listed(values_tensor) if values_tensor is not None else values
    if isinstance(values, list):
        default: Any = default_string.encode() if default_tensor is None else _listed(default_tensor)[0]
        return _encoded(x, keys, values, default, is_last)
    if default_tensor is not None:
        default = default_tensor.reshaped(()).array()
    else:
        is_float = values_floats or (values_tensor is not None and values_tensor.dtype.is_float)
        default = np.float32(default_float) if is_float else np.int64(default_int64)
    if values_tensor is not None:
        default = default.astype(values.dtype)
    return _encoded(x, keys, values, default, is_last)


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
    numbers = ops.Select(_found(ops.Unsqueeze(x, -1), np.array(keys, x.dtype.numpy)), order, np.int64(0))
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
