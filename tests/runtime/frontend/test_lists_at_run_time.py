"""Lists that the runtime computes incorrectly in the obvious form: one small model for each rule."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.harness import check, floats, parsed
from tests.texts import texts

TEXTS = texts(__file__)


def ints(**values: int) -> dict[str, np.int64]:
    return {name: np.int64(value) for name, value in values.items()}


SETS: dict[str, Sequence[Any]] = {
    # The runtime reads a 0 in the table of shapes as "copy this dimension".
    "an element without columns": [{"x": floats(*shape), "w": floats(5, 4)} for shape in ((3, 4), (2, 2))],
    "what a loop that certainly runs has concatenated is read in a body":
        [{"x": floats(6, 6), "w": floats(5, 4), **ints(k=k)} for k in (3, 0, 2)],
    # The sizes of the elements are constants of a branch, and their sums are not folded there.
    "a list of constants without its last element in a branch":
        [{"c": np.bool_(c), **ints(k=k)} for c in (True, False, True) for k in (0, 1)],
    # The length is known here, but not to the runtime.
    "an inner loop that takes out as many as it puts in": [ints(k=k) for k in (4, 0, 2, 5, 4)],
    # A piece of a tensor of at most three rows was inferred to be as long as the whole.
    "the length of a list of two or three after an element is taken out":
        [{"x": floats(4, 4), **ints(k=k)} for k in (1, 0, 2)],
    # The output of an If was inferred to have bounds, and with it the size of the state that it initializes.
    "the length of a list that a loop captures and changes as well":
        [{"x": floats(2, c), "w": floats(5, 4)} for c in (4, 2, 3, 5)],
    # The size of the captured list was derived from the final value.
    "a list that becomes another one unless the loop does not run":
        [{"x": floats(2, b, 3), **ints(n=n)} for b, n in ((1, 0), (2, 2), (3, 0))],
    # Its initial data had at least two numbers, and the loop ended when there were fewer.
    "a list that shrinks and that nobody reads after the loop":
        [{"a": floats(2, 1), "b": floats(1, 1), **ints(n=n)} for n in (3, 0, 2)],
    # One element remains, or none; this is known when the first map has become a tensor.
    "a map of a list that turns out to be empty": [{"x": np.float32(1.5)}, {"x": np.float32(-2)}],
    "readers of a value of either rank move into branches that return a list as well":
        [{"x": floats(n), "c": np.bool_(c)} for n, c in ((3, True), (2, False), (4, True))],
    # The runtime allocates no memory for an output of an If of constants whose shape depends on the branch.
    "a branch of constants whose condition folding finds": [{}],
    # The size of the captured tensor was derived from the output that the loop had concatenated before.
    "a loop without iterations that appends what it captures": [{"w": floats(5, 4), **ints(n=n)} for n in (2, 5, 3, 0)],
    # The runtime knows all sizes of the pieces, but folds no cumulative sum of them and has no memory for the rest.
    "pieces and an element without columns joined": [{"x": floats(1, 1, 4)}, {"x": floats(1, 1, 4, seed=1)}],
    # The length of one was derived from the other.
    "two lists that begin as one and grow differently":
        [{"x": floats(2, 2), **ints(each=each, n=n)} for each, n in ((1, 3), (2, 2), (1, 0), (2, 3))],
}
"""Sets of inputs of each model."""


@pytest.mark.parametrize("name", SETS)
def test_model(name: str) -> None:
    check(parsed(TEXTS[name]), *SETS[name])
