"""Mean, scale, layout, channel order and batch at conversion, compared with OpenVINO's PrePostProcessor.

A model converted with these options gives the same numbers as the model converted without them after a
PrePostProcessor with the same settings.
"""

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from mo_loop.api import Model, convert_model, save_model
from mo_loop.api import read_model as read_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.errors import ConversionErrors, ConversionWarning, MoLoopError, UsageError
from mo_loop.preprocessing import Layout as Layout
from mo_loop.preprocessing import layout_of as layout_of
from mo_loop.preprocessing import permutation as permutation
from tests.cases import read_cases
from tests.harness import floats, folded, parsed, raised

WEIGHTS = ",".join(f"{value:.6f}" for value in floats(4 * 3 * 3 * 3, seed=1))

CONVOLUTION = f"""main (float[1,3,8,6] x) => (float[1,4,6,4] y) <float[4,3,3,3] w = {{{WEIGHTS}}}> {{
      y = Conv (x, w) }}"""

PLAIN = "main (float[1,3,8,6] x) => (float[1,3,8,6] y) { y = Relu (x) }"

MEAN, SCALE = (0.5, -0.25, 1.75), (2.0, 0.5, 3.0)

X = {"x": floats(1, 3, 8, 6)}

NCHW, NHWC = ("input.model", ("x", "NCHW")), ("input.model", ("x", "NHWC"))
TO_NHWC, REVERSED = ("input.tensor", ("x", "NHWC")), ("input.reverse_channels", ("x",))
MEANS, SCALES = ("input.mean", ("x", MEAN)), ("input.scale", ("x", SCALE))
"""Steps of a PrePostProcessor."""


# -- against PrePostProcessor


