"""Names in bodies and functions: what they mean, where they come from. Numbers are compared with ONNX Runtime's."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support import check, floats, parsed

from mo_loop.convert import convert_model
from mo_loop.errors import ModelError, MoLoopError, UnsupportedError
from mo_loop.frontend.functions import bound_attributes

X = floats(4, 3, seed=1)


# -- captures


def nested(kinds: tuple[str, ...], inner: str) -> str:
    """Statements that make `y<depth>` of shape [3]: constructs of `kinds`, outermost first, around `inner`.

    `inner` makes `v` from names of the outermost graph. Every level adds something of its own.
    """
    text, result = inner, "v"
    for depth, kind in reversed(list(enumerate(kinds))):
        name = f"y{depth}"
        if kind == "Loop":
            text = f"""{name} = Loop (n, "", start) <
              body = loop{depth} (int64 i{depth}, bool c{depth}, float[3] s{depth})
              => (bool d{depth}, float[3] t{depth}) {{
              d{depth} = Identity (c{depth}) {text} t{depth} = Add (s{depth}, {result}) }}>"""
        elif kind == "Scan":
            text = f"""{name} = Scan <num_scan_inputs = 1, body = scan{depth} (float[3] s{depth}, float[3] e{depth})
              => (float[3] t{depth}) {{
              {text} p{depth} = Mul (e{depth}, {result}) t{depth} = Add (s{depth}, p{depth}) }}> (start, x)"""
        else:
            text = f"""{name} = If (flag) <
              then_branch = yes{depth} () => (float[3] a{depth}) {{ {text} a{depth} = Add ({result}, start) }},
              else_branch = no{depth} () => (float[3] b{depth}) {{ b{depth} = Mul (start, w) }}>"""
        result = name
    return text


CHAINS = [c for depth in (1, 2, 3) for c in itertools.product(("Loop", "If", "Scan"), repeat=depth)]
CHAINS += [("Loop", "If", "Scan", "Loop"), ("Scan", "Loop", "If", "Scan"), ("If", "Scan", "Scan", "If")]


@pytest.mark.parametrize("kinds", CHAINS, ids="-".join)
def test_captures_through_levels(kinds: tuple[str, ...]) -> None:
    """The innermost body reads an input, an intermediate value and an initializer of the outermost graph."""
    text = nested(kinds, "u = Mul (start, w) v = Sub (u, twice)")
    made = parsed(f"""
        main (float[4,3] x, float[3] start, int64 n, bool flag) => (float[3] y) <float[3] w = {{0.5, -0.25, 0.75}}> {{
          twice = Add (start, start) {text} y = Neg (y0) }}""")
    start = floats(3, seed=2)
    sets = [(3, True), (2, False), (0, True), (1, True)]
    check(made, *({"x": X / 2, "start": start + n, "n": n, "flag": flag} for n, flag in sets))


def test_capture_made_by_a_sibling_construct() -> None:
    """One body's output captured in the next one's body, two levels deep."""
    made = parsed("""
        main (float[3] start, int64 n) => (float[3] y) {
          a = Loop (n, "", start) <body = one (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            d = Identity (c) t = Add (s, s) }>
          y = Loop (n, "", start) <body = two (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            d = Identity (c)
            u = Loop (n, "", s) <body = three (int64 j, bool c3, float[3] s3) => (bool d3, float[3] t3) {
              d3 = Identity (c3) p = Sub (s3, a) t3 = Sub (p, s) }>
            t = Mul (u, a) }>
        }""")
    check(made, *({"start": floats(3, seed=n), "n": n} for n in (2, 0, 1)))


def test_captured_iteration_and_condition() -> None:
    """The iteration number and the states of an outer loop, read in an inner one."""
    made = parsed("""
        main (int64 n, float[2] x) => (float[2] y, float[K] all) {
          y, all = Loop (n, "", x) <body = outer (int64 i, bool c, float[2] s) => (bool d, float[2] t, float u) {
            d = Identity (c)
            t = Loop (i, c, s) <body = inner (int64 j, bool e, float[2] r) => (bool f, float[2] q) {
              f = Identity (e) k = Add (i, j) kf = Cast <to = 1> (k) m = Mul (s, kf) q = Add (r, m) }>
            u = ReduceSum <keepdims = 0> (t) }>
        }""")
    check(made, *({"n": n, "x": floats(2, seed=n) / 100} for n in (3, 1, 0, 4)))


# -- names


def test_shadowed_name_is_the_inner_ones() -> None:
    """A body's input that hides an outer value wins, and is warned about."""
    made = parsed("""
        main (float[3] x, float[3] w, int64 n) => (float[3] y) {
          h = Add (x, w)
          y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] w) => (bool d, float[3] t) {
            d = Identity (c) u = Mul (w, h) t = Sub (u, w) }>
        }""")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        convert_model(made)
    assert [str(each.message) for each in heard] == ["y/step: 'w' hides an outer value of that name"]
    plain = parsed("""
        main (float[3] x, float[3] w, int64 n) => (float[3] y) {
          h = Add (x, w)
          y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            d = Identity (c) u = Mul (s, h) t = Sub (u, s) }>
        }""")
    same_numbers(made, plain, *({"x": X[n], "w": X[3], "n": n} for n in (2, 0, 3)))


