"""Caches of attention in variables, and their resets."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from mo_loop.api import convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import PROPERTIES
from tests import MODELS
from tests.harness import every, parsed
from tests.runtime.states.stepping import Outcome, Sequence, stepped

# -- Attention over caches in the forms that exporters write, and in forms that the pass must not take for it


HEADS, SIZE, QUERIES = 2, 4, 3

SCORES = {
    "divided": "t = Transpose <perm = [0, 1, 3, 2]> (ck) s = MatMul (q, t) z = Div (s, two)",
    "plain": "t = Transpose <perm = [0, 1, 3, 2]> (ck) z = MatMul (q, t)",
    "scaled_queries": "t = Transpose <perm = [0, 1, 3, 2]> (ck) h = Mul (q, third) z = MatMul (h, t)",
    "scaled_keys": "t = Transpose <perm = [0, 1, 3, 2]> (ck) h = Mul (t, third) g = Mul (third, q) z = MatMul (g, h)",
}
MASKS = {
    "none": "m = Identity (z)",
    "added": "j = Where (keep, zero, lowest) m = Add (z, j)",
    "added_twice": "j = Where (keep, zero, lowest) n = Add (bias, z) m = Add (j, n)",
    "finite": "j = Where (keep, zero, low) m = Add (z, j)",
    "selected": "m = Where (keep, z, low)",
    "selected_lowest": "m = Where (keep, z, lowest)",
    "left_out": "o = Not (keep) m = Where (o, low, z)",
    "selected_over_bias": "n = Add (bias, z) m = Where (keep, n, low)",
    "of_keys": """
        a = Constant <value_ints = [0]> () b = Constant <value_ints = [1]> () c = Constant <value_ints = [2]> ()
        u = Slice (some, a, b, c) j = Where (u, zero, lowest) m = Add (z, j)""",
    "of_queries_and_keys": """
        a = Constant <value_int = 0> () u = Gather <axis = 0> (bias, a) j = Gather <axis = 0> (u, a)
        m = Add (z, j)""",
    "infinite": "j = Where (some, zero, inf) m = Add (z, j)",
}
WEIGHTS = {"softmax": "w = Softmax <axis = -1> (m)",
           "guarded": "x = Softmax <axis = -1> (m) i = IsNaN (x) w = Where (i, zero, x)"}
CONSTANTS = """
    two = Constant <value_float = 2.0> () third = Constant <value_float = 0.3> () zero = Constant <value_float = 0.0> ()
    low = Constant <value_float = -10000.0> () lowest = Constant <value_float = -3.4028234663852886e38> ()
    inf = Log (zero)
