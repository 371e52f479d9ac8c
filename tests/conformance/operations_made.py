"""The operations of the IR that translators make of the cases of the ONNX backend test suite.

Only cases of one node count: their graph is the translation of that one operator.
"""

import json
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import mo_loop.frontend.operators
from mo_loop.errors import MoLoopError
from mo_loop.frontend import registry
from mo_loop.frontend.model import OnnxModel, load
from mo_loop.frontend.onnx_graphs import domain_of
from mo_loop.frontend.operators import ITERATIONS, LOWERED_OPERATORS, operations_of
from mo_loop.frontend.registry import Translator
from mo_loop.frontend.translate import translate
from mo_loop.graph import Graph
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.front import Failed, Scan
from mo_loop.transforms.low_precision.compress_weights import CompressWeights
from mo_loop.transforms.low_precision.lower_quantization import LowerQuantization

TABLE = Path(mo_loop.frontend.operators.__file__).with_name("operations_made.json")


Key = tuple[str, int]
"""An operator with its domain, and the opset from which on its translator applies."""


def missing(models: Iterable[bytes]) -> dict[Key, set[str]]:
    """The operations that translators make of the models, and that the table does not list."""
    found: dict[Key, set[str]] = {}
    for translator, made in _made_of(models):
        unlisted = made.difference(operations_of(translator))
        if unlisted:
            key = (registry.qualified(translator.domain, translator.op), translator.since)
            found.setdefault(key, set()).update(unlisted)
    return found


def _made_of(models: Iterable[bytes]) -> Iterator[tuple[Translator, set[str]]]:
    for data in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = load(data)
            translator = _translator_of(model)
            if translator is None:
                continue
            try:
                graph = translate(model)
            except MoLoopError:
                continue
        for lower in (LowerQuantization(), CompressWeights()):
            lower.run(graph)
        if not any(scope.of(Failed) for scope in graph.scopes()):
            yield translator, operations_in(graph)


def _translator_of(model: OnnxModel) -> Translator | None:
    """The translator of the only node; None for a model of several nodes, for a function, and if a pass lowers it."""
    if len(model.proto.graph.node) != 1 or model.functions:
        return None
    node = model.proto.graph.node[0]
    domain = domain_of(node)
    if registry.qualified(domain, node.op_type) in LOWERED_OPERATORS:
        return None
    return registry.find(node.op_type, model.opsets.get(domain, 0), domain)


def operations_in(graph: Graph) -> set[str]:
    """The operations of a graph and its bodies with their opsets, without constants, Parameters and Results."""
    found: set[str] = set()
    for node in (node for scope in graph.scopes() for node in scope):
        if isinstance(node, Scan):
            found.update(ITERATIONS)
        elif not isinstance(node, Constant | Parameter | Result):
            found.add(f"{node.type}-{node.opset_name.removeprefix('opset')}")  # type: ignore[attr-defined]  # every other node is an Op
    return found


def add_to_table(found: dict[Key, set[str]]) -> None:
    """List the operations that `missing` found in the table."""
    table = json.loads(TABLE.read_text("utf-8"))
    for (name, since), made in found.items():
        versions = table.setdefault(name, {})
        listed = max((each for each in map(int, versions) if each <= since), default=since)
        versions[str(since)] = " ".join(sorted({*versions.get(str(listed), "").split(), *made}))
    sorted_rows = ((name, dict(sorted(table[name].items(), key=_number))) for name in sorted(table))
    lines = (f'"{name}": {json.dumps(versions)}' for name, versions in sorted_rows)
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _number(entry: tuple[str, str]) -> int:
    return int(entry[0])