def same_numbers(model: Any, plain: Any, *feeds: Any) -> None:
    """Check a model that ONNX Runtime refuses against one that means the same."""
    from support import native

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        sets = [{name: np.asarray(value) for name, value in each.items()} for each in feeds]
        check(model, *sets, expected=native("oracle", plain.SerializeToString(), sets))


def test_nodes_and_initializers_of_a_body_hide_outer_names() -> None:
    made = parsed("""
        main (float[3] x, bool flag, float[3] w) => (float[3] y) {
          h = Neg (x)
          y = If (flag) <
            then_branch = yes () => (float[3] r) <float[3] w = {1.0, 2.0, 3.0}> { r = Mul (x, w) },
            else_branch = no () => (float[3] q) { h = Abs (x) q = Mul (h, w) }
          >
          unused = Add (h, w)
        }""")
    with pytest.warns(UserWarning, match="'w' hides an outer value") as heard:
        convert_model(made)
    assert len(heard) == 1  # `h` of the branch hides one that is never needed, hence never made
    plain = parsed("""
        main (float[3] x, bool flag, float[3] w) => (float[3] y) {
          y = If (flag) <
            then_branch = yes () => (float[3] r) <float[3] v = {1.0, 2.0, 3.0}> { r = Mul (x, v) },
            else_branch = no () => (float[3] q) { g = Abs (x) q = Mul (g, w) }
          >
        }""")
    same_numbers(made, plain, *({"x": X[n], "w": X[3], "flag": bool(n % 2)} for n in range(3)))


def test_same_names_in_sibling_bodies() -> None:
    made = parsed("""
        main (float[3] x, bool flag, int64 n) => (float[3] y, float[3] z) {
          y = If (flag) <
            then_branch = b () => (float[3] t) <float[3] k = {1.0, 2.0, 3.0}> { u = Mul (x, k) t = Neg (u) },
            else_branch = b () => (float[3] t) <float[3] k = {4.0, 5.0, 6.0}> { u = Add (x, k) t = Abs (u) }
          >
          z = Loop (n, "", x) <body = b (int64 i, bool c, float[3] s) => (bool d, float[3] t)
            <float[3] k = {7.0, 8.0, 9.0}> {
            d = Identity (c) u = Sub (s, k) t = Mul (u, k) }>
        }""")
    check(made, *({"x": X[n], "flag": n == 1, "n": n} for n in range(3)))


def test_body_inputs_named_as_outer_values() -> None:
    """PaddleOCR's SLANet: 16 body inputs that bear outer names in another order, most passed through unchanged."""
    count = 14
    outer = [f"v{k}" for k in range(count)]
    inner = [*outer[5:], *outer[:5]]  # state k is called what the outer graph calls state k + 5
    made = parsed("main (int64 n, bool go, float[2] v0) => (float[2] y) { y = Neg (v0) }")
    graph = made.graph
    del graph.node[:], graph.output[:]
    graph.input.extend(helper.make_tensor_value_info(name, 1, [2]) for name in outer[1:])
    changed = {0: ("Add", inner[1]), 7: ("Mul", inner[0])}
    nodes = [helper.make_node("Identity", ["go"], ["go_out"])]
    results = []
    for k, name in enumerate(inner):
        if k in changed:
            op, other = changed[k]
            nodes.append(helper.make_node(op, [name, other], [f"r{k}"]))
            results.append(f"r{k}")
        else:
            results.append(name)
    body = helper.make_graph(
        nodes,
        "body",
        [helper.make_tensor_value_info("n", 7, []), helper.make_tensor_value_info("go", 9, [])]
        + [helper.make_tensor_value_info(name, 1, [2]) for name in inner],
        [helper.make_tensor_value_info("go_out", 9, [])]
        + [helper.make_tensor_value_info(name, 1, [2]) for name in results],
    )
    assert len(body.input) == 16
    outputs = [f"y{k}" for k in range(count)]
    graph.node.append(helper.make_node("Loop", ["n", "go", *outer], outputs, name="loop", body=body))
    graph.output.extend(helper.make_tensor_value_info(name, 1, [2]) for name in outputs)
    plain = onnx.ModelProto()
    plain.CopyFrom(made)
    renamed(plain.graph.node[0].attribute[0].g, "in_")
    sets = [{"n": n, "go": True, **{name: floats(2, seed=k) for k, name in enumerate(outer)}} for n in (3, 0, 1)]
    same_numbers(made, plain, *sets)


