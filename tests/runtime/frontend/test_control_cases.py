"""Small models for errors that random models found (tools/fuzz_controlflow.py), each named after its cause."""

from typing import Any

import onnx
import pytest

from tests.cases import read_cases
from tests.harness import floats, parsed
from tests.runtime.frontend.models import same_numbers

pytestmark = pytest.mark.keeps_loops

X = floats(2, 3, seed=1)


def runs(*counts: int, **feeds: Any) -> list[dict[str, Any]]:
    return [{"n": count, **feeds} for count in counts]


# -- names


def test_outer_names_as_body_inputs_of_states_passed_through() -> None:
    """As Paddle writes it: sixteen body inputs called as the values that feed them, most of them just handed on."""
    count = 16
    names = [f"v{i}" for i in range(count)]
    inner = names[:1]
    ports = ", ".join(f"float[2] {name}" for name in names)
    results = ", ".join(["float[2] t0", *(f"float[2] {name}" for name in names[1:])])
    made = " ".join(f"v{i} = Mul (x, k{i})" for i in range(count))
    constants = ", ".join(f"float k{i} = {{{i}.0}}" for i in range(count))
    outs = ", ".join(f"o{i}" for i in range(count))
    text = f"""g (float[2] x, int64 n) => ({", ".join(f"float[2] o{i}" for i in range(count))}) <{constants}> {{
      {made}
      {outs} = Loop (n, "", {", ".join(names)}) <body = step (int64 i, bool c, {ports}) => (bool d, {results}) {{
        d = Identity (c) t0 = Add ({inner[0]}, v15) }}> }}"""
    shadowed, plain = parsed(text), parsed(text)
    renamed(plain.graph.node[-1].attribute[0].g, {name: f"{name}_inner" for name in names})
    same_numbers(shadowed, plain, *runs(0, 3, 1, x=floats(2)))


def renamed(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    for port in (*graph.input, *graph.output):
        port.name = names.get(port.name, port.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]


read_cases(globals())
