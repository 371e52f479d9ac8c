"""An environment in which OpenVINO's GPU plugin runs on a machine without a GPU: see layer.c.

    make gpu                                    # build/runtimes/gpu; ARGS=gpu-2025.4.1 for another release
    build/runtimes/gpu/bin/python model.py      # openvino.Core().available_devices has GPU

It needs Debian or a system like it: the loader of OpenCL (ocl-icd) with layers, its headers, and a C compiler, which
are installed from the system's packages where this process may. Intel's OpenCL runtime for CPUs comes from PyPI.
"""

import shutil
import venv
from pathlib import Path

from tools.installing import install, install_from_debian, require_linux, run, write_program

LAYER = Path(__file__).with_name("layer.c")
HEADER = Path("/usr/include/CL/cl_layer.h")
SYSTEM_PACKAGES = ("gcc", "libc6-dev", "ocl-icd-libopencl1", "opencl-headers")
OPENCL = ("intel-opencl-rt==2026.2.0", "intel-cmplr-lib-rt==2026.2.0")


def make(folder: Path, release: str) -> None:
    """Make the environment of a release in a new folder. NotPossible with the reason where it cannot be made."""
    require_linux("Intel's OpenCL runtime for CPUs")
    _install_system_packages()
    venv.create(folder / "packages", with_pip=True)
    install(str(folder / "packages/bin/python"), f"openvino=={release}", "numpy>=2", "ml_dtypes", *OPENCL)
    libraries = folder / "packages/lib"
    for loader in libraries.glob("libOpenCL.so*"):  # the one of the packages has no layers
        loader.unlink()
    (folder / "icd").mkdir()
    (folder / "icd/cpu.icd").write_text(f"{libraries / 'libintelocl.so'}\n", encoding="utf-8")
    (folder / "programs").mkdir()
    run("gcc", "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-o", str(folder / "layer.so"), str(LAYER))
    # The plugin's own libtbb is older than the one that Intel's runtime needs, and the first one loaded counts.
    write_program(
        folder / "bin/python",
        f"""export OPENCL_LAYERS='{folder}/layer.so' OCL_ICD_VENDORS='{folder}/icd'
export LD_PRELOAD='{libraries}/libtbb.so.12' LD_LIBRARY_PATH='{libraries}'
export MO_LOOP_GPU_CACHE="${{MO_LOOP_GPU_CACHE-{folder}/programs}}"
exec '{folder}/packages/bin/python' "$@"
""",
    )
    code = "import openvino; assert 'GPU' in openvino.Core().available_devices, 'OpenVINO finds no GPU'"
    run(str(folder / "bin/python"), "-c", code)


def _install_system_packages() -> None:
    if not (shutil.which("gcc") and HEADER.exists() and _has_loader()):
        install_from_debian(*SYSTEM_PACKAGES)


def _has_loader() -> bool:
    roots = "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"
    return any(Path(root, "libOpenCL.so.1").exists() for root in roots)
