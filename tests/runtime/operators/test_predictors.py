"""ai.onnx.ml's linear models, support vector machines and trees, compared with ONNX Runtime."""

import contextlib
import warnings
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest
from onnx import AttributeProto, helper

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.compare.oracle.oracle import OnnxRuntime
from mo_loop.errors import MoLoopError
from mo_loop.frontend.ops.classical import forest
from mo_loop.frontend.ops.classical.forest import FormTime
from mo_loop.frontend.ops.classical.tree_forms import Trees
from tests.cases import read_cases
from tests.harness import check as checked
from tests.harness import check_model, every, folded, node_model, pairs, raised, runs

from .test_features import check, ml_model, refused

TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]
TYPES = [np.float32, np.float64, np.int32, np.int64]
X = np.array([[1, -2], [0.25, 0.125], [0, 0], [-1, -1], [3, 2]], np.float32)

W3, B3 = [0.3, 0.2, -0.3, 0.1, 0.0, 0.0], [0.125, 0.25, 0.0]


def test_an_empty_list_of_strings_is_no_list_of_labels() -> None:
    attributes = {"coefficients": W3[:4], "intercepts": B3[:2], "classlabels_ints": [5, 7]}
    model = ml_model("LinearClassifier", [X], attributes, outputs=2)
    strings = helper.make_attribute("classlabels_strings", [], attr_type=AttributeProto.STRINGS)
    model.graph.node[0].attribute.append(strings)
    checked(model, {"x0": X})


def test_linear_classifier_that_does_not_fit() -> None:
    refused("LinearRegressor", [X], {"coefficients": [1.0, 2.0, 3.0], "targets": 2}, "ML227")
    refused("LinearRegressor", [X], {"coefficients": [1.0, 2.0], "post_transform": "TANH"}, "ML227")


KERNELS = {"LINEAR": [0.0, 0.0, 0.0], "RBF": [0.5, 0.0, 0.0], "POLY": [0.5, 1.0, 3.0], "SIGMOID": [0.25, -0.5, 0.0]}


VECTORS = [0.0, 1.0, -1.0, 0.5, 2.0, 1.5, -0.5, -0.5, 1.0, -1.0]


@pairs(sizes=[[2, 3], [1, 2, 2], [1, 1, 1, 2]], kernel=[*KERNELS], post=TRANSFORMS, dynamic=[False, True])
@pytest.mark.parametrize("fitted", [False, True])
def test_svm_classifier(sizes: list[int], kernel: str, post: str, dynamic: bool, fitted: bool) -> None:
    """Pairs of classes vote; of classes with equally many votes the first one wins. Fitted probabilities of pairs are
    coupled by an iteration, of which rows need from none to three steps."""
    classes = len(sizes)
    pairs_of_classes, rng = classes * (classes - 1) // 2, np.random.default_rng(classes)
    attributes = {
        "coefficients": rng.uniform(-1, 1, 5 * (classes - 1)).tolist(), "kernel_params": KERNELS[kernel],
        "kernel_type": kernel, "rho": rng.uniform(-0.3, 0.3, pairs_of_classes).tolist(),
        "support_vectors": VECTORS, "vectors_per_class": sizes, "classlabels_ints": [5, -7, 9, 3][:classes],
        "post_transform": post,
    }
    if fitted:
        attributes["prob_a"] = rng.uniform(-5, -0.5, pairs_of_classes).tolist()
        attributes["prob_b"] = rng.uniform(-0.5, 0.5, pairs_of_classes).tolist()
    x = np.random.default_rng(1).uniform(-2, 2, (30, 2)).astype(np.float32)
    check("SVMClassifier", [x], attributes, outputs=2, dynamic=dynamic)


def test_svm_classifier_that_is_refused() -> None:
    attributes = {"coefficients": [1.0, 2.0], "rho": [0.5], "support_vectors": [1.0, 2.0, 3.0, 4.0],
                  "vectors_per_class": [1, 1], "classlabels_ints": [1, 2]}
    refused("SVMClassifier", [X], {**attributes, "prob_a": [1.0]}, "ML227")
    refused("SVMClassifier", [X], {**attributes, "rho": [0.5, 0.5]}, "ML227")
    del attributes["vectors_per_class"]
    refused("SVMClassifier", [X], attributes, "ML316")


