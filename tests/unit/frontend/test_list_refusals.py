"""Lists that cannot run: each is refused with the operator, its path and the reason."""

from typing import Any

import pytest
from onnx import helper

from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors, MoLoopError
from mo_loop.ops.control import Loop
from tests.harness import parsed, refusal


def program(text: str) -> Any:
    """A model around nodes that make y; z is 0, far is 2 and s a list of two vectors."""
    return parsed(f"""
        main (float[N] x, float[2,3] m, int64[K] shape, int64 n, bool c, string[N] w) => (float[?] y) {{
          z = Constant <value_int=0> () far = Constant <value_int=2> () s = SequenceConstruct (x, x)
          {text}
        }}""")


def looped(nodes: str, state: str = "x", kind: str = "float[?]", reads: str = "") -> str:
    """A loop over a state p whose next value is q."""
    result = "y" if not reads else "t"
    return f"""
        {result} = Loop (n, "", {state}) <body = step (int64 i, bool g, {kind} p) => (bool d, {kind} q) {{
          d = Identity (g)
          {nodes}
        }}>
        {reads}"""


def chosen(then: str, otherwise: str) -> str:
    """A list from one of two branches, and a node that reads it."""
    return f"""
        t = If (c) <then_branch = yes () => (seq(float[?]) p) {{ {then} }},
                    else_branch = no () => (seq(float[?]) q) {{ {otherwise} }}>
        y = SequenceAt (t, z)"""


LIST = "seq(float[?])"
FIRST = "y = SequenceAt (t, z)"
LENGTH = "l = SequenceLength (t) f = Cast <to=1> (l) y = Add (f, x)"
OUTSIDE = "is outside a sequence of 2 elements"


@pytest.mark.parametrize(("code", "operator", "place", "reason", "text"), [
    # positions known at conversion
    ("ML235", "SequenceAt", "y/step/q", f"position 2 {OUTSIDE}", looped("q = SequenceAt (s, far)")),
    ("ML235", "SequenceErase", "t", f"position 2 {OUTSIDE}", f"t = SequenceErase (s, far) {FIRST}"),
    ("ML235", "SequenceAt", "y", "a position of type f32",
     "h = Constant <value_float=1.0> () y = SequenceAt (s, h)"),
    ("ML235", "SequenceAt", "y", "a position of 2 elements",
     "h = Constant <value_ints=[0,1]> () y = SequenceAt (s, h)"),
    # elements of another type or rank
    ("ML235", "SequenceInsert", "t/step/q", "type f32 and i64",
     looped("k = Cast <to=7> (x) q = SequenceInsert (p, k)", "s", LIST, FIRST)),
    ("ML235", "SequenceInsert", "t/step/q", "rank 1 and 2", looped("q = SequenceInsert (p, m)", "s", LIST, FIRST)),
    ("ML239", "Loop", "t", "type f32 and i64",
     looped("k = Cast <to=7> (x) q = SequenceConstruct (k)", "s", LIST, FIRST)),
    ("ML239", "If", "t", "type f32 and i64",
     chosen("p = Identity (s)", "k = Cast <to=7> (x) q = SequenceConstruct (k)")),
    ("ML235", "SequenceInsert", "t", "is not a tensor", f"t = SequenceInsert (s, s) {FIRST}"),
    ("ML235", "SequenceAt", "y", "is not a sequence", "y = SequenceAt (x, z)"),
    # empty lists
    ("ML243", "SequenceErase", "v", "a sequence that is always empty",
     "t = SequenceErase (s) u = SequenceErase (t) v = SequenceErase (u) y = ConcatFromSequence <axis=0> (v)"),
    ("ML243", "ConcatFromSequence", "y", "a sequence that is always empty",
     "e = SequenceEmpty () y = ConcatFromSequence <axis=0> (e)"),
    # axes and pieces
    ("ML231", "ConcatFromSequence", "y", "axis 1 is outside", "y = ConcatFromSequence <axis=1> (s)"),
    ("ML231", "SplitToSequence", "t", "axis 1 is outside", f"t = SplitToSequence <axis=1> (x) {FIRST}"),
    ("ML235", "SplitToSequence", "t", "pieces of size 0", f"t = SplitToSequence (x, z) {FIRST}"),
    ("ML235", "SplitToSequence", "t", "3 into pieces of 2",
     "k = Constant <value_ints=[1,1]> () t = SplitToSequence <axis=1> (m, k) y = SequenceAt (t, z)"),
])
def test_bad_lists(code: str, operator: str, place: str, reason: str, text: str) -> None:
    error = refusal(program(text))
    assert (error.code, error.exit_code, error.where) == (code, 2, place)
    assert error.message.startswith(f"{operator} (opset ") and reason in error.message


