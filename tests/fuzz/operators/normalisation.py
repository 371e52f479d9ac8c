"""Normalisation over a batch, a channel, a layer, a window; Dropout."""

import numpy as np

from .draw import OMITTED, Draw, Node


def batch(d: Draw) -> Node:
    """Mean and variance are inputs; an attribute or the number of outputs selects training."""
    dtype, shape = d.dtype("T"), d.shape(2, 5, empty=0.02)
    kinds = [d.dtype(each.type_str) for each in d.schema.inputs[1:]]
    parts = [d.data([shape[1]], kind, "positive" if name == "var" else "any", constant=0.7, computed=False)
             for name, kind in zip(("scale", "bias", "mean", "var"), kinds, strict=True)]
    test = 1 if d.since < 7 else OMITTED
    training = d.maybe(1, 0.15) if d.since >= 14 else OMITTED
    return d.node(
        [d.data(shape, dtype), *parts], outputs=3 if training == 1 else 1, epsilon=d.maybe(1e-3), is_test=test,
        momentum=d.maybe(d.number(0.5, 0.95)), training_mode=training,
    )


def instance(d: Draw) -> Node:
    dtype, shape = d.dtype(), d.shape(3, 5, empty=0)
    parts = [d.data([shape[1]], dtype, constant=0.6, computed=False) for _ in range(2)]
    return d.node(
        [d.data(shape, dtype), *parts], epsilon=d.maybe(d.pick(1e-3, 0.1)), atol=1e-4 if dtype.itemsize > 2 else None
    )


def layer(d: Draw) -> Node:
    """From an axis on; scale and bias have the normalised shape, or one that is broadcast to it."""
    dtype, shape = d.dtype("T"), d.shape(1, 4, empty=0.02)
    axis = d.integer(0, len(shape) - 1)
    written = d.signed(axis, len(shape)) if axis != len(shape) - 1 else d.maybe(d.signed(axis, len(shape)))
    scale, bias = (d.data(shape[axis:], dtype, constant=0.5, computed=False) for _ in range(2))
    ports = ([d.data(shape, dtype), scale, d.optional(bias)] if d.op == "LayerNormalization"
             else [d.data(shape, dtype), scale])
    outputs = d.pick(1, 1, 3) if d.op == "LayerNormalization" else 1
    return d.node(ports, outputs=outputs, axis=written, epsilon=d.maybe(d.pick(1e-3, 0.1)),
                  atol=1e-4 if dtype.itemsize > 2 else None)


def simplified(d: Draw) -> Node:
    """RMS normalisation from an axis on, with 1 / deviation."""
    dtype, shape = d.dtype("T"), d.shape(1, 4, empty=0.02)
    axis = d.integer(0, len(shape) - 1)
    written = d.signed(axis, len(shape)) if axis != len(shape) - 1 else d.maybe(d.signed(axis, len(shape)))
    scale = d.data(shape[axis:], dtype, constant=0.5, computed=False)
    return d.node(
        [d.data(shape, dtype), scale], outputs=d.pick(1, 1, 2), axis=written, epsilon=d.maybe(d.pick(1e-3, 0.1)),
        stash_type=d.maybe(1, 0.2), atol=1e-4 if dtype.itemsize > 2 else None,
    )


def group(d: Draw) -> Node:
    """Scale and bias have one number per group until opset 20, one per channel later."""
    dtype = d.dtype("T")
    groups, each = d.integer(1, 3), d.integer(1, 3)
    shape = [d.size(), groups * each, *d.shape(0 if d.chance(0.2) else 1, 3, empty=0.01)]
    parts = [d.data([groups if d.since < 21 else groups * each], dtype, constant=0.6, computed=False) for _ in range(2)]
    return d.node([d.data(shape, dtype), *parts], num_groups=groups, epsilon=d.maybe(d.pick(1e-3, 0.1)),
                  atol=1e-4 if dtype.itemsize > 2 else None)


def power(d: Draw) -> Node:
    x = d.data(d.shape(1, 5), d.dtype(), "nonzero")
    return d.node([x], axis=d.maybe(d.axis(x.rank)) if d.since >= 11 else d.maybe(d.integer(0, x.rank - 1)),
                  p=d.maybe(d.pick(1, 2)))


def local(d: Draw) -> Node:
    x = d.data(d.shape(4, 4, empty=0.01), d.dtype())
    return d.node([x], size=d.pick(1, 3, 5), alpha=d.maybe(d.number(0.001, 1)), beta=d.maybe(d.pick(0.5, 1.0, 0.75)),
                  bias=d.maybe(d.number(0.5, 2)))


def mean_variance(d: Draw) -> Node:
    shape, axes = d.shape(4, 4, low=2, empty=0), d.axes(4, 2)
    return d.node([d.data(shape, d.dtype())], axes=d.maybe(axes), atol=1e-3)


def dropout(d: Draw) -> Node:
    """Dropout without training."""
    x = d.data(d.shape(0, 4), d.dtype("T"))
    outputs = d.pick(1, 1, 2) if d.since >= 10 else 1
    if d.since < 12:
        return d.node([x], outputs=outputs, ratio=d.maybe(d.number(0.1, 0.9)), is_test=1)
    ratio = d.optional(d.parameter(np.array(d.number(0.1, 0.9)), d.dtype("T1")))
    training = d.optional(d.parameter(np.array(False), np.bool_), 0.3)
    return d.node([x, ratio, training], outputs=outputs)


OPERATORS = {
    "BatchNormalization": batch, "InstanceNormalization": instance, "LayerNormalization": layer,
    "RMSNormalization": layer, "SimplifiedLayerNormalization": simplified, "GroupNormalization": group,
    "LpNormalization": power, "LRN": local, "MeanVarianceNormalization": mean_variance, "Dropout": dropout,
}
