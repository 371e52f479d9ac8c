"""Mean, scale, layout, channel order and batch at conversion, compared with OpenVINO's PrePostProcessor.

A model converted with these options gives the same numbers as the model converted without them after a
PrePostProcessor with the same settings.
"""

import re
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from mo_loop.api import Model, convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.errors import ConversionWarning, MoLoopError, UsageError
from mo_loop.preprocessing import Layout, layout_of, permutation
from tests.harness import floats, folded, oracle, parsed, refusal

WEIGHTS = ",".join(f"{value:.6f}" for value in floats(4 * 3 * 3 * 3, seed=1))

CONVOLUTION = f"""main (float[1,3,8,6] x) => (float[1,4,6,4] y) <float[4,3,3,3] w = {{{WEIGHTS}}}> {{
      y = Conv (x, w) }}"""

PLAIN = "main (float[1,3,8,6] x) => (float[1,3,8,6] y) { y = Relu (x) }"

MEAN, SCALE = (0.5, -0.25, 1.75), (2.0, 0.5, 3.0)


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


def agrees(tmp_path: Path, text: str, steps: list[tuple[str, Any]], *feeds: dict[str, Any], **asked: Any) -> Model:
    """Convert with `asked`, compare with the plain conversion after `steps`; returns the model for these sizes only."""
    model = parsed(text)
    plain, built = str(tmp_path / "plain.xml"), str(tmp_path / "built.xml")
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


