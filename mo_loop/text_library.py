"""The library of the package openvino_tokenizers, which has operations on texts.

    note(graph)                  # ML561 and an entry of the rt_info, if the IR needs the library
    add_to(core, xml)            # the library of the installed package, if the IR in these bytes needs it

The library is compiled for one release of OpenVINO, that of the package: 2026.4.1.0 fits OpenVINO 2026.4.1. Neither
function imports the package: its import adds the library to all later objects `openvino.Core` of the process.
"""

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mo_loop.errors import ConversionWarning, InputError
from mo_loop.graph import Graph
from mo_loop.ops import Op

PACKAGE = "openvino_tokenizers"

_MARK = b'version="extension"'


def note(graph: Graph) -> None:
    """Warn with ML561 of the operations that only the library has, and record it for the summary."""
    kept = [scope for scope in graph.scopes() if any(getattr(cls, "library", "") for cls in scope.classes)]
    found = [node for scope in kept for node in scope.ordered() if isinstance(node, Op) and node.library]
    if found:
        graph.rt_info["converter"]["library"] = PACKAGE
        kinds = ", ".join(sorted({node.type for node in found}))
        text = f"{kinds} are operations of {PACKAGE}: load its library, of the same release as OpenVINO, with the IR"
        warnings.warn(ConversionWarning(text, where=found[0].origin, code="ML561"), stacklevel=2)


def library() -> Path | None:
    """The library in the installed package; None if there is none."""
    spec = find_spec(PACKAGE)
    folders = [] if spec is None else spec.submodule_search_locations or []
    found = [path for folder in folders for path in sorted(Path(folder, "lib").glob(f"*{PACKAGE}.*"))]
    return next((path for path in found if path.suffix in (".so", ".dll", ".dylib")), None)


def add_to(core: Any, xml: bytes) -> None:
    """Add the library to an `openvino.Core` if the IR needs it.

    Raises:
        InputError: the package is not installed, or is not of the release of OpenVINO.
    """
    if _MARK not in xml:
        return
    path = library()
    if path is None:
        raise InputError(
            f"the IR has operations of the package {PACKAGE}, which is not installed", code="ML203",
            hint="pip install 'mo_loop[text]'",
        )
    try:
        core.add_extension(str(path))
    except RuntimeError as error:
        raise InputError(
            f"OpenVINO does not load the library of {PACKAGE}", why=str(error).strip(), code="ML203",
            hint=f"install the release of {PACKAGE} that has the number of the installed OpenVINO",
        ) from error
