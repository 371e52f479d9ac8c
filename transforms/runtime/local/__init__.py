"""Errors of the runtime that show in one node and its neighbours: the pattern, and its replacement, by kind of
operation.
"""

from mo_loop.transforms.rewrite import GraphRewrite, passes_in
from mo_loop.transforms.runtime.local import (
    attention_heads,
    axes_and_indices,
    elementwise_layers,
    empty_tensors,
    forms_for_devices,
    fused_constants,
    gpu_loops,
    gpu_operations,
    host_reads,
    movement_of_data,
    products_and_convolutions,
    quantised_scales,
)

FILES = (
    elementwise_layers, movement_of_data, axes_and_indices, empty_tensors, products_and_convolutions, quantised_scales,
    attention_heads, gpu_operations, gpu_loops, forms_for_devices, host_reads,
    fused_constants,  # after those that place a maximum for other reasons
)

RULES = passes_in(*map(vars, FILES))
"""All rules, in the order of the files."""


class LocalRules(GraphRewrite):
    """a form that the runtime computes wrongly, or does not compile  ->  another form with the same result

    Runs all passes of RULES in one traversal, producers first, bodies included. Each can be disabled by its own name.
    Each states which errors it avoids.
    """

    def __init__(self) -> None:
        super().__init__(each() for each in RULES)
