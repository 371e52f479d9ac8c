"""Writes models with gigabytes of random weights, tensor by tensor: the memory is that of the largest tensor."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

ALIGNMENT = 1 << 16
"""Of a tensor in a file with external data, as PyTorch's exporter aligns them."""
LAYERS, SIZE = 30, 64
"""Of a decoder: its layers, and the size of a head."""


def write_weights(gigabytes: float, external: bool, path: Path) -> int:
    """A chain of MatMuls over matrices of 64 MiB or less, embedded or in one file next to the model."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    size = 4096 if gigabytes >= 0.064 else 256
    count = max(1, round(gigabytes * 1e9 / (4 * size * size)))
    nodes = [helper.make_node("MatMul", [f"y{i}", f"w{i}"], [f"y{i + 1}"]) for i in range(count)]
    shape = [1, size]
    graph = helper.make_graph(
        nodes,
        "weights",
        [helper.make_tensor_value_info("y0", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(f"y{count}", TensorProto.FLOAT, shape)],
    )
    arrays = ((f"w{i}", rng.random((size, size), np.float32) - np.float32(0.5)) for i in range(count))
    if external:
        graph.initializer.extend(_stored(arrays, path))
    else:
        graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return count


def write_decoder(gigabytes: float, half: bool, path: Path) -> int:
    """A decoder in the form in which PyTorch's exporter with dynamo writes Llama, all weights in one file.

    A Linear is a MatMul that reads the Transpose of a weight of shape [N, K]. 8 GB of f32 are 2 billion parameters in
    30 layers; a smaller model has smaller layers.
    """
    import numpy as np
    import onnx
    from onnx import numpy_helper

    dtype = np.dtype(np.float16 if half else np.float32)
    parameters = gigabytes * 1e9 / dtype.itemsize
    heads = max(1, round((parameters / LAYERS) ** 0.5 / 4 / SIZE))
    hidden = heads * SIZE
    inner, words = 4 * hidden, 16 * hidden
    layer = 4 * hidden * hidden + 3 * hidden * inner
    layers = max(1, round((parameters - 2 * words * hidden) / layer))
    element = "float16" if half else "float"
    head = f"main (int64[B,S] ids) => ({element}[B,S,{words}] logits)"
    lines = ["h0 = Gather (embed, ids)", "length = Shape <start = 1, end = 2> (ids)", *_positions(element)]
    for n in range(layers):
        lines += _layer(n)
    lines += [*_norm("final", f"h{layers}"), *_linear("logits", "final", "lm_head")]
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]>\n{head} {{ {chr(10).join(lines)} }}')
    for node in model.graph.node:
        node.name = f"node_{node.output[0]}"
    small = {
        "last": np.array([-1], np.int64), "two": np.array(2, dtype), "eps": np.array(1e-3, dtype),
        "scale": np.array(SIZE**-0.25, dtype), "zero": np.array(0, np.int64), "one": np.array(1, np.int64),
        "zeros": np.array([0], np.int64), "ones": np.array([1], np.int64), "nothing": np.array(0, dtype),
        "middle": np.array([SIZE // 2], np.int64), "end": np.array([SIZE], np.int64),
        "split": np.array([0, 0, heads, SIZE], np.int64), "merged": np.array([0, 0, hidden], np.int64),
        "minus": np.array(-1e4, dtype), "freq": (1e4 ** -(np.arange(SIZE // 2) / SIZE)).astype(dtype),
    }
    small |= {f"g{n}{each}": np.full(hidden, 1 + n / layers, dtype) for n in range(layers) for each in "ab"}
    small["gfinal"] = np.ones(hidden, dtype)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in small.items())
    shapes = [("embed", (words, hidden)), ("lm_head", (words, hidden))]
    for n in range(layers):
        shapes += [(f"w{n}{each}", (hidden, hidden)) for each in "qkvo"]
        shapes += [(f"w{n}g", (inner, hidden)), (f"w{n}u", (inner, hidden)), (f"w{n}d", (hidden, inner))]
    rng = np.random.default_rng(0)
    arrays = ((name, (rng.random(shape, np.float32) - np.float32(0.5)).astype(dtype)) for name, shape in shapes)
    model.graph.initializer.extend(_stored(arrays, path))
    onnx.save(model, path)
    return len(model.graph.node)


def _positions(element: str) -> list[str]:
    """Angles of the rotary embedding, and the causal mask."""
    to = 10 if element == "float16" else 1
    return [
        "count = Squeeze (length, zeros) place = Range (zero, count, one) column = Unsqueeze (place, last)",
        f"row = Unsqueeze (place, zeros) later = Greater (row, column) real = Cast <to = {to}> (column)",
        "angle = Mul (real, freq) angles = Concat <axis = -1> (angle, angle) cos = Cos (angles) sin = Sin (angles)",
        "mask = Where (later, minus, nothing)",
    ]


def _norm(name: str, x: str) -> list[str]:
    """RMSNorm, with the weights `g` and the name."""
    return [
        f"{name}_p = Pow ({x}, two) {name}_m = ReduceMean ({name}_p, last) {name}_e = Add ({name}_m, eps)",
        f"{name}_s = Sqrt ({name}_e) {name}_r = Reciprocal ({name}_s) {name}_n = Mul ({x}, {name}_r)",
        f"{name} = Mul (g{name.removeprefix('n')}, {name}_n)",
    ]


def _linear(name: str, x: str, weight: str) -> list[str]:
    return [f"{weight}_t = Transpose <perm = [1, 0]> ({weight}) {name} = MatMul ({x}, {weight}_t)"]


def _rotated(name: str, x: str) -> list[str]:
    return [
        f"{name}_lo = Slice ({x}, zeros, middle, last) {name}_hi = Slice ({x}, middle, end, last)",
        f"{name}_neg = Neg ({name}_hi) {name}_turned = Concat <axis = -1> ({name}_neg, {name}_lo)",
        f"{name}_c = Mul ({x}, cos) {name}_d = Mul ({name}_turned, sin) {name}_sum = Add ({name}_c, {name}_d)",
        f"{name} = Mul ({name}_sum, scale)",
    ]


def _layer(n: int) -> list[str]:
    """Attention with rotary embedding, and a gated feed-forward network."""
    lines = _norm(f"n{n}a", f"h{n}")
    for each in "qkv":
        lines += _linear(f"{each}{n}", f"n{n}a", f"w{n}{each}")
        lines.append(f"{each}v{n} = Reshape ({each}{n}, split)")
        lines.append(f"{each}h{n} = Transpose <perm = [0, 2, 1, 3]> ({each}v{n})")
    lines += [*_rotated(f"qr{n}", f"qh{n}"), *_rotated(f"kr{n}", f"kh{n}")]
    lines += [
        f"kt{n} = Transpose <perm = [0, 1, 3, 2]> (kr{n}) dots{n} = MatMul (qr{n}, kt{n})",
        f"biased{n} = Add (dots{n}, mask) soft{n} = Softmax <axis = -1> (biased{n})",
        f"nan{n} = IsNaN (soft{n}) safe{n} = Where (nan{n}, nothing, soft{n})",
        f"mixed{n} = MatMul (safe{n}, vh{n}) back{n} = Transpose <perm = [0, 2, 1, 3]> (mixed{n})",
        f"flat{n} = Reshape (back{n}, merged)",
        *_linear(f"o{n}", f"flat{n}", f"w{n}o"),
        f"mid{n} = Add (h{n}, o{n})",
        *_norm(f"n{n}b", f"mid{n}"),
        *_linear(f"gate{n}", f"n{n}b", f"w{n}g"),
        *_linear(f"up{n}", f"n{n}b", f"w{n}u"),
        f"sig{n} = Sigmoid (gate{n}) silu{n} = Mul (gate{n}, sig{n}) act{n} = Mul (silu{n}, up{n})",
        *_linear(f"down{n}", f"act{n}", f"w{n}d"),
        f"h{n + 1} = Add (mid{n}, down{n})",
    ]
    return lines


def _stored(arrays: Iterator[tuple[str, Any]], path: Path) -> Iterator[Any]:
    """Initializers whose data are written to one file next to the model."""
    from onnx import TensorProto, helper

    data = path.with_name(f"{path.name}.data")
    with open(data, "wb") as file:
        for name, array in arrays:
            offset = _aligned(file)
            array.tofile(file)
            tensor = TensorProto(name=name, data_type=helper.np_dtype_to_tensor_dtype(array.dtype), dims=array.shape)
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in _place(data.name, offset, array.nbytes):
                tensor.external_data.add(key=key, value=value)
            yield tensor


def _place(location: str, offset: int, length: int) -> Sequence[tuple[str, str]]:
    return ("location", location), ("offset", str(offset)), ("length", str(length))


def _aligned(file: BinaryIO) -> int:
    """Move to the next place where a tensor may begin."""
    offset = -(-file.tell() // ALIGNMENT) * ALIGNMENT
    file.seek(offset)
    return offset
