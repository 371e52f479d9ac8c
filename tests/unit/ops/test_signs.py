"""Which integers are at least 0: what `is_not_negative` proves, and what it must not."""

import pytest

from mo_loop.ops.exact import is_not_negative
from mo_loop.text import parse

INPUTS = '%x = Parameter : f32[M,N] "x"\n%i = Parameter : i64[K] "i"\n'

PROVEN = [
    "%z = NonZero(%x)\n%t = Transpose(%z, [1, 0])\n%y = Unsqueeze(%t, [2])",
    "%v, %p = TopK(%x, 3) {axis: 0, mode: max, sort: value}\n%y = Convert(%p) {destination_type: i64}",
    "%v, %p = TopK(%x, 3) {axis: 0, mode: max, sort: value}\n%y = Gather(%p, %i, 0)",
    "%s = ShapeOf(%x)\n%a = Abs(%i)\n%m = Multiply(%a, [3])\n%y = Concat(%s, %m, [0]) {axis: 0}",
    "%a = Abs(%i)\n%b = Add(%a, [1])\n%c = Divide(%b, [4])\n%y = Minimum(%c, %a)",
    "%a = Abs(%i)\n%s = ReduceSum(%a, [-1]) {keep_dims: true}\n%c = CumSum(%s, -1)\n%y = Mod(%c, [-3])",
    "%y = Maximum(%i, [0])",
    "%y = FloorMod(%i, [5])",
    "%a = Abs(%i)\n%l = Less(%i, [0])\n%y = Select(%l, %a, [7])",
    "%y = Range(0, 9, 2) {output_type: i64}",
    "%z = Abs(%i)\n%y = Split(%z, 0) {num_splits: 1}",
]
DOUBTFUL = [
    "%y = Add(%i, [1])",
    "%v, %p = TopK(%x, 3) {axis: 0, mode: max, sort: value}\n%y = Subtract(%p, [1])",
    "%v, %p = TopK(%x, 3) {axis: 0, mode: max, sort: value}\n%y = Negative(%p)",
    "%y, %p = TopK(%i, 3) {axis: 0, mode: max, sort: value}",
    "%y = Convert(%x) {destination_type: i64}",
    "%a = Abs(%i)\n%y = Convert(%a) {destination_type: i8}",
    "%a = Abs(%i)\n%y = Concat(%a, [-1]) {axis: 0}",
    "%a = Abs(%i)\n%y = Minimum(%a, %i)",
    "%y = Maximum(%i, [-1])",
    "%a = Abs(%i)\n%y = FloorMod(%a, [-5])",
    "%a = Abs(%i)\n%l = Less(%a, [0])\n%y = Select(%l, %i, %a)",
    "%y = Range(5, -3, -1) {output_type: i64}",
    "%y = Multiply(%i, %i)",
]


def proven(text: str) -> bool:
    graph = parse(f"{INPUTS}{text}\nResult(%y)")
    return is_not_negative(graph.results[0].inputs[0])


@pytest.mark.parametrize("text", PROVEN)
def test_proven(text: str) -> None:
    assert proven(text)


@pytest.mark.parametrize("text", DOUBTFUL)
def test_not_proven(text: str) -> None:
    assert not proven(text)


@pytest.mark.parametrize(("length", "is_proven"), [(40, True), (80, False)])
def test_a_long_chain_is_not_followed_to_its_end(length: int, is_proven: bool) -> None:
    chain = "".join(f"%a{k + 1} = Add(%a{k}, [1])\n" for k in range(length))
    assert proven(f"%a0 = Abs(%i)\n{chain}%y = Add(%a{length}, [1])") == is_proven
