"""States that grow, of several element types, from initial values of several kinds, step by step and after resets."""

from typing import Any

import numpy as np

from mo_loop.compare.execution.isolated import isolated
from tests.fuzz.states.comparing import compared
from tests.fuzz.states.models import STEPS, Recurrent
from tests.harness import every, parsed
from tests.runtime.states.stepping import Sequence, stepped
from tools.runtimes import chosen_interpreter

TYPES = {"float": np.float32, "float16": np.float16, "double": np.float64, "int64": np.int64, "bool": np.bool_}
BATCHES = (2, 2, 1, 3, 3)


@every(kind=sorted(set(TYPES) - {"double"}), states=[1, 2], beams=[False, True])
def test_caches(kind: str, states: int, beams: bool) -> None:
    """Two caches share their initial value; that of one is computed for it alone."""
    more = states == 2
    model = parsed(f"""
      main ({kind}[batch,new,3] x, {kind}[batch,T,3] p{f", {kind}[batch,T,3] q" if more else ""})
        => (float[batch,1,3] y, {kind}[batch,R,3] pn{f", {kind}[batch,R,3] qn" if more else ""}) {{
        one = Constant <value_ints = [1]> () pn = Concat <axis = 1> (p, x) a = Cast <to = 1> (pn)
        s = ReduceSum <keepdims = 1> (a, one)
        {
        "qn = Concat <axis = 1> (x, q) b = Cast <to = 1> (q) t = ReduceSum <keepdims = 1> (b, one) y = Add (s, t)"
        if more
        else "y = Neg (s)"
    } }}""")
    random = np.random.default_rng(3)
    runs = [Sequence(batch, [{"x": random.integers(-3, 4, (batch, 2, 3)).astype(TYPES[kind])} for _ in range(4)])
            for batch in BATCHES]
    pairs = {"p": "pn", "q": "qn"} if more else {"p": "pn"}
    assert stepped(model, runs, beams=beams, pairs=pairs).worst == 0


FIRSTS = {
    "a row": "nil = Constant <value_ints = [0]> () first = Unsqueeze (start, nil)",
    "computed rows": """at = Constant <value_ints = [1]> () end = Constant <value_ints = [2]> () all = Shape (x)
        b = Slice (all, at, end) two = Constant <value_ints = [2]> () w = Constant <value_ints = [3]> ()
        to = Concat <axis = 0> (two, b, w) first = ConstantOfShape <value = float[1] {1.0}> (to)""",
    "no rows": """at = Constant <value_ints = [1]> () end = Constant <value_ints = [2]> () all = Shape (x)
        b = Slice (all, at, end) none = Constant <value_ints = [0]> () w = Constant <value_ints = [3]> ()
        to = Concat <axis = 0> (none, b, w) first = ConstantOfShape (to)""",
}


@every(name=[*sorted(FIRSTS), "given"], batch=["2", "B"], zeros=[False, True])
def test_loop(name: str, batch: str, zeros: bool) -> None:
    """With the default of LowLatency2 the shape of the initial value stays, and its numbers are zeros."""
    given = {"given": f", float[k,{batch},3] first", "a row": f", float[{batch},3] start"}.get(name, "")
    firsts = FIRSTS.get(name, "").replace("{1.0}", "{0.0}" if zeros else "{1.0}")
    model = parsed(
        f"""main (float[T,{batch},3] x{given}) => (float[K,{batch},3] last, float[T,{batch},3] all) {{
      {firsts} sizes = Shape (x) zero = Constant <value_int = 0> () n = Gather (sizes, zero)
      last, all = Loop (n, , first) <body = step (int64 i, bool c, float[k,b,3] s)
        => (bool d, float[m,b,3] next, float[b,3] out) {{
        d = Identity (c) e = Gather (x, i) axis = Constant <value_ints = [0]> () u = Unsqueeze (e, axis)
        next = Concat <axis = 0> (s, u) out = ReduceSum <keepdims = 0> (next, axis) }}> }}""".replace(
            "all = Shape", "v = Shape"
        ).replace("Slice (all", "Slice (v")
    )
    x = np.random.default_rng(4).integers(-3, 4, (STEPS, 2, 3)).astype(np.float32)
    fixed: dict[str, Any] = {"a row": {"start": np.ones((2, 3))}, "given": {"first": np.ones((2, 2, 3))}}.get(name, {})
    fixed = {key: (array * (not zeros)).astype(np.float32) for key, array in fixed.items()}
    drawn = Recurrent(name, model, fixed, {"x": x}, {"x": 0}, from_zeros=zeros)
    assert isolated(compared, drawn, chosen_interpreter()) == ""
