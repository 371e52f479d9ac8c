"""The whole program on one screen: load -> translate -> passes -> check -> emit.

    model = convert_model("model.onnx")
    save_model(model, "model.xml")

What the command line can be told, these two can.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mo_loop.errors import ConversionErrors, InputError, TypeError_, UnsupportedError, UsageError
from mo_loop.extensions import collect_extensions
from mo_loop.frontend.custom_translators import CustomTranslators
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.model import OnnxModel, load
from mo_loop.frontend.translate import translate
from mo_loop.frontend.unsupported_operators import unsupported_operators
from mo_loop.frontend.utf8 import check_names_on_error, has_utf8_names, require_utf8_names
from mo_loop.garbage_collection import paused_collector
from mo_loop.graph import Graph
from mo_loop.ir.bin import Weights
from mo_loop.ir.pair import new_pair
from mo_loop.ir.xml import XmlWriter
from mo_loop.last_check import failures, last_check
from mo_loop.ops.base import Constant, Result
from mo_loop.preprocessing.preparation import Preprocessing
from mo_loop.renaming import rename_tensors
from mo_loop.report.record import Record

if TYPE_CHECKING:
    from transforms.config import PassConfig
    from transforms.manager import Manager, Observer


class Model:
    """A converted model, or one that was read: its `graph`, ready to be saved or run."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs, in the order of the ONNX model."""
        return [parameter.name for parameter in self.graph.parameters]

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs, in the order of the ONNX model."""
        return [_output_name(result) for result in self.graph.results]

    def to_openvino(self) -> Any:
        """An `openvino.Model` of the same content, made in memory. InputError when the package openvino is missing."""
        try:
            import openvino
        except ImportError as error:
            raise InputError(
                "the package openvino cannot be imported", why=str(error), code="ML203",
                hint="pip install 'mo_loop[verify]'",
            ) from error  # fmt: skip
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
    freeze: Mapping[str, Any] | None = None,
    rename: Mapping[str, str] | None = None,
    dump: str | os.PathLike[str] | None = None,
    config: PassConfig | None = None,
    observers: Iterable[Observer] = (),
    stop_after: str | None = None,
    check_passes: bool = False,
    unroll: int = 0,
    strict: bool = False,
    sequence_io: str | None = None,
    extensions: Any = (),
    plugins: bool = True,
    layout: Any = None,
    mean_values: Any = None,
    scale_values: Any = None,
    scale: float | None = None,
    reverse_input_channels: bool = False,
    batch: int | None = None,
    record: Record | None = None,
) -> Model:
    """Convert an ONNX model.

    Args:
        source: path of an .onnx file, its bytes, or an `onnx.ModelProto`.
        input: what to change about the inputs, as text (`"x[1,3,?,224..512]{f16},rate->16000"`), as name -> shape, or
            as a list of names and tuples of a name, a shape and an element type. A shape is a sequence of ints, None or
            -1 (unknown), pairs (bounds) and strings (symbols); inner tensors cut the model; values freeze an input.
        output: names of the tensors (or nodes) that become the outputs.
        freeze: inputs that become constants: name -> value. Inner tensors cut the model.
        rename: tensors that get another name: name -> new name; those in bodies by their path (`loop/step/x`).
        dump: folder that receives the graph as loaded and after every pass that changed it.
        config: passes to enable, to disable or to explain, and vetoes of single nodes (`transforms.config`).
        observers: called with a `transforms.manager.Step` after every pass.
        stop_after: name of the last pass to run. For debugging: the later ones make what the runtime needs.
        check_passes: hold the graph against its invariants after every pass that changed it; slow.
        unroll: loops of a known number of iterations up to this one are written out (`UnrollLoops`); 0: none.
        strict: refuse what is otherwise assumed with a warning: inner names that hide outer ones, branches that cannot
            be taken because what follows cannot read what they return.
        sequence_io: "packed" lets sequences cross the boundary: `x` becomes the tensors `x.data`, all elements
            flattened and joined, and `x.shapes`, one row each (`mo_loop.pack_sequence`); an optional input is taken to
            be there. Without it a sequence at the boundary is refused.
        extensions: what adds passes and translators (`mo_loop.extensions`): paths of Python files, which are run,
            modules, functions `register`, Extensions; or one alone.
        plugins: whether extensions that installed packages offer take part as well.
        layout: what the dimensions of inputs and outputs are, recorded in the IR, and with an arrow what they are to be
            in it: `"nchw"`, `"x(nhwc->nchw),y(nc)"`, or a dict by name. In the IR an input then has the new layout.
        mean_values: numbers subtracted from inputs, one for each channel or one for all: `"[123.7,116.3,103.5]"`,
            `"x[127.5],y(1,2,3)"`, a list, or a dict by name.
        scale_values: numbers by which inputs are divided, after the mean, in the same forms.
        scale: one such number for every input of floating-point numbers.
        reverse_input_channels: RGB <-> BGR of every input with three channels, before mean and scale.
        batch: the size of the dimension N of every input, without a layout the first one.
        record: notes what happens, for those who want to tell of it.

    Raises:
        InputError: the file, the model or an argument is wrong.
        UnsupportedError: the model holds what the IR cannot express; all such places at once in ConversionErrors.
    """
    from transforms.manager import Manager
    from transforms.pipelines import default_pipeline

    if sequence_io not in (None, "packed"):
        raise UsageError(f"sequence_io is {sequence_io!r}", hint='give "packed", or nothing')
    packed = sequence_io == "packed"
    prepared = Preprocessing.of(
        layout=layout, mean_values=mean_values, scale_values=scale_values, scale=scale,
        reverse_input_channels=reverse_input_channels, batch=batch,
    )  # fmt: skip
    added = collect_extensions(extensions, plugins=plugins)
    manager = Manager(prepared.around(added.arranged(default_pipeline(unroll))), config=config)
    skipped = _skipped(manager, config, stop_after)
    notes = record or Record()
    with paused_collector():
        with notes.phase("reading"):
            model = load(source)
        with check_names_on_error(model.proto):
            with notes.phase("translating"):
                cut = prepared.of_batch(Cut.of(model, input, output, freeze))
                graph = translate(model, cut, added.translators, strict=strict, packed=packed)
            observers = [*_recording(record, model, graph), *observers]
            manager.observers = [*_dumping(dump, graph), *observers, *_holding(check_passes, stop_after, manager)]
            _raise_failures(graph, model, added.translators, cut)
            with notes.phase("passes"):
                manager.run(graph)
            if rename:
                rename_tensors(graph, rename, model)
                notes.renamed = dict(rename)
            with notes.phase("checking"):
                _last_check(graph, skipped)
                if not has_utf8_names(graph):
                    require_utf8_names(model.proto)
        return Model(graph)


def read_model(xml_path: str | os.PathLike[str], weights: str | os.PathLike[str] | None = None) -> Model:
    """Read OpenVINO IR of version 10 or 11, whoever wrote it; `weights` is the .bin if not that of the same name.

    Constants stay in the .bin until they are needed. Operations that are not known, or that the file types otherwise
    than inference here, are kept as they stand.

    Raises:
        InputError: a file is missing, is no IR, or breaks a rule of the format.
        UnsupportedError: the IR is of another version, or holds what cannot be read yet.
    """
    from mo_loop.ir.reader import read

    with paused_collector():
        return Model(read(Path(xml_path), None if weights is None else Path(weights)))


def _output_name(result: Result) -> str:
    """Older IR names the tensor that a Result reads, not the Result."""
    names: tuple[str, ...] = result.output_names or result.value.names or (result.name,)
    return names[0]


def _skipped(manager: Manager, config: PassConfig | None, stop_after: str | None) -> list[str]:
    """The names of passes that will not run for once; UsageError for names that no pass has."""
    if config is None and stop_after is None:
        return []
    from transforms.selection import Selection

    return Selection(manager, stop_after).skipped


def _recording(record: Record | None, model: OnnxModel, graph: Graph) -> Iterator[Observer]:
    """An observer that fills in `record`."""
    if record is not None:
        record.translated(model, graph)
        yield record


def _dumping(folder: str | os.PathLike[str] | None, graph: Graph) -> Iterator[Observer]:
    """An observer that writes the graph into `folder`; it begins with the graph as it is now."""
    if folder is None:
        return
    from mo_loop.dump import Dumper

    dumper = Dumper(folder)
    dumper("loaded", graph)
    yield lambda step: dumper(step.name, step.graph) if step.changed else None


def _holding(check_passes: bool, last: str | None, manager: Manager) -> Iterator[Observer]:
    """Observers that may end the run; they come behind those that show what happened."""
    from transforms.manager import check_invariants, stop_after

    if check_passes:
        yield check_invariants
    if last is not None:
        yield stop_after(last, manager.passes)


def _last_check(graph: Graph, skipped: list[str]) -> None:
    """The last check; what it finds may come of passes that were `skipped`, so the errors name them."""
    try:
        last_check(graph)
    except ConversionErrors as found:
        if not skipped:
            raise
        more = f" and {len(skipped) - 5} more" if len(skipped) > 5 else ""
        hint = f"passes that did not run: {', '.join(skipped[:5])}{more}"
        for error in found.errors:
            error.hint = f"{error.hint}; {hint}" if error.hint else hint
        raise ConversionErrors(found.errors) from None


def _raise_failures(graph: Graph, model: OnnxModel, custom: CustomTranslators, cut: Cut) -> None:
    """Raise everything that could not be translated; operators that nothing translates are listed wherever they are.

    Where shapes do not fit that are not the model's own, what it declares is told.
    """
    graph.sweep()
    errors = failures(graph)
    if any(isinstance(error, UnsupportedError) for error in errors):
        places = {error.where for error in errors}
        errors += [error for error in unsupported_operators(model, custom) if error.where not in places]
    if not errors:
        return
    declared = cut.changed_shapes(model)
    for error in errors if declared else ():
        if isinstance(error, TypeError_) and not error.hint:
            error.why, error.hint = "inputs were given other shapes", f"the model declares {declared}"
    raise ConversionErrors(errors)


def save_model(
    model: Model, xml_path: str | os.PathLike[str], compress_to_fp16: bool = False, *, record: Record | None = None
) -> None:
    """Write `xml_path` and the .bin of the same name beside it. Lossless unless `compress_to_fp16`.

    Both are written to temporary files first and swapped in at the end: an error leaves what was there untouched.
    `record` notes what happens.
    """
    path = Path(xml_path)
    _keep_sources(model.graph, path)
    graph = model.graph
    notes = record or Record()
    if compress_to_fp16:
        from transforms.common.compress_float_constants import CompressFloatConstants

        with notes.phase("compressing"):
            graph = graph.clone()
            compressing = CompressFloatConstants()
            compressing.run(graph)
            graph.validate()
            notes.compression = compressing.counts
    notes.graph = graph
    with paused_collector(), notes.phase("writing"), new_pair(path) as (data, xml):
        notes.weights = weights = Weights(data)
        XmlWriter(xml, weights).write(graph)


def _keep_sources(graph: Graph, path: Path) -> None:
    """Weights may still lie in the files that the model came from: those are not to be overwritten."""
    tensors = (node.tensor for scope in graph.scopes() for node in scope.of(Constant))
    sources = {os.path.realpath(file) for tensor in tensors for file in tensor.files}
    for target in (path, path.with_suffix(".bin")):
        if os.path.realpath(target) in sources:
            raise UsageError(f"{target} holds weights of the model itself", hint="give the output another name")
