"""States of loops, and shapes known at run time only."""

from typing import Any

import numpy as np
import pytest

from tests.cases import read_cases
from tests.harness import Array, boolean, check_graph, f32, floats, i64
from tests.texts import texts

TEXTS = texts(__file__)

# -- States: passed to another state, passed through, growing. In-place operations need a Parameter of their own.
#
# Back edges are copied one after another, after the new slices and the new iteration number, so a view of one Parameter
# may be overwritten before it is read as the next value of another. Maximum(p, p), LogicalOr(p, p) for booleans, is a
# copy that the runtime keeps.


def loop(parameters: str, inputs: str, entries: str, outputs: str, body: str) -> str:
    """A Loop of %M iterations with the Results in `body`."""
    return f"""
        %M = Parameter : i64[]
        {parameters}
        %m = Maximum(%M, 0)
        {outputs} = Loop(%m, true, {inputs}) {{
          iteration: %i, condition: @go
          {entries}
        }}
          body {{
            %i = Parameter
            {body}
            Result(true) @go }}"""


@pytest.mark.parametrize("dims", ["2", "N"], ids=["static", "dynamic"])
@pytest.mark.parametrize("step", [
    "%n = Maximum(%b, %b)", "%c = Maximum(%b, %b)\n%r = Unsqueeze(%c, 0)\n%n = Squeeze(%r, [0])",
    "%c = Maximum(%b, %b)\n%n = Concat(%c) {axis: 0}", "%c = Maximum(%b, %b)\n%s = ShapeOf(%c)\n%n = Reshape(%c, %s)",
], ids=["bare", "squeeze", "concat", "reshape"])
def test_two_states_swapped(dims: str, step: str) -> None:
    text = loop(f"%x = Parameter : f32[{dims}]\n%y = Parameter : f32[{dims}]", "%x, %y",
                "input_map: [Merged(%a, @n), Merged(%b, @k)], output_map: [Final(@n), Final(@k)]", "%p, %q",
                f"%a = Parameter\n%b = Parameter\n{step}\n%k = Maximum(%a, %a)\nResult(%n)\nResult(%k)")
    text += "Result(%p)\nResult(%q)"

    def oracle(trips: Any, x: Any, y: Any) -> list[Any]:
        return [y, x] if trips % 2 else [x, y]

    lengths = [2, 2, 2, 2, 2, 2] if dims == "2" else [2, 3, 1, 3, 4, 2]
    calls = zip([3, 0, 4, 1, 2, 7], lengths, strict=True)
    check_graph(text, oracle, *([i64(t), floats(k, seed=t), floats(k, seed=t + 5)] for t, k in calls))


def test_special_values_survive_the_copy() -> None:
    text = loop("%x = Parameter : f32[6]\n%y = Parameter : f32[6]", "%x, %y",
                "input_map: [Merged(%a, @n), Merged(%b, @k)], output_map: [Final(@n), Final(@k)]", "%p, %q",
                "%a = Parameter\n%b = Parameter\n%n = Maximum(%b, %b)\n%k = Maximum(%a, %a)\nResult(%n)\nResult(%k)")
    # 1 / -0 distinguishes the zeros.
    text += "%s = Divide(1.0, %p)\nResult(%p)\nResult(%q)\nResult(%s)"
    x, y = f32(np.nan, np.inf, -np.inf, -0.0, 1e-40, 3e38), f32(1, 2, -0.0, 0.0, 5, 6)

    def oracle(trips: Any, x: Any, y: Any) -> list[Any]:
        p, q = (y, x) if trips % 2 else (x, y)
        with np.errstate(divide="ignore", over="ignore"):
            return [p, q, np.float32(1) / p]

    check_graph(text, oracle, *([i64(t), x, y] for t in (1, 2, 0, 3)))


# The second parameter of the body is copied, the copy scattered into, and the outcome added to the first.
SCATTER = TEXTS["scatter"]
SCATTER_FEEDS = [[i64(t), floats(4, seed=t), floats(4, seed=t + 7)] for t in (3, 0, 1, 5, 2)]


def scattered(trips: Any, x: Any, w: Any) -> Any:
    """The result of the iterations of SCATTER for x."""
    for _ in range(max(int(trips), 0)):
        put = w.copy()
        put[1] = x[0]
        x = x + put
    return x


@pytest.mark.parametrize("kind", ["TensorIterator", "Loop"])
def test_the_previous_element_of_a_scan(kind: str) -> None:
    """previous := current slice, the slice isolated."""
    length = "%shape = ShapeOf(%x)\n%length = Gather(%shape, 0, 0)\n" if kind == "Loop" else ""
    head = "Loop(%length, true, %h, %x) {condition: @go," if kind == "Loop" else "TensorIterator(%h, %x) {"
    text = f"""
        %h = Parameter : f32[2]  %x = Parameter : f32[T,2]
        {length}
        %last, %all = {head} input_map: [Merged(%before, @row), Sliced(%e, axis: 0)]
          output_map: [Final(@row), Concatenated(@u, axis: 0)]
        }}
          body {{
            %before = Parameter  %e = Parameter : f32[1,2]
            %copy = Maximum(%e, %e)  %row = Squeeze(%copy, [0])  %d = Subtract(%row, %before)
            %u = Unsqueeze(%d, 0)
            {"Result(true) @go" if kind == "Loop" else ""}
            Result(%row)  Result(%u) }}
        Result(%last)  Result(%all)"""

    def oracle(h: Any, x: Any) -> list[Any]:
        return [x[-1], np.diff(np.concatenate([h[None], x]), axis=0)]

    check_graph(text, oracle, *([floats(2, seed=t), floats(t, 2, seed=t)] for t in (3, 1, 5, 2)))


