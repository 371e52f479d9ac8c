"""DynamicSparseAttention, compared with numpy: ONNX Runtime has no kernel for CPUs."""

import numpy as np

from tests.cases import read_cases
from tests.harness import check_model, node_model

RNG = np.random.default_rng(61)
OP, NAMES = "com.microsoft::DynamicSparseAttention", ["y", "present_k", "present_v"]
HEADS, KV_HEADS, SIZE = 4, 2, 16
COUNTS = {"num_heads": HEADS, "kv_num_heads": KV_HEADS}
LOCAL = {"attention_mode": "local_plus_selected", "selected_kv_source": "auxiliary", "auxiliary_kv_shared": 1}


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def chosen(ends, rows, auxiliary, most=3):
    """Indices and counts: some queries select none."""
    indices, counts = np.full((len(ends) * rows, most), -1, np.int32), np.zeros(len(ends) * rows, np.int32)
    for number in range(len(counts)):
        place = ends[number // rows] - rows + number % rows
        source = auxiliary or place + 1
        counts[number] = min(RNG.integers(0, most + 1) if number else 0, source)
        indices[number, : counts[number]] = RNG.permutation(source)[: counts[number]]
    return indices, counts


def step(ends, rows, held=0, auxiliary=0, dtype=np.float32, **more):
    """The inputs of one step."""
    batch, past = len(ends), [None, None]
    if held:
        past = [floats(batch, KV_HEADS, held, SIZE, dtype=dtype) for _ in range(2)]
    indices, counts = chosen(ends, rows, auxiliary)
    names = ("cos", "sin", "positions", "q_norm", "k_norm", "sink", "committed", "k_scale", "v_scale")
    given = {
        "q": floats(batch, rows, HEADS * SIZE, dtype=dtype), "k": floats(batch, rows, KV_HEADS * SIZE, dtype=dtype),
        "v": floats(batch, rows, KV_HEADS * SIZE, dtype=dtype), "past_k": past[0], "past_v": past[1],
        "aux_k": floats(batch, KV_HEADS, auxiliary, SIZE, dtype=dtype) if auxiliary else None, "aux_v": None,
        "indices": indices, "counts": counts, "ends": np.array(ends, np.int32) - 1,
        "total": np.array([max(ends)], np.int32), **{name: more.get(name) for name in names},
    }
    while given[list(given)[-1]] is None:
        given.popitem()
    return given


def turned(x, cos, sin, offset):
    """Halves of the numbers from an offset on."""
    half, y = len(cos), x.copy()
    a, b = x[offset : offset + half], x[offset + half : offset + 2 * half]
    y[offset : offset + half], y[offset + half : offset + 2 * half] = a * cos - b * sin, b * cos + a * sin
    return y


def normal(x, weight):
    return x / np.sqrt((x**2).mean() + 1e-6) * weight


def attention(inputs, window=0, offset=0, scale=0.25, smooth=False):
    """One query of one head after another; the caches are those that the operator reads, in f64."""
    given = {name: inputs.get(name) for name in ("past_k", "past_v", "aux_k", "cos", "q_norm", "sink", "k_scale")}
    q, k, v = (inputs[name].astype(np.float64) for name in ("q", "k", "v"))
    (batch, rows, _), ends, total = q.shape, inputs["ends"] + 1, int(inputs["total"][0])
    quantised = given["k_scale"] is not None
    caches = []
    for new, name in ((k, "k"), (v, "v")):
        cache = np.zeros((batch, KV_HEADS, total, SIZE))
        if given[f"past_{name}"] is not None:
            held = given[f"past_{name}"]
            cache = np.zeros((batch, KV_HEADS, max(total, held.shape[2]), SIZE))
            cache[:, :, : held.shape[2]] = held
        for b, row, h in np.ndindex(batch, rows, KV_HEADS):
            number, place = new[b, row].reshape(KV_HEADS, SIZE)[h], ends[b] - rows + row
            if name == "k" and given["q_norm"] is not None:
                number = normal(number, inputs["k_norm"])
            if name == "k" and given["cos"] is not None:
                number = turned(number, inputs["cos"][place], inputs["sin"][place], offset)
            if quantised:
                number = np.clip(np.rint(number / inputs[f"{name}_scale"].reshape(KV_HEADS, SIZE)[h]), -128, 127)
            cache[b, h, place] = number
        caches.append(cache)
    y = np.zeros_like(q)
    for b, row, h in np.ndindex(batch, rows, HEADS):
        at, of = ends[b] - rows + row, h // (HEADS // KV_HEADS)
        columns = slice(h * SIZE, (h + 1) * SIZE)
        one = q[b, row, columns]
        one = one if given["q_norm"] is None else normal(one, inputs["q_norm"])
        one = one if given["cos"] is None else turned(one, inputs["cos"][at], inputs["sin"][at], offset)
        keys, values = (cache[b, of] * (inputs[f"{name}_scale"].reshape(KV_HEADS, SIZE)[of] if quantised else 1)
                        for cache, name in zip(caches, ("k", "v"), strict=True))
        read = inputs["indices"][b * rows + row][: inputs["counts"][b * rows + row]]
        if window:
            near = np.arange(max(at - window + 1, 0), at + 1)
            far = inputs["aux_k"][b, of, read]
            keys, values = np.concatenate([keys[near], far]), np.concatenate([values[near], far])
        else:
            keys, values = keys[read], values[read]
        scores = np.append(keys @ one * scale, 0 if given["sink"] is None else inputs["sink"][h])
        weights = np.exp(scores - scores.max())
        if given["sink"] is None and not smooth:
            weights = weights[:-1]
        if len(keys):
            y[b, row, columns] = weights[: len(keys)] @ values / weights.sum()
    kinds = [np.int8 if quantised else inputs["q"].dtype] * 2
    return [y.astype(inputs["q"].dtype), *(cache.astype(kind) for cache, kind in zip(caches, kinds, strict=True))]


def run(inputs, attributes, expected, dynamic, atol=1e-4):
    model = node_model(OP, inputs, COUNTS | attributes, opset=1, outputs=NAMES, dynamic=dynamic)
    feeds = {name: array for name, array in inputs.items() if array is not None}
    check_model(model, feeds, expected=expected, atol=atol)


def test_cache_of_integers() -> None:
    scales = {name: RNG.uniform(0.01, 0.03, KV_HEADS * SIZE).astype(np.float32) for name in ("k_scale", "v_scale")}
    inputs = step((6, 4), 2, 8, **scales)
    for name in ("past_k", "past_v"):
        inputs[name] = RNG.integers(-128, 128, inputs[name].shape).astype(np.int8)
    run(inputs, {}, attention(inputs), True, atol=1e-3)


read_cases(globals())
