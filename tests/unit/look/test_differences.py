"""The difference of two models: which nodes correspond, and what differs between them."""

import copy
import json
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mo_loop
from mo_loop import diff
from mo_loop.errors import FileError, UsageError
from mo_loop.graph import Graph
from mo_loop.look.differences.changes import Change
from mo_loop.look.differences.comparing import Difference
from mo_loop.look.dump import Dumper
from mo_loop.text import parse, to_text
from tests.cases import read_cases
from tests.costs import executed_lines
from tests.fuzz.control_flow.generator import generate
from tests.fuzz.planted.planting import planted
from tests.harness import parsed, raised
from tests.texts import texts

TEXTS = texts(__file__)

PLAIN = TEXTS["plain"]

LOOP = TEXTS["loop"]

SCAN = TEXTS["scan"]

IF = TEXTS["if"]


def shown(found: Difference) -> list[tuple[str, str, list[str]]]:
    """(kind, path, details) of each change."""
    return [(each.kind, each.path, [str(detail) for detail in each.details]) for each in found.changes]


def changed(text: str, *edits: tuple[str, str], **options: Any) -> Difference:
    """The difference of a model and the one whose text has these replacements."""
    after = text
    for before, replacement in edits:
        assert before in after, before
        after = after.replace(before, replacement, 1)
    return diff(parsed(text), parsed(after), **options)


