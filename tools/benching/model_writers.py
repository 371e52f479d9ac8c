"""Writes the models of the benches, each of a kind and a size.

    python tools/benching/model_writers.py chain 30000 chain.onnx        prints the number of nodes that it has

The number includes the nodes of bodies. Constants are initializers, and all different where a real model has different
ones, so that nothing is stored once for many.
"""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.benching.weight_writers import write_decoder, write_weights

HEADER = '<ir_version: 9, opset_import: ["": 18]>'


def chain(nodes: int) -> Any:
    """MatMul, Add, Relu over small constants."""
    return _chain_of(nodes, "main (float[N,4] x) => (float[N,4] {last}) {{ {body} }}")


def body(nodes: int) -> Any:
    """One Loop whose body is a chain over constants of the outer graph."""
    head = 'y = Loop (n, "", x) <body = step (int64 i, bool c, float[N,4] s) => (bool d, float[N,4] {last})'
    return _chain_of(
        nodes,
        f"main (float[N,4] x, int64 n) => (float[N,4] y) {{{{ {head} {{{{ d = Identity (c) {{body}} }}}}> }}}}",
        first="s",
    )


def _chain_of(nodes: int, text: str, first: str = "x") -> Any:
    import numpy as np

    layers, value = nodes // 3, first
    lines, weights = [], []
    for index in range(layers):
        share = np.float32((index + 1) / (layers + 1))
        weights.append((f"weight_{index}", np.eye(4, dtype=np.float32) * share))
        weights.append((f"bias_{index}", np.full(4, share, np.float32)))
        lines.append(f"product_{index} = MatMul ({value}, weight_{index})")
        lines.append(f"sum_{index} = Add (product_{index}, bias_{index}) relu_{index} = Relu (sum_{index})")
        value = f"relu_{index}"
    return _parsed(text.format(last=value, body="\n".join(lines)), weights)


