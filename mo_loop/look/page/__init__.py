"""The page: one HTML file that holds its program, its style and its data, and loads nothing.

    document = Document("model.onnx")             # the data: a first state, and the changes of each pass
    document.begin(describer.state(graph))
    document.step({"name": "LoopToTI"}, describer.state(graph))       # None instead of a state: nothing changed
    html = page(document.as_json())

docs/dump.md describes the form of the data; mo_loop/look/viewing.py makes the documents of one and of two models. The
program of the page is written in TypeScript (tools/page); `static` has the built files.

The content-security-policy of a page forbids everything but its own script and style, by their hashes, and the worker
that the script makes. The data is in an element that is not a script, compressed and encoded, so no name of a model can
end the element or run. The program of the worker and the licences of its libraries are in elements of the same form.
"""

import gzip
import html
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

from mo_loop.frontend.onnx_graphs import graph_protos
from mo_loop.look.records.node_records import GraphState, Record
from mo_loop.version import __version__

SCHEMA, VERSION = "mo-loop page", 1

STATIC = files("mo_loop.look.page") / "static"

NAME_SCOPES = "pkg.torch.onnx.name_scopes"

_QUOTED = re.compile("'([^']*)'")

_NO_MODULE = "", "_empty_nn_module_stack_from_metadata_hook"

GENERATOR = '<meta name="generator" content="mo_loop page">'
"""An element near the start of each page, by which `is_page` knows it."""


@dataclass(eq=False)
class Document:
    """The states of one conversion, or one graph. `kind` is "conversion", "graph", "diff" or "layers".

    `facts` are names and texts that describe the model: its format, opsets, metadata.
    """

    title: str
    kind: str = "conversion"
    notes: list[str] = field(default_factory=list)
    heat: Record | None = None
    """The differences of the tensors from those of the ONNX model, if both were run."""
    texts: list[str] = field(default_factory=list)
    """The reasons of the passes; the steps refer to them by their index."""
    written: Mapping[int, Record] | None = None
    """The `layer` of each node and the `offset` of each constant in the files of the IR, by the ids of the nodes. Port
    maps get the layers of their parameters and results."""
    pairs: list[tuple[int, list[int]]] | None = None
    """The layers of each node, for an ONNX model and its IR."""
    facts: list[tuple[str, str]] = field(default_factory=list)
    name_scopes: dict[str, list[str]] = field(default_factory=dict)
    """The names of the modules around an ONNX node, which group its layers."""
    _first: GraphState = field(default_factory=GraphState)
    _last: GraphState = field(default_factory=GraphState)
    _steps: list[Record] = field(default_factory=list)

    def begin(self, state: GraphState) -> None:
        """Set the first state."""
        self._first = self._last = state

    def step(self, step: Mapping[str, Any], state: GraphState | None, change: Record | None = None) -> None:
        """Add a step with the state after it, None if it changed nothing; `change` is the delta, if it is known."""
        found = dict(step)
        if state is not None:
            found["nodes"] = step["nodes"] or (len(self._last.nodes), len(state.nodes))
            found["delta"] = delta(self._last, state) if change is None else change
            self._last = state
        self._steps.append(found)

    def as_json(self) -> Record:
        """Plain data for JSON."""
        found: Record = {
            "schema": SCHEMA, "version": VERSION, "kind": self.kind, "title": self.title,
            "producer": f"mo_loop {__version__}", "notes": self.notes, "facts": self.facts,
            "scopes": list(self._first.scopes.values()), "nodes": list(self._first.nodes.values()),
            "steps": self._steps, "texts": self.texts,
        }
        written = None if self.written is None else {
            f"{key}s": {number: each[key] for number, each in self.written.items() if key in each}
            for key in ("layer", "offset")
        }
        more = {"heat": self.heat, "written": written, "pairs": self.pairs, "name_scopes": self.name_scopes or None}
        return found | {key: value for key, value in more.items() if value is not None}


def name_scopes_of(model: Any) -> dict[str, list[str]]:
    """The names of the modules around each node of an `onnx.ModelProto` that torch.onnx exported with dynamo.

    The metadata of such a node has the paths of its modules and its own name: ['', 'model', 'model.layers.0', 'add_1']
    is in the modules model and layers.0.
    """
    found: dict[str, list[str]] = {}
    for node in (node for graph in graph_protos(model) for node in graph.node):
        for each in node.metadata_props:
            if each.key == NAME_SCOPES:
                paths = ["", *(path for path in _QUOTED.findall(each.value)[:-1] if path not in _NO_MODULE)]
                inner = [path.removeprefix(f"{outer}.") for outer, path in pairwise(paths)]
                found.setdefault(node.name or node.output[0], inner)
    return found


def step_record(
    name: str, place: int, nodes: tuple[int, int] | None = None, seconds: float = 0,
    matchers: Sequence[tuple[str, int]] = (), **more: Any,
) -> Record:
    """A step of a document: its number in the run, the numbers of nodes before and after it, if they are not those of
    the states, and what is known more."""
    return {
        "name": name, "place": place, "seconds": round(seconds, 6), "matches": 0,
        "matchers": [[matcher, count] for matcher, count in matchers if count], "nodes": nodes, **more,
    }


def delta(old: GraphState, new: GraphState) -> Record:
    """The changes between two states; `changed` has whole records.

    Fast where unchanged nodes have the same dictionaries in both, as those of one Describer.
    """
    return {
        "added": [record for number, record in new.nodes.items() if number not in old.nodes],
        "removed": [number for number in old.nodes if number not in new.nodes],
        "changed": [
            record for number, record in new.nodes.items()
            if (before := old.nodes.get(number)) is not record and before is not None and before != record
        ],
        "scopes": [scope for name, scope in new.scopes.items() if old.scopes.get(name) != scope],
        "removed_scopes": [name for name in old.scopes if name not in new.scopes],
    }


# -- HTML


def page(document: dict[str, Any]) -> str:
    """The page that shows a document."""
    script, style = _static("page.js"), _static("page.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}' 'wasm-unsafe-eval'; style-src '{_hash(style)}'; "
        "worker-src blob:; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    # A name may hold half a surrogate pair, which UTF-8 cannot spell: JSON spells it \udc80, a title does without it.
    data = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    title = html.escape(document["title"][:200].encode("utf-8", "replace").decode())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"{GENERATOR}\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title} - mo_loop</title>\n<style>{style}</style>\n</head>\n<body>\n"
        "<noscript>This page needs JavaScript.</noscript>\n"
        f"{_element('document', data)}{_static_element('worker', 'worker.js')}"
        f"{_static_element('licenses', 'LICENSES.txt')}<script>{script}</script>\n</body>\n</html>\n"
    )


def is_page(path: Path) -> bool:
    """Whether a file is a page. False for a file that cannot be read."""
    try:
        with open(path, "rb") as file:
            return GENERATOR.encode() in file.read(4096)
    except OSError:
        return False


@cache
def _static(name: str) -> str:
    return (STATIC / name).read_text("utf-8")


@cache
def _static_element(name: str, file: str) -> str:
    return _element(name, _static(file))


def _element(name: str, text: str) -> str:
    """An element that holds a text and is not a script: gzip in base64."""
    compressed = gzip.compress(text.encode("utf-8", "backslashreplace"), 6, mtime=0)
    return f'<script type="application/gzip" id="{name}">{b64encode(compressed).decode()}</script>\n'


def _hash(content: str) -> str:
    """The source of an inline element for the policy."""
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"