class TestAgainstPrePostProcessor:
    def test_mean_and_scale(self, tmp_path: Path) -> None:
        steps = [("input.model", ("x", "NCHW")), ("input.mean", ("x", MEAN)), ("input.scale", ("x", SCALE))]
        x = {"x": floats(1, 3, 8, 6)}
        agrees(tmp_path, PLAIN, steps, x, mean_values=[*MEAN], scale_values=f"{[*SCALE]}")
        agrees(tmp_path, CONVOLUTION, steps, x, mean_values={"x": MEAN}, scale_values=f"x({','.join(map(str, SCALE))})")

    def test_one_value_for_all_channels(self, tmp_path: Path) -> None:
        steps = [("input.mean", ("x", 127.5)), ("input.scale", ("x", 58.8))]
        agrees(tmp_path, PLAIN, steps, {"x": floats(1, 3, 8, 6)}, mean_values="127.5", scale=58.8)

    def test_mean_and_scale_are_in_the_order_of_the_model(self, tmp_path: Path) -> None:
        steps = [("input.model", ("x", "NCHW")), ("input.reverse_channels", ("x",)), ("input.mean", ("x", MEAN)),
                 ("input.scale", ("x", SCALE))]
        x = {"x": floats(1, 3, 8, 6)}
        asked: dict[str, Any] = {"mean_values": MEAN, "scale_values": SCALE, "reverse_input_channels": True}
        assert "Gather" in kinds(agrees(tmp_path, PLAIN, steps, x, **asked))
        assert "Gather" not in kinds(agrees(tmp_path, CONVOLUTION, steps, x, **asked))

    @pytest.mark.parametrize(
        ("source", "target", "shape"),
        [("NCHW", "NHWC", (1, 8, 6, 3)), ("NC...", "N...C", (1, 8, 6, 3)), ("NC??", "C?N?", (3, 8, 1, 6)),
         ("NCHW", "HWNC", (8, 6, 1, 3))],
    )
    def test_the_layout_of_an_input_changes(self, tmp_path: Path, source: str, target: str,
                                            shape: tuple[int, ...]) -> None:
        steps = [("input.model", ("x", source)), ("input.tensor", ("x", target))]
        model = agrees(tmp_path, CONVOLUTION, steps, {"x": floats(*shape)}, layout=f"{source}->{target}".lower())
        assert model.graph.parameters[0].output.shape == shape
        assert kinds(model) == ["Transpose", "Convolution"]

    def test_all_options_together(self, tmp_path: Path) -> None:
        steps = [("input.model", ("x", "NCHW")), ("input.tensor", ("x", "NHWC")), ("input.reverse_channels", ("x",)),
                 ("input.mean", ("x", MEAN)), ("input.scale", ("x", SCALE)), ("output.model", ("y", "NCHW")),
                 ("output.tensor", ("y", "NHWC"))]
        model = agrees(tmp_path, CONVOLUTION, steps, {"x": floats(1, 8, 6, 3)}, layout="x(nchw->nhwc),y(nchw->nhwc)",
                       mean_values=MEAN, scale_values=SCALE, reverse_input_channels=True)
        assert kinds(model) == ["Subtract", "Divide", "Transpose", "Convolution", "Transpose"]

    def test_channels_that_are_last(self, tmp_path: Path) -> None:
        text = "main (float[2,8,6,3] x) => (float[2,8,6,3] y) { y = Relu (x) }"
        steps = [("input.model", ("x", "NHWC")), ("input.reverse_channels", ("x",)), ("input.mean", ("x", MEAN))]
        agrees(tmp_path, text, steps, {"x": floats(2, 8, 6, 3)}, mean_values=MEAN, reverse_input_channels=True)

    def test_dimensions_that_are_not_known(self, tmp_path: Path) -> None:
        text = "main (float[n,c,h,w] x) => (float[n,c,h,w] y) { y = Relu (x) }"
        steps = [("input.model", ("x", "NCHW")), ("input.reverse_channels", ("x",)), ("input.mean", ("x", MEAN))]
        sets = [{"x": floats(1, 3, 5, 4)}, {"x": floats(4, 3, 2, 7)}]
        model = agrees(tmp_path, text, steps, *sets, layout="nchw", mean_values=MEAN, reverse_input_channels=True)
        assert model.graph.parameters[0].output.type.dims[1] == 3, "three values mean three channels"

    def test_several_inputs(self, tmp_path: Path) -> None:
        text = """
        main (float[1,3,4,4] a, float[1,4,4,3] b, float[1,2] c)
             => (float[1,3,4,4] p, float[1,4,4,3] q, float[1,2] r) {
          p = Relu (a)  q = Abs (b)  r = Neg (c) }"""
        steps = [("input.model", ("a", "NCHW")), ("input.model", ("b", "NHWC")), ("input.reverse_channels", ("a",)),
                 ("input.reverse_channels", ("b",)), ("input.mean", ("a", MEAN)), ("input.mean", ("c", [3.0])),
                 ("input.scale", ("b", SCALE))]
        feeds = {"a": floats(1, 3, 4, 4), "b": floats(1, 4, 4, 3), "c": floats(1, 2)}
        scales = {"b": SCALE}
        mean = f"a{[*MEAN]},c[3]"
        agrees(tmp_path, text, steps, feeds, mean_values=mean, scale_values=scales, reverse_input_channels=True)

    def test_half_precision(self, tmp_path: Path) -> None:
        text = "main (float16[1,3,4,4] x) => (float16[1,3,4,4] y) { y = Relu (x) }"
        steps = [("input.model", ("x", "NCHW")), ("input.mean", ("x", MEAN)), ("input.scale", ("x", SCALE))]
        feeds = {"x": floats(1, 3, 4, 4).astype(np.float16)}
        agrees(tmp_path, text, steps, feeds, mean_values=MEAN, scale_values=SCALE)

    def test_a_loop_that_reads_the_picture(self, tmp_path: Path) -> None:
        text = """main (float[1,3,4,4] x, int64 n) => (float[1,3,4,4] y, float[k,1,3,4,4] z) {
          y, z = Loop (n, "", x) <body = step (int64 i, bool c, float[1,3,4,4] s)
                                              => (bool d, float[1,3,4,4] t, float[1,3,4,4] u) {
            d = Identity (c)  t = Add (s, x)  u = Relu (x) }> }"""
        steps = [("input.model", ("x", "NCHW")), ("input.tensor", ("x", "NHWC")), ("input.reverse_channels", ("x",)),
                 ("input.mean", ("x", MEAN)), ("input.scale", ("x", SCALE))]
        sets = [{"x": floats(1, 4, 4, 3, seed=count), "n": np.array(count)} for count in (2, 0, 3)]
        agrees(tmp_path, text, steps, *sets, layout="x(nchw->nhwc)", mean_values={"x": MEAN}, scale_values={"x": SCALE},
               reverse_input_channels=True)

    def test_a_transpose_of_the_model_is_cancelled(self, tmp_path: Path) -> None:
        text = """main (float[1,8,6,3] x) => (float[1,3,8,6] y) {
          t = Transpose <perm = [0, 3, 1, 2]> (x)  y = Relu (t) }"""
        steps = [("input.model", ("x", "NHWC")), ("input.tensor", ("x", "NCHW"))]
        assert kinds(agrees(tmp_path, text, steps, {"x": floats(1, 3, 8, 6)}, layout="nhwc->nchw")) == ["ReLU"]

    def test_an_input_that_is_an_output_as_well_changes_alone(self) -> None:
        """The name means the input."""
        text = "main (float[1,3,8,6] x) => (float[1,3,8,6] x, float[1,3,8,6] y) { y = Relu (x) }"
        graph = convert_model(parsed(text), layout="x(nchw->nhwc)").graph
        shapes = [each.shape for each in (graph.parameters[0].output, *(result.value for result in graph.results))]
        assert shapes == [(1, 8, 6, 3), (1, 3, 8, 6), (1, 3, 8, 6)]
        assert [layout_of(each.value) for each in graph.results] == [None, None]