def renamed_and_shuffled(graph: onnx.GraphProto, rng: random.Random, names: dict[str, str]) -> None:
    """Give every node and value another name, and put nodes and initializers in another order; `names` are the outer
    values."""
    inner = dict(names)

    def renamed(name: str) -> str:
        return inner.setdefault(name, f"v{rng.randrange(10**9)}q") if name else ""

    for value in (*graph.input, *graph.initializer):
        value.name = renamed(value.name)
    for node in graph.node:
        node.name = f"n{rng.randrange(10**9)}q"
        node.output[:] = map(renamed, node.output)
    for node in graph.node:
        node.input[:] = map(renamed, node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                renamed_and_shuffled(attribute.g, rng, inner)
    for value in graph.output:
        value.name = renamed(value.name)
    for field in (graph.node, graph.initializer):
        items = [copy.deepcopy(each) for each in field]
        rng.shuffle(items)
        del field[:]
        field.extend(items)  # type: ignore[arg-type]  # both hold messages of their own kind
    del graph.value_info[:]


def test_models_whose_nodes_are_renamed_and_shuffled_are_equal() -> None:
    """Random models, in which many nodes are alike, with bodies that capture values."""
    count = 0
    for index in range(25):
        case = generate(2026, index)
        if case.model.functions or case.features["shadowed name"]:
            continue
        other = copy.deepcopy(case.model)
        renamed_and_shuffled(other.graph, random.Random(index), {})
        found = diff(case.model, other, ignore="names")
        assert found.equal, f"{case.name}: {found}"
        count += 1
    assert count > 12


# -- what differs

CASES: dict[str, tuple[str, list[tuple[str, str]], list[tuple[str, str, list[str]]]]] = {
    "an attribute": (PLAIN, [("axis = 1", "axis = 0")], [("changed", "soft", ["attribute axis 1 -> 0"])]),
    "an attribute that is left out": (PLAIN, [("<axis = 1> ", "")], [
        ("changed", "soft", ["attribute axis 1 -> none"])]),
    "an operator": (PLAIN, [("Softmax", "LogSoftmax")], [("changed", "soft", ["operator Softmax -> LogSoftmax"])]),
    "an input": (PLAIN, [("y = Add (c, z)", "y = Add (b, z)")], [("changed", "sum", ["input 0 soft -> shift"])]),
    "exchanged inputs": (PLAIN, [("Add (c, z)", "Add (z, c)")], [
        ("changed", "sum", ["input 0 soft -> z", "input 1 z -> soft"])]),
    "an insertion": (PLAIN, [("y = Add (c, z)", "k = Neg (c) [end] y = Add (k, z)"), ("[sum]", "[neg]")], [
        ("changed", "end", ["input 0 soft -> neg", "name sum -> end"]), ("added", "neg", [])]),
    "the shape of an input": (PLAIN, [("float[2,3] x", "float[N,3] x")], [("changed", "x", ["shape [2,3] -> [N,3]"])]),
    "the type of an input": (PLAIN, [("float[2,3] z", "double[2,3] z")], [("changed", "z", ["type f32 -> f64"])]),
    "the order of the inputs": (PLAIN, [("float[2,3] x, float[2,3] z", "float[2,3] z, float[2,3] x")], [
        ("changed", "", ["order of inputs x, z -> z, x"])]),
    "a type that is not declared": (PLAIN, [("float[2,3] y", "y")], [
        ("changed", "y", ["type f32 -> ?", "shape [2,3] -> [...]"])]),
    "another output": (PLAIN, [("(float[2,3] y)", "(float[2,3] y, float[2,3] b)")], [("added", "b", [])]),
    "an output of another value": (PLAIN, [
        ("c = Softmax", "y = Softmax"), ("(c, z)", "(y, z)"), ("y = Add", "c = Add"),
    ], [
        ("changed", "y", ["value sum -> soft"]), ("changed", "soft", ["tensor name c -> y"]),
        ("changed", "sum", ["tensor name y -> c"])]),
    "a weight": (PLAIN, [("{1.0, 2.0, 3.0}", "{1.0, 2.5, 3.0}")], [
        ("changed", "w", ["weights: [1.0, 2.0, 3.0] -> [1.0, 2.5, 3.0]"])]),
    "exchanged back edges": (LOOP, [("float[3] u, float[3] v, float[3] q)", "float[3] v, float[3] u, float[3] q)")], [
        ("changed", "loop", [
            "back edge of s grow -> fall", "back edge of t fall -> grow",
            "inner value of output y grow -> fall", "inner value of output o fall -> grow"])]),
    "a scan output": (LOOP, [("float[3] v, float[3] q)", "float[3] v, float[3] u)")], [
        ("changed", "loop", ["inner value of output r join -> grow"])]),
    "a trip count": (LOOP, [("Loop (n,", "Loop (m,"), ("int64 n", "int64 n, int64 m")], [
        ("changed", "loop", ["input trip count n -> m"]), ("added", "m", [])]),
    "the condition of a body": (LOOP, [("d = Identity", "[always] k = Not (c) d = Or (k, c) e = Identity")], [
        ("changed", "loop", ["condition of the body d -> d"]),
        ("changed", "loop/step/e", ["tensor name d -> e"]),
        ("added", "loop/step/always", []), ("added", "loop/step/d", [])]),
    "an initial value": (LOOP, [("x, x)", "x, k)"), ("[loop]", "[new] k = Neg (x) [loop]")], [
        ("changed", "loop", ["outer value of t x -> new"]), ("added", "new", [])]),
    "a scan that runs backwards": (SCAN, [("num_scan_inputs", "scan_input_directions = [1], num_scan_inputs")], [
        ("changed", "scan", ["slice of e: direction forward -> reverse"])]),
    "the axis of a scan input": (SCAN, [("num_scan_inputs", "scan_input_axes = [1], num_scan_inputs")], [
        ("changed", "scan", ["slice of e: axis 0 -> 1"])]),
    "the axis of a scan output": (SCAN, [("num_scan_inputs", "scan_output_axes = [1], num_scan_inputs")], [
        ("changed", "scan", ["slices of output r: axis 0 -> 1"])]),
    "a node of a branch": (IF, [("q = Sin", "q = Cos")], [("changed", "choice/no/two", ["operator Sin -> Cos"])]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_differs(name: str) -> None:
    text, edits, expected = CASES[name]
    assert sorted(shown(changed(text, *edits))) == sorted(expected)


@pytest.mark.parametrize("text", [PLAIN, LOOP, SCAN, IF])
def test_a_model_equals_itself_in_all_forms(text: str, tmp_path: Path) -> None:
    model = parsed(text)
    xml, again = tmp_path / "a.xml", tmp_path / "b.xml"
    converted = mo_loop.convert_model(model, observers=[Dumper(tmp_path / "steps")])
    mo_loop.save_model(converted, xml)
    mo_loop.save_model(mo_loop.read_model(xml), again)
    steps = sorted((tmp_path / "steps").glob("[0-9]*.json"))
    pairs = [(model, copy.deepcopy(model)), (xml, again), (converted, mo_loop.convert_model(model))]
    pairs += [(each, each.with_suffix(".txt")) for each in (steps[0], steps[-1])]
    for old, new in pairs:
        found = diff(old, new)
        assert found.equal and not found and not len(found), str(found)
        assert found.to_dict()["equal"] is True


def test_names_numbered_anew_do_not_matter() -> None:
    """An exporter numbers all names; one node more shifts them."""
    count, place = 30, 12

    def chain(insert: int | None) -> onnx.ModelProto:
        rng = np.random.default_rng(1)
        operators = [("Relu", "Sigmoid", "Neg")[number % 3] for number in range(count)]
        weights = [rng.normal(size=4).astype(np.float32) for _ in range(count)]
        nodes, data, last, number = [], [], "x", 0
        for each, (operator, weight) in enumerate(zip(operators, weights, strict=True)):
            steps = [(operator, None), ("Mul", weight)]
            for kind, factor in [("Tanh", None), *steps] if each == insert else steps:
                number += 1
                inputs = [last]
                if factor is not None:
                    inputs.append(f"w{number}")
                    data.append(numpy_helper.from_array(factor, f"w{number}"))
                last = f"t{number}"
                nodes.append(helper.make_node(kind, inputs, [last], name=f"{kind}_{number}"))
        nodes.append(helper.make_node("Identity", [last], ["y"], name="end"))
        value = helper.make_tensor_value_info
        ends = [value("x", TensorProto.FLOAT, [4])], [value("y", TensorProto.FLOAT, [4])]
        return helper.make_model(helper.make_graph(nodes, "chain", *ends, data))

    found = diff(chain(None), chain(place), ignore="names")
    assert [(each.kind, each.operator) for each in found.changes] == [("changed", "Relu"), ("added", "Tanh")]
    assert found.changes[0].details[0].what == "input" and found.changes[1].node == f"Tanh_{2 * place + 1}"


def stripped(graph: Graph, prefix: str) -> None:
    """Give all nodes other names, and all tensors none; forget the nodes of the ONNX model."""
    for number, node in enumerate(graph.ordered()):
        node.origins = ()
        node.name = f"{prefix}{number * 7 % 10007}x"
        for value in node.outputs:
            value.names = ()
        for body in node.bodies:
            stripped(body, prefix)


def names_place(found: Difference, path: tuple[str, ...], layer: str, readers: tuple[str, ...]) -> bool:
    """Whether the layer, or a constant that it or its readers read, is among the changes of its scope."""
    wanted = {layer, *readers}
    return any(
        each.scope == "/".join(path) and not each.follows
        and (layer in (each.node, each.old_node) or wanted & set(each.readers))
        for each in found.changes
    )


@pytest.mark.sweep(3)
@pytest.mark.parametrize("seed", [18, 19, 20])
def test_faults_in_converted_models_are_named(seed: int, tmp_path: Path) -> None:
    """Of 30 faults in written IR all, at the right place, with few other changes; under other names all as well."""
    missed: list[str] = []
    for each in planted(10, seed):
        fault = each.fault
        old, new = tmp_path / "old.xml", tmp_path / "new.xml"
        mo_loop.save_model(mo_loop.Model(each.graph), old)
        mo_loop.save_model(mo_loop.Model(fault.graph), new)
        found = diff(old, new)
        if not names_place(found, fault.scope, fault.layer, fault.readers):
            missed.append(f"{each.name}: {fault.kind} of {fault.path}, {fault.change}\n{found}")
        if sum(not change.follows for change in found.changes) > 4:
            missed.append(f"{each.name}: {fault.kind} of {fault.path} changes much\n{found}")
        renamed = fault.graph.clone()
        stripped(renamed, "other")
        again = diff(each.graph, renamed, ignore="names")
        if not any(change.scope == "/".join(fault.scope) and not change.follows for change in again.changes):
            missed.append(f"{each.name}, renamed: {fault.kind} of {fault.path}, {fault.change}\n{again}")
    assert not missed, "\n".join(missed)


# -- weights


def constants(old: np.ndarray[Any, Any], new: np.ndarray[Any, Any], **options: Any) -> Change | None:
    """The change of a constant."""

    def model(array: np.ndarray[Any, Any]) -> onnx.ModelProto:
        tensor = numpy_helper.from_array(array, "w")
        output = helper.make_tensor_value_info("y", tensor.data_type, None)
        return helper.make_model(
            helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [output], [tensor])
        )

    found = [each for each in diff(model(old), model(new), **options).changes if each.node == "w"]
    return found[0] if found else None


def test_how_much_weights_differ() -> None:
    old = np.arange(3000, dtype=np.float32).reshape(30, 100)
    new = old.copy()
    new[7, 9], new[29, 99] = 700, -2999
    found = constants(old, new)
    assert found is not None
    (detail,) = found.details
    assert detail.data == {
        "size": 3000, "count": 2, "largest": 5998.0, "relative": 2.0, "index": [29, 99], "old": "2999", "new": "-2999",
    }
    assert (
        str(detail) == "weights: 2 of 3000 elements differ, by at most 6e+03 at [29, 99] (2999 -> -2999), relatively 2"
    )
    assert constants(old, new, ignore="weights") is None


def test_tolerance_is_a_part_of_the_largest_magnitude() -> None:
    old = np.linspace(-4, 4, 50, dtype=np.float32)
    new = old + np.float32(0.01)
    assert constants(old, new, tolerance=0.002) is not None and constants(old, new, tolerance=0.003) is None
    new[0] = np.nan
    assert constants(old, new, tolerance=1e9) is not None


@pytest.mark.parametrize(("old", "new", "count"), [
    (np.array([2**53, 1] * 8), np.array([2**53 + 1, 1] * 8), 8),
    (np.zeros(20, np.float32), -np.zeros(20, np.float32), 20),
    (np.full(20, np.nan, np.float32), np.ones(20, np.float32), 20),
    (np.array([True] * 20), np.array([True] * 19 + [False]), 1),
    (np.array(["a", "b"] * 10, object), np.array(["a", "c"] * 10, object), 10),
    (np.ones(20, np.complex64), np.full(20, 1 + 1j, np.complex64), 20),
], ids=["integers beyond 2**53", "signs of 0", "nan", "booleans", "strings", "complex numbers"])
def test_every_element_counts(old: np.ndarray[Any, Any], new: np.ndarray[Any, Any], count: int) -> None:
    found = constants(old, new)
    assert found is not None and found.details[0].data["count"] == count
    assert constants(old, old.copy()) is None and constants(new, new.copy()) is None
    json.dumps(found.as_json(), allow_nan=False)


def test_weights_of_another_type_are_compared_as_numbers() -> None:
    old = np.linspace(1, 2, 64, dtype=np.float32)
    found = constants(old, old.astype(np.float16), tolerance=1e-3)
    assert found is not None and [detail.what for detail in found.details] == ["type"]
    found = constants(old, old.astype(np.float16))
    assert found is not None and [detail.what for detail in found.details] == ["type", "weights"]


# -- options and errors


def test_scope() -> None:
    edits = [("axis = 1", "axis = 0")]
    text = IF.replace("Neg (x)", "Softmax <axis = 1> (x)").replace("Sin (x)", "Softmax <axis = -1> (x)")
    assert [each.path for each in changed(text, *edits, scope="choice/yes").changes] == ["choice/yes/one"]
    assert changed(text, *edits, scope="choice/no").equal
    error = raised(UsageError, changed, text, *edits, scope="choice/yess", match="no model has a scope 'choice/yess'")
    assert "choice/yes" in error.hint


def test_scope_has_the_port_map_of_its_owner() -> None:
    edit = ("float[3] u, float[3] v, float[3] q)", "float[3] v, float[3] u, float[3] q)")
    assert [each.path for each in changed(LOOP, edit, scope="loop/step").changes] == ["loop"]


def test_metadata_and_opsets() -> None:
    old, new = parsed(PLAIN), parsed(PLAIN, opset=19)
    new.producer_name = "exporter"
    new.metadata_props.add(key="task", value="test")
    assert shown(diff(old, new)) == [
        ("changed", "", [
            "opset ai.onnx 18 -> 19", "metadata metadata/task none -> test", "metadata producer_name none -> exporter",
        ]),
    ]
    assert shown(diff(old, new, ignore="metadata")) == [("changed", "", ["opset ai.onnx 18 -> 19"])]


def test_files_of_different_kinds_are_refused(tmp_path: Path) -> None:
    model = parsed(PLAIN)
    xml, dumped = tmp_path / "a.xml", tmp_path / "dump.txt"
    converted = mo_loop.convert_model(model)
    mo_loop.save_model(converted, xml)
    dumped.write_text(to_text(converted.graph))
    for old, new, hint in (
        (model, xml, "layer_map"), (xml, model, "layer_map"), (dumped, xml, "dump"), (model, dumped, "kind"),
    ):
        assert hint in raised(UsageError, diff, old, new, match=r" is an? ").hint


@pytest.mark.parametrize(("name", "content"), [
    ("a.json", "{"),
    ("a.json", "[]"),
    ("a.json", '{"directed": true, "graph": {}, "nodes": [{}]}'),
    ("a.txt", "%x = ?"),
])
def test_other_files_are_refused(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    raised(FileError, diff, path, path, match="is not a graph of --dump")


def test_wrong_options() -> None:
    model = parsed(PLAIN)
    raised(UsageError, diff, model, model, ignore=["colours"], match="cannot ignore 'colours'")
    raised(UsageError, diff, model, model, tolerance=float("nan"), match="tolerance")


# -- form


def test_json_can_be_written_and_repeats(tmp_path: Path) -> None:
    """The same in another process, where hashes of strings differ."""
    old, new = tmp_path / "old.onnx", tmp_path / "new.onnx"
    onnx.save(parsed(LOOP), old)
    onnx.save(parsed(LOOP.replace("Mul (t, w)", "Div (w, t)").replace("[join] q = Add", "[end] q = Max")), new)
    code = f"import json, mo_loop; print(json.dumps(mo_loop.diff({str(old)!r}, {str(new)!r}).to_dict()))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
    found = json.loads(texts.pop())
    assert found["schema"] == "mo-loop diff" and found["old"]["source"] == str(old)
    assert [each["node"] for each in found["changes"]] == ["grow", "end"]


def test_renamed_nodes_are_counted() -> None:
    renamed = changed(PLAIN, ("[scale]", "[first]"), ("[soft]", "[second]"))
    assert [*renamed.lines()][-1].strip() == "~ 2 nodes renamed: scale => first, soft => second"
    assert changed(PLAIN, ("[scale]", "[first]"), ignore="names").equal


@pytest.mark.parametrize("make", [parsed, lambda text: mo_loop.convert_model(parsed(text)).graph])
def test_a_long_chain_takes_work_for_each_node_and_no_recursion(make: Callable[[str], Any]) -> None:
    """The chain is deeper than Python's stack; renamed, with one node more."""
    count = 4000

    def chain(prefix: str, more: bool) -> str:
        names = ["x", *(f"{prefix}{number}" for number in range(count))]
        operators = [("Sin", "Cos", "Neg")[number * number % 7 % 3] for number in range(count)]
        steps = [f"{b} = {each} ({a})" for each, (a, b) in zip(operators, pairwise(names), strict=True)]
        steps += [f"extra = Tanh ({names[-1]}) y = Abs (extra)" if more else f"y = Abs ({names[-1]})"]
        return f"main (float[2] x) => (float[2] y) {{ {' '.join(steps)} }}"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old, new = make(chain("a", False)), make(chain("b", True))
    found, lines = executed_lines(lambda: diff(old, new, ignore="names"))
    assert lines < 1500 * count
    assert [(each.kind, each.operator) for each in found.changes] == [("changed", "Abs"), ("added", "Tanh")]


def test_models_that_have_little_in_common_take_work_for_each_node() -> None:
    """Names, and operators at many places of a long chain, are different."""
    count = 2000

    def chain(seed: int) -> Any:
        rng = random.Random(seed)
        names = ["x", *(f"{'ab'[seed]}{number}" for number in range(count)), "y"]
        steps = [f"{b} = {rng.choice(('Sin', 'Cos', 'Neg'))} ({a})" for a, b in pairwise(names)]
        return parsed(f"main (float[2] x) => (float[2] y) {{ {' '.join(steps)} }}")

    old, new = chain(0), chain(1)
    found, lines = executed_lines(lambda: diff(old, new, ignore="names"))
    assert lines < 10_000 * count and not found.equal


# -- variables


def with_variables(first: str, second: str, added: str = "") -> Graph:
    """Two variables of one form; `added` comes before the first is assigned."""
    text = ""
    for place, name in enumerate((first, second)):
        about = f"{{variable_id: {name}, variable_type: f32, variable_shape: [2]}}"
        text += f"%r{place} = ReadValue() {about}\n%y{place} = Add(%r{place}, %x)\n"
        text += f"{added if name == 'a' else ''}".replace("Y", f"%y{place}")
        stored = "%z" if added and name == "a" else f"%y{place}"
        text += f'%a{place} = Assign({stored}) {about}\nResult(%y{place}) "{name}"\n'
    return parse(f'%x = Parameter : f32[2] "x"\n{text}')


read_cases(globals())
