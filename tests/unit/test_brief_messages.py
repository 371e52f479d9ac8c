"""Messages of the runtimes inside of others: each once, in one line, without files of C++."""

from __future__ import annotations

import pytest

from mo_loop.compare.execution.isolated import IsolatedError, brief, isolated
from mo_loop.errors import InputError

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
        "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Reshape node. Name:'' Status "
        "Message: input_shape_size == size was false. It cannot be reshaped to {5,7}",
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
    with pytest.raises(IsolatedError) as caught:
        isolated(failing, text)
    assert brief(caught.value) == expected


def test_a_message_with_a_reason_is_one_line_without_the_names_of_its_parts() -> None:
    with pytest.raises(IsolatedError) as caught:
        isolated(refusing, "an axis is wrong")
    assert brief(caught.value).endswith("ML200: it does not run | an axis is wrong")
    assert brief(IsolatedError("ended", "crash")) == "ended"
