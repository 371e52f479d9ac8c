"""Random configurations of the operators that generate text, with the expected values of ONNX Runtime.

    oracle((seed, index, "GreedySearch"))      # a Sample for tests/running/samples.py, or the reason to skip it

Each is a model of one node whose decoder is a small random network. Optional inputs, attributes, constants, dimensions
and prompts are drawn. A configuration whose tokens change with a relative change of 1e-5 in the weights is skipped.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from mo_loop.support.workers import report_stage
from tests.running.samples import Sample

from .networks import Sizes, decoder, encoder, gpt2, outside, whisper_encoder

SETS = 3
NUDGE = 1e-5
MICROSOFT = "com.microsoft"

Array = np.ndarray[Any, Any]


@dataclass
class Drawn:
    """One configuration: the inputs of the node for each set, in order, and its attributes."""

    operator: str
    source: random.Random
    attributes: dict[str, Any] = field(default_factory=dict)
    graphs: dict[str, Callable[[Sizes], Any]] = field(default_factory=dict)
    sizes: Sizes = field(default_factory=Sizes)
    names: list[str] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    sets: list[dict[str, Array]] = field(default_factory=list)
    outputs: list[tuple[str, int, int]] = field(default_factory=list)
    """Name, element type and rank."""
    is_static: bool = False
    weights_outside: bool = False

    def chance(self, share: float) -> bool:
        return self.source.random() < share

    def add(self, name: str, arrays: list[Array], constant: float = 0.0, given: float = 1.0) -> None:
        """An input of the node, with an array for each set; `given` and `constant` are probabilities."""
        if not self.chance(given):
            self.names.append("")
            return
        self.names.append(name)
        if self.chance(constant):
            self.constants[name] = arrays[0]
            return
        for each, array in zip(self.sets, arrays, strict=True):
            each[name] = array

    def scalar(self, name: str, pick: Callable[[], Any], dtype: Any, constant: float, given: float = 1.0) -> None:
        """An input of one element."""
        self.add(name, [np.array([pick()], dtype) for _ in self.sets], constant, given)

    def model(self, nudge: float = 0.0) -> ModelProto:
        """The model; with `nudge`, of slightly different weights."""
        sizes = replace(self.sizes, nudge=nudge)
        graphs = {name: make(sizes) for name, make in self.graphs.items()}
        weights = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        if self.weights_outside:
            weights += [each for graph in graphs.values() for each in outside(graph)]
        while self.names and not self.names[-1]:
            self.names.pop()
        outputs = [name for name, _, _ in self.outputs]
        node = helper.make_node(self.operator, self.names, outputs, "generate", domain=MICROSOFT)
        for name, value in {**self.attributes, **graphs}.items():
            node.attribute.append(helper.make_attribute(name, value))
        graph = helper.make_graph(
            [node], "generation", [self._declared(name) for name in self.sets[0]],
            [helper.make_tensor_value_info(name, kind, [None] * rank) for name, kind, rank in self.outputs], weights,
        )
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def _declared(self, name: str) -> Any:
        arrays = [each[name] for each in self.sets]
        shapes = {array.shape for array in arrays}
        first = arrays[0].shape
        dims = [size if len({shape[at] for shape in shapes}) == 1 else None for at, size in enumerate(first)]
        if not self.is_static and len(first) > 1:
            dims = [None] * len(first)
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(arrays[0].dtype), dims)


def drawn(seed: int, index: int, operator: str) -> Drawn:
    """The configuration of a seed and an index."""
    each = Drawn(operator, random.Random(f"{operator}/{seed}/{index}"))
    each.is_static = each.chance(0.3)
    each.weights_outside = each.chance(0.3)
    DESCRIPTIONS[operator](each)
    return each


def _greedy(d: Drawn) -> None:
    """GreedySearch."""
    lengths = prompts(d)
    limits = [length + d.source.randint(1, 14) for length in lengths]
    d.add("max_length", [np.array([limit], np.int32) for limit in limits], constant=0.5 if d.is_static else 0)
    d.add("min_length", [np.array([d.source.randrange(limit)], np.int32) for limit in limits], 0, given=0.4)
    rules(d)
    d.outputs = [("sequences", TensorProto.INT32, 2)]


def _sampling(d: Drawn) -> None:
    """Sampling whose filters leave one token."""
    _greedy(d)
    d.add("", [], given=0)
    d.scalar("seed", lambda: d.source.randrange(1000), np.int32, 0.5, given=0.5)
    d.attributes |= {"custom": d.source.randint(0, 1), "min_tokens_to_keep": 1, "top_p": 0.002}
    if d.chance(0.5):
        d.attributes["temperature"] = d.source.choice((0.5, 1.0, 1.5))
    if d.chance(0.3):
        d.attributes["filter_value"] = -1e6


def _beam(d: Drawn) -> None:
    """BeamSearch."""
    lengths = prompts(d)
    if d.chance(0.4):
        _encoded(d)
        lengths = [2] * len(lengths)  # ONNX Runtime fails for a maximum of 2
    _searched(d, lengths, has_mask=True)


def _whisper(d: Drawn) -> None:
    """WhisperBeamSearch, or BeamSearch of the same model."""
    is_older = d.chance(0.25)
    d.operator = "BeamSearch" if is_older else d.operator
    rows, prefixes = _audio(d), [d.source.randint(1, 4) for _ in range(SETS)]
    has_prefix = d.chance(0.7)
    prefixes = prefixes if has_prefix else [1] * SETS
    # ONNX Runtime fails for one more token than the prefix
    _searched(d, [length + 1 for length in prefixes], has_mask=False)
    size = d.sizes.vocabulary
    tokens = [_rng(d).integers(0, size, shape).astype(np.int32) for shape in zip(rows, prefixes, strict=True)]
    d.add("decoder_input_ids", tokens, given=has_prefix)
    if is_older:
        return
    d.scalar("logits_processor", lambda: d.source.randint(0, 1), np.int32, 0.5, given=0.7)
    for name in ("cross_qk_layer_head", "extra_decoding_ids"):
        d.add(name, [], given=0)
    d.scalar("temperature", lambda: d.source.choice((0.5, 1.0, 1.7)), np.float32, 0.5, given=0.5)
    d.attributes["beginning_timestamp_token_id"] = d.source.randint(1, size - 1)
    for name in ("translate", "transcribe", "start_of_lm", "no_timestamps"):
        if d.chance(0.8):
            d.attributes[f"{name}_token_id"] = d.source.randrange(size)


def _audio(d: Drawn) -> list[int]:
    """The networks and their input of features; returned are the numbers of rows."""
    network(d)
    d.sizes = replace(d.sizes, vocabulary=d.source.choice((50, 90)))
    d.attributes |= {"model_type": 2, "decoder_start_token_id": d.source.randrange(d.sizes.vocabulary)}
    weights, all_tokens, has_hidden = d.source.randrange(10**6), d.chance(0.3), d.chance(0.5)
    d.weights_outside = False
    d.graphs = {
        "encoder": lambda sizes: whisper_encoder(np.random.default_rng(weights), sizes),
        "decoder": lambda sizes: decoder(np.random.default_rng(weights + 1), sizes, has_hidden, all_tokens, False),
    }
    shapes = [(d.source.randint(1, 3), d.sizes.features, d.source.randint(1, 6)) for _ in range(SETS)]
    shapes = [shapes[0]] * SETS if d.is_static else shapes
    d.sets = [{} for _ in shapes]
    d.add("input_ids", [_rng(d).standard_normal(shape).astype(np.float32) for shape in shapes])
    return [rows for rows, *_ in shapes]


def _searched(d: Drawn, lengths: list[int], has_mask: bool) -> None:
    """The inputs of a beam search from max_length to attention_mask, and its outputs."""
    limits = [length + d.source.randint(1, 14) for length in lengths]
    d.add("max_length", [np.array([limit], np.int32) for limit in limits], constant=0.5 if d.is_static else 0)
    d.add("min_length", [np.array([d.source.randrange(limit)], np.int32) for limit in limits])
    beams = [d.source.randint(1, 4) for _ in d.sets]
    are_constant = d.chance(0.7)
    beams = [min(beams)] * len(beams) if are_constant else beams
    d.add("num_beams", [np.array([each], np.int32) for each in beams], constant=1.0 if are_constant else 0)
    returned = [d.source.randint(1, each) for each in beams]
    d.add("num_return_sequences", [np.array([min(returned)], np.int32) for _ in beams], constant=0.7)
    d.scalar("length_penalty", lambda: d.source.choice((0.5, 1.0, 1.6, -0.5)), np.float32, 0.5)
    rules(d, has_mask)
    if d.chance(0.5):
        d.attributes["early_stopping"] = d.source.randint(0, 1)
    kinds = [("sequences", TensorProto.INT32, 3), ("sequences_scores", TensorProto.FLOAT, 2)]
    d.outputs = [*kinds, ("scores", TensorProto.FLOAT, 4)][: d.source.randint(1, 3)]


def network(d: Drawn) -> None:
    """The decoder, perhaps another one for the first step, and the tokens of special meaning."""
    vocabulary = d.source.choice((9, 16, 30, 50))
    end, padding = d.source.sample(range(vocabulary), 2)
    if d.chance(0.2):
        padding = end
    rare = padding if padding != end else -1
    d.sizes = Sizes(d.source.randint(1, 2), d.source.randint(1, 2), 8, vocabulary, rare=rare)
    d.attributes |= {"eos_token_id": end, "pad_token_id": padding}
    weights = d.source.randrange(10**6)
    d.graphs["decoder"] = lambda sizes: gpt2(np.random.default_rng(weights), sizes)
    if d.chance(0.25) and not d.weights_outside:  # ONNX Runtime does not run it with weights outside
        d.graphs["init_decoder"] = lambda sizes: gpt2(np.random.default_rng(weights + 1), sizes, "init")


def _encoded(d: Drawn) -> None:
    """An encoder and its decoder instead of a decoder alone."""
    d.attributes |= {"model_type": 1, "decoder_start_token_id": d.source.randrange(d.sizes.vocabulary)}
    weights = d.source.randrange(10**6)
    has_first_step, all_tokens = d.chance(0.6), d.chance(0.3)
    has_hidden = has_first_step and d.chance(0.5)
    d.weights_outside = False
    d.graphs = {"encoder": lambda sizes: encoder(np.random.default_rng(weights), sizes, has_first_step),
                "decoder": lambda sizes: decoder(np.random.default_rng(weights + 1), sizes, has_hidden, all_tokens)}


def prompts(d: Drawn) -> list[int]:
    """The input of prompts, some with padding before them; returned are their lengths."""
    network(d)
    shapes = [(d.source.randint(1, 3), d.source.randint(1, 6)) for _ in range(SETS)]
    shapes = [shapes[0]] * SETS if d.is_static else shapes
    d.sets = [{} for _ in shapes]
    d.add("input_ids", [_prompt(d, *shape) for shape in shapes])
    return [length for _, length in shapes]


def _prompt(d: Drawn, rows: int, length: int) -> Array:
    tokens = _rng(d).integers(0, d.sizes.vocabulary, (rows, length)).astype(np.int32)
    for row in range(rows):
        if d.chance(0.4):
            tokens[row, : d.source.randrange(length)] = d.attributes["pad_token_id"]
    return tokens


def rules(d: Drawn, has_mask: bool = True) -> None:
    """Draw the restrictions of the tokens, from repetition_penalty to attention_mask."""
    attended = [each["input_ids"].shape[:2] for each in d.sets]
    size = d.sizes.vocabulary
    if d.chance(0.2):  # with a smaller number ONNX Runtime reads the logits of all rows but the first at wrong places
        d.attributes["vocab_size"] = size
    d.scalar("repetition_penalty", lambda: d.source.choice((0.7, 1.0, 1.3, 2.0)), np.float32, 0.5, given=0.5)
    d.add("vocab_mask", [_mask(d, size) for _ in attended], 0.3, given=0.4)
    d.add("prefix_vocab_mask", [_mask(d, rows, size) for rows, _ in attended], given=0.4)
    d.add("attention_mask", [_mask(d, *shape) for shape in attended], given=0.3 if has_mask else 0)
    if d.chance(0.4):
        d.attributes["no_repeat_ngram_size"] = d.source.randint(1, 4) if size >= 30 else d.source.randint(2, 4)


def _mask(d: Drawn, *shape: int) -> Array:
    return (_rng(d).random(shape) > 0.2).astype(np.int32)


def _rng(d: Drawn) -> np.random.Generator:
    return np.random.default_rng(d.source.randrange(2**32))


DESCRIPTIONS: dict[str, Callable[[Drawn], None]] = {"GreedySearch": _greedy, "BeamSearch": _beam, "Sampling": _sampling,
                                                    "WhisperBeamSearch": _whisper}


def oracle(task: tuple[int, int, str]) -> Sample | str:
    """The model of (seed, index, operator) and what ONNX Runtime computes; or the reason to skip it."""
    each = drawn(*task)
    report_stage("onnxruntime")
    try:
        found, again = (answers(each, nudge) for nudge in (0.0, NUDGE))
    except Exception as error:  # its errors share no base class
        return f"onnxruntime: {' '.join(str(error).split())[-150:]}"
    if any(not np.array_equal(a[0][1], b[0][1]) for a, b in zip(found, again, strict=True)):
        return "not stable"
    order = (*range(SETS), *reversed(range(SETS)))
    name = f"{task[2]}/{task[0]}/{task[1]}"
    return Sample(name, each.model().SerializeToString(), each.sets, found, order, atol=1e-3, exact=True)


def answers(d: Drawn, nudge: float) -> list[list[tuple[str, Array]]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(d.model(nudge).SerializeToString(), options, ["CPUExecutionProvider"])
    names = [name for name, _, _ in d.outputs]
    return [defined(d, feeds, dict(zip(names, session.run(None, feeds), strict=True))) for feeds in d.sets]


def defined(d: Drawn, feeds: dict[str, Array], found: dict[str, Array]) -> list[tuple[str, Array]]:
    """The outputs, with padding or 0 past the end of all sequences: ONNX Runtime does not write there."""
    if d.operator in ("GreedySearch", "Sampling"):
        padding = d.attributes["pad_token_id"]
        ended = np.logical_or.accumulate(found["sequences"][:, feeds["input_ids"].shape[1] :] == padding, axis=1)
        last = feeds["input_ids"].shape[1] + int(np.argmax([*ended.all(axis=0), True]))
        found["sequences"][:, last:] = padding
    if "scores" in found:
        penalty = float({**d.constants, **feeds}["length_penalty"][0])
        length = found["sequences"].shape[-1] - len(found["scores"])
        for prompt, steps in enumerate(_steps(found["scores"], length, penalty, d)):
            found["scores"][steps:, prompt] = 0
    return list(found.items())


def _steps(scores: Array, length: int, penalty: float, d: Drawn) -> list[int]:
    """The number of steps until each prompt is finished, by all scores [steps, prompts, beams, vocabulary].

    A prompt is compared with candidates of the prompts before it, as ONNX Runtime does.
    """
    count, prompts, width, size = scores.shape
    ended: list[Any] = [np.zeros(0)] * prompts
    steps = [count] * prompts
    for step, table in enumerate(scores.reshape(count, prompts, width * size)):
        best = np.argsort(-table, axis=1, kind="stable")[:, : 2 * width]
        values = np.take_along_axis(table, best, 1) / float(length + step) ** penalty
        for prompt in (each for each in range(prompts) if steps[each] == count):
            ends = best[prompt, :width] % size == d.attributes["eos_token_id"]
            ended[prompt] = np.sort([*ended[prompt], *values[prompt, :width][ends]])[::-1][:width]
            compared = values.ravel()[prompt * width :][: 2 * width].max()
            if len(ended[prompt]) == width and (d.attributes.get("early_stopping") or ended[prompt][-1] >= compared):
                steps[prompt] = step + 1
    return steps
