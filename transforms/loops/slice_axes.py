"""Steps of a loop on its slices as they are, without removing and adding the axis of the slices in each of them:

    s1 = f(s, Squeeze(x[0], 0)), y[0] = Unsqueeze(s1, 0), s2 = f(s1, Squeeze(x[1], 0)), ...
->  s1 = y[0] = f(s, x[0]), s2 = y[1] = f(s1, x[1]), ...

The operations of f work element by element, so that values without the axis are broadcast. Steps of a block that read
the slices of one tensor alone keep them: the runtime would take up to 1.2 times as long for `s / 2 + x[t]`.
"""

from collections.abc import Iterable

from mo_loop.origin import made_for
from mo_loop.transforms.loops.lifted import with_inputs
from mo_loop.transforms.vocabulary import F, Graph, Node, Op, Value, ops


def keep_slice_axes(graph: Graph, nodes: Iterable[Node]) -> None:
    """Give the results of `nodes`, in their order, the axis of the slices that they read, if that needs fewer nodes."""
    wide: dict[Value, None] = {}
    reading: set[Node] = set()
    for each in nodes:
        if _removes_axis(each):
            wide[each.outputs[0]] = None
        elif any(_is_along(value, each) and value in wide for value in each.operands):
            wide[each.outputs[0]] = None
            reading.add(each)
    others = {
        value: [use for use in value.uses if use.node not in reading or not _is_along(value, use.node)]
        for value in wide
    }
    adding = {use.node for uses in others.values() for use in uses if _adds_axis(use.node)}
    narrow = [value for value, uses in others.items() if not {use.node for use in uses} <= adding]
    made = [value for value in narrow if value.node in reading]
    removing = [value.node for value in wide if value.node not in reading]
    if len(adding) + len(removing) <= len(narrow) or len({each.operands[0].node for each in removing}) < 2:
        return
    values: dict[Value, Value] = {}
    for value in wide:
        node = value.node
        if node not in reading:
            values[value] = node.operands[0]
            continue
        assert isinstance(node, Op)
        with made_for(node.origins):
            values[value] = with_inputs(
                node, *(values[x] if x in values and _is_along(x, node) else x for x in node.operands)
            )
        values[value].node.name = node.name
    for value, uses in others.items():
        squeezed = F.Squeeze(values[value], [0]) if value in made else value
        for reader, port in uses:
            if reader in adding:
                reader.outputs[0].replace_with(values[value])
            else:
                graph.set_input(reader, port, squeezed)
    graph.sweep()


def _is_along(value: Value, node: Node) -> bool:
    """Whether the axes of a value are those of the result of a node that works element by element."""
    is_elementwise = isinstance(node, ops.Elementwise) and not isinstance(node, ops.PReLU)
    return is_elementwise and value.rank == node.outputs[0].rank


def _removes_axis(node: Node) -> bool:
    return isinstance(node, ops.View) and _is_wider(node.operands[0], node.outputs[0])


def _adds_axis(node: Node) -> bool:
    return isinstance(node, ops.View) and _is_wider(node.outputs[0], node.operands[0])


def _is_wider(value: Value, other: Value) -> bool:
    """Whether a value has one dimension more, a first one of 1."""
    return value.shape is not None and other.shape is not None and value.type.dims == (1, *other.type.dims)
