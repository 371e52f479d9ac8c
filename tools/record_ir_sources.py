"""Collect small IR files for tests/fuzz/ir_damage: the models of tests/fuzz/damage, converted.

    python tools/record_ir_sources.py

Of each type and version of a layer it keeps a few of the smallest files. Some are written by OpenVINO, which spells
them otherwise. Operations that no conversion here gives come from the examples of the tests, and the last model has
weights of every element type. The files are written to tests/fuzz/ir_damage/pairs.tar.xz.
"""

import io
import re
import sys
import tarfile
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import MoLoopError
from mo_loop.graph import Graph
from mo_loop.graph.types import BY_NAME, TensorType
from mo_loop.ir.xml import in_memory
from mo_loop.ops.base import Constant, Parameter, Result
from tests.fuzz.damage.sources import models
from tests.fuzz.ir_damage.ir_damaging import ARCHIVE
from tests.unit.ops.examples import EXAMPLES, Example

Files = tuple[bytes, bytes]

_LAYER = re.compile(r'^(\t+)<layer .*type="(\w+)" version="(\w+)"', re.MULTILINE)
"""The depth of a layer in tabs, its type and version."""

MOST_OF_ONE = 2
"""Files of one layer type, version and kind of scope."""

FORMS = 5
"""One in so many files is written by OpenVINO too."""

LARGEST, LARGEST_OF_RARE = 20_000, 60_000
"""Bytes of a pair; a rare layer may occur in larger ones only."""


def main() -> int:
    """Write the archive."""
    warnings.simplefilter("ignore")
    kept = [(name, files) for name, files in _chosen(list(_converted()))]
    written = [
        (f"{name}-openvino", files)
        for name, pair in kept[::FORMS]
        if (files := _by_openvino(pair)) is not None
    ]
    kept += [*written, ("element-types", in_memory(_every_type()))]
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for number, (name, pair) in enumerate(kept):
            for ending, data in zip(("xml", "bin"), pair, strict=True):
                entry = tarfile.TarInfo(f"{number:04}-{name}.{ending}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    print(f"{len(kept)} pairs, {len(written)} by OpenVINO, {ARCHIVE.stat().st_size} bytes")
    return 0


def _converted() -> Iterator[tuple[str, Files]]:
    for name, data in models():
        try:
            yield name.split("-", 1)[1], in_memory(convert_model(data).graph)
        except MoLoopError as error:
            print(f"{name}: {error.code}")
    for example in EXAMPLES:
        graph = _of_example(example)
        if graph is not None:
            yield example.name, in_memory(graph)


def _chosen(pairs: list[tuple[str, Files]]) -> Iterator[tuple[str, Files]]:
    """The smallest pairs first, as long as one of their layers is in few of those before."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for name, (xml, data) in sorted(pairs, key=lambda each: (len(each[1][0]) + len(each[1][1]), each[0])):
        layers = set(_LAYER.findall(xml.decode()))
        rare = {each for each in layers if counts[each] < (MOST_OF_ONE if len(each[0]) < 3 else 1)}
        size = len(xml) + len(data)
        if not rare or size > (LARGEST if any(counts[each] for each in rare) else LARGEST_OF_RARE):
            continue
        counts.update(layers)
        yield name, (xml, data)


def _of_example(example: Example) -> Graph | None:
    """A graph of one operation; None for those that the IR does not have."""
    cls, graph = getattr(ops, example.name), Graph(example.name)
    if not cls.opset or any(not isinstance(each, TensorType) for each in example.types if each is not None):
        return None
    inputs = [
        None if each is None
        else Parameter(graph=graph, type=each).output if each.known is None
        else Constant(np.array(each.integers, np.int64).reshape(each.shape), graph=graph).output
        for each in example.types
    ]
    if cls is ops.Assign:  # the reader refuses a variable that is not read
        Result(ops.ReadValue(graph=graph, **example.attributes).output)
    node = cls(*inputs, graph=graph, **example.attributes)
    for value in node.outputs:
        Result(value)
    return graph


def _by_openvino(pair: Files) -> Files | None:
    import openvino

    with tempfile.TemporaryDirectory() as folder:
        xml, data = Path(folder, "model.xml"), Path(folder, "model.bin")
        try:
            model = openvino.Core().read_model(pair[0], pair[1])
            openvino.serialize(model, str(xml), str(data))
        except RuntimeError as error:
            print(str(error)[:200])
            return None
        return xml.read_bytes(), data.read_bytes()


def _every_type() -> Graph:
    graph = Graph("weights")
    for name, dtype in BY_NAME.items():
        if dtype.precision is None:
            continue
        values = np.array(["a", "", "text"], object) if dtype.bits == 0 else np.arange(3).astype(dtype.numpy)
        constant = Constant(values, graph=graph, dtype=dtype, name=name)
        Result(constant.output, names=(name,))
    return graph


if __name__ == "__main__":
    sys.exit(main())
