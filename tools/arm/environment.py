"""An environment in which OpenVINO's CPU plugin for ARM runs on x86-64, by emulation of user programs.

    make arm                                                        # build/runtimes/arm
    MO_LOOP_ARM=cortex-a72 build/runtimes/arm/bin/python model.py   # without f16: the default precision is f32

Processors: cortex-a72 (Raspberry Pi 4; no f16), cortex-a76 (the default; f16 is the default precision), neoverse-n1
(Graviton 2), max (SVE). It needs Debian: qemu's user mode is installed, and the packages of an arm64 Python are
unpacked, from the system's packages, where this process may. OpenVINO's wheels for aarch64 come from PyPI.
"""

import shutil
import sys
import zipfile
from pathlib import Path

from tools.installing import install_from_debian, require_linux, run, write_program

PYTHON = "3.11"
SUITE = "bookworm"
"""The Debian with this Python."""

LIBRARIES = ("libstdc++6", "libgomp1", "libatomic1", "libffi8")
GLIBC = ("2_35", "2_34", "2_31", "2_28", "2_17")
PLATFORMS = [f"--platform=manylinux_{version}_aarch64" for version in GLIBC] + ["--platform=manylinux2014_aarch64"]


def make(folder: Path, release: str) -> None:
    """Make the environment of a release in a new folder. NotPossible with the reason where it cannot be made."""
    require_linux("the emulation of ARM")
    programs = {"qemu-aarch64-static": "qemu-user-static", "mmdebstrap": "mmdebstrap"}
    if missing := [package for program, package in programs.items() if not shutil.which(program)]:
        install_from_debian(*missing)
    packages = [f"python{PYTHON}", f"python{PYTHON}-minimal", f"libpython{PYTHON}-stdlib", *LIBRARIES]
    root = folder / "root"
    folder.mkdir(parents=True)
    run("mmdebstrap", "--quiet", "--mode=root", "--variant=extract", "--architectures=arm64",
        f"--include={','.join(packages)}", SUITE, str(root))
    wheels, site = folder / "wheels", folder / "site"
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--only-binary=:all:",
        f"--python-version={PYTHON}", *PLATFORMS, f"--dest={wheels}", f"openvino=={release}", "numpy>=2",
        "ml_dtypes")
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    shutil.rmtree(wheels)
    write_program(
        folder / "bin/python",
        f"""exec qemu-aarch64-static -L '{root}' -cpu "${{MO_LOOP_ARM-cortex-a76}}" -E PYTHONPATH='{site}' \\
    -E PYTHONDONTWRITEBYTECODE=1 '{root}/usr/bin/python{PYTHON}' "$@"
""",
    )
    run(str(folder / "bin/python"), "-c", "import openvino; openvino.Core().available_devices")
