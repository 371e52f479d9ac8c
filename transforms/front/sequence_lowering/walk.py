"""Sequences are replaced by tensors, in a graph and its bodies.

    s = SequenceInsert(StackedSequence(S), x)         s = StackedSequence(Concat(S, Unsqueeze(x, 0)))
    y = SequenceAt(s, p)                        ->    y = Gather(Concat(...), p)
    t = Loop(s) {..}                                  t = StackedSequence(Loop(S) {..})

The traversal visits the nodes of a graph in order. Each sequence that it has replaced is the output of a node whose
inputs are the tensors of the sequence (`SequenceEmpty`, `SequenceConstruct`, `StackedSequence`, `JoinedSequence`,
`PackedSequence`). So each operation is replaced on its own, and a later pass understands the results of an earlier one.
A rule of `RULES` gets the layout of a sequence from the pass, and the layout (layouts.py) makes the nodes.
Loops and Ifs get ports for the tensors; the node that makes a sequence of them follows the port, inside and outside.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from mo_loop.errors import InternalError
from mo_loop.graph.types import UNKNOWN, SequenceType
from mo_loop.ops.control import Control
from mo_loop.ops.port_map import Branched, Final, Invariant, Merged, Selected
from mo_loop.ops.sequences import OnSequences
from mo_loop.transforms.folding import fold_all_scopes
from mo_loop.transforms.front.sequence_lowering import shapes
from mo_loop.transforms.front.sequence_lowering.layouts import ElementKind, Joined, Layout, Packed, Stacked
from mo_loop.transforms.loops.lifted import moved
from mo_loop.transforms.port_maps import rebuilt
from mo_loop.transforms.replace import drop_dead, replace_output
from mo_loop.transforms.vocabulary import F, FunctionPass, Graph, Identity, Node, Parameter, Result, Value, ops

GIVEN = (ops.SequenceEmpty, ops.SequenceConstruct, ops.StackedSequence, ops.JoinedSequence, ops.PackedSequence)
"""The nodes that make a sequence of its tensors or elements."""

Rule: TypeAlias = Callable[["SequencePass", Any], Value | Sequence[Value] | None]
"""(pass, node) -> the replacement of the outputs of the node; None if the pass cannot replace them."""


@dataclass
class _Ports:
    """The new ports of a control-flow node."""

    node: Control
    inputs: dict[int, list[tuple[Any, Value]]] = field(default_factory=dict)
    outputs: dict[int, tuple[Any, list[Any]]] = field(default_factory=dict)
    states: dict[Result, Any] = field(default_factory=dict)
    results: dict[Result, list[Result]] = field(default_factory=dict)

    def rebuild(self) -> None:
        """Replace the node by one with the new ports."""
        node = self.node
        pairs: list[tuple[Any, Value]] = []
        gone: list[Any] = []
        for number, (entry, value) in enumerate(node.fed):
            if number not in self.inputs:
                pairs.append((entry, value))
                continue
            pairs.extend(self._paired(self.inputs[number]))
            gone.extend(each for each in vars(entry).values() if isinstance(each, Parameter | Result))
        output_map: list[Any] = []
        for number, entry in enumerate(node.output_map):
            if number not in self.outputs:
                output_map.append(entry)
                continue
            output_map.extend(self.outputs[number][1])
            gone.extend(each for each in vars(entry).values() if isinstance(each, Result))
        _remove(gone)
        for entry, value in pairs:  # its type is inferred again from its input
            if isinstance(entry, Merged) and any(entry is each for new in self.inputs.values() for each, _ in new):
                entry.parameter.retype(value.type.without_known())
        self._hand_over(rebuilt(node, pairs, output_map))

    def _paired(self, entries: list[tuple[Any, Value]]) -> list[tuple[Any, Value]]:
        """The entries of a state, each with the Result of its tensor."""
        paired = []
        for number, (entry, value) in enumerate(entries):
            if isinstance(entry, Merged):
                entry = replace(entry, result=self.results[entry.result][number])
                entries[number] = (entry, value)
            paired.append((entry, value))
        return paired

    def _hand_over(self, new: Control) -> None:
        made = iter(new.outputs)
        for number, old in enumerate(self.node.outputs):
            if number not in self.outputs:
                replace_output(old, next(made))
                continue
            kind, entries = self.outputs[number]
            replace_output(old, shapes.sequence_of(kind.made([next(made) for _ in entries]), new.graph, old.type))
        new.graph.remove(self.node)


class SequencePass(FunctionPass):
    """A pass that replaces sequences of some kinds by their tensors; `kind` chooses the kinds."""

    bodies = "never"  # it visits the bodies of a node when it comes to the node

    def kind(self, type_: SequenceType):
        """The kind of the sequences of a type; None if the pass leaves them unchanged."""
        raise NotImplementedError

    def rule(self, node: Node) -> Rule | None:
        """The function that makes the outputs of an operation; None if the operation is left unchanged."""
        return RULES.get(type(node))

    def run(self, graph: Graph) -> bool:
        """Replace sequences in the whole graph, then fold constants: the runtime does not compile parts of size 0."""
        changed = super().run(graph)
        if changed:
            graph.validate()
            fold_all_scopes(graph)
        return changed

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in list(graph.ordered()) if graph.has(Control, OnSequences, Identity) else ():
            if node not in graph or not _is_concerned(node):
                continue
            if isinstance(node, Control):
                changed = self._carry(node) or changed
            elif not self.leaves(node):
                changed = self._rewrite(node) or changed
        self.at = None
        return changed

    def _rewrite(self, node: Node) -> bool:
        ports = (*node.inputs, *node.outputs)
        if any(value is not None and value.type is UNKNOWN for value in ports):
            return self.refuse(node, "it depends on an element of an empty sequence")
        rule = self.rule(node)
        made = rule(self, node) if rule is not None else None
        if made is None:
            return self.refuse(node, "this pass does not replace sequences of this kind")
        values = [made] if isinstance(made, Value) else made
        for old, new in zip(node.outputs, values, strict=True):
            replace_output(old, new)
        drop_dead([node])
        return self.accept(node)

    # -- called by the rules

    def held(self, sequence: Value, kind=None):
        """The layout of a sequence, as the given kind or as it is; None if it has none."""
        if sequence.type is UNKNOWN:
            return None
        layout = None if sequence.type.is_empty else _layout_of(sequence)
        if kind is None:
            if layout is not None:
                return layout
            kind = self.kind(sequence.type)
        if kind is None:
            return None
        if layout is not None:
            return kind.of_layout(layout)
        if sequence.type.is_empty:
            return kind.empty(sequence.graph)
        return kind.of_items(sequence.node.inputs) if isinstance(sequence.node, ops.SequenceConstruct) else None

    # -- loops and branches

    def _carry(self, node: Control) -> bool:
        ports = _Ports(node)
        if not self.leaves(node):
            for number, (entry, value) in enumerate(node.fed):
                if isinstance(value.type, SequenceType) and not _is_unknown(entry):
                    self._enter(node, ports, number, entry, value)
        changed = False
        for body in node.bodies:
            changed = self.run_on_graph(body) or changed
        if not self.leaves(node):
            self._leave(node, ports)
        if not (ports.inputs or ports.outputs):
            return changed
        ports.rebuild()
        return self.accept(node)

    def _enter(self, node: Control, ports: _Ports, number: int, entry, value: Value) -> None:
        if isinstance(entry, Merged):
            type_ = entry.parameter.output.type
            kind = shapes.NOTHING if type_.is_empty else self.state_kind(entry, value)
            layout = None if kind is None else self.held(value, kind)
            if kind is None or layout is None:
                return
            ports.states[entry.result] = kind
            made = [Parameter(graph=node.bodies[0], type=each) for each in kind.types()]
            _stand_for(entry.parameter, kind.made([each.output for each in made]))
            ports.inputs[number] = [(Merged(p, entry.result), t) for p, t in zip(made, layout.tensors, strict=True)]
            return
        parameters = [entry.parameter] if isinstance(entry, Invariant) else [entry.then, entry.else_]
        layout = self.captured(value, [each for each in parameters if each is not None])
        if layout is None:
            return
        sides = [self._received(parameter, layout) for parameter in parameters]
        entries = [
            Invariant(*each) if isinstance(entry, Invariant) else Branched(*each) for each in zip(*sides, strict=True)
        ]
        ports.inputs[number] = list(zip(entries, layout.tensors, strict=True))

    def _received(self, parameter: Parameter | None, layout) -> list[Parameter | None]:
        """New Parameters for the tensors of a sequence, in place of its Parameter."""
        if parameter is None:
            return [None for _ in layout.tensors]
        made = [Parameter(graph=parameter.graph, type=each.type) for each in layout.tensors]
        _stand_for(parameter, layout.like([each.output for each in made]))
        return list(made)

    def captured(self, value: Value, parameters: Sequence[Parameter]):
        """The layout in which a sequence enters bodies through these Parameters; None to leave it unchanged."""
        return shapes.Listed() if value.type.is_empty else self.held(value)

    def state_kind(self, entry: Merged, initial: Value):
        """The kind of a state; None to leave it unchanged."""
        return self.kind(entry.parameter.output.type)

    def branch_kind(self, node: Control, number: int):
        """The kind of an output of an If; None to leave it unchanged."""
        return self.kind(node.outputs[number].type)

    def _leave(self, node: Control, ports: _Ports) -> None:
        for number, entry in enumerate(node.output_map):
            type_ = node.outputs[number].type
            if not isinstance(type_, SequenceType):
                continue
            if isinstance(entry, Selected):
                kind = shapes.NOTHING if type_.is_empty else self.branch_kind(node, number)
                layouts = [] if kind is None else [self.held(each.value, kind) for each in (entry.then, entry.else_)]
                if kind is None or None in layouts:
                    continue
                sides = [[Result(each) for each in layout.tensors] for layout in layouts]
                ports.outputs[number] = kind, [Selected(*each) for each in zip(*sides, strict=True)]
            elif entry.result in ports.states:
                finals = [Final(each) for each in self._next(ports, entry.result)]
                ports.outputs[number] = ports.states[entry.result], finals
        for result in list(ports.states):
            self._next(ports, result)

    def _next(self, ports: _Ports, result: Result) -> list[Result]:
        """The Results for the tensors of a state."""
        if result not in ports.results:
            layout = self.held(result.value, ports.states[result])
            if layout is None:
                raise InternalError(f"the next value of a state is not {ports.states[result]}", where=result.origin)
            ports.results[result] = [Result(each) for each in layout.tensors]
        return ports.results[result]


def _remove(ends: Sequence[Any]) -> None:
    """Remove Results and then Parameters of bodies, and the nodes that only they read."""
    unique = dict.fromkeys(ends)
    for result in [end for end in unique if isinstance(end, Result) and end in end.graph]:
        producer = result.value.node
        result.graph.remove(result)
        drop_dead([producer])
    for parameter in [end for end in unique if isinstance(end, Parameter) and end in end.graph]:
        drop_dead([use.node for use in parameter.output.uses])
        parameter.graph.remove(parameter)


def _stand_for(parameter: Parameter, layout) -> None:
    """Readers of a Parameter read the sequence made of other tensors."""
    parameter.output.replace_with(shapes.sequence_of(layout, parameter.graph, parameter.output.type))


def _is_unknown(entry) -> bool:
    """Whether an input feeds a Parameter of unknown type, in a body that is never executed."""
    return any(isinstance(each, Parameter) and each.output.type is UNKNOWN for each in vars(entry).values())


def _is_concerned(node: Node) -> bool:
    """Whether a node may have sequences as inputs or outputs."""
    if isinstance(node, Control | OnSequences):
        return not isinstance(node, GIVEN)
    return isinstance(node, Identity) and isinstance(node.output.type, SequenceType)


def _layout_of(sequence: Value) -> Layout | None:
    """The tensors of a sequence; None if it is not made of tensors."""
    node = sequence.node
    tensors: list[Any] = list(node.inputs)
    if isinstance(node, ops.StackedSequence):
        return Stacked(tensors[0])
    if isinstance(node, ops.JoinedSequence):
        return Joined(tensors[0], tensors[1], node.axis)
    return Packed(tensors[0], tensors[1], node.dims) if isinstance(node, ops.PackedSequence) else None


# -- the operations on sequences that tensors hold, one rule each


def _at(walk: SequencePass, node: ops.SequenceAt) -> Value | None:
    layout = walk.held(node.inputs[0])
    return None if layout is None else layout.at(node.inputs[1])


def _length(walk: SequencePass, node: ops.SequenceLength) -> Value | None:
    sequence: Any = node.inputs[0]
    if isinstance(sequence.type.length, int):
        return shapes.numbers(node.graph, sequence.type.length)
    layout = walk.held(sequence)
    return None if layout is None else layout.length()


def _concat(walk: SequencePass, node: ops.ConcatFromSequence) -> Value | None:
    sequence: Any = node.inputs[0]
    layout = walk.held(sequence)
    if layout is None:
        return None
    rank = len(sequence.type.element.dims) + node.new_axis
    return layout.concatenated(node.axis % rank, node.new_axis)


def _insert(walk: SequencePass, node: ops.SequenceInsert) -> Value | None:
    sequence, item, *place = node.inputs
    kind = walk.kind(node.output.type)
    layout = None if kind is None else walk.held(sequence, kind)
    if layout is None:
        return None
    new = kind.of_items([item])
    if not place:
        return layout.extended(new).sequence() if not sequence.type.is_empty else new.sequence()
    return new.extended(layout).sequence() if shapes.known(place[0]) == 0 else layout.inserted(new, place[0]).sequence()


def _erase(walk: SequencePass, node: ops.SequenceErase) -> Value | None:
    sequence, *place = node.inputs
    if node.output.type.is_empty:
        return shapes.sequence_of(shapes.Listed(), node.graph, node.output.type)
    kind = walk.kind(node.output.type)
    layout = None if kind is None else walk.held(sequence, kind)
    return None if layout is None else layout.erased(place[0] if place else None).sequence()


def _extend(walk: SequencePass, node: ops.SequenceExtend) -> Value | None:
    first, second = node.inputs
    for one, other in ((first, second), (second, first)):
        if one.type.is_empty:
            return other
    kind = walk.kind(node.output.type)
    layouts: list[Any] = [None] if kind is None else [walk.held(first, kind), walk.held(second, kind)]
    return None if None in layouts else layouts[0].extended(layouts[1]).sequence()


def _split(walk: SequencePass, node: ops.SplitToSequence) -> Value | None:
    x, *split = node.inputs
    if x.rank is None:
        return None
    axis = node.axis % x.rank
    if not split:
        front = moved(x, axis, 0)
        return Stacked(front if not node.keepdims else F.Unsqueeze(front, [axis + 1])).sequence()
    sizes = split[0]
    if sizes.rank == 0:
        sizes = _chunk_sizes(shapes.size(x, axis), sizes)
    return Joined(x, sizes, axis).sequence()


def _chunk_sizes(total: Value, each: Value) -> Value:
    """Sizes of parts that are equal except for the last, smaller one: min(each, total - each*i)."""
    enough = total + (each - np.int64(1))
    count = F.Divide(enough - (enough % each), each)
    scalar = F.Reshape(count, np.zeros(0, np.int64))
    return F.Minimum(total - F.Range(np.int64(0), scalar, np.int64(1), output_type=each.dtype) * each, each)


def _pack(walk: SequencePass, node: ops.PackSequence) -> Sequence[Value] | None:
    sequence: Any = node.inputs[0]
    kind = ElementKind.of(sequence.type, always_packed=True)
    layout = None if kind is None else walk.held(sequence, kind)
    return None if layout is None else layout.tensors


def same(walk: SequencePass, node: Node) -> Value | None:
    """The rule of a node that returns its input."""
    return node.inputs[0]


RULES: dict[type[Node], Rule] = {
    ops.SequenceAt: _at,
    ops.SequenceLength: _length,
    ops.ConcatFromSequence: _concat,
    ops.SequenceInsert: _insert,
    ops.SequenceErase: _erase,
    ops.SequenceExtend: _extend,
    ops.SplitToSequence: _split,
    ops.PackSequence: _pack,
    Identity: same,
}
"""Operation -> the function that makes its outputs. The nodes in `GIVEN` need no rule."""
