"""The functions of the package: `convert_model`, `read_model`, `save_model`, `check` and `batch`, and the class Model.

    model = convert_model("model.onnx")
    save_model(model, "model.xml")
    report = check("model.onnx", target="2026.4")      # the errors, warnings and notes of a conversion
    assert report, report.text()
    report = batch("models", "ir", jobs=4, verify=True)   # many models, each in a worker process
    for each in report.failures:
        print(each.model.name, each.said)

The conversion itself is in mo_loop/conversion.py. The command line has the same options.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mo_loop.batching.batch_options import BatchOptions, Places
from mo_loop.batching.storage.locations import Location, is_url, location_of
from mo_loop.conversion import Conversion
from mo_loop.converted_model import Model as Model
from mo_loop.converted_model import Port as Port
from mo_loop.converted_model import read_model as read_model
from mo_loop.converted_model import write_pair
from mo_loop.errors import UsageError
from mo_loop.frontend.model import ModelSource
from mo_loop.options import ConvertOptions
from mo_loop.support.files import keep_sources
from mo_loop.support.flags import argument, made_of, takes
from mo_loop.transforms.manager import Observer

if TYPE_CHECKING:
    from mo_loop.batching.engine import Work
    from mo_loop.batching.report import BatchReport
    from mo_loop.compare.batch_comparison import Comparing
    from mo_loop.look.diagnostics.diagnostic import CheckReport

FilePath = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True)
class ConvertArguments(ConvertOptions):
    """The arguments of `convert_model` besides the source: the options, and these."""

    compress_to_fp16: bool = field(default=False, init=False)
    """`save_model` has this argument."""
    dump: FilePath | None = argument(
        None, "A folder for the dump of the conversion: the graph as it is loaded, the changes of each pass, and a "
        "page that shows both (docs/dump.md)."
    )
    observers: Iterable[Observer] = argument(
        (), "Functions that the conversion calls: with a `mo_loop.transforms.manager.Step` after every pass, and with "
        "a `mo_loop.transforms.manager.Phase` when another part of the conversion begins and when it has ended.",
    )
    stop_after: str | None = argument(
        None, "The name of the last pass that runs. This is for debugging: OpenVINO needs the work of the later "
        "passes."
    )
    check_passes: bool | None = argument(
        None, "Check the invariants of the graph after every pass that changes it. This is slow."
    )


@takes(ConvertArguments)
def convert_model(source: ModelSource, **arguments: Any) -> Model:
    """Convert an ONNX model.

    Args:
        source: Path or URL of an .onnx file, an open binary file, the bytes of one, or an `onnx.ModelProto`. A model
            at a URL is copied to the local disk, where it stays as long as the returned Model or a copy of it.
        arguments: The options.

    Returns:
        The converted model, for `save_model` or `Model.to_openvino`.

    Raises:
        InputError: the file, the model or an argument is wrong.
        UnsupportedError: the IR cannot express a part of the model; several errors are one ConversionErrors.
        LimitError: the conversion exceeds one of `limits`.
    """
    options = made_of(ConvertArguments, arguments, "convert_model")
    observers = list(options.observers)
    if options.dump is not None:
        from mo_loop.look.dump import Dumper

        observers.insert(0, Dumper(options.dump))
    conversion = Conversion(options, observers, stop_after=options.stop_after, check_passes=options.check_passes)
    if isinstance(source, str) and is_url(source):
        return _converted_at_url(conversion, location_of(source))
    return Model(conversion.run(source))


def _converted_at_url(conversion: Conversion, where: Location) -> Model:
    """The model at a URL; its files are removed with the last copy of the Model."""
    from mo_loop.batching.storage.scratch import Scratch
    from mo_loop.batching.storage.transfers import staged

    with ExitStack() as stack:
        here = stack.enter_context(staged(where, Scratch()))
        model = Model(conversion.run(str(here.path)))
        model.graph.sources = urls = _Urls(here.urls)
        weakref.finalize(urls, stack.pop_all().close)
    return model


class _Urls(list[str]):
    """The URLs of the files of a model, which its copies share: as long as one of them exists, the files do."""


def save_model(
    model: Model, xml_path: FilePath, compress_to_fp16: bool = False, *,
    observers: Sequence[Observer] = (), durable: bool = False,
) -> None:
    """Write a model as IR: the .xml, and the .bin of the same name.

    Both files are written under temporary names and renamed at the end: after an error, older files are unchanged.

    Args:
        model: The result of `convert_model` or `read_model`.
        xml_path: The path or URL of the .xml.
        compress_to_fp16: Store f32 weights as f16. By default, numbers stay exact.
        observers: Functions that are called with a `mo_loop.transforms.manager.Phase` when compressing and writing
            begin and end.
        durable: Return only when the disk has stored the files (fsync).

    Raises:
        UsageError: an output is a file that the model was read from.
        FileError: a file cannot be written, or one with weights of the model has changed.
        LimitError: the .bin has more bytes, or the conversion takes longer, than the limits of the conversion allow.
    """
    if not isinstance(model, Model):
        name = f"{type(model).__module__}.{type(model).__qualname__}"
        is_of_openvino = name.startswith("openvino.")
        raise UsageError(
            f"save_model got an object of type {name}", why="it writes a result of convert_model or read_model",
            hint="openvino.save_model writes a model of OpenVINO" if is_of_openvino else "",
        )
    if is_url(xml_path):
        write_at_url(model, location_of(str(xml_path)), compress_to_fp16, observers)
    else:
        write_pair(model, Path(xml_path), compress_to_fp16, observers, durable=durable)


def write_at_url(
    model: Model, where: Location, compress_to_fp16: bool, observers: Sequence[Observer]
) -> tuple[int, int]:
    """Upload a model; returns the bytes of the .xml and of the .bin."""
    from mo_loop.batching.storage.scratch import Scratch
    from mo_loop.batching.storage.transfers import local_name, upload_pair

    if where.suffix != ".xml":
        raise UsageError(f"the output {where.name!r} does not end in .xml", hint="name it, for example, model.xml")
    keep_sources((where, where.with_suffix(".bin")), model.graph.sources, "give the output another name")
    with Scratch().room(where, 0) as room:
        draft = room.folder / local_name(where)
        sizes = write_pair(model, draft, compress_to_fp16, observers)
        upload_pair(draft, where)
        return sizes


@takes(ConvertOptions)
def check(model: ModelSource, **options: Any) -> CheckReport:
    """Find the errors, warnings and notes of the conversion of a model, without writing a file.

    Args:
        model: Path of an .onnx file, an open binary file, the bytes of one, or an `onnx.ModelProto`.
        options: Those of `convert_model`.

    Returns:
        The diagnostics, worst first. The report is true if it has neither errors nor warnings. If the model cannot be
        read, `refused` is the error.

    Raises:
        UsageError: an option has a value that is wrong for every model.
        ExtensionError: an extension cannot be loaded.
    """
    from mo_loop.look.diagnostics.examine import examine

    return examine(model, made_of(ConvertOptions, options, "check"))


@dataclass(frozen=True, kw_only=True)
class BatchArguments(BatchOptions):
    """The arguments of `batch` besides the models: the options, and these."""

    output: FilePath = field(kw_only=False)
    verify: bool = argument(False, "Compare each IR with ONNX Runtime. A model whose numbers differ fails.")
    comparing: Comparing | None = argument(
        None, "With `verify`: how they are compared (`mo_loop.compare.batch_comparison.Comparing`)."
    )
    options: ConvertOptions | Mapping[str, Any] | None = argument(
        None, 'The options of the conversions, as ConvertOptions or by name: {"target": "2026.4"}. Extensions must be '
        "paths, because the workers load them.",
    )


@takes(BatchArguments)
def batch(models: FilePath | Iterable[FilePath], output: FilePath, **arguments: Any) -> BatchReport:
    """Convert many ONNX models, each in a worker process: a crash or a hang fails one model alone.

    Models that are up to date are not converted again.

    Args:
        models: Files, folders (every .onnx below them), globs, URLs, or @FILE for a list of these; one or several.
        output: The folder of the .xml and .bin files, or the URL of one.
        arguments: The options.

    Returns:
        The result of each model. `passed` is true if none failed, except those in `baseline`.

    Raises:
        UsageError: a path does not exist or has no model, two models have the same output, or an argument is not valid.
        FileError: the output folder cannot be written.
    """
    from mo_loop.batching.run import BatchListener, PreparedBatch
    from mo_loop.compare.batch_comparison import Comparing

    asked = made_of(BatchArguments, {"output": output, **arguments}, "batch")
    options = ConvertOptions.of(asked.options)
    paths = [os.fspath(each) for each in ([models] if isinstance(models, str | os.PathLike) else models)]
    comparing = asked.comparing or Comparing() if asked.verify else None
    work = _work(options, comparing)
    places = Places.of(folder=output, baseline=asked.baseline)
    ready = PreparedBatch.of(paths, places, asked, lambda _: work, _plain(options), comparing)
    return ready.run(ready.batch(), BatchListener())


def _work(options: ConvertOptions, comparing: Comparing | None) -> Work:
    from mo_loop.batching.engine import Work
    from mo_loop.batching.fingerprint import of_options

    extensions = options.extension_sources
    if options.config is not None or not all(isinstance(each, str | os.PathLike) for each in extensions):
        raise UsageError(
            "a batch takes no config, and extensions as paths", why="workers are other processes",
            hint="convert the models one by one with convert_model",
        )
    facts = {"options": _plain(options), "comparing": None if comparing is None else _plain(comparing)}
    return Work(options, of_options(facts, list(map(os.fspath, extensions)), plugins=options.plugins), comparing)


def _plain(record: Any) -> dict[str, Any]:
    """The fields that are not the default, as plain data."""
    given = {each.name: getattr(record, each.name) for each in fields(record) if each.name != "extensions"}
    defaults = {each.name: each.default for each in fields(record)}
    # The default of options that take arrays is None.
    changed = {name: value for name, value in given.items()
               if value is not None and (defaults[name] is None or value != defaults[name])}
    found: dict[str, Any] = json.loads(json.dumps(changed, default=_text))
    return found


def _text(value: Any) -> str:
    """A value as text, different for different values: numpy leaves elements and digits of an array out."""
    if not hasattr(value, "tobytes"):
        return str(value)
    return f"{value.dtype}{list(value.shape)} sha256:{sha256(value.tobytes()).hexdigest()}"