@pytest.mark.parametrize(("code", "operator", "place", "reason", "text"), [
    ("ML314", "SplitToSequence", "t", "unknown rank", f"a = Reshape (x, shape) t = SplitToSequence (a) {FIRST}"),
    ("ML320", "SequenceAt", "b", "unknown rank",
     looped("a = Reshape (x, shape) q = SequenceInsert (p, a)", "e", "seq(float)",
            "b = SequenceAt (t, n) y = Neg (b)")),
    ("ML320", "SequenceAt", "y", "of several ranks", chosen("p = Identity (s)", "q = SequenceConstruct (m)")),
    ("ML303", "SequenceInsert", "t", "a sequence of strings",
     f"v = SequenceEmpty <dtype=8> () t = SequenceInsert (v, w) {LENGTH}"),
    ("ML303", "SplitToSequence", "t", "a sequence of strings",
     f"t = SplitToSequence (w) {LENGTH}"),
    ("ML303", "SequenceConstruct", "y/step/t", "a sequence of strings",
     looped("t = SequenceConstruct (w) l = SequenceLength (t) f = Cast <to=1> (l) q = Add (f, p)")),
])
def test_lists_that_the_runtime_cannot_hold(code: str, operator: str, place: str, reason: str, text: str) -> None:
    model = program(f"e = SequenceEmpty () {text}")
    with pytest.raises(MoLoopError) as caught:
        convert_model(model)
    errors = caught.value.errors if isinstance(caught.value, ConversionErrors) else [caught.value]
    error = next(each for each in errors if each.where == place)
    assert (error.code, error.exit_code) == (code, 3)
    assert error.message.startswith(operator) and reason in error.message


def empty_optional(model: Any) -> Any:
    """The model with the element type of its Optional, which the text form cannot express."""
    optional = next(node for node in model.graph.node if node.op_type == "Optional")
    optional.attribute.append(helper.make_attribute("type", helper.make_tensor_type_proto(1, [None])))
    return model


def test_the_element_of_an_optional_that_is_empty() -> None:
    error = refusal(empty_optional(program("o = Optional () y = OptionalGetElement (o)")))
    assert (error.code, error.exit_code, error.where) == ("ML241", 2, "y")
    assert error.message.startswith("OptionalGetElement (opset ")


@pytest.mark.parametrize("text", ["q = OptionalGetElement (o)", "q = SequenceAt (e, i)"])
def test_a_loop_that_reads_what_is_not_there_is_left_out(text: str) -> None:
    model = empty_optional(program(f"o = Optional () e = SequenceEmpty () {looped(text)}"))
    graph = convert_model(model).graph
    assert not graph.of(Loop)
    assert graph.results[0].value.node.inputs[0] is graph.parameters[0].output  # a copy of x


def test_an_optional_without_an_element_names_its_type() -> None:
    error = refusal(program("o = Optional () y = OptionalGetElement (o)"))
    assert (error.code, error.where) == ("ML227", "o")


@pytest.mark.parametrize(("port", "text"), [
    ("the output 's' is a seq(f32[N], 1)", "main (float[N] x) => (seq(float[N]) s) { s = SequenceConstruct (x) }"),
    ("the input 's' is a seq(f32[N])", "main (seq(float[N]) s) => (int64 l) { l = SequenceLength (s) }"),
    ("the input 's' is a optional(f32[N])", "main (optional(float[N]) s) => (bool l) {l = OptionalHasElement (s)}"),
])
def test_a_list_at_the_boundary(port: str, text: str) -> None:
    error = refusal(parsed(text))
    assert (error.code, error.exit_code, error.where) == ("ML310", 3, "s")
    assert port in error.message and "--sequence-io packed" in error.hint
