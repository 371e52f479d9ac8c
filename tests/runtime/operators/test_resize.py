"""Resize and Upsample: modes, coordinates, and sources of sizes."""

import numpy as np
import onnx.parser
import pytest

from mo_loop import convert_model
from mo_loop.target import Processor
from tests.harness import check, check_node, every, folded, pairs
from tests.running.processor import wrong_under

COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners")


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def resize(x, factors=None, sizes=None, *, opset=19, dynamic=False, constant=True, roi=None, **attributes):
    inputs = {"x": x, "roi": None if roi is None else np.array(roi, np.float32),
              "scales": None if factors is None else np.array(factors, np.float32),
              "sizes": None if sizes is None else np.array(sizes, np.int64)}
    constants = [name for name in ("roi", "scales", "sizes") if constant and inputs[name] is not None]
    check_node("Resize", inputs, attributes, opset=opset, constants=constants, dynamic=dynamic)


@pairs(factors=([1, 1, 2, 3], [1, 1, 0.5, 1.75]), rounding=("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
       coordinates=COORDINATES, dynamic=(False, True))
def test_nearest(factors, rounding, coordinates, dynamic):
    resize(normal(1, 2, 4, 4), factors, mode="nearest", nearest_mode=rounding, dynamic=dynamic,
           coordinate_transformation_mode=coordinates)


@pairs(target=({"factors": [1, 1, 2, 0.6]}, {"sizes": [1, 2, 7, 9]}), mode=("linear", "cubic"), coordinates=COORDINATES,
       dynamic=(False, True))
def test_interpolation(target, mode, coordinates, dynamic):
    resize(normal(1, 2, 5, 6), **target, mode=mode, coordinate_transformation_mode=coordinates, dynamic=dynamic)


@wrong_under(Processor.SSE41, "Interpolate of three dimensions in the mode nearest")
def test_nearest_of_three_dimensions():
    resize(normal(1, 2, 7), [1, 1, 2], mode="nearest")


@pytest.mark.parametrize(("shape", "mode"), (
    ((1, 2, 7), "linear"), ((1, 2, 3, 4, 5), "nearest"), ((1, 2, 3, 4, 5), "linear"),
))
def test_other_ranks(shape, mode):
    resize(normal(*shape), [1, 1, *[2] * (len(shape) - 2)], mode=mode)


@pytest.mark.parametrize("mode", ("linear", "cubic"))
def test_scales_known_at_run_time(mode):
    resize(normal(1, 2, 5, 6), [1, 1, 2, 0.8], mode=mode, constant=False)


@pytest.mark.parametrize("attributes", ({"exclude_outside": 1}, {"cubic_coeff_a": -0.5}), ids=str)
def test_cubic(attributes):
    resize(normal(1, 2, 5, 6), [1, 1, 2, 0.6], mode="cubic", **attributes)


@every(dynamic=(False, True), exclude_outside=(0, 1), mode=("linear", "cubic"))
def test_antialias(mode, exclude_outside, dynamic):
    resize(normal(1, 2, 8, 9), [1, 1, 0.6, 0.3], mode=mode, antialias=1, exclude_outside=exclude_outside,
           dynamic=dynamic)


@every(mode=("nearest", "linear", "cubic"), constant=(False, True))
def test_crop(mode, constant):
    resize(normal(1, 2, 6, 5), sizes=[1, 2, 4, 9], mode=mode, coordinate_transformation_mode="tf_crop_and_resize",
           roi=[0, 0, 0.25, 0.25, 1, 1, 1.25, 0.75], extrapolation_value=7.5, constant=constant)


@every(policy=("stretch", "not_larger", "not_smaller"), dynamic=(False, True))
def test_axes_and_aspect_ratio(policy, dynamic):
    resize(normal(1, 2, 5, 6), sizes=[9, 7], mode="linear", axes=[3, 2], keep_aspect_ratio_policy=policy,
           dynamic=dynamic)


def test_axes_that_are_not_the_last():
    resize(normal(1, 4, 5, 3), [1, 2, 2, 1], mode="linear")
    resize(normal(1, 4, 5, 3), sizes=[9, 7], mode="cubic", axes=[1, 2], opset=18)


def test_a_scale_that_leaves_the_size_as_it_is():
    resize(normal(1, 1, 3, 3), [1, 1, 1.3, 2], mode="linear")
    resize(normal(1, 1, 3, 3), [1, 1, 1.3, 2], mode="linear", dynamic=True)


def test_integers():
    x = np.arange(16, dtype=np.uint8).reshape(1, 1, 4, 4)
    resize(x, [1, 1, 2, 2], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor", opset=13)


@every(mode=("nearest", "linear"), constant=(False, True))
@pytest.mark.parametrize(("op", "opset"), (("Upsample", 9), ("Resize", 10)))
def test_scales_as_input(op, opset, constant, mode):
    inputs = {"x": normal(1, 2, 4, 5), "scales": np.array([1, 1, 2, 1.5], np.float32)}
    check_node(op, inputs, {"mode": mode}, opset=opset, constants=("scales",) if constant else ())


def test_resize_10_smaller():
    inputs = {"x": normal(1, 2, 4, 5), "scales": np.array([1, 1, 0.5, 1.7], np.float32)}
    check_node("Resize", inputs, {"mode": "nearest"}, opset=10, constants=("scales",))


def test_upsample_by_attributes():
    check_node("Upsample", {"x": normal(1, 2, 4, 5)}, {"scales": [1.0, 1.0, 2.0, 3.0], "mode": "linear"}, opset=7)
    x = normal(1, 1, 2, 2)
    attributes = {"height_scale": 2.0, "width_scale": 1.0}
    check_node("Upsample", {"x": x}, attributes, opset=1, expected=[np.repeat(x, 2, axis=2)])


def test_scales_in_half_precision():
    """Converters to f16 write scales as Cast(Constant): the runtime resizes, nothing is gathered."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    main (float16[1,2,3,4] x) => (float16[1,2,6,8] y) {
      half = Constant<value=float16[4] {15360, 15360, 16384, 16384}>()  scales = Cast<to=1>(half)
      y = Resize<coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor">(x, , scales)
    }""")
    types = [node.type for node in convert_model(model, **folded()).graph.ordered()]
    assert "Interpolate" in types and "Gather" not in types
    check(model, {"x": np.arange(24, dtype=np.float16).reshape(1, 2, 3, 4)})
