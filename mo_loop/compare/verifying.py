"""verify: converts a model, or takes its IR, runs it and ONNX Runtime, and compares every output.

    report = verify("model.onnx")                                   # converts, generates inputs
    report = verify("model.onnx", "model.xml", inputs=["a.npz"])
    assert report, as_text(report)

ONNX Runtime and OpenVINO run in worker processes, one after the other, so that a crash is a result and both models are
not in memory at once. All sets run on one compiled model, forwards and backwards, because runtimes keep buffers between
inferences.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.deciding import Deciding, is_of_runtime
from mo_loop.compare.execution.runtime import has_vnni, instruction_set
from mo_loop.compare.input_sets.expected_sequences import ExpectedSequences
from mo_loop.compare.input_sets.expected_sets import ExpectedSets
from mo_loop.compare.input_sets.generated import new_sizes, shapes_of, sizes_text
from mo_loop.compare.input_sets.given import input_names
from mo_loop.compare.input_sets.step_inputs import has_states
from mo_loop.compare.ir_runs import IrRuns, default_run, require_stepwise, save_sets
from mo_loop.compare.layers.findings import UNKNOWN
from mo_loop.compare.layers.rounding import QUANTISING
from mo_loop.compare.oracle.checked_oracle import EXACT, NOTED, errors_in
from mo_loop.compare.oracle.oracle import ONNX_RUNTIME
from mo_loop.compare.oracle.recorded_conversion import as_converted, recorded
from mo_loop.compare.results.array_comparison import AMPLIFIED, Named
from mo_loop.compare.results.report import DIFFERS, PASSED, InputSet, Report, Side
from mo_loop.compare.verify_options import F32, VerifyOptions, require_interpreter, require_packages
from mo_loop.conversion import Conversion
from mo_loop.converted_model import Model, read_model, write_pair
from mo_loop.errors import FileError, NotComparableError, UsageError
from mo_loop.frontend.model import ModelSource, OnnxModel, load
from mo_loop.frontend.onnx_graphs import all_graphs, require_external_data
from mo_loop.graph import Graph
from mo_loop.look.dump.step_files import RunFolder
from mo_loop.options import ConvertOptions
from mo_loop.support.flags import made_of, takes
from mo_loop.support.traversal import by_key
from mo_loop.transforms.low_precision.weights import integer_layers
from mo_loop.transforms.pipelines import avoided_gaps


@takes(VerifyOptions)
def verify(model: ModelSource, ir: str | os.PathLike[str] | None = None, **arguments: Any) -> Report:
    """Run an ONNX model in ONNX Runtime and its IR in OpenVINO on the same inputs, and compare the outputs.

    Args:
        model: Path of an .onnx file, an open binary file, the bytes of one, or an `onnx.ModelProto`.
        arguments: The options.

    Returns:
        The results of all sides and outputs. The report is true if every output agrees.

    Raises:
        InputError: the model, the IR, an input or an argument is wrong; a package is missing.
        NotComparableError: there are no inputs that both sides run, or no expected values.
        UnsupportedError: the model cannot be converted.
    """
    return verified(model, made_of(VerifyOptions, {"ir": ir, **arguments}, "verify"))


def verified(model: ModelSource, settings: VerifyOptions) -> Report:
    """The report of `verify`."""
    require_packages()
    if settings.python is not None:
        require_interpreter(settings.python)
    for each in settings.custom_ops:
        if not os.path.isfile(each):
            raise FileError(f"the library {each} does not exist", hint="check the path", code="ML210")
    if settings.dump is not None:  # it is written at the end; an error is reported now
        RunFolder(settings.dump).begin()
    with tempfile.TemporaryDirectory(prefix="mo-loop-") as folder:
        if isinstance(model, str | os.PathLike):
            return _Verification(Path(model), settings, Path(folder)).run()
        path = Path(folder, "model.onnx")
        content: Any = model
        read = getattr(content, "SerializeToString", None) or getattr(content, "read", None)  # of a file
        path.write_bytes(bytes(content if read is None else read()))
        return _Verification(path, settings, Path(folder)).run()


class _Verification:
    """One run of `verify`."""

    def __init__(self, path: Path, settings: VerifyOptions, folder: Path) -> None:
        """`folder` is for the files of the comparison."""
        self.path, self.folder = path, folder
        self.ir = None if settings.ir is None else Path(settings.ir)
        self.options = options = settings.conversion
        self.settings = settings
        self.notes: list[str] = []
        self.model: OnnxModel = load(str(path), options.allowed_folders)
        require_external_data(self.model)  # ONNX Runtime and onnx read it too
        self.start = time.perf_counter()

    def run(self) -> Report:
        target, converted = self._converted()
        sizes = self.settings.sizes
        source = self._reference(converted, any_sizes=sizes is not None)
        given = {} if sizes is None else new_sizes(sizes, self.model, converted)
        self.settings = settings = replace(self.settings, sizes=given)
        if has_states(converted.graph):
            if sizes is not None:
                raise UsageError(
                    "verify does not compare an IR with states with --sizes", why="its variables have sizes too",
                    hint="convert the model with these sizes: --input",
                )
            return self._stepwise(target, source, converted)
        found = ExpectedSets(source, self.model, settings, self.notes, {**shapes_of(converted), **settings.given_sizes})
        plain, defaults = IrRuns(found, settings, self.notes), None
        with plain.sharing():
            first = self._ran(plain, found, target)
            if first.status in (PASSED, DIFFERS) and settings.precision == F32:
                defaults = default_run(plain, target, converted.graph)
        deciding = Deciding(self.path, source, settings, self.notes, plain)
        sides = [deciding.decided(first)]
        save_sets(settings.save, "inputs", {number: each.feeds.items() for number, each in enumerate(found.sets)})
        save_sets(settings.save, "onnxruntime", {number: each.expected for number, each in enumerate(found.sets)})
        sides += [plain.ran(settings.precision, target)] if settings.precision != F32 else []
        sides += [plain.other(each, self.path, self.folder) for each in settings.against]
        layers, passes = deciding.explained(sides)

        def run(options: ConvertOptions) -> Side:
            side = plain.ran(F32, self._written(options, "exact.xml")[0], "exact")
            own = replace(settings, options=options, ir=None)
            return Deciding(self.path, source, own, [], plain).decided(replace(side, name=F32))

        cause = cause_of(sides[0], layers, converted.graph, self.options, run) if settings.layers else ""
        page = None if settings.dump is None or str(layers).startswith(UNKNOWN) else Path(settings.dump, "index.html")
        return self._report(
            converted, plain, sides, layers=layers, passes=passes, pieces=deciding.pieces,
            page=str(page) if page is not None and page.exists() else "", defaults=defaults, cause=cause,
            sizes={name: sizes_text(each) for name, each in settings.given_sizes.items()},
        )

    def _stepwise(self, target: Path, source: Path, converted: Model) -> Report:
        """The report for an IR with states."""
        settings = self.settings
        require_stepwise(settings)
        found = ExpectedSequences(self.path, source, self.model, target, converted, settings, self.notes)
        plain = IrRuns(found, settings, self.notes)
        sides = [plain.ran(each, target) for each in dict.fromkeys((F32, settings.precision))]
        return self._report(converted, plain, sides, steps=tuple(len(each.steps) for each in found.sets))

    def _report(self, converted: Model, plain: IrRuns, sides: Iterable[Side], **more: Any) -> Report:
        settings, oracle, sets = self.settings, plain.found.oracle, plain.found.sets
        expected = [[*step.expected, *step.states.items()] for each in sets for step in each.steps]
        notes = [*self.notes, *notes_about(self.model, converted.graph, oracle, expected)]
        versions = {}
        for package in ("mo_loop", "openvino", "onnxruntime", "onnx", "numpy"):
            if package != "openvino" or settings.python is None:  # else the IR runs in another release
                with suppress(PackageNotFoundError):
                    versions[package] = version(package)
        return Report(
            str(self.path), "" if self.ir is None else str(self.ir), oracle, settings.device,
            tuple(InputSet.of(each.name, each.feeds) for each in sets), plain.order, tuple(sides),
            (settings.rtol, settings.atol), tuple(dict.fromkeys(notes)), versions,
            time.perf_counter() - self.start, **more,
        )

    # -- both models

    def _converted(self) -> tuple[Path, Model]:
        """The path of the IR, and its graph."""
        if self.ir is not None:
            if self.ir.suffix.lower() == ".onnx":
                raise UsageError(
                    f"{self.ir} is an ONNX model", why="verify compares an ONNX model with its IR",
                    hint="give the .xml, or compare two models with mo-loop diff",
                )
            given = read_model(self.ir, limits=self.options.limits)
            require_interface(self.model, given, str(self.ir))
            return self.ir, given
        target, converted = self._written(self.options, "model.xml")
        return target, read_model(target) if self.options.compress_to_fp16 else converted

    def _reference(self, converted: Model, *, any_sizes: bool) -> Path:
        """The file that ONNX Runtime runs: the model with the parameters of the conversion, as the IR records them."""
        ir = converted.graph
        # ONNX Runtime runs whole sequences, of which an IR with states takes steps of the recorded sizes.
        options = self.options if self.ir is None or has_states(ir) else recorded(ir, self.options)
        kept = {name for port in converted.inputs for name in (str(port), *port.names)}
        proto = as_converted(self.model, ir, options, kept, any_sizes=any_sizes)
        if proto is None:
            return self.path
        path = self.folder / "reference.onnx"
        path.write_bytes(proto.SerializeToString())
        self.model = load(str(path))
        return path

    # -- the IR

    def _ran(self, plain: IrRuns, found: ExpectedSets, target: Path) -> Side:
        """The IR with all sets in f32; once more with larger sizes for those that OpenVINO refuses."""
        side = plain.ran(F32, target)
        if plain.enlarge(target):
            side = plain.ran(F32, target)
        if found.leave_out_misshapen(row for row in side.rows if row.result.kind == "shape"):
            side = plain.ran(F32, target)
        if side.passed and not side.rows:
            raise NotComparableError(
                "nothing could be compared", why=self.notes[-1], hint="give inputs: --input-data FILE.npz"
            )
        return side

    def _written(self, options: ConvertOptions, name: str) -> tuple[Path, Model]:
        """The conversion with these options, and the file to which it is written."""
        converted, target = Model(Conversion(options).run(str(self.path))), self.folder / name
        write_pair(converted, target, options.compress_to_fp16)
        return target, converted


def require_interface(model: OnnxModel, ir: Model, path: str) -> None:
    """UsageError if the IR has an input that the model has not, or no output of the model.

    A converter may drop an input that nothing reads, and rename one that the model returns. Of an IR with states,
    `ExpectedSequences` finds whether it fits.
    """
    if has_states(ir.graph):
        return
    inputs, outputs = input_names(model), [entry.name for entry in model.proto.graph.output]
    foreign = [port for port in ir.inputs if not {str(port), *port.names}.intersection(inputs)]
    common = [port for port in ir.outputs if {str(port), *port.names}.intersection(outputs)]
    is_short = len(ir.inputs) != len(inputs) or len(ir.outputs) != len(outputs)
    if (foreign and is_short) or not (common or len(ir.outputs) == len(outputs)):
        names = [", ".join(map(str, each)) or "none" for each in (inputs, outputs, ir.inputs, ir.outputs)]
        raise UsageError(
            f"{path} is not the IR of this model",
            why="the model has inputs {} and outputs {}, the IR has inputs {} and outputs {}".format(*names),
            hint="give the IR of this model, or none: then the model is converted",
        )


def cause_of(
    side: Side, layers: Any, graph: Graph, options: ConvertOptions, run: Callable[[ConvertOptions], Side]
) -> str:
    """The cause of the difference of a side; empty if it has none, or fails.

    `layers` is the answer of `--layers`, `options` are those of the conversion. `run` runs the model converted with
    other options on the same sets.
    """
    rounded = [row for row in side.worst if row.result.kind == AMPLIFIED]
    if side.passed:
        return f"rounding: {rounded[0].result}" if rounded else ""
    if side.status != DIFFERS:
        return ""
    size = f"the largest relative difference is {_largest(side)}"
    found = list(integer_layers(graph))
    operators = {node.origin.operator for scope in graph.scopes() for node in scope.ordered()}
    rounding = sorted(each for each in operators if any(part in each for part in QUANTISING))
    may_round = (found or rounding) and options.quantization != "exact"
    other = run(replace(options, quantization="exact")) if may_round else None
    if other is not None and other.passed:
        many = sum(each.saturates for each in found)
        numbers = f"{size} by default, {_largest(other)} with --quantization exact"
        if many and not has_vnni():
            return (
                f"saturation on this processor: {instruction_set()} adds products of 8 bits in 16 bits, which {many} "
                f"of {len(found)} layers may exceed (ML508); {numbers}"
            )
        return f"steps of the quantisation in {f'{len(found)} layers' if found else ', '.join(rounding)}: {numbers}"
    if is_of_runtime(layers):
        disabled = () if options.config is None else options.config.disabled
        avoided = ", ".join(gap.id for gap in avoided_gaps() if gap.rule in disabled)
        known = f"one of {avoided}, whose rules are disabled" if avoided else "docs/runtime.md does not have it"
        return f"an error of the runtime: the tensors agree when each is computed alone; {known}"
    where = getattr(layers, "brief", "")
    return f"a fault in {where}" if where else f"a fault: {size}"


def _largest(side: Side) -> str:
    return f"{max((row.result.largest_rel for row in side.rows), default=0.0):.3g}"


def notes_about(model: OnnxModel, converted: Graph, oracle: str, expected: Iterable[Named]) -> Iterator[str]:
    """`oracle` computed the `expected` outputs of the model, `converted` is the graph of the IR."""
    release = version("onnxruntime")
    noted = by_key(  # the nodes that it can compute wrongly, and that no one else computes
        (error, f"{node.op_type} {graph.path_of(node)}")
        for graph in (all_graphs(model) if oracle == ONNX_RUNTIME else ())
        for error, node in errors_in(graph.nodes) if error.treatment in (NOTED, EXACT) and error.is_in(release)
    )
    for error, nodes in noted.items():
        yield f"{nodes[0]}{f' and {len(nodes) - 1} more' if nodes[1:] else ''}: in ONNX Runtime {error.sentence}"
    if layers := list(integer_layers(converted)):
        many, where = sum(each.saturates for each in layers), "on processors without VNNI" if has_vnni() else "here"
        risk = f"; {many} of them may saturate {where} (ML508)" if many else ""
        yield (
            f"layers that multiply integers of 8 bits{f' with {instruction_set()}' if instruction_set() else ''}: "
            f"{len(layers)}{risk}; --quantization exact multiplies in f32"
        )
    values = [value for named in expected for _, value in named if isinstance(value, np.ndarray)]
    floats = [value for value in values if value.dtype.kind == "f" and value.size]
    if floats and all(np.isnan(value).all() for value in floats):
        yield "every expected number is NaN, so the comparison shows little: give other inputs"
