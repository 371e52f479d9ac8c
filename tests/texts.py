"""Files of texts that are tests: their sections begin with `# file NAME`, `# case NAME` or `# text NAME`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

SECTION = re.compile(r"^# (file|case|text) (.+)\n", re.MULTILINE)


def sections(path: Path) -> list[tuple[str, str, str]]:
    """The kind, the name and the text of each section."""
    _, *parts = SECTION.split(path.read_text("utf-8"))
    return list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))


def texts(module: str) -> dict[str, str]:
    """The texts that the file next to a module has in its sections `# text NAME`: models, as ONNX or IR."""
    found = sections(Path(module).with_suffix(".txt"))
    return {name: text.rstrip("\n") + "\n" for kind, name, text in found if kind == "text"}


MODEL = re.compile(r"^\w+ *\((?=.*=>).*", re.MULTILINE | re.DOTALL)
"""A model in the text form of ONNX, to the end of the text."""


def model_of(name: str, text: str, opset: str = "18") -> tuple[str, onnx.ModelProto | None]:
    """The name of a file, and the model that its text describes, if it is one. `m.onnx my=1` and an opset `18 my=1`
    import another domain."""
    from tests.harness import parsed  # not for the programs that only read texts

    name, *domains = name.split()
    version, *more = opset.split()
    imports = {domain: int(of) for domain, of in (each.split("=") for each in (*domains, *more))}
    is_model = name.endswith(".onnx") and MODEL.search(text)
    return name, parsed(text, int(version), **imports) if is_model else None
