"""Runs models on OpenVINO's CPU device: read, compile once, infer many times.

    compiled = compile_ir("model.xml")
    for feeds in input_sets:
        for name, array in compiled.run(feeds):
            ...

Computation is in f32 unless `INFERENCE_PRECISION_HINT` has another value, activations before compressed weights are not
quantised, and there are two threads, so that numbers are comparable and runs are repeatable. With one thread the device
returns from an inference in which a check of shapes failed, and leaves the results of the one before. Tests run several
inferences on one compiled model: buffers that the runtime keeps between inferences cause wrong results that a single
inference does not show.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mo_loop import text_library
from mo_loop.support.packed_arrays import pack, unpack

if TYPE_CHECKING:
    from mo_loop.compare.verify_options import Size, Sizes

GROUP_SIZE = "DYNAMIC_QUANTIZATION_GROUP_SIZE"
KNOWN = {"INFERENCE_PRECISION_HINT": "f32", GROUP_SIZE: "0"}  # OpenVINO 2024.6 takes no number
"""The properties that change numbers, with their values in `PROPERTIES`."""

PROPERTIES: Mapping[str, Any] = {**KNOWN, "INFERENCE_NUM_THREADS": 2, "NUM_STREAMS": 1}

ONE_THREAD: Mapping[str, Any] = {"INFERENCE_NUM_THREADS": 1}
"""For times, and for models that are known to be right."""

_EXTENDED = {
    "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e8m0": "float8_e8m0fnu",
    "f4e2m1": "float4_e2m1fn", "i4": "int4", "u4": "uint4", "u2": "uint2",
}
"""Types that numpy lacks: the name of openvino -> that of ml_dtypes."""


class Compiled:
    """A compiled model with one inference request: `model` and `request` are those of openvino."""

    def __init__(self, model: Any, properties: Mapping[str, Any] | None = None, device: str = "CPU") -> None:
        """`model` is an openvino.Model; `properties` are added to `PROPERTIES`; None removes a property."""
        merged = {name: value for name, value in {**PROPERTIES, **(properties or {})}.items() if value is not None}
        self.model = _core().compile_model(model, device, merged)
        self.request = self.model.create_infer_request()
        self.input_names = [names_of(port) for port in self.model.inputs]
        """For each input all its names."""
        self.output_names = [names_of(port) for port in self.model.outputs]
        """For each output all its names, in the order of the model's outputs."""
        values: dict[str, str] = {}
        self.facts = self.input_names, self.output_names, values
        """For each input all its names, and for each output; the values of the `KNOWN` properties, as text."""
        for name in KNOWN:
            with suppress(RuntimeError):  # another device
                value = self.model.get_property(name)
                values[name] = value.get_type_name() if hasattr(value, "get_type_name") else str(value)

    def run(self, feeds: Mapping[str, Any] | Sequence[Any]) -> list[tuple[str, np.ndarray]]:
        """One inference. Returns (name, array) in the order of the model's outputs; the arrays are copies.

        `feeds` are arrays by name, or one array for each input in the model's order. Other names are ignored, because
        a converter may drop an unused input. Raises KeyError for an input without a value.
        """
        for port, array in zip(self.model.inputs, ordered(feeds, self.input_names), strict=True):
            self.request.set_tensor(port, to_tensor(array, port.get_element_type()))
        self.request.infer()
        ports = zip(self.model.outputs, self.output_names, strict=True)
        return [(names[0], from_tensor(self.request.get_tensor(port))) for port, names in ports]

    def renew(self) -> None:
        """Go on with a new inference request of the compiled model."""
        self.request = self.model.create_infer_request()

    def step(
        self, feeds: Mapping[str, Any], reset: bool = False, states: bool = True
    ) -> tuple[list[tuple[str, np.ndarray]], dict[str, np.ndarray]]:
        """One inference of a model with variables: the outputs, and the value of each variable by its id, if `states`
        are wanted; copies. `reset` gives all variables their initial values before it."""
        if reset:
            self.request.reset_state()
        outputs, found = self.run(feeds), self.request.query_state() if states else ()
        return outputs, {state.name: from_tensor(state.state) for state in found}

    def again(self) -> None:
        """One more inference with the inputs of the last `run`; the results are not read."""
        self.request.infer()


