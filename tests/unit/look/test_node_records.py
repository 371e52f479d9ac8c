"""Records of the page: ids stay while passes change the graph, and only changed nodes get new records."""

from mo_loop.graph import Graph
from mo_loop.look.page import delta
from mo_loop.look.records.node_records import Describer, GraphState
from mo_loop.ops.base import Constant
from mo_loop.text import parse
from mo_loop.transforms.front.loop_to_ti import LoopToTI
from mo_loop.transforms.low_precision.compress_weights import CompressFloatConstants
from tests.cases import read_cases
from tests.unit.look.test_dump import TEXT

LOOP = """
%x = Parameter : f32[5,2] %h = Parameter : f32[2]
%y = Loop(5, true, %h, %x) {
  iteration: %i, condition: @go, input_map: [Merged(%s, @n), Invariant(%e)], output_map: [Final(@n)]
}
  body {
    %i = Parameter %s = Parameter %e = Parameter
    %g = Gather(%e, %i, 0) %n = Add(%s, %g)
    Result(true) @go Result(%n)
  }
Result(%y)"""


def both(graph: Graph) -> tuple[Describer, GraphState]:
    describer = Describer()
    return describer, describer.state(graph)


def find(state: GraphState, op: str) -> int:
    return next(number for number, record in state.nodes.items() if record["op"] == op)


def test_nothing_changed() -> None:
    graph = parse(TEXT)
    describer, first = both(graph)
    second = describer.state(graph)
    assert all(second.nodes[number] is record for number, record in first.nodes.items())
    assert not any(delta(first, second).values())


def test_each_kind_of_change_is_seen() -> None:
    """A name, an attribute, an input, tensor names, origins, rt_info and the values of a constant."""
    graph = parse("%x = Parameter : f32[2,N]\n%y, %z = Split(%x, 0) {num_splits: 2} : f32[1,N], f32[1,N]")
    (x, axis, split) = graph.ordered()
    describer, last = both(graph)

    def changed() -> set[int]:
        nonlocal last
        before, last = last, describer.state(graph)
        return {record["id"] for record in delta(before, last)["changed"]}

    number = describer.id(split)
    split.name = "s"
    assert changed() == {number}
    split.outputs[1].add_name("t")
    assert changed() == {number}
    split.rt_info["old"] = "yes"
    assert changed() == {number}
    split.rt_info["old"] = "no"
    assert changed() == {number} and isinstance(axis, Constant)
    split.num_splits = 1
    assert changed() == {number} and changed() == set() and describer.id(x) != number


def test_a_body_keeps_its_scope_in_another_owner() -> None:
    """Its nodes do not count as changed when a Loop becomes a TensorIterator."""
    graph = parse(LOOP)
    describer, first = both(graph)
    loop = find(first, "Loop")
    state = first.scopes[f"{loop}/body"]["parameters"][1]
    assert LoopToTI().run(graph)
    graph.validate()
    second = describer.state(graph)
    owner = find(second, "TensorIterator")
    assert owner != loop and second.scopes[f"{loop}/body"]["owner"] == owner
    assert second.nodes[owner]["bodies"] == [f"{loop}/body"] == [second.nodes[state]["scope"]]
    found = delta(first, second)
    assert state not in {record["id"] for record in found["changed"]} and loop in found["removed"]


def test_a_clone_continues_the_ids() -> None:
    """As that of save_model, whose constants of 32 bits become constants of 16 bits with a Convert."""
    graph = parse(TEXT)
    describer, first = both(graph)
    clone = graph.clone()
    CompressFloatConstants().run(clone)
    clone.validate()
    describer.continue_with(graph, clone)
    found = delta(first, describer.state(clone))
    assert {record["op"] for record in found["added"]} <= {"Constant", "Convert"}
    assert {first.nodes[number]["op"] for number in found["removed"]} <= {"Constant"}


read_cases(globals())