def prepared_by_openvino(path: str, steps: list[tuple[str, Any]], sets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results of the IR at `path` after a PrePostProcessor with `steps`: (name, argument), in order."""
    import openvino
    from openvino.preprocess import PrePostProcessor

    processor = PrePostProcessor(openvino.Core().read_model(path))
    for what, argument in steps:
        side, _, rest = what.partition(".")
        place = processor.input(argument[0]) if side == "input" else processor.output(argument[0])
        if rest in ("tensor", "model"):
            getattr(place, rest)().set_layout(openvino.Layout(argument[1]))
        elif rest == "reverse_channels":
            place.preprocess().reverse_channels()
        else:
            getattr(place.preprocess(), rest)(argument[1])
    return outputs_of(processor.build(), sets)


def run(path: str, sets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results of an IR."""
    import openvino

    return outputs_of(openvino.Core().read_model(path), sets)


def outputs_of(model: Any, sets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    import openvino

    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = []
    for feeds in sets:
        result = compiled(feeds)
        found.append({output.get_any_name(): np.array(result[output]) for output in compiled.outputs})
    return found


def agrees(text: str, steps: list[tuple[str, Any]], *feeds: dict[str, Any], **asked: Any) -> Model:
    """Convert with `asked`, compare with the plain conversion after `steps`; returns the model for these sizes only."""
    model = parsed(text)
    with TemporaryDirectory() as folder:
        plain, built = f"{folder}/plain.xml", f"{folder}/built.xml"
        source = {"input": asked.pop("input")} if "input" in asked else {}
        save_model(convert_model(model, **source), plain)
        save_model(convert_model(model, **source, **asked), built)
        wanted = isolated(prepared_by_openvino, plain, steps, list(feeds))
        found = isolated(run, built, list(feeds))
    for expected, actual in zip(wanted, found, strict=True):
        assert expected.keys() == actual.keys()
        for name, values in expected.items():
            np.testing.assert_allclose(actual[name], values, rtol=2e-5, atol=2e-5)
    return convert_model(model, **folded(**source, **asked))


def kinds(model: Model) -> list[str]:
    types = [str(getattr(node, "type", "")) for node in model.graph]
    return [each for each in types if each not in ("Const", "Parameter", "Result")]


def constant(name: str, *shape: int) -> str:
    dims = ",".join(map(str, shape))
    values = ",".join(f"{value:.6f}" for value in floats(int(np.prod(shape)), seed=len(name)))
    return f"float[{dims}] {name} = {{{values}}}"


def reversed_by(text: str) -> list[str]:
    """The operations of a model whose channels are reversed: the Gather moves into weights where possible, else it
    stays; the numbers show whether it is right."""
    return kinds(agrees(text, [NCHW, REVERSED], X, reverse_input_channels=True))


# -- in the file


def written(folder: Path, text: str, **asked: Any) -> str:
    path = folder / "model.xml"
    save_model(convert_model(parsed(text), **asked), path)
    return path.read_text("utf-8")


def layouts(text: str, **asked: Any) -> tuple[list[str], list[str]]:
    """The layouts of the inputs and of the outputs, as OpenVINO reads them."""
    with TemporaryDirectory() as folder:
        written(Path(folder), text, **asked)
        found: tuple[list[str], list[str]] = isolated(layouts_in, f"{folder}/model.xml")
    return found


def layouts_in(path: str) -> tuple[list[str], list[str]]:
    import openvino

    model = openvino.Core().read_model(path)
    ends = (model.get_parameters(), model.get_results())
    parameters, results = ([each.get_layout().to_string() for each in end] for end in ends)
    return parameters, results


def refused_sizes(path: str, shapes: list[dict[str, list[int]]]) -> list[bool]:
    """Whether the runtime refuses the IR at `path` with each of these shapes."""
    import openvino

    found = []
    for each in shapes:
        try:
            model = openvino.Core().read_model(path)
            model.reshape(each)
            compiled = openvino.Core().compile_model(model, "CPU")
            compiled({name: np.zeros(shape, np.float32) for name, shape in each.items()})
            found.append(False)
        except RuntimeError:
            found.append(True)
    return found


def refuses(text: str, *shapes: dict[str, list[int]], **asked: Any) -> list[bool]:
    """Whether the runtime refuses the IR with each of these shapes."""
    with TemporaryDirectory() as folder:
        written(Path(folder), text, **asked)
        found: list[bool] = isolated(refused_sizes, f"{folder}/model.xml", list(shapes))
    return found


# -- batch


def shapes(text: str, **asked: Any) -> list[Any]:
    graph = convert_model(parsed(text), **asked).graph
    return [*(each.output.shape for each in graph.parameters), *(each.value.shape for each in graph.results)]


# -- refused

TWO = """main (float[1,3,8,6] x, float[1,3] z) => (float[1,3,8,6] y, float[1,3] w) {
  [first] h = Relu (x) y = Neg (h) w = Neg (z) }"""

JOINED = "main (float[1,4] x) => (float[4] y) { s = Constant <value_ints = [4]> () y = Reshape (x, s) }"
INTEGERS = "main (uint8[1,3,4,4] x) => (uint8[1,3,4,4] y) { y = Identity (x) }"
RENAMED = "--rename comes last: the other options name tensors as the ONNX model does, 'x'"


def relu(dims: str, kind: str = "float") -> str:
    """A model with one input of these dimensions."""
    return f"main ({kind}[{dims}] x) => ({kind}[{dims}] y) {{ y = Relu (x) }}"


def refused(text: str, *messages: str, error: type[MoLoopError] = UsageError, **asked: Any) -> None:
    """The conversion is refused with an error that has the messages."""
    found = raised(error, convert_model, parsed(text), **asked)
    shown = str(found.errors[0] if isinstance(found, ConversionErrors) else found)
    assert [each for each in messages if each not in shown] == [], shown


def test_a_reshape_that_joins_the_samples() -> None:
    text = """main (float[1,3,4] x) => (float[1,k] y) {
      s = Constant <value = int64[2] {1, -1}> ()  y = Reshape (x, s) }"""
    with pytest.warns(ConversionWarning, match="4 samples are joined into one") as heard:
        convert_model(parsed(text), batch=4)
    assert [getattr(each.message, "where", "") for each in heard] == ["y"]
    with warnings.catch_warnings(action="error"):
        convert_model(parsed(text.replace("{1, -1}", "{-1, 12}")), batch=4)


read_cases(globals())