class TestChannelOrderInWeights:
    """The Gather of channels moves into weights where possible, else it stays; the numbers show whether it is right."""

    STEPS: ClassVar[list[tuple[str, Any]]] = [("input.model", ("x", "NCHW")), ("input.reverse_channels", ("x",))]

    def converted(self, tmp_path: Path, text: str) -> list[str]:
        return kinds(agrees(tmp_path, text, self.STEPS, {"x": floats(1, 3, 8, 6)}, reverse_input_channels=True))

    @staticmethod
    def constant(name: str, *shape: int) -> str:
        dims = ",".join(map(str, shape))
        values = ",".join(f"{value:.6f}" for value in floats(int(np.prod(shape)), seed=len(name)))
        return f"float[{dims}] {name} = {{{values}}}"

    def test_the_order_does_not_pass_a_pad_of_channels(self, tmp_path: Path) -> None:
        constants = f"{self.constant('w', 5, 4, 1, 1)}, int64[8] p = {{0, 1, 0, 0, 0, 0, 0, 0}}"
        text = f"""main (float[1,3,8,6] x) => (float[1,5,8,6] y) <{constants}> {{
          q = Pad (x, p)  y = Conv (q, w) }}"""
        # The runtime alone moves the order past the Pad, so that its own preprocessing gives other numbers.
        x = floats(1, 3, 8, 6)
        converted = convert_model(parsed(text), reverse_input_channels=True)
        save_model(converted, tmp_path / "built.xml")
        (found,) = isolated(run, str(tmp_path / "built.xml"), [{"x": x}])
        (expected,) = oracle(parsed(text), [{"x": x[:, ::-1].copy()}]).values
        np.testing.assert_allclose(found["y"], dict(expected)["y"], rtol=2e-5, atol=2e-5)
        assert "Gather" in kinds(converted)

    def test_the_order_passes_a_depthwise_convolution(self, tmp_path: Path) -> None:
        constants = f"{self.constant('w', 6, 1, 3, 3)}, {self.constant('b', 6)}, {self.constant('pw', 5, 6, 1, 1)}"
        text = f"""main (float[1,3,8,6] x) => (float[1,5,6,4] y) <{constants}> {{
          d = Conv <group = 3> (x, w, b)  r = Relu (d)  y = Conv (r, pw) }}"""
        assert "Gather" not in self.converted(tmp_path, text)

    def test_a_depthwise_convolution_at_the_end_keeps_the_gather(self, tmp_path: Path) -> None:
        text = f"""main (float[1,3,8,6] x) => (float[1,6,6,4] y) <{self.constant("w", 6, 1, 3, 3)}> {{
          y = Conv <group = 3> (x, w) }}"""
        assert self.converted(tmp_path, text)[0] == "Gather"

    def test_two_convolutions(self, tmp_path: Path) -> None:
        constants = f"{self.constant('w', 5, 3, 1, 1)}, {self.constant('v', 4, 3, 3, 3)}"
        text = f"""main (float[1,3,8,6] x) => (float[1,5,8,6] y, float[1,4,6,4] z) <{constants}> {{
          y = Conv (x, w)  z = Conv (x, v) }}"""
        assert self.converted(tmp_path, text) == ["Convolution", "Convolution"]

    def test_one_constant_of_two_convolutions(self, tmp_path: Path) -> None:
        text = f"""main (float[1,3,8,6] x) => (float[1,3,8,6] y) <{self.constant("w", 3, 3, 1, 1)}> {{
          t = Conv (x, w)  y = Conv (t, w) }}"""
        assert "Gather" not in self.converted(tmp_path, text), "the second one reads its weights as they were"

    def test_a_pad_before_the_convolution(self, tmp_path: Path) -> None:
        text = f"""main (float[1,3,8,6] x) => (float[1,5,h,w] y) <{self.constant("w", 5, 3, 3, 3)}> {{
          p = Constant <value = int64[8] {{0, 0, 1, 2, 0, 0, 0, 1}}> ()  a = Pad <mode = "reflect"> (x, p)
          y = Conv (a, w) }}"""
        assert self.converted(tmp_path, text) == ["Pad", "Convolution"]

    def test_another_reader_keeps_the_gather(self, tmp_path: Path) -> None:
        text = f"""main (float[1,3,8,6] x) => (float[1,5,8,6] y, float[1,3,8,6] z) <{self.constant("w", 5, 3, 1, 1)}> {{
          y = Conv (x, w)  z = Softmax <axis = 1> (x) }}"""
        assert self.converted(tmp_path, text).count("Gather") == 1

    def test_an_output_keeps_the_gather(self, tmp_path: Path) -> None:
        text = f"""main (float[1,3,8,6] x) => (float[1,5,8,6] y, float[1,3,8,6] z) <{self.constant("w", 5, 3, 1, 1)}> {{
          z = Relu (x)  y = Conv (z, w) }}"""
        assert self.converted(tmp_path, text).count("Gather") == 1

    def test_weights_that_are_computed_keep_the_gather(self, tmp_path: Path) -> None:
        assert self.converted(tmp_path, """main (float[1,3,8,6] x) => (float[1,1,6,4] y) {
          s = Constant <value = int64[4] {0, 0, 0, 0}> ()  e = Constant <value = int64[4] {1, 3, 3, 3}> ()
          w = Slice (x, s, e)  y = Conv (x, w) }""").count("Gather") == 1

    def test_a_transpose_before_the_convolution(self, tmp_path: Path) -> None:
        constants = f"{self.constant('w', 5, 3, 1, 1)}, {self.constant('m', 3)}, {self.constant('s', 3, 1, 1)}"
        text = f"""main (float[1,8,6,3] x) => (float[1,5,8,6] y) <{constants}> {{
          a = Sub (x, m)  t = Transpose <perm = [0, 3, 1, 2]> (a)  b = Mul (s, t)  y = Conv (b, w) }}"""
        steps = [("input.model", ("x", "NHWC")), ("input.reverse_channels", ("x",))]
        model = agrees(tmp_path, text, steps, {"x": floats(1, 8, 6, 3)}, reverse_input_channels=True)
        assert "Gather" not in kinds(model)


