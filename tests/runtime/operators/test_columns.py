"""Col2Im of shapes known only at run time, compared with the model with constants and with the reference evaluator."""

from typing import Any

import numpy as np
import pytest

from tests.harness import check_node

CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((3, 4, 5), (1, 2, 3), {}),
    ((5, 4, 6), (2, 1, 3), {"strides": [2, 1, 2], "pads": [1, 0, 2, 0, 1, 1]}),
    ((5, 5, 7), (2, 2, 3), {"dilations": [2, 1, 3]}),
    ((7,), (3,), {"strides": [2], "pads": [1, 1]}),
]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("constants", [(), ("block",), ("image",)], ids=["none", "block", "image"])
@pytest.mark.parametrize(("image", "block", "attributes"), CASES, ids=str)
def test_shapes_known_at_run_time(image: Any, block: Any, attributes: Any, constants: Any, dynamic: bool) -> None:
    count = len(image)
    pads, strides = attributes.get("pads", [0] * 2 * count), attributes.get("strides", [1] * count)
    gaps = attributes.get("dilations", [1] * count)
    windows = [
        (image[i] + pads[i] + pads[count + i] - (block[i] - 1) * gaps[i] - 1) // strides[i] + 1 for i in range(count)
    ]
    columns = np.random.default_rng(1).standard_normal((2, 3 * int(np.prod(block)), int(np.prod(windows))))
    inputs = {"x": columns.astype(np.float32), "image": np.array(image), "block": np.array(block)}
    check_node(
        "Col2Im", inputs, attributes, opset=18, constants=constants, dynamic=("x",) if dynamic else False,
        expected=None if count == 3 and not attributes else [added(inputs["x"], image, block, pads, strides, gaps)],
    )


def added(x: Any, image: Any, block: Any, pads: Any, strides: Any, gaps: Any) -> Any:
    """Element by element."""
    count = len(image)
    padded = [image[i] + pads[i] + pads[count + i] for i in range(count)]
    windows = [(padded[i] - (block[i] - 1) * gaps[i] - 1) // strides[i] + 1 for i in range(count)]
    values = x.reshape(len(x), -1, *block, *windows)
    whole = np.zeros((*values.shape[:2], *padded), np.float32)
    for place in np.ndindex(*block, *windows):
        at = tuple(place[count + i] * strides[i] + place[i] * gaps[i] for i in range(count))
        whole[(slice(None), slice(None), *at)] += values[(slice(None), slice(None), *place)]
    inner = tuple(slice(pads[i], pads[i] + image[i]) for i in range(count))
    return whole[(slice(None), slice(None), *inner)]
