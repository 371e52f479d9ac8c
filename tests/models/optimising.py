"""Models that ONNX Runtime's own tools make of a model: its graph optimiser, the fusions for transformers, its
quantisers.

    made(Path("bert.onnx"), "fused dynamic extended", sets, folder)        # the path of the last file

A variant is a list of steps, none for the model itself, each of which writes a file from the one before:

    basic, extended, all     ONNX Runtime's optimiser at this level; `all` uses layouts of this machine
    fused                    onnxruntime.transformers.optimizer: attention, normalisations, GELU
    heads                    the same with MultiHeadAttention instead of Attention
    f16                      onnxruntime.transformers.float16
    dynamic                  weights of 8 bits, activations quantised in the model
    s8, s8_by_channel, u8, u8_by_channel      the same with the whole range of 8 bits
    qdq, signed              QuantizeLinear and DequantizeLinear around the operators: u8 activations, or s8 by channel
    qoperator                QLinearMatMul, QLinearConv and others
    nbits, nbits8            MatMulNBits with 4 or 8 bits and zero points
    blocks                   DequantizeLinear of weights of 4 bits in blocks

Other weights of 8 bits have a reduced range, 7 bits: both sides then compute the same on CPUs without VNNI, where sums
of two larger products saturate.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

Feeds = Mapping[str, Any]
Step = Callable[[Path, Path, Sequence[Feeds]], None]

FAMILIES = {"bert": "bert", "vit": "vit", "clip": "clip", "gpt2": "gpt2", "t5": "t5", "whisper": "bart"}
"""The start of a model's name -> its kind in the optimiser for transformers; `bert` for others."""


def made(source: Path, variant: str, sets: Sequence[Feeds], folder: Path) -> Path:
    """The path of the variant of a model, which is written to the folder."""
    for step in variant.split():
        target = folder / f"{source.stem}-{step}.onnx"
        STEPS[step](source, target, sets)
        if infinite := [each.name for each in onnx.load(target).graph.initializer if _is_infinite_scale(each)]:
            raise ValueError(f"the calibration makes scales infinite: {', '.join(infinite)}")
        source = target
    return source


def _is_infinite_scale(tensor: Any) -> bool:
    return tensor.name.endswith("_scale") and bool(np.isinf(onnx.numpy_helper.to_array(tensor)).any())


def operators(path: Path) -> set[str]:
    """The operators in a file that are not of ONNX's own domain, with their domains."""
    graph = onnx.load(path, load_external_data=False).graph
    return {f"{node.domain}::{node.op_type}" for node in graph.node if node.domain not in ("", "ai.onnx")}


def _optimised(level: str) -> Step:
    def step(source: Path, target: Path, sets: Sequence[Feeds]) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level.upper()}")
        options.optimized_model_filepath = str(target)
        options.log_severity_level = 4
        onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])

    return step


def _fused(source: Path, target: Path, sets: Sequence[Feeds], heads: bool = False) -> None:
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    kind = next((kind for start, kind in FAMILIES.items() if source.stem.startswith(start)), "bert")
    options = FusionOptions(kind)
    options.use_multi_head_attention = heads
    with _quiet():
        model = optimize_model(str(source), kind, opt_level=1, optimization_options=options)
        model.save_model_to_file(str(target))


def _halved(source: Path, target: Path, sets: Sequence[Feeds]) -> None:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with _quiet():
        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), target)


def _dynamic(kind: str, **given: bool) -> Step:
    def step(source: Path, target: Path, sets: Sequence[Feeds]) -> None:
        from onnxruntime.quantization import QuantType, quantize_dynamic

        with _quiet():
            quantize_dynamic(_typed(source), target, weight_type=getattr(QuantType, kind), **given)

    return step


def _static(form: str, **given: Any) -> Step:
    def step(source: Path, target: Path, sets: Sequence[Feeds]) -> None:
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

        class Reader(CalibrationDataReader):  # type: ignore[misc]
            samples: Iterator[Feeds] = iter(sets)

            def get_next(self) -> Any:
                return next(self.samples, None)

        kinds = {"activation_type": QuantType.QInt8 if given else QuantType.QUInt8, "weight_type": QuantType.QInt8}
        options = {"ActivationSymmetric": bool(given)}
        with _quiet():
            quantize_static(_typed(source), target, Reader(), quant_format=getattr(QuantFormat, form),
                            extra_options=options, reduce_range=True, **kinds, **given)

    return step


def _typed(source: Path) -> onnx.ModelProto:
    """The model, with ONNX Runtime's types of all values if it has operators of com.microsoft, which the quantisers do
    not infer."""
    import onnxruntime

    model, shown = onnx.load(source), onnx.load(source)
    if all(node.domain != "com.microsoft" for node in model.graph.node):
        return model
    names = [name for node in model.graph.node for name in node.output if name]
    del shown.graph.output[:]
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(shown.SerializeToString(), options, providers=["CPUExecutionProvider"])
    given = {each.name for each in model.graph.output}
    del model.graph.value_info[:]
    model.graph.value_info.extend(_declared(each) for each in session.get_outputs() if each.name not in given)
    return model


def _declared(value: Any) -> onnx.ValueInfoProto:
    kind = value.type.removeprefix("tensor(").removesuffix(")")
    number = dict(onnx.TensorProto.DataType.items()).get(kind.upper())
    if number is None:  # a sequence
        return onnx.ValueInfoProto(name=value.name)
    return onnx.helper.make_tensor_value_info(value.name, number, value.shape or None)  # [] is an unknown rank, too


def _blocks(form: str, bits: int) -> Step:
    def step(source: Path, target: Path, sets: Sequence[Feeds]) -> None:
        from onnxruntime.quantization import QuantFormat
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

        with _quiet():
            quantiser = MatMulNBitsQuantizer(onnx.load(source), bits=bits, block_size=16, is_symmetric=False,
                                             quant_format=getattr(QuantFormat, form))
            quantiser.process()
            quantiser.model.save_model_to_file(str(target))

    return step


class _quiet:
    """Without the log of the tools, which prints what they cannot fuse."""

    def __enter__(self) -> None:
        logging.disable(logging.CRITICAL)

    def __exit__(self, *_: object) -> None:
        logging.disable(logging.NOTSET)


STEPS: dict[str, Step] = {
    **{level: _optimised(level) for level in ("basic", "extended", "all")},
    "fused": _fused, "heads": partial(_fused, heads=True), "f16": _halved,
    "dynamic": _dynamic("QInt8", reduce_range=True), "s8": _dynamic("QInt8"), "u8": _dynamic("QUInt8"),
    "s8_by_channel": _dynamic("QInt8", per_channel=True), "u8_by_channel": _dynamic("QUInt8", per_channel=True),
    "qdq": _static("QDQ"), "signed": _static("QDQ", per_channel=True),
    "qoperator": _static("QOperator"),
    "nbits": _blocks("QOperator", 4), "nbits8": _blocks("QOperator", 8), "blocks": _blocks("QDQ", 4),
}
VARIANTS = ("", "basic", "extended", "all", "fused", "fused extended", "fused f16", "heads", "dynamic",
            "dynamic extended", "fused dynamic", "fused dynamic extended", "qdq", "qdq extended", "fused qdq", "signed",
            "signed extended", "qoperator", "qoperator extended", "fused qoperator", "nbits", "nbits8", "fused nbits",
            "blocks")
WHOLE_RANGE = ("s8", "s8_by_channel", "u8", "u8_by_channel")
"""Dynamic quantisation whose products can saturate: compared with ovc's IR, too."""
