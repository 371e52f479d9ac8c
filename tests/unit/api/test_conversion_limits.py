"""Each limit of a conversion: a model at the limit converts to the same bytes, one above it has an error of its own."""

from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import helper, numpy_helper

from mo_loop import conversion_limits, ops
from mo_loop.api import convert_model, read_model, save_model
from mo_loop.cli import main
from mo_loop.conversion_limits import DEFAULT, Budget, Limits, budget, limited
from mo_loop.errors import LimitError, UsageError
from mo_loop.graph import Graph, Node
from mo_loop.look.diagnostics.codes import CODES
from mo_loop.look.diagnostics.examine import examine
from mo_loop.options import ConvertOptions
from mo_loop.text import parse
from mo_loop.transforms.manager import Manager, Phase, Step
from mo_loop.transforms.pattern import Match, any_input, wrap_type
from mo_loop.transforms.rewrite import GraphRewrite, MatcherPass
from tests.harness import parsed, raised
from tests.interpreter import interpret


def chain(count: int, name: str = "t") -> onnx.ModelProto:
    """x -> Neg -> ... -> Neg"""
    lines = [f"{name}{i + 1} = Neg ({name}{i})" for i in range(count)]
    return parsed(f"main (float[2] {name}0) => (float[2] {name}{count}) {{ {' '.join(lines)} }}")


def nested(depth: int) -> onnx.ModelProto:
    """An If in an If, each with an Abs in the other branch."""
    text = "r0 = Neg (x)"
    for level in range(depth):
        text = f"""r{level + 1} = If (c) <then_branch = a{level} () => (float[2] r{level}) {{ {text} }},
          else_branch = b{level} () => (float[2] e{level}) {{ e{level} = Abs (x) }}>"""
    return parsed(f"main (float[2] x, bool c) => (float[2] r{depth}) {{ {text} }}")


def doubling(depth: int, calls: int = 2) -> onnx.ModelProto:
    """f0 calls f1 twice, which calls f2 twice, ...: a file of `depth` functions and 2^depth nodes."""
    made = parsed("main (float[2] x) => (float[2] y) { y = Identity (x) }")
    made.graph.node[0].CopyFrom(helper.make_node("f0", ["x"], ["y"], domain="d"))
    made.opset_import.append(helper.make_opsetid("d", 1))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("d", 1)]
    for level in range(depth):
        last = level == depth - 1
        names = ["v", *(f"v{i}" for i in range(calls - 1)), "r"]
        nodes = [
            helper.make_node("Neg" if last else f"f{level + 1}", [a], [b], domain="" if last else "d")
            for a, b in pairwise(names)
        ]
        made.functions.append(helper.make_function("d", f"f{level}", ["v"], ["r"], nodes, opsets))
    return made


def sums(count: int) -> onnx.ModelProto:
    """Constants that folding adds, one after another: 1 KB of results each."""
    made = chain(1)
    for i in range(count):
        made.graph.initializer.append(numpy_helper.from_array(np.full(256, i, np.float32), f"w{i}"))
        made.graph.node.append(helper.make_node("Sin", [f"w{i}"], [f"s{i}"]))
        made.graph.output.append(helper.make_tensor_value_info(f"s{i}", 1, [256]))
    return made


def sparse() -> onnx.ModelProto:
    """Two numbers that are 4 KB when they are dense."""
    values, indices = np.float32([1, 2]), np.int64([3, 5])
    made = parsed("main (float[1024] x) => (float[1024] y) { y = Add (x, w) }")
    tensor = helper.make_sparse_tensor(
        numpy_helper.from_array(values, "w"), numpy_helper.from_array(indices, "i"), [1024]
    )
    made.graph.sparse_initializer.append(tensor)
    return made


def loop(count: int) -> onnx.ModelProto:
    return parsed(f"""main (float[2] x) => (float[2] y) <int64 n = {{{count}}}> {{
      y = Loop (n, "", x) <body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t) {{
        d = Identity (c) u = Neg (s) t = Mul (u, s) }}> }}""")


def axes(count: int) -> onnx.ModelProto:
    made = parsed("main (float[2] x) => (float[2] y) { y = Add (x, c) }")
    made.graph.node.insert(0, helper.make_node("Constant", [], ["k"], value_floats=[1.5] * count))
    made.graph.node.insert(1, helper.make_node("ReduceMax", ["k"], ["c"], keepdims=1))
    return made


def windows(size: int) -> onnx.ModelProto:
    """One node of the model that becomes some nodes for each element of a window, twice for each gap up to `size`."""
    return parsed(f"""main (int64[9] x) => (float[1] y) {{ y = TfIdfVectorizer
      <max_gram_length: int = 2, max_skip_count: int = {size}, min_gram_length: int = 2, mode: string = "TF",
       ngram_counts: ints = [0, 0], ngram_indexes: ints = [0], pool_int64s: ints = [5, 6]> (x) }}""")


