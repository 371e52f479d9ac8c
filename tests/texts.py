"""Files of texts that are tests: their sections begin with `# file NAME` or `# case NAME`."""

import re
from pathlib import Path

import onnx

from tests.harness import parsed

SECTION = re.compile(r"^# (file|case) (.+)\n", re.MULTILINE)


def sections(path: Path) -> list[tuple[str, str, str]]:
    """The kind, the name and the text of each section."""
    _, *parts = SECTION.split(path.read_text("utf-8"))
    return list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))


def model_of(name: str, text: str) -> tuple[str, onnx.ModelProto | None]:
    """The name of a file, and the model that its text describes, if it is one. `m.onnx my=1` imports another domain."""
    name, *domains = name.split()
    imports = {domain: int(version) for domain, version in (each.split("=") for each in domains)}
    return name, parsed(text, **imports) if name.endswith(".onnx") and "=>" in text else None
