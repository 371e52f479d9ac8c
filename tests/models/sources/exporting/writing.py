"""A folder of models: NAME.onnx for each, and one cases.toml with the inputs to run them on, of this form:

[while_doubling]
about = "Doubles x until the sum of its magnitudes reaches a limit."
exporter = "script"
opset = 11
[while_doubling.cases.never_entered]
x = { shape = [3], dtype = "float32", seed = 2 }
limit = { shape = [], dtype = "float32", values = [0.0] }
"""

import argparse
import importlib.util
import traceback
import warnings
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import onnx

from tests.models.sources.exporting.comparing import Expected, compare
from tests.models.sources.exporting.models import Model
from tests.models.sources.exporting.protos import check, strip

Export = Callable[[Model], tuple[onnx.ModelProto, Expected]]

TESTED = Path(__file__).resolve().parents[2]
"""The folder tests/models."""

HEADER = """\
# Inputs of the models in this folder, one table a model. Written by {tool}: change them there.
# seed: numpy.random.default_rng(seed).standard_normal(shape), then cast to dtype.  values: row-major order.
"""


def main(what: str, folder: str, models: Mapping[str, Model], export: Export, **options: Any) -> int:
    """Export the models named on the command line, or all of them, into a folder of tests/models; 1 if one fails."""
    parser = argparse.ArgumentParser(description=f"Export small {what} to ONNX.")
    parser.add_argument("--out", type=Path, default=TESTED / folder, help=f"where to (default: tests/models/{folder})")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(models)}")
    given = parser.parse_args()
    require_known(parser, given.names, models)
    tool = f"tools/export_{folder}.py"
    # The exports fork, because importing the packages is slow.
    missing = write_folder(
        given.out, models, given.names or models, tool, export, sequences=None, start="fork", **options
    )
    return 1 if missing else 0


def require_known(parser: argparse.ArgumentParser, names: Collection[str], known: Collection[str]) -> None:
    """End the program if a name is not that of a model."""
    if unknown := [name for name in names if name not in known]:
        parser.error(f"unknown model: {', '.join(unknown)}")


def write_folder(folder: Path, models: Mapping[str, Model], names: Collection[str], tool: str, export: Export, *,
                 max_bytes: int, sequences: bool | None = False, domains: Collection[str] = (),
                 start: str = "spawn") -> list[str]:
    """Export the models of the given names, and write cases.toml for the whole folder. Returns the names not written.

    Not written are models above `max_bytes`, and models whose export fails: the reason is printed, and the others are
    exported. With onnxruntime installed, every case is compared with the framework. Each model has a process of its own
    (`start` is the start method): names in a file depend on earlier exports of the same process.
    """
    comparing = importlib.util.find_spec("onnxruntime") is not None
    folder.mkdir(parents=True, exist_ok=True)
    missing = []
    for name in names:
        model = models[name]
        line = f"{name:24} {model.exporter:8} opset {model.opset:2}"
        with ProcessPoolExecutor(1, get_context(start)) as process:
            task = process.submit(exported, model, export, comparing, sequences, domains)
        if (error := task.exception()) is not None:
            traceback.print_exception(error)
            print(f"{line}  failed: {type(error).__name__}", flush=True)
            missing.append(name)
            continue
        data, difference = task.result()
        line += f" {len(data):7} bytes  " + (f"max difference {difference:.1e}" if comparing else "not compared")
        if len(data) <= max_bytes:
            (folder / f"{name}.onnx").write_bytes(data)
        else:
            line += f"; left out, above {max_bytes} bytes"
            missing.append(name)
        print(line, flush=True)
    there = {name: model for name, model in models.items() if (folder / f"{name}.onnx").exists()}
    (folder / "cases.toml").write_text(cases_toml(there, tool), encoding="utf-8")
    return missing


def exported(model: Model, export: Export, comparing: bool, sequences: bool | None,
             domains: Collection[str]) -> tuple[bytes, float]:
    """The bytes of the ONNX file, and the largest difference to the framework (0 if not compared)."""
    warnings.filterwarnings("ignore")
    proto, expected = export(model)
    strip(proto)
    check(proto, sequences, domains)
    data = proto.SerializeToString(deterministic=True)
    return data, compare(data, model.listed, expected) if comparing else 0.0


def cases_toml(models: Mapping[str, Model], tool: str) -> str:
    """The inputs of every model, as the text of cases.toml."""
    lines = [HEADER.format(tool=tool)]
    for name, model in models.items():
        lines += [f"[{name}]", f'about = "{model.about}"', f'exporter = "{model.exporter}"', f"opset = {model.opset}"]
        for case, inputs in model.listed.items():
            lines += [f"[{name}.cases.{case}]", *(f"{_key(key)} = {data.toml()}" for key, data in inputs.items())]
        lines += [""]
    return "\n".join(lines)


def _key(name: str) -> str:
    """A name as a key of TOML, where a dot without quotes begins a table."""
    return f'"{name}"' if "." in name else name
