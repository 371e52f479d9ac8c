"""The golden cases are computed: a graph gives the same numbers before and after the passes.

Inputs are drawn for several sizes of the symbols, 0 and 1 among them, and several trip counts. `interpret` computes
both graphs; OpenVINO, in a worker process, computes those that `interpret` cannot. Inputs that are invalid for a graph
(an index out of range, sizes that do not broadcast) are skipped, but every case needs a valid one. Cases that expect an
unchanged graph are not computed.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop.api import Model, save_model
from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.graph import Graph
from mo_loop.graph.types import boolean, string
from mo_loop.text import parse, to_text
from mo_loop.transforms.low_precision.compress_weights import CompressWeights
from mo_loop.transforms.low_precision.lower_quantization import LowerQuantization
from mo_loop.transforms.runtime.lower_barriers import LowerBarriers
from tests.golden.test_golden import CASES, FOLDER, Case, passes_of, read
from tests.interpreter import UNDEFINED, Invalid, Uninterpreted, interpret
from tests.running.processor import fail_or_skip

SIZES = ((2, 3, 4), (3, 3, 3), (1, 1, 1), (4, 2, 1), (0, 2, 3), (0, 0, 0))
"""The sizes of the first, second and further symbols of a graph; further tries are random."""

NUMBERS = (3, 1, 2, 0)
"""Values of integer scalars: trip counts, positions."""

ENOUGH, ON_OPENVINO, TRIES = 8, 2, 60
"""The number of valid inputs to compare, the number if OpenVINO computes them, and the maximum number of draws."""

NO_STEPS = "no steps are an iteration whose elements of nothing are not used; test_steps_per_iteration has numbers"
UNCHECKED = {
    "compress_float_constants/weights": "a weight beyond the range of f16 is a new number",
    "count_indices_from_start/slices": "random indices fit no slice; the probe elements-counted-from-end has numbers",
    "eliminate_unreachable_bodies/collected": "the loop reads an element of a list without any",
    "steps_per_iteration/axes_of_slices": NO_STEPS,
    "steps_per_iteration/unknown_number": NO_STEPS,
    "steps_per_iteration/unread_final_value": NO_STEPS,
    "run_once/harmless": "the passes before it correct the outputs for no iterations; probe gpu-no-iteration",
    "maximum_before_average/zero_points": "OpenVINO computes the graph before the pass, which it computes wrongly",
    "maximum_of_divisor/integers": "OpenVINO computes the graph before the pass, which it computes wrongly",
    "separate_weight_orders/filters": "OpenVINO computes the graph before the pass, which it computes wrongly",
    "reshape_to_batch_of_state/computed": "OpenVINO does not compile the graph before the pass",
}
"""Cases that cannot be compared, and why."""

CHANGED = {
    "change_layouts/loop": "an input has another layout",
    "divide_by_scale/": "inputs are scaled",
    "integer_product_to_float/rounded": "one of two forms is chosen, which are different numbers here",
    "low_latency2/zeros": "a state begins with zeros",
    "make_stateful/": "inputs and outputs become states",
    "reverse_channels/": "the channels of inputs are reversed",
    "set_sequence_length/": "an input has another length",
    "subtract_mean/": "a mean is subtracted from inputs",
}
"""Cases whose passes change the results of a graph on purpose."""

ROUNDED = "compress_float_constants/"
"""Cases whose constants lose precision."""

GIVEN: dict[str, dict[int, Any]] = {
    "count_indices_from_start/values": {1: np.array([[-1, -3, -2], [0, 1, -1]])},
    "downgrade/older_opset": {1: np.zeros((1, 4))},
    "downgrade/pools": {2: np.zeros(3, np.int64)},
    "eliminate_movement/sizes_that_may_be_zero": {0: np.ones((1, 6)), 1: np.ones((2, 3)), 2: np.ones((3, 2))},
    "pack_sequences/branches": {1: np.arange(6), 2: np.array([[1, 2], [2, 2]])},
    "pack_sequences/joined_along_the_second_axis": {0: np.arange(6), 1: np.array([[2, 1], [2, 2]])},
    "size_sliced_inputs/of_another_input": {
        1: np.arange(3), 2: np.ones((4, 3)), 5: np.arange(16), 6: np.arange(1),
    },
}
"""Inputs that random numbers rarely hit, by their position."""


def name_of(path: Path) -> str:
    return path.relative_to(FOLDER).with_suffix("").as_posix()


READ = {name_of(path): read(path.read_text("utf-8")) for path in CASES}
REWRITTEN = {name: case for name, case in READ.items() if case.passes and case.expected.strip() != "unchanged"}


def test_the_lists_name_cases() -> None:
    listed = [*UNCHECKED, *CHANGED, *GIVEN, ROUNDED]
    assert [each for each in listed if not any(name.startswith(each) for name in REWRITTEN)] == []


@pytest.mark.parametrize("name", REWRITTEN)
def test_numbers(name: str) -> None:
    try:
        compare(REWRITTEN[name], name)
    except (AssertionError, IsolatedError, Invalid, Uninterpreted) as error:
        is_listed = name in UNCHECKED or name.startswith(tuple(CHANGED))
        fail_or_skip([] if is_listed else [f"{name}: {error}"])
        return
    assert name not in UNCHECKED and not name.startswith(tuple(CHANGED)), f"{name} gives equal numbers: not for a list"


def compare(case: Case, name: str) -> None:
    """Both graphs give the same numbers for all valid inputs that are drawn; else AssertionError."""
    before, after = parse(case.input), rewritten(case)
    assert len(before.parameters) == len(after.parameters), "other inputs"
    tolerance = 2e-3 if name.startswith(ROUNDED) else 1e-4
    compared = 0
    for turn in range(TRIES):
        feeds = drawn(before, turn)
        for place, value in GIVEN.get(name, {}).items():
            feeds[place] = value.astype(feeds[place].dtype)
        try:
            expected, is_native = computed(before, feeds)
        except Invalid:
            continue
        found, is_native_too = computed(after, feeds)
        assert_equal(expected, found, tolerance, f"inputs {feeds}")
        compared += 1
        if compared == (ON_OPENVINO if is_native or is_native_too else ENOUGH):
            break
    assert compared, "no inputs that make sense"


def computed(graph: Graph, feeds: list[Any]) -> tuple[list[Any], bool]:
    """The results of a graph, and whether OpenVINO had to compute them."""
    try:
        return interpret(graph, feeds), False
    except Uninterpreted:
        if any(0 in np.shape(each) for each in feeds):
            raise Invalid("the runtime may fail on tensors without elements") from None
        return isolated(on_openvino, to_text(graph), feeds), True


def on_openvino(text: str, feeds: list[Any]) -> list[Any]:
    """The results of the runtime, in a worker process."""
    from mo_loop.compare.execution.runtime import compile_ir

    graph = parse(text)
    for each in (LowerQuantization(), CompressWeights(), LowerBarriers()):
        each.run(graph)
        graph.validate()
    for number, node in enumerate((*graph.parameters, *graph.results)):
        node.name = f"port_{number}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        save_model(Model(graph), path)
        named = {node.name: value for node, value in zip(graph.parameters, feeds, strict=True)}
        return [value for _, value in compile_ir(path).run(named)]


def rewritten(case: Case) -> Graph:
    graph = parse(case.input)
    for each in passes_of(case.passes):
        each.run(graph)
        graph.validate()
    return graph


def drawn(graph: Graph, turn: int) -> list[Any]:
    """Values of the Parameters."""
    rng = np.random.default_rng(turn)
    sizes = SIZES[turn] if turn < len(SIZES) else tuple(rng.integers(0, 7, 5).tolist())
    symbols: dict[Any, int] = {}

    def size(dim: Any) -> int:
        if isinstance(dim, int):
            return dim
        for symbol in dim.symbols():
            lo, hi = symbol.lo, symbol.hi
            wanted = sizes[min(len(symbols), len(sizes) - 1)]
            symbols.setdefault(symbol, max(lo, wanted if hi is None else min(wanted, hi)))
        return int(dim.const + sum(factor * symbols[symbol] for symbol, factor in dim.terms))

    def value(type_: Any) -> Any:
        shape = (3,) if type_.shape is None else tuple(size(dim) for dim in type_.shape)
        if type_.dtype is string:
            return rng.choice(np.array(["a", "bc", ""], object), shape)
        if type_.dtype is boolean:
            return np.array(rng.integers(0, 2, shape), bool) if shape else np.array(turn % 2 == 0)
        if type_.dtype.is_integer:
            numbers = rng.integers(0, 4, shape) if shape not in ((), (1,)) else np.full(shape, NUMBERS[turn % 4])
            return np.array(numbers).astype(type_.dtype.numpy)
        return rng.standard_normal(shape).astype(type_.dtype.numpy)

    return [value(parameter.output.type) for parameter in graph.parameters]


def assert_equal(expected: Any, found: Any, tolerance: float, what: str) -> None:
    assert len(expected) == len(found)
    for number, (a, b) in enumerate(zip(expected, found, strict=True)):
        if a is UNDEFINED:
            continue
        if isinstance(a, list):
            assert_equal(a, b, tolerance, what)
            continue
        assert a.shape == b.shape and a.dtype == b.dtype, f"result {number}: {a.shape} {b.shape}, {what}"
        if a.dtype.kind in "OUSbiu":
            assert (a == b).all(), f"result {number}: {a} {b}, {what}"
        else:
            wide = (a.astype(np.float64), b.astype(np.float64))
            np.testing.assert_allclose(*wide, tolerance, tolerance / 10, err_msg=what)
