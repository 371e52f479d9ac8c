"""The table of what tools/bench_inference.py measures for networks of real size: one row a model file.

    resnet50                  the network in f32
    resnet50-qdq_u8s8         a variant of it, in the file resnet50-qdq_u8s8.onnx
    llama_step-int4_32+f32    the same file, run without dynamic quantisation of activations

The table is fixed before it is measured: a row that is slow stays.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

FLOAT, QUANTISED, LOOPS = "float", "quantised", "loops"
GROUPS = (FLOAT, QUANTISED, LOOPS)

VARIANTS = {
    "f16": "weights and computation in f16, inputs and outputs in f32",
    "qdq_u8s8": "static, QuantizeLinear / DequantizeLinear, u8 activations, s8 weights per tensor",
    "qdq_s8s8": "static, QuantizeLinear / DequantizeLinear, s8 activations without zero point, s8 weights per channel",
    "qdq_matmul": "static, only matrix products between QuantizeLinear / DequantizeLinear, u8 activations, s8 weights",
    "qoperator_u8s8": "static, QLinearConv and QLinearMatMul, u8 activations, s8 weights",
    "dynamic_int8": "DynamicQuantizeLinear, MatMulInteger and ConvInteger, s8 weights",
    "int8": "s8 weights per channel after DequantizeLinear",
    "int4_32": "i4 weights in blocks of 32 without zero point after DequantizeLinear",
    "uint4_32": "u4 weights in blocks of 32 with zero points after DequantizeLinear",
    "int4_128": "i4 weights in blocks of 128 without zero point after DequantizeLinear",
    "uint4_128": "u4 weights in blocks of 128 with zero points after DequantizeLinear",
}
WEIGHTS_ONLY = ("int8", "int4_32", "uint4_32", "int4_128", "uint4_128")
UNCHANGED_ACTIVATIONS = "+f32"
"""At the end of a name: the runtime leaves activations in f32, which it else quantises in front of such weights."""

CNN = "f16 qdq_u8s8 qdq_s8s8 qoperator_u8s8"
TABLE = {
    "resnet50": CNN,
    "mobilenet_v2": CNN,
    "mobilenet_v3": CNN,
    "efficientnet_b0": CNN,
    "yolo": CNN,
    "unet": CNN,
    "bert": "f16 qdq_u8s8 qdq_s8s8 qdq_matmul qoperator_u8s8 dynamic_int8 int8 int4_32 int4_32+f32 uint4_32",
    "distilbert": "qdq_u8s8 qdq_s8s8 dynamic_int8",
    "gpt2": "qdq_u8s8 dynamic_int8",
    "gpt2_step": "f16 dynamic_int8 int8 int4_32 int4_32+f32 uint4_32",
    "t5_encoder": "dynamic_int8 int4_32",
    "t5_decoder": "dynamic_int8 int4_32",
    "vit": "f16 qdq_u8s8 qdq_s8s8 qoperator_u8s8 dynamic_int8",
    "whisper_encoder": "f16 qdq_u8s8 dynamic_int8",
    "whisper_decoder": "dynamic_int8 uint4_32",
    "llama_prefill": "qdq_matmul dynamic_int8 int4_32 int4_32+f32 uint4_128",
    "llama_step": "f16 dynamic_int8 int8 int8+f32 int4_32 int4_32+f32 uint4_32 uint4_32+f32 int4_128 uint4_128",
    "mamba": "int4_32",
    "lstm": "int8 dynamic_int8",
    "gru": "int8",
    "lstm_cell_loop": "",
    "lstm_cell_growing": "",
    "gru_cell_loop": "",
    "mamba_loop": "",
}
FILES = {
    "vision": ("resnet50", "mobilenet_v2", "mobilenet_v3", "efficientnet_b0"),
    "yolo": ("yolo",),
    "unet": ("unet",),
    "language": ("bert", "distilbert", "gpt2", "gpt2_step", "t5_encoder", "t5_decoder", "llama_prefill", "llama_step"),
    "perception": ("vit", "whisper_encoder", "whisper_decoder"),
    "state_space": ("mamba", "mamba_loop"),
    "decoding": ("gpt2_cached", "llama_cached", "t5_cached", "whisper_cached"),
    "recurrent": ("lstm", "gru", "lstm_cell_loop", "lstm_cell_growing", "gru_cell_loop"),
}
"""The modules of this package that define the models. Their imports are slow: only those needed are imported."""
CACHED = FILES["decoding"]
"""Decoders that tools/bench_states.py measures; they are not rows of the table."""
LOOP_MODELS = ("lstm_cell_loop", "lstm_cell_growing", "gru_cell_loop", "mamba_loop")


@dataclass(frozen=True)
class Entry:
    """One row: a model, its variant ("" in f32), and whether activations are kept in f32."""

    model: str
    variant: str = ""
    keeps_activations: bool = False

    @property
    def stem(self) -> str:
        """The name of the model file without its suffix."""
        return f"{self.model}-{self.variant}" if self.variant else self.model

    @property
    def name(self) -> str:
        """The name of the row."""
        return self.stem + (UNCHANGED_ACTIVATIONS if self.keeps_activations else "")

    @property
    def group(self) -> str:
        """The group whose geometric mean has a target."""
        if self.model in LOOP_MODELS:
            return LOOPS
        return FLOAT if self.variant in ("", "f16") else QUANTISED


def entries() -> Iterator[Entry]:
    """All rows, in the order of the table."""
    for model, variants in TABLE.items():
        yield Entry(model)
        for each in variants.split():
            yield Entry(model, each.removesuffix(UNCHANGED_ACTIVATIONS), each.endswith(UNCHANGED_ACTIVATIONS))


def matching(names: Sequence[str]) -> list[Entry]:
    """The rows whose names contain one of `names`; all if it is empty."""
    return [each for each in entries() if not names or any(part in each.name for part in names)]


def cached(names: Sequence[str]) -> list[Entry]:
    """The decoders whose names contain one of `names`; all if it is empty."""
    return [Entry(each) for each in CACHED if not names or any(part in each for part in names)]
