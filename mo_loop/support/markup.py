"""Texts of models and errors inside XML, HTML and the tables of Markdown.

>>> cell("a|b"), html_text("<a>"), xml_text("a\\x00")
('a&#124;b', '&lt;a&gt;', 'a\ufffd')
"""

from __future__ import annotations

import re

LETTERS = 300
"""The most letters of a cell."""

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """Without characters that XML forbids: control characters, lone surrogates of names that are not UTF-8."""
    return _NOT_XML.sub("\ufffd", text)


def cell(text: str) -> str:
    """Text in one line of a table, with the special characters of Markdown and HTML escaped."""
    printable = "".join(each if each.isprintable() or each == "\n" else "\ufffd" for each in text)
    short = printable if len(printable) <= LETTERS else f"{printable[:LETTERS]}..."
    marked = re.sub(r"([\\`*_\[\]|~#@!:])", lambda found: f"&#{ord(found[0])};", html_text(short))
    return "<br>".join(line.strip() for line in marked.splitlines())


def html_text(text: str) -> str:
    """With the special characters of HTML escaped, outside attributes."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
