"""MatMul, Gemm and Einsum, compared with ONNX Runtime."""

import numpy as np
import pytest
from onnx import numpy_helper

from tests.harness import NEWEST, check, check_node, every, parsed

RNG = np.random.default_rng(5)
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(
    ("a", "b"),
    [((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
     ((5, 1, 2, 3), (4, 3, 2)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,))],
)
@dynamic_or_not
def test_matmul(a, b, dynamic):
    check_node("MatMul", {"a": floats(*a), "b": floats(*b)}, opset=13, dynamic=dynamic)


@every(b=[(5, 3, 4), (5, 3, 1), (2, 5, 3, 4)], a=[(2, 3), (1, 2, 3), (3,)])
def test_matmul_of_unknown_sizes_and_a_constant(a, b):
    check_node("MatMul", {"a": floats(*a), "b": floats(*b)}, opset=13, constants=("b",), dynamic=True)


@dynamic_or_not
def test_matmul_with_a_constant_of_no_columns(dynamic):
    arrays = {"a": floats(2, 3, 5), "b": floats(5, 0)}
    check_node("MatMul", arrays, opset=13, constants=("b",), dynamic=dynamic, expected=[floats(2, 3, 0)])


@every(sizes=["2, 3, 4", "B, T, 4", "B, T, K"], scaled=["Mul (m, c)", "Div (m, c)", "ReduceMax <keepdims = 1> (m)"])
def test_scaled_products_with_a_constant_vector(sizes, scaled):
    """Attention that pools over time."""
    check(parsed(f"""main (float[{sizes}] x) => (float[A, B] y) <float[4] w = {{1, -2, 3, 4}}, float c = {{2}}>
        {{ m = MatMul (x, w)  s = {scaled}  y = Sub (m, s) }}"""), {"x": floats(2, 3, 4)})


@pytest.mark.parametrize(
    ("a", "b", "factors"), [((3, 3), (3,), (3,)), ((2, 3, 3), (3,), (2, 1)), ((3,), (2, 3, 3), (2, 1)),
                            ((3,), (4, 3, 5), (1,)), ((2, 3, 3), (3,), (2, 2, 3))],
)
@every(constant=["a", "b"], dynamic=[False, True])
def test_factors_behind_products_with_vectors(a, b, factors, constant, dynamic):
    arrays = {"a": floats(*a), "b": floats(*b), "c": floats(*factors)}
    (name,) = {"a", "b"} - {constant}
    sizes = ",".join("LMN"[: arrays[name].ndim] if dynamic else map(str, arrays[name].shape))
    made = parsed(f"m (float[{sizes}] {name}) => (float[K] y) {{ m = MatMul (a, b)  n = Mul (m, c)  y = Sub (n, c) }}")
    made.graph.initializer.extend(numpy_helper.from_array(arrays[each], each) for each in (constant, "c"))
    made.graph.output[0].type.tensor_type.ClearField("shape")
    check(made, {name: arrays[name]})


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.int64, np.uint32, np.uint64])
def test_matmul_types(dtype):
    a, b = (RNG.integers(0, 5, shape).astype(dtype) for shape in ((2, 3), (3, 4)))
    check_node("MatMul", {"a": a, "b": b}, opset=13)


@every(c=[None, (), (1,), (4,), (2, 1), (1, 4), (2, 4)],
       given=[{}, {"alpha": 0.5, "beta": 2.0}, {"transA": 1, "transB": 1}, {"beta": 0.0}], dynamic=[False, True])
def test_gemm(c, given, dynamic):
    a, b = floats(*((3, 2) if "transA" in given else (2, 3))), floats(*((4, 3) if "transB" in given else (3, 4)))
    check_node("Gemm", {"a": a, "b": b, "c": None if c is None else floats(*c)}, given, opset=13, dynamic=dynamic)


@pytest.mark.parametrize(("a", "b"), [((5, 0), (0, 3)), ((5, 2), (2, 0)), ((0, 2), (2, 3)), ((0, 0), (0, 3))])
@every(transposed=[0, 1], c=[None, (1,), "row"], dynamic=[(), ("a",), ("b",)])
def test_gemm_of_nothing(a, b, transposed, c, dynamic):
    """The result is not uninitialised memory, and the runtime does not refuse a transposed operand."""
    addend = None if c is None else np.ones((b[1],) if c == "row" else c, np.float32)
    expected = np.zeros((a[0], b[1]), np.float32) + (0 if addend is None else 2 * addend)
    inputs = {"a": np.zeros(a, np.float32), "b": np.zeros(b, np.float32), "c": addend}
    if transposed:
        inputs |= {"a": inputs["a"].T, "b": inputs["b"].T}
    given = {"alpha": 1.5, "beta": 2.0, "transA": transposed, "transB": transposed}
    constants = () if c is None else ("c",)
    check_node("Gemm", inputs, given, opset=13, constants=constants, dynamic=dynamic,
               expected=[expected.astype(np.float32)])


@pytest.mark.parametrize("opset", [1, 6, 7, 9, 11])
def test_gemm_of_old(opset):
    a, b, c = floats(2, 3), floats(3, 4), floats(4)
    given = {"alpha": 0.5, **({"broadcast": 1} if opset < 7 else {})}
    check_node("Gemm", {"a": a, "b": b, "c": c}, given, opset=opset, expected=[0.5 * (a @ b) + c])


@every(dtype=[np.float16, np.float64, np.int32, np.int64], given=[{}, {"alpha": 0.5, "beta": 2.0}])
def test_gemm_types(dtype, given):
    a, b, c = (RNG.integers(0, 5, shape).astype(dtype) for shape in ((2, 3), (3, 4), (2, 4)))
    product = (given.get("alpha", 1) * (a @ b)).astype(dtype) + (given.get("beta", 1) * c).astype(dtype)
    check_node("Gemm", {"a": a, "b": b, "c": c}, given, opset=13, expected=[product])


EQUATIONS = {"ij->ji": ["23"], "ij->": ["23"], "ij": ["23"], "ii->i": ["33"], "ii": ["33"], "ij,jk": ["23", "34"],
             "ij , jk -> ik": ["23", "34"], "...ij,...jk->...ik": ["523", "34"], "b...,b...->...": ["234", "234"],
             "bhid,bhjd->bhij": ["2345", "2365"], "i,j->ij": ["2", "3"], "i,i->": ["3", "3"],
             "ij,j,i->": ["23", "3", "2"], "...ii->...i": ["233"], "bA,Ac->bc": ["23", "34"], "i,i->i": ["3", "3"],
             "a...b->b...a": ["2345"], "...i,...i->...": ["5234", "34"]}


@every(equation=EQUATIONS, dynamic=[False, True])
def test_einsum(equation, dynamic):
    arrays = {f"x{i}": floats(*map(int, shape)) for i, shape in enumerate(EQUATIONS[equation])}
    expected = np.einsum(equation.replace(" ", ""), *arrays.values())
    check_node("Einsum", arrays, {"equation": equation}, opset=12, dynamic=dynamic, expected=[expected])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64, np.float16])
def test_einsum_types(dtype):
    a, b = (RNG.integers(0, 5, shape).astype(dtype) for shape in ((2, 3), (3, 4)))
    for equation in ("ij,jk->ik", "ij,jk->"):
        expected = np.asarray(np.einsum(equation, a, b))
        check_node("Einsum", {"a": a, "b": b}, {"equation": equation}, opset=NEWEST, expected=[expected])
