"""The work of one side of a row: a command, and the model that it needs.

    convert(Model("chain", 3000))        mo-loop convert {model} --quiet -o {out}.xml
    ovc(Model("chain", 3000))            ovc {model} --output_model {out}.xml --compress_to_fp16=False

`{model}`, `{data}` (its external data) and `{out}` become paths; the program becomes that of the
environment of this interpreter.
"""

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

WRITERS = Path(__file__).with_name("model_writers.py")
MODULES = {"mo-loop": "mo_loop", "ovc": "openvino.tools.ovc"}


@dataclass(frozen=True)
class Model:
    """A model of a kind of model_writers.py. `size` is a number of nodes, of models, or of GB of weights."""

    kind: str
    size: float


@dataclass(frozen=True)
class Work:
    """A command with the model that it needs, and the name of its side in the table.

    In one round it runs `times` times, and the median counts. `units` is for commands whose work is not all of the
    model. A command that `reports` prints its seconds itself, as JSON.
    """

    side: str
    command: tuple[str, ...]
    model: Model | None = None
    times: int = 1
    units: int = 1
    reports: bool = False


def convert(model: Model, *options: str, times: int = 1) -> Work:
    return Work("mo-loop", ("mo-loop", "convert", "{model}", "--quiet", "-o", "{out}.xml", *options), model, times)


def ovc(model: Model, compress: bool = False) -> Work:
    command = ("ovc", "{model}", "--output_model", "{out}.xml", f"--compress_to_fp16={compress}")
    return Work("ovc", command, model)


def copy(model: Model, what: str = "{data}") -> Work:
    return Work("cp", ("cp", what, "{out}"), model)


def batch(models: int, workers: int) -> Work:
    command = ("mo-loop", "batch", "{model}", "--force", "--quiet", "-o", "{out}", "-j", str(workers))
    return Work("mo-loop" if workers > 1 else "one worker", command, Model("folder", models), units=models)


def shell_loop(models: int) -> Work:
    """ovc for four models of a hundred, one after the other."""
    loop = 'for model in "$0"/*00.onnx "$0"/*25.onnx "$0"/*50.onnx "$0"/*75.onnx; do "$@" "$model" || exit; done'
    program = ("ovc", "--compress_to_fp16=False", "--output_model", "{out}.xml")
    return Work("ovc", ("sh", "-c", loop, "{model}", *program), Model("folder", models), units=models * 4 // 100)


class Models:
    """The model files of a run, each written once by a process of its own."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._say = say
        self._nodes: dict[Model, int] = {}

    def path(self, model: Model) -> Path:
        """The file, or the folder of `folder`; it is written if it is not there."""
        path = self._folder / f"{model.kind}-{model.size:g}{'' if model.kind == 'folder' else '.onnx'}"
        if model not in self._nodes:
            self._say(f"writing {path.name}")
            command = [sys.executable, str(WRITERS), model.kind, str(model.size), str(path)]
            printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            self._nodes[model] = int(printed)
        return path

    def nodes(self, model: Model) -> int:
        """Its number of nodes, with those of its bodies."""
        self.path(model)
        return self._nodes[model]

    def remove(self, model: Model) -> None:
        """Delete the files of a model that is not needed any more."""
        if self._nodes.pop(model, None) is None:
            return
        path = self._folder / f"{model.kind}-{model.size:g}.onnx"
        for each in (path, data_of(path)):
            each.unlink(missing_ok=True)


def data_of(path: Path) -> Path:
    """The file with the external data of a model."""
    return path.with_name(f"{path.name}.data")


def command_of(work: Work, models: Models, out: Path) -> list[str]:
    """The command line of a work, with paths, and the program as a user runs it."""
    model = models.path(work.model) if work.model is not None else out  # without a model no part names it
    names = {"model": str(model), "data": str(data_of(model)), "out": str(out)}
    found: list[str] = []
    for each in work.command:
        if each in MODULES:
            found += program(each)
        else:
            found.append(sys.executable if each == "python" else _filled(each, names))
    return found


def _filled(text: str, names: dict[str, str]) -> str:
    for name, path in names.items():
        text = text.replace(f"{{{name}}}", path)
    return text


def program(name: str) -> list[str]:
    """The console script next to this interpreter; if there is none, the module."""
    found = shutil.which(name, path=sysconfig.get_path("scripts"))
    return [found] if found else [sys.executable, "-m", MODULES[name]]
