"""The names of layers in the IR."""

from __future__ import annotations

from mo_loop.ir.xml import layer_names, layer_order
from mo_loop.text import parse


def test_the_layer_of_a_model_output_keeps_its_name() -> None:
    graph = parse("""
        %x = Parameter : f32[2] "x"
        %a = Abs(%x) "y"
        %b = ReLU(%a) "y"
        %c = Sigmoid(%b) "z"
        %d = Tanh(%b) "z"
        Result(%b) "y/sink_port_0" names "y"
        Result(%c)
        Result(%d)
    """)
    assert layer_names(layer_order(graph))[:5] == ["x", "y_1", "y", "z", "z_1"]