CLASSIFIERS = {
    "LinearClassifier": {"coefficients": W3, "intercepts": B3},
    "SVMClassifier": {"coefficients": [1.0, -0.5, 0.25, 0.75, -1.0, 0.5], "kernel_params": [0.5, 0.0, 0.0],
                      "kernel_type": "RBF", "rho": [0.1, 0.2, 0.3], "support_vectors": [0.0, 1.0, -1.0, 0.5, 2.0, 1.5],
                      "vectors_per_class": [1, 1, 1]},
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_of_strings(name: str) -> None:
    if not runs((2026, 2)):
        pytest.skip("earlier releases do not compile a Pad of strings")
    model = ml_model(name, [X], {**CLASSIFIERS[name], "classlabels_strings": ["a", "bc", "ä"]}, outputs=2)
    checked(model, {"x0": X}, expected=[OnnxRuntime(model).run({"x0": X})])
    checked(model, {"x0": X}, expected=[OnnxRuntime(model).run({"x0": X})[1:]], output="y1")


# -- trees

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


class Grown:
    """Random trees as the attributes of TreeEnsemble* of versions 1 and 3."""

    def __init__(self, seed: int, trees: int, features: int, modes: list[str], depth: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.features, self.modes = features, modes
        self.nodes: list[tuple[Any, ...]] = []
        self.leaves: list[tuple[int, int]] = []
        for tree in range(trees):
            self.rows: list[list[Any]] = []
            self.grow(tree, depth)
            self.nodes += [tuple(row) for row in self.rows]

    def grow(self, tree: int, depth: int) -> int:
        place = len(self.rows)
        if depth == 0 or (place and self.rng.random() < 0.2):
            self.rows.append([tree, place, 0, "LEAF", 0.0, 0, 0, 0])
            self.leaves.append((tree, place))
            return place
        # Thresholds and values come from few numbers, so that some are equal.
        self.rows.append([tree, place, int(self.rng.integers(self.features)), str(self.rng.choice(self.modes)),
                          float(self.rng.integers(-3, 4)) / 2, 0, 0, int(self.rng.integers(2))])
        self.rows[place][5] = self.grow(tree, depth - 1)
        self.rows[place][6] = self.grow(tree, depth - 1)
        return place

    def attributes(self) -> dict[str, Any]:
        names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
                 "missing_value_tracks_true")
        columns = zip(*self.nodes, strict=True)
        return {f"nodes_{name}": list(column) for name, column in zip(names, columns, strict=True)}

    def votes(self, prefix: str, ids: list[int], low: float, sparse: bool = False) -> dict[str, Any]:
        """Votes of every leaf for each of `ids`, or for some of them."""
        rows = [(*leaf, each) for leaf in self.leaves for each in ids if not sparse or self.rng.random() < 0.6]
        weights = np.round(self.rng.uniform(low, 1, len(rows)), 3).tolist()
        trees, nodes, which = (list(column) for column in zip(*rows, strict=True))
        return {f"{prefix}_treeids": trees, f"{prefix}_nodeids": nodes, f"{prefix}_ids": which,
                f"{prefix}_weights": weights}


def rows(seed: int, count: int, features: int, dtype: Any = np.float32, missing: bool = True) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, (count, features)) / (2 if np.dtype(dtype).kind == "f" else 1)
    if missing and np.dtype(dtype).kind == "f":
        x[rng.random(x.shape) < 0.1] = np.nan
    return x.astype(dtype)


def forms_of_trees(few: str, many: str | None = None) -> Any:
    """Trees have one form, or one for up to 20 rows and one for more."""
    costs = [FormTime(getattr(Trees, few), 0, 1), *([FormTime(getattr(Trees, many), 20, 0.001)] if many else [])]
    return mock.patch.object(forest, "_costs", lambda *_: costs)


@pairs(
    seed=range(3), modes=[*([mode] for mode in MODES[:4]), MODES[::2][:2], MODES], how=["SUM", "AVERAGE", "MIN", "MAX"],
    dynamic=[False, True], missing=[None, 0, 1],
    forms=[("by_columns",), ("by_columns_rows_last",), ("in_order",), ("level_by_level",), ("by_columns", "in_order")],
    tables=[0, 4, 100],
)
def test_tree_regressor(seed: int, modes: list[str], how: str, dynamic: bool, missing: int | None,
                        forms: tuple[str, ...], tables: int) -> None:
    """NaN takes the branch that each node selects. `tables` are the levels that have tables of their own."""
    grown = Grown(seed, 4, 3, modes, 4)
    attributes = {**grown.attributes(), **grown.votes("target", [0, 1], -1), "n_targets": 2, "aggregate_function": how}
    if missing is not None:
        attributes["nodes_missing_value_tracks_true"] = [missing] * len(grown.nodes)
    own = mock.patch.object(Trees, "levels_of_tables", lambda self: max(1, min(tables, self.depth)))
    with forms_of_trees(*forms), own:
        for count in (40, 2) if len(forms) > 1 else (40,):
            check("TreeEnsembleRegressor", [rows(seed, count, 3)], attributes, dynamic=dynamic)


