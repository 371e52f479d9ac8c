"""verify: converts a model, or takes its IR, runs it and ONNX Runtime, and compares every output.

    report = verify("model.onnx")                                   # converts, generates inputs
    report = verify("model.onnx", "model.xml", inputs=["a.npz"])
    assert report, as_text(report)

ONNX Runtime and OpenVINO run in worker processes, one after the other, so that a crash is a result and both models are
not in memory at once. All sets run on one compiled model, forwards and backwards, because runtimes keep buffers between
inferences.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mo_loop.api import Model, read_model, save_model
from mo_loop.compare.input_sets.generated import new_sizes, shapes_of, sizes_text
from mo_loop.compare.input_sets.given import input_names, save
from mo_loop.compare.oracle.graph_edits import cut_model, has_half_weights, of_unknown_sizes, with_half_weights
from mo_loop.compare.oracle.recorded_conversion import (
    has_preprocessing,
    recorded,
    with_preprocessing,
    with_renamed_ports,
)
from mo_loop.compare.packages import require_interpreter, require_packages
from mo_loop.compare.results.output_rows import type_text
from mo_loop.compare.results.report import AGAINST, DIFFERS, NOT_RESHAPABLE, PASSED, InputSet, Report, Side
from mo_loop.compare.results.verify_settings import F32, VerifyOptions
from mo_loop.compare.sides.expected_sets import ExpectedSets
from mo_loop.compare.sides.plain_side import PlainSide, default_run, save_sets
from mo_loop.compare.sides.side_run import worker_pool
from mo_loop.compare.stepping.state_variables import has_states
from mo_loop.compare.stepping.stepwise import Stepwise, require_stepwise
from mo_loop.compare.verdict.cause import cause_of, notes_about
from mo_loop.compare.verdict.deciding import Deciding
from mo_loop.compare.verdict.explaining import UNKNOWN, VANISHES, Pieces, passes_of, pieces_of
from mo_loop.conversion import Conversion
from mo_loop.errors import NotComparableError, UsageError
from mo_loop.frontend.model import OnnxModel, load, opened
from mo_loop.frontend.onnx_graphs import needs_permission, require_external_data, with_data
from mo_loop.options import ConvertOptions
from mo_loop.support.signatures import made_of, takes
from mo_loop.support.workers import Pool


@takes(VerifyOptions)
def verify(model: Any, ir: Any = None, **arguments: Any) -> Report:
    """Run an ONNX model in ONNX Runtime and its IR in OpenVINO on the same inputs, and compare the outputs.

    Args:
        model: Path of an .onnx file, the bytes of one, or an `onnx.ModelProto`.
        arguments: The options, which follow.

    Returns:
        The results of all sides and outputs. The report is true if every output agrees.

    Raises:
        InputError: the model, the IR, an input or an argument is wrong; a package is missing.
        NotComparableError: there are no inputs that both sides run, or no expected values.
        UnsupportedError: the model cannot be converted.
    """
    return verified(model, made_of(VerifyOptions, {"ir": ir, **arguments}, "verify"))


def verified(model: Any, settings: VerifyOptions) -> Report:
    """The report of `verify`."""
    require_packages()
    if settings.python is not None:
        require_interpreter(settings.python)
    if settings.dump is not None:  # it is written at the end; an error is reported now
        from mo_loop.look.dump.run_folder import RunFolder

        RunFolder(settings.dump).begin()
    with _as_file(model) as path:
        return _Verification(path, settings).run()


@contextmanager
def _as_file(model: Any) -> Iterator[Path]:
    """The path of the model; one in memory is written to a temporary file."""
    if isinstance(model, str | os.PathLike):
        yield Path(model)
        return
    with tempfile.TemporaryDirectory(prefix="mo-loop-") as folder:
        path = Path(folder, "model.onnx")
        data = model if isinstance(model, bytes | bytearray | memoryview) else model.SerializeToString()
        path.write_bytes(bytes(data))
        yield path


class _Verification:
    """One run of `verify`."""

    def __init__(self, path: Path, settings: VerifyOptions) -> None:
        self.path = path
        self.ir = None if settings.ir is None else Path(settings.ir)
        self.options = options = ConvertOptions.of(settings.options)
        self.settings = settings
        self.notes: list[str] = []
        self.model: OnnxModel = load(str(path), options.allowed_folders)
        require_external_data(self.model)  # ONNX Runtime and onnx read it too

    def run(self) -> Report:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="mo-loop-") as name:
            folder = Path(name)
            target, converted = self._converted(folder)
            sizes = self.settings.sizes
            source = self._reference(folder, converted, any_sizes=sizes is not None)
            given = {} if sizes is None else new_sizes(sizes, self.model, converted)
            self.settings = settings = replace(self.settings, sizes=given)
            if has_states(converted.graph):
                if sizes is not None:
                    raise UsageError(
                        "verify does not compare an IR with states with --sizes", why="its variables have sizes too",
                        hint="convert the model with these sizes: --input",
                    )  # fmt: skip
                return self._stepwise(target, source, converted, start)
            shapes = {**shapes_of(converted), **settings.sizes}
            found = ExpectedSets(source, self.model, settings, self.notes, shapes)
            with worker_pool(settings) as pool:
                plain, first = self._ran(found, target, pool)
                defaults = None
                if first.status in (PASSED, DIFFERS) and settings.precision == F32:
                    defaults = default_run(plain, settings, target, converted.graph)
            deciding = Deciding(self.path, source, settings, self.notes)
            first, pieces = deciding.decided(first, plain)
            sets, expected, oracle = found.sets, found.expected, found.oracle
            save_sets(settings.save, "inputs", {number: feeds.items() for number, (_, feeds) in enumerate(sets)})
            save_sets(settings.save, "onnxruntime", dict(enumerate(expected)))
            sides = [first]
            sides += [plain.ran(settings.precision, target)] if settings.precision != F32 else []
            sides += [plain.other(each, self.path, folder) for each in settings.against]
            layers, passes = self._explained(deciding, sides, plain, pieces)
            page = self._page(layers)
            self._save_piece(pieces)
            cause = self._cause(first, layers, converted, plain, folder)
        self.notes += notes_about(self.model, converted.graph, oracle, expected)
        return Report(
            str(self.path), "" if self.ir is None else str(self.ir), oracle, settings.device,
            tuple(InputSet(name, {key: type_text(value) for key, value in feeds.items()}) for name, feeds in sets),
            plain.order, tuple(sides), (settings.rtol, settings.atol), tuple(dict.fromkeys(self.notes)),
            _versions(settings), time.perf_counter() - start, layers, passes, page, cause=cause,
            sizes={name: sizes_text(each) for name, each in settings.sizes.items()}, pieces=pieces,
            defaults=defaults,
        )  # fmt: skip

    def _stepwise(self, target: Path, source: Path, converted: Model, start: float) -> Report:
        """The report for an IR with states."""
        settings = self.settings
        require_stepwise(settings)
        found = Stepwise(self.path, source, self.model, target, converted, settings).compared()
        expected = [outputs for each in found.sequences for outputs in each.expected]
        notes = [*found.notes, *notes_about(self.model, converted.graph, found.oracle, expected)]
        return Report(
            str(self.path), "" if self.ir is None else str(self.ir), found.oracle, settings.device,
            tuple(each.record for each in found.sequences), found.order, tuple(found.sides),
            (settings.rtol, settings.atol), tuple(dict.fromkeys(notes)), _versions(settings),
            time.perf_counter() - start, steps=tuple(len(each.steps) for each in found.sequences),
        )  # fmt: skip

    # -- both models

    def _converted(self, folder: Path) -> tuple[Path, Model]:
        """The path of the IR, and its graph."""
        if self.ir is not None:
            if self.ir.suffix.lower() == ".onnx":
                raise UsageError(
                    f"{self.ir} is an ONNX model", why="verify compares an ONNX model with its IR",
                    hint="give the .xml, or compare two models with mo-loop diff",
                )  # fmt: skip
            given = read_model(self.ir, limits=self.options.limits)
            require_interface(self.model, given, str(self.ir))
            return self.ir, given
        converted = Model(Conversion(self.options).run(str(self.path)))
        target = folder / "model.xml"
        save_model(converted, target, self.options.compress_to_fp16)
        return target, read_model(target) if self.options.compress_to_fp16 else converted

    def _reference(self, folder: Path, converted: Model, *, any_sizes: bool) -> Path:
        """The file that ONNX Runtime runs: the model with the parameters of the conversion, as the IR records them."""
        ir = converted.graph
        # ONNX Runtime runs whole sequences, of which an IR with states takes steps of the recorded sizes.
        options = self.options if self.ir is None or has_states(ir) else recorded(ir, self.options)
        any_sizes = any_sizes or options.batch is not None
        cut = Conversion(options).cut(self.model)
        is_whole = cut.inputs is None and cut.outputs is None
        has_changes = any_sizes or has_preprocessing(ir) or has_half_weights(ir) or bool(options.rename)
        if is_whole and not has_changes and not needs_permission(self.model):
            return self.path
        whole = with_data(self.model)
        kept = {name for port in converted.inputs for name in (str(port), *port.names)}
        proto = whole if is_whole else cut_model(opened(whole), cut, kept)
        proto = with_renamed_ports(proto, options.rename)
        if has_preprocessing(ir):
            proto = with_preprocessing(proto, ir)
        if has_half_weights(ir):
            proto = with_half_weights(proto, ir) or proto
        path = folder / "reference.onnx"
        path.write_bytes((of_unknown_sizes(proto) if any_sizes else proto).SerializeToString())
        self.model = load(str(path))
        return path

    # -- the IR

    def _ran(self, found: ExpectedSets, target: Path, pool: Pool) -> tuple[PlainSide, Side]:
        """The IR with all sets in f32; once more with larger sizes for those that OpenVINO refuses."""
        plain = PlainSide(found, self.settings, self.notes, pool)
        side = plain.ran(F32, target)
        if plain.refused and found.enlarge(plain.refused, target):
            side = plain.ran(F32, target)
        if found.leave_out_misshapen(row for row in side.rows if row.result.kind == "shape"):
            side = plain.ran(F32, target)
        if side.passed and not side.rows:
            raise NotComparableError(
                "nothing could be compared", why=self.notes[-1], hint="give inputs: --input-data FILE.npz", 
            )  # fmt: skip
        return plain, side

    # -- reasons

    def _explained(
        self, deciding: Deciding, sides: Sequence[Side], plain: PlainSide, pieces: Pieces | None
    ) -> tuple[Any, Any]:
        """The first piece that differs and the pass that changed the numbers, if they are wanted and there are any.

        For a page all tensors are compared, whether outputs differ or not. The side is the one in f32, but if it
        passes, the one in the other precision.
        """
        settings = self.settings
        found: Any = None if pieces is None else pieces.difference
        own = [side for side in sides if not side.name.startswith(AGAINST)]
        side = own[-1] if own[0].passed else own[0]
        wanted = settings.dump is not None or ((settings.layers or settings.passes) and not side.passed)
        if not wanted or side.status == NOT_RESHAPABLE:
            return found, None
        precision = "" if side.name == F32 else side.name
        if settings.layers and (found is None or settings.dump is not None):
            if pieces is None or precision or settings.dump is not None:
                question = deciding.question(side, plain, precision, settings.dump)
                pieces = pieces_of(question, settings.limit, runs=side.status in (PASSED, DIFFERS))
            open_ones = f"{UNKNOWN}{'; '.join(pieces.undecided)}" if pieces.undecided else VANISHES
            found = open_ones if pieces.difference is None else pieces.difference
        if side.passed or precision:  # passes change the numbers in f32 too
            return None if side.passed and found == VANISHES else found, None
        vanishes = found == VANISHES or getattr(found, "vanishes", False)
        return found, passes_of(deciding.question(side, plain)) if settings.passes or vanishes else None

    def _save_piece(self, pieces: Pieces | None) -> None:
        """Write the piece that differs, as a model with its inputs, to the folder of `save`."""
        if self.settings.save is None or pieces is None or pieces.piece is None:
            return
        folder, (model, inputs) = Path(self.settings.save), pieces.piece
        (folder / "piece.onnx").write_bytes(model)
        save(folder / "piece.npz", inputs.items())
        self.notes.append(f"{folder / 'piece.onnx'} is the piece that differs, and {folder / 'piece.npz'} its inputs")

    def _cause(self, side: Side, layers: Any, converted: Model, plain: PlainSide, folder: Path) -> str:
        """Why outputs differ, where `layers` is wanted."""
        if not self.settings.layers:
            return ""

        def exact() -> Side | None:
            if self.options.quantization == "exact":
                return None
            target = folder / "exact.xml"
            options = replace(self.options, quantization="exact")
            save_model(Model(Conversion(options).run(str(self.path))), target, options.compress_to_fp16)
            return plain.ran(F32, target, "exact")

        config = self.options.config
        disabled = set(config.disabled) if config is not None else set()
        return cause_of(side, layers, converted.graph, disabled, exact)

    def _page(self, layers: Any) -> str:
        """The path of the page with the differences; empty if there is none, or the comparison ended early."""
        if self.settings.dump is None or str(layers).startswith(UNKNOWN):
            return ""
        page = Path(self.settings.dump) / "index.html"
        return str(page) if page.exists() else ""


def _versions(settings: VerifyOptions) -> dict[str, str]:
    found = {}
    openvino = ("openvino",) if settings.python is None else ()
    for package in ("mo_loop", *openvino, "onnxruntime", "onnx", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def require_interface(model: OnnxModel, ir: Model, path: str) -> None:
    """UsageError if the IR has an input that the model has not, or no output of the model.

    A converter may drop an input that nothing reads, and rename one that the model returns. Of an IR with states,
    `Stepwise` finds whether it fits.
    """
    if has_states(ir.graph):
        return
    inputs, outputs = input_names(model), [entry.name for entry in model.proto.graph.output]
    foreign = [port for port in ir.inputs if not _names(port).intersection(inputs)]
    common = [port for port in ir.outputs if _names(port).intersection(outputs)]
    is_short = len(ir.inputs) != len(inputs) or len(ir.outputs) != len(outputs)
    if (foreign and is_short) or not (common or len(ir.outputs) == len(outputs)):
        raise UsageError(
            f"{path} is not the IR of this model",
            why=f"the model has {_interface(inputs, outputs)}, the IR has {_interface(ir.inputs, ir.outputs)}",
            hint="give the IR of this model, or none: then the model is converted",
        )


def _names(port: Any) -> set[str]:
    return {str(port), *port.names}


def _interface(inputs: Iterable[Any], outputs: Iterable[Any]) -> str:
    return f"inputs {_listed(inputs)} and outputs {_listed(outputs)}"


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names)) or "none"
