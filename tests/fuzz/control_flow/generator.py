"""Whole random models: a main graph with control flow, its opset, functions, and input sets.

    case = generate(seed=7, index=12)
    case.model, case.feeds, case.order, case.features

A case depends on (seed, index) only.
"""

import random
from collections import Counter
from dataclasses import dataclass

import numpy as np
from onnx import FunctionProto, ModelProto, ValueInfoProto, helper

from . import branches, loops, movement, recurrences, scans, widening  # noqa: F401 (they register what they generate)
from .bodies import control, operators
from .disguise import disguised
from .lists import build, shown
from .scope import Context, Input, Scope, random_numbers
from .values import FLOAT, INT32, INT64, NUMPY, Dim, Val

OPSETS = {8: 15, 9: 7, 10: 5, 11: 11, 13: 11, 16: 7, 17: 5, 19: 11, 21: 12, 23: 4, 24: 4, 25: 4, 26: 4}
"""Opset -> how often it is drawn, of 100."""

ORDER = (0, 1, 2, 0)
DOMAIN = "local"


@dataclass
class Case:
    """A model and its input sets; `order` is the order in which they run on one compiled model.

    `declared` is the same model in the form that ONNX Runtime can run (disguise).
    `scan_ranks` maps the name of a Scan node to the ranks of its scan outputs; `empty` lists the input sets with a
    length of 0.
    """

    seed: int
    index: int
    model: ModelProto
    declared: ModelProto
    feeds: list[dict[str, np.ndarray]]
    order: tuple[int, ...]
    features: Counter[str]
    scan_ranks: dict[str, list[int]]
    empty: set[int]

    @property
    def name(self) -> str:
        """The name of the case in reports and files."""
        return f"{self.seed}-{self.index}"


def generate(seed: int, index: int, lists: bool = False, widens: bool = False, recurs: bool = False) -> Case:
    """The model of the given seed and index, with three input sets; with `lists`, one that consists mostly of lists;
    with `widens`, one with states that their first type does not hold; with `recurs`, one with recurrences over many
    steps."""
    rng = random.Random(f"{seed}:{index}")
    opsets = {opset: share for opset, share in OPSETS.items() if opset >= 16 or not (lists or widens or recurs)}
    opset = rng.choices(tuple(opsets), tuple(opsets.values()))[0]
    context = Context(rng, np.random.default_rng([seed, index]), opset, shadowing=rng.random() < 0.12)
    context.widens, context.recurs = widens, recurs
    if lists or (not recurs and opset >= 11 and context.chance(0.5)):
        context.lists = 0.6 if lists else 0.4
    context.features[f"opset {context.opset}"] += 1
    depth = rng.choices((1, 2, 3), (45, 35, 20) if context.lists else (58, 26, 16))[0]
    context.features[f"depth {depth}"] += 1
    context.features["depth 2 and more"] += depth > 1
    if context.chance(0.3):
        context.functions = [_function(context, n) for n in range(rng.randint(1, 2))]
    main = Scope(context)
    for _ in range(rng.randint(2, 3)):
        _random_input(main)
    if context.lists:
        build(main)
    operators(main, rng.randint(0, 2))
    results = []
    for n in range(rng.choice((1, 1, 1, 2, 3))):
        results += control(main, depth if n == 0 else 1)
        operators(main, rng.randint(0, 2))
    results += shown(main)
    model = _model(main, _outputs(main, results))
    feeds = [_feeds(context, seed, index, number) for number in range(3)]
    empty = {number for sizes in context.sizes.values() for number in range(3) if not sizes[number]}
    bare = disguised(model, context)
    return Case(seed, index, bare, model, feeds, ORDER, +context.features, context.scan_ranks, empty)


def _random_input(main: Scope) -> Val:
    rng = main.rng
    dtype = rng.choices((FLOAT, INT64, INT32), (8, 1.5, 0.7))[0]
    shape: list[Dim] = [rng.randint(1, 4) for _ in range(rng.choices((0, 1, 2, 3), (1, 3, 4, 2))[0])]
    if shape and main.context.chance(0.5):
        shape[rng.randrange(len(shape))] = main.context.symbol()
    return main.input(dtype, tuple(shape))


def _outputs(main: Scope, results: list[Val]) -> list[Val]:
    """The outputs of the model: most results of control flow, and other unused values."""
    inputs = {port.val.name for port in main.context.inputs}
    produced = {name for node in main.nodes for name in node.output if node.op_type != "Constant"}
    kept = [val for val in results if main.context.chance(0.9)]
    kept += [v for v in main.own if v.name not in main.used and v.name in produced and v not in results][-3:]
    kept = [val for val in dict.fromkeys(kept) if val.name not in inputs] or results[:1]
    main.context.features["unused control-flow output"] += any(
        val not in kept and val.name not in main.used for val in results
    )
    return kept[:8]


def _model(main: Scope, outputs: list[Val]) -> ModelProto:
    context = main.context
    graph = helper.make_graph(
        main.nodes, "fuzz", [_declared(port) for port in context.inputs],
        [helper.make_tensor_value_info(val.name, val.dtype, [None] * val.rank) for val in outputs], main.initializers,
    )
    imports = [helper.make_opsetid("", context.opset)]
    if context.functions:
        imports.append(helper.make_opsetid(DOMAIN, 1))
    version = 8 if context.opset < 20 else 10 if context.opset < 23 else 11
    return helper.make_model(graph, opset_imports=imports, functions=context.functions, ir_version=version)


def _declared(port: Input) -> ValueInfoProto:
    return helper.make_tensor_value_info(port.val.name, port.val.dtype, port.declared)


def _function(context: Context, number: int) -> FunctionProto:
    """A function of two operands of equal shape, bounded by 2; the attribute reaches a node inside."""
    rng = context.rng
    nodes = [helper.make_node(rng.choice(("Add", "Mul", "Sub")), ["a", "b"], ["t"])]
    attributes = []
    if rng.random() < 0.5:
        leaky = helper.make_node("LeakyRelu", ["t"], ["u"])
        attribute = leaky.attribute.add()
        attribute.name, attribute.ref_attr_name, attribute.type = "alpha", "slope", 1
        nodes.append(leaky)
        attributes.append("slope")
    else:
        nodes.append(helper.make_node("Sigmoid", ["t"], ["u"]))
    nodes.append(helper.make_node("Tanh", ["u"], ["v"]))
    nodes.append(helper.make_node(rng.choice(("Add", "Max")), ["v", "v"], ["r"]))
    imports = [helper.make_opsetid("", context.opset)]
    return helper.make_function(DOMAIN, f"F{number}", ["a", "b"], ["r"], nodes, imports, attributes)


def _feeds(context: Context, seed: int, index: int, number: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([seed, index, number])
    feeds: dict[str, np.ndarray] = {}
    for port in context.inputs:
        shape: tuple[int, ...] = tuple(d if isinstance(d, int) else context.sizes[d][number] for d in port.val.shape)
        if port.mixed:
            feeds[port.val.name] = rng.choice(np.array(port.choices), shape).astype(NUMPY[port.val.dtype])
        elif port.choices is not None:
            value = port.choices[number % len(port.choices)]
            feeds[port.val.name] = np.full(shape, value).astype(NUMPY[port.val.dtype])
        else:
            feeds[port.val.name] = random_numbers(rng, port.val.dtype, shape)
    return feeds
