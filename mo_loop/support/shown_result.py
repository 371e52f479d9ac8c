"""The results of the functions of the library: records with a short repr, a text and plain data.

    report = mo_loop.check("model.onnx")
    report                     # <CheckReport model.onnx: 1 warning>; in a notebook the text
    print(report)              # the text that the command prints
    report.to_dict()           # the JSON that the command prints with --format json
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mo_loop.printable import aligned, html_text, printable


class Style:
    """The style of a text: without colours, in aligned columns. The command line has another style."""

    def paint(self, text: str, **style: Any) -> str:
        """A line in the colours of `click.style`."""
        return printable(text)

    def table(
        self, rows: Sequence[Sequence[str]], right: Sequence[int] = (), indent: str = "", *, heads: bool = True
    ) -> str:
        """Rows of cells; with `heads` the first row has the titles."""
        return aligned(rows, right, indent)


PLAIN = Style()


class ShownResult:
    """Base of these records."""

    def text(self, style: Style = PLAIN) -> str:
        """The text that the command prints."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The document that the command prints with `--format json`, as plain data."""
        raise NotImplementedError

    def _brief(self) -> str:
        """The result in a few words."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {printable(self._brief())}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html_text(self.text())}</pre>"
