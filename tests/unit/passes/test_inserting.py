"""Nodes inserted before a model output."""

from mo_loop import ops
from mo_loop.text import parse, to_text
from mo_loop.transforms.replace import insert_before


def test_a_node_before_a_model_output_takes_its_name() -> None:
    """The output gives the tensor of that name, and no other tensor has the name."""
    graph = parse("""
        %x = Parameter : f32[2] "x"
        %y = Exp(%x) "y" names "inner" "y" %z = Negative(%y) "z" names "z"
        Result(%y) "y/sink_port_0" names "y" Result(%z) "z/sink_port_0" names "z"
    """)
    insert_before(graph.results[0], 0, lambda value: ops.Abs(value))
    assert to_text(graph).splitlines()[1:-1] == [
        '  %x = Parameter : f32[2] "x"', '  %y = Exp(%x) : f32[2] "y" names "inner"',
        '  %z = Negative(%y) : f32[2] "z" names "z"', '  %3 = Abs(%y) : f32[2] "y" names "y"',
        '  Result(%3) "y/sink_port_0" names "y"', '  Result(%z) "z/sink_port_0" names "z"',
    ]