class Vines(Grown):
    """Trees with one inner node on each level."""

    def grow(self, tree: int, depth: int) -> int:
        place = len(self.rows)
        super().grow(tree, 0)
        if depth:
            self.leaves.pop()
            yes, no = self.grow(tree, depth - 1), self.grow(tree, 0)
            self.rows[place] = [tree, place, depth % self.features, "BRANCH_LEQ", 0.5 - depth % 3, yes, no, 0]
        return place


@pytest.mark.parametrize(("kind", "trees", "depth", "count", "forms"), [
    (Vines, 100, 16, 1, ["by_columns"]), (Vines, 100, 16, 1000, ["in_order"]),
    (Vines, 100, 16, "?", ["by_columns", "in_order"]), (Grown, 100, 8, 1, ["by_columns"]),
    (Grown, 100, 8, 1000, ["level_by_level"]), (Grown, 100, 8, "?", ["by_columns", "level_by_level"]),
    (Grown, 10, 3, "?", ["by_columns_rows_last"]),
])
def test_form_of_trees(kind: type[Grown], trees: int, depth: int, count: Any, forms: list[str]) -> None:
    """Of an unknown number of rows, the runtime chooses between two where one is far from the best of some number."""
    grown = kind(1, trees, 3, MODES[:1], depth)
    attributes = {**grown.attributes(), **grown.votes("target", [0], -1), "n_targets": 1}
    model = node_model("ai.onnx.ml::TreeEnsembleRegressor", {"x": rows(1, 20, 3)}, attributes, opset=3, dynamic=True)
    spies: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        for form in ("by_columns", "by_columns_rows_last", "in_order", "level_by_level"):
            spied = stack.enter_context(mock.patch.object(Trees, form, autospec=True, side_effect=getattr(Trees, form)))
            spies[form] = spied
        graph = convert_model(model, **folded(input=f"x[{count},3]")).graph
    assert [form for form, spied in spies.items() if spied.called] == forms
    assert len(graph.of(ops.If)) == len(forms) - 1
    for each in (1, 1000) if count == "?" else ():
        check("TreeEnsembleRegressor", [rows(1, each, 3)], attributes, dynamic=True)


@pairs(modes=[*([mode] for mode in MODES[:4]), MODES[1:4:2]], missing=[0, 1, None], dynamic=[False, True])
def test_limits_and_rows_that_are_not_finite(modes: list[str], missing: int | None, dynamic: bool) -> None:
    grown = Grown(1, 6, 2, modes, 3)
    attributes = {**grown.attributes(), **grown.votes("target", [0], -1), "n_targets": 1}
    unusual = [np.nan, np.inf, -np.inf, 0.5]
    attributes["nodes_values"] = [unusual[place % 4] for place in range(len(grown.nodes))]
    if missing is not None:
        attributes["nodes_missing_value_tracks_true"] = [missing] * len(grown.nodes)
    x = np.array([[a, b] for a in unusual for b in unusual], np.float32)
    check("TreeEnsembleRegressor", [x], attributes, dynamic=dynamic)


def test_nan_is_not_replaced_where_no_test_meets_it() -> None:
    """Neither where all nodes of x <= limit lead it to one branch, nor where all lead it to the other one."""
    grown = Grown(1, 3, 2, MODES[:1], 3)
    attributes = {**grown.attributes(), **grown.votes("target", [0], -1), "n_targets": 1}
    for missing, test in ((0, ops.LessEqual), (1, ops.Less)):
        attributes["nodes_missing_value_tracks_true"] = [missing] * len(grown.nodes)
        model = node_model("ai.onnx.ml::TreeEnsembleRegressor", {"x": rows(1, 20, 2)}, attributes, opset=3)
        graph = convert_model(model).graph
        assert len(graph.of(test)) == len(graph.of(ops.Select))
        assert not graph.of(ops.Less if test is ops.LessEqual else ops.LessEqual)
        (x,) = graph.of(ops.Parameter)
        assert not any(use.node in graph.of(ops.Select) for use in x.output.uses)