class TestInTheFile:
    def written(self, tmp_path: Path, text: str, **asked: Any) -> str:
        path = tmp_path / "model.xml"
        save_model(convert_model(parsed(text), **asked), path)
        return path.read_text("utf-8")

    def test_openvino_reads_the_layouts_back(self, tmp_path: Path) -> None:
        self.written(tmp_path, CONVOLUTION, layout="x(nchw->nhwc),y(n?...)")
        assert isolated(layouts_in, str(tmp_path / "model.xml")) == (["[N,H,W,C]"], ["[N,?,...]"])

    def test_the_layout_of_a_scalar(self, tmp_path: Path) -> None:
        self.written(tmp_path, "main (float x) => (float y) { y = Relu (x) }", layout="x([]),y([])")
        assert isolated(layouts_in, str(tmp_path / "model.xml")) == (["**SCALAR**"], ["**SCALAR**"])

    def test_an_output_that_is_an_input(self, tmp_path: Path) -> None:
        text = "main (float[1,3,4,4] x) => (float[1,3,4,4] y) { y = Identity (x) }"
        self.written(tmp_path, text, layout="x(nchw),y(n...)")
        assert isolated(layouts_in, str(tmp_path / "model.xml")) == (["[N,C,H,W]"], ["[N,...]"])

    def test_our_reader_reads_them_too(self, tmp_path: Path) -> None:
        from mo_loop.api import read_model

        xml = self.written(tmp_path, CONVOLUTION, layout="x(nchw->nhwc)", mean_values=MEAN)
        model = read_model(tmp_path / "model.xml")
        assert layout_of(model.graph.parameters[0].output) == Layout(("N", "H", "W", "C"))
        save_model(model, tmp_path / "again.xml")
        assert (tmp_path / "again.xml").read_text("utf-8") == xml

    def test_names_and_what_was_built_in(self, tmp_path: Path) -> None:
        xml = self.written(tmp_path, CONVOLUTION, mean_values=MEAN, scale=2.0)
        assert '<mean_values>\n\t\t\t\t<x value="0.5,-0.25,1.75" />' in xml
        assert 'names="x"' in xml and xml.count('names="x"') == 1, "the input keeps its name, nothing else has it"

    def test_without_options_nothing_changes(self, tmp_path: Path) -> None:
        assert "preprocessing" not in self.written(tmp_path, CONVOLUTION)


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


