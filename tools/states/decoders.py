"""A decoder that runs step by step: with caches that the caller passes on, with states, and in ONNX Runtime.

    decoder = Explicit(compiled, cross)
    decoder.start(batch=1)
    logits = decoder.step(tokens)           # [batch, time, vocabulary]; tokens: i64 [batch, time]

The names of inputs are those of optimum. Inputs that a model does not have are not given.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

LOGITS, PAST, CROSS, BEAMS = "logits", "past_key_values", ".encoder.", "beam_idx"

Arrays = Mapping[str, np.ndarray]


def is_cache(name: str) -> bool:
    """Whether an input is a cache that grows; the keys and values of an encoder stay."""
    return name.startswith(PAST) and CROSS not in name


def name_of(port: Any) -> str:
    """The name of a model's input: of its names that of optimum, as a tensor that ovc makes of several has several."""
    names = sorted(port.get_names())
    return next((name for name in names if name.startswith(PAST)), names[0])


def pairs(inputs: list[str]) -> dict[str, str]:
    """Cache input -> the output that is its next value."""
    return {name: name.replace(PAST, "present") for name in inputs if is_cache(name)}


class Steps:
    """The common part of all decoders: the inputs of a step but the caches."""

    def __init__(self, names: list[str], cross: Arrays) -> None:
        self.names = names
        self.cross = {name: array for name, array in cross.items() if name in names}
        self.time = 0

    def inputs(self, tokens: np.ndarray) -> dict[str, np.ndarray]:
        """The inputs for tokens [batch, time] after those so far."""
        batch, count = tokens.shape
        positions = np.arange(self.time, self.time + count, dtype=np.int64)
        self.time += count
        known = {
            "input_ids": tokens,
            "attention_mask": np.ones((batch, self.time), np.int64),
            "position_ids": np.tile(positions, (batch, 1)),
            BEAMS: np.arange(batch, dtype=np.int32),
        }
        return {name: array for name, array in known.items() if name in self.names}


class OpenVino(Steps):
    """One inference request of a compiled model."""

    def __init__(self, compiled: Any, cross: Arrays) -> None:
        super().__init__(list(map(name_of, compiled.inputs)), cross)
        self.compiled = compiled
        self.request = compiled.create_infer_request()

    def start(self, batch: int) -> None:
        """Begin sequences."""
        from openvino import Tensor

        self.time = 0
        for name, array in self.cross.items():
            self.request.set_tensor(name, Tensor(np.repeat(array, batch, 0)))

    def step(self, tokens: np.ndarray) -> np.ndarray:
        """The scores of one more inference."""
        self.advance(tokens)
        return np.array(self.request.get_tensor(LOGITS).data)

    def advance(self, tokens: np.ndarray) -> None:
        """One inference whose scores are not read."""
        from openvino import Tensor

        for name, array in self.inputs(tokens).items():
            self.request.set_tensor(name, Tensor(array))
        self.request.infer()


class Stateful(OpenVino):
    """The caches are states of the model."""

    def start(self, batch: int) -> None:
        super().start(batch)
        self.request.reset_state()


class Explicit(OpenVino):
    """The caches are outputs whose tensors become inputs without a copy.

    Tensors of outputs without a static shape have two buffers in the CPU plugin, so that one inference reads the first
    while it writes the second.
    """

    def start(self, batch: int) -> None:
        from openvino import Tensor

        super().start(batch)
        for port in self.compiled.inputs:
            if is_cache(name_of(port)):
                _, heads, _, size = port.get_partial_shape()
                shape = (batch, heads.get_length(), 0, size.get_length())
                self.request.set_tensor(port, Tensor(np.zeros(shape, np.float32)))

    def advance(self, tokens: np.ndarray) -> None:
        if self.time:
            for old, new in pairs(self.names).items():
                self.request.set_tensor(old, self.request.get_tensor(new))
        super().advance(tokens)


class OnnxRuntime(Steps):
    """The ONNX model with explicit caches."""

    def __init__(self, model: Path, cross: Arrays) -> None:
        import onnxruntime

        self.session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        self.shapes = {each.name: each.shape for each in self.session.get_inputs()}
        super().__init__(list(self.shapes), cross)
        self.given: dict[str, np.ndarray] = {}

    def start(self, batch: int) -> None:
        """Begin sequences."""
        self.time = 0
        self.given = {name: np.repeat(array, batch, 0) for name, array in self.cross.items()}
        for name in pairs(self.names):
            _, heads, _, size = self.shapes[name]
            self.given[name] = np.zeros((batch, heads, 0, size), np.float32)

    def step(self, tokens: np.ndarray) -> np.ndarray:
        """The scores of one more inference."""
        known = pairs(self.names)
        found = self.session.run([LOGITS, *known.values()], {**self.inputs(tokens), **self.given})
        self.given.update(zip(known, found[1:], strict=True))
        return found[0]
