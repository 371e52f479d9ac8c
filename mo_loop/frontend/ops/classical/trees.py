"""ai.onnx.ml: ensembles of decision trees."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop import ops as operations
from mo_loop.frontend.ops.classical import predictors
from mo_loop.frontend.ops.classical.features import DOMAIN, with_labels
from mo_loop.frontend.ops.classical.forest import LEAF, Forest, Votes
from mo_loop.frontend.ops.classical.tree_forms import MODES, Leaves
from mo_loop.frontend.ops.shared import first_numbers, number, require_choice, zeros
from mo_loop.frontend.vocabulary import Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import ElementType, f64
from mo_loop.ops.ranges import FloatArray, Floats, IntArray, Ints, Strings

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_MEMBER = 6


@translates(
    "TreeEnsembleRegressor", since=1, domain=DOMAIN,
    without="base_values_as_tensor nodes_hitrates_as_tensor nodes_values_as_tensor target_weights_as_tensor",
)
@translates("TreeEnsembleRegressor", since=3, domain=DOMAIN, ignored="nodes_hitrates nodes_hitrates_as_tensor")
def tree_ensemble_regressor(
    x, *, aggregate_function: str = "SUM", base_values: Floats | None = None, base_values_as_tensor: Any = None,
    n_targets: int | None = None, nodes_falsenodeids: IntArray | None = None, nodes_featureids: IntArray | None = None,
    nodes_hitrates: FloatArray | None = None, nodes_hitrates_as_tensor: Any = None,
    nodes_missing_value_tracks_true: IntArray | None = None, nodes_modes: Strings | None = None,
    nodes_nodeids: IntArray | None = None, nodes_treeids: IntArray | None = None,
    nodes_truenodeids: IntArray | None = None, nodes_values: FloatArray | None = None,
    nodes_values_as_tensor: Any = None, post_transform: str = "NONE", target_ids: IntArray | None = None,
    target_nodeids: IntArray | None = None, target_treeids: IntArray | None = None,
    target_weights: FloatArray | None = None, target_weights_as_tensor: Any = None,
):
    """[N, targets]: the aggregated votes of the leaves of all trees. From version 3 on, numbers may be f64 tensors."""
    forest, places = _by_ids(
        nodes_treeids, nodes_nodeids, nodes_featureids, nodes_modes, _either(nodes_values, nodes_values_as_tensor),
        nodes_truenodeids, nodes_falsenodeids, nodes_missing_value_tracks_true,
    )
    count = n_targets or int(max(_listed(target_ids), default=0)) + 1
    weights = _either(target_weights, target_weights_as_tensor)
    votes = _votes(places, count, target_treeids, target_nodeids, target_ids, weights, aggregate_function)
    bases = tuple(_either(base_values, base_values_as_tensor))
    return _regressed(x, forest, votes, aggregate_function, bases, post_transform)


@translates(
    "TreeEnsembleClassifier", since=1, domain=DOMAIN,
    without="base_values_as_tensor class_weights_as_tensor nodes_hitrates_as_tensor nodes_values_as_tensor",
)
@translates("TreeEnsembleClassifier", since=3, domain=DOMAIN, ignored="nodes_hitrates nodes_hitrates_as_tensor")
def tree_ensemble_classifier(
    x, *, base_values: Floats | None = None, base_values_as_tensor: Any = None, class_ids: IntArray | None = None,
    class_nodeids: IntArray | None = None, class_treeids: IntArray | None = None,
    class_weights: FloatArray | None = None, class_weights_as_tensor: Any = None,
    classlabels_int64s: Ints | None = None, classlabels_strings: Strings | None = None,
    nodes_falsenodeids: IntArray | None = None, nodes_featureids: IntArray | None = None,
    nodes_hitrates: FloatArray | None = None, nodes_hitrates_as_tensor: Any = None,
    nodes_missing_value_tracks_true: IntArray | None = None, nodes_modes: Strings | None = None,
    nodes_nodeids: IntArray | None = None, nodes_treeids: IntArray | None = None,
    nodes_truenodeids: IntArray | None = None, nodes_values: FloatArray | None = None,
    nodes_values_as_tensor: Any = None, post_transform: str = "NONE", node: Context,
):
    """The labels [N], and the scores [N, classes]. From version 3 on, numbers may be f64 tensors."""
    forest, places = _by_ids(
        nodes_treeids, nodes_nodeids, nodes_featureids, nodes_modes, _either(nodes_values, nodes_values_as_tensor),
        nodes_truenodeids, nodes_falsenodeids, nodes_missing_value_tracks_true,
    )
    labels = classlabels_int64s or range(len(classlabels_strings or ()))
    weights = _either(class_weights, class_weights_as_tensor)
    votes = _votes(places, len(labels), class_treeids, class_nodeids, class_ids, weights)
    leaves = forest.leaves(predictors.rows_of(x, "an ensemble of trees"), numbers_of(x))
    bases = tuple(_either(base_values, base_values_as_tensor))
    ids = set(_listed(class_ids).tolist())
    if len(labels) > 2 or (ids == {0, 1} and len(labels) == 2 and not bases and not node.makes(0)):
        made = _of_many_classes(leaves, forest, votes, labels, bases, post_transform)
    else:
        made = _of_two_classes(leaves, forest, votes, labels, bases, ids, post_transform)
    return with_labels(made, classlabels_strings, node)


@translates("TreeEnsemble", since=5, domain=DOMAIN, ignored="nodes_hitrates")
def tree_ensemble(
    x, *, aggregate_function: int = 1, leaf_targetids: Ints, leaf_weights: Any, membership_values: Any = None,
    n_targets: int | None = None, nodes_falseleafs: Ints, nodes_falsenodeids: Ints, nodes_featureids: Ints,
    nodes_hitrates: Any = None, nodes_missing_value_tracks_true: Ints | None = None, nodes_modes: Any,
    nodes_splits: Any, nodes_trueleafs: Ints, nodes_truenodeids: Ints, post_transform: int = 0, tree_roots: Ints,
):
    """Inner nodes and leaves are separate lists; a node may test for membership in a set."""
    require_choice("aggregate_function", aggregate_function, range(len(AGGREGATES)))
    require_choice("post_transform", post_transform, range(len(predictors.TRANSFORMS)))
    inner, leaves = len(nodes_featureids), len(leaf_targetids)
    limits, modes = (each.array().reshape(-1) for each in (nodes_splits, nodes_modes))
    missing = nodes_missing_value_tracks_true or [0] * inner
    ends = (nodes_trueleafs, nodes_truenodeids, nodes_falseleafs, nodes_falsenodeids)
    if any(len(each) != inner for each in (limits, modes, missing, *ends)):
        raise ModelError("the lists of nodes are of different length", code="ML227")
    yes, no = (
        np.where(is_leaf, np.array(ends) + inner, ends)
        for is_leaf, ends in ((nodes_trueleafs, nodes_truenodeids), (nodes_falseleafs, nodes_falsenodeids))
    )
    columns = [nodes_featureids, limits, modes, yes, no, missing]
    filler = [[0] * leaves] * 3 + [list(range(inner, inner + leaves))] * 2 + [[0] * leaves]
    table = [[*column, *rest] for column, rest in zip(columns, filler, strict=True)]
    if _MEMBER in modes:
        _spell_out_members(table, [] if membership_values is None else membership_values.array().reshape(-1))
    is_leaf = np.zeros(len(table[0]), bool)
    is_leaf[inner : inner + leaves] = True
    forest = _forest(table, is_leaf, tree_roots)
    places = range(inner, inner + leaves)
    count = n_targets or max(leaf_targetids, default=0) + 1
    votes = Votes.collected(len(is_leaf), count, places, leaf_targetids, leaf_weights.array().reshape(-1))
    transform = list(predictors.TRANSFORMS)[post_transform]
    return _regressed(x, forest, votes, AGGREGATES[aggregate_function], None, transform).astype(x.dtype)


def _spell_out_members(table: list[list[Any]], members) -> None:
    """Replaces each node that tests for membership by a chain of nodes that test for equality, in place."""
    groups: list[list[Any]] = [[]]
    for member in members:
        if np.isnan(member):
            groups.append([])
        else:
            groups[-1].append(member)
    features, limits, modes, yes, no, missing = table
    asking = [place for place, mode in enumerate(modes) if mode == _MEMBER]
    if len(groups) < len(asking):
        raise ModelError(f"{len(asking)} nodes test for membership, in {len(groups)} sets", code="ML227")
    for place, group in zip(asking, groups, strict=False):
        modes[place] = MODES.index("BRANCH_EQ")
        otherwise, limits[place] = no[place], group[0] if group else np.nan
        for member in group[1:]:
            no[place] = len(features)
            for column, item in zip(
                table, (features[place], member, modes[place], yes[place], otherwise, missing[place]), strict=True
            ):
                column.append(item)
            place = len(features) - 1


def _forest(table: Sequence[Any], is_leaf, roots) -> Forest:
    features, limits, modes, yes, no, missing = (np.asarray(each) for each in table)
    if np.any(modes >= len(MODES)):
        raise ModelError(f"a node has the mode {modes.max()}, which ONNX does not define", code="ML227")
    return Forest(
        features, limits.astype(np.float64, copy=False), modes.astype(np.int8), yes.astype(np.int32),
        no.astype(np.int32), missing.astype(bool), np.array(roots, np.int64), is_leaf,
    )


class _Places:
    """The indices of nodes that have a tree number and a node number."""

    def __init__(self, trees: Sequence[int], nodes: Sequence[int]) -> None:
        self._trees, self._nodes = np.unique(trees), np.unique(nodes)
        keys = self._keys(trees, nodes)
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]
        if np.any(self._sorted[1:] == self._sorted[:-1]):
            raise ModelError("two nodes of a tree have the same number", code="ML227")

    def __len__(self) -> int:
        return len(self._order)

    def of(self, trees: Sequence[int], nodes: Sequence[int]):
        """The index of each pair of numbers; -1 where there is no such node."""
        keys = self._keys(trees, nodes)
        at = np.minimum(np.searchsorted(self._sorted, keys), len(self) - 1)
        return np.where((keys >= 0) & (self._sorted[at] == keys), self._order[at], -1)

    def _keys(self, trees: Sequence[int], nodes: Sequence[int]):
        tree, node = _ranks(self._trees, trees), _ranks(self._nodes, nodes)
        return np.where((tree < 0) | (node < 0), -1, tree * len(self._nodes) + node)


def _ranks(known, numbers: Sequence[int]):
    """The places of numbers in an ascending array; -1 for those that it does not have."""
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.where(known[at] == numbers, at, -1)


def _by_ids(
    treeids: Any, nodeids: Any, featureids: Any, modes: Strings | None, limits: Any, yes: Any, no: Any, missing: Any
) -> tuple[Forest, _Places]:
    """The forest of nodes that have a tree number and a node number, and the index of each node."""
    columns = trees, nodes, features, limits, yes, no = [
        _listed(each) for each in (treeids, nodeids, featureids, limits, yes, no)
    ]
    count, kinds = len(nodes), modes or ()
    missing = zeros((count,), bool) if missing is None or not len(missing) else missing
    if not count or any(len(each) != count for each in (*columns, kinds, missing)):
        raise ModelError("the lists of nodes are empty, or of different length", code="ML227")
    places = _Places(trees, nodes)
    unknown = set(kinds) - {LEAF, *MODES}
    if unknown:
        raise ModelError(f"a node has the mode {unknown.pop()!r}, which ONNX does not define", code="ML227")
    numbers = {LEAF: -1, **{mode: number for number, mode in enumerate(MODES)}}
    mode = np.fromiter(map(numbers.__getitem__, kinds), np.int8, count)
    is_leaf, own = mode < 0, first_numbers(count, np.int32)
    ends = [np.where(is_leaf, own, places.of(trees, listed)).astype(np.int32) for listed in (yes, no)]
    is_below = zeros((count,), bool)
    for each in ends:
        is_below[each[(each != own) & (each >= 0)]] = True
    table = [features, limits, np.maximum(mode, 0), *ends, missing]
    return _forest(table, is_leaf, np.flatnonzero(~is_below)), places


def _votes(places: _Places, count: int, treeids: Any, nodeids: Any, ids: Any, weights: Any, how: str = "SUM") -> Votes:
    trees, nodes, ids = _listed(treeids), _listed(nodeids), _listed(ids)
    voting = min(len(trees), len(nodes))
    found = places.of(trees[:voting], nodes[:voting])
    if np.any(found < 0):
        raise ModelError("a leaf that the trees do not have votes", code="ML227")
    if count == 1 and len(found) == len(ids) == len(weights):
        # sklearn-onnx writes the number of a leaf once for each class, and relies on ONNX Runtime, which reads the
        # first vote of a leaf if there is one output.
        _, first = np.unique(found, return_index=True)
        found, ids, weights = (np.asarray(each)[first] for each in (found, ids, weights))
    return Votes.collected(len(places), count, found, ids, weights, how)


def _listed(numbers: Any) -> Any:
    """An attribute that may be absent."""
    return zeros((0,), np.int64) if numbers is None else numbers


def _either(floats: Any, tensor) -> Any:
    return _listed(floats) if tensor is None else tensor.array().reshape(-1)


def _regressed(x: Value, forest: Forest, votes: Votes, how: str, bases, post_transform: str) -> Value:
    require_choice("aggregate_function", how, AGGREGATES)
    leaves = forest.leaves(predictors.rows_of(x, "an ensemble of trees"), numbers_of(x))
    made = votes.extreme(leaves, how == "MAX") if how in ("MIN", "MAX") else votes.total(leaves)
    if how == "AVERAGE":
        made = made / number(made, len(forest.roots))
    made = _with_bases(made, bases or ())
    transformed = predictors.transformed_alone if votes.weights.shape[1] == 1 else predictors.transformed
    return transformed(made, post_transform)


def _with_bases(scores: Value, bases: Sequence[float]) -> Value:
    return scores if not bases else scores + np.array(bases, np.float32)


def _of_many_classes(
    leaves: Leaves, forest: Forest, votes: Votes, labels: Sequence[int], bases: Sequence[float], post_transform: str
) -> list[Any]:
    """The label is the class of the largest score among those with a vote."""
    scores = _with_bases(votes.total(leaves), bases)
    ranked = scores
    if not votes.are_certain(forest):
        ranked = ops.Select(votes.has_votes(leaves), scores, number(scores, -np.inf))
    return [predictors.labelled(ranked, labels), predictors.transformed(scores, post_transform)]


def _of_two_classes(
    leaves: Leaves, forest: Forest, votes: Votes, labels: Sequence[int], bases: Sequence[float], ids: set[int],
    post_transform: str,
) -> list[Any]:
    """The votes are for one class, whose sum is the score of the second one, a probability or a signed margin; or they
    are w and -w for the two classes, as CatBoost writes them."""
    if len(labels) == 2 and ids == {0, 1} and not bases and votes.are_opposite(forest):
        scores = votes.total(leaves)
        second = ops.Less(number(scores, 0), scores[:, 1:2])
        return [_one_of_two(second, labels), predictors.transformed(scores, post_transform)]
    if len(labels) < 2 or ids != {0} or len(bases) > 1 or post_transform == "PROBIT":
        raise UnsupportedError(
            "two classes whose leaves vote for both, or for the second, or one class: runtimes return other labels "
            "than ONNX defines", code="ML316",
            hint="convert the scores alone (--output), or let all votes be for class 0, with one base value at most",
        )
    score = votes.total(leaves)[:, :1]
    score = _with_bases(score, bases)
    is_probability = bool(np.all(votes.weights >= 0))
    second = ops.Less(number(score, 0.5 if is_probability else 0), score)
    return [_one_of_two(second, labels), predictors.both_sides(score, post_transform, is_probability)]


def _one_of_two(second: Any, labels: Sequence[int]) -> Any:
    """[N] from [N, 1]: the second label where `second` is true."""
    return ops.Squeeze(ops.Select(second, np.int64(labels[1]), np.int64(labels[0])), 1)


_KEEPS_NUMBERS = (
    operations.Convert, operations.Gather, operations.Identity, operations.Reshape, operations.Slice,
    operations.Squeeze, operations.Transpose, operations.Unsqueeze,
)


def numbers_of(x: Value) -> ElementType:
    """The element type that holds all numbers of x: of numbers that become f64, their type before."""
    while x.dtype is f64 and isinstance(x.node, _KEEPS_NUMBERS):
        x = x.node.operands[0]
    return x.dtype
