"""Which operations single operators become: where Resize is an Interpolate, the sizes of windows."""

from itertools import product
from typing import Any

import pytest

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors, TypeError_, UnsupportedError
from mo_loop.frontend.ops.images.convolution import spatial_rank
from mo_loop.frontend.ops.images.sampling import sampled_at
from mo_loop.frontend.ops.movement import flatten
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.types import TensorType, f32
from tests.cases import read_cases
from tests.harness import folded, parsed, raised
from tests.unit.graph.graphs import parameter

# -- Which operations single operators become, where the numbers that the runtime computes do not show it


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


@pytest.mark.parametrize(("terms", "products"), [(258, 1), (259, 2)])
def test_integer_products_are_split_where_f32_is_not_exact(terms: int, products: int) -> None:
    """The sum of 258 products of 255 and 255 is below 2^24, that of 259 is not."""
    graph = converted(f"(uint8[2,{terms}] a, uint8[{terms},4] b) => (int32[2,4] y) {{ y = MatMulInteger (a, b) }}")
    assert len(graph.of(ops.MatMul)) == products


def test_a_negative_pad_that_wraps_removes_elements() -> None:
    for pads, expected in (("0, -1, 0, 0", "f32[3,3]"), ("0, 0, -2, 0", "f32[1,4]")):
        graph = converted(f"""(float[3,4] x) => (float[A,B] y) {{
          pads = Constant <value_ints=[{pads}]> () y = Pad <mode="wrap"> (x, pads)
        }}""")
        assert str(graph.results[0].value.type) == expected


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


# -- Where Resize is an Interpolate: only where the runtime computes the sizes that ONNX defines, and resizes at all


def is_native(text: str) -> bool:
    """Whether the converted model has one Interpolate, not operations in its place."""
    return len(convert_model(parsed(text, opset=19), **folded()).graph.of(ops.Interpolate)) == 1


def resized(size: str, scales: str, **attributes: str) -> str:
    """A model that resizes a tensor of rank 4."""
    given = ", ".join(f'{name}="{value}"' for name, value in {"mode": "linear", **attributes}.items())
    return f"""main (float[{size}] x) => (float[A,B,C,D] y) {{
      scales = Constant <value_floats=[{scales}]> () y = Resize <{given}> (x, "", scales)
    }}"""


def test_sizes_that_are_known() -> None:
    assert is_native(resized("1,1,4,4", "1.0, 1.0, 2.0, 2.0"))


def test_batch_and_channels_are_not_resized_by_the_runtime() -> None:
    assert is_native(resized("1,2,4,4", "1.0, 1.0, 2.0, 2.0"))
    assert not is_native(resized("1,2,4,4", "1.0, 2.0, 2.0, 2.0"))


@pytest.mark.parametrize("attributes", [
    {"mode": "area"}, {"coordinate_transformation_mode": "middle"}, {"nearest_mode": "up"},
    {"nearest_mode": "simple"}, {"coordinate_transformation_mode": "align_corners", "nearest_mode": "up"},
])
def test_modes_that_do_not_exist(attributes: dict[str, str]) -> None:
    model = parsed(resized("1,1,4,4", "1.0, 1.0, 2.0, 2.0", **{"mode": "nearest", **attributes}), opset=19)
    *_, (name, value) = attributes.items()
    raised(ConversionErrors, convert_model, model, match=f"'{name}' is '{value}', and must be one of")


# -- Sizes and pads of windows computed at conversion, compared with ONNX's definition


def converted_window(text: str, kind: type[Node]) -> Any:
    """The only node of a kind in the converted model."""
    (node,) = (each for each in convert_model(parsed(text), **folded()).graph.ordered() if isinstance(each, kind))
    return node


@pytest.mark.parametrize(("size", "stride", "kernel"), list(product((2, 3, 4), (1, 2, 3), (1, 2, 3, 4))))
@pytest.mark.parametrize("more", [-2, -1, 0, 1])
def test_the_shape_that_a_transposed_convolution_is_to_have(size: int, stride: int, kernel: int, more: int) -> None:
    """The pads remove the part beyond the shape; `output_padding` adds the missing part."""
    computed = (size - 1) * stride + kernel
    wanted = computed + more
    if wanted < 1:
        return
    node = converted_window(
        f"""main (float[1,1,{size}] x, float[1,1,{kernel}] w) => (float[A,B,C] y) {{
          y = ConvTranspose <strides=[{stride}], output_shape=[{wanted}]> (x, w)
        }}""",
        ops.ConvolutionBackpropData,
    )
    assert node.output.shape == (1, 1, wanted)
    assert (node.pads_begin, node.pads_end) == ((-(min(more, 0) // 2),), (-min(more, 0) // 2,))
    assert node.output_padding == (max(more, 0),)


def test_the_number_of_dimensions_that_a_window_slides_over() -> None:
    """The size of the filters, else of the attribute, else of the input."""
    graph = Graph()
    unknown = ops.Parameter(graph=graph, type=TensorType(f32, None)).output
    cube, image = parameter(graph, 1, 2, 3), parameter(graph, 1, 2, 3, 4)
    assert spatial_rank(image, image, (1, 1, 1)) == spatial_rank(unknown, image, (1, 1, 1)) == 2
    raised(TypeError_, spatial_rank, cube, image, (1, 1, 1), match="with filters")
    assert spatial_rank(cube, unknown, (1, 1, 1)) == 3 and spatial_rank(cube, None, (1, 1)) == 2
    assert spatial_rank(cube, None, None) == spatial_rank(cube, unknown, None) == 1
    raised(UnsupportedError, spatial_rank, unknown, None, None, match="the rank of the input is unknown")


@pytest.mark.parametrize("rule", ["SAME_UPPER", "VALID"])
def test_pads_beside_a_rule_do_not_count(rule: str) -> None:
    text = f'y = Conv <auto_pad="{rule}", pads=[1, 2]> (x, w)'
    node = converted_window(f"main (float[1,1,9] x, float[1,1,3] w) => (float[A,B,C] y) {{ {text} }}", ops.Convolution)
    assert (node.pads_begin, node.pads_end) == ((0,), (0,))


read_cases(globals())