class TestOtherSizes:
    """Options that are for a number of channels let an IR have this number alone."""

    TWO = "main (float[1,3,4,5] a, float[1,3,4,5] b) => (float[1,3,4,5] y) { y = Add (a, b) }"

    @pytest.mark.parametrize(
        "asked", [{"mean_values": MEAN}, {"scale_values": SCALE}, {"reverse_input_channels": True}]
    )
    def test_of_the_channels(self, tmp_path: Path, asked: dict[str, Any]) -> None:
        path = tmp_path / "model.xml"
        model = convert_model(parsed(PLAIN), **asked)
        save_model(model, path)
        assert model.graph.rt_info["sizes"] == {"x": "?,3,?,?"}
        shapes = [{"x": each} for each in ([2, 3, 4, 5], [1, 1, 8, 6], [1, 4, 8, 6])]
        assert isolated(refused_sizes, str(path), shapes) == [False, True, True]

    def test_of_another_layout(self, tmp_path: Path) -> None:
        path = tmp_path / "model.xml"
        save_model(convert_model(parsed(PLAIN), layout="nchw->nhwc", mean_values=MEAN), path)
        shapes = [{"x": each} for each in ([2, 4, 5, 3], [1, 8, 6, 1])]
        assert isolated(refused_sizes, str(path), shapes) == [False, True]

    def test_of_inputs_of_the_same_sizes(self, tmp_path: Path) -> None:
        path = tmp_path / "model.xml"
        save_model(convert_model(parsed(self.TWO), mean_values={"b": MEAN}), path)
        shapes = [{"a": [2, each, 4, 5], "b": [2, 3, 4, 5]} for each in (3, 4)]
        assert isolated(refused_sizes, str(path), shapes) == [False, True]

    def test_a_batch_may_change(self, tmp_path: Path) -> None:
        path = tmp_path / "model.xml"
        save_model(convert_model(parsed(CONVOLUTION), batch=2), path)
        assert isolated(refused_sizes, str(path), [{"x": [5, 3, 8, 6]}]) == [False]