def test_trees_that_share_nodes_and_limits_that_nothing_is_beyond() -> None:
    """A chain of tests for membership has one `yes` branch. NaN does not become an infinity that is the limit."""
    members = [-1.5, -0.5, 0.5, 1.0]
    attributes = {
        "n_targets": 1, "tree_roots": [0, 1], "nodes_featureids": [0, 0], "nodes_splits": doubles("s", [0.0, np.inf]),
        "nodes_modes": helper.make_tensor("m", 2, [2], [6, 0]), "nodes_truenodeids": [0, 0], "nodes_trueleafs": [1, 1],
        "nodes_falsenodeids": [1, 1], "nodes_falseleafs": [1, 1], "leaf_targetids": [0, 0],
        "leaf_weights": doubles("w", [1.0, 4.0]), "membership_values": doubles("v", [*members, np.nan]),
    }
    x = np.array([*members, 0, 2, np.inf, np.nan])[:, None]
    expected = np.where(np.isin(x, members), 1.0, 4.0) + np.where(np.isnan(x), 4.0, 1.0)
    check("TreeEnsemble", [x], attributes, version=5, expected=[expected])


@pairs(bases=[[], [0.125]], low=[0.0, -1.0], post=TRANSFORMS, version=[1, 3], dynamic=[False, True])
def test_tree_classifier_of_two(bases: list[float], low: float, post: str, version: int, dynamic: bool) -> None:
    """`low` distinguishes probabilities from distances."""
    grown = Grown(3, 2, 3, MODES[:1], 3)
    attributes = {**grown.attributes(), **grown.votes("class", [0], low), "classlabels_int64s": [4, -2]}
    if bases:
        attributes["base_values"] = bases
    attributes["post_transform"] = post
    check("TreeEnsembleClassifier", [rows(4, 40, 3)], attributes, outputs=2, version=version, dynamic=dynamic)


def opposite(grown: Grown) -> dict[str, Any]:
    """Votes of w for the second of two classes and -w for the first, as CatBoost writes them."""
    votes = grown.votes("class", [0, 1], -1)
    votes["class_weights"] = np.ravel([[-w, w] for w in votes["class_weights"][1::2]]).tolist()
    return votes


@pairs(sparse=[False, True], low=[0.0, -1.0], post=TRANSFORMS, dynamic=[False, True])
def test_two_classes_that_both_get_votes_have_scores_and_no_labels(
    sparse: bool, low: float, post: str, dynamic: bool
) -> None:
    grown = Grown(3, 2, 3, MODES[:1], 3)
    votes = grown.votes("class", [0, 1], low, sparse)
    attributes = {**grown.attributes(), **votes, "classlabels_int64s": [4, -2], "post_transform": post}
    raised(MoLoopError, check, "TreeEnsembleClassifier", [rows(4, 4, 3)], attributes, outputs=2, match="ML316")
    x = rows(4, 40, 3)
    model = ml_model("TreeEnsembleClassifier", [x], attributes, outputs=2, dynamic=dynamic)
    del model.graph.output[0]
    checked(model, {"x0": x})


MEETS = {"BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less, "BRANCH_GTE": np.greater_equal,
         "BRANCH_GT": np.greater, "BRANCH_EQ": np.equal, "BRANCH_NEQ": np.not_equal}
LARGEST = float(np.finfo(np.float32).max)


def doubles(name: str, numbers: Sequence[float]) -> Any:
    return helper.make_tensor(name, 11, [len(numbers)], numbers)


def beside(limit: float, dtype: Any) -> Any:
    """Numbers at a threshold and on both sides of it [N, 1]; those of f64 differ from it by more than f32 rounds."""
    if dtype is np.float64:
        factors = [1, 1 + 1e-6, 1 - 1e-6, 0] if abs(limit) < LARGEST else [1, -1, 0]
        return limit * np.array(factors)[:, None]
    with np.errstate(over="ignore"):
        near = np.float32(limit)
        sides = [np.nextafter(near, -near), near, np.nextafter(near, np.float32(np.inf) * near), np.float32(0)]
    return np.clip(np.array(sides)[:, None], -LARGEST, LARGEST).astype(dtype)


def one_test(limit: float, mode: str, version: int) -> dict[str, Any]:
    """The attributes of a tree of one test: 1 where it is met, else -1."""
    if version == 5:
        return {
            "n_targets": 1, "tree_roots": [0], "nodes_featureids": [0], "nodes_splits": doubles("s", [limit]),
            "nodes_modes": helper.make_tensor("m", 2, [1], [MODES.index(mode)]), "nodes_truenodeids": [0],
            "nodes_trueleafs": [1], "nodes_falsenodeids": [1], "nodes_falseleafs": [1], "leaf_targetids": [0, 0],
            "leaf_weights": doubles("w", [1.0, -1.0]),
        }
    return {
        "nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0] * 3,
        "nodes_modes": [mode, "LEAF", "LEAF"], "nodes_values_as_tensor": doubles("v", [limit, 0, 0]),
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0],
        "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights_as_tensor": doubles("w", [1.0, -1.0]),
    }