def test_the_number_of_the_iteration_becomes_a_state() -> None:
    text = loop("%x = Parameter : i64[1]", "%x",
                "input_map: [Merged(%a, @n)], output_map: [Final(@n), Concatenated(@seen, axis: 0)]", "%p, %q", """
            %a = Parameter
            %j = Maximum(%i, %i)  %n = Reshape(%j, [1])  %seen = Maximum(%a, %a)
            Result(%n)  Result(%seen)""")
    text += "Result(%p)\nResult(%q)"

    def oracle(trips: Any, x: Any) -> list[Any]:
        states = [int(x[0]), *range(int(trips))]
        return [i64([states[-1]]), i64(states[:-1])]

    check_graph(text, oracle, *([i64(t), i64([7 - t])] for t in (3, 1, 5, 2)))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("start", [0, 1], ids=["from nothing", "from something"])
def test_a_growing_state(axis: int, start: int) -> None:
    dims = ("?,2" if axis == 0 else "2,?", "f32[1,2]" if axis == 0 else "f32[2,1]")
    text = loop(f"%x = Parameter : f32[{dims[0]}]\n%w = Parameter : {dims[1]}", "%x, %w",
                "input_map: [Merged(%a, @n), Invariant(%w)], output_map: [Final(@n)]", "%p", f"""
            %a = Parameter  %w = Parameter
            %f = Convert(%i) {{destination_type: f32}}  %new = Add(%w, %f)
            %n = Concat(%a, %new) {{axis: {axis}}}
            Result(%n)""")
    text += "Result(%p)"

    def oracle(trips: Any, x: Any, w: Any) -> list[Any]:
        return [np.concatenate([x, *(w + np.float32(k) for k in range(max(int(trips), 0)))], axis)]

    one, item = ((start, 2), (1, 2)) if axis == 0 else ((2, start), (2, 1))
    check_graph(text, oracle, *([i64(t), floats(*one, seed=t), floats(*item, seed=t + 3)] for t in (3, 0, 1, 6, 2)))


def test_two_growing_states_and_a_shrinking_one() -> None:
    text = loop(
        "%x = Parameter : f32[?]",
        "f32 [], i64 [], %x",
        """
          input_map: [Merged(%a, @n), Merged(%b, @k), Merged(%c, @rest)]
          output_map: [Final(@n), Final(@k), Final(@rest)]
        """,
        "%p, %q, %r",
        """
            %a = Parameter  %b = Parameter  %c = Parameter
            %one = Slice(%c, [0], [1], [1])  %n = Concat(%a, %one) {axis: 0}  %j = Maximum(%i, %i)
            %number = Reshape(%j, [1])  %k = Concat(%b, %number, %number) {axis: 0}
            %rest = Slice(%c, [1], [1073741824], [1])
            Result(%n)  Result(%k)  Result(%rest)""",
    )
    text += "Result(%p)\nResult(%q)\nResult(%r)"

    def oracle(trips: Any, x: Any) -> list[Any]:
        count = max(int(trips), 0)
        return [x[:count], np.repeat(np.arange(count, dtype=np.int64), 2), x[count:]]

    check_graph(text, oracle, *([i64(t), floats(5, seed=t)] for t in (3, 0, 1, 6, 5)))


# -- Shapes known at run time only: shared memory, and what the runtime infers about loops before it runs them


SIZES = (4, 1, 300, 7)
ZERO = """
        %random = RandomUniform([1, 1], 0, 1) {output_type: i64}  %same = ReverseSequence(%random, [1])
        %zero = Reshape(%same, [1])"""


@pytest.mark.parametrize("dtype", ["f32", "i64", "boolean"])
def test_a_slice_between_an_if_and_the_nodes_that_would_take_its_memory(dtype: str) -> None:
    """Without it, Negative gets the memory of the output of the If before that is converted or read."""
    text = f"""
        %x = Parameter : f32[1,N]  %c = Parameter : boolean[]  %v = Parameter : {dtype}[M]
        %w = Parameter : {dtype}[M]
        %y = If(%c, %v, %w) {{input_map: [Branched(%a, _), Branched(_, %b)], output_map: [Selected(@a, @b)]}}
          then_body {{ %a = Parameter  Result(%a) }}
          else_body {{ %b = Parameter  Result(%b) }}
        %end = Select(%c, [1073741824], [1073741823])  %all = Slice(%y, [0], %end, [1], [0])
        %twice = Concat(%all, %all) {{axis: 0}}  %n = Negative(%x)  %shape = ShapeOf(%n)
        Result(%all)  Result(%twice)  Result(%shape)"""
    feeds = [
        [floats(1, n, seed=n), boolean(n % 2), *((floats(m, seed=m + k) * 9).astype(_numpy(dtype)) for k in range(2))]
        for n, m in zip(SIZES, reversed(SIZES), strict=True)
    ]

    def oracle(x: Array, c: Array, v: Array, w: Array) -> list[Any]:
        taken = v if c else w
        return [taken, np.concatenate([taken, taken]), i64(x.shape)]

    check_graph(text, oracle, *feeds)


def _numpy(dtype: str) -> Any:
    return {"f32": np.float32, "i64": np.int64, "boolean": np.bool_}[dtype]


# -- Constants in bodies: stored once, in half precision, with the mark that lets the runtime keep it


def test_a_compressed_constant_in_a_body() -> None:
    text = TEXTS["a compressed constant in a body"]

    def oracle(trips: Any, x: Any) -> list[Any]:
        w = np.array([[0.5, -0.25], [0.125, 1]], np.float32)
        for _ in range(max(int(trips), 0)):
            x = x @ w
        return [x]

    check_graph(text, oracle, *([i64(t), floats(2, 2, seed=t)] for t in (3, 0, 1, 5)))


read_cases(globals())
