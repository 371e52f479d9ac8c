"""The IR of ovc with states: openvino.passes.MakeStateful, and what it needs besides to run caches that start empty."""

from pathlib import Path
from typing import Any

import numpy as np

from tools.states.decoders import BEAMS, name_of, pairs


def convert(model: Path, *, beams: bool = False) -> Any:
    """An openvino.Model with states; with `beams` the caches are reordered by an input, as optimum-intel does it."""
    import openvino
    from openvino import passes

    made = openvino.convert_model(model)
    known = pairs([name_of(port) for port in made.inputs])
    if beams:
        _reorder(made, known)
    manager = passes.Manager()
    manager.register_pass(passes.MakeStateful(known))
    manager.run_passes(made)
    _start_empty(made)
    made.validate_nodes_and_infer_types()
    return made


def _reorder(model: Any, known: dict[str, str]) -> None:
    from openvino import PartialShape, Type, opset13

    beams = opset13.parameter(PartialShape([-1]), Type.i32, BEAMS)
    beams.output(0).set_names({BEAMS})
    model.add_parameters([beams])
    for name in known:
        port = model.input(name)
        readers = port.get_target_inputs()
        reordered = opset13.gather(port, beams, opset13.constant(np.int64(0)))
        for each in readers:
            each.replace_source_output(reordered.output(0))


def _start_empty(model: Any) -> None:
    """Without an initial value a state would have no sequences either."""
    from openvino import opset13

    shape = opset13.shape_of(model.input("input_ids"), output_type="i64")
    batch = opset13.gather(shape, opset13.constant(np.array([0])), opset13.constant(np.int64(0)))
    for node in model.get_ops():
        if node.get_type_name() == "ReadValue":
            sizes = [each.get_min_length() for each in node.get_output_partial_shape(0)]
            parts = [opset13.constant(np.array([size])) for size in sizes[1:]]
            zero = opset13.constant(np.float32(0))
            node.set_arguments([opset13.broadcast(zero, opset13.concat([batch, *parts], 0)).output(0)])
