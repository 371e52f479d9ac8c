"""The IR that another converter writes: ovc of this or another OpenVINO release, or another version of this project.

    write_ir(Path("model.onnx"), Path("model.xml"), "2024.6.0")     # "ovc"; the folder of a version
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.running.samples import CONVERTERS
from tools.runtimes import interpreter

_RELEASE = """import sys, openvino
openvino.save_model(openvino.convert_model(sys.argv[1]), sys.argv[2], compress_to_fp16=False)"""
_VERSION = """import sys, mo_loop
mo_loop.save_model(mo_loop.convert_model(sys.argv[1]), sys.argv[2])"""


class NotWritten(Exception):
    """The converter refuses the model."""


def write_ir(source: Path, target: Path, converter: str) -> None:
    """Convert a model. Raises NotWritten."""
    if converter in CONVERTERS:
        try:
            CONVERTERS[converter](source, target, {})
        except Exception as error:  # the errors of ovc share no base class
            raise NotWritten(str(error)) from error
        return
    of_version = Path(converter).is_dir()
    python, code = (sys.executable, _VERSION) if of_version else (interpreter(converter), _RELEASE)
    environment = {**os.environ, "CI": "true", "PYTHONPATH": converter if of_version else ""}
    done = subprocess.run([python, "-c", code, str(source), str(target)], env=environment, capture_output=True,
                          check=False, cwd=target.parent)
    if done.returncode or not target.exists():
        raise NotWritten(done.stderr.decode(errors="replace")[-500:])