"""
STEPS = (QUERIES, 1, QUERIES)


def attention(body: str, heads: int = HEADS, beams: bool = False, compress_to_fp16: bool = False) -> Outcome:
    """`body` makes y from queries q, the caches ck and cv, and masks: `keep` keeps no key for some of the queries."""
    model = parsed(f"""
        main (float[batch,{heads},L,{SIZE}] q, float[batch,{HEADS},L,{SIZE}] k, float[batch,{HEADS},L,{SIZE}] v,
              bool[batch,1,L,total] keep, bool[batch,1,L,total] some, float[1,{heads},L,total] bias,
              float[batch,{HEADS},P,{SIZE}] past_k, float[batch,{HEADS},P,{SIZE}] past_v)
          => (float[batch,{heads},L,{SIZE}] y, float[batch,{HEADS},R,{SIZE}] new_k, float[batch,{HEADS},R,{SIZE}] new_v)
        {{ {CONSTANTS} new_k = Concat <axis = 2> (past_k, k) new_v = Concat <axis = 2> (past_v, v)
           ck = Identity (new_k) cv = Identity (new_v) {body} }}""")
    random = np.random.default_rng(3)
    sequences = [Sequence(batch, list(_steps(batch, heads, random))) for batch in (2, 1)]
    return stepped(model, sequences, beams=beams, compress_to_fp16=compress_to_fp16)


def _steps(batch: int, heads: int, random: np.random.Generator) -> Iterator[dict[str, np.ndarray]]:
    total = 0
    for rows in STEPS:
        total += rows
        keep = random.random((batch, 1, rows, total)) < 0.6
        keep[0, 0, 0] = False
        some = keep.copy()
        some[..., 0] = True
        sizes = {"q": heads, "k": HEADS, "v": HEADS}
        tensors = {name: random.standard_normal((batch, n, rows, SIZE)) for name, n in sizes.items()}
        tensors["bias"] = random.standard_normal((1, heads, rows, total))
        yield {name: array.astype(np.float32) for name, array in tensors.items()} | {"keep": keep, "some": some}


@every(scores=sorted(SCORES), mask=["none", "added"])
def test_scales(scores: str, mask: str) -> None:
    found = attention(f"{SCORES[scores]} {MASKS[mask]} {WEIGHTS['softmax']} y = MatMul (w, cv)")
    assert found.fused == 1
    assert found.worst < 1e-5


@every(mask=sorted(MASKS), weights=sorted(WEIGHTS), beams=[False, True])
def test_masks(mask: str, weights: str, beams: bool) -> None:
    found = attention(f"{SCORES['divided']} {MASKS[mask]} {WEIGHTS[weights]} y = MatMul (w, cv)", beams=beams)
    assert found.fused == 1
    assert found.worst < 1e-5


def test_rows_without_a_key_of_an_infinite_mask() -> None:
    """Their weights are 0 with the guard of exporters: the runtime gives 0 as well."""
    body = f"""{SCORES['divided']} n = Where (keep, zero, inf) m = Add (z, n) {WEIGHTS['guarded']} y = MatMul (w, cv)"""
    found = attention(body)
    assert found.fused == 1
    assert found.worst < 1e-5


GROUPS = {
    "expanded": """
        f = Constant <value_ints = [1, 1, 2, 1, 1]> () g = Constant <value_ints = [0, 4, -1, 4]> ()
        two_ = Constant <value_ints = [2]> ()
        uk = Unsqueeze (ck, two_) ek = Expand (uk, f) rk = Reshape (ek, g)
        uv = Unsqueeze (cv, two_) ev = Expand (uv, f) rv = Reshape (ev, g)""",
    "gathered": """
        at = Constant <value_ints = [0, 0, 1, 1]> ()
        rk = Gather <axis = 1> (ck, at) rv = Gather <axis = 1> (cv, at)""",
    "tiled": """
        f = Constant <value_ints = [1, 1, 2, 1, 1]> () g = Constant <value_ints = [0, 4, -1, 4]> ()
        two_ = Constant <value_ints = [2]> ()
        uk = Unsqueeze (ck, two_) ek = Tile (uk, f) rk = Reshape (ek, g)
        uv = Unsqueeze (cv, two_) ev = Tile (uv, f) rv = Reshape (ev, g)""",
    "copied": """
        g = Constant <value_ints = [0, 4, -1, 4]> () two_ = Constant <value_ints = [2]> ()
        uk = Unsqueeze (ck, two_) ek = Concat <axis = 2> (uk, uk) rk = Reshape (ek, g)
        uv = Unsqueeze (cv, two_) ev = Concat <axis = 2> (uv, uv) rv = Reshape (ev, g)""",
    "in turn": "rk = Concat <axis = 1> (ck, ck) rv = Concat <axis = 1> (cv, cv)",
}


@every(form=sorted(GROUPS), beams=[False, True])
def test_groups(form: str, beams: bool) -> None:
    scores = "t = Transpose <perm = [0, 1, 3, 2]> (rk) s = MatMul (q, t) z = Div (s, two)"
    body = f"{GROUPS[form]} {scores} {MASKS['added']} {WEIGHTS['softmax']} y = MatMul (w, rv)"
    found = attention(body, 2 * HEADS, beams=beams)
    assert found.fused == (form != "in turn")
    assert found.worst < 1e-5


def test_weights_of_16_bits() -> None:
    """The ones that repeat heads stay ones of f32."""
    scores = "t = Transpose <perm = [0, 1, 3, 2]> (rk) s = MatMul (q, t) z = Div (s, two)"
    body = f"{GROUPS['expanded']} {scores} {MASKS['added']} {WEIGHTS['softmax']} y = MatMul (w, rv)"
    found = attention(body, 2 * HEADS, compress_to_fp16=True)
    assert found.fused == 1
    assert found.worst < 1e-5


def test_groups_as_rows() -> None:
    """As GroupQueryAttention becomes one product for each head of the cache."""
    found = attention("""
        g = Constant <value_ints = [0, 2, -1, 4]> () n = Constant <value_ints = [0, 2, -1, 0]> ()
        h = Reshape (q, g) t = Transpose <perm = [0, 1, 3, 2]> (ck) p = MatMul (h, t)
        shape = Shape (q) three = Shape <end = 3> (q) last = Constant <value_ints = [-1]> ()
        apart = Concat <axis = 0> (three, last)
        s = Reshape (p, apart) z = Div (s, two) k_ = Where (keep, zero, lowest) m = Add (z, k_)
        w = Softmax <axis = -1> (m) rows = Reshape <allowzero = 0> (w, n) o = MatMul (rows, cv) y = Reshape (o, apart)
    """, 2 * HEADS)
    assert found.fused == 1
    assert found.worst < 1e-5


NOT_FUSED = {
    "scores are an input of another node": f"""{SCORES['divided']} m = Identity (z) {WEIGHTS['softmax']}
        x = MatMul (w, cv) r = ReduceMax <keepdims = 1> (w) y = Add (x, r)""",
    "a bias over a mask": f"""{SCORES['divided']} n = Where (keep, z, low) m = Add (n, bias) {WEIGHTS['softmax']}
        y = MatMul (w, cv)""",
    "the cache is read": f"""{SCORES['divided']} m = Identity (z) {WEIGHTS['softmax']} x = MatMul (w, cv)
        r = ReduceMax <keepdims = 1> (cv) y = Add (x, r)""",
    "softcap": f"""{SCORES['divided']} c = Tanh (z) m = Mul (c, third) {WEIGHTS['softmax']} y = MatMul (w, cv)""",
    "a mask of queries": f"""{SCORES['divided']} a = Constant <value_ints = [0]> () b = Constant <value_ints = [1]> ()
        c = Constant <value_ints = [3]> () j = Slice (bias, a, b, c) m = Add (z, j) {WEIGHTS['softmax']}
        y = MatMul (w, cv)""",
    "queries over queries": f"""{SCORES['divided']} m = Identity (z) w = Softmax <axis = -2> (m) y = MatMul (w, cv)""",
}


@pytest.mark.parametrize("form", sorted(NOT_FUSED))
def test_other_forms(form: str) -> None:
    found = attention(NOT_FUSED[form])
    assert found.fused == 0
    assert found.worst < 1e-5


# -- Decoders with caches in variables: the numbers of explicit caches, and attention that holds its caches


LAYERS = 2
CROSS = {"t5_step_dynamo": 2, "whisper_step_dynamo": 2}
"""The attentions to an encoder, whose keys are not a cache."""


def run(name: str, beams: bool) -> Outcome:
    model = onnx.load(MODELS / "transformers" / f"{name}.onnx")
    random = np.random.default_rng(7)
    return stepped(model, [Sequence(batch, list(_decoded(model, batch, random))) for batch in (2, 1, 2)], beams=beams)


def _decoded(model: onnx.ModelProto, batch: int, random: np.random.Generator) -> Iterator[dict[str, np.ndarray]]:
    """Eight tokens; the states of an encoder stay the same."""
    states: dict[str, np.ndarray] = {}
    for port in model.graph.input:
        if port.name == "encoder_states":
            dims = port.type.tensor_type.shape.dim
            shape = [dim.dim_value or {"batch": batch}.get(dim.dim_param, 6) for dim in dims]
            states[port.name] = random.standard_normal(shape).astype(np.float32)
    for _ in range(8):
        yield {"input_ids": random.integers(0, 50, (batch, 1)), **states}


@pytest.mark.parametrize("name", ["gpt2_step_dynamo", "llama_step_dynamo", "t5_step_dynamo", "whisper_step_dynamo"])
@pytest.mark.parametrize("beams", [False, True])
def test_step_models(name: str, beams: bool) -> None:
    found = run(name, beams)
    assert found.worst < 1e-5
    assert found.fused == LAYERS
    assert found.kinds.get("Softmax", 0) == CROSS.get(name, 0)
    assert found.kinds.get("MatMul", 0) == 2 * CROSS.get(name, 0)


# -- A reset empties a cache, also if the next sequence begins with as many rows as the last one


ONE_CACHE = """
step (float[batch, new, 4] x, float[batch, past, 4] past) => (float[batch, new, 4] y, float[batch, total, 4] present) {
  present = Concat <axis = 1> (past, x)  turned = Transpose <perm = [0, 2, 1]> (present)
  scores = MatMul (x, turned)  y = MatMul (scores, present) }"""
SIZES = [(1, 1), (2, 3), (5, 4), (5, 4), (2, 3), (2, 3), (3, 1)]
"""The sequences and the rows of each step."""
RESET_STEPS = 3


def lengths(path: str) -> list[list[int]]:
    """In the worker: the shape of the cache after each step."""
    import openvino

    request = openvino.Core().compile_model(path, "CPU", dict(PROPERTIES)).create_infer_request()
    model_inputs = {name for port in request.model_inputs for name in port.get_names()}
    found = []
    for batch, rows in SIZES:
        request.reset_state()
        for _ in range(RESET_STEPS):
            given = {"x": np.ones((batch, rows, 4), np.float32), "beam_idx": np.arange(batch, dtype=np.int32)}
            request.infer({name: array for name, array in given.items() if name in model_inputs})
            found.append(list(request.query_state()[0].state.shape))
    return found


@pytest.mark.parametrize("beams", [False, True])
def test_one_cache(beams: bool, tmp_path: Path) -> None:
    save_model(convert_model(parsed(ONE_CACHE, 17), stateful=True, beam_idx=beams), tmp_path / "model.xml")
    found = isolated(lengths, str(tmp_path / "model.xml"))
    assert found == [[batch, rows * step, 4] for batch, rows in SIZES for step in range(1, RESET_STEPS + 1)]
