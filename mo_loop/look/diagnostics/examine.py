"""examine: all diagnostics of one model.

    report = examine("model.onnx", ConvertOptions(strict=True))

The model is converted in memory by a Conversion that collects its errors (mo_loop/conversion.py). Here are
the findings of the ONNX model alone; ir_checks.py adds those of the finished graph. Nothing is written.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mo_loop.conversion import Conversion
from mo_loop.errors import ConversionWarning, ExtensionError, FileError, MoLoopError, UsageError, traceback_text
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.external_files import IN_MEMORY, tensor_from
from mo_loop.frontend.input_text import InputEntry
from mo_loop.frontend.model import OnnxModel, opened, require_opset
from mo_loop.frontend.node_order import NamesRead, needed
from mo_loop.frontend.onnx_graphs import OnnxGraph, all_graphs, called, function_graph, location_of, main_graph
from mo_loop.frontend.strip_weights import OWN_FILE
from mo_loop.graph import Graph, from_onnx
from mo_loop.look.diagnostics import ir_checks
from mo_loop.look.diagnostics.device_checks import FAULTS, changed_alone, device_diagnostics, of_this_device_alone
from mo_loop.look.diagnostics.diagnostic import CheckReport, Diagnostic, of_warnings
from mo_loop.look.diagnostics.ir_checks import state_diagnostics
from mo_loop.options import ConvertOptions
from mo_loop.origin import Origin
from mo_loop.support.process_memory import paused_collector
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.loops.specialize_loops import SpecializeLoops
from mo_loop.transforms.pipelines import LOOPS

_EXTERNAL = 1  # TensorProto.EXTERNAL


def examine(source: Any, options: ConvertOptions | None = None) -> CheckReport:
    """Find the errors, warnings and notes of the conversion of `source`.

    If the file cannot be read, or an option does not fit this model, the CheckReport has the error.

    Raises:
        UsageError: an option is not valid for any model.
        ExtensionError: an extension cannot be loaded.
    """
    config = PassConfig()
    config.disable(*LOOPS, SpecializeLoops)  # the notes are about the loops of the model
    seen = ir_checks.Seen(config)
    options = options or ConvertOptions()
    if options.config is not None:
        seen.config.adopt(options.config)
    seen.config.explain(*ir_checks.EXPLAINED)
    conversion = Conversion(replace(options, config=seen.config), [seen], collect=True)
    file = str(source) if isinstance(source, str | Path) else "model"
    try:
        model = opened(source, options.allowed_folders, options.external_data_dir)
        cut = conversion.cut(model)
    except (FileError, UsageError) as error:
        return CheckReport(file, refused=error)
    except MoLoopError as error:  # nested too deeply, for one
        return CheckReport(file, [Diagnostic.of_error(error)])
    with warnings.catch_warnings(record=True) as heard, paused_collector():
        warnings.simplefilter("always")
        try:
            report = _examined(file, model, cut, conversion, seen, options)
        except Exception as error:
            bug = MoLoopError(f"{type(error).__name__}: {error}", code="ML499")
            found = [Diagnostic.of_error(each) for each in (*conversion.errors, bug)]
            report = CheckReport(file, found, trouble=traceback_text(error))
    assumptions = [each.message for each in heard if isinstance(each.message, ConversionWarning)]
    for each in heard:
        if not isinstance(each.message, ConversionWarning):  # of an extension or a library: it is not about the model
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return replace(report, diagnostics=[*report.diagnostics, *of_warnings(assumptions)])


def _examined(
    file: str, model: OnnxModel, cut: Cut, conversion: Conversion, seen: ir_checks.Seen, options: ConvertOptions
) -> CheckReport:
    usage = Usage(model, cut)
    lost = LostData()
    graph: Graph | None = None
    try:
        require_opset(model)
        lost = lost_data(model, usage)
        graph = conversion.convert(model, lost.given(cut))
    except (ExtensionError, UsageError) as error:
        return CheckReport(file, refused=error)
    except MoLoopError as error:
        conversion.errors += getattr(error, "errors", [error])
    errors = (each for each in conversion.errors if usage.is_needed(each.origin) and not lost.explains(each))
    once = {(each.code, each.message, each.where): each for each in errors}  # a node may be translated several times
    diagnostics = [*lost.diagnostics, *map(Diagnostic.of_error, once.values())]
    if graph is not None and not lost.inputs:
        diagnostics += ir_checks.diagnostics(graph, seen)
        diagnostics += state_diagnostics(graph) if seen.states is None else seen.states
        diagnostics += ir_checks.clipped(graph) if conversion.options.compress_to_fp16 else ()
        diagnostics += _of_device(model, cut, options)
    diagnostics += leftovers(usage)
    if all(each.level != "error" for each in diagnostics):
        diagnostics += checked(model)
    return CheckReport(file, diagnostics, sizes={} if graph is None else graph.rt_info.get("sizes", {}))


def _of_device(model: OnnxModel, cut: Cut, options: ConvertOptions) -> Iterator[Diagnostic]:
    """The faults of the device in the IR that is written, whose loops are shorter than those of the notes."""
    if options.device not in FAULTS:
        return
    config = PassConfig()
    if options.config is not None:
        config.adopt(options.config)
    known = of_this_device_alone(options.device)
    config.explain(*known)
    graph = Conversion(replace(options, config=config)).convert(model, cut)
    assert graph is not None
    yield from device_diagnostics(graph, options.device)
    yield from changed_alone(config, options.device, known)


# -- the ONNX model


class Usage:
    """The parts of a model that its outputs depend on, including bodies and functions."""

    def __init__(self, model: OnnxModel, cut: Cut) -> None:
        self.cuts = cut.inputs is not None or cut.outputs is not None
        self.dead: list[tuple[OnnxGraph, Any]] = []
        """Nodes that reach no output."""
        self.unread: list[tuple[OnnxGraph, Any]] = []
        """Initializers that nothing reads."""
        self.read: list[tuple[OnnxGraph, Any]] = []
        """The other initializers."""
        main = main_graph(model)
        outputs = cut.outputs or main.output_names
        self._reads = NamesRead().of_node
        stack: list[tuple[OnnxGraph, list[str]]] = [(main, outputs)]
        functions: set[int] = set()
        while stack:
            scope, wanted = stack.pop()
            for node in self._kept(scope, wanted, frozenset(cut.inputs or ()) if scope is main else frozenset()):
                stack += [(body, body.output_names) for body in scope.bodies(node)]
                function = called(model, node)
                if function is not None and id(function) not in functions:
                    functions.add(id(function))
                    inner = function_graph(model, function, scope.origin_of(node).inner_scope)
                    stack.append((inner, inner.output_names))
        self._dead_scopes = frozenset(scope.origin_of(node).inner_scope for scope, node in self.dead)

    def _kept(self, scope: OnnxGraph, wanted: list[str], given: frozenset[str]) -> list[Any]:
        reads = [self._reads(node) for node in scope.nodes]
        live = needed([node.output for node in scope.nodes], wanted, given, reads)
        kept = [scope.nodes[place] for place in live]
        dead = set(range(len(reads))).difference(live)
        self.dead += [(scope, scope.nodes[place]) for place in sorted(dead)]
        names = {*wanted, *(name for place in live for name in reads[place])} - given
        for each in scope.initializers:
            (self.read if each.name in names else self.unread).append((scope, each))
        return kept

    def is_needed(self, origin: Origin | None) -> bool:
        """Whether the place is not in a node that reaches no output."""
        path = () if origin is None else origin.inner_scope
        return self._dead_scopes.isdisjoint(path[:length] for length in range(1, len(path) + 1))


@dataclass
class LostData:
    """External data that cannot be read. `inputs` replace those of the main graph, so that the check continues."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    inputs: list[InputEntry] = field(default_factory=list)
    _messages: list[str] = field(default_factory=list)

    def given(self, cut: Cut) -> Cut:
        """`cut`, with inputs in place of the lost tensors."""
        if not self.inputs:
            return cut
        return replace(cut, inputs={**{each.name: each for each in self.inputs}, **(cut.inputs or {})})

    def explains(self, error: MoLoopError) -> bool:
        """Whether an error of the conversion has the same cause."""
        return isinstance(error, FileError) and error.message in self._messages


