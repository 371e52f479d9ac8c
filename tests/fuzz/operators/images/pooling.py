"""Pooling over windows and over all spatial dimensions."""

import numpy as np

from tests.fuzz.operators.draw import OMITTED, Draw, Node
from tests.fuzz.operators.images.convolution import large_enough, padding, window
from tests.fuzz.operators.table import Description


def pooled(d: Draw) -> Node:
    """MaxPool, sometimes with indices, AveragePool, LpPool."""
    spatial = d.pick(1, 2, 2, 2, 3)
    w = window(d, spatial)
    dilated = "dilations" in d.schema.attributes and d.chance(0.5)
    dilations = w["dilations"] if dilated else [1] * spatial
    pads = padding(d, w["kernel"], 0.3)
    same = str(pads["auto_pad"]).startswith("SAME")
    if same:
        dilated, dilations = False, [1] * spatial
    if d.op == "LpPool":
        w["strides"] = [min(pair) for pair in zip(w["strides"], w["kernel"], strict=True)]
    ceil_mode, strides = d.maybe(d.pick(0, 1), 0.5), d.maybe(w["strides"])
    sizes = large_enough(d, w["kernel"], dilations)
    if "ceil_mode" in d.schema.attributes and ceil_mode == 1 and strides is not OMITTED and not same and d.chance(0.2):
        # Shorter than the window by less than a stride, so that there is one place.
        sizes = [max((k - 1) * step + 1 - d.integer(0, stride - 1), 1)
                 for k, step, stride in zip(w["kernel"], dilations, w["strides"], strict=True)]
    x = [d.size(empty=0.02), d.size(empty=0), *sizes]
    outputs = d.pick(1, 1, 2) if d.op == "MaxPool" and d.since >= 8 else 1
    return d.node([d.data(x, d.dtype())], outputs=outputs, kernel_shape=w["kernel"], strides=strides,
                  dilations=dilations if dilated else OMITTED, ceil_mode=ceil_mode,
                  count_include_pad=d.maybe(d.pick(0, 1), 0.5), p=d.maybe(d.pick(1, 2, 3)),
                  storage_order=d.maybe(d.pick(0, 1), 0.2), **pads)


def unpooled(d: Draw) -> Node:
    """Indices as MaxPool gives them for windows that do not overlap."""
    dtype, spatial = d.dtype("T1"), d.pick(1, 2, 2, 3)
    kernel = [d.integer(1, 3) for _ in range(spatial)]
    x = [d.size(empty=0), d.size(empty=0), *(d.size(1, 4, 0) for _ in range(spatial))]
    total = [size * k for size, k in zip(x[2:], kernel, strict=True)]
    values, places = d.data(x, dtype), np.zeros(x, np.int64)
    for place in np.ndindex(*x):
        at = [i * k + int(d.values.integers(0, k)) for i, k in zip(place[2:], kernel, strict=True)]
        where = (place[0] * x[1] + place[1],) if len(place) else (0,)
        places[place] = np.ravel_multi_index((*where, *at), (x[0] * x[1], *total))
    indices, larger = d.given(places, 0.1, True), d.chance(0.3)
    shape = [x[0], x[1], *(size + (1 if larger else 0) for size in total)]
    ports = [values, indices]
    if d.chance(0.4):
        given = [x[0], x[1], *total] if larger else shape
        ports.append(d.parameter(given, constant=0.6 if d.dims == "static" else 0.0))
    return d.node(ports, kernel_shape=kernel, strides=kernel)


def everything(values: str = "any") -> Description:
    """GlobalAveragePool, GlobalMaxPool, GlobalLpPool."""

    def describe(d: Draw) -> Node:
        x = d.data([d.size(), d.size(empty=0), *(d.size(1, 5, 0) for _ in range(d.integer(1, 3)))], d.dtype(), values)
        return d.node([x], p=d.maybe(d.pick(1, 2, 3)))

    return describe


OPERATORS = {**dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), pooled), "MaxUnpool": unpooled,
             **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), everything()),
             "GlobalLpPool": everything("nonzero")}
