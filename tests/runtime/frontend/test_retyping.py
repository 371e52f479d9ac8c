"""States of a wider type than their initial value: the body is translated again until the types are stable."""

import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mo_loop.frontend.context import Body
from tests.cases import read_cases
from tests.harness import check, floats, parsed, refusal


@pytest.fixture
def translations(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each body is translated, by its name."""
    counted: Counter[str] = Counter()
    translate = Body.translate

    def counting(self: Body, *arguments: Any) -> Any:
        counted[self.proto.name] += 1
        return translate(self, *arguments)

    monkeypatch.setattr(Body, "translate", counting)
    yield counted


def test_shape_of_a_growing_state() -> None:
    """The length of the state, read in the body, is that of the current iteration."""
    made = parsed("""main (float[1,3] x, int64 n) => (float[R,3] y, int64[K,2] shapes, float[K] sums) {
          y, shapes, sums = Loop (n, "", x) <body = grow (int64 i, bool c, s) => (bool d, t, u, v) <int64 one = {1}> {
            d = Identity (c)  u = Shape (s)  rows = Shape <start = 0, end = 1> (s)
            count = Cast <to = 1> (rows)  mean = ReduceMean <keepdims = 1> (s)  k = Mul (mean, count)
            r = Reshape (k, one11)  wide = Expand (r, shape13)  t = Concat <axis = 0> (s, wide)
            v = ReduceSum <keepdims = 0> (k) }> }""")
    body = made.graph.node[0].attribute[0].g
    for name, values in (("one11", [1, 1]), ("shape13", [1, 3])):
        body.initializer.add(name=name, data_type=7, dims=[2], int64_data=values)
    expected = [shape_reference(floats(1, 3, seed=n), n) for n in (3, 0, 5, 1)]
    check(made, *({"x": floats(1, 3, seed=n), "n": n} for n in (3, 0, 5, 1)), expected=expected)


def shape_reference(x: np.ndarray[Any, Any], count: int) -> list[tuple[str, Any]]:
    """The numbers of the loop above."""
    state, shapes, sums = x, [], []
    for _ in range(count):
        shapes.append(state.shape)
        sums.append(state.mean(dtype=np.float32) * len(state))
        state = np.concatenate([state, np.full((1, 3), sums[-1], np.float32)])
    return [
        ("y", state),
        ("shapes", np.array(shapes, np.int64).reshape(-1, 2)),
        ("sums", np.array(sums, np.float32)),
    ]


def test_growing_along_two_axes(translations: Counter[str]) -> None:
    """A row, then a column, in each iteration; both dimensions are widened, one translation after another at most."""
    made = parsed("""main (float[1,2] x, int64 n) => (float[R,C] y, int64[K,2] shapes) {
          y, shapes = Loop (n, "", x) <body = grow (int64 i, bool c, s) => (bool d, t, u) {
            d = Identity (c)  u = Shape (s)  row = ReduceMax <axes = [0], keepdims = 1> (s)
            taller = Concat <axis = 0> (s, row)  column = ReduceMin <axes = [1], keepdims = 1> (taller)
            t = Concat <axis = 1> (taller, column) }> }""", opset=13)
    check(made, *({"x": floats(1, 2, seed=n), "n": n} for n in (3, 1, 4)))
    assert translations["grow"] <= 3


def test_two_states_one_widened_by_the_other(translations: Counter[str]) -> None:
    """b takes the old a, c the old b: the widening reaches one more state with each translation."""
    made = parsed("""main (float[1] x, int64 n) => (float[P] p, float[Q] q, float[R] r) {
          p, q, r = Loop (n, "", x, x, x) <body = shift (int64 i, bool go, a, b, c) => (bool d, a2, b2, c2) {
            d = Identity (go) a2 = Concat <axis = 0> (a, c) b2 = Neg (a) c2 = Abs (b) }> }""")
    check(made, *({"x": floats(1, seed=n), "n": n} for n in (4, 0, 2, 7)))
    assert translations["shift"] <= 4


def test_growing_state_and_one_that_is_not(translations: Counter[str]) -> None:
    """A body whose states keep their types is translated once."""
    check(parsed("""main (float[2] x, int64 n) => (float[R] y, float[2] z) {
          y = Loop (n, "", x) <body = grow (int64 i, bool c, s) => (bool d, t) {
            d = Identity (c) t = Concat <axis = 0> (s, x) }>
          z = Loop (n, "", x) <body = keep (int64 i, bool c, s) => (bool d, t) { d = Identity (c) t = Add (s, x) }>
        }"""), *({"x": floats(2, seed=n), "n": n} for n in (2, 0)))
    assert translations["grow"] == 2
    assert translations["keep"] == 1


def nest(depth: int) -> str:
    """Growing states in `depth` nested loops."""
    text = ""
    for level in reversed(range(depth)):
        inner = text or f"g{level} = Neg (s{level})"
        source = f"t{level + 1}" if text else f"g{level}"
        outer = f"s{level - 1}" if level else "x"
        target = f"t{level}"
        text = f"""{target} = Loop (n, "", {outer}) <body = b{level} (int64 i{level}, bool c{level}, s{level})
          => (bool d{level}, r{level}) {{
          d{level} = Identity (c{level}) {inner} r{level} = Concat <axis = 0> ({source}, last) }}>"""
    return text


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_nested_growing_states(depth: int, translations: Counter[str]) -> None:
    """Widenings are remembered between translations: the cost of nested loops is their sum, not their product."""
    made = parsed(f"""
        main (float[1] x, float[1] last, int64 n) => (float[R] y) {{ {nest(depth)} y = Identity (t0) }}""")
    counts = (2, 1, 3) if depth < 5 else (1, 2, 1)
    check(made, *({"x": floats(1, seed=n), "last": floats(1, seed=9), "n": n} for n in counts))
    for level in range(depth):
        # Once for each translation of the body around it, and once more for its own widening: 2, 3, 4, ...
        assert translations[f"b{level}"] <= level + 2, translations


def test_scan_state_that_grows() -> None:
    made = parsed("""main (float[1] x, float[T,1] e) => (float[R] y, float[T] sums) {
          y, sums = Scan <num_scan_inputs = 1, body = grow (s, v) => (t, u) {
            t = Concat <axis = 0> (s, v) u = ReduceSum <keepdims = 0> (t) }> (x, e)
        }""")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sets = [{"x": floats(1, seed=n), "e": floats(n, 1, seed=n + 9)} for n in (3, 1, 5)]
        expected = [
            [("y", y := np.concatenate([each["x"], each["e"][:, 0]])), ("sums", np.cumsum(y, dtype=np.float32)[1:])]
            for each in sets
        ]
        check(made, *sets, expected=expected)


CONDITIONS = {"size": "size = Shape <end = 1> (s)  few = Less (size, two)", "iteration": "few = Less (i, two)",
              "input": "few = Less (i, limit)"}
LAST_ROWS = {
    "reshape": "last = Slice (s, from, end, first)  wide = Reshape (last, flat)  f = Slice (wide, zero, four, axis)",
    "top": "f, places = TopK <axis = 0> (s, two)",
    "add": "last = Slice (s, from, end, first)  pair = Reshape (last, square)  f = Add (pair, w)",
}


def pushed(rows: int, condition: str, read: str) -> Any:
    """A state of `rows` rows that grows by one, until a branch that needs two rows reads the last ones."""
    return parsed(f"""
        main (float[T,4] x, int64 limit) => (float[R,4] y)
        <int64[1] two = {{2}}, int64[1] from = {{-2}}, int64[1] end = {{99}}, int64[1] first = {{0}},
         int64[2] flat = {{1, 8}}, int64[2] square = {{2, 4}}, int64[1] zero = {{0}}, int64[1] four = {{4}},
         int64[1] axis = {{1}}, float[2,4] w = {{1, 2, 3, 4, 5, 6, 7, 8}}> {{
          none = Constant <value_ints = [{rows}, 4]> ()  start = ConstantOfShape (none)
          count = Shape <end = 1> (x)
          y = Loop (count, "", start) <body = push (int64 i, bool c, float[A,4] s) => (bool d, float[B,4] t) {{
            d = Identity (c)  row = Gather (x, i)  item = Unsqueeze (row, first)
            {CONDITIONS[condition]}
            t = If (few) <
                then_branch = more () => (float[C,4] e) {{ e = Concat <axis = 0> (s, item) }},
                else_branch = full () => (float[D,4] g) {{ {LAST_ROWS[read]}  g = Concat <axis = 0> (f, item) }}
            > }}>
        }}""")


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("t = Cast <to = 7> (s)", "loop"),
        ("""t = Loop [inner] ("", c, s) <body = deep (int64 j, bool e, q) => (bool f, r) {
              f = Not (e) r = Cast <to = 7> (q) }>""", "loop/step/inner"),
    ],
    ids=["own", "nested"],
)
def test_state_that_changes_its_element_type(statement: str, place: str) -> None:
    """Refused with its path: no tensor has two element types."""
    statement = statement.replace("t = Loop [inner]", "[inner] t = Loop")
    error = refusal(parsed(f"""main (float[2] x, int64 n) => (y) {{
          [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, s) => (bool d, t) {{
            d = Identity (c) {statement} }}>
        }}"""))
    assert (error.code, error.exit_code) == ("ML239", 2)
    assert "state 0 starts as f32 and becomes i64" in str(error)
    assert f"where: {place}\n" in f"{error}\n"


read_cases(globals())
