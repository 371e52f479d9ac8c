"""The predicates of patterns, nodes inserted before an output, and pictures between passes."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.errors import FileError, UsageError
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import fresh
from mo_loop.graph.types import UNKNOWN, SequenceType, TensorType, f16, f32, i64
from mo_loop.text import parse, to_text
from mo_loop.text.dot import to_dot
from mo_loop.transforms import visualize
from mo_loop.transforms.common.nop_elimination import EliminateGather
from mo_loop.transforms.manager import Manager, Step
from mo_loop.transforms.predicates import (
    Predicate,
    as_predicate,
    consumed_by,
    consumed_only_by,
    consumers_count,
    consumers_more_than,
    has_static_dims,
    has_static_rank,
    has_static_shape,
    is_constant,
    rank_equals,
    rank_more_than,
    shape_equals,
    type_matches,
    value_equals,
)
from mo_loop.transforms.replace import insert_before
from mo_loop.transforms.visualize import VisualizeTree
from tests.unit.graph.graphs import parameter
from tests.unit.look.graphviz import use_as_graphviz

# -- The predicates of patterns: their results, and the explanations if they are false


ALL = (
    consumers_count(1), consumers_count(2), consumers_more_than(1), rank_equals(1, 2), rank_more_than(1),
    has_static_rank(), has_static_shape(), has_static_dims(0), shape_equals(2, 3), type_matches(f32),
    is_constant(), value_equals(0), consumed_by(ops.ReLU),
)


def typed(graph: Graph, type_: object) -> Value:
    return ops.Parameter(graph=graph, type=type_).output


def filled(graph: Graph, *numbers: float, dtype: object = np.float32) -> Value:
    return ops.Constant(np.array(numbers, dtype), graph=graph).output


def test_consumers_are_inputs_not_nodes(graph: Graph) -> None:
    x = parameter(graph, 2)
    assert not consumers_count(1)(x)
    ops.ReLU(x)
    assert consumers_count(1)(x) and not consumers_more_than(1)(x)
    ops.Add(x, x)
    assert consumers_count(3)(x) and consumers_more_than(2)(x)
    assert consumers_count(1).reason(x) == "wants 1 consumer, found 3"
    assert consumers_more_than(3).reason(x) == "wants more than 3 consumers, found 3"


def test_which_nodes_consume(graph: Graph) -> None:
    x = parameter(graph, 2)
    assert consumed_only_by(ops.Add)(x) and not consumed_by(ops.ReLU, ops.Add)(x)
    assert consumed_by(ops.ReLU).reason(x) == "wants a consumer ReLU, found none"
    ops.ReLU(x)
    ops.Add(x, x)
    assert consumed_by(ops.ReLU)(x) and consumed_by(ops.Multiply, ops.Add)(x)
    assert consumed_only_by(ops.ReLU, ops.Add)(x) and not consumed_only_by(ops.ReLU)(x)
    assert consumed_only_by(ops.ReLU).reason(x) == "wants no other consumer than ReLU, found ReLU, Add"


def test_ranks(graph: Graph) -> None:
    known, unknown = parameter(graph, 2, 3), typed(graph, TensorType(f32, None))
    assert rank_equals(1, 2)(known) and not rank_equals(1, 3)(known) and rank_more_than(1)(known)
    assert not rank_more_than(2)(known) and has_static_rank()(known)
    for each in (rank_equals(0), rank_more_than(0), has_static_rank()):
        assert not each(unknown)
    assert rank_equals(1, 3).reason(known) == "wants rank 1 or 3, found 2"


def test_shapes(graph: Graph) -> None:
    static, partly = parameter(graph, 2, 3), typed(graph, TensorType(f32, (fresh(), 3)))
    unknown = typed(graph, TensorType(f32, None))
    assert has_static_shape()(static) and shape_equals(2, 3)(static) and not shape_equals(3, 2)(static)
    assert has_static_dims(1, -1)(partly) and has_static_dims(0, 1, -1, -2)(static)
    for outside in (2, 3, -3):
        assert not has_static_dims(outside)(static)
    assert not has_static_dims(0)(partly) and not has_static_dims(-2)(partly)
    for each in (has_static_shape(), has_static_dims(0), shape_equals(2, 3)):
        assert not each(unknown)
    assert not has_static_shape()(partly) and not shape_equals(2, 3)(partly)


def test_types(graph: Graph) -> None:
    x = parameter(graph, 2)
    assert type_matches(f16, f32)(x) and not type_matches(i64)(x)


@pytest.mark.parametrize("type_", [UNKNOWN, SequenceType(TensorType(f32, (2,))), TensorType(f32, None)], ids=str)
@pytest.mark.parametrize("each", ALL, ids=lambda each: each.wanted)
def test_nothing_is_asked_in_vain(graph: Graph, each: Predicate, type_: object) -> None:
    value = typed(graph, type_)
    assert each(value) is (type_ == TensorType(f32, None) and each.wanted.startswith("element type"))
    assert each.reason(value).startswith(f"wants {each.wanted}, found ")


class TestValueEquals:
    def test_every_element(self, graph: Graph) -> None:
        assert value_equals(2)(filled(graph, 2, 2, 2)) and not value_equals(2)(filled(graph, 2, 2, 3))
        assert not value_equals(2)(filled(graph)) and value_equals(0.5)(filled(graph, 0.5))
        assert not value_equals(2)(parameter(graph, 1))

    def test_an_array_elementwise(self, graph: Graph) -> None:
        assert value_equals([1, 2])(filled(graph, 1, 2)) and not value_equals([1, 2])(filled(graph, 2, 1))
        assert not value_equals([1, 2])(filled(graph, 1, 2, 3))

    def test_nan_equals_nothing(self, graph: Graph) -> None:
        assert not value_equals(np.nan)(filled(graph, np.nan))

    def test_looks_through_operations(self, graph: Graph) -> None:
        assert value_equals(3)(ops.Add(filled(graph, 1), filled(graph, 2)).output)

    def test_large_constants_never_match(self, graph: Graph) -> None:
        many = filled(graph, *[0] * 9)
        assert value_equals(0, limit=36)(many) and not value_equals(0, limit=35)(many)
        assert value_equals(1, limit=35).reason(many).endswith("found a value that is not constant: f32[9]")

    def test_says_what_there_is(self, graph: Graph) -> None:
        assert value_equals(1).reason(filled(graph, 2, 3)) == "wants the value 1, found [2. 3.]"


class TestCombinations:
    def test_and_or_not(self, graph: Graph) -> None:
        x = parameter(graph, 2, 3)
        two, three, static = rank_equals(2), rank_equals(3), has_static_shape()
        assert (two & static)(x) and not (three & static)(x) and (three | static)(x)
        assert not (three | ~static)(x) and (~three)(x)

    def test_the_words(self, graph: Graph) -> None:
        x = parameter(graph, 2, 3)
        a, b, c = rank_equals(3), rank_more_than(2), has_static_shape()
        assert (c & a).reason(x) == "wants a static shape and rank 3, found 2"
        assert ((a | b) & c).wanted == "(rank 3 or a rank above 2) and a static shape"
        assert (~(a | b)).wanted == "not (rank 3 or a rank above 2)"
        assert (~(a & b)).wanted == "not (rank 3 and a rank above 2)"

    def test_a_refusal_of_a_negated_combination(self, graph: Graph) -> None:
        both = ~(rank_equals(2) & has_static_rank())
        x = parameter(graph, 2, 3)
        assert not both(x) and both.reason(x) == "wants not (rank 2 and a known rank), found 2"

    def test_plain_functions(self, graph: Graph) -> None:
        def is_even(value: Value) -> bool:
            return value.rank == 2

        x = parameter(graph, 2, 3)
        assert (has_static_rank() & is_even)(x) and as_predicate(is_even).wanted == "is_even"
        assert as_predicate(lambda _: True).wanted == "a condition"
        assert as_predicate(lambda _: False).reason(x) == "wants a condition, found f32[2,3]"

    def test_the_second_is_asked_only_if_the_first_leaves_it_open(self, graph: Graph) -> None:
        def fails(value: Value) -> bool:
            raise AssertionError("asked in vain")

        x = parameter(graph, 2)
        assert not (rank_equals(5) & fails)(x) and (rank_equals(1) | fails)(x)


# -- Pictures between passes: which files are written, and the messages about them


TEXT = """
graph main {
  %x = Parameter : f32[2,1]
  %g = Gather(%x, [0], 1) %y = ReLU(%g)
  Result(%y) names "y"
}"""


@pytest.fixture
def without_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visualize, "_program", lambda: None)


class TestVisualizeTree:
    @pytest.mark.parametrize("options", [{}, {"shapes": True}, {"types": True}, {"shapes": True, "types": True}])
    def test_alone(self, options: dict[str, bool], tmp_path: Path) -> None:
        graph = parse(TEXT)
        before = to_text(graph)
        assert VisualizeTree(tmp_path / "new" / "graph.dot", **options).run(graph) is False
        assert to_text(graph) == before
        assert (tmp_path / "new" / "graph.dot").read_text("utf-8") == to_dot(graph, **options)
        assert [path.name for path in (tmp_path / "new").iterdir()] == ["graph.dot"]

    def test_between_two_passes(self, tmp_path: Path) -> None:
        """It shows the graph at that point."""
        graph = parse(TEXT)
        steps: list[Step] = []
        passes = [VisualizeTree(tmp_path / "a.dot"), EliminateGather(), VisualizeTree(tmp_path / "b.dot")]
        assert Manager(passes, [steps.append]).run(graph) and [step.changed for step in steps] == [False, True, False]
        assert "Gather" in (tmp_path / "a.dot").read_text("utf-8")
        assert "Gather" not in (tmp_path / "b.dot").read_text("utf-8")

    @pytest.mark.usefixtures("without_graphviz")
    def test_a_missing_program_is_said(self, tmp_path: Path) -> None:
        with pytest.warns(UserWarning, match="install Graphviz") as heard:
            VisualizeTree(tmp_path / "graph.svg").run(parse(TEXT))
        assert "graph.svg is not drawn" in str(heard[0].message) and "graph.dot is written" in str(heard[0].message)
        assert [path.name for path in tmp_path.iterdir()] == ["graph.dot"]

    @pytest.mark.usefixtures("without_graphviz")
    def test_a_dot_file_needs_no_program(self, tmp_path: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            VisualizeTree(tmp_path / "graph.dot").run(parse(TEXT))

    @pytest.mark.skipif(os.name == "nt", reason="the program is a shell script")
    def test_the_program_draws(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        use_as_graphviz(tmp_path, monkeypatch, 'echo "<svg $1>"; cat')
        VisualizeTree(tmp_path / "out" / "graph.svg").run(parse(TEXT))
        source = (tmp_path / "out" / "graph.dot").read_text("utf-8")
        assert (tmp_path / "out" / "graph.svg").read_text("utf-8") == f"<svg -Tsvg>\n{source}"

    @pytest.mark.skipif(os.name == "nt", reason="the program is a shell script")
    @pytest.mark.parametrize(("script", "said"), [
        ("echo half; echo 'no fonts' >&2; exit 3", "ended with code 3: no fonts"),
        ("exec sleep 60", "took more than"),
    ])
    def test_a_program_that_fails(
        self, script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No partial file is written; an older picture stays."""
        use_as_graphviz(tmp_path, monkeypatch, script)
        monkeypatch.setattr(visualize, "LIMIT", 0.5)
        folder = tmp_path / "out"
        folder.mkdir()
        (folder / "graph.svg").write_text("old")
        with pytest.warns(UserWarning, match=said):
            VisualizeTree(folder / "graph.svg").run(parse(TEXT))
        assert (folder / "graph.svg").read_text() == "old"
        assert sorted(path.name for path in folder.iterdir()) == ["graph.dot", "graph.svg"]

    @pytest.mark.parametrize("name", ["graph", "graph.png", "graph.DOT"])
    def test_other_endings(self, name: str) -> None:
        with pytest.raises(UsageError, match="neither"):
            VisualizeTree(name)

    def test_places_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "taken").write_text("kept")
        (tmp_path / "folder.dot").mkdir()
        for path in (tmp_path / "taken" / "graph.dot", tmp_path / "folder.dot"):
            with pytest.raises(FileError, match=r"^ML219: "):
                VisualizeTree(path).run(parse(TEXT))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.dot", "taken"]


# -- Nodes inserted before a model output


def test_a_node_before_a_model_output_takes_its_name() -> None:
    """The output gives the tensor of that name, and no other tensor has the name."""
    graph = parse("""
        %x = Parameter : f32[2] "x"
        %y = Exp(%x) "y" names "inner" "y" %z = Negative(%y) "z" names "z"
        Result(%y) "y/sink_port_0" names "y" Result(%z) "z/sink_port_0" names "z"
    """)
    insert_before(graph.results[0], 0, lambda value: ops.Abs(value))
    assert to_text(graph).splitlines()[1:-1] == [
        '  %x = Parameter : f32[2] "x"', '  %y = Exp(%x) : f32[2] "y" names "inner"',
        '  %z = Negative(%y) : f32[2] "z" names "z"', '  %3 = Abs(%y) : f32[2] "y" names "y"',
        '  Result(%3) "y/sink_port_0" names "y"', '  Result(%z) "z/sink_port_0" names "z"',
    ]
