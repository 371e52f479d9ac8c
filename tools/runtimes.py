"""Environments with other OpenVINO releases, in which the IR that is written here can be run.

    python tools/runtimes.py                    # the three main ones, under build/runtimes/RELEASE
    python tools/runtimes.py --every            # one of every minor release from 2024.6 on
    python tools/runtimes.py 2025.2.0           # this one
    python tools/runtimes.py gpu arm            # the newest one on emulated devices (tools/gpu, tools/arm)
    python tools/runtimes.py gpu-2025.4.1       # another one on a device
    python tools/fuzz_controlflow.py --against mo_loop --runtime 2024.6.0
    MO_LOOP_RUNTIME=2024.6.0 python -m pytest tests/runtime
    MO_LOOP_RUNTIME=gpu python -m pytest tests/runtime

An environment has OpenVINO and what `mo_loop.compare.execution.runtime` imports. Models are converted, and expected
values are computed, in the environment of the caller. Every release here has wheels for Python 3.11 and works with
numpy 2, so both sides can read each other's arrays.
"""

import argparse
import os
import shutil
import sys
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.arm import environment as arm
from tools.gpu import environment as gpu
from tools.installing import NotPossible, install

FOLDER = Path(__file__).resolve().parents[1] / "build" / "runtimes"
MAIN = ("2024.6.0", "2025.4.1", "2026.4.1")
EVERY = (
    "2024.6.0", "2025.0.0", "2025.1.0", "2025.2.0", "2025.3.0", "2025.4.1", "2026.0.0", "2026.1.0", "2026.2.1",
    "2026.3.1", "2026.4.1",
)
DEVICES = {"gpu": gpu.make, "arm": arm.make}
VARIABLE = "MO_LOOP_RUNTIME"
"""The environment variable with the release on which the tests run the IR; the installed one if it is not set."""


def main(arguments: list[str] | None = None) -> int:
    """Make the environments that do not exist yet; 1 if one cannot be made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="releases; by default " + ", ".join(MAIN))
    parser.add_argument("--every", action="store_true", help="one of every minor release: " + ", ".join(EVERY))
    options = parser.parse_args(arguments)
    releases = options.releases or (EVERY if options.every else MAIN)
    return int(not all([_make(release) for release in releases]))


def interpreter(release: str) -> str:
    """The Python interpreter of a release. FileNotFoundError if its environment has not been made."""
    found = _python(FOLDER / release)
    if not found.exists():
        text = f"no environment for OpenVINO {release} in {FOLDER}: run `make runtimes ARGS={release}`"
        raise FileNotFoundError(text)
    return str(found)


def chosen_interpreter() -> str | None:
    """The interpreter of the release that the environment variable names; None if it is not set."""
    release = os.environ.get(VARIABLE)
    return interpreter(release) if release else None


def device(python: str | None) -> str:
    """The device of OpenVINO on which an interpreter of `interpreter` runs the IR."""
    name = "" if python is None else Path(python).parents[1].name
    return "GPU" if name.partition("-")[0] == "gpu" else "CPU"


def release_of(runtime: str) -> str:
    """The release of an environment: 2025.4.1 of "2025.4.1" and "gpu-2025.4.1", the newest one of "gpu"."""
    name, _, release = runtime.partition("-")
    return (release or MAIN[-1]) if name in DEVICES else runtime


def _make(name: str) -> bool:
    """Whether the environment exists, or can be made. One of a device has to exist in CI alone: elsewhere its tests are
    skipped."""
    folder, device = FOLDER / name, name.partition("-")[0]
    if _python(folder).exists():
        print(f"{name}: exists")
        return True
    shutil.rmtree(folder, ignore_errors=True)
    try:
        DEVICES.get(device, _make_release)(folder, release_of(name))
    except NotPossible as error:
        shutil.rmtree(folder, ignore_errors=True)
        print(f"{name}: not made: {error}")
        return device in DEVICES and "CI" not in os.environ
    print(f"{name}: made")
    return True


def _make_release(folder: Path, release: str) -> None:
    venv.create(folder, with_pip=True)
    install(str(_python(folder)), f"openvino=={release}", "numpy>=2", "ml_dtypes")


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


if __name__ == "__main__":
    sys.exit(main())
