"""GELU and its approximations, with and without a bias."""

from mo_loop.frontend.vocabulary import MICROSOFT, ops, translates


@translates("Gelu", since=1, domain=MICROSOFT)
def contrib_gelu(x):
    """x * (1 + erf(x / sqrt(2))) / 2."""
    return ops.Gelu(x, approximation_mode="ERF")


@translates("BiasGelu", since=1, domain=MICROSOFT)
def bias_gelu(a, b):
    """Gelu of a + b."""
    return ops.Gelu(a + b, approximation_mode="ERF")


@translates("FastGelu", since=1, domain=MICROSOFT)
def fast_gelu(x, bias=None):
    """The approximation by tanh, of x + bias."""
    return ops.Gelu(x if bias is None else x + bias, approximation_mode="TANH")


@translates("QuickGelu", since=1, domain=MICROSOFT)
def quick_gelu(x, *, alpha: float = 1.702):
    """x * sigmoid(alpha * x)."""
    return ops.Swish(x) if alpha == 1 else ops.Swish(x, alpha)