def renamed(graph: Any, prefix: str) -> None:
    """Give every name of a body (one without captures) a prefix."""
    for each in (*graph.input, *graph.output):
        each.name = prefix + each.name
    for node in graph.node:
        node.input[:] = [prefix + name for name in node.input]
        node.output[:] = [prefix + name for name in node.output]


# -- order


def shuffled(graph: Any, seed: int) -> None:
    """List the nodes of a graph and of its bodies in another order."""
    nodes = list(graph.node)
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                shuffled(attribute.g, seed)
    order = np.random.default_rng(seed).permutation(len(nodes))
    copies = [onnx.NodeProto.FromString(nodes[k].SerializeToString()) for k in order]
    del graph.node[:]
    graph.node.extend(copies)


@pytest.mark.parametrize("seed", range(4))
def test_nodes_out_of_order(seed: int) -> None:
    """In the main graph and in bodies; what a body captures counts as read by its node."""
    made = parsed("""
        main (float[3] x, int64 n, bool flag) => (float[3] y) {
          a = Neg (x)
          b = Mul (a, x)
          z = Loop (n, "", b) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            d = Identity (c)
            p = Add (s, a)
            q = If (flag) <
              then_branch = yes () => (float[3] r) { o = Mul (p, late) r = Neg (o) },
              else_branch = no () => (float[3] r2) { o2 = Add (p, b) r2 = Abs (o2) }
            >
            t = Mul (q, p) }>
          late = Exp (a)
          y = Add (z, late)
        }""")
    ordered = onnx.ModelProto.FromString(made.SerializeToString())
    ordered.graph.node.insert(0, ordered.graph.node[3])
    del ordered.graph.node[4]
    ordered.graph.node.insert(0, ordered.graph.node[1])
    del ordered.graph.node[2]
    shuffled(made.graph, seed)
    same_numbers(made, ordered, *({"x": X[n] / 4, "n": n, "flag": n == 1} for n in range(3)))


def test_circle_of_nodes_is_named() -> None:
    made = parsed("""
        main (float[3] x, bool flag) => (float[3] y) {
          [first] a = Add (x, b)
          [second] b = If (flag) <
            then_branch = yes () => (float[3] r) { r = Neg (a) }, else_branch = no () => (float[3] q) { q = Abs (x) }>
          [third] y = Neg (b)
        }""")
    with pytest.raises(ModelError) as caught:
        convert_model(made)
    assert caught.value.code == "ML224"
    assert "first" in str(caught.value) and "second" in str(caught.value)


# -- constants, empty inputs, missing types


def test_constants_of_bodies() -> None:
    """Initializers and Constant nodes of a body, an initializer that IS a body's output, one captured below."""
    made = parsed("""
        main (float[3] x, int64 n, bool flag) => (float[3] y, float[K,2] all, float[2] z) {
          y, all = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t, float[2] k)
            <float[3] w = {0.5, 2.0, 1.0}, float[2] k = {3.0, 4.0}> {
            d = Constant <value = bool {1}> ()
            p = Constant <value_floats = [1.0, 2.0, 3.0]> ()
            q = If (flag) <
              then_branch = yes () => (float[3] r) { r = Mul (s, w) },
              else_branch = no () => (float[3] e) { e = Add (s, p) }
            >
            t = Sub (q, p) }>
          z = If (flag) <
            then_branch = lone () => (float[2] u) <float[2] u = {5.0, 6.0}> { },
            else_branch = node () => (float[2] v) { v = Constant <value_floats = [7.0, 8.0]> () }
          >
        }""")
    check(made, *({"x": X[n], "n": n, "flag": n != 1} for n in (1, 2, 3)))


def sparse(values: list[float], indices: Any, dims: list[int], name: str) -> Any:
    """A SparseTensorProto."""
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.array(values, np.float32), name),
        numpy_helper.from_array(np.array(indices, np.int64), f"{name}_indices"),
        dims,
    )


