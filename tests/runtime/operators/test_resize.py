"""Resize and Upsample: modes, coordinates, and sources of sizes."""

import numpy as np
import onnx.parser

from mo_loop import convert_model
from mo_loop.target import Processor
from tests.cases import read_cases
from tests.harness import check, check_node, folded
from tests.running.processor import wrong_under


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def resize(x, factors=None, sizes=None, *, opset=19, dynamic=False, constant=True, roi=None, **attributes):
    inputs = {"x": x, "roi": None if roi is None else np.array(roi, np.float32),
              "scales": None if factors is None else np.array(factors, np.float32),
              "sizes": None if sizes is None else np.array(sizes, np.int64)}
    constants = [name for name in ("roi", "scales", "sizes") if constant and inputs[name] is not None]
    check_node("Resize", inputs, attributes, opset=opset, constants=constants, dynamic=dynamic)


@wrong_under(Processor.SSE41, "Interpolate of three dimensions in the mode nearest")
def test_nearest_of_three_dimensions():
    resize(normal(1, 2, 7), [1, 1, 2], mode="nearest")


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


read_cases(globals())
