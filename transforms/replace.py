"""Replaces, inserts and eliminates nodes, and keeps the names that users know.

    replace_node(div, ops.Multiply(x, ops.Power(y, -1.0)))    # every output and its names
    replace_output(value, other)                              # one value
    insert_after(value, ops.ReLU)                             # between a value and its consumers
    eliminate(node)                                           # its first input instead of its output

The last node of a replacement gets the friendly name of the replaced node, so that model outputs keep their names;
tensor names move with the value. Nodes that are no longer read are removed; a value with other readers stays.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mo_loop.errors import InternalError
from mo_loop.graph import Node, Value
from mo_loop.ops.base import Constant, Identity, Op, Parameter, Result
from mo_loop.origin import Origins, all_of, union


def replace_node(old: Node, new: Any) -> None:
    """Replace `old` by `new`: a node, a value, or a value for each output.

    Raises:
        InternalError: `old` and `new` have different numbers of outputs.
    """
    values = _as_values(new)
    if len(values) != len(old.outputs):
        raise InternalError(f"{old!r} has {len(old.outputs)} outputs, its replacement {len(values)}", where=old.origin)
    # A reader of an output can be part of its replacement: a node inserted after `old` still reads it.
    for output, value in zip(old.outputs, values, strict=True):
        replace_output(output, value)
    last = values[0].node if values else old
    if all(value.node is last for value in values) and last.name == "" and not isinstance(last, Parameter | Constant):
        last.name = old.name
    _give_origins([value.node for value in values], old.origins)
    drop_dead([old])


def replace_output(old: Value, new: Value) -> None:
    """Consumers of `old` read `new`; tensor names move, and so does the name of a model output.

    The node before a Result has the name of the model output. If `new` cannot take that name (it is an input, a
    constant, or another output, or its node has the name of one), an Identity with the name is inserted.
    """
    if new is old:
        return
    takes_name = _can_take_name(new, old)  # before the first Result of `old` reads it
    for node, port in old.uses:
        if node is new.node:
            continue
        if isinstance(node, Result) and node.output_names and not takes_name:
            bridge = Identity(new, name=old.node.name)
            bridge.output.copy_names(old)
            node.graph.set_input(node, port, bridge.output)
        else:
            node.graph.set_input(node, port, new)
            if isinstance(node, Result) and node.output_names and isinstance(new.node, Op):
                new.node.name = old.node.name
    if takes_name:
        new.take_names(old)


def supersede(node: Node, value: Value) -> None:
    """Readers of the only output of a node read another value; the node is removed, and what only it reads."""
    replace_output(node.output, value)
    drop_dead([node])


def replace_output_update_name(old: Value, new: Value) -> bool:
    """`replace_output` if it needs no Identity; the node of `new` gets the rt_info that it lacks.

    Returns False and changes nothing if `old` is a model output whose name `new` cannot take: it is an input, a
    constant, or another output, or its node has the name of one already.
    """
    if _is_model_output(old) and not _can_take_name(new, old):
        return False
    for key, value in _info(old.node).items():
        new.node.rt_info.setdefault(key, value)
    replace_output(old, new)
    drop_dead([old.node])
    return True


def eliminate(node: Node, port: int = 0) -> bool:
    """Readers of the only output of `node` read its input `port` instead, if that can take the names; True if so."""
    value = node.inputs[port]
    return value is not None and replace_output_update_name(node.output, value)


def insert_after(value: Value, make: Callable[[Value], Any]) -> Any:
    """Put what `make` returns for `value`, a node or a value, between it and all its present consumers; returns it.

    Names move to the output of the new node. rt_info stays where it is.
    """
    readers = value.uses
    made = make(value)
    move_readers(value, made if isinstance(made, Value) else made.output, readers)
    return made


def insert_before(node: Node, port: int, make: Callable[[Value], Any]) -> Any:
    """Put the node that `make` returns for input `port` of `node` between the two; returns it.

    Before a model output the new node gets the name of the output, which the old one loses.
    """
    value = node.inputs[port]
    if value is None:
        raise InternalError(f"{node!r} has no input {port}", where=node.origin)
    new = make(value)
    node.graph.set_input(node, port, new.output)
    if isinstance(node, Result) and node.output_names:
        new.name = node.output_names[0]
        for name in node.output_names:
            new.output.take_output(value, name)
    return new


def move_readers(old: Value, new: Value, readers: Iterable[tuple[Node, int]]) -> None:
    """The `readers` of `old`, listed before `new` was made from it, read `new`, which gets the names.

    As in replace_output, a model output whose name `new` cannot take reads an Identity with the name.
    """
    readers = list(readers)
    outputs = {node: node.output_names[0] for node, _ in readers if isinstance(node, Result) and node.output_names}
    named = new if not outputs or _can_take_name(new, old) else Identity(new).output
    named.take_names(old)
    for node, port in readers:
        if node in outputs:
            named.node.name = outputs[node]
        node.graph.set_input(node, port, named if node in outputs else new)


def drop_dead(nodes: Iterable[Node]) -> None:
    """Remove those of `nodes` that are not read, and then the nodes that only they read. Parameters, Results and sinks
    stay."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        graph = node.graph
        if node not in graph or node.is_kept or node.is_used or node.acts:
            continue
        producers = [value.node for value in node.operands]
        graph.remove(node)
        pending.extend(reversed(producers))


