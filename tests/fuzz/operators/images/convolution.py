"""Conv and ConvTranspose: one to three spatial dimensions, groups, dilations, pads as numbers or by a rule."""

from tests.fuzz.operators.draw import OMITTED, Draw, Node


def window(d: Draw, spatial: int) -> dict[str, list[int]]:
    """Kernel, strides and dilations of a window that fits into the sizes drawn by `large_enough`."""
    return {"kernel": [d.integer(1, 3) for _ in range(spatial)], "strides": [d.integer(1, 3) for _ in range(spatial)],
            "dilations": [d.pick(1, 1, 2) for _ in range(spatial)]}


def large_enough(d: Draw, kernel: list[int], dilations: list[int]) -> list[int]:
    """Sizes into which the dilated kernel fits without pads."""
    return [d.size((k - 1) * step + 1, (k - 1) * step + 5, 0) for k, step in zip(kernel, dilations, strict=True)]


def padding(d: Draw, kernel: list[int], auto: float = 0.4) -> dict[str, object]:
    """Pads smaller than the kernel, or a rule for them."""
    rule = d.pick("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
    pads = [d.integer(0, k - 1) for k in (*kernel, *kernel)]
    if d.chance(auto):
        return {"auto_pad": rule, "pads": OMITTED}
    return {"auto_pad": d.maybe("NOTSET", 0.1), "pads": d.maybe(pads)}


def convolution(d: Draw) -> Node:
    dtype, spatial = d.dtype(), d.pick(1, 2, 2, 2, 3)
    w, pads = window(d, spatial), {}
    pads = padding(d, w["kernel"])
    same = str(pads["auto_pad"]).startswith("SAME")
    if same:
        w["dilations"] = [1] * spatial
    groups = d.pick(1, 1, 2, 3)
    each, out = d.integer(1, 3), d.integer(1, 3) * groups
    first = d.data([d.size(empty=0.02), groups * each, *large_enough(d, w["kernel"], w["dilations"])], dtype)
    weights = d.data([out, each, *w["kernel"]], dtype, constant=0.8, computed=d.chance(0.05))
    bias = d.data([out], dtype, constant=0.8)
    return d.node([first, weights, d.optional(bias)], group=d.maybe(groups) if groups == 1 else groups,
                  kernel_shape=d.maybe(w["kernel"]), strides=d.maybe(w["strides"]),
                  dilations=OMITTED if same else d.maybe(w["dilations"]), **pads)


def transposed(d: Draw) -> Node:
    """With an output shape, or output padding."""
    dtype, spatial = d.dtype(), d.pick(1, 2, 2, 3)
    w, groups = window(d, spatial), d.pick(1, 1, 2)
    channels, each = groups * d.integer(1, 2), d.integer(1, 3)
    x = [d.size(empty=0.02), channels, *(d.size(2, 5, 0) for _ in range(spatial))]
    first = d.data(x, dtype)
    weights = d.data([channels, each, *w["kernel"]], dtype, constant=0.8, computed=d.chance(0.05))
    bias = d.data([each * groups], dtype, constant=0.8)
    pads = padding(d, w["kernel"], 0.3)
    more = [d.integer(0, max(stride, step) - 1) for stride, step in zip(w["strides"], w["dilations"], strict=True)]
    sizes = [(size - 1) * stride + (k - 1) * step + 1 - d.integer(0, k - 1)
             for size, stride, k, step in zip(x[2:], w["strides"], w["kernel"], w["dilations"], strict=True)]
    explicit = d.chance(0.25)
    if explicit:
        pads = {"auto_pad": d.pick("NOTSET", "SAME_UPPER", "SAME_LOWER"), "pads": OMITTED}
    return d.node([first, weights, d.optional(bias)], group=groups, kernel_shape=d.maybe(w["kernel"]),
                  strides=w["strides"], dilations=w["dilations"], output_shape=sizes if explicit else OMITTED,
                  output_padding=OMITTED if explicit else d.maybe(more, 0.4), **pads)


OPERATORS = {"Conv": convolution, "ConvTranspose": transposed}