class TestBatch:
    TWO = """main (float[1,3] a, float[n,2] b) => (float[1,3] p, float[n,2] q) { p = Relu (a)  q = Abs (b) }"""

    def shapes(self, text: str, **asked: Any) -> list[Any]:
        graph = convert_model(parsed(text), **asked).graph
        return [*(each.output.shape for each in graph.parameters), *(each.value.shape for each in graph.results)]

    def test_of_every_input(self) -> None:
        assert self.shapes(self.TWO, batch=4) == [(4, 3), (4, 2), (4, 3), (4, 2)]

    def test_where_the_layout_has_it(self) -> None:
        first, second, *_ = self.shapes(self.TWO, batch=4, layout="a(cn),b(?c)")
        assert first == (1, 4)
        assert str(second) == "(n, 2)", "a layout without N has no batch"

    def test_the_layout_of_the_model_not_the_new_one(self) -> None:
        assert self.shapes(CONVOLUTION, batch=2, layout="nchw->nhwc") == [(2, 8, 6, 3), (2, 4, 6, 4)]

    def test_the_translated_model_computes_all_samples(self, tmp_path: Path) -> None:
        path = tmp_path / "model.xml"
        save_model(convert_model(parsed(CONVOLUTION), batch=3), path)
        one = tmp_path / "one.xml"
        save_model(convert_model(parsed(CONVOLUTION)), one)
        x = floats(3, 3, 8, 6)
        [found] = isolated(run, str(path), [{"x": x}])
        single = isolated(run, str(one), [{"x": each[None]} for each in x])
        np.testing.assert_allclose(found["y"], np.concatenate([each["y"] for each in single]), rtol=1e-5, atol=1e-5)

    def test_a_frozen_input_has_no_batch(self) -> None:
        assert self.shapes(self.TWO, batch=4, input="a->[[1,2,3]],b") == [(4, 2), (1, 3), (4, 2)]

    @pytest.mark.parametrize(("text", "asked", "message"), [
        ("main (float x) => (float y) { y = Relu (x) }", {}, "'x': it is a scalar"),
        ("main (float[5,3] x) => (float[5,3] y) { y = Relu (x) }", {}, "5, need not be a batch"),
        ("main (float[4,3] x) => (float[4,3] y) { y = Relu (x) }", {}, "--batch 4 changes no input"),
        ("main (float[1,3] x) => (float[1,3] y) { y = Relu (x) }", {"layout": "cd"}, "--batch 4 changes no input"),
        ("main (float[] x) => (float[] y) { y = Relu (x) }", {}, "'x': its rank is unknown"),
        ("main (seq(float[2]) x) => (float[?] y) { y = ConcatFromSequence <axis=0> (x) }", {}, "'x': it is a seq"),
        ("main (float[1,3] x) => (float[1,3] y) { y = Relu (x) }", {"layout": "nchw"}, "does not fit"),
    ])
    def test_refused(self, text: str, asked: dict[str, Any], message: str) -> None:
        with pytest.raises(UsageError, match=re.escape(message)):
            convert_model(parsed(text), batch=4, **asked)

    def test_a_scalar_without_a_batch(self) -> None:
        text = "main (float[1,2] x, float s) => (float[1,2] y) { y = Mul (x, s) }"
        assert self.shapes(text, batch=4, layout={"s": "[]"}) == [(4, 2), (), (4, 2)]

    def test_a_reshape_that_holds_the_old_batch(self) -> None:
        error = refusal(parsed("""main (float[1,3,4] x) => (float[1,12] y) {
          s = Constant <value = int64[2] {1, 12}> ()  r = Reshape (x, s)  y = Relu (r) }"""), batch=4)
        assert "Reshape(f32[4,3,4], i64[2]): 48 elements do not fit into [1, 12]" in str(error)
        assert "where: r" in str(error)

    def test_a_reshape_that_joins_the_samples(self) -> None:
        text = """main (float[1,3,4] x) => (float[1,k] y) {
          s = Constant <value = int64[2] {1, -1}> ()  y = Reshape (x, s) }"""
        with pytest.warns(ConversionWarning, match="4 samples are joined into one") as heard:
            convert_model(parsed(text), batch=4)
        assert [getattr(each.message, "where", "") for each in heard] == ["y"]
        with warnings.catch_warnings(action="error"):
            convert_model(parsed(text.replace("{1, -1}", "{-1, 12}")), batch=4)

    @pytest.mark.parametrize("batch", [0, -1, True, 2.0])
    def test_no_batch_size(self, batch: Any) -> None:
        with pytest.raises(UsageError, match="is not a batch size"):
            convert_model(parsed(PLAIN), batch=batch)


