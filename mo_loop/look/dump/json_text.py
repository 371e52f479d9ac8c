"""The JSON text of whole graphs, `json.dumps(node_link(state))`; nodes that stay the same are spelled once in a run.

    texts = JsonTexts()
    texts.whole(state, {17: {"layer": 3}})
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from mo_loop.look.records.node_link import HEAD, described_graph, described_node
from mo_loop.look.records.node_records import GraphState, Record

_spelled = json.JSONEncoder(separators=(",", ":")).encode


class JsonTexts:
    """The texts of one run."""

    def __init__(self) -> None:
        self._nodes: dict[int, tuple[Record, str]] = {}
        self._types: dict[str, str] = {}

    def whole(self, state: GraphState, more: Mapping[int, Record]) -> str:
        """A graph; `more` is added to the records of nodes, by id."""
        members: dict[str, list[Record]] = {name: [] for name in state.scopes}
        for number in sorted(state.nodes):
            record = state.nodes[number]
            members[record["scope"]].append(record)
        return f'{_spelled(HEAD)[:-1]},{self._graph(state, members, "", more)[1:]}\n'

    def _graph(
        self, state: GraphState, members: Mapping[str, list[Record]], scope: str, more: Mapping[int, Record]
    ) -> str:
        nodes = []
        for record in members[scope]:
            text = self._node(record)
            added = more.get(record["id"])
            if added:
                text += f",{_spelled(added)[1:-1]}"
            if "bodies" in record:
                text += f',"bodies":[{",".join(self._graph(state, members, body, more) for body in record["bodies"])}]'
            nodes.append(text + "}")
        return (
            f'{{"directed":true,"multigraph":true,"graph":{_spelled(described_graph(state, scope))},'
            f'"nodes":[{",".join(nodes)}],"edges":[{",".join(self._edges(state, members[scope]))}]}}'
        )

    def _node(self, record: Record) -> str:
        """The text of a node without the last brace."""
        number = record["id"]
        known = self._nodes.get(number)
        if known is None or known[0] is not record:
            known = self._nodes[number] = record, _spelled(described_node(record))[:-1]
        return known[1]

    def _edges(self, state: GraphState, records: list[Record]) -> list[str]:
        nodes, types = state.nodes, self._types
        found = []
        for record in records:
            target = record["id"]
            for port, source in enumerate(record["inputs"]):
                if source is None:
                    continue
                number, output = source
                shown = nodes[number]["outputs"][output]["type"]
                text = types.get(shown)
                if text is None:
                    text = types[shown] = _spelled(shown)
                found.append(
                    f'{{"source":{number},"target":{target},"key":{port},"output":{output},"type":{text}}}'
                )
        return found