def layers(nodes: int) -> Any:
    """Layers of a transformer, as exporters write them: normalisation, attention and GELU of many small nodes."""
    import numpy as np

    size, rng = 8, np.random.default_rng(0)
    constants = (
        "float two = {2}, float eps = {0.00001}, float root = {2.828}, float half = {0.5}, float one = {1}, "
        "float sq = {1.4142}, int64[1] last = {-1}"
    )
    text, weights, x = [], [], "x"
    for n in range(max(1, nodes // 27)):
        text.append(f"""
        mean{n} = ReduceMean ({x}, last) cent{n} = Sub ({x}, mean{n}) pow{n} = Pow (cent{n}, two)
        var{n} = ReduceMean (pow{n}, last) vare{n} = Add (var{n}, eps) std{n} = Sqrt (vare{n})
        norm{n} = Div (cent{n}, std{n}) scaled{n} = Mul (norm{n}, g{n})
        q{n} = MatMul (scaled{n}, wq{n}) k{n} = MatMul (scaled{n}, wk{n}) v{n} = MatMul (scaled{n}, wv{n})
        kt{n} = Transpose <perm = [0, 2, 1]> (k{n}) dots{n} = MatMul (q{n}, kt{n}) scores{n} = Div (dots{n}, root)
        weights{n} = Softmax <axis = -1> (scores{n}) mixed{n} = MatMul (weights{n}, v{n}) res{n} = Add ({x}, mixed{n})
        up{n} = MatMul (res{n}, wu{n}) ratio{n} = Div (up{n}, sq) erf{n} = Erf (ratio{n}) plus{n} = Add (erf{n}, one)
        act{n} = Mul (up{n}, plus{n}) gelu{n} = Mul (act{n}, half) down{n} = MatMul (gelu{n}, wd{n})
        shape{n} = Shape (down{n}) same{n} = Reshape (down{n}, shape{n}) y{n} = Add (res{n}, same{n})""")
        weights += [(f"w{each}{n}", rng.standard_normal((size, size), np.float32)) for each in "qkvud"]
        weights.append((f"g{n}", rng.standard_normal(size, np.float32)))
        x = f"y{n}"
    ports = f"float[B,S,{size}]"
    return _parsed(f"main ({ports} x) => ({ports} {x}) <{constants}> {{{''.join(text)} }}", weights)


def cnn(nodes: int) -> Any:
    """Residual blocks of two convolutions with batch normalisation."""
    import numpy as np

    size, rng = 4, np.random.default_rng(0)
    text, weights, x = [], [], "x"
    for n in range(max(1, nodes // 7)):
        for half, source in (("a", x), ("b", f"r{n}")):
            name = f"{n}{half}"
            text.append(f"""
            c{name} = Conv <pads = [1, 1, 1, 1]> ({source}, w{name})
            n{name} = BatchNormalization (c{name}, s{name}, b{name}, m{name}, v{name})""")
            weights.append((f"w{name}", rng.standard_normal((size, size, 3, 3), np.float32)))
            weights += [(f"{each}{name}", rng.random(size, np.float32) + 1) for each in "sbmv"]
            if half == "a":
                text.append(f"r{n} = Relu (n{name})")
        text.append(f"t{n} = Add (n{n}b, {x}) y{n} = Relu (t{n})")
        x = f"y{n}"
    ports = f"float[N,{size},8,8]"
    return _parsed(f"main ({ports} x) => ({ports} {x}) {{{''.join(text)} }}", weights)


def nests(nodes: int) -> Any:
    """Loops in loops in loops, one such nest after the other; every body has about 50 nodes."""
    text, x = [], "x"
    for n in range(max(1, nodes // 150)):
        text.append(f"y{n} = {_level(n, 0, x)}")
        x = f"y{n}"
    inputs = "float[2,3] x, int64 n"
    return _parsed(f"main ({inputs}) => (float[2,3] {x}) <float half = {{0.5}}> {{{' '.join(text)} }}")


def _level(nest: int, level: int, x: str) -> str:
    """The Loop of one level: 48 elementwise operations, and the Loop of the next level."""
    name = f"{nest}_{level}"
    value, lines = f"s{name}", []
    for number in range(16):
        lines.append(
            f"a{name}_{number} = Add ({value}, x) m{name}_{number} = Mul (a{name}_{number}, half) "
            f"t{name}_{number} = Tanh (m{name}_{number})"
        )
        value = f"t{name}_{number}"
    last = _level(nest, level + 1, value) if level < 2 else f"Neg ({value})"
    return f"""Loop (n, "", {x}) <body = step{name} (int64 i{name}, bool c{name}, float[2,3] s{name}) =>
      (bool d{name}, float[2,3] o{name}) {{ d{name} = Identity (c{name}) {" ".join(lines)} o{name} = {last} }}>"""


def loops(count: int) -> Any:
    """Loops with an If that has a loop, one after the other."""
    text, x = [], "x"
    for n in range(count):
        text.append(f"""
        y{n} = Loop (n, "", {x}) <body = outer{n} (int64 i{n}, bool c{n}, float[2,3] s{n}) =>
          (bool d{n}, float[2,3] t{n}) {{
          d{n} = Identity (c{n}) sum{n} = ReduceSum <keepdims = 0> (s{n}) is{n} = Less (sum{n}, limit)
          t{n} = If (is{n}) <
            then_branch = yes{n} () => (float[2,3] p{n}) {{
              p{n} = Loop (m, "", s{n}) <body = inner{n} (int64 j{n}, bool e{n}, float[2,3] u{n}) =>
                (bool f{n}, float[2,3] w{n}) {{ f{n} = Identity (e{n}) a{n} = Add (u{n}, x) w{n} = Tanh (a{n}) }}> }},
            else_branch = no{n} () => (float[2,3] q{n}) {{ q{n} = Neg (s{n}) }}> }}>""")
        x = f"y{n}"
    inputs = "float[2,3] x, int64 n, int64 m"
    return _parsed(f"main ({inputs}) => (float[2,3] {x}) <float limit = {{3}}> {{{''.join(text)} }}")


def _parsed(text: str, weights: Iterable[tuple[str, Any]] = ()) -> Any:
    """The model of a text in ONNX's syntax, with names for its nodes, and with arrays as initializers."""
    import onnx
    from onnx import numpy_helper

    model = onnx.parser.parse_model(f"{HEADER}\n{text}")
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights)
    pending = [model.graph]
    while pending:
        for node in pending.pop().node:
            node.name = f"{node.op_type}_{node.output[0]}"
            pending += [each.g for each in node.attribute if each.HasField("g")]
    return model


SHAPES: dict[str, Callable[[int], Any]] = {
    "chain": chain, "body": body, "layers": layers, "cnn": cnn, "nests": nests, "loops": loops,
}
"""The models of a number of nodes; of `loops`: of a number of Loops."""


def write(kind: str, size: float, path: Path) -> int:
    """Write the model of a kind, and return its number of nodes; for `folder`, many chains.

    `size` is a number of nodes or of models. For the kinds with weights it is their size in GB.
    """
    if kind == "folder":
        path.mkdir()
        sizes = [90 + 12 * (number % 17) for number in range(int(size))]
        return sum(write("chain", nodes, path / f"{number:04}.onnx") for number, nodes in enumerate(sizes))
    if kind in ("embedded", "external"):
        return write_weights(size, kind == "external", path)
    if kind in ("decoder-f32", "decoder-f16"):
        return write_decoder(size, kind.endswith("f16"), path)
    import onnx

    model = SHAPES[kind](int(size))
    onnx.save(model, path)
    return _count(model.graph)


def _count(graph: Any) -> int:
    inner = (_count(each.g) for node in graph.node for each in node.attribute if each.HasField("g"))
    return len(graph.node) + sum(inner)


if __name__ == "__main__":
    print(write(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])))