class TestRefused:
    INTEGERS = "main (uint8[1,3,4,4] x) => (uint8[1,3,4,4] y) { y = Identity (x) }"
    HALF = "main (float16[1,3] x) => (float16[1,3] y) { y = Relu (x) }"
    SQUARE = "main (float[1,3,3,4] x) => (float[1,3,3,4] y) { y = Relu (x) }"
    RANKLESS = "main (float[] x) => (float[] y) { y = Relu (x) }"
    SMALL = "main (float[1,5] x) => (float[1,5] y) { y = Relu (x) }"

    @pytest.mark.parametrize(("text", "asked", "message"), [
        (PLAIN, {"mean_values": "[0,0,0]"}, "--mean-values changes nothing"),
        (PLAIN, {"scale_values": "[1]"}, "--scale-values changes nothing"),
        (PLAIN, {"scale": 1}, "changes nothing"),
        (PLAIN, {"scale": "a"}, "--scale: 'a' is not a list of numbers"),
        (PLAIN, {"scale": [1, 2]}, "--scale [1, 2] is not one number"),
        (PLAIN, {"scale": float("inf")}, "is not a list of numbers"),
        (PLAIN, {"layout": 5}, "--layout: 5 is neither text"),
        (PLAIN, {"layout": {1: "nchw"}}, "--layout names"),
        (PLAIN, {"layout": {"x": 5}}, "5 is not a layout"),
        (PLAIN, {"layout": {"x": (None, None)}}, "is not a layout"),
        (PLAIN, {"mean_values": {"x": None}}, "None is not a list of numbers"),
        (PLAIN, {"scale": 0}, "0: division by 0 is not possible"),
        (PLAIN, {"scale_values": "[1,0,1]"}, "0: division by 0 is not possible"),
        (PLAIN, {"scale": 2, "scale_values": "[2]"}, "both --scale and --scale-values"),
        (PLAIN, {"mean_values": "[1,2]"}, "no dimension of that size"),
        (PLAIN, {"mean_values": "[1,2]", "layout": "nchw"}, "for 2 channels, the input 'x' of layout [N,C,H,W]"),
        (PLAIN, {"mean_values": "[1,2,3]", "layout": "n..."}, "has no channels C"),
        (PLAIN, {"mean_values": "1,2,3"}, "(3) and of inputs (1) differ"),
        (PLAIN, {"mean_values": "z[1,2,3]"}, "names 'z', which the model does not have"),
        (PLAIN, {"mean_values": "x[1],x[2]"}, "names 'x' twice"),
        (PLAIN, {"mean_values": "x[a]"}, "is not a list of numbers"),
        (PLAIN, {"mean_values": "x[nan]"}, "is not a list of numbers"),
        (PLAIN, {"mean_values": "x[1"}, "brackets do not match"),
        (PLAIN, {"mean_values": ""}, "names no input"),
        (SQUARE, {"mean_values": "[1,2,3]"}, "2 dimensions of that size"),
        (SQUARE, {"reverse_input_channels": True}, "2 dimensions of the input 'x' are 3"),
        (SMALL, {"reverse_input_channels": True}, "no input is known to have 3 channels"),
        (INTEGERS, {"mean_values": "[1,2,3]"}, "not of floating-point numbers"),
        (INTEGERS, {"scale": 2}, "no input is of floating-point numbers"),
        (RANKLESS, {"mean_values": "[1,2,3]"}, "the rank of the input 'x' is unknown"),
        (RANKLESS, {"layout": "nchw->nhwc"}, "has no known rank"),
        (PLAIN, {"layout": "nchw->nhw"}, "does not fit"),
        (PLAIN, {"layout": "nchw->nhwd"}, "has no dimension D"),
        (PLAIN, {"layout": "nc??->nchw"}, "has no dimension H"),
        (PLAIN, {"layout": "nchw->nc..h"}, "'.' is not a name"),
        (PLAIN, {"layout": "nchn"}, "has N twice"),
        (PLAIN, {"layout": "z(nchw)"}, "names 'z'"),
        (PLAIN, {"layout": "nchw->nhwc->nchw"}, "is not a layout"),
        (HALF, {"mean_values": "1e6"}, "cannot hold the values"),
        (HALF, {"scale": 1e-12}, "cannot hold the values"),
    ])
    def test_the_message_names_the_error(self, text: str, asked: dict[str, Any], message: str) -> None:
        with pytest.raises(UsageError, match=re.escape(message)):
            convert_model(parsed(text), **asked)

    TWO = """main (float[1,3,8,6] x, float[1,3] z) => (float[1,3,8,6] y, float[1,3] w) {
      [first] h = Relu (x) y = Neg (h) w = Neg (z) }"""
    GRAY = "main (float[1,1,28,28] x) => (float[1,1,28,28] y) { y = Relu (x) }"
    JOINED = "main (float[1,4] x) => (float[4] y) { s = Constant <value_ints = [4]> () y = Reshape (x, s) }"
    RENAMED = "--rename comes last: the other options name tensors as the ONNX model does, 'x'"

    @pytest.mark.parametrize(("text", "asked", "message", "help_"), [
        (TWO, {"rename": {"x": "new"}, "mean_values": "new[1,2,3]"}, "names 'new'", RENAMED),
        (TWO, {"rename": {"x": "new"}, "layout": "new(nchw)"}, "names 'new'", RENAMED),
        (TWO, {"rename": {"x": "new"}, "input": "new[1,3,8,6]"}, "has no tensor 'new'", RENAMED),
        (TWO, {"rename": {"x": "new"}, "stateful_pairs": {"new": "y"}, "stateful": True}, "input 'new'", RENAMED),
        (TWO, {"freeze": {"z": 1.0}, "mean_values": "z[2]"}, "names 'z', which is frozen", "freeze it with"),
        (TWO, {"freeze": {"z": 1.0}, "layout": "z(nc)"}, "names 'z', which is frozen", "freeze it with"),
        (TWO, {"input": "first->1,z", "scale_values": "first[2]"}, "names 'first', which is frozen", "freeze"),
        (TWO, {"layout": "q(nchw)"}, "names 'q'", "help:  there are x, z, y, w"),
        (TWO, {"output": "h", "mean_values": "z[1]"}, "--mean-values changes nothing", "no output depends on z"),
        (GRAY, {"mean_values": "[1,2,3]"}, "no dimension of that size", "one for all of them"),
        (GRAY, {"mean_values": "[1,2,3]", "layout": "nchw"}, "has 1", "one for all of them"),
        (JOINED, {"batch": 2}, "8 elements do not fit into [4]", "--batch gives inputs another size"),
        (JOINED, {"batch": 2}, "where: y", "the model declares x as f32[1,4]"),
    ])
    def test_the_message_helps(self, text: str, asked: dict[str, Any], message: str, help_: str) -> None:
        error = refusal(parsed(text), **asked)
        assert message in str(error) and help_ in str(error)

    @pytest.mark.parametrize("name", ["first", "first:0", "h"])
    def test_names_of_nodes(self, name: str) -> None:
        """They are taken as --input takes them."""
        options = {"mean_values": f"{name}[1,2,3]", "layout": f"{name}(nchw->nhwc)", "batch": 2}
        model = convert_model(parsed(self.TWO), input=[name, "z"], **options)
        assert str(model.inputs).startswith("[<h: f32[2,8,6,3]>") and "Subtract" in kinds(model)

    def test_inputs_that_are_not_images_can_be_named(self) -> None:
        text = """main (float[1,3,3,4] x, float[1,3,8,8] z) => (float[1,3,3,4] y, float[1,3,8,8] w) {
          y = Relu (x)  w = Relu (z) }"""
        model = convert_model(parsed(text), **folded(reverse_input_channels=True, layout="x(????)"))
        assert kinds(model).count("Gather") == 1

    def test_bounds_that_exclude_three_channels(self) -> None:
        text = "main (float[1,c,4,4] x) => (float[1,c,4,4] y) { y = Relu (x) }"
        with pytest.raises(MoLoopError, match=re.escape("dimension 4..8 cannot be 3")):
            convert_model(parsed(text), input="x[1,4..8,4,4]", mean_values="[1,2,3]", layout="nchw")

    def test_integers_may_be_reversed(self) -> None:
        assert "Gather" in kinds(convert_model(parsed(self.INTEGERS), reverse_input_channels=True))


