"""Rotary embeddings, and the attention operators' other small parts."""

import numpy as np
import pytest

from tests.harness import check_node

RNG = np.random.default_rng(29)
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("interleaved", [0, 1])
@dynamic_or_not
def test_positions_from_the_first_on(interleaved, dynamic):
    inputs = {"x": floats(2, 3, 16), "at": np.array([4], np.int64), "cos": floats(9, 4), "sin": floats(9, 4)}
    attributes = {"interleaved": interleaved, "num_heads": 2}
    check_node("com.microsoft::RotaryEmbedding", inputs, attributes, opset=1, dynamic=dynamic)


@dynamic_or_not
def test_a_part_of_each_head(dynamic):
    at = RNG.integers(0, 9, (2, 3))
    inputs = {"x": floats(2, 5, 3, 10), "at": at, "cos": floats(9, 4), "sin": floats(9, 4)}
    attributes = {"num_heads": 5, "rotary_embedding_dim": 8}
    check_node("com.microsoft::RotaryEmbedding", inputs, attributes, opset=1, dynamic=dynamic)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("sections", [[3, 2, 1], [1, 2, 3], [1, 4, 1], [0, 6, 0], [2, 2, 2]])
@dynamic_or_not
def test_positions_of_three_kinds(layout, sections, dynamic):
    at = RNG.integers(0, 9, (3, 2, 3))
    inputs = {"x": floats(2, 3, 24), "at": at, "cos": floats(9, 6), "sin": floats(9, 6)}
    attributes = {"mrope_section": sections, "mrope_layout": layout, "num_heads": 2}
    check_node("com.microsoft::MRotaryEmbedding", inputs, attributes, opset=1, dynamic=dynamic)


def test_gemma():
    emb, tensors = floats(2, 3, 8), [floats(2, 4, 3, 8).astype(np.float16) for _ in range(4)]
    cos, sin = (each(emb).astype(np.float16)[:, None] for each in (np.cos, np.sin))
    q, q_rot, k, k_rot = tensors
    inputs = {"emb": emb, "q": q, "q_rot": q_rot, "k": k, "k_rot": k_rot}
    expected = [q * cos + q_rot * sin, k * cos + k_rot * sin]
    check_node("com.microsoft::GemmaRotaryEmbedding", inputs, opset=1, outputs=["a", "b"], expected=expected, rtol=2e-3,
               atol=2e-3)


@dynamic_or_not
def test_repeated_tokens(dynamic):
    inputs = {"ids": np.array([[1, 2, 3, 1, 2], [2, 2, 2, 2, 2]]), "scores": floats(2, 5)}
    check_node("com.microsoft::NGramRepeatBlock", inputs, {"ngram_size": 3}, opset=1, dynamic=dynamic)
