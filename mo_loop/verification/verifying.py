"""verify: converts a model, or takes its IR, runs it beside ONNX Runtime, and compares every output.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mo_loop.api import Model, read_model, save_model
from mo_loop.conversion import Conversion
from mo_loop.errors import InputError, ModelError, UsageError
from mo_loop.frontend.external_data import needs_permission, require_external_data, with_data
from mo_loop.frontend.model import OnnxModel, load, opened
from mo_loop.frontend.onnx_graphs import all_graphs, operator_of
from mo_loop.options import ConvertOptions
from mo_loop.verification.compare import Comparison, compare_all
from mo_loop.verification.cut_model import cut_model
from mo_loop.verification.generated import Generator, accepted
from mo_loop.verification.given import read_sets, save
from mo_loop.verification.hosted import Hosted
from mo_loop.verification.isolated import IsolatedError
from mo_loop.verification.judge import PEER, brief, convert_with_ovc
from mo_loop.verification.oracle import ONNX_RUNTIME, Oracle, exact_operators
from mo_loop.verification.packages import require_packages
from mo_loop.verification.report import AGAINST, DIFFERS, ENDED, PASSED, InputSet, Report, Row, Side
from mo_loop.verification.runtime import compile_ir
from mo_loop.verification.sequence_values import flat, packed, unpacked
from mo_loop.workers import Pool

if TYPE_CHECKING:
    from mo_loop.verification.layers.distance import Distance

Feeds = dict[str, Any]
Named = list[tuple[str, Any]]

SETS, LIMIT = 3, 600.0
"""The number of generated sets; the seconds that one call of a runtime may take."""

F32, DEFAULT = "f32", "default"
PRECISIONS = (F32, "f16", "bf16", DEFAULT)
"""The values of `precision`."""


@dataclass(frozen=True)
class Settings:
    """What `verify` was asked for, besides the model."""

    inputs: Sequence[Any] = ()
    sets: int = SETS
    seed: int = 0
    rtol: float | None = None
    atol: float | None = None
    device: str = "CPU"
    precision: str = F32
    against: Sequence[str] = ()
    save: Path | None = None
    limit: float = LIMIT
    layers: bool = False
    passes: bool = False
    memory: int | None = None
    dump: Path | None = None


def verify(
    model: Any,
    ir: str | os.PathLike[str] | None = None,
    *,
    inputs: Sequence[str | os.PathLike[str] | Mapping[str, Any]] = (),
    sets: int = SETS,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    device: str = "CPU",
    precision: str = F32,
    against: Sequence[str] = (),
    save: str | os.PathLike[str] | None = None,
    limit: float = LIMIT,
    layers: bool = False,
    passes: bool = False,
    memory: int | None = None,
    dump: str | os.PathLike[str] | None = None,
    options: ConvertOptions | None = None,
) -> Report:
    """Compare the IR of an ONNX model with ONNX Runtime.

    Args:
        model: path of an .onnx file, the bytes of one, or an `onnx.ModelProto`.
        ir: the .xml of its IR; without it the model is converted, with `options`.
        inputs: sets of inputs: .npz files, .npy files, folders of .pb in the layout of ONNX's tests, or arrays by name.
            Without them, `sets` of them are generated from `seed`.
        rtol, atol: tolerances; the usual ones are those of `mo_loop.verification.compare`.
        device, precision: of OpenVINO. A precision other than f32 is compared beside f32, so that its cost is told
            apart from an error of conversion.
        against: other converters to compare with: "ovc".
        save: a folder for the inputs and the outputs of all sides, as .npz.
        limit: seconds that one call of a runtime may take.
        layers: where outputs differ, find the first tensor that does, also inside bodies, with its iteration.
        passes: where outputs differ, find the pass of the conversion that changed the numbers.
        memory: bytes that the values of both sides may take for `layers`; by default a quarter of the machine's memory.
        dump: a folder for the dump of the conversion (docs/dump.md) and its page, on which every tensor has the colour
            of its difference, whether outputs differ or not. It implies `layers`.

    Raises:
        InputError: the model, the IR, an input or an argument is wrong; a package is missing.
        UnsupportedError: the model cannot be converted.
    """
    _require(device, precision, against, sets)
    settings = Settings(
        tuple(inputs), sets, seed, rtol, atol, device, precision, tuple(against), None if save is None else Path(save),
        limit, layers or dump is not None, passes, memory, None if dump is None else Path(dump),
    )  # fmt: skip
    if settings.dump is not None:  # it is written in the end: whether it can be is said now
        from mo_loop.dump.run_folder import RunFolder

        RunFolder(settings.dump).begin()
    with _as_file(model) as path:
        return _Verification(path, None if ir is None else Path(ir), options or ConvertOptions(), settings).run()


def _require(device: str, precision: str, against: Sequence[str], sets: int) -> None:
    require_packages()
    if precision not in PRECISIONS:
        raise UsageError(f"precision is {precision!r}", hint=f"give one of {', '.join(PRECISIONS)}")
    unknown = [each for each in against if each != PEER]
    if unknown:
        raise UsageError(f"the converter {unknown[0]!r} is not known", hint=f"give {PEER}")
    if sets < 1:
        raise UsageError(f"{sets} sets of inputs cannot be compared", hint="give at least 1")


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

    def __init__(self, path: Path, ir: Path | None, options: ConvertOptions, settings: Settings) -> None:
        self.path = path
        self.ir = ir
        self.options = options
        self.settings = settings
        self.notes: list[str] = []
        self._distances: dict[tuple[str, int, str], Distance] = {}
        """The worst distance of an output, by the side and the number of the set; only for a dump."""
        self.model: OnnxModel = load(str(path), options.allowed_folders)
        require_external_data(self.model)  # ONNX Runtime and onnx read it too
        self._require_comparable()

    def run(self) -> Report:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="mo-loop-") as name:
            folder = Path(name)
            target, converted = self._converted(folder)
            source = self._reference(folder)
            sets, expected, oracle = self._expected(source, converted)
            self._save("inputs", {number: feeds.items() for number, (_, feeds) in enumerate(sets)})
            self._save("onnxruntime", dict(enumerate(expected)))
            order = (*range(len(sets)), *reversed(range(len(sets))))
            sides = [self._ran(F32, target, sets, expected, order)]
            if self.settings.precision != F32:
                sides.append(self._ran(self.settings.precision, target, sets, expected, order))
            sides += [self._other(each, folder, sets, expected, order) for each in self.settings.against]
            layers, passes = self._explained(source, sets, self._questionable(sides))
            page = self._page(layers)
        self._note_about(oracle, expected)
        settings = self.settings
        return Report(
            str(self.path), "" if self.ir is None else str(self.ir), oracle, settings.device,
            tuple(InputSet(name, {key: _type(value) for key, value in feeds.items()}) for name, feeds in sets), order,
            tuple(sides), (settings.rtol, settings.atol), tuple(dict.fromkeys(self.notes)), _versions(),
            time.perf_counter() - start, layers, passes, page,
        )  # fmt: skip

    # -- both models

    def _require_comparable(self) -> None:
        """UsageError for options that make the IR compute something else than the model does."""
        options = self.options
        given = {
            "--mean-values": options.mean_values, "--scale-values": options.scale_values, "--scale": options.scale,
            "--reverse-input-channels": options.reverse_input_channels or None,
            "--layout": options.layout if "->" in str(options.layout) else None,
        }  # fmt: skip
        for flag, value in given.items():
            if value is not None:
                raise UsageError(
                    f"verify does not compare with {flag}", why="the IR then computes more than the model",
                    hint="verify the conversion without it",
                )  # fmt: skip

    def _converted(self, folder: Path) -> tuple[Path, Model]:
        """The path of the IR, and its graph."""
        if self.ir is not None:
            return self.ir, read_model(self.ir)
        converted = Model(Conversion(self.options).run(str(self.path)))
        target = folder / "model.xml"
        save_model(converted, target, self.options.compress_to_fp16)
        return target, converted

    def _reference(self, folder: Path) -> Path:
        """The file that ONNX Runtime runs: the model, or one that begins and ends where the conversion does."""
        cut = Conversion(self.options).cut(self.model)
        is_whole = cut.inputs is None and cut.outputs is None
        if is_whole and not needs_permission(self.model):
            return self.path
        whole = with_data(self.model)
        path = folder / "cut.onnx"
        path.write_bytes((whole if is_whole else cut_model(opened(whole), cut)).SerializeToString())
        self.model = load(str(path))
        return path

    # -- inputs and expected outputs

    def _expected(self, source: Path, converted: Model) -> tuple[list[tuple[str, Feeds]], list[Named], str]:
        """The sets that ONNX Runtime accepts, what it gives for each, and who computed it."""
        try:
            oracle = Hosted(Oracle, str(source), limit=self.settings.limit)
        except IsolatedError as error:
            raise ModelError(
                f"ONNX Runtime does not run {self.path}", why=brief(error), code="ML229",
                hint="there is nothing to compare with",
            ) from None  # fmt: skip
        try:
            if self.settings.inputs:
                sets, expected = self._given(oracle)
            else:
                sets, expected = self._generated(oracle, converted)
        finally:
            oracle.close()
        name, reason = oracle.facts
        if reason:
            self.notes.append(f"the expected values are those of {name}: {reason}")
        return sets, expected, name

    def _given(self, oracle: Hosted) -> tuple[list[tuple[str, Feeds]], list[Named]]:
        sets = read_sets(self.settings.inputs, self.model)
        expected = []
        for name, feeds in sets:
            try:
                expected.append(oracle.run(feeds))
            except IsolatedError as error:
                raise InputError(f"ONNX Runtime does not accept the inputs {name}", why=brief(error)) from None
        return sets, expected

    def _generated(self, oracle: Hosted, converted: Model) -> tuple[list[tuple[str, Feeds]], list[Named]]:
        """Sets that ONNX Runtime accepts, and what it gives for each."""
        generator = Generator(self.model, shapes_of(converted), self.settings.seed)
        found = accepted(generator, self.settings.sets, oracle.run)
        if found.missing:
            text = ", ".join(found.missing)
            self.notes.append(f"ONNX Runtime does not accept these inputs, which were left out: {text}")
        return found.sets, found.expected

    # -- the sides

    def _ran(
        self, precision: str, target: Path, sets: Sequence[tuple[str, Feeds]], expected: Sequence[Named],
        order: Sequence[int], name: str = "",
    ) -> Side:  # fmt: skip
        """Run an IR and compare."""
        start = time.perf_counter()
        name = name or precision
        rows: dict[tuple[int, str], Row] = {}
        found: dict[int, Named] = {}
        refused: set[int] = set()
        status, message, compiled = "not compilable", "", None
        try:
            for inference, number in enumerate(order):
                if number in refused:
                    continue
                compiled = compiled or self._compiled(target, precision)
                set_name, feeds = sets[number]
                status, message = "fails", f"inference {inference} ({set_name}): "
                try:
                    outputs = compiled.run(packed(feeds, {name for names in compiled.facts[0] for name in names}))
                except IsolatedError as error:
                    if error.status != "error" or not is_empty(feeds):
                        raise
                    # Many operations of the runtime refuse tensors without elements: a limit, not a difference.
                    self.notes.append(f"OpenVINO ({name}) does not run the inputs {set_name}: {brief(error)}")
                    refused.add(number)
                    compiled.close()  # an inference after one that failed can fail for the same reason
                    compiled = None
                    continue
                found[number] = unpacked(outputs, expected[number])
                self._measure(name, number, expected[number], found[number])
                for row in self._compared(number, inference, expected[number], found[number]):
                    known = rows.get((number, row.output))
                    if known is None or (known.result and not row.result):
                        rows[number, row.output] = row
            status, message = PASSED if all(row.result for row in rows.values()) else DIFFERS, ""
        except IsolatedError as error:
            status, message = ENDED.get(error.status, status), message + brief(error)
        finally:
            if compiled is not None:
                compiled.close()
        self._save(name, found)
        return Side(name, status, message, tuple(rows.values()), time.perf_counter() - start)

    def _compiled(self, target: Path, precision: str) -> Hosted:
        settings = self.settings
        properties = _properties(precision, settings.device)
        return Hosted(compile_ir, str(target), properties, settings.device, limit=settings.limit)

    def _compared(self, number: int, inference: int, expected: Named, found: Named) -> Iterator[Row]:
        wanted, found = flat(expected), flat(found)
        have = _named(wanted, found)
        for result in compare_all(wanted, found, rtol=self.settings.rtol, atol=self.settings.atol):
            left, right = dict(wanted).get(result.name), have.get(result.name)
            if result.kind == "shape" and np.size(np.asarray(left)) == np.size(np.asarray(right)) == 0:
                # ONNX Runtime writes 0 for the dimensions of results of no iterations, which it does not know.
                self.notes.append(f"{result.name} is empty on both sides, and {result.message}")
                result = Comparison(result.name)
            yield Row(number, inference, _type(left), _type(right), result)

    def _measure(self, side: str, number: int, expected: Named, found: Named) -> None:
        """Keep how far the outputs are apart, if a page is to show it."""
        if self.settings.dump is None:
            return
        from mo_loop.verification.layers.distance import distance

        wanted = flat(expected)
        have = _named(wanted, flat(found))
        for name in (name for name, _ in wanted if name in have):
            measured = distance(dict(wanted)[name], have[name], self.settings.rtol, self.settings.atol)
            known = self._distances.get((side, number, name))
            if known is None or measured.worst > known.worst:
                self._distances[side, number, name] = measured

    def _other(
        self, converter: str, folder: Path, sets: Sequence[tuple[str, Feeds]], expected: Sequence[Named],
        order: Sequence[int],
    ) -> Side:  # fmt: skip
        """Another converter, in a process of its own."""
        name = f"{AGAINST}{converter}"
        target = folder / f"{converter}.xml"
        with Pool(f"{__name__}:convert_otherwise", limit=self.settings.limit) as pool:
            outcome = pool.call((str(self.path), str(target)))
        if not outcome.ok:
            return Side(name, ENDED.get(outcome.status, "refused"), outcome.message)
        return self._ran(F32, target, sets, expected, order, name)

    def _save(self, side: str, found: Mapping[int, Iterable[tuple[str, Any]]]) -> None:
        """Write the arrays of each set, if they are wanted."""
        folder = self.settings.save
        if folder is None:
            return
        for number, outputs in found.items():
            save(folder / f"set{number}-{side.replace(' ', '-')}.npz", outputs)

    # -- reasons

    def _questionable(self, sides: Sequence[Side]) -> Side:
        """The side whose tensors are compared: the one in f32, but if it passes, the one in the other precision."""
        own = [side for side in sides if not side.name.startswith(AGAINST)]
        return own[-1] if own[0].passed else own[0]

    def _explained(self, source: Path, sets: Sequence[tuple[str, Feeds]], side: Side) -> tuple[Any, Any]:
        """The first tensor that differs and the pass that changed the numbers, if they are wanted and there are any.

        For a page all tensors are compared, whether outputs differ or not.
        """
        from mo_loop.verification.explaining import VANISHES, Question, layers_of, passes_of

        settings = self.settings
        if not (settings.layers or settings.passes) or (side.passed and settings.dump is None):
            return None, None
        precision = "" if side.name == F32 else side.name
        # The sets that differ; all, in their order, if the IR failed or none does.
        differing = sorted({row.set for row in side.rows if not row.result}) or range(len(sets))
        ir = None if self.ir is None else str(self.ir.absolute())
        question = Question(  # a worker that started earlier may be in another folder
            str(self.path.absolute()), str(source.absolute()), ir, self.options,
            [sets[number][0] for number in differing], [sets[number][1] for number in differing],
            settings.rtol, settings.atol, settings.memory,
            dump=None if settings.dump is None else str(settings.dump.absolute()), precision=precision,
            properties=_properties(precision, "CPU") if precision else None,
            outputs=[
                (output, found) for (name, number, output), found in self._distances.items()
                if name == side.name and number in differing
            ],
        )  # fmt: skip
        layers = layers_of(question, settings.limit) if settings.layers else None
        if side.passed or precision:  # passes change the numbers in f32 too
            return None if side.passed and layers == VANISHES else layers, None
        vanishes = layers == VANISHES or getattr(layers, "vanishes", False)
        passes = passes_of(question) if settings.passes or vanishes else None
        return layers, passes

    def _page(self, layers: Any) -> str:
        """The path of the page with the differences; empty if there is none, or the comparison ended early."""
        from mo_loop.verification.explaining import UNKNOWN

        if self.settings.dump is None or str(layers).startswith(UNKNOWN):
            return ""
        page = self.settings.dump / "index.html"
        return str(page) if page.exists() else ""

    # -- notes

    def _note_about(self, oracle: str, expected: Sequence[Named]) -> None:
        """Say what limits the comparison."""
        exact = exact_operators(str(self.path))
        if exact and oracle == ONNX_RUNTIME:
            self.notes.append(
                f"{', '.join(exact)}: products of u8 and s8 saturate in ONNX Runtime on processors without VNNI; "
                "session.x64quantprecision=1 is set against it"
            )
        for name in returned_inputs(self.model):
            self.notes.append(
                f"{name}: a body of Scan returns one of its inputs, for which ONNX Runtime can give memory that was "
                "never written"
            )
        values = [value for named in expected for _, value in named if isinstance(value, np.ndarray)]
        floats = [value for value in values if value.dtype.kind == "f" and value.size]
        if floats and all(np.isnan(value).all() for value in floats):
            self.notes.append("every expected number is NaN, so the comparison shows little: give other inputs")


def convert_otherwise(task: tuple[str, str]) -> None:
    """What a worker runs: OpenVINO's own converter."""
    source, target = task
    convert_with_ovc(Path(source), Path(target))


