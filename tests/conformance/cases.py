"""The cases of the ONNX backend test suite as samples: models, inputs, expected outputs.

    for entry in collect(["node"], "^test_loop"):
        judge(("mo_loop", entry.sample))

Cases and values come from the installed onnx package; nothing is downloaded, and every process finds the same cases.
The `real` kind is the package's light models (architectures of well-known networks whose weights ConstantOfShape
makes): the input of each is 0, 1/n, 2/n, ..., and its expected output is stored with it.

Each set of inputs runs twice on one compiled model: state that a run leaves behind must not change the next one.

A case whose model has a sequence or an optional as input or output is converted with `sequence_io="packed"`: the inputs
and outputs for a sequence `s` are `s.data` and `s.shapes`. An absent optional has no input.
"""

import importlib
import pkgutil
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.results.array_comparison import RTOL
from mo_loop.support.packed_arrays import pack_sequence
from tests.running.samples import Sample

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")

# Their expected outputs are random numbers: only shape and element type are compared.
RANDOM = re.compile(r"^test_(bernoulli|training_dropout(?!_zero_ratio)|random)")

# Each of their numbers is a sum over a whole signal: its error is relative to the largest of them, not to itself.
FOURIER = re.compile(r"^test_(dft|stft)")


@dataclass(frozen=True)
class Entry:
    """A case of one of `KINDS`."""

    kind: str
    sample: Sample

    @property
    def name(self) -> str:
        """Its name, unique among the cases of all kinds."""
        return self.sample.name


def collect(kinds: Sequence[str], pattern: str = "", modules: str = "") -> Iterator[Entry]:
    """The cases of the given kinds whose name matches, sorted by name.

    The import of a module computes the values of its node cases, which takes seconds for all of them. `modules` is a
    pattern for the names of the modules to import.
    """
    wanted = re.compile(pattern)
    for kind in kinds:
        with warnings.catch_warnings():
            # The node cases cast values out of range on purpose, which warns.
            warnings.simplefilter("ignore", RuntimeWarning)
            cases = _node_cases(modules) if kind == "node" else _stored_cases(kind)
        for case in sorted(cases, key=lambda case: str(case.name)):
            if wanted.search(case.name):
                yield Entry(kind, _sample(case))


def _node_cases(modules: str) -> list[Any]:
    """The node cases of the modules whose names match, and of those that this process has imported before."""
    from onnx.backend.test.case import node

    for module in pkgutil.walk_packages(node.__path__, f"{node.__name__}."):
        if re.search(modules, module.name.rpartition(".")[2]):
            importlib.import_module(module.name)
    return list(node._NodeTestCases)


def _stored_cases(kind: str) -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    return list(load_model_tests(kind=kind))


def _sample(case: Any) -> Sample:
    import onnx

    if case.model is not None:
        model, sets = case.model, case.data_sets
    elif case.url:
        source = Path(onnx.__file__).parents[1] / case.url
        model = onnx.load(source)
        sets = [_light_set(model, source)]
    else:
        model = onnx.load(Path(case.model_dir, "model.onnx"))
        sets = [_stored_set(folder) for folder in sorted(Path(case.model_dir).glob("test_data_set_*"))]
    inputs = _inputs(model)
    if len(inputs) < len(sets[0][0]):
        # Older models list their weights among the inputs, and some data sets have values for those too.
        inputs = list(model.graph.input)
    expected = [list(_named(model.graph.output, wanted)) for _, wanted in sets]
    return Sample(
        case.name,
        model.SerializeToString(),
        [dict(_named(inputs, given)) for given, _ in sets],
        expected,
        (*range(len(sets)), *reversed(range(len(sets)))),
        rtol=case.rtol if case.rtol > RTOL else None,
        atol=1e-6 * max(np.abs(each).max() for _, each in expected[0]) if FOURIER.match(case.name) else None,
        values=not RANDOM.match(case.name),
        arguments=_arguments(model, sets[0][0]),
    )


def _inputs(model: Any) -> list[Any]:
    initialised = {tensor.name for tensor in model.graph.initializer}
    return [port for port in model.graph.input if port.name not in initialised]


# -- the boundary


def _arguments(model: Any, inputs: Sequence[Any]) -> dict[str, Any]:
    """Further arguments of convert_model: `sequence_io`, and the rank of sequences among the inputs.

    The suite declares wrong ranks of elements.
    """
    if all(port.type.HasField("tensor_type") for port in (*model.graph.input, *model.graph.output)):
        return {}
    lists = [(port.name, value) for port, value in zip(model.graph.input, inputs, strict=True) if _is_list(value)]
    return {"sequence_io": "packed", "input": {name: [None] * _rank(value) for name, value in lists} or None}


def _named(ports: Sequence[Any], values: Sequence[Any]) -> Iterator[tuple[str, np.ndarray]]:
    """The named arrays with the values of ports."""
    for port, value in zip(ports, values, strict=False):
        if _is_list(value):
            packed = pack_sequence(value, rank=_rank(value), dtype=_element_type(port.type))
            yield from zip((f"{port.name}.data", f"{port.name}.shapes"), packed, strict=True)
        elif value is not None:
            yield port.name, _array(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _rank(items: Sequence[Any]) -> int:
    """The rank of packed elements. It is unknown for an empty list: 1 is assumed."""
    return max((np.ndim(each) for each in items), default=1) or 1


def _element_type(proto: Any) -> np.dtype:
    """The element type of a sequence or an optional sequence."""
    from onnx import helper

    while not proto.HasField("tensor_type"):
        proto = getattr(proto, proto.WhichOneof("value")).elem_type
    return helper.tensor_dtype_to_np_dtype(proto.tensor_type.elem_type)


def _array(value: Any) -> np.ndarray:
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


# -- values on disk, all of them tensors


def _light_set(model: Any, source: Path) -> tuple[list[Any], list[Any]]:
    """The input that the suite makes for a light model, and the stored output."""
    inputs = []
    for port in _inputs(model):
        shape = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in port.type.tensor_type.shape.dim]
        size = int(np.prod(shape))
        inputs.append((np.arange(size).reshape(shape) / size).astype(np.float32))
    count = len(model.graph.output)
    return inputs, [_load(source.with_name(f"{source.stem}_output_{n}.pb")) for n in range(count)]


def _stored_set(folder: Path) -> tuple[list[Any], list[Any]]:
    """Inputs and outputs of a data set."""
    inputs, outputs = (sorted(folder.glob(f"{way}_*.pb"), key=_number) for way in ("input", "output"))
    return [_load(path) for path in inputs], [_load(path) for path in outputs]


def _number(path: Path) -> int:
    return int(path.stem.rpartition("_")[2])


def _load(path: Path) -> Any:
    from onnx import TensorProto

    tensor = TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return tensor
