"""Reads the document of a page back: `document(html)`."""

import base64
import gzip
import json
import re
from typing import Any


def document(html: str) -> dict[str, Any]:
    """The data of a page."""
    found = re.search(r'id="document">([^<]*)<', html)
    assert found is not None
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return data


def after(data: dict[str, Any]) -> tuple[dict[int, Any], dict[str, Any]]:
    """The records and scopes of the last state: the first one with the delta of each step."""
    nodes = {each["id"]: each for each in data["nodes"]}
    scopes = {each["id"]: each for each in data["scopes"]}
    for step in data["steps"]:
        delta = step.get("delta")
        if delta is None:
            continue
        for number in delta["removed"]:
            del nodes[number]
        for name in delta["removed_scopes"]:
            del scopes[name]
        nodes |= {each["id"]: each for each in (*delta["changed"], *delta["added"])}
        scopes |= {each["id"]: each for each in delta["scopes"]}
    return nodes, scopes


def assert_whole(nodes: dict[int, Any], scopes: dict[str, Any]) -> None:
    """Every id that a record or scope names is there, and every body has its owner."""
    for record in nodes.values():
        assert record["scope"] in scopes
        for ref in record["inputs"]:
            assert ref is None or ref[1] < max(len(nodes[ref[0]]["outputs"]), 1)
        for name in record.get("bodies", ()):
            assert scopes[name]["owner"] == record["id"]
        ports = record.get("port_map", {"inputs": [], "outputs": []})
        for entry in (*ports["inputs"], *ports["outputs"]):
            for key in ("parameter", "result", "then", "else_"):
                assert entry.get(key) is None or nodes[entry[key]]["scope"] in record["bodies"]
    for name, scope in scopes.items():
        assert scope["owner"] is None or name in nodes[scope["owner"]]["bodies"]
        assert all(nodes[number]["scope"] == name for number in (*scope["parameters"], *scope["results"]))
