"""The file of a page: its policy, and that no text of a document becomes a part of its markup."""

import gzip
import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest

from mo_loop.look.page import STATIC, Document, page

NAMES = {
    "markup": "<b onclick=alert(1)>&amp;</b>", "script": "</script><script>alert(1)</script>",
    "title": "</title><script>alert(1)</script>", "comment": "<!--<script>",
    "quote": "\"'><img src=x onerror=alert(1)>", "address": "javascript:alert(1)",
    "right-to-left": "a\u202eb\u2066c", "terminal": "\x1b[31mred\x07", "nul": "a\0b",
    "half a pair": "a\ud800b\udc80", "separators": "a\u2028b\u2029c", "long": "x" * 10_000,
}


class Elements(HTMLParser):
    """The elements of a page: tag, attributes, and the text directly in it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.comments: list[str] = []
        self.inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), []))
        self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found[-1][2].append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        """Attributes and text of the elements with a tag."""
        return [(attributes, "".join(text)) for name, attributes, text in self.found if name == tag]


def content(elements: Elements, name: str) -> str:
    """The text of an element that holds gzip in base64."""
    (text,) = [text for attributes, text in elements.all("script") if attributes.get("id") == name]
    return gzip.decompress(b64decode(text)).decode()


def document(name: str) -> dict[str, Any]:
    """A document that has a name wherever it can have one."""
    made = Document(name)
    made.notes.append(name)
    record = {"id": 0, "scope": "", "op": name, "opset": 1, "name": name, "inputs": [], "attributes": {name: name},
              "outputs": [{"type": "f32[1]", "names": [name]}]}
    return {**made.as_json(), "nodes": [record]}


def sources(policy: str) -> dict[str, list[str]]:
    """Directive -> sources of a content-security-policy."""
    return {(words := part.split())[0]: words[1:] for part in policy.split(";")}


def policy_of(elements: Elements) -> dict[str, list[str]]:
    (policy,) = [a["content"] for a, _ in elements.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    return sources(policy or "")


def hash_of(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_the_program_and_nothing_else() -> None:
    elements = Elements(page(document("model.onnx")))
    (program,) = [text for attributes, text in elements.all("script") if "type" not in attributes]
    ((_, style),) = elements.all("style")
    assert policy_of(elements) == {
        "default-src": ["'none'"], "script-src": [hash_of(program), "'wasm-unsafe-eval'"],
        "style-src": [hash_of(style)], "worker-src": ["blob:"], "img-src": ["data:", "blob:"],
        "base-uri": ["'none'"], "form-action": ["'none'"],
    }


def test_the_policy_stands_before_everything_that_it_governs() -> None:
    text = page(document("model.onnx"))
    assert text.index("Content-Security-Policy") < min(map(text.index, ("<style", "<script", "<title")))


def test_the_page_names_no_address_and_no_handler() -> None:
    """Outside the program itself, whose text the policy covers."""
    elements = Elements(page(document("model.onnx")))
    attributes = {name for _, found, _ in elements.found for name in found}
    assert attributes == {"lang", "charset", "http-equiv", "content", "name", "id", "type"}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_is_data_wherever_it_stands(name: str) -> None:
    text = page(document(name))
    text.encode()  # can be written
    elements, plain = Elements(text), Elements(page(document("model.onnx")))
    assert [tag for tag, *_ in elements.found] == [tag for tag, *_ in plain.found] and not elements.comments
    assert json.loads(content(elements, "document")) == json.loads(json.dumps(document(name)))


def test_the_title_is_readable_and_short() -> None:
    def title(name: str) -> str:
        return Elements(page(document(name))).all("title")[0][1]

    assert title("<b>&amp;</b>") == "<b>&amp;</b> - mo_loop" and title("x" * 10_000) == "x" * 200 + " - mo_loop"
    assert title("a\ud800b") == "a?b - mo_loop"


def test_a_number_that_json_lacks_is_an_error_here_and_not_in_the_browser() -> None:
    with pytest.raises(ValueError, match="JSON"):
        page({**document("model.onnx"), "heat": float("nan")})


def test_the_same_document_gives_the_same_bytes() -> None:
    assert page(document("model.onnx")) == page(document("model.onnx"))


def test_each_page_carries_the_worker_and_the_licences_of_its_libraries() -> None:
    elements = Elements(page(document("model.onnx")))
    assert content(elements, "worker") == (STATIC / "worker.js").read_text("utf-8")
    licences = content(elements, "licenses")
    assert licences == (STATIC / "LICENSES.txt").read_text("utf-8")
    assert re.search(r"Eclipse Public License - v 2\.0.*6\. DISCLAIMER OF LIABILITY", licences, re.DOTALL)


def test_a_page_is_small_beside_its_data() -> None:
    """The program, compressed: what every page carries."""
    assert len(page(document("model.onnx"))) < 900_000
