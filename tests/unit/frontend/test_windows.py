"""Sizes and pads of windows computed at conversion, compared with ONNX's definition."""

from itertools import product
from typing import Any

import pytest

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import TypeError_, UnsupportedError
from mo_loop.frontend.ops.images.convolution import spatial_rank
from mo_loop.graph import Graph, Node
from mo_loop.graph.types import TensorType, f32
from tests.harness import folded, parsed
from tests.unit.graphs import parameter


def converted(text: str, kind: type[Node]) -> Any:
    """The only node of a kind in the converted model."""
    (node,) = (each for each in convert_model(parsed(text), **folded()).graph.ordered() if isinstance(each, kind))
    return node


@pytest.mark.parametrize(("size", "stride", "kernel"), list(product((4, 5, 7, 9, 12), (1, 2, 3, 5), (1, 2, 3, 5))))
@pytest.mark.parametrize("rule", ["SAME_UPPER", "SAME_LOWER"])
def test_pads_by_rule_of_a_pooling_with_places(size: int, stride: int, kernel: int, rule: str) -> None:
    """A window of many places, which stays one operation."""
    node = converted(
        f"""main (float[1,1,{size},17] x) => (float[A,B,C,D] y, int64[A,B,C,D] i) {{
          y, i = MaxPool <kernel_shape=[{kernel}, 17], strides=[{stride}, 17], auto_pad="{rule}"> (x)
        }}""",
        ops.MaxPool8,
    )
    count = (size + stride - 1) // stride
    total = max((count - 1) * stride + kernel - size, 0)
    less, more = total // 2, total - total // 2
    expected = (less, more) if rule == "SAME_UPPER" else (more, less)
    assert node.outputs[0].shape == (1, 1, count, 1)
    assert (node.pads_begin, node.pads_end) == tuple((each, 0) for each in expected)


@pytest.mark.parametrize(("size", "stride", "kernel"), list(product((2, 3, 4), (1, 2, 3), (1, 2, 3, 4))))
@pytest.mark.parametrize("more", [-2, -1, 0, 1])
def test_the_shape_that_a_transposed_convolution_is_to_have(size: int, stride: int, kernel: int, more: int) -> None:
    """The pads remove the part beyond the shape; `output_padding` adds the missing part."""
    computed = (size - 1) * stride + kernel
    wanted = computed + more
    if wanted < 1:
        return
    node = converted(
        f"""main (float[1,1,{size}] x, float[1,1,{kernel}] w) => (float[A,B,C] y) {{
          y = ConvTranspose <strides=[{stride}], output_shape=[{wanted}]> (x, w)
        }}""",
        ops.ConvolutionBackpropData,
    )
    assert node.output.shape == (1, 1, wanted)
    assert (node.pads_begin, node.pads_end) == ((-(min(more, 0) // 2),), (-min(more, 0) // 2,))
    assert node.output_padding == (max(more, 0),)


@pytest.mark.parametrize(("size", "stride", "kernel"), list(product((2, 5), (1, 2, 3), (1, 2, 4))))
@pytest.mark.parametrize("rule", ["SAME_UPPER", "SAME_LOWER"])
def test_pads_by_rule_of_a_transposed_convolution(size: int, stride: int, kernel: int, rule: str) -> None:
    node = converted(
        f"""main (float[1,1,{size}] x, float[1,1,{kernel}] w) => (float[A,B,C] y) {{
          y = ConvTranspose <strides=[{stride}], auto_pad="{rule}"> (x, w)
        }}""",
        ops.ConvolutionBackpropData,
    )
    total = max(kernel - stride, 0)
    less, more = total // 2, total - total // 2
    assert (*node.pads_begin, *node.pads_end) == ((less, more) if rule == "SAME_UPPER" else (more, less))


def test_the_number_of_dimensions_that_a_window_slides_over() -> None:
    """The size of the filters, else of the attribute, else of the input."""
    graph = Graph()
    unknown = ops.Parameter(graph=graph, type=TensorType(f32, None)).output
    cube, image = parameter(graph, 1, 2, 3), parameter(graph, 1, 2, 3, 4)
    assert spatial_rank(image, image, (1, 1, 1)) == spatial_rank(unknown, image, (1, 1, 1)) == 2
    with pytest.raises(TypeError_, match="with filters"):
        spatial_rank(cube, image, (1, 1, 1))
    assert spatial_rank(cube, unknown, (1, 1, 1)) == 3 and spatial_rank(cube, None, (1, 1)) == 2
    assert spatial_rank(cube, None, None) == spatial_rank(cube, unknown, None) == 1
    with pytest.raises(UnsupportedError, match="unknown rank"):
        spatial_rank(unknown, None, None)


@pytest.mark.parametrize("rule", ["SAME_UPPER", "VALID"])
def test_pads_beside_a_rule_do_not_count(rule: str) -> None:
    text = f'y = Conv <auto_pad="{rule}", pads=[1, 2]> (x, w)'
    node = converted(f"main (float[1,1,9] x, float[1,1,3] w) => (float[A,B,C] y) {{ {text} }}", ops.Convolution)
    assert (node.pads_begin, node.pads_end) == ((0,), (0,))