CASES: dict[str, tuple[Callable[[], onnx.ModelProto], str, int, int, dict[str, Any]]] = {
    # limit -> model, code, the largest value that refuses it, the smallest one that does not, options
    "nesting": (lambda: nested(4), "ML312", 3, 4, {}),
    "call_depth": (lambda: doubling(5), "ML312", 4, 5, {}),
    "nodes": (lambda: chain(9), "ML341", 8, 9, {}),
    "made_nodes": (lambda: windows(5), "ML348", 100, 2000, {}),
    "calls": (lambda: doubling(4), "ML347", 7, 8, {}),
    "unrolled_nodes": (lambda: loop(3), "ML346", 5, 100, {"unroll": 5}),
    "constant_bytes": (sparse, "ML342", 4095, 4096, {}),
    "folded_bytes": (lambda: sums(3), "ML343", 3071, 3072, {}),
    "name_length": (lambda: chain(2, "t" * 50), "ML344", 50, 51, {}),
    "attribute_bytes": (lambda: axes(10), "ML345", 79, 80, {}),
}


def written(folder: Path, model: onnx.ModelProto, **options: Any) -> tuple[bytes, bytes]:
    save_model(convert_model(model, **options), folder / "m.xml")
    return (folder / "m.xml").read_bytes(), (folder / "m.bin").read_bytes()


@pytest.mark.parametrize("name", CASES)
def test_limit(tmp_path: Path, name: str) -> None:
    make, code, too_small, enough, options = CASES[name]
    model = make()
    with pytest.raises(LimitError, match=f"than the limit '{name}', which is") as caught:
        convert_model(model, limits={name: too_small}, **options)
    error = caught.value
    assert (error.code, error.exit_code) == (code, 3)
    advised = int(error.hint.rpartition(f"--limit {name}=")[2])  # of nodes twice those of the file
    assert advised >= 2 * too_small
    assert written(tmp_path, model, limits={name: enough}, **options) == written(tmp_path, model, **options)


def weights(folder: Path) -> Path:
    """Two weights of 4000 bytes, which overlap in a file of 4004 bytes."""
    made = parsed("main (float[1000] x) => (float[1000] y) { t = Add (x, a) y = Add (t, b) }")
    np.arange(1001, dtype=np.float32).tofile(folder / "data.bin")
    for name, offset in (("a", 0), ("b", 4)):
        tensor = made.graph.initializer.add(name=name, data_type=1, dims=[1000], data_location=1)
        for key, value in (("location", "data.bin"), ("offset", str(offset)), ("length", "4000")):
            tensor.external_data.add(key=key, value=value)
    onnx.save(made, folder / "m.onnx")
    return folder / "m.onnx"


def test_the_bytes_of_the_bin_are_limited(tmp_path: Path) -> None:
    """The limit counts only above four times the bytes of the files, and the old pair stays."""
    model, target = weights(tmp_path), tmp_path / "out" / "m.xml"
    save_model(convert_model(model, limits={"output_bytes": 1}), target)
    old = target.read_bytes()
    in_memory = sums(4)
    caught = raised(LimitError, save_model, convert_model(in_memory, limits={"output_bytes": 4095}), target)
    assert caught.code == "ML349" and "--limit output_bytes=8190" in caught.hint
    assert target.read_bytes() == old and [each.name for each in target.parent.iterdir()] == ["m.bin", "m.xml"]
    save_model(convert_model(in_memory, limits={"output_bytes": 4096}), target)


def test_files_that_declare_one_range_for_many_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = weights(tmp_path)
    monkeypatch.setattr(conversion_limits, "_GROWTH", 1)
    with pytest.raises(LimitError, match=r"^ML349: "):
        save_model(convert_model(model, limits={"output_bytes": 7999}), tmp_path / "m.xml")
    save_model(convert_model(model, limits={"output_bytes": 8064}), tmp_path / "m.xml")


READING = {"nodes": (8, 9, "ML341"), "name_length": (3, 9, "ML344"), "nesting": (1, 2, "ML312")}
"""Limit of the IR reader -> the largest value that refuses a model, one that does not, and the code."""


