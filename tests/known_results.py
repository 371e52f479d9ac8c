"""Results of earlier runs of the tests: what an IR, or a model, gave on this release and processor need not run again.

    known = passed(path, sample)            # a Known: the same IR with the same inputs and expected values
    if not known.found: ...                 # compile, run, compare
    known.keep(True)                        # only what passed

A result is found by all that it depends on: the bytes of the files, inputs and expected values, the releases of the
libraries, the instruction set, and the sources that run and compare. The results are in build/test-results, which may
be removed at any time; MO_LOOP_TEST_RESULTS names another folder, and empty it makes every test run everything.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mo_loop
from mo_loop.compare.execution.runtime import CPUINFO
from mo_loop.compare.execution.runtime import ISA_LIMIT as LIMIT
from mo_loop.graph import Graph
from mo_loop.ir.xml import in_memory
from tests import ROOT
from tests.samples import Sample

FOLDER = os.environ.get("MO_LOOP_TEST_RESULTS", str(ROOT / "build" / "test-results"))
LIBRARIES = ("openvino", "onnxruntime", "onnx", "numpy")
SOURCES = ("compare/execution", "compare/oracle", "compare/results", "support")
"""Folders of mo_loop that run and compare."""


@dataclass(frozen=True)
class Known:
    """The place of one result; `found` is the result of an earlier run, or None."""

    place: Path | None
    found: Any = None

    def keep(self, result: Any) -> None:
        """Store the result for later runs."""
        if self.place is None:
            return
        self.place.parent.mkdir(parents=True, exist_ok=True)
        draft = self.place.with_suffix(f".{os.getpid()}")
        draft.write_bytes(pickle.dumps(result))
        draft.replace(self.place)


def passed(path: str | Path, sample: Sample) -> Known:
    """Whether the IR at `path` has passed with this sample."""
    if not FOLDER:
        return Known(None)
    path = Path(path)
    limits = (sample.order, sample.rtol, sample.atol, sample.values, sample.exact, sample.python or "")
    told = sample.inferred
    inferred = "" if told is None else _text_of([told._inputs, [shape for _, shape in told._outputs]], {})
    parts = (path.read_bytes(), path.with_suffix(".bin").read_bytes(), repr(limits), inferred)
    return _known("passed", *parts, *_arrays(sample.feeds), *_arrays(sample.expected))


def values(model: bytes, sets: Sequence[Mapping[str, Any]]) -> Known:
    """The results of the oracle for a model."""
    return _known("values", model, *_arrays(sets)) if FOLDER else Known(None)


def probed(graph: Graph, *settings: str) -> Known:
    """The result of a probe of the runtime for a graph: a Verdict of tests/runtime/probing.py."""
    if not FOLDER:
        return Known(None)
    judge = Path(__file__).with_name("runtime") / "probing.py"
    return _known("probed", *in_memory(graph), judge.read_bytes(), *settings)


def _known(kind: str, *parts: bytes | str) -> Known:
    digest = hashlib.sha256(f"{kind} {_setting()}".encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    name = digest.hexdigest()
    place = Path(FOLDER, name[:2], name[2:])
    try:
        return Known(place, pickle.loads(place.read_bytes()))
    except FileNotFoundError:
        return Known(place)


@functools.cache
def _setting() -> str:
    """All that results depend on besides the model and its inputs."""
    package = Path(mo_loop.__file__).parent
    files = sorted(file for each in SOURCES for file in (package / each).glob("*.py"))
    files += [ROOT / "tests" / name for name in ("expected.py", "samples.py", "together.py")]
    sources = hashlib.sha256(b"\0".join(file.read_bytes() for file in files))
    lines = CPUINFO.read_text("utf-8").splitlines() if CPUINFO.exists() else []
    flags = sorted({line for line in lines if line.startswith("flags")})
    return f"{[version(each) for each in LIBRARIES]} {os.environ.get(LIMIT)} {flags} {sources.hexdigest()}"


def _arrays(sets: Iterable[Any]) -> Iterable[bytes]:
    return (pickle.dumps(list(each.items()) if isinstance(each, Mapping) else each, protocol=5) for each in sets)


def _text_of(item: Any, numbers: dict[Any, int]) -> str:
    """The inferred shapes as text. The symbols of dimensions are numbered: their names differ between processes."""
    if isinstance(item, list | tuple):
        return f"[{', '.join(_text_of(each, numbers) for each in item)}]"
    if hasattr(item, "terms"):
        terms = [(numbers.setdefault(symbol, len(numbers)), factor) for symbol, factor in item.terms]
        return f"{terms} + {item.const} in {item.lo} to {item.hi}"
    return repr(item)