def test_sparse_initializers() -> None:
    """In the main graph, captured by a body, and in a body: they count as their dense form."""
    text = """
        main (float[2,3] x, int64 n) => (float[2,3] y) DENSE {
          h = Add (x, a)
          y = Loop (n, "", h) <body = step (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t) INNER {
            d = Identity (c) u = Mul (s, b) t = Add (u, a) }>
        }"""
    dense = "<float[2,3] a = {0.0, 3.0, 0.0, 0.0, 0.0, 4.0}>"
    plain = parsed(text.replace("DENSE", dense).replace("INNER", "<float[2,3] b = {1.0, 0.0, 0.0, 2.0, 0.0, 0.0}>"))
    made = parsed(text.replace("DENSE", "").replace("INNER", ""))
    made.graph.sparse_initializer.append(sparse([3, 4], [[0, 1], [1, 2]], [2, 3], "a"))
    body = made.graph.node[1].attribute[0].g
    body.sparse_initializer.append(sparse([1, 2], [0, 3], [2, 3], "b"))
    same_numbers(made, plain, *({"x": floats(2, 3, seed=n), "n": n} for n in (2, 0)))


def test_sparse_constant_in_a_body() -> None:
    node = helper.make_node("Constant", [], ["k"], sparse_value=sparse([2, 3], [1, 2], [3], "k"))
    made = parsed("""
        main (float[3] x, bool flag) => (float[3] y) {
          y = If (flag) <then_branch = yes () => (float[3] r) { r = Mul (x, k) }, else_branch = no () => (float[3] e) {
            e = Neg (x) }> }""")
    plain = onnx.ModelProto.FromString(made.SerializeToString())
    next(a for a in made.graph.node[0].attribute if a.name == "then_branch").g.node.insert(0, node)
    dense = helper.make_node("Constant", [], ["k"], value_floats=[0.0, 2.0, 3.0])
    next(a for a in plain.graph.node[0].attribute if a.name == "then_branch").g.node.insert(0, dense)
    same_numbers(made, plain, *({"x": X[0], "flag": flag} for flag in (True, False)))


def test_empty_optional_inputs() -> None:
    """Absent inputs in the middle and at the end, also of nodes in bodies; a Loop with neither count nor condition."""
    made = parsed("""
        main (float[3] x, int64 n, float high) => (float[3] y, float[3] z) {
          y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            d = Identity (c) u = Clip (s, "", high) t = Add (u, x) }>
          z = Loop ("", "", x) <body = ever (int64 i, bool c, float[3] s) => (bool d, float[3] t) <int64 five = {5}> {
            d = Less (i, five) u = Clip (s, high, "") t = Sub (u, x) }>
        }""")
    check(made, *({"x": X[n], "n": n, "high": np.float32(n - 1)} for n in (2, 0, 3)))


def stripped(graph: Any, inside: bool = False) -> None:
    """Take every type from the ports of bodies, and all value_info."""
    del graph.value_info[:]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                stripped(attribute.g, True)
    if inside:
        for port in (*graph.input, *graph.output):
            port.ClearField("type")


@pytest.mark.parametrize("kinds", [("Loop", "Scan", "If"), ("Scan", "Loop"), ("If", "Loop", "Scan")], ids="-".join)
def test_bodies_without_types(kinds: tuple[str, ...]) -> None:
    """The types of a body's ports follow from what is fed to it."""
    text = nested(kinds, "u = Mul (start, w) v = Sub (u, start)")
    made = parsed(f"""
        main (float[4,3] x, float[3] start, int64 n, bool flag) => (float[3] y) <float[3] w = {{0.5, -0.25, 0.75}}> {{
          {text} y = Neg (y0) }}""")
    plain = onnx.ModelProto.FromString(made.SerializeToString())
    stripped(made.graph)
    start = floats(3, seed=2)
    sets = [{"x": X / 2, "start": start, "n": n, "flag": flag} for n, flag in ((2, True), (0, False))]
    same_numbers(made, plain, *sets)


