"""Language models with one matrix for embedding and scores: it is stored once, for each form of the model."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from mo_loop import convert_model, save_model
from mo_loop.text import to_text
from tests.harness import check, parsed

VOCABULARY, WIDTH = 90, 40
TOKENS = {"i": np.array([3, 1, 4, 1])}
BODY = """main (int64[4] i, int64 n) => (float[a, b, c] y) {{
  x0 = Gather(v, i)
  x, y = Loop (n, "", x0) <body = step (int64 k, bool c, float[4, 40] x) => (bool d, float[4, 40] z, float[a, b] s) {{
    d = Identity(c)  z = Relu(x)
    {product}
  }}>
}}"""
FORMS = {
    "a copy": ("main (int64[4] i) => (float[a, b] y) { x = Gather(v, i) y = MatMul(x, w) }", ("v", "w")),
    "a Transpose": (
        "main (int64[4] i) => (float[a, b] y) { x = Gather(v, i) t = Transpose<perm=[1, 0]>(v) y = MatMul(x, t) }",
        ("v",),
    ),
    "Gemm": ("main (int64[4] i) => (float[a, b] y) { x = Gather(v, i) y = Gemm<transB=1>(x, v) }", ("v",)),
    "a copy in a loop": (BODY.format(product="s = MatMul(x, w)"), ("v", "w")),
    "a Transpose in a loop": (BODY.format(product="t = Transpose<perm=[1, 0]>(v)\n s = MatMul(x, t)"), ("v",)),
}


def model(form: str, rows: int = VOCABULARY) -> onnx.ModelProto:
    """A model of one of the FORMS with a table of `rows` x WIDTH."""
    text, names = FORMS[form]
    made = parsed(text)
    table = np.random.default_rng(0).standard_normal((rows, WIDTH)).astype(np.float32)
    held = {"v": table, "w": np.ascontiguousarray(table.T)}
    made.graph.initializer.extend(numpy_helper.from_array(held[name], name) for name in names)
    return made


@pytest.mark.parametrize("rows", [VOCABULARY, WIDTH], ids=["matrix", "square"])
@pytest.mark.parametrize("form", FORMS)
def test_the_table_is_stored_once(form: str, rows: int, tmp_path: Path) -> None:
    feeds: dict[str, Any] = TOKENS | ({"n": np.array(2)} if "loop" in form else {})
    source = model(form, rows)
    check(source, feeds)
    converted = convert_model(source)
    text = to_text(converted.graph)
    assert "transpose_b: true" in text and "Transpose(" not in text
    save_model(converted, tmp_path / "model.xml")
    assert (tmp_path / "model.bin").stat().st_size < 1.1 * 4 * rows * WIDTH
