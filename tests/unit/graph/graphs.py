"""Small graphs that the tests of the graph use."""

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.types import f32
from mo_loop.ops.base import Parameter, Result

LOOP = """
    %m = Parameter : i64[] %x = Parameter : f32[2] %w = Parameter : f32[2]
    %y = Loop(%m, true, %x, %w) {
      condition: @go, input_map: [Merged(%s, @n), Invariant(%k)], output_map: [Final(@n)]
    }
      body {
        %s = Parameter %k = Parameter
        %n = Add(%s, %k)
        Result(true) @go Result(%n)
      }
    Result(%y)"""


def parameter(graph: Graph, *shape: int) -> Value:
    return Parameter(graph=graph, dtype=f32, shape=shape).output


def chain(length: int) -> tuple[Graph, list[Node]]:
    """x -> Negative -> Negative -> ... -> Result"""
    graph = Graph("chain")
    value = parameter(graph, 2)
    nodes: list[Node] = []
    for _ in range(length):
        nodes.append(ops.Negative(value))
        value = nodes[-1].output
    Result(value)
    return graph, nodes