def returned_inputs(model: OnnxModel) -> list[str]:
    """The Scan nodes whose body returns one of its inputs."""
    found = []
    for graph in all_graphs(model):
        for node in graph.nodes:
            if operator_of(node) != "Scan":
                continue
            bodies = list(graph.bodies(node))
            if any(set(body.input_names) & set(body.output_names) for body in bodies):
                found.append(graph.path_of(node))
    return found


# -- values


def is_empty(feeds: Mapping[str, Any]) -> bool:
    """Whether an input has no elements."""
    return any(np.size(value) == 0 for value in feeds.values() if not isinstance(value, list))


def _named(wanted: Named, found: Named) -> dict[str, Any]:
    """The outputs by the names that are wanted; by position where the runtime gives an output another of its names."""
    have = dict(found)
    if all(name in have for name, _ in wanted):
        return have
    return {name: array for (name, _), (_, array) in zip(wanted, found, strict=False)}


def _type(value: Any) -> str:
    if isinstance(value, list):
        return f"list of {len(value)}"
    if value is None:
        return "none"
    array = np.asarray(value)
    return f"{array.dtype.name}[{','.join(map(str, array.shape))}]"


def shapes_of(converted: Model) -> dict[str, Sequence[int | None] | None]:
    """The shape of each input of the IR by all its names, with None for sizes that are not known."""
    found: dict[str, Sequence[int | None] | None] = {}
    for port in converted.inputs:
        shape = None if port.shape is None else tuple(dim if isinstance(dim, int) else None for dim in port.shape)
        found.update(dict.fromkeys((port.name, *port.names), shape))
    return found


def _properties(precision: str, device: str) -> dict[str, Any]:
    """All processors, and the precision; `default` leaves it to the device."""
    found: dict[str, Any] = {"INFERENCE_NUM_THREADS": 0, "INFERENCE_PRECISION_HINT": precision}
    if precision == DEFAULT:
        found |= {"INFERENCE_PRECISION_HINT": None, "DYNAMIC_QUANTIZATION_GROUP_SIZE": None}
    if not device.startswith("CPU"):  # they are properties of the CPU device
        found |= {"INFERENCE_NUM_THREADS": None, "NUM_STREAMS": None, "DYNAMIC_QUANTIZATION_GROUP_SIZE": None}
    return found


def _versions() -> dict[str, str]:
    found = {}
    for package in ("mo_loop", "openvino", "onnxruntime", "onnx", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