def initial_states(path: str | Path, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The initial values that an IR computes for its variables from the inputs, by their ids; others have none.

    A runtime reports the value of a variable only after an inference, so the inputs of the ReadValues become outputs.
    """
    import openvino

    model = read_ir(path)
    reads = [each for each in model.get_ops() if each.get_type_name() == "ReadValue" and each.get_input_size()]
    if not reads:
        return {}
    values = openvino.Model([each.input_value(0) for each in reads], model.get_parameters(), "initial")
    found = Compiled(values).run(feeds)
    return {str(each.get_attributes()["variable_id"]): array for each, (_, array) in zip(reads, found, strict=True)}


def ordered(feeds: Mapping[str, Any] | Sequence[Any], inputs: Sequence[tuple[str, ...]]) -> list[Any]:
    """The arrays in the order of a model's inputs, given all names of each. KeyError for an input without a value."""
    if not isinstance(feeds, Mapping):
        return list(feeds)
    known = [next((name for name in names if name in feeds), None) for names in inputs]
    if None in known and len(known) == len(feeds):
        # If the model returns an input as an output, a converter may keep only the name of the output.
        rest = iter([name for name in feeds if name not in known])
        known = [next(rest) if name is None else name for name in known]
    for name, names in zip(known, inputs, strict=True):
        if name is None:
            raise KeyError(f"no value for input {' / '.join(names)}; given: {', '.join(feeds) or 'nothing'}")
    return [feeds[name] for name in known if name is not None]


def run_ir(
    path: str | Path, sets: Sequence[Mapping[str, Any] | Sequence[Any]], properties: Mapping[str, Any] | None = None,
    sizes: Sizes | None = None, device: str = "CPU",
) -> list[list[tuple[str, np.ndarray]]]:
    """The outputs of an IR for each set of inputs, one after another on one compiled model."""
    compiled = compile_ir(path, properties, device, sizes)
    return [compiled.run(feeds) for feeds in sets]


class ReshapeError(Exception):
    """An IR cannot be given other sizes."""


def reshape(model: Any, sizes: Sizes) -> None:
    """Give inputs of an openvino.Model other sizes; names that no input has are ignored.

    ReshapeError if the runtime refuses them, with the axes that it refuses to change alone.
    """
    ports = {name: port for port in model.inputs for name in names_of(port)}
    shapes = {name: [_dimension(size) for size in shape] for name, shape in sizes.items() if name in ports}
    try:
        model.reshape({ports[name]: shape for name, shape in shapes.items()})
    except RuntimeError as error:
        alone = [f"{name}[{axis}]" for name in shapes for axis in _refused(model, ports[name], shapes[name])]
        where = f", also where {' or '.join(alone)} alone changes" if alone else ""
        raise ReshapeError(f"OpenVINO refuses these sizes{where}\n{error}") from error


def _dimension(size: Size) -> Any:
    low, high = (size, size) if isinstance(size, int) else size
    return low if low == high else -1 if (low, high) == (0, None) else (low, -1 if high is None else high)


def _refused(model: Any, port: Any, shape: Sequence[Any]) -> Iterator[int]:
    """The axes of an input that cannot be given these sizes where all others stay."""
    import openvino

    before = list(port.get_partial_shape())  # of a model that refused sizes: it keeps those it had
    for axis, size in enumerate(shape):
        changed = [*before[:axis], openvino.PartialShape([size])[0], *before[axis + 1 :]]
        if changed == before:
            continue
        try:
            model.reshape({port: openvino.PartialShape(changed)})
            model.reshape({port: openvino.PartialShape(before)})
        except RuntimeError:
            yield axis


def read_ir(path: str | Path) -> Any:
    """The openvino.Model in an .xml file (and its .bin)."""
    text_library.add_to(_core(), Path(path).read_bytes())
    return _core().read_model(str(path))


def read_in_memory(xml: bytes, data: bytes) -> Any:
    """The openvino.Model of the two files of an IR."""
    text_library.add_to(_core(), xml)
    return _core().read_model(xml, data)


def compile_ir(
    path: str | Path, properties: Mapping[str, Any] | None = None, device: str = "CPU", sizes: Sizes | None = None
) -> Compiled:
    """Read an .xml file, give inputs the `sizes`, and compile it for a device."""
    model = read_ir(path)
    if sizes:
        reshape(model, sizes)
    return Compiled(model, properties, device)


def compile_model(model: Any, properties: Mapping[str, Any] | None = None) -> Compiled:
    """Compile an openvino.Model for the CPU device."""
    return Compiled(model, properties)


def to_tensor(array: Any, element_type: Any) -> Any:
    """An openvino.Tensor of the given element type that owns its memory."""
    import openvino

    kind = element_type.get_type_name()
    values = np.asarray(array)
    tensor = openvino.Tensor(element_type, openvino.Shape(values.shape))
    if values.size == 0:
        return tensor
    if kind == "string":
        text = [v.decode() if isinstance(v, bytes) else str(v) for v in values.ravel().tolist()]
        tensor.str_data = np.array(text).reshape(values.shape)
    elif kind in _EXTENDED:
        raw = np.frombuffer(pack(values.astype(_extended(kind)), element_type.bitwidth), dtype=np.uint8)
        tensor.data.reshape(-1).view(np.uint8)[:] = raw
    else:
        tensor.data[...] = values.astype(tensor.data.dtype, copy=False)
    return tensor


def from_tensor(tensor: Any) -> np.ndarray:
    """A copy of a tensor: strings as an object array of str, types that numpy lacks as those of ml_dtypes."""
    kind = tensor.element_type.get_type_name()
    shape = tuple(tensor.shape)
    if kind == "string":
        found = np.empty(shape, dtype=object)
        if found.size:
            found[...] = tensor.str_data
        return found
    if kind not in _EXTENDED:
        return np.array(tensor.data, copy=True).reshape(shape)
    data = bytearray(tensor.data.tobytes())
    return unpack(data, int(np.prod(shape)), tensor.element_type.bitwidth, _extended(kind)).reshape(shape)


def _extended(kind: str) -> np.dtype:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, _EXTENDED[kind]))


