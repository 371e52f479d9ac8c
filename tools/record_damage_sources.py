"""Collect small models for tests/fuzz/damage: those that the tests convert, and those that the fuzzers draw.

    python tools/record_damage_sources.py

It runs the tests of single operators and of bodies without computing any number, adds the ONNX backend suite and random
models, and writes tests/fuzz/damage/sources.tar.xz. Of the models whose nodes have the same operators, opset,
attributes and number of inputs it keeps the smallest.
"""

import io
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import onnx
import pytest

from mo_loop.frontend import model as opening
from mo_loop.frontend import registry
from mo_loop.frontend.onnx_graphs import operator_of
from tests import harness
from tests.fuzz.damage.sources import ARCHIVE

LARGEST, LARGEST_OF_RARE = 2_000, 150_000
"""Bytes of a model; a rare operator may occur in larger models only."""

MOST_OF_ONE = 3
"""Models of one operator and opset."""

TESTED = (
    "tests/runtime/operators", "tests/runtime/frontend", "tests/unit/frontend", "tests/unit/api/test_conversion.py",
)

Models = dict[bytes, onnx.ModelProto]


def main() -> int:
    """Write the archive; 1 if no model has some operator."""
    found: Models = {}
    _record_tests(found)
    for data in _drawn():
        _add(found, onnx.load_from_string(data))
    kept = _chosen(found)
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for number, (name, data) in enumerate(kept):
            entry = tarfile.TarInfo(f"{number:04}-{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    translated = {op for names in registry.FAMILIES.values() for op in names.split()}
    lacking = sorted(translated - {each for _, data in kept for each in _operators(data)})
    print(f"{len(found)} models, {len(kept)} kept, {ARCHIVE.stat().st_size} bytes; not found: {lacking}")
    return int(bool(lacking))


def _record_tests(found: Models) -> None:
    """Run the tests; each model that is opened is added."""
    opened = opening.opened

    def recorded(source: Any, *folders: Any, **options: Any) -> Any:
        model = opened(source, *folders, **options)
        if model.path is None or model.proto.ByteSize() < LARGEST_OF_RARE:
            _add(found, model.proto)
        return model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "opened", recorded)
        patch.setattr(harness, "oracle", lambda model, sets: harness.Expected([[] for _ in sets], "none"))
        patch.setattr(harness, "later", lambda *_: None)
        patch.setattr(harness, "isolated", lambda *_: [])
        pytest.main([*TESTED, "-q", "--each-row", "-p", "no:cacheprovider", "--tb=no", "-W", "ignore"])


def _drawn() -> Iterator[bytes]:
    from tests.conformance.cases import collect
    from tests.fuzz import quantised, weights
    from tests.fuzz.control_flow.generator import generate
    from tests.fuzz.generation.configurations import DESCRIPTIONS, drawn
    from tests.fuzz.operators.table import FAMILIES, operators_of
    from tests.fuzz.operators.trial import oracle

    yield from (entry.sample.model for entry in collect(["node", "simple", "pytorch-converted", "pytorch-operator"]))
    for number in range(60):
        yield generate(1, number, lists=number % 3 == 0).model.SerializeToString()
        yield quantised.draw(1, number).model.SerializeToString()
        yield weights.draw(1, number).model.SerializeToString()
    for family in FAMILIES:
        for op in operators_of(family):
            samples = (oracle((1, number, op, None)).sample for number in range(8))
            yield from (sample.model for sample in samples if sample is not None)
    for number in range(4):
        yield from (drawn(1, number, each).model().SerializeToString() for each in DESCRIPTIONS)


def _add(found: Models, proto: onnx.ModelProto) -> None:
    data = proto.SerializeToString(deterministic=True)
    if len(data) < LARGEST_OF_RARE:
        found.setdefault(data, onnx.load_from_string(data))


def _chosen(found: Models) -> list[tuple[str, bytes]]:
    """The models that are kept, each with a name."""
    of_form: dict[Any, bytes] = {}
    for data, proto in sorted(found.items(), key=lambda each: (len(each[0]), each[0])):
        of_form.setdefault(_form(proto), data)
    counts: Counter[Any] = Counter()
    kept = []
    for data in of_form.values():
        versions = [(op, _version(op, found[data])) for op in _operators(data)]
        if len(data) > LARGEST and all(counts[op] for op, _ in versions):
            continue
        if all(counts[each] >= MOST_OF_ONE for each in versions):
            continue
        counts.update([*versions, *(op for op, _ in versions)])
        kept.append(("-".join(op.split("::")[-1] for op, _ in versions)[:40], data))
    return kept


def _version(op: str, proto: onnx.ModelProto) -> int:
    """The version of the translator of an operator in a model."""
    domain, _, name = op.rpartition("::")
    opset = next((each.version for each in proto.opset_import if each.domain== domain), 1)
    translator = registry.find(name, opset, domain)
    return 0 if translator is None else translator.since


def _form(proto: onnx.ModelProto) -> Any:
    nodes = tuple(
        (operator_of(n), len(n.input), len(n.output), tuple(sorted(a.name for a in n.attribute)))
        for n in proto.graph.node
    )
    constants = tuple(sorted(len(each.dims) for each in proto.graph.initializer))
    opsets = tuple(sorted((each.domain, each.version) for each in proto.opset_import))
    return nodes, constants, opsets, len(proto.functions), len(proto.graph.input)


def _operators(data: bytes) -> list[str]:
    proto = onnx.load_from_string(data)
    found: dict[str, None] = {}
    left = [proto.graph.node, *(each.node for each in proto.functions)]
    while left:
        for node in left.pop():
            found[registry.qualified("" if node.domain == "ai.onnx" else node.domain, node.op_type)] = None
            for attribute in node.attribute:
                left += [graph.node for graph in (attribute.g, *attribute.graphs)]
    return list(found)


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