def check_one_test(x: Any, limit: float, mode: str, version: int) -> None:
    expected = np.where(MEETS[mode](x.astype(np.float64), limit), 1.0, -1.0)
    name, dtype = ("TreeEnsemble", x.dtype) if version == 5 else ("TreeEnsembleRegressor", np.float32)
    check(name, [x], one_test(limit, mode, version), version=version, expected=[expected.astype(dtype)])


@pytest.mark.parametrize("mode", MODES)
def test_doubles_that_were_floats_keep_the_thresholds_of_floats(mode: str) -> None:
    """As pipelines of scikit-learn cast their inputs."""
    x = beside(0.7, np.float32)
    model = ml_model("TreeEnsembleRegressor", [x], one_test(0.7, mode, 3), version=3)
    model.graph.node[0].input[0] = "wide"
    model.graph.node.insert(0, helper.make_node("Cast", ["x0"], ["wide"], to=11))
    check_model(model, {"x0": x}, expected=[np.where(MEETS[mode](x.astype(float), 0.7), 1, -1).astype(np.float32)])


def test_thresholds_beyond_f32_give_no_warning_of_numpy() -> None:
    grown = Grown(0, 2, 1, MODES, 3)
    attributes = {**grown.attributes(), **grown.votes("target", [0], 0.0), "n_targets": 1}
    count = len(attributes.pop("nodes_values"))
    numbers = np.resize([LARGEST, -LARGEST, 1e300, np.inf, -np.inf, 1e-300], count).tolist()
    attributes["nodes_values_as_tensor"] = doubles("v", numbers)
    model = ml_model("TreeEnsembleRegressor", [X], attributes, version=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        convert_model(model)


def test_broken_trees() -> None:
    grown = Grown(0, 1, 1, MODES[:1], 2)
    good = {**grown.attributes(), **grown.votes("target", [0], 0.0), "n_targets": 1}
    x = [rows(1, 3, 1)]
    refused("TreeEnsembleRegressor", x, {**good, "nodes_truenodeids": [0] * len(good["nodes_modes"])}, "ML227")
    refused("TreeEnsembleRegressor", x, {**good, "nodes_falsenodeids": [99] * len(good["nodes_modes"])}, "ML227")
    refused("TreeEnsembleRegressor", x, {**good, "target_ids": [4] * len(good["target_ids"])}, "ML227")
    refused("TreeEnsembleRegressor", x, {**good, "nodes_featureids": [0]}, "ML227")
    refused("TreeEnsembleRegressor", x, {**good, "nodes_featureids": [1] * len(good["nodes_modes"])}, "ML227")


@every(dynamic=[False, True], dtype=[np.float32, np.float64], how=[0, 1, 2, 3])
def test_tree_ensemble(how: int, dtype: Any, dynamic: bool) -> None:
    """Two trees: one tests membership in a set, the other is a single comparison."""
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    attributes = {
        "aggregate_function": how, "n_targets": 2, "tree_roots": [0, 2],
        "nodes_featureids": [0, 1, 1], "nodes_modes": helper.make_tensor("m", 2, [3], [6, 0, 3]),
        "nodes_splits": helper.make_tensor("s", number, [3], [0.0, 0.5, -1.0]),
        "nodes_truenodeids": [0, 1, 3], "nodes_trueleafs": [1, 1, 1],
        "nodes_falsenodeids": [1, 2, 4], "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 0, 1, 1, 0],
        "leaf_weights": helper.make_tensor("w", number, [5], [1.5, -2.5, 3, 4, 5.25]),
        "membership_values": helper.make_tensor("v", number, [4], [-1.5, 0.5, 1.0, np.nan]),
    }
    x = rows(6, 40, 2, dtype, missing=False)
    first = np.where(np.isin(x[:, 0], [-1.5, 0.5, 1.0]), 0, np.where(x[:, 1] <= 0.5, 1, 2))
    second = np.where(x[:, 1] > -1, 3, 4)
    weights = np.array([1.5, -2.5, 3, 4, 5.25])
    targets = np.array([0, 0, 1, 1, 0])
    expected = np.zeros((len(x), 2))
    for row, leaves in enumerate(zip(first, second, strict=True)):
        for target in (0, 1):
            given = [weights[leaf] for leaf in leaves if targets[leaf] == target]
            reduce = [lambda v: sum(v) / 2, sum, min, max][how]
            expected[row, target] = reduce(given) if given else 0
    check("TreeEnsemble", [x], attributes, version=5, dynamic=dynamic, expected=[expected.astype(dtype)])


read_cases(globals())
