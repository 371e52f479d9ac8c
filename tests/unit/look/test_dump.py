"""Pictures and dumps: deterministic, complete, and readable by the programs that read them."""

import json
import re
import shutil
import subprocess
from typing import Any

import networkx as nx
import pytest

from mo_loop.look.records.node_link import node_link
from mo_loop.look.records.node_records import Describer
from mo_loop.text import parse
from mo_loop.text.dot import quoted, to_dot

TEXT = r"""
graph main {
  info {framework: {producer: "me"}}
  %m = Parameter : i64[] "trips" %x = Parameter : f32[2,N] "a \"quoted\" \\ name & <more>"
  %c = Parameter : boolean[]
  %y, %all = Loop(%m, true, %x, %x) {
    iteration: %i, condition: @go
    input_map: [Merged(%s, @n), Sliced(%e, axis: 1, start: -1, end: 0, stride: -1)]
    output_map: [Final(@n), Concatenated(@u, axis: 0)]
  } "loop"
    body step {
      %i = Parameter %s = Parameter %e = Parameter : f32[2,1]
      %n = Add(%s, %e) %u = Unsqueeze(%n, 0)
      Result(true) @go Result(%n) Result(%u)
    }
  %z = If(%c, %y) {input_map: [Branched(%a, _)], output_map: [Selected(@a, @b)]}
    then_body {
      %a = Parameter
      Result(%a)
    }
    else_body {
      %b = Constant [[1.0], [2.0]]
      Result(%b)
    }
  %w = Constant seed(1) : f32[100] info {old: "yes"}
  Result(%z) names "z" Result(%all) Result(%w)
}"""


class TestDot:
    def test_the_same_graph_gives_the_same_text(self) -> None:
        graph = parse(TEXT)
        first, *others = (to_dot(each, shapes=True, types=True) for each in (graph, parse(TEXT), graph.clone()))
        assert others == [first, first]

    def test_every_node_and_edge_is_there(self) -> None:
        graph = parse(TEXT)
        dot = to_dot(graph)
        nodes = re.findall(r"^ *(n\d+) \[label", dot, re.MULTILINE)
        assert len(nodes) == len(set(nodes)) == sum(len(scope) for scope in graph.scopes())
        solid = [line for line in dot.splitlines() if "->" in line and "style=dashed" not in line]
        assert len(solid) == sum(scope.nx.number_of_edges() for scope in graph.scopes())

    def test_bodies_are_clusters(self) -> None:
        dot = to_dot(parse(TEXT))
        assert dot.count("subgraph cluster_") == 3
        assert 'label="body of loop"' in dot and 'label="then_body of If"' in dot and dot.count("{") == dot.count("}")

    def test_port_maps_are_dashed(self) -> None:
        dashed = [line for line in to_dot(parse(TEXT)).splitlines() if "style=dashed" in line]
        for note in ("Merged", "back edge", "Sliced axis=1 start=-1 end=0 stride=-1", "Final", "Concatenated",
                     "iteration", "condition", "Branched", "Selected"):
            assert any(f'label="{note}' in line for line in dashed), note

    def test_shapes_and_types_on_request(self) -> None:
        graph = parse(TEXT)
        assert 'label="f32[2,N]"' in to_dot(graph, shapes=True, types=True)
        assert 'label="[2,N]"' in to_dot(graph, shapes=True) and "f32[2,N]" not in to_dot(graph, shapes=True)
        assert 'label="f32"' in to_dot(graph, types=True) and "[2,N]" not in to_dot(graph, types=True)
        assert 'label="f32"' not in to_dot(graph) and "[2,N]" not in to_dot(graph)

    @pytest.mark.parametrize(
        ("text", "written"),
        [('a"b', r'"a\"b"'), ("a\\b", r'"a\\b"'), ("a\nb", r'"a\nb"'), ("&lt;", '"&amp;lt;"'), ("\x00", '"\ufffd"')],
    )
    def test_escapes(self, text: str, written: str) -> None:
        assert quoted(text) == written

    @pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
    def test_graphviz_reads_it(self) -> None:
        dot = to_dot(parse(TEXT), shapes=True, types=True)
        subprocess.run(["dot", "-Tsvg"], input=dot.encode(), check=True, capture_output=True, timeout=60)


class TestNodeLink:
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(node_link(Describer().state(parse(TEXT)))))
        return found

    def test_networkx_reads_it(self) -> None:
        graph = nx.node_link_graph(self.data(), edges="edges")
        original = parse(TEXT)
        assert graph.number_of_nodes() == len(original) and graph.number_of_edges() == original.nx.number_of_edges()
        assert nx.is_directed_acyclic_graph(graph)

    def test_nodes_have_types_and_attributes(self) -> None:
        data = self.data()
        loop = next(node for node in data["nodes"] if node["op"] == "Loop")
        assert loop["outputs"][0] == {"type": "f32[2,N]", "names": []}
        (body,) = loop["bodies"]
        ops = {node["id"]: node["op"] for node in body["nodes"]}
        merged, sliced = loop["port_map"]["inputs"]
        assert merged["role"] == "Merged"
        assert (ops[merged["parameter"]], ops[merged["result"]]) == ("Parameter", "Result")
        assert (sliced["axis"], sliced["stride"], sliced["start"]) == (1, -1, -1)
        assert ops[loop["port_map"]["condition"]] == "Result"
        add = next(node for node in body["nodes"] if node["op"] == "Add")
        assert add["attributes"] == {"auto_broadcast": "numpy"}

    def test_ends_are_numbered(self) -> None:
        data = self.data()
        ops = {node["id"]: node["op"] for node in data["nodes"]}
        assert [ops[each] for each in data["graph"]["parameters"]] == ["Parameter"] * 3
        assert [ops[each] for each in data["graph"]["results"]] == ["Result"] * 3