def lost_data(model: OnnxModel, usage: Usage) -> LostData:
    """The faults of the data files of tensors that are read: one diagnostic for each file and code."""
    found = LostData()
    groups: dict[tuple[str, str], list[tuple[MoLoopError, OnnxGraph, str]]] = {}
    for scope, tensor in usage.read:
        if tensor.data_location != _EXTERNAL:
            continue
        location = location_of(tensor)
        try:
            if location != OWN_FILE:
                tensor_from(tensor, model.files)
        except FileError as error:
            groups.setdefault((error.code, location), []).append((error, scope, tensor.name))
            found._messages.append(error.message)
            # Shapes of the model cannot depend on the values of such a tensor.
            if not scope.outer and scope.kind == "model" and tensor.dims and from_onnx(tensor.data_type).is_float:
                found.inputs.append(InputEntry(tensor.name, tuple(tensor.dims), from_onnx(tensor.data_type)))
        except MoLoopError:
            pass  # translation finds faults of the tensor itself
    for each in groups.values():
        first, scope, name = each[0]
        diagnostic = Diagnostic.of_error(first, Origin(scope.scope, output=name))
        if len(each) > 1:
            text = f"{first.message}; {len(each)} tensors in it have this fault"
            diagnostic = replace(diagnostic, message=text)
        found.diagnostics.append(diagnostic)
    return found


def leftovers(usage: Usage) -> Iterator[Diagnostic]:
    """Unused nodes and initializers. A model that was cut is not checked: cutting leaves unused parts."""
    if usage.cuts:
        return
    for scope, node in usage.dead:
        yield Diagnostic.of_code("ML542", "the node reaches no output", scope.origin_of(node))
    for scope, tensor in usage.unread:
        yield Diagnostic.of_code("ML541", "nothing reads the initializer", Origin(scope.scope, output=tensor.name))


def checked(model: OnnxModel) -> Iterator[Diagnostic]:
    """The result of onnx.checker for a copy without large data, which the checker would read."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model.proto)
    bare = OnnxModel(copy, None, IN_MEMORY, model.name, model.opsets)
    bare.functions = {(each.domain, each.name, getattr(each, "overload", "")): each for each in copy.functions}
    for scope in all_graphs(bare):
        for tensor in (*scope.initializers, *(each.t for node in scope.nodes for each in node.attribute)):
            if tensor.data_location == _EXTERNAL:
                tensor.data_location = 0
                del tensor.external_data[:]
                tensor.dims[:] = [0]
    try:
        onnx.checker.check_model(copy)
    except onnx.checker.ValidationError as error:
        said = str(error).strip().splitlines()
        yield Diagnostic.of_code("ML513", said[0].rstrip(" .:") if said else "the model is not valid")
    except (ValueError, MemoryError):  # too large to be handed over
        return
