"""LinearAttentionGate: the decay and the update rate of a gated delta rule."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.errors import ModelError
from mo_loop.frontend.context import Context
from mo_loop.frontend.contrib_schemas import MICROSOFT
from mo_loop.frontend.ops.arithmetic import as_type
from mo_loop.frontend.registry import translates
from mo_loop.graph.types import f32


@translates("LinearAttentionGate", since=1, domain=MICROSOFT)
def linear_attention_gate(a, dt_bias, decay_scale, b=None, *, node: Context):
    """decay_scale * softplus(a + dt_bias) in f32, and sigmoid(b); the vectors have one number for each head."""
    decay = ops.Multiply(ops.SoftPlus(ops.Add(as_type(a, f32), dt_bias)), decay_scale).output
    if not node.wants(1):
        return as_type(decay, a.dtype)
    if b is None:
        raise ModelError("LinearAttentionGate has the output beta without the input b", code="ML227")
    return [as_type(decay, a.dtype), ops.Sigmoid(b)]
