"""LongformerAttention, compared with numpy: ONNX Runtime has no kernel for CPUs."""

import numpy as np
import pytest

from tests.harness import check_model, node_model

RNG = np.random.default_rng(29)
HEADS, SIZE, WINDOW = 2, 4, 3


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def attention(x, weight, bias, mask, global_weight, global_bias, flags):
    """One token of one head after another."""
    batch, rows, hidden = x.shape
    wide = [each.astype(np.float64) for each in (x, weight, bias, global_weight, global_bias)]
    local, whole = wide[0] @ wide[1] + wide[2], wide[0] @ wide[3] + wide[4]
    y = np.zeros((batch, rows, hidden))
    for b, row, h in np.ndindex(batch, rows, HEADS):
        if mask[b, row] < 0:
            continue
        columns = slice(h * SIZE, (h + 1) * SIZE)
        q, k, v = np.split((whole if flags[b, row] else local)[b], 3, axis=1)
        read = (np.abs(np.arange(rows) - row) <= WINDOW) | (flags[b] != 0) | (flags[b, row] != 0)
        scores = k[read, columns] @ q[row, columns] / np.sqrt(SIZE) + mask[b, read]
        weights = np.exp(scores - scores.max())
        y[b, row, columns] = weights @ v[read, columns] / weights.sum()
    return y.astype(x.dtype)


def inputs_of(batch, rows, flags, masked=(), dtype=np.float32):
    hidden = HEADS * SIZE
    mask = np.zeros((batch, rows), dtype)
    for place in masked:
        mask[place] = -10000
    marks = np.zeros((batch, rows), np.int32)
    for place in flags:
        marks[place] = 1
    return {
        "x": floats(batch, rows, hidden, dtype=dtype), "weight": floats(hidden, 3 * hidden, dtype=dtype),
        "bias": floats(3 * hidden, dtype=dtype), "mask": mask,
        "global_weight": floats(hidden, 3 * hidden, dtype=dtype), "global_bias": floats(3 * hidden, dtype=dtype),
        "flags": marks,
    }


@pytest.mark.parametrize(("batch", "rows", "flags", "masked"), [
    (1, 12, [(0, 0), (0, 1)], [(0, 10), (0, 11)]),
    (2, 18, [(0, 0), (1, 7), (1, 17)], [(1, 16)]),
    (2, 12, [], [(0, 11)]),
    (1, 6, [(0, n) for n in range(6)], []),
], ids=["tokens at the start", "a number of tokens for each sequence", "no global token", "only global tokens"])
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_windows_and_global_tokens(batch, rows, flags, masked, dynamic) -> None:
    inputs = inputs_of(batch, rows, flags, masked)
    fixed = [name for name in inputs if "weight" in name or "bias" in name]
    model = node_model("com.microsoft::LongformerAttention", inputs, {"num_heads": HEADS, "window": WINDOW}, opset=1,
                       constants=fixed, dynamic=["x", "mask", "flags"] if dynamic else ())
    feeds = {name: array for name, array in inputs.items() if name not in fixed}
    check_model(model, feeds, expected=[attention(*inputs.values())], atol=1e-4)


def test_halves() -> None:
    inputs = inputs_of(1, 12, [(0, 2)], [(0, 11)], np.float16)
    model = node_model("com.microsoft::LongformerAttention", inputs, {"num_heads": HEADS, "window": WINDOW}, opset=1,
                       dynamic=True)
    check_model(model, inputs, expected=[attention(*inputs.values())], atol=5e-2)