def names_of(port: Any) -> tuple[str, ...]:
    """All names of an input or output of a model."""
    names = sorted(port.get_names())
    node = port.get_node()
    source = node if node.get_type_name() != "Result" else node.input_value(0).get_node()
    return tuple(dict.fromkeys((*names, source.get_friendly_name())))


@functools.cache
def _core() -> Any:
    import openvino

    return openvino.Core()


# -- the instructions with which the device multiplies integers of 8 bits

CPUINFO = Path("/proc/cpuinfo")

ISA_LIMIT = "ONEDNN_MAX_CPU_ISA"
"""The environment variable that limits the instructions, as the runtime reads it."""

_SETS = (("AVX512_CORE_VNNI", "avx512_vnni"), ("AVX2_VNNI", "avx_vnni"), ("AVX512_CORE", "avx512bw"), ("AVX2", "avx2"))


def instruction_set() -> str:
    """The best of the sets that matter for 8 bits: AVX512_CORE_VNNI, AVX2_VNNI, AVX512_CORE, AVX2, SSE41; empty where
    the system does not report it."""
    limit = os.environ.get(ISA_LIMIT, "").upper()
    if limit in ("SSE41", *(name for name, _ in _SETS)):
        return limit
    flags = processor_flags()
    return next((name for name, flag in _SETS if flag in flags), "SSE41") if flags is not None else ""


def processor_flags() -> list[str] | None:
    """The flags of the processor, without regard to the limit; None where the system does not report them."""
    text = CPUINFO.read_text("utf-8") if CPUINFO.exists() else ""
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return None if flags is None else flags[1].split()


def has_vnni() -> bool:
    """Whether sums of products of 8 bits do not saturate; also where the system does not report it."""
    return "VNNI" in (instruction_set() or "VNNI")