def test_declared_shapes_of_a_body_may_be_wrong() -> None:
    """Exporters write the first iteration's shape of a state that grows; what is fed decides."""
    made = parsed("""
        main (float[1,3] x, int64 n) => (float[K,3] y) {
          y = Loop (n, "", x) <body = step (int64 i, bool c, float[1,3] s) => (bool d, float[1,3] t) {
            d = Identity (c) t = Concat <axis = 0> (s, x) }>
        }""")
    grown = parsed("""
        main (float[1,3] x, int64 n) => (float[K,3] y) {
          y = Loop (n, "", x) <body = step (int64 i, bool c, float[P,3] s) => (bool d, float[Q,3] t) {
            d = Identity (c) t = Concat <axis = 0> (s, x) }>
        }""")
    same_numbers(made, grown, *({"x": X[:1] + n, "n": n} for n in (3, 0, 1)))


# -- functions


def functions(graph: str, *bodies: str, imports: str = '"" : 18', **domains: int) -> onnx.ModelProto:
    """A model with local functions of the domain `local`, each given without its header."""
    headers = "\n".join(f'<domain: "local", opset_import: [{imports}, "local": 1]> {body}' for body in bodies)
    return parsed(f"{graph}\n{headers}", local=1, **domains)


def test_nested_functions_with_attributes() -> None:
    """Defaults, values given, values handed on under another name, and an attribute left out without default."""
    made = functions(
        """main (float[3] x) => (float[3] a, float[3] b, float[3] c, float[3] d) {
          a = local.outer (x)
          b = local.outer <slope = 0.5, gain = 3.0> (x)
          c = local.inner <alpha = 0.25> (x)
          d = local.leaky (x)
        }""",
        """inner <alpha: float = 0.75> (v) => (r) { r = LeakyRelu <alpha: float = @alpha> (v) }""",
        """outer <slope: float = 0.1, gain: float = 2.0> (v) => (r) {
          k = Constant <value_float: float = @gain> () t = local.inner <alpha: float = @slope> (v) r = Mul (t, k) }""",
        """leaky <alpha> (v) => (r) { r = LeakyRelu <alpha: float = @alpha> (v) }""",
    )
    check(made, *({"x": x} for x in X))


def test_attribute_left_out_all_the_way() -> None:
    """A reference to an attribute that no caller gives leaves the inner function its own default."""
    made = functions(
        "main (float[3] x) => (float[3] y) { y = local.outer (x) }",
        "inner <alpha: float = 0.75> (v) => (r) { r = LeakyRelu <alpha: float = @alpha> (v) }",
        "outer <alpha> (v) => (r) { r = local.inner <alpha: float = @alpha> (v) }",
    )
    expected = [[("y", np.where(x < 0, x * np.float32(0.75), x))] for x in X]
    check(made, *({"x": x} for x in X), expected=expected)
    inner, call = made.functions[0], made.functions[1].node[0]
    assert bound_attributes(inner, call, {})["alpha"].f == 0.75


CONTROL = {
    "if": """choose <limit: float = 0.5> (v, flag) => (r) {
          k = Constant <value_float: float = @limit> ()
          r = If (flag) <
            then_branch = yes () => (float[3] p) { p = Mul (v, k) },
            else_branch = no () => (float[3] q) { l = Constant <value_float: float = @limit> () q = Sub (v, l) }
          > }""",
    "loop": """choose <limit: float = 0.5> (v, flag) => (r) {
          n = Constant <value_int = 3> ()
          r = Loop (n, flag, v) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            d = Identity (c) k = Constant <value_float: float = @limit> () m = Mul (s, k) t = Add (m, v) }> }""",
    "scan": """choose <limit: float = 0.5> (v, flag) => (r) {
          f = Cast <to = 1> (flag)
          r = Scan <num_scan_inputs = 1, body = step (float s, float e) => (float s2, float t) {
            k = Constant <value_float: float = @limit> () m = Mul (s, k) s2 = Add (m, e) t = Identity (s2) }> (f, v)
        }""",
}


@pytest.mark.parametrize("kind", CONTROL)
def test_control_flow_in_a_function(kind: str) -> None:
    """Attributes of the call are seen in the bodies; the same function called twice."""
    text = CONTROL[kind]
    if kind == "scan":
        text = text.replace("r = Scan", "last, r = Scan")
    made = functions(
        """main (float[3] x, bool flag) => (float[3] y) {
          a = local.choose (x, flag) y = local.choose <limit = 0.125> (a, flag) }""",
        text,
    )
    check(made, *({"x": x, "flag": flag} for x, flag in zip(X, (True, False, True, True), strict=True)))


