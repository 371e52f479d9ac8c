"""Models for a comparison of the IR of two revisions: made from a seed, written to a folder with a list of them.

    samples = written(Path("out/models"), seed=1)       # about 700 models, 20 s

They are cases of the ONNX backend test suite, the models below tests/models, random models of the fuzzers, and models
of the benches. Every seventh is stored with external data. `OPTIONS` are the options that they are converted with in
turn.
"""

import json
import random
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIST = "samples.json"
OPTIONS: Sequence[dict[str, Any]] = (
    {}, {"compress_to_fp16": True}, {}, {"unroll": 8}, {}, {"quantization": "exact"}, {}, {"target": "2024.6"},
    {}, {"compress_to_fp16": True, "unroll": 3},
)
EXTERNAL = 7
"""One in so many models is stored with external data."""


@dataclass(frozen=True)
class Sample:
    """A model file, and the options of its conversion; `compress_to_fp16` is that of `save_model`."""

    name: str
    path: str
    options: dict[str, Any]


def written(folder: Path, seed: int) -> list[Sample]:
    """The samples of a folder, which are made if it has no list of them."""
    listed = folder / LIST
    if not listed.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made = [_write(folder, number, name, model) for number, (name, model) in enumerate(models(seed))]
        made += [
            Sample(path.relative_to(ROOT / "tests").as_posix().removesuffix(".onnx"), str(path), options)
            for number, path in enumerate(sorted((ROOT / "tests" / "models").rglob("*.onnx")))
            for options in (OPTIONS[0], OPTIONS[1 + number % (len(OPTIONS) - 1)])
        ]
        listed.write_text(json.dumps([asdict(each) for each in made], indent=1))
    return [Sample(**each) for each in json.loads(listed.read_text())]


def _write(folder: Path, number: int, name: str, model: Any) -> Sample:
    import onnx

    path = folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '-', name)}.onnx"
    is_external = number % EXTERNAL == 0
    if is_external:
        path.with_suffix(".data").unlink(missing_ok=True)  # onnx appends
    onnx.save(
        model, path, save_as_external_data=is_external, location=path.with_suffix(".data").name, size_threshold=16
    )
    return Sample(name, str(path), {**OPTIONS[number % len(OPTIONS)], **_packed(model)})


def _packed(model: Any) -> dict[str, Any]:
    """The option without which sequences at the boundary are refused."""
    ports = (*model.graph.input, *model.graph.output)
    return {} if all(each.type.HasField("tensor_type") for each in ports) else {"sequence_io": "packed"}


def models(seed: int) -> Iterator[tuple[str, Any]]:
    """Names and models."""
    yield from backend_cases(random.Random(seed), 220, 40)
    yield from control_flow(seed, 70)
    yield from weights(seed, 50)
    yield from quantised(seed, 40)
    yield from operators(seed, 120)
    yield from of_benches()


def backend_cases(source: random.Random, of_nodes: int, of_others: int) -> Iterator[tuple[str, Any]]:
    """Some of the backend suite's cases of nodes, and of small networks."""
    import onnx
    from onnx.backend.test.case import node
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # cases cast values out of range on purpose
        cases = sorted(node.collect_testcases(None), key=lambda case: str(case.name))
    for case in _some(cases, of_nodes, source):
        yield case.name, case.model
    kinds = ("simple", "pytorch-converted", "pytorch-operator")
    stored = sorted((case.model_dir, case.name) for kind in kinds for case in load_model_tests(kind=kind))
    for place, name in _some(stored, of_others, source):
        yield name, onnx.load(Path(place, "model.onnx"))


def _some(cases: Sequence[Any], count: int, source: random.Random) -> Iterable[Any]:
    return source.sample(cases, min(count, len(cases)))


def control_flow(seed: int, count: int) -> Iterator[tuple[str, Any]]:
    from tests.fuzz.control_flow.generator import generate

    for index in range(count):
        case = generate(seed, index, index % 5 == 0)
        yield f"control-flow-{seed}-{index}", case.model


def weights(seed: int, count: int) -> Iterator[tuple[str, Any]]:
    from tests.fuzz.weights import draw

    for index in range(count):
        case = draw(seed, index)
        yield case.name, case.model


def quantised(seed: int, count: int) -> Iterator[tuple[str, Any]]:
    from tests.fuzz.quantised import draw
    from tests.fuzz.quantised.styles import STYLES

    for index in range(count):
        case = draw(seed, index, tuple(STYLES)[index % len(STYLES)])
        yield case.name, case.model


def operators(seed: int, count: int) -> Iterator[tuple[str, Any]]:
    """Configurations of single operators that ONNX Runtime accepts."""
    import onnx

    from tests.fuzz.operators.table import FAMILIES, operators_of
    from tests.fuzz.operators.trial import oracle
    from tools.fuzz_ops import tasks_of

    named = [op for family in FAMILIES for op in operators_of(family)]
    trials = (oracle(task) for task in tasks_of(named, seed, 3 * count))
    for trial in islice((each for each in trials if each.sample is not None), count):
        yield f"op-{trial.name}", onnx.load_from_string(trial.sample.model)


def of_benches() -> Iterator[tuple[str, Any]]:
    """The models of the benches, in small sizes."""
    import onnx

    from tools.benching.model_writers import SHAPES, write

    for kind, make in SHAPES.items():
        for size in (10, 400, 1000) if kind != "loops" else (1, 5, 20):
            yield f"bench-{kind}-{size}", make(size)
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("embedded", "decoder-f32", "decoder-f16"):
            path = Path(folder, f"{kind}.onnx")
            write(kind, 0.001, path)
            yield f"bench-{kind}", onnx.load(path)
