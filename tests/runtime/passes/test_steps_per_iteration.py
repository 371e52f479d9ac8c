"""Loops with several steps in each iteration, with numbers of steps that blocks divide and do not divide."""

import numpy as np

from mo_loop.api import convert_model
from mo_loop.ops.control import Iteration
from tests.cases import read_cases
from tests.harness import folded, parsed

LENGTHS = (17, 0, 1, 16, 40, 15, 2)


def steps_of(model: object) -> list[int]:
    graph = convert_model(model, **folded()).graph
    return [node.steps for scope in graph.scopes() for node in scope if isinstance(node, Iteration)]


def recurrence(length: str, attributes: str = "") -> object:
    """s' = tanh(s x) + x, and all s'."""
    return parsed(f"""main (float[{length},3] x, float[3] first)
      => (float[3] last, float[{length},3] y) {{
      last, y = Scan <num_scan_inputs = 1 {attributes},
        body = step (float[3] s, float[3] e) => (float[3] t, float[3] o) {{
          p = Mul (s, e) q = Tanh (p) t = Add (q, e) o = Identity (t) }}> (first, x) }}""")


def sequence(length: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(length)
    return {"x": rng.standard_normal((length, 3)).astype(np.float32), "first": np.array([0.5, -1, 2], np.float32)}


def expected(feeds: dict[str, np.ndarray], backwards: bool, turned: bool) -> list[tuple[str, np.ndarray]]:
    state, rows = feeds["first"], [np.zeros((0, 3), np.float32)]
    for element in feeds["x"][::-1] if backwards else feeds["x"]:
        state = np.tanh(state * element) + element
        rows.append(state[None])
    every = np.concatenate(rows)
    return [("last", state), ("y", every[::-1] if turned else every)]


read_cases(globals())
