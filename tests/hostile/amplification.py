"""Small files that ask for much: each part takes work, memory or bytes of the output that grow faster than the file."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.hostile.cases import add_models, ints, model, node

KIND = "amplification"


def _chain(op: str, count: int, *more: str, **attributes: Any) -> list[onnx.NodeProto]:
    """Each node reads the one before, and `more`."""
    names = ["x", *(f"t{i}" for i in range(1, count)), "y"]
    return [node(op, " ".join([names[i], *more]), names[i + 1], **attributes) for i in range(count)]


def _sizes(op: str, count: int, *, same: bool, by: int = 3) -> onnx.ModelProto:
    """The size of the input, multiplied by itself, added to itself or divided again and again."""
    nodes = [node("Shape", "x", "s0")]
    for i in range(count):
        nodes.append(node(op, f"s{i} s{i}" if same else f"s{i} by", f"s{i + 1}"))
    nodes.append(node("Cast", f"s{count}", "y", to=TensorProto.FLOAT))
    return model(nodes, constants=[] if same else [ints("by", by)], shape=("N",))


def _unknown_attributes(count: int) -> onnx.ModelProto:
    made = model([node("Relu")])
    made.graph.node[0].attribute.extend(helper.make_attribute(f"a{i}", 1) for i in range(count))
    return made


def _equal_constants(count: int) -> onnx.ModelProto:
    names = [f"w{i}" for i in range(count)]
    weights = [numpy_helper.from_array(np.float32([3]), name) for name in names]
    return model([node("Sum", " ".join(["x", *names]))], constants=weights)


def _functions(count: int) -> onnx.ModelProto:
    imports = [helper.make_opsetid("", 18)]
    made = [
        helper.make_function("local", f"f{i}", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], imports)
        for i in range(count)
    ]
    calls = [helper.make_node(f"f{i}", [f"t{i}" if i else "x"], [f"t{i + 1}"], domain="local") for i in range(count)]
    return model(calls, functions=made, outputs=[f"t{count}"])


def _sum_of_symbols(count: int) -> onnx.ModelProto:
    names = [f"x{i}" for i in range(count)]
    made = model([node("Concat", " ".join(names), axis=0)], shape=("N",))
    made.graph.input.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"n_{name}"]) for name in names)
    return made


def _outputs(count: int) -> onnx.ModelProto:
    names = [f"y{i}" for i in range(count)]
    return model([node("Identity", "x", name) for name in names], outputs=names)


add_models(KIND, {
    "size_multiplied_by_itself_60_times": lambda: _sizes("Mul", 60, same=True),
    "size_added_to_itself_500_times": lambda: _sizes("Add", 500, same=True),
    "size_divided_300_times": lambda: _sizes("Div", 300, same=False),
    "size_multiplied_500_times": lambda: _sizes("Mul", 500, same=False, by=2**40),
    "sum_of_500_symbols": lambda: _sum_of_symbols(500),
    "activations_2000_times": lambda: model(_chain("Relu", 2000)),
    "identities_5000_times": lambda: model(_chain("Identity", 5000)),
    "equal_constants_150": lambda: _equal_constants(150),
    "unknown_attributes_50000": lambda: _unknown_attributes(50_000),
    "functions_1000": lambda: _functions(1000),
    "outputs_of_one_tensor_1000": lambda: _outputs(1000),
})


# -- attributes and tensors that name a size


def _learned(op: str, outputs: str = "y", **attributes: Any) -> onnx.ModelProto:
    """A node of ai.onnx.ml."""
    names = outputs.split()
    made = model([helper.make_node(op, ["x"], names, domain="ai.onnx.ml", **attributes)], outputs=names)
    made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 5))
    return made


def _pairs_of_classes(count: int) -> onnx.ModelProto:
    return _learned(
        "SVMClassifier", "y z", classlabels_ints=[1] * 3, coefficients=[1.0], kernel_type="LINEAR", rho=[0.0],
        kernel_params=[0.0] * 3, support_vectors=[1.0] * 3, vectors_per_class=[1] + [0] * count,
    )


def _targets(count: int) -> onnx.ModelProto:
    return _learned(
        "TreeEnsembleRegressor", n_targets=count, nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0] * 3, nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values=[0.0] * 3,
        nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_treeids=[0] * 2, target_nodeids=[1, 2],
        target_ids=[0] * 2, target_weights=[1.0, 2.0],
    )


def _members(count: int) -> onnx.ModelProto:
    def part(values: Any) -> onnx.TensorProto:
        found: onnx.TensorProto = numpy_helper.from_array(values)
        return found

    return _learned(
        "TreeEnsemble", n_targets=1, tree_roots=[0], nodes_featureids=[0], nodes_truenodeids=[0],
        nodes_falsenodeids=[1], nodes_trueleafs=[1], nodes_falseleafs=[1], leaf_targetids=[0, 0],
        leaf_weights=part(np.float32([1, 2])), nodes_splits=part(np.float32([0])), nodes_modes=part(np.uint8([6])),
        membership_values=part(np.arange(count, dtype=np.float32)),
    )


def _grams(count: int, skipped: int = 0, place: int = 0) -> onnx.ModelProto:
    gram = node(
        "TfIdfVectorizer", max_gram_length=count, min_gram_length=1, max_skip_count=skipped, mode="TF",
        ngram_counts=[0] * count, ngram_indexes=[place], pool_int64s=[5] * count,
    )
    return model([gram], shape=(1, 4), dtype=TensorProto.INT64)


def _windows(size: int) -> onnx.ModelProto:
    unfold = helper.make_node("UnfoldTensor", ["x"], ["y"], domain="com.microsoft", dim=-1, size=size, step=1)
    return model([unfold], shape=(2, "n"))


def _sparse(data_type: int, elements: int, count: int = 1) -> onnx.ModelProto:
    """Sparse tensors of one element."""
    names = [f"w{i}" for i in range(count)]
    nodes = [node("Gather", f"{name} x", f"y_{name}", axis=0) for name in names]
    made = model(nodes, shape=(1,), outputs=[f"y_{name}" for name in names], dtype=TensorProto.INT64, opset=21)
    for place, name in enumerate(names):
        value = onnx.TensorProto(name=name, data_type=data_type, dims=[1])
        if data_type == TensorProto.STRING:
            value.string_data.append(b"a")
        else:
            value.raw_data = bytes([place + 1])
        made.graph.sparse_initializer.append(
            onnx.SparseTensorProto(values=value, indices=ints(f"i_{name}", 5), dims=[elements])
        )
    return made


add_models(KIND, {
    "pairs_of_20000_classes": lambda: _pairs_of_classes(20_000),
    "targets_of_2_to_the_28": lambda: _targets(2**28),
    "members_20000": lambda: _members(20_000),
    "gram_at_place_2_to_the_30": lambda: _grams(1, place=2**30 + 1),
    "gram_of_100_with_4096_gaps": lambda: _grams(100, skipped=4096),
    "windows_of_2_to_the_30": lambda: _windows(2**30),
    "sparse_int4_of_2000000000": lambda: _sparse(TensorProto.INT4, 2_000_000_000),
    "sparse_strings_of_400000000": lambda: _sparse(TensorProto.STRING, 400_000_000),
    "sparse_tensors_12_of_400000000": lambda: _sparse(TensorProto.INT8, 400_000_000, 12),
})