def test_functions_called_in_bodies() -> None:
    """As PyTorch's dynamo exporter writes them; names in the function are not those of the body."""
    made = functions(
        """main (float[3] x, int64 n, bool flag) => (float[3] y) {
          h = local.scale (x)
          y = Loop (n, "", h) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            d = Identity (c)
            t = If (flag) <
              then_branch = yes () => (float[3] p) { p = local.scale <by = 0.5> (s) },
              else_branch = no () => (float[3] q) { o = local.scale (x) q = local.mix (s, o) }
            > }>
        }""",
        "scale <by: float = 2.0> (s) => (h) { x = Constant <value_float: float = @by> () h = Mul (s, x) }",
        "mix (x, s) => (y) { t = Sub (x, s) y = local.scale (t) }",
    )
    check(made, *({"x": X[n], "n": n, "flag": n != 1} for n in range(3)))


def test_optional_inputs_of_a_function() -> None:
    """Left out at the end, in the middle, and handed on to an operator or a function that may lack them."""
    made = functions(
        """main (float[3] x, float low, float high) => (float[3] a, float[3] b, float[3] c, float[3] d) {
          a = local.bound (x, low, high) b = local.bound (x, "", high)
          c = local.bound (x, low) d = local.bound (x) }""",
        "bound (v, lo, hi) => (r) { t = local.inner (v, lo, hi) r = Neg (t) }",
        "inner (v, lo, hi) => (r) { r = Clip (v, lo, hi) }",
    )
    x, low, high = X[0], np.float32(-0.25), np.float32(0.25)
    bounds = [(low, high), (-np.inf, high), (low, np.inf), (-np.inf, np.inf)]
    expected = [(name, -np.clip(x, *(np.float32(v) for v in b))) for name, b in zip("abcd", bounds, strict=True)]
    check(made, {"x": x, "low": low, "high": high}, expected=[expected])


def test_unused_outputs_of_a_function() -> None:
    made = functions(
        "main (float[4] x) => (float[2] y) { , y = local.halves (x) }".replace("{ ,", '{ "",'),
        "halves (v) => (a, b) { a, b = Split <axis = 0, num_outputs = 2> (v) }",
    )
    check(made, {"x": floats(4)})


def test_function_of_another_opset() -> None:
    """Axes are an attribute of opset 11 in the function, an input of opset 18 in the model."""
    made = functions(
        """main (float[2,3] x) => (float[2] y, float[2] z) <int64[1] axes = {1}> {
          y = ReduceMean <keepdims = 0> (x, axes) z = local.mean (x) }""",
        "mean (v) => (r) { r = ReduceMean <axes = [1], keepdims = 0> (v) }",
        imports='"" : 11',
    )
    x = floats(2, 3)
    check(made, {"x": x}, expected=[[("y", x.mean(1)), ("z", x.mean(1))]])


def test_function_overrides_an_operator() -> None:
    """A model's function of the default domain comes before the operator of that name."""
    made = parsed("""
        main (float[3] x) => (float[3] y) { y = Selu (x) }
        <domain: "", opset_import: ["" : 18]> Selu (v) => (r) { r = Neg (v) }""")
    check(made, {"x": X[0]}, expected=[[("y", -X[0])]])


def test_functions_that_call_each_other() -> None:
    made = functions(
        "main (float[3] x) => (float[3] y) { [call] y = local.first (x) }",
        "first (v) => (r) { r = local.second (v) }",
        "second (v) => (r) { r = local.third (v) }",
        "third (v) => (r) { r = local.first (v) }",
    )
    with pytest.raises(MoLoopError) as caught:
        convert_model(made)
    assert caught.value.exit_code == 2
    assert caught.value.code == "ML228"
    assert "first -> second -> third -> first" in str(caught.value)


def test_function_that_calls_itself_in_a_body() -> None:
    made = functions(
        "main (float[3] x, bool flag) => (float[3] y) { [call] y = local.first (x, flag) }",
        """first (v, flag) => (r) { r = If (flag) <
          then_branch = yes () => (float[3] p) { p = local.first (v, flag) },
          else_branch = no () => (float[3] q) { q = Neg (v) }> }""",
    )
    with pytest.raises(MoLoopError) as caught:
        convert_model(made)
    assert (caught.value.code, caught.value.exit_code) == ("ML228", 2)
    assert "first -> first" in str(caught.value)


# -- depth


