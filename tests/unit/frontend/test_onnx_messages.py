"""The messages of ONNX without the package."""

import onnx

from mo_loop.frontend.model import OLDEST_OPSET, messages, newest_opset


def test_the_classes_are_those_of_the_package() -> None:
    assert messages() is not onnx and messages().ModelProto is onnx.ModelProto


def test_the_package_is_asked_for_newer_opsets_alone() -> None:
    assert newest_opset(OLDEST_OPSET) == OLDEST_OPSET <= onnx.defs.onnx_opset_version()
    assert newest_opset(OLDEST_OPSET + 1) == onnx.defs.onnx_opset_version()
