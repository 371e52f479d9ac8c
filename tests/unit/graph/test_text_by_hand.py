"""Graph text written by hand: parts that may be omitted, and errors with their line."""

import pytest

from mo_loop import ops
from mo_loop.errors import InputError, MoLoopError
from mo_loop.graph.dimension import fresh, named
from mo_loop.graph.types import boolean, f32
from mo_loop.ops.base import Constant
from mo_loop.text import parse, to_text
from tests.harness import raised
from tests.texts import texts

TEXTS = texts(__file__)


class TestHandWriting:
    def test_the_shortest_form(self) -> None:
        graph = parse("%x = Parameter : f32[2] %y = Add(%x, 1) Result(%y)")
        assert [type(node).__name__ for node in graph] == ["Parameter", "Constant", "Add", "Result"]
        assert graph.of(Constant)[0].output.dtype is f32

    @pytest.mark.parametrize(("statement", "type_"), [
        ("%y = Add(%x, 1)", "f32[]"), ("%y = Reshape(%x, [1, 2])", "i64[2]"),
        ("%y = Select(true, %x, 0.5)", "boolean[] f32[]"), ("%y = Gather(%x, i32 [0], 0)", "i32[1] i64[]"),
        ("%y = Add(%i, -3)", "i32[]"), ("%y = Equal(%i, [1, 2, 3])", "i32[3]"),
        ("%y = Reshape(%x, [])", "i64[0]"), ("%y = Power(%d, 2)", "f64[]"),
    ])
    def test_types_of_literals(self, statement: str, type_: str) -> None:
        dims = "1" if "[])" in statement else "2"
        graph = parse(f"%x = Parameter : f32[{dims}] %i = Parameter : i32[3] %d = Parameter : f64[] {statement}")
        assert " ".join(str(each.output.type) for each in graph.of(Constant)) == type_

    def test_in_control_flow_a_literal_is_i64_or_f32(self) -> None:
        graph = parse("""
            %x = Parameter : f16[2]
            %y = Loop(5, true, %x, 1, 2.0) {
              condition: @go, input_map: [Merged(%a, @a), Merged(%b, @b), Merged(%c, @c)], output_map: [Final(@a)]
            }
              body {
                %a = Parameter %b = Parameter %c = Parameter
                Result(true) @go Result(%a) Result(%b) Result(%c)
              }""")
        assert [str(each.output.type) for each in graph.of(Constant)] == ["i64[]", "boolean[]", "i64[]", "f32[]"]

    def test_parameters_of_a_body_are_typed_by_what_feeds_them(self) -> None:
        graph = parse(TEXTS["parameters of a body are typed by what feeds them"])
        bodies = [node.bodies[0] for node in graph.nodes_with_bodies()]
        shown = [[str(each.output.type) for each in body.parameters] for body in bodies]
        assert shown == [["f32[2,N]", "f32[6,N]"], ["f32[6]"]]

    def test_a_growing_state_is_widened(self) -> None:
        graph = parse("""
            %y = Loop(5, true, f32 [0.0]) {condition: @go, input_map: [Merged(%a, @n)], output_map: [Final(@n)]}
              body {
                %a = Parameter
                %n = Concat(%a, %a) {axis: 0}
                Result(true) @go Result(%n)
              }""")
        assert [str(value.type) for value in graph.of(ops.Loop)[0].outputs] == ["f32[?]"]

    def test_attributes_with_their_default_are_left_out(self) -> None:
        graph = parse("""
            %x = Parameter : f32[2]
            %a = ReduceSum(%x, 0) {keep_dims: false} %b = ReduceSum(%x, 0) {keep_dims: true}
            %c = Round(%x) {mode: half_away_from_zero} %d = Convert(%x) {destination_type: i64}""")
        shown = [line.strip() for line in to_text(graph).splitlines()[2:-1]]
        assert shown == [
            "%1 = ReduceSum(%0, 0) : f32[]", "%2 = ReduceSum(%0, 0) {keep_dims: true} : f32[1]",
            "%3 = Round(%0) {mode: half_away_from_zero} : f32[2]",
            "%4 = Convert(%0) {destination_type: i64} : i64[2]",
        ]

    def test_values_that_are_known_are_known_again(self) -> None:
        graph = parse("""
            %x = Parameter : f32[2,N,3]
            %s = ShapeOf(%x) %n = Gather(%s, [1], 0) %p = Concat(%n, [6]) {axis: 0}
            %y = Reshape(%x, %p) : f32[N,6]""")
        assert graph.of(ops.Reshape)[0].output.shape == (named("N"), 6)

    def test_fresh_dimensions_compare_by_their_bounds(self) -> None:
        parse("%x = Parameter : f32[?,1..4] %y = Abs(%x) : f32[?,1..4]")
        assert parse("%x = Parameter : f32[?]").parameters[0].output.shape != (fresh(),)


