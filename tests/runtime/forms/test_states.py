"""States of loops, and shapes known at run time only."""

from typing import Any

import numpy as np

from tests.cases import read_cases
from tests.harness import floats, i64
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


# The second parameter of the body is copied, the copy scattered into, and the outcome added to the first.
SCATTER = TEXTS["scatter"]
SCATTER_FEEDS = [[i64(t), floats(4, seed=t), floats(4, seed=t + 7)] for t in (3, 0, 1, 5, 2)]


# -- Shapes known at run time only: shared memory, and what the runtime infers about loops before it runs them


SIZES = (4, 1, 300, 7)
ZERO = """
        %random = RandomUniform([1, 1], 0, 1) {output_type: i64}  %same = ReverseSequence(%random, [1])
        %zero = Reshape(%same, [1])"""


def _numpy(dtype: str) -> Any:
    return {"f32": np.float32, "i64": np.int64, "boolean": np.bool_}[dtype]


read_cases(globals())
