"""Names of layers in the .xml are unique, and as close as possible to the names of the nodes."""

import pytest

from mo_loop.graph.types import f32
from mo_loop.ir.xml import layer_names, layer_order
from mo_loop.ops.base import Parameter
from mo_loop.text import parse


@pytest.mark.parametrize(("given", "expected"), [
    (["a", "b"], ["a", "b"]), (["a", "a", "a"], ["a", "a_1", "a_2"]),
    (["a", "a", "a_1"], ["a", "a_2", "a_1"]), (["", ""], ["Parameter_0", "Parameter_1"]),
    (["", "Parameter_0"], ["Parameter_0_1", "Parameter_0"]),
    (["Parameter_1", ""], ["Parameter_1", "Parameter_1_1"]),
])
def test_layer_names(given: list[str], expected: list[str]) -> None:
    graph = parse("%x = Parameter : f32[2]\nResult(%x)")
    nodes = [Parameter(graph=graph, dtype=f32, shape=(), name=name) for name in given]
    found = layer_names(list(nodes))
    assert found == expected and len(set(found)) == len(found)


def test_the_layer_of_a_model_output_keeps_its_name() -> None:
    graph = parse("""
        %x = Parameter : f32[2] "x"
        %a = Abs(%x) "y" %b = ReLU(%a) "y" %c = Sigmoid(%b) "z" %d = Tanh(%b) "z"
        Result(%b) "y/sink_port_0" names "y" Result(%c) Result(%d)""")
    assert layer_names(layer_order(graph))[:5] == ["x", "y_1", "y", "z", "z_1"]