def tower(depth: int) -> onnx.ModelProto:
    """Ifs in each other, `depth` bodies deep: -x if all flags hold, else |x|."""
    ports = [helper.make_tensor_value_info("x", 1, [2]), helper.make_tensor_value_info("flag", 9, [])]
    graph = helper.make_graph([], "tower", ports, [_out("t0")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    graph = model.graph
    for level in range(depth):
        node = graph.node.add(op_type="If", input=["flag"], output=[f"t{level}"], name=f"if{level}")
        no = helper.make_graph([helper.make_node("Abs", ["x"], [f"e{level}"])], "no", [], [_out(f"e{level}")])
        node.attribute.add(name="else_branch", type=onnx.AttributeProto.GRAPH, g=no)
        graph = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g
        graph.name = "yes"
        graph.output.append(_out(f"t{level + 1}"))
    graph.node.append(helper.make_node("Neg", ["x"], [f"t{depth}"]))
    return model


def _out(name: str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])


def test_bodies_32_deep() -> None:
    """The runtime's time to compile doubles with each If, so numbers are compared on a lower tower."""
    x = X[0, :2]
    expected = [[("t0", -x)], [("t0", np.abs(x))]]
    check(tower(9), {"x": x, "flag": True}, {"x": x, "flag": False}, expected=expected)
    assert sum(1 for _ in convert_model(tower(32)).graph.scopes()) == 1 + 2 * 32


def test_bodies_33_deep_are_refused() -> None:
    with pytest.raises(MoLoopError) as caught:
        convert_model(tower(33))
    assert (caught.value.code, caught.value.exit_code) == ("ML312", 3)
    assert "deeper than 32" in str(caught.value)


def test_bodies_too_deep_for_protobuf_are_refused() -> None:
    with pytest.raises(UnsupportedError) as caught:
        convert_model(nested_bytes(60))
    assert caught.value.code == "ML312"


def nested_bytes(depth: int) -> bytes:
    """A serialized tower higher than protobuf reads: each level is wrapped by hand."""
    data = helper.make_graph([helper.make_node("Neg", ["x"], ["t"])], "g", [], [_out("t")]).SerializeToString()
    for _ in range(depth):
        attribute = onnx.AttributeProto(name="then_branch", type=onnx.AttributeProto.GRAPH).SerializeToString()
        attribute += _field(6, data)
        node = onnx.NodeProto(op_type="If", input=["flag"], output=["t"]).SerializeToString() + _field(5, attribute)
        data = onnx.GraphProto(name="g", output=[_out("t")]).SerializeToString() + _field(1, node)
    model = onnx.ModelProto(ir_version=10, opset_import=[helper.make_opsetid("", 18)])
    return model.SerializeToString() + _field(7, data)


def _field(number: int, data: bytes) -> bytes:
    """A length-delimited field of protobuf."""
    size, length = b"", len(data)
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + data


def chain_of_functions(depth: int, text: str) -> onnx.ModelProto:
    """`depth` functions, each calling the next in the way of `text`, the last one a Neg."""
    bodies = [text.replace("NEXT", f"local.f{k + 1}").replace("NAME", f"f{k}") for k in range(depth)]
    graph = "main (float[3] x, bool flag) => (float[3] y) { [call] y = local.f0 (x, flag) }"
    return functions(graph, *bodies, f"f{depth} (v, flag) => (r) {{ r = Neg (v) }}")


def test_deep_function_calls() -> None:
    """The limit is far above what exporters write, and below Python's own."""
    text = "NAME (v, flag) => (r) { r = NEXT (v, flag) }"
    check(chain_of_functions(99, text), {"x": X[0], "flag": True}, expected=[[("y", -X[0])]])
    with pytest.raises(MoLoopError) as caught:
        convert_model(chain_of_functions(600, text))
    assert (caught.value.code, caught.value.exit_code) == ("ML312", 3)


def test_bodies_of_functions_count_as_nested() -> None:
    text = """NAME (v, flag) => (r) { r = If (flag) <then_branch = yes () => (float[3] p) { p = NEXT (v, flag) },
      else_branch = no () => (float[3] q) { q = Abs (v) }> }"""
    expected = [[("y", -X[0])], [("y", np.abs(X[0]))]]
    sets = [{"x": X[0], "flag": True}, {"x": X[0], "flag": False}]
    check(chain_of_functions(7, text), *sets, expected=expected)
    assert sum(1 for _ in convert_model(chain_of_functions(32, text)).graph.scopes()) == 1 + 2 * 32
    with pytest.raises(MoLoopError) as caught:
        convert_model(chain_of_functions(33, text))
    assert (caught.value.code, caught.value.exit_code) == ("ML312", 3)


# -- operators that ONNX itself spells out


def test_schema_functions_are_expanded() -> None:
    """An operator that nothing translates but whose schema gives it a body, here and in a loop's body."""
    made = parsed("""
        main (float[2,3] x, int64 n) => (float[2,3] y, float[2,3] z) <int64[1] axes = {0}> {
          y = MeanVarianceNormalization <axes = [1]> (x)
          z = Loop (n, "", x) <body = step (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t) {
            d = Identity (c) t = AffineOf (s) }>
        }""".replace("AffineOf", "MeanVarianceNormalization <axes = [0]>"))
    check(made, *({"x": floats(2, 3, seed=n), "n": n} for n in (2, 0)))


def test_schema_function_without_a_translator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expansion alone gives the numbers that the translator gives."""
    from mo_loop.frontend import registry

    hidden = {"Softsign", "HardSwish", "Celu"}
    find = registry.find
    monkeypatch.setattr(registry, "find", lambda op, opset: None if op in hidden else find(op, opset))
    made = parsed("""
        main (float[3] x, bool flag) => (float[3] y, float[3] z) {
          y = HardSwish (x)
          z = If (flag) <
            then_branch = yes () => (float[3] p) { p = Celu <alpha = 0.5> (x) },
            else_branch = no () => (float[3] q) { q = Softsign (x) }> }""")
    check(made, *({"x": x, "flag": k != 1} for k, x in enumerate(X)))


# -- what is wrong with names


@pytest.fixture(params=["main", "Loop", "If", "function"])
def undefined(request: pytest.FixtureRequest) -> Iterator[tuple[onnx.ModelProto, str]]:
    """A model in which nothing defines `ghost`, and the place where it is read."""
    models = {
        "main": ("main (float[3] x) => (float[3] y) { [here] y = Add (x, ghost) }", "here"),
        "Loop": (
            """main (float[3] x, int64 n) => (float[3] y) {
              [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
                d = Identity (c) [here] t = Add (s, ghost) }> }""",
            "loop/step/here",
        ),
        "If": (
            """main (float[3] x, bool f) => (float[3] y) {
              [choice] y = If (f) <then_branch = yes () => (float[3] p) { [here] p = Add (x, ghost) },
                else_branch = no () => (float[3] q) { q = Neg (x) }> }""",
            "choice/yes/here",
        ),
        "function": ("", "call/here"),
    }
    text, place = models[request.param]
    if request.param == "function":
        # A function sees its own names only: `x` of the graph that calls it is none of them.
        yield (
            functions(
                "main (float[3] ghost) => (float[3] y) { [call] y = local.f (ghost) }",
                "f (v) => (r) { [here] r = Add (v, ghost) }",
            ),
            place,
        )
        return
    yield parsed(text), place


def test_undefined_name(undefined: tuple[onnx.ModelProto, str]) -> None:
    made, place = undefined
    with pytest.raises(MoLoopError) as caught:
        convert_model(made)
    assert (caught.value.code, caught.value.exit_code) == ("ML223", 2)
    assert "'ghost'" in str(caught.value)
    assert f"where: {place}\n" in f"{caught.value}\n"


def test_name_of_a_body_is_not_seen_outside() -> None:
    made = parsed("""
        main (float[3] x, bool f) => (float[3] y) {
          p = If (f) <then_branch = yes () => (float[3] a) { t = Neg (x) a = Abs (t) },
            else_branch = no () => (float[3] b) { b = Neg (x) }>
          [here] y = Add (p, t) }""")
    with pytest.raises(MoLoopError) as caught:
        convert_model(made)
    assert caught.value.code == "ML223"


@pytest.mark.parametrize("operator", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("attributes", ["", "<periodic = 0>", "<output_datatype = 1, periodic = 1>"])
def test_defaults_of_a_schema_function(operator: str, attributes: str) -> None:
    """The body of the schema refers to attributes that the node leaves out."""
    made = parsed(f"main (int64 n) => (float[N] y) {{ y = {operator} {attributes} (n) }}")
    check(made, {"n": 10}, {"n": 5})


def test_a_schema_function_inside_another_sees_the_attributes() -> None:
    """SoftmaxCrossEntropyLoss calls NegativeLogLikelihoodLoss with references to its own attributes."""
    made = parsed("""
        main (float[3, 5] x, int64[3] y, float[5] w) => (float z) {
          z = SoftmaxCrossEntropyLoss <ignore_index = 4, reduction = "sum"> (x, y, w)
        }""")
    data = {"x": np.random.default_rng(0).random((3, 5), np.float32), "w": np.arange(1, 6, dtype=np.float32)}
    check(made, *({**data, "y": np.array(labels)} for labels in ([0, 4, 2], [1, 1, 1])))