def copy_runtime_info(sources: Node | Sequence[Node], targets: Node | Sequence[Node]) -> None:
    """Give every target the rt_info and the origins of all sources: 1:1, 1:N, N:1 and N:M alike.

    The rt_info that a target had of its own is lost, unless it is among the sources as well, as with nGraph's function
    of that name; its origins stay. Where sources disagree about a key, their common `merge` joins the values if they
    have one, sets of names separated by commas (`fused_names`) are joined, otherwise the first source decides.
    """
    sources = (sources,) if isinstance(sources, Node) else sources
    targets = (targets,) if isinstance(targets, Node) else targets
    merged: dict[str, Any] = {}
    for node in sources:
        for key, value in _info(node).items():
            merged[key] = value if key not in merged else _merged(key, merged[key], value)
    origins = all_of(node.origins for node in sources)
    for node in targets:
        node.origins = union(node.origins, origins)
        if merged or _info(node):
            node.rt_info.clear()
            node.rt_info.update(merged)


def _merged(key: str, first: Any, second: Any) -> Any:
    if first == second:
        return first
    if hasattr(first, "merge"):
        return first.merge(second)
    if key == "fused_names":
        return {**first, "value": ",".join(sorted({*first["value"].split(","), *second["value"].split(",")}))}
    return first


def _info(node: Node) -> dict[str, Any]:
    info: dict[str, Any] | None = getattr(node, "_rt_info", None)  # the property would make a dict for every node
    return info or {}


def _give_origins(nodes: list[Node], origins: Origins) -> None:
    """Set `origins` of `nodes` and of the nodes that they read, if they have none: they were made for a replacement."""
    while nodes:
        node = nodes.pop()
        if origins and not node.origins:
            node.origins = origins
            nodes += [value.node for value in node.operands]


def _as_values(new: Any) -> Sequence[Value]:
    if isinstance(new, Node):
        return new.outputs
    if isinstance(new, Value):
        return (new,)
    return [each.output if isinstance(each, Node) else each for each in new]


def _is_model_output(value: Value) -> bool:
    return any(isinstance(use.node, Result) and use.node.output_names for use in value.uses)


def _can_take_name(new: Value, old: Value) -> bool:
    if isinstance(new.node, Parameter | Constant) or _is_model_output(new):
        return False
    if new.node.name == old.node.name or not _is_model_output(old):
        return True
    return not any(_is_model_output(each) for each in new.node.outputs)  # a node of several outputs has one name


def absorb(survivor: Op, twin: Op) -> None:
    """Readers, names, origins and rt_info of `twin` move to `survivor`, which keeps its own; `twin` is removed."""
    for old, new in zip(twin.outputs, survivor.outputs, strict=True):
        old.replace_with(new)
        new.copy_names(old)
    survivor.name = survivor.name or twin.name
    survivor.origins = union(survivor.origins, twin.origins)
    for key, value in twin.rt_info.items():
        survivor.rt_info.setdefault(key, value)
    twin.graph.remove(twin)
