"""The whole program on one screen: load -> translate -> passes -> check -> emit.

    model = convert_model("model.onnx")
    save_model(model, "model.xml")
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mo_loop.check import failures, last_check
from mo_loop.collector import paused_collector
from mo_loop.errors import ConversionErrors, UnsupportedError, UsageError
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.model import OnnxModel, load
from mo_loop.frontend.survey import unsupported_operators
from mo_loop.frontend.translate import translate
from mo_loop.frontend.undecodable import blamed_on_names, has_text_names, require_text
from mo_loop.graph import Graph
from mo_loop.ir.pair import new_pair
from mo_loop.ir.weights import Weights
from mo_loop.ir.xml import XmlWriter
from mo_loop.ops.base import Constant


class Model:
    """A converted model: a checked `graph`, ready to be saved or run."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs, in the order of the ONNX model."""
        return [parameter.name for parameter in self.graph.parameters]

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs, in the order of the ONNX model."""
        return [result.output_names[0] for result in self.graph.results]

    def to_openvino(self) -> Any:
        """An `openvino.Model` of the same content, made in memory. Needs the package openvino."""
        import openvino

        xml, data = io.StringIO(), io.BytesIO()
        XmlWriter(xml, Weights(data)).write(self.graph)
        return openvino.Core().read_model(xml.getvalue().encode(), data.getvalue())

    def __repr__(self) -> str:
        return f"Model({self.graph.name!r}, inputs={self.inputs}, outputs={self.outputs})"


def convert_model(
    source: Any,
    *,
    input: str | Sequence[str] | Mapping[str, Any] | None = None,
    output: str | Sequence[str] | None = None,
    dump: str | os.PathLike[str] | None = None,
) -> Model:
    """Convert an ONNX model.

    Args:
        source: path of an .onnx file, its bytes, or an `onnx.ModelProto`.
        input: names of tensors that become the inputs (inner ones cut the model), or name -> shape, where a shape is a
            sequence of ints, None and -1 (unknown) and strings (symbols).
        output: names of tensors that become the outputs.
        dump: folder that receives the graph as loaded and after every pass that changed it.

    Raises:
        InputError: the file, the model or an argument is wrong.
        UnsupportedError: the model holds what the IR cannot express; all such places at once in ConversionErrors.
    """
    from transforms.manager import Manager
    from transforms.pipelines import default_pipeline

    with paused_collector():
        model = load(source)
        with blamed_on_names(model.proto):
            graph = translate(model, Cut.of(model, input, output))
            observers = []
            if dump is not None:
                from mo_loop.dump import Dumper

                dumper = Dumper(dump)
                dumper("loaded", graph)
                observers.append(lambda step: dumper(step.name, step.graph) if step.changed else None)
            _raise_failures(graph, model)
            Manager(default_pipeline(), observers).run(graph)
            last_check(graph)
            if not has_text_names(graph):
                require_text(model.proto)
        return Model(graph)


def _raise_failures(graph: Graph, model: OnnxModel) -> None:
    """Raise everything that could not be translated; operators that nothing translates are listed wherever they are."""
    graph.sweep()
    errors = failures(graph)
    if any(isinstance(error, UnsupportedError) for error in errors):
        places = {error.where for error in errors}
        errors += [error for error in unsupported_operators(model) if error.where not in places]
    if errors:
        raise ConversionErrors(errors)


def save_model(model: Model, xml_path: str | os.PathLike[str], compress_to_fp16: bool = False) -> None:
    """Write `xml_path` and the .bin of the same name beside it. Lossless unless `compress_to_fp16`.

    Both are written to temporary files first and swapped in at the end: an error leaves what was there untouched.
    """
    path = Path(xml_path)
    _keep_sources(model.graph, path)
    graph = model.graph
    if compress_to_fp16:
        from transforms.common.compress_constants import CompressConstants

        graph = graph.clone()
        CompressConstants().run(graph)
        graph.validate()
    with paused_collector(), new_pair(path) as (data, xml):
        XmlWriter(xml, Weights(data)).write(graph)


def _keep_sources(graph: Graph, path: Path) -> None:
    """Weights may still lie in the files that the model came from: those are not to be overwritten."""
    tensors = (node.tensor for scope in graph.scopes() for node in scope.of(Constant))
    sources = {os.path.realpath(file) for tensor in tensors for file in tensor.files}
    for target in (path, path.with_suffix(".bin")):
        if os.path.realpath(target) in sources:
            raise UsageError(f"{target} holds weights of the model itself", hint="give the output another name")
