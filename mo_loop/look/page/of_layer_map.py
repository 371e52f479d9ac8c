"""The page of an ONNX model and its IR: a document of two states, with the layers that each node became.

    document = layers_document(found, described(found.model, contents), described(found.ir, contents), title)

Both states have ids of their own. `pairs` connects the nodes of the first one with those of the second one.
"""

from __future__ import annotations

from mo_loop.look.layer_map import LayerMap
from mo_loop.look.page.document import Document
from mo_loop.look.page.of_comparison import renumbered
from mo_loop.look.records.of_structure import Described, facts, written


def layers_document(found: LayerMap, model: Described, ir: Described, title: str) -> Document:
    """The document of both. Outputs of the model correspond by name."""
    start = max(model.state.nodes, default=-1) + 1
    ids = {number: start + number for number in ir.state.nodes}
    scopes = {
        name: name if record["owner"] is None else f"{ids[record['owner']]}/{name.rpartition('/')[2]}"
        for name, record in ir.state.scopes.items()
    }
    after = renumbered(ir.state, model.state, ids, scopes)
    document = Document(title, "layers")
    document.facts = [("format", "ONNX model and IR"), *dict.fromkeys((*facts(found.model)[1:], *facts(found.ir)[1:]))]
    document.begin(model.state)
    counts = [len(model.state.nodes), len(after.nodes)]
    document.step({"name": "layers", "place": 1, "seconds": 0, "matches": 0, "matchers": [], "nodes": counts}, after)
    document.written = {
        what: {ids[number]: place for number, place in places.items()}
        for what, places in written(ir, ir.state).items()
    }
    layers = {model.items[node]: [ids[ir.items[each]] for each in made] for node, made in found.layers.items()}
    ends = {each.name: ids[ir.results[id(each)]] for each in found.ir.main.results}
    layers |= {
        model.results[id(each)]: [ends[each.name]] for each in found.model.main.results if each.name in ends
    }
    document.pairs = sorted(layers.items())
    return document