class TestReading:
    @pytest.fixture
    def ir(self, tmp_path: Path) -> Path:
        model = parsed("""main (float[2] x, bool c) => (float[2] y) {
          y = If (c) <then_branch = a () => (float[2] p) { p = If (c) <
            then_branch = b () => (float[2] q) { q = Neg (x) }, else_branch = d () => (float[2] r) { r = Abs (x) }> },
          else_branch = e () => (float[2] long_name) { long_name = Exp (x) }> }""")
        save_model(convert_model(model), tmp_path / "m.xml")
        return tmp_path / "m.xml"

    @pytest.mark.parametrize("name", READING)
    def test_limit(self, ir: Path, name: str) -> None:
        few, enough, code = READING[name]
        for value in (1, few):
            caught = raised(LimitError, read_model, ir, limits={name: value})
            assert (caught.code, caught.exit_code) == (code, 3)
        assert read_model(ir, limits={name: 10 * enough}).outputs

    def test_the_bytes_of_the_xml(self, ir: Path) -> None:
        size = ir.stat().st_size
        caught = raised(LimitError, read_model, ir, limits={"xml_bytes": size - 1})
        assert caught.code == "ML351" and f"m.xml has {size} bytes" in caught.message
        assert read_model(ir, limits={"xml_bytes": size}).outputs

    def test_time(self, ir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock()
        monkeypatch.setattr(conversion_limits, "time", clock)
        monkeypatch.setattr(conversion_limits, "_EVERY", 1)

        def slow(self: Budget, name: str) -> None:
            clock.now += 1

        monkeypatch.setattr(Budget, "name", slow)
        assert raised(LimitError, read_model, ir, limits={"time": 5}).code == "ML340" and clock.now < 20

    @pytest.mark.parametrize("command", [["inspect"], ["inspect", "--nodes"], ["diff", "m.xml"], ["view", "-o", "-"]])
    def test_commands_that_read(self, ir: Path, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """The limit that the error names can be raised."""
        monkeypatch.chdir(ir.parent)
        done = CliRunner().invoke(main, [*command, "m.xml", "--limit", "xml_bytes=100"])
        assert done.exit_code == 3 and "ML351" in done.output
        assert CliRunner().invoke(main, [*command, "m.xml", "--limit", "xml_bytes=1M"]).exit_code == 0


def test_every_limit_is_tested() -> None:
    assert {*CASES, "output_bytes", "xml_bytes", "time"} == {each.name for each in fields(Limits)}
    assert all(each.metadata["code"] in CODES for each in fields(Limits))


@pytest.mark.parametrize("name", ["nodes", "folded_bytes", "unrolled_nodes"])
def test_the_numbers_of_a_model_at_its_limit(name: str) -> None:
    make, _, _, enough, options = CASES[name]
    x = np.float32([0.5, -2])
    found = interpret(convert_model(make(), limits={name: enough}, **options).graph, [x])
    if name == "folded_bytes":
        for i, each in enumerate(found[1:]):
            np.testing.assert_allclose(each, np.sin(np.full(256, i, np.float32)), rtol=1e-6)
    elif name == "nodes":
        np.testing.assert_array_equal(found[0], -x)
    else:
        for _ in range(3):
            x = -x * x
        np.testing.assert_allclose(found[0], x)


class Clock:
    """A clock that does not advance."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class TestTime:
    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> Clock:
        made = Clock()
        monkeypatch.setattr(conversion_limits, "time", made)
        return made

    def test_one_node_that_becomes_many_is_stopped_while_they_are_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The clock moves only while nodes of the graph are made: no second node of the model looks at it."""
        clock = Clock()
        monkeypatch.setattr(conversion_limits, "time", clock)
        added = Graph.add

        def slow(self: Graph, node: Node) -> None:
            clock.now += 1
            added(self, node)

        monkeypatch.setattr(Graph, "add", slow)
        caught = raised(LimitError, convert_model, windows(2000), limits={"time": 1000})
        assert caught.code == "ML340" and clock.now <= 1000 + 1024

    @pytest.mark.parametrize("phase", ["reading", "translating", "passes"])
    def test_the_conversion_ends_with_an_error(self, phase: str, clock: Clock) -> None:
        """The clock runs while the phase runs, and the next look at it raises the error."""
        seen: list[str] = []

        def slow(step: Step | Phase) -> None:
            name = step.name
            seen.append(name)
            if name == phase and not (isinstance(step, Phase) and step.seconds is not None):
                clock.now += 11

        model = chain(600)
        with pytest.raises(LimitError, match="takes longer than the limit 'time', which is 10 s") as caught:
            convert_model(model, limits={"time": 10}, observers=[slow])
        assert caught.value.code == "ML340"
        following = {"reading": "translating", "translating": "passes", "passes": "ConstantFolding"}
        assert following[phase] not in seen

    def test_writing_has_the_time_that_the_conversion_leaves(self, clock: Clock, tmp_path: Path) -> None:
        """Time between the conversion and the writing does not count, nor what another writing took."""
        model = convert_model(sums(3), limits={"time": 10})
        clock.now += 1000

        def slow(step: Step | Phase) -> None:
            if step.name == "writing":
                clock.now += 6

        for compress in (False, True):
            save_model(model, tmp_path / "m.xml", compress, observers=[slow])
        caught = raised(LimitError, save_model, model, tmp_path / "other.xml", observers=[slow, slow])
        assert caught.code == "ML340" and not (tmp_path / "other.xml").exists()

    def test_a_pattern_that_matches_its_own_result_ends(self, clock: Clock) -> None:
        """A rewriting without end is stopped before a match, not only after the pass."""

        class Endless(MatcherPass):
            """Neg(x)  ->  Neg(x)"""

            pattern = wrap_type(ops.Negative, any_input())

            def matched(self, match: Match) -> bool:
                clock.now += 1
                return self.replace(match, self.register_new_node(ops.Negative(match.root.inputs[0])))

        graph = parse("%x = Parameter : f32[2]\n%y = Negative(%x)\nResult(%y)")
        with pytest.raises(LimitError) as caught, limited(Limits(time=100)):
            Manager([GraphRewrite([Endless()])]).run(graph)
        assert caught.value.code == "ML340" and 100 <= clock.now <= 102

    def test_each_conversion_has_its_own_time(self, clock: Clock) -> None:
        for _ in range(3):
            assert convert_model(chain(300), limits={"time": 10}).outputs
            clock.now += 9


def test_nodes_that_no_call_reaches_are_counted_without_translating_them() -> None:
    """The doubling functions of depth 60 would have 10^18 nodes: the test ends because they are not translated."""
    assert raised(LimitError, convert_model, doubling(60), limits={"nodes": 5000}).code == "ML341"
    assert raised(LimitError, convert_model, doubling(60), limits={"calls": 1000}).code == "ML347"


def test_the_depths_that_can_be_asked_for_fit_into_the_stack() -> None:
    limits = {"call_depth": 100, "nesting": 100}
    assert convert_model(doubling(100, calls=1), limits=limits).graph.results
    raised(UsageError, Limits, nesting=101, match="the limit 'nesting' is 101")


def test_a_long_name_is_not_repeated_in_the_error() -> None:
    dimension = chain(1)
    dimension.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "d" * 70_000
    operator = parsed(f"main (float[2] x) => (float[2] y) {{ y = {'O' * 70_000} (x) }}")
    for model in (chain(1, "n" * 70_000), operator, dimension):
        caught = raised(LimitError, convert_model, model)
        assert caught.code == "ML344" and len(str(caught)) < 400


def test_check_reports_a_limit() -> None:
    report = examine(chain(9), ConvertOptions(limits={"nodes": 3}))
    assert [each.code for each in report.diagnostics] == ["ML341"] and report.exit_code == 1


def test_a_model_of_limits_is_not_in_the_ir(tmp_path: Path) -> None:
    assert b"limit" not in written(tmp_path, chain(1), limits={"nodes": 77})[0]


class TestValues:
    @pytest.mark.parametrize(("text", "wanted"), [
        ("nodes=7", {"nodes": 7}), ("folded-bytes=4G", {"folded_bytes": 4 << 30}),
        ("folded_bytes=1.5K", {"folded_bytes": 1536}), ("constant_bytes= 3 MiB", {"constant_bytes": 3 << 20}),
        ("time=90s", {"time": 90}), ("time=1.5h", {"time": 5400}), ("time=10m", {"time": 600}),
        ("attribute_bytes=10", {"attribute_bytes": 10}),
    ])
    def test_text(self, text: str, wanted: dict[str, int]) -> None:
        assert Limits.parse([text]) == replace(DEFAULT, **wanted)

    @pytest.mark.parametrize(
        "text",
        ["nodes", "nodes=", "nodes=0", "nodes=-1", "nodes=1K", "nodes=1.5", "nodes=٣", "time=1d", "time=", "time=1e9",
         "folded_bytes=x", "folded_bytes=0.1", "nods=3", "=3", f"nodes={'1' * 30}"],
    )
    def test_text_that_is_refused(self, text: str) -> None:
        raised(UsageError, Limits.parse, [text])

    @pytest.mark.parametrize("value", [0, -1, True, None, "many", float("nan")])
    def test_values_that_are_refused(self, value: Any) -> None:
        raised(UsageError, convert_model, chain(1), limits={"nodes": value})

    def test_the_last_value_counts(self) -> None:
        assert Limits.parse(["nodes=3", "nodes=5"]).nodes == 5


def test_a_budget_belongs_to_its_block() -> None:
    with limited(Limits(nodes=1)) as outer:
        assert budget() is outer
        with limited(outer.limits) as inner:
            assert inner is outer
        with limited(Limits(nodes=2)) as inner:
            assert inner is not outer and budget() is inner
        assert budget() is outer
    assert isinstance(budget(), Budget) and budget().limits is DEFAULT and budget() is not budget()
