"""Draws values of options for a model, and describes their effect on its inputs and outputs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mo_loop.cli.conversion_options import BothLayouts, layout_of
from tests.fuzz.options.subjects import Array, Port, Rng, Subject

PER_STEP = "LowLatency2[use_const_initializer=False,sequence_length=1]"


@dataclass
class Plan:
    """The effect of a pair of options on a model: the arguments of convert_model, and the equivalent in numpy."""

    subject: Subject
    names: tuple[str, ...]
    arguments: dict[str, Any] = field(default_factory=dict)
    by_option: dict[str, dict[str, Any]] = field(default_factory=dict)
    cut: str = ""
    frozen: dict[str, Array] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    layouts: dict[str, str] = field(default_factory=dict)
    orders: dict[str, tuple[int, ...]] = field(default_factory=dict)
    means: dict[str, Array] = field(default_factory=dict)
    scales: dict[str, Array] = field(default_factory=dict)
    scale: float = 1.0
    reverses: bool = False
    batch: int = 0
    is_static: bool = False
    has_states: bool = False
    has_beams: bool = False
    is_stepped: bool = False
    tolerance: float = 1e-4

    @property
    def ports(self) -> dict[str, Port]:
        """The inputs of the model as it is converted, states as well."""
        found = dict(self.subject.ports)
        if self.cut:
            first = next(iter(found))
            found = {self.cut if name == first else name: port for name, port in found.items()}
        return {name: port for name, port in found.items() if name not in self.frozen}

    @property
    def inputs(self) -> dict[str, Port]:
        """Those that are inputs of the IR."""
        states = self.subject.states if self.has_states else {}
        return {name: port for name, port in self.ports.items() if name not in states}

    def sizes(self) -> dict[str, int]:
        return {**self.subject.sizes, **({"N": self.batch} if self.batch else {})}

    def port(self, name: str) -> Port:
        """An input with the batch of --batch."""
        found = self.ports[name]
        axis = found.axis("n") if name in self.layouts else 0
        if not self.batch or axis is None:
            return found
        return Port((*found.dims[:axis], self.batch, *found.dims[axis + 1 :]), found.layout, found.dtype)

    # -- what numpy does

    def prepared(self, name: str, array: Array) -> Array:
        """The tensor of the ONNX model for that of an input of the IR in the layout of the model."""
        port = self.port(name)
        if name not in self.inputs:
            return array
        if self.reverses and (axis := self._channels(name, port)) is not None:
            array = np.flip(array, axis)
        if name in self.means:
            array = array - _along(self.means[name], port)
        if name in self.scales:
            array = array / _along(self.scales[name], port)
        if self.scale != 1.0 and port.dtype == np.float32:
            array = array / np.float32(self.scale)
        return np.ascontiguousarray(array)

    def _channels(self, name: str, port: Port) -> int | None:
        axis = port.axis("c") if name in self.layouts or len(port.dims) == 4 else None
        return axis if axis is not None and port.dims[axis] == 3 else None

    def in_layout(self, name: str, array: Array) -> Array:
        """An input or output in the layout of the IR."""
        return np.ascontiguousarray(array.transpose(self.orders[name])) if name in self.orders else array


def _along(values: Array, port: Port) -> Array:
    axis = port.axis("c")
    if len(values) == 1 or axis is None:
        return values
    return values.reshape([len(values) if each == axis else 1 for each in range(len(port.dims))])


def _per_input(rng: Rng, plan: Plan, names: list[str], values: list[Array]) -> Any:
    """Numbers in one of the spellings of the options."""
    lists = [[float(each) for each in array] for array in values]
    floats = [name for name, port in plan.inputs.items() if port.dtype == np.float32]
    form = int(rng.integers(3))
    if form == 0 and names == list(plan.inputs) == floats:
        return lists
    if form == 1:
        return ",".join(f"{name}[{','.join(map(repr, each))}]" for name, each in zip(names, lists, strict=True))
    return dict(zip(names, lists, strict=True))


def _numbers(rng: Rng, plan: Plan) -> tuple[list[str], list[Array]] | None:
    floats = [name for name, port in plan.inputs.items() if port.dtype == np.float32]
    if not floats:
        return None
    names = [name for name in floats if rng.random() < 0.7] or floats[:1]
    values = []
    for name in names:
        port = plan.ports[name]
        axis = port.axis("c")
        count = port.dims[axis] if axis is not None and rng.random() < 0.6 else 1
        assert isinstance(count, int)
        values.append(rng.choice([0.25, 0.5, 1.5, 2.0, 4.0], count).astype(np.float32))
    return names, values


# -- one function for each option: its arguments, after the plan is changed; None if the model has no use for it


def _input(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    if plan.subject.inner and rng.random() < 0.4:
        first = next(iter(plan.subject.ports))
        plan.cut = plan.subject.inner
        names = [plan.cut if name == first else name for name in plan.subject.ports]
        return {"input": [*("first" if name == plan.cut and rng.random() < 0.5 else name for name in names)]}
    plan.is_static = True
    shapes = {}
    for name, port in plan.subject.ports.items():
        sizes = {**plan.subject.sizes, **({"T": 1} if plan.subject.steps and "transform" in plan.names else {})}
        shapes[name] = [sizes[dim] if isinstance(dim, str) and dim not in "LP" else dim for dim in port.dims]
    return {"input": ",".join(f"{name}[{','.join('?' if d in ('L', 'P') else str(d) for d in dims)}]"
                              for name, dims in shapes.items())}


def _freeze(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    names = [name for name in plan.ports if name not in plan.subject.steps]
    if len(plan.ports) < 2 or not names:
        return None
    name = names[int(rng.integers(len(names)))]
    array = plan.ports[name].array(rng, plan.sizes())
    plan.frozen[name] = array
    return {"freeze": {name: array}}


def _output(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    names = [*plan.subject.outputs, *([plan.subject.inner] if plan.subject.inner and not plan.cut else [])]
    chosen = [name for name in names if rng.random() < 0.6] or names[:1]
    if plan.subject.states and rng.random() < 0.7:
        chosen = list(dict.fromkeys([*chosen, *plan.subject.states.values()]))
    if chosen == list(plan.subject.outputs):
        return None
    plan.outputs = tuple(chosen)
    return {"output": chosen}


def _rename(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    names = [*plan.inputs, *(plan.outputs or plan.subject.outputs)]
    name = names[int(rng.integers(len(names)))]
    plan.renamed[name] = "new_name"
    return {"rename": {name: "new_name"}}


def _layout(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    names = [name for name in plan.inputs if rng.random() < 0.7] or list(plan.inputs)[:1]
    if plan.has_states and "batch" in plan.names:
        names = list(plan.ports)
    sources, targets = {}, {}
    for name in names:
        layout = plan.ports[name].layout
        plan.layouts[name] = sources[name] = targets[name] = layout
        if rng.random() < 0.6 and "?" not in layout and name in plan.inputs:
            order = tuple(int(each) for each in rng.permutation(len(layout)))
            targets[name] = "".join(layout[each] for each in order)
            plan.orders[name] = order
    if rng.random() < 0.4:
        return {"layout": layout_of(None, BothLayouts(_spelled(sources), _spelled(targets)))}
    entries = {n: s if s == targets[n] else f"{s}->{targets[n]}" for n, s in sources.items()}
    if names == list(plan.inputs) and rng.random() < 0.4:
        return {"layout": list(entries.values())}
    return {"layout": _spelled(entries) if rng.random() < 0.5 else entries}


def _spelled(layouts: dict[str, str]) -> str:
    return ",".join(f"{name}({layout})" for name, layout in layouts.items())


def _mean(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    found = _numbers(rng, plan)
    if found is None:
        return None
    plan.means = dict(zip(*found, strict=True))
    return {"mean_values": _per_input(rng, plan, *found)}


def _scale_values(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    found = _numbers(rng, plan)
    if found is None:
        return None
    plan.scales = dict(zip(*found, strict=True))
    return {"scale_values": _per_input(rng, plan, *found)}


def _scale(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    plan.scale = float(rng.choice([0.5, 2.0, 58.8]))
    return {"scale": plan.scale}


def _reverse(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    plan.reverses = True
    return {"reverse_input_channels": True}


def _batch(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    plan.batch = int(rng.integers(2, 5))
    return {"batch": plan.batch}


def _compress(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    plan.tolerance = 5e-2
    return {"compress_to_fp16": True}


def _unroll(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    return {"unroll": int(rng.integers(1, 5))}


def _stateful(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    return {"stateful": True} if rng.random() < 0.6 else {"stateful": True, "stateful_pairs": _pairs(plan)}


def _make_stateful(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    return {"transform": ("MakeStateful", {"param_res_names": _pairs(plan)} if rng.random() < 0.6 else {})}


def _beams(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    plan.has_beams = True
    return {"stateful": True, "beam_idx": True}


def _pairs(plan: Plan) -> dict[str, str]:
    return dict(plan.subject.states)


HAS_OTHER_STATES = ("several", "loop")
"""Kinds whose inputs may be found to be states although no name shows it."""

HAS_ONE_STEP = ("loop", "layers")
"""Kinds that LowLatency2 may take for one step of a sequence, whose states an input begins."""


def _transform(rng: Rng, plan: Plan) -> dict[str, Any] | None:
    plan.is_stepped = bool(plan.subject.steps)
    has_shape = "input" in plan.names and rng.random() < 0.7
    return {"transform": "LowLatency2[use_const_initializer=False]" if has_shape else PER_STEP}


def _fixed(**arguments: Any) -> Callable[[Rng, Plan], dict[str, Any]]:
    return lambda rng, plan: dict(arguments)


MAKING_STATES = ("stateful", "make_stateful", "beam_idx")
CHOICES: dict[str, Callable[[Rng, Plan], dict[str, Any] | None]] = {
    "input": _input, "freeze": _freeze, "output": _output, "stateful": _stateful, "make_stateful": _make_stateful,
    "beam_idx": _beams, "rename": _rename, "batch": _batch, "layout": _layout, "mean_values": _mean,
    "scale_values": _scale_values, "scale": _scale, "reverse_input_channels": _reverse, "unroll": _unroll,
    "transform": _transform, "compress_to_fp16": _compress, "quantization": _fixed(quantization="exact"),
    "target": _fixed(target="2024.6-2026.4"), "device": _fixed(device="GPU"), "strict": _fixed(strict=True),
    "sequence_io": _fixed(sequence_io="packed"), "limits": _fixed(limits={"nodes": 10_000}),
    "exact_order": _fixed(exact_order=True), "static": _fixed(static=True),
}
"""The options in the order in which they are drawn: a later one sees what an earlier one did."""

NOT_DRAWN = {"stateful_pairs": "drawn with stateful", "config": "passes are chosen one by one elsewhere",
             "extensions": "executes a file", "plugins": "depends on installed packages",
             "allow_external": "about files", "external_data_dir": "about files"}
"""The other options, and why."""

CONDITIONS = ("input", "output", "compress_to_fp16", "quantization", "target", "device", "strict", "sequence_io",
              "limits", "exact_order", "static")
"""Options that say how the IR is made or what is allowed; all others ask for a change."""

FITTING = {
    "freeze": ("several", "layers", "two_states", "sequence", "loop", "scan", "picture_state"),
    "stateful": ("picture_state", "cache", "layers", "two_states", "sequence", "scan"),
    "make_stateful": ("picture_state", "cache", "layers", "two_states", "sequence", "scan"),
    "beam_idx": ("cache", "layers", "picture_state"),
    "transform": ("sequence", "scan"),
    "unroll": ("loop", "scan"),
    "quantization": ("quantised",),
    "reverse_input_channels": ("picture", "picture_last", "several", "picture_state"),
}
"""The kinds of models that an option has an effect on; a drawn pair may have others."""


def planned(rng: Rng, subject: Subject, names: tuple[str, ...]) -> Plan | None:
    """The plan of a pair of options; None if the model has no use for one of them."""
    plan = Plan(subject, names)
    plan.has_states = bool(subject.states) and any(name in MAKING_STATES for name in names)
    for name in sorted(names, key=list(CHOICES).index):
        arguments = CHOICES[name](rng, plan)
        if arguments is None:
            return None
        plan.by_option[name] = arguments
        plan.arguments |= arguments
    return plan