class TestLayouts:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [("nchw", "[N,C,H,W]"), ("[n, c,h,w]", "[N,C,H,W]"), ("N...C", "[N,...,C]"), ("?c??", "[?,C,?,?]"),
         ("[batch,channels]", "[N,C]"), ("...", "[...]"), ("[n,...,my_dim]", "[N,...,MY_DIM]"), ("[]", "[]")],
    )
    def test_as_openvino_writes_them(self, text: str, shown: str) -> None:
        assert str(Layout.parse(text)) == shown

    @pytest.mark.parametrize("text", ["", "nn", "n..c", "...c...", "n c", "nc*", "[n,,c]"])
    def test_invalid_layouts(self, text: str) -> None:
        with pytest.raises(UsageError):
            Layout.parse(text)

    def test_ranks(self) -> None:
        assert Layout.parse("n...c").of_rank(4) == ("N", "?", "?", "C")
        assert Layout.parse("n...c").axis("C", 2) == 1
        assert not Layout.parse("n...c").fits(1)
        assert not Layout.parse("nchw").fits(3)
        assert Layout.parse("nchw").fits(None)

    def test_unnamed_dimensions_keep_their_order(self) -> None:
        assert permutation(Layout.parse("nhwc"), Layout.parse("nc??"), 4) == (0, 3, 1, 2)
        assert permutation(Layout.parse("nchw"), Layout.parse("n..."), 4) == (0, 1, 2, 3)
