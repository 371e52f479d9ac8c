"""The page: one HTML file that holds its program, its style and its data, and loads nothing.

    html = page(document.as_json())

Its content-security-policy forbids everything but its own script and style, by their hashes, and the worker that the
script makes. The data is in an element that is not a script, compressed and encoded, so no name of a model can end
the element or run. The program of the worker and the licences of its libraries are in elements of the same form.
"""

from __future__ import annotations

import gzip
import html
import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

STATIC = files("mo_loop.look.page") / "static"

GENERATOR = '<meta name="generator" content="mo_loop page">'
"""An element near the start of each page, by which `is_page` knows it."""


def page(document: dict[str, Any]) -> str:
    """The page that shows a document."""
    script, style = _static("page.js"), _static("page.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}' 'wasm-unsafe-eval'; style-src '{_hash(style)}'; "
        "worker-src blob:; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    # A name may hold half a surrogate pair, which UTF-8 cannot spell: JSON spells it \udc80, a title does without it.
    data = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    title = html.escape(document["title"][:200].encode("utf-8", "replace").decode())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"{GENERATOR}\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title} - mo_loop</title>\n<style>{style}</style>\n</head>\n<body>\n"
        "<noscript>This page needs JavaScript.</noscript>\n"
        f"{_element('document', data)}{_static_element('worker', 'worker.js')}"
        f"{_static_element('licenses', 'LICENSES.txt')}<script>{script}</script>\n</body>\n</html>\n"
    )


def is_page(path: Path) -> bool:
    """Whether a file is a page. False for a file that cannot be read."""
    try:
        with open(path, "rb") as file:
            return GENERATOR.encode() in file.read(4096)
    except OSError:
        return False


@cache
def _static(name: str) -> str:
    return (STATIC / name).read_text("utf-8")


@cache
def _static_element(name: str, file: str) -> str:
    return _element(name, _static(file))


def _element(name: str, text: str) -> str:
    """An element that holds a text and is not a script: gzip in base64."""
    compressed = gzip.compress(text.encode("utf-8", "backslashreplace"), 6, mtime=0)
    return f'<script type="application/gzip" id="{name}">{b64encode(compressed).decode()}</script>\n'


def _hash(content: str) -> str:
    """The source of an inline element for the policy."""
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"
