"""Models as texts, whose IR computes what ONNX Runtime computes: the cases of tests/runtime/frontend/cases/*.txt.

    The subject of the group.
    # case trip count below zero        a test; lines above the model describe it and are of these kinds:
    @ keeps_loops                       a mark of pytest
    with declared = 2,3 | 2,?           a row for each value; the model has $declared where it belongs
    opset 8                             of ONNX, 18 if it is not given; `opset 18 my=1` imports another domain
    rtol 1e-6                           a tolerance
    > n = 0 | 2 | -1; x = normal[2,3]   an inference for each value, on one compiled model
    main (float[2,3] x, int64 n) => ... the model, in the text form of ONNX

Inputs are numbers, true, false or lists of them, or `normal[2,3] seed 1`: random numbers with that seed, 0 if it is not
given.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.harness import check, floats, parsed
from tests.texts import sections

FOLDER = Path(__file__).parent / "cases"
NORMAL = re.compile(r"normal\[([\d,]*)\](?: seed (\d+))?")
MODEL = re.compile(r"^\w+ *\(.*", re.MULTILINE | re.DOTALL)


def made(text: str) -> Callable[..., None]:
    """The test of a case."""
    head, model = text[: (start := MODEL.search(text)).start()], start[0]  # type: ignore[union-attr, index]
    lines = [line.partition(" ") for line in head.splitlines()]
    limits = {name: float(value) for name, _, value in lines if name in ("rtol", "atol")}
    opset, *domains = next((value for name, _, value in lines if name == "opset"), "18").split()
    imports = {domain: int(version) for domain, version in (each.split("=") for each in domains)}

    def test(**row: str) -> None:
        written = re.sub(r"\$(\w+)", lambda found: row[found[1]], model)
        source = parsed(written, int(opset), **imports)
        feeds = [feeds for name, _, value in lines if name == ">" for feeds in inferences(value, source.graph)]
        check(source, *feeds, **limits)

    rows = dict(value.split(" = ", 1) for name, _, value in lines if name == "with")
    kind = inspect.Parameter.KEYWORD_ONLY
    test.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in rows])  # type: ignore[attr-defined]
    for name, values in rows.items():
        test = pytest.mark.parametrize(name, values.split(" | "))(test)
    for name in (value for mark, _, value in lines if mark == "@"):
        test = getattr(pytest.mark, name)(test)
    return test


def inferences(text: str, graph: onnx.GraphProto) -> Iterator[dict[str, Any]]:
    """The inputs of each inference of a line."""
    types = {port.name: onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type) for port in graph.input}
    given = [each.partition(" = ") for each in text.split("; ") if each]
    values = {name: [array(value, types[name]) for value in said.split(" | ")] for name, _, said in given}
    for place in range(max(map(len, values.values()), default=1)):
        yield {name: found[place if len(found) > 1 else 0] for name, found in values.items()}


def array(text: str, kind: Any) -> np.ndarray[Any, Any]:
    """The value of an input."""
    if found := NORMAL.fullmatch(text):
        return floats(*map(int, found[1].split(",") if found[1] else ()), seed=int(found[2] or 0)).astype(kind)
    return np.array(json.loads(text), kind)


for group in sorted(FOLDER.glob("*.txt")):
    for _, title, text in sections(group):
        globals()[f"test_{group.stem}_{title.replace(' ', '_')}"] = made(text)