class TestErrors:
    @pytest.mark.parametrize(("text", "line", "says"), [
        ("%x = Parameter", 1, "needs a type"),
        ("%x = Parameter : f33[2]", 1, "'f33' is not an element type"),
        ("%x = Parameter : f32[2\n%y = Abs(%x)", 2, "expected ','"),
        ("\n\n%y = Abs(%x)", 3, "%x is not defined"),
        ("%x = Parameter : f32[2]\n%y = Abz(%x)", 2, "no operation Abz"),
        ("%x = Parameter : f32[2]\n%y = Unary(%x)", 2, "no operation Unary"),
        ("%x = Parameter : f32[2]\n%y = Abs(%x) : f32[3]", 2, "%y is f32[2] by inference, but the text declares"),
        ("%x = Parameter : f32[2]\n# note\n%y = Add(%x, [1, 2, 3])", 3, "cannot be broadcast"),
        ("%x = Parameter : f32[2]\n%y = Add(%x, true)", 2, "its input 'b' is boolean[], and must be numbers"),
        ("%x = Parameter : i64[2]\n%y = Add(%x, 1.5)", 2, "differ"),
        ("%x = Parameter : u8[2]\n%y = Add(%x, 300)", 2, "300 is not u8"),
        ("%x = Parameter : f32[2]\n%y = Abs(%x) {speed: 3}", 2, "Abs has no attribute speed"),
        ("%x = Parameter : f32[2]\n%y = Split(%x, 0) {num_splits: 2}", 2, "1 outputs for a Split of 2"),
        ("%x = Parameter : f32[2]\n%y = Split(%x, 0)", 2, "needs the attribute num_splits"),
        ("%x = Parameter : f32[2]\n%x = Abs(%x)", 2, "%x is defined twice"),
        ("%x = Parameter : f32[2]\n%y = Abs(%x,\n%x)", 2, "expects x"),
        ("%c = Constant [[1, 2], [3]]", 1, "differ in length"),
        ("%c = Constant [1, true]", 1, "a literal of bool and int"),
        ("%c = Constant [1, 2, 3] : f32[2]", 1, "shape [3] for a constant of f32[2]"),
        ("%c = Constant 1 : f32[N]", 1, "cannot be of type"),
        ("%c = Constant seed(3)", 1, "a seed needs a type"),
        ("%c = Constant 1.5 : i64[]", 1, "a literal of float is not i64"),
        ("%c = Constant i32 1 : i64[]", 1, "the literal is of i32"),
        ("graph {\n%x = Parameter : f32[2]", 2, "expected '}'"),
        ("%x = Parameter : f32[2] }", 1, "expected a statement"),
        ("Result()", 1, "a Result has one input"),
        ("%x = Parameter : seq(f32[2]", 1, "expected ')'"),
    ])
    def test_the_line_is_named(self, text: str, line: int, says: str) -> None:
        caught = raised(InputError, parse, text)
        assert caught.message.startswith(f"line {line}: ") and says in caught.message

    LOOP = """%x = Parameter : f32[2]
%y = Loop(3, true, %x) {{condition: {condition}, input_map: [{entry}], output_map: [Final(@n)]}}
  body {{
    %s = Parameter
    %n = Add(%s, {operand})
    Result(true) @go Result(%n)
  }}"""

    @pytest.mark.parametrize(("changes", "line", "says"), [
        ({"operand": "%x"}, 5, "%x is not defined"),
        ({"condition": "@stop"}, 2, "@stop is not defined in the body"),
        ({"entry": "Merged(%s, @t)"}, 2, "@t is not defined in the body"),
        ({"entry": "Mergd(%s, @n)"}, 2, "'Mergd' is not an entry"),
        ({"entry": "Merged(%s, @n, 3)"}, 2, "expected '_'"),
        ({"entry": "Merged(%s, @n, axis: 3)"}, 2, "Merged has no 'axis'"),
        ({"entry": "Sliced(%s)"}, 2, "Sliced takes parameter, axis"),
        ({"entry": ""}, 4, "a Parameter needs a type where no port map feeds it"),
        ({"entry": "Merged(%s, @n), Invariant(%s)"}, 2, "1 inputs for a port map of 2"),
    ])
    def test_in_port_maps(self, changes: dict[str, str], line: int, says: str) -> None:
        good = {"condition": "@go", "entry": "Merged(%s, @n)", "operand": "1"}
        parse(self.LOOP.format(**good))
        caught = raised(InputError, parse, self.LOOP.format(**{**good, **changes}))
        assert says in caught.message and caught.message.startswith(f"line {line}: ")

    def test_a_code_and_a_hint_are_kept(self) -> None:
        assert raised(MoLoopError, parse, "%x = Parameter : f32[2]\n%y = Add(%x, [1, 2, 3])").code == "ML232"
        caught = raised(InputError, parse, "%x = Parameter : f32[2]\n%y = Reshap(%x, [2])")
        assert "Reshape" in caught.hint and caught.code == "ML209"

    def test_types_in_a_body_are_held_against_the_settled_ones(self) -> None:
        text = self.LOOP.format(condition="@go", entry="Merged(%s, @n)", operand="1")
        parse(text.replace("%n = Add(%s, 1)", "%n = Add(%s, 1) : f32[2]"))
        with pytest.raises(InputError, match="line 5: %n is f32"):
            parse(text.replace("%n = Add(%s, 1)", "%n = Add(%s, 1) : f32[?]"))


def test_booleans_are_not_numbers() -> None:
    assert parse("%c = Constant true Result(%c)").of(Constant)[0].output.dtype is boolean
