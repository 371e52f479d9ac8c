"""Which operations single operators become, where the numbers that the runtime computes do not show it."""

import pytest

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.frontend.ops.images.sampling import sampled_at
from mo_loop.frontend.ops.movement import flatten
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import TensorType, f32
from tests.harness import folded, parsed
from tests.unit.graphs import parameter


def converted(text: str, opset: int = 22) -> Graph:
    return convert_model(parsed(f"main {text}", opset), **folded()).graph


def tensor_of_unknown_rank(graph: Graph) -> Value:
    return ops.Parameter(graph=graph, type=TensorType(f32, None)).output


def test_matmul_with_a_constant_of_four_dimensions_is_one_operation() -> None:
    """Only one of three dimensions is not broadcast by the runtime."""
    for dims, unsqueezed in (("5,3,4", 1), ("2,5,3,4", 0)):
        graph = converted(f"""(float[N,3] x) => (float[] y) {{
          shape = Constant <value_ints=[{dims}]> () w = ConstantOfShape <value=float[1] {{2.5}}> (shape)
          y = MatMul (x, w)
        }}""")
        assert len(graph.of(ops.Unsqueeze)) == unsqueezed


@pytest.mark.parametrize(("beta", "sums"), [(-1.0, 1), (0.0, 0), (0.5, 1)])
def test_gemm_reads_its_addend_unless_beta_is_0(beta: float, sums: int) -> None:
    """0 times an infinity is not a number."""
    graph = converted(f"""(float[2,3] a, float[3,4] b, float[4] c) => (float[2,4] y) {{
      y = Gemm <beta={beta}> (a, b, c)
    }}""")
    assert len(graph.of(ops.Add)) == sums


@pytest.mark.parametrize(("terms", "products"), [(258, 1), (259, 2)])
def test_integer_products_are_split_where_f32_is_not_exact(terms: int, products: int) -> None:
    """The sum of 258 products of 255 and 255 is below 2^24, that of 259 is not."""
    graph = converted(f"(uint8[2,{terms}] a, uint8[{terms},4] b) => (int32[2,4] y) {{ y = MatMulInteger (a, b) }}")
    assert len(graph.of(ops.MatMul)) == products


def test_zero_points_of_rows_are_subtracted_from_rows() -> None:
    graph = converted("""(uint8[2,2] a, uint8[2,4] b, uint8[2] zero) => (int32[2,4] y) {
      y = MatMulInteger (a, b, zero)
    }""")
    (centred,) = graph.of(ops.Subtract)
    assert [str(value.type) for value in centred.inputs if value is not None] == ["f32[2,2]", "f32[2,1]"]


@pytest.mark.parametrize(
    ("start", "limit", "step", "bounded"),
    [("zero", "n", 1, 0), ("n", "zero", -1, 0), ("one", "n", 1, 1), ("n", "one", -1, 1)],
)
def test_the_limit_of_a_range_is_bounded_if_it_may_lie_before_the_start(
    start: str, limit: str, step: int, bounded: int
) -> None:
    graph = converted(f"""(float[N] x) => (int64[M] y) {{
      shape = Shape (x) n = Squeeze (shape) zero = Constant <value_int=0> () one = Constant <value_int=1> ()
      step = Constant <value_int={step}> () y = Range ({start}, {limit}, step)
    }}""")
    assert len(graph.of(ops.Maximum)) + len(graph.of(ops.Minimum)) == bounded


def test_a_negative_pad_that_wraps_removes_elements() -> None:
    for pads, expected in (("0, -1, 0, 0", "f32[3,3]"), ("0, 0, -2, 0", "f32[1,4]")):
        graph = converted(f"""(float[3,4] x) => (float[A,B] y) {{
          pads = Constant <value_ints=[{pads}]> () y = Pad <mode="wrap"> (x, pads)
        }}""")
        assert str(graph.results[0].value.type) == expected


def test_the_numbers_of_elements_that_a_mean_is_of_fit_its_sums() -> None:
    """A dilated window that never starts in the padding: neither side of the division is sliced."""
    graph = converted("""(float[1,2,?] x) => (float[A,B,C] y) {
      y = AveragePool <kernel_shape=[3], dilations=[2], strides=[2], ceil_mode=1> (x)
    }""")
    (mean,) = graph.of(ops.Divide)
    assert [type(value.node) for value in mean.inputs if value is not None] == [ops.Reshape, ops.Convolution]


def test_only_circular_caches_wrap_around() -> None:
    for mode, wraps in (("linear", False), ("circular", True)):
        graph = converted(
            f"""(float[2,8,4] cache, float[2,3,4] update, int64[2] at) => (float[2,8,4] y) {{
              y = TensorScatter <mode="{mode}"> (cache, update, at)
            }}""",
            opset=24,
        )
        assert bool(graph.of(ops.Mod)) is wraps


def test_flatten_of_an_unknown_rank_copies_the_first_dimension() -> None:
    flat = flatten(tensor_of_unknown_rank(Graph()), axis=1)
    assert flat.node.inputs[1].type.integers == (0, -1) and flat.node.special_zero


def test_a_volume_or_its_grid_of_unknown_rank_is_sampled() -> None:
    graph = Graph()
    unknown = tensor_of_unknown_rank(graph)
    volume, grid = parameter(graph, 1, 2, 3, 4, 5), parameter(graph, 1, 6, 7, 8, 3)
    for x, at in ((volume, grid), (volume, unknown), (unknown, grid)):
        sampled_at(x, at, False, False, "zeros")
    patterns = [node.inputs[1].type.integers for node in graph.of(ops.Reshape) if node.inputs[1] is not None]
    assert patterns.count((0, -1, 3)) == 3  # three coordinates of each position


def test_the_element_of_an_optional_made_in_the_graph() -> None:
    graph = converted("(float[2] x) => (float[2] y) { o = Optional (x) y = OptionalGetElement (o) }")
    assert not graph.of(ops.Optional) and str(graph.results[0].value.type) == "f32[2]"


def test_determinants_of_a_tensor_of_many_dimensions() -> None:
    ones = ",".join(["1"] * 28)
    graph = converted(f"(float[{ones},3,3] x) => (float[{ones}] y) {{ y = Det (x) }}")
    assert graph.results[0].value.shape == (1,) * 28
