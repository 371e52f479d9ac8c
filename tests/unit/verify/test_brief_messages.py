"""Messages of the runtimes inside of others: each once, in one line, without files of C++."""

import pytest

from mo_loop.compare.execution.isolated import IsolatedError, brief, isolated
from mo_loop.errors import InputError
from tests.harness import raised

NATIVE = {
    "of OpenVINO": (
        "Exception from src/inference/src/cpp/core.cpp:131:\nException from src/core/src/node.cpp:210:\n"
        "Check 'rank > axis' failed at src/core/shape/softmax.hpp:12:\nWhile validating node 'opset8::SoftMax y'\n"
        "Axis 7 out of the tensor rank range [-2, 1].\n\n",
        "Axis 7 out of the tensor rank range [-2, 1].",
    ),
    "of a kernel of OpenVINO": (
        "Exception from src/inference/src/infer_request.cpp:227:\n[CPU] Reshape node with name 'y' Check 'count <= 1' "
        "failed at src/plugins/intel_cpu/src/reshape.cpp:58:\n[cpu]reshape: the shape (2.3) conflicts with (1.1)\n",
        "[CPU] Reshape node with name 'y' | [cpu]reshape: the shape (2.3) conflicts with (1.1)",
    ),
    "of ONNX Runtime": (
        "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Reshape node. Name:'' Status "
        "Message: /onnxruntime_src/core/reshape_helper.h:91 static void onnxruntime::ReshapeHelper::ReshapeHelper("
        "const onnxruntime::TensorShape&, bool) input_shape_size == size was false. It cannot be reshaped to {5,7}\n",
        "the operator Reshape fails: input_shape_size == size was false. It cannot be reshaped to {5,7}",
    ),
    "of a node of ONNX Runtime with a name": (
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Non-zero status code returned while running Gather node. "
        "Name:'pick' Status Message: indices element out of data bounds, idx=9 must be within the inclusive range "
        "[-2,1]",
        "the node pick (Gather) fails: indices element out of data bounds, idx=9 must be within the inclusive range "
        "[-2,1]",
    ),
    "of a node in a body": (
        "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running If node. Name:'choose' Status "
        "Message: Non-zero status code returned while running MatMul node. Name:'' Status Message: matmul_helper.h:59 "
        "Compute MatMul dimension mismatch",
        "the operator MatMul in the node choose (If) fails: MatMul dimension mismatch",
    ),
    "of a size": (
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the following indices\n "
        "index: 1 Got: 5 Expected: 4\n Please fix either the inputs/outputs or the model.",
        "the input x has the size 5 in dimension 1, and the model declares 4",
    ),
    "of several sizes": (
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the following indices\n "
        "index: 0 Got: 1 Expected: 2\n index: 1 Got: 5 Expected: 4\n Please fix either the inputs/outputs or the "
        "model.",
        "the input x has the size 1 in dimension 0, and the model declares 2; the input x has the size 5 in dimension "
        "1, and the model declares 4",
    ),
    "of a rank": (
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid rank for input: x Got: 1 Expected: 2 Please fix either "
        "the inputs/outputs or the model.",
        "the input x has 1 dimension, and the model declares 2",
    ),
    "of a type": (
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Unexpected input data type. Actual: (tensor(double)) , expected: "
        "(tensor(float))",
        "an input is of the type f64, and the model declares f32",
    ),
    "of a file": (
        "[ONNXRuntimeError] : 1 : FAIL : Load model from m.onnx failed:/onnxruntime_src/onnxruntime/core/graph/model.cc"
        ":256 onnxruntime::Model::Model(onnx::ModelProto&&, const onnxruntime::PathString&, const onnxruntime::"
        "IOnnxRuntimeOpSchemaRegistryList*, const onnxruntime::logging::Logger&, const onnxruntime::ModelOptions&) "
        "Unsupported model IR version: 99, max supported IR version: 14",
        "ONNX Runtime does not load m.onnx: Unsupported model IR version: 99, max supported IR version: 14",
    ),
    "of an unknown kind": (
        "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for Foo(1) node with name 'y'",
        "ONNX Runtime reports: Could not find an implementation for Foo(1) node with name 'y'",
    ),
}


def failing(text: str) -> None:
    raise RuntimeError(text)


def refusing(text: str) -> None:
    raise InputError("it does not run", why=text, hint="correct it")


@pytest.mark.parametrize("kind", NATIVE)
def test_a_native_error_appears_once(kind: str) -> None:
    text, expected = NATIVE[kind]
    assert brief(RuntimeError(text)) == expected
    assert brief(raised(IsolatedError, isolated, failing, text)) == expected


def test_a_message_with_a_reason_is_one_line_without_the_names_of_its_parts() -> None:
    caught = raised(IsolatedError, isolated, refusing, "an axis is wrong")
    assert brief(caught).endswith("ML200: it does not run | an axis is wrong")
    assert brief(IsolatedError("ended", "crash")) == "ended"
    assert brief(IsolatedError("", "error", message="mo_loop.compare.oracle.UnstableError: it changes")) == "it changes"
