"""IR of OpenVINO's own converter: read, written, and run with the same numbers as the original.

The converter and both runs are in a worker process: some models crash the converter, some its result.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop.compare.execution.isolated import isolated
from tests.conformance.cases import collect
from tests.models.exported import Exported
from tests.running.processor import fail_or_skip
from tests.running.samples import Sample

MODELS = [
    ("pytorch", ["beam_step_dynamo", "cnn", "cond_dynamo", "detection", "encoder_layer", "for_break", "for_growing",
                 "gru_stacked", "if_shapes", "loop_if_loop", "lstm_packed", "scan_reverse_dynamo", "while_collatz"]),
    ("tensorflow", ["case", "gru"]),
    ("transformers", ["gpt2_step_dynamo", "llama_generate", "mamba_loop", "mamba_scan_dynamo", "t5_step_dynamo"]),
]

NODES = """
argmax_keepdims_example  averagepool_2d_pads_count_include_pad  batchnorm_example  bitshift_left_uint16
constant_pad  depthtospace_example  dynamicquantizelinear_expanded  einsum_batch_diagonal  gridsample_bicubic
group_normalization_example  if  if_seq  isinf  layer_normalization_2d_axis0_expanded  loop11  lrn
lstm_with_peepholes  matmulinteger  maxpool_with_argmax_2d_precomputed_pads  mvn  nonmaxsuppression_suppress_by_IOU
qlinearmatmul_2D_int8_float32  range_float_type_positive_delta_expanded  resize_upsample_scales_cubic
roialign_aligned_true  scan9_sum  scatternd_add  softmax_axis_1_expanded  top_k  unique_sorted_with_axis
"""
MODULES = """
argmax averagepool batch_normalization bitshift depthtospace dynamicquantizelinear einsum gridsample groupnormalization
if_ isinf layernormalization loop lrn lstm matmulinteger maxpool meanvariancenormalization nonmaxsuppression pad
qlinearmatmul rangeop resize roialign scan scatternd softmax topk unique
"""
"""The modules of the suite with these nodes: all of them take six seconds in each process."""

NOT_CONVERTED = {"if_seq"}
"""Nodes that OpenVINO's own converter refuses."""


def compared(source: str, sets: Sequence[Mapping[str, Any]], compress_to_fp16: bool) -> str:
    """In the worker: the result for a model, `equal` at best."""
    os.environ["CI"] = "true"  # otherwise each conversion starts processes that report to OpenVINO's telemetry
    import openvino

    from mo_loop.api import read_model, save_model
    from mo_loop.compare.execution.runtime import run_ir

    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = Path(folder, "theirs.xml"), Path(folder, "ours.xml")
        try:
            openvino.save_model(openvino.convert_model(source), theirs, compress_to_fp16=compress_to_fp16)
        except Exception as error:  # its errors share no base class
            return f"not converted: {error}"
        save_model(read_model(theirs), ours)
        try:
            wanted = run_ir(theirs, sets)
        except Exception as error:  # likewise
            return f"not run: {error}"
        if _same(wanted, run_ir(ours, sets)):
            return "equal"
        return "different" if _same(wanted, run_ir(theirs, sets)) else "not stable"


def _same(wanted: Any, found: Any) -> bool:
    """Names, types, shapes and every bit, except for NaN."""
    return all(name == other and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
               for left, right in zip(wanted, found, strict=True)
               for (name, a), (other, b) in zip(left, right, strict=True))


@pytest.mark.sweep(4)
@pytest.mark.parametrize("compress_to_fp16", [False, True], ids=["f32", "f16"])
@pytest.mark.parametrize(("folder", "name"), [(folder, name) for folder, names in MODELS for name in names])
def test_exported_models(folder: str, name: str, compress_to_fp16: bool) -> None:
    models = Exported(folder)
    sets = [dict(each) for each in models.models[name].sets]
    outcome = isolated(compared, str(models.path(name)), sets, compress_to_fp16)
    fail_or_skip([] if outcome == "equal" else [outcome])


@cache
def nodes() -> dict[str, Sample]:
    """The cases of ONNX's backend suite by name."""
    found = collect(("node",), modules=f"^({'|'.join(MODULES.split())})$")
    return {entry.name.removeprefix("test_"): entry.sample for entry in found}


@pytest.mark.parametrize("name", NODES.split())
def test_nodes(name: str) -> None:
    case = nodes()[name]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "model.onnx")
        source.write_bytes(case.model)
        outcome = isolated(compared, str(source), case.feeds[:1], False)
    if name in NOT_CONVERTED:
        assert outcome.startswith("not converted"), f"OpenVINO converts it now: {outcome}"
        return
    fail_or_skip([] if outcome == "equal" else [outcome])
