"""The graph: it keeps nodes and the edges between them, and networkx reads it as a graph of its own.

>>> from mo_loop import ops
>>> from mo_loop.graph import Graph
>>> from mo_loop.graph.types import f32
>>> graph = Graph("main")
>>> x = ops.Parameter(dtype=f32, shape=(2, 3), graph=graph).output
>>> y = ops.Add(x, 1.0).output             # takes the graph from x; 1.0 becomes a Constant of x's type
>>> ops.Result(y)
Result(1 input)
>>> [use.node for use in x.uses]
[Add(2 inputs)]

`graph.nx` is the graph for the algorithms of networkx: its nodes are the Node objects themselves, its edges run from
producer to consumer with the input port as key and the Value as data. An edge is stored twice, in `node.inputs` and as
a Use of the Value; `add`, `set_input`, `set_inputs` and `remove` are the only writers. A body of a control-flow node is
a separate Graph with `owner` set; no edge crosses graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from mo_loop.conversion_limits import Remaining
from mo_loop.conversion_limits import current as current_budget
from mo_loop.errors import InternalError
from mo_loop.graph.dimension import fresh_symbols
from mo_loop.graph.inference_cache import Renaming, same_type
from mo_loop.graph.node import Node, Value, use_of
from mo_loop.graph.node_copies import copy_nodes, networkx_view, restore, state_of, topological
from mo_loop.origin import Origin, Origins, current

if TYPE_CHECKING:
    from mo_loop.ops.base import Parameter, Result

_set = object.__setattr__

_NO_DATA: dict[str, Any] = {}
"""The data that networkx keeps for a node: none, and one dictionary for all of them."""

N = TypeVar("N", bound=Node)
T = TypeVar("T")


class Graph:
    """A graph of nodes with ordered `parameters` and `results`.

    `owner` is the control-flow node whose body this graph is, None at top level. `rt_info` is that of the whole model
    (a nested dict of strings), `remaining` the remaining limits of its conversion, `sources` the paths or URLs of the
    files that it was converted from. `widens` is true while the owner makes the types of its states wider.
    """

    def __init__(self, name: str = "", owner: Node | None = None) -> None:
        self.name = name
        self.owner = owner
        self.widens = False
        self._nodes: dict[Node, dict[str, Any]] = {}  # by age, with the data that networkx keeps for a node
        self.parameters: list[Parameter] = []
        self.results: list[Result] = []
        self.rt_info: dict[str, Any] = {}
        self.remaining: Remaining | None = None
        self.sources: Sequence[str] = ()
        self._scope: tuple[str, ...] | None = None
        self._next_id = 0
        self._order: list[Node] | None = []
        self._by_age = True  # while every edge goes from an older to a newer node, creation order is topological
        self._classes: dict[type[Node], dict[Node, None]] = {}
        self._families: dict[Any, list[dict[Node, None]]] = {}  # classes -> the values of `_classes` of subclasses
        # The candidates of `sweep`: nodes that lost the last reader of an output since then, and those with this or a
        # higher id.
        self._unread: dict[Node, None] = {}
        self._notes: dict[Any, Any] = {}
        self._unswept = 0
        self._dirty: dict[Node, None] = {}
        self._changes: dict[Node, None] | None = None

    # -- reading

    @cached_property
    def nx(self) -> Any:
        """The networkx.MultiDiGraph with these nodes and edges: it shows every later change. Only read it.

        It is made on first use: importing networkx takes as long as converting a model of a thousand nodes.
        """
        return networkx_view(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __bool__(self) -> bool:
        return True  # a graph without nodes is true, too

    def __iter__(self) -> Iterator[Node]:
        return iter(list(self.ordered()))  # a snapshot: the loop may make nodes

    def __contains__(self, node: Node) -> bool:
        return node in self._nodes

    def __repr__(self) -> str:
        return f"Graph({self.name!r}, {len(self)} nodes)"

    @property
    def path(self) -> str:
        """The path of this body, from its outermost owner on; empty for the main graph."""
        return f"{self.owner.path}/{self.name}" if self.owner is not None else ""

    @property
    def scope(self) -> tuple[str, ...]:
        """The path of the ONNX graph that this one was made for, else the names of the enclosing nodes and bodies."""
        if self._scope is not None:
            return self._scope
        if self.owner is None:
            return ()
        owner = self.owner.origin
        return (*owner.scope, owner.node, self.name)

    @scope.setter
    def scope(self, scope: tuple[str, ...]) -> None:
        self._scope = scope

    @property
    def origin(self) -> Origin:
        """The place of the graph as a whole."""
        return Origin(self.scope)

    def path_of(self, node: Node) -> str:
        """The path of a node of this graph."""
        return f"{self.path}/{node.label}" if self.owner is not None else node.label

    @property
    def depth(self) -> int:
        """The number of control-flow nodes that enclose this graph."""
        depth, owner = 0, self.owner
        while owner is not None:
            depth, owner = depth + 1, owner.graph.owner
        return depth

    def of(self, kind: type[N]) -> list[N]:
        """All nodes of a class or its subclasses, oldest first within each class."""
        found: list[Any] = []
        for nodes in self._family(kind):
            found.extend(nodes)
        return found

    def has(self, *kinds: type[Node]) -> bool:
        """Whether a node of one of these classes or their subclasses is in the graph."""
        return any(self._family(kinds))

    def _family(self, kinds: type[Node] | tuple[type[Node], ...]) -> list[dict[Node, None]]:
        """The nodes of each class that is one of `kinds` or a subclass."""
        found = self._families.get(kinds)
        if found is None:
            found = self._families[kinds] = [nodes for cls, nodes in self._classes.items() if issubclass(cls, kinds)]
        return found

    @property
    def classes(self) -> list[type[Node]]:
        """The classes of the nodes in the graph."""
        return [cls for cls, nodes in self._classes.items() if nodes]

    def nodes_with_bodies(self) -> list[Node]:
        """All nodes with bodies, oldest first."""
        families = self._families.get("bodies")
        if families is None:
            families = [nodes for cls, nodes in self._classes.items() if cls.bodies != ()]
            self._families["bodies"] = families
        if not any(families):  # most graphs, and every pass asks
            return []
        return sorted((node for nodes in families for node in nodes), key=lambda node: node.id)

    def ordered(self) -> tuple[Node, ...] | list[Node]:
        """All nodes, producers before consumers; of several possible ones the oldest first. Do not modify the list."""
        if self._order is None:
            self._order = list(self._nodes) if self._by_age else topological(self, self._nodes)
        return self._order

    def note(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of `make`, and the same object again until a node or an edge of the graph changes.

        For facts that a pass finds out about many nodes, for example the values that it need not examine again.
        """
        if key not in self._notes:
            self._notes[key] = make()
        return self._notes[key]

    @property
    def places(self) -> dict[Node, int]:
        """The place of each node in `ordered()`."""
        return self.note("places", lambda: {node: place for place, node in enumerate(self.ordered())})

    def ancestors(self, nodes: Iterable[Node]) -> set[Node]:
        """`nodes` and all that they depend on in this graph; back edges are not followed."""
        found = set(nodes)
        waiting = list(found)
        while waiting:
            for value in waiting.pop().inputs:
                if value is not None and value.node not in found:
                    found.add(value.node)
                    waiting.append(value.node)
        return found

    def descendants(self, nodes: Iterable[Node]) -> set[Node]:
        """`nodes` and all that depends on them in this graph; back edges are not followed."""
        found = set(nodes)
        waiting = list(found)
        while waiting:
            for output in waiting.pop().outputs:
                for node, _ in output.uses:
                    if node not in found:
                        found.add(node)
                        waiting.append(node)
        return found

    @property
    def acts(self) -> bool:
        """Whether the graph or a body in it contains a sink."""
        kept = sum(len(nodes) for cls, nodes in self._classes.items() if cls.is_kept)
        return kept > len(self.parameters) + len(self.results) or any(node.acts for node in self.nodes_with_bodies())

    def scopes(self) -> Iterator[Graph]:
        """This graph and every body below it, outer ones first."""
        stack = [self]
        while stack:
            graph = stack.pop()
            yield graph
            stack.extend(body for node in reversed(graph.nodes_with_bodies()) for body in reversed(node.bodies))

    # -- writing: only these methods add and remove edges

    def add(self, node: Node) -> None:
        """Attach a node whose `inputs` and `outputs` are set and belong to this graph.

        It gets the current origins; if there are none, those of the first input that has some. LimitError if the
        conversion that runs may make no more nodes, or take no more time.
        """
        budget = current_budget.get()
        if budget is not None:  # one node of the model can become any number of nodes: only here are all of them seen
            budget.made += 1
            if budget.made >= budget.next_look:
                budget.look()
        inputs = node.inputs
        for value in inputs:
            if value is not None and (value.node.graph is not self or value.node not in self._nodes):
                self.require_own(inputs, node)
        # Op.__setattr__ checks attributes; these fields are none, and every node sets them.
        _set(node, "graph", self)
        _set(node, "origins", current.get() or _origins_of(inputs))
        _set(node, "id", self._next_id)
        self._next_id += 1
        self._nodes[node] = _NO_DATA
        if self._notes:
            self._notes.clear()
        for port, value in enumerate(inputs):
            if value is not None:
                if value._uses is None:  # as in `_link`: nearly every value has one use
                    value._uses = use_of(node, port)
                else:
                    value._link(node, port)
        cls = type(node)
        if cls not in self._classes:
            nodes: dict[Node, None] = {}
            self._classes[cls] = nodes
            for kinds, found in self._families.items():
                if cls.bodies != () if kinds == "bodies" else issubclass(cls, kinds):
                    found.append(nodes)
        self._classes[cls][node] = None
        if self._order is not None:  # the newest node, without consumers: last in any order
            self._order.append(node)
        if self._changes is not None:
            self._changes[node] = None

    def require_own(self, values: Iterable[Value | None], node: Node) -> None:
        """Raise for values of other graphs as inputs of `node`, before any change."""
        for value in values:
            if value is not None and (value.node.graph is not self or value.node not in self._nodes):
                into = type(node).__name__  # it may be under construction, and have no repr yet
                raise InternalError(f"an edge from {value.node!r} into {into} would cross graphs", where=self.origin)

    def _link(self, value: Value, node: Node, port: int) -> None:
        value._link(node, port)
        if value.node.id >= node.id:
            self._by_age = False

    def set_input(self, node: Node, port: int, value: Value | None) -> None:
        """Make input `port` of `node` read `value`."""
        old = node.inputs[port]
        if old is value:
            return
        self.require_own((value,), node)
        if old is not None:
            old._unlink(node, port)
        if value is not None:
            self._link(value, node, port)
            if value.node.id > node.id:
                self._order = None
        self._notes.clear()
        inputs = list(node.inputs)
        inputs[port] = value
        _set(node, "inputs", tuple(inputs))
        if not self._by_age:
            self._order = None
        if old is not None and value is not None and old.type is value.type:  # inference would give the same
            if self._changes is not None:
                self._changes[node] = None
        else:
            self.touch(node)

    def set_inputs(self, node: Node, values: Sequence[Value | None]) -> None:
        """Replace all inputs of `node`; their number can change."""
        self.require_own(values, node)
        for port, old in enumerate(node.inputs):
            if old is not None:
                old._unlink(node, port)
        self._notes.clear()
        node.inputs = tuple(values)
        for port, value in enumerate(values):
            if value is not None:
                self._link(value, node, port)
        self._order = None
        self.touch(node)

    def add_output(self, node: Node, type_: Any) -> Value:
        """A new last output of `node`, of this type until it is inferred."""
        output = Value(node, len(node.outputs), type_)
        node.outputs = (*node.outputs, output)
        self.touch(node)
        return output

    def drop_outputs(self, node: Node, keep: Sequence[int]) -> None:
        """Keep only the outputs numbered in `keep`, in that order; the others must be unused."""
        kept = set(keep)
        for output in node.outputs:
            if output.index not in kept and output.is_used:
                raise InternalError(f"output {output.index} is still used", where=node.origin)
        node.outputs = tuple(node.outputs[index] for index in keep)
        for index, output in enumerate(node.outputs):
            output.index = index
        self.touch(node)

    def remove(self, node: Node) -> None:
        """Remove a node without used outputs."""
        if node.is_used:
            raise InternalError(f"{node!r} is still used by {node.consumers[0]!r}", where=node.origin)
        for port, value in enumerate(node.inputs):
            if value is not None:
                value._unlink(node, port)
        del self._nodes[node]
        del self._classes[type(node)][node]
        self._dirty.pop(node, None)
        self._order = None
        self._notes.clear()
        if node in self.parameters:
            self.parameters.remove(node)
        if node in self.results:
            self.results.remove(node)

    def sweep(self) -> int:
        """Remove nodes whose outputs reach neither a Result nor a sink; Parameters stay. Returns the number removed."""
        fresh = takewhile(lambda node: node.id >= self._unswept, reversed(self._nodes))
        unread = [node for node in {**self._unread, **dict.fromkeys(fresh)} if node in self._nodes and _is_unread(node)]
        dead = [node for node in unread if not node.acts]
        self._unread = dict.fromkeys(node for node in unread if node.acts)  # until their sinks are removed
        self._unswept = self._next_id
        count = 0
        while dead:
            node = dead.pop()
            producers = node.producers
            self.remove(node)
            count += 1
            dead.extend(each for each in producers if _is_unread(each) and not each.acts)
        return count

    # -- types

    def touch(self, node: Node) -> None:
        """Mark `node` for re-inference; the node that owns this graph is marked as well."""
        graph: Graph = self
        if self._changes is not None:
            self._changes[node] = None
        while node not in graph._dirty:
            graph._dirty[node] = None
            owner = graph.owner
            outer = getattr(owner, "graph", None)  # none yet while the owner is under construction
            if owner is None or outer is None or owner not in outer:
                return
            node, graph = owner, outer

    @contextmanager
    def recorded(self) -> Iterator[dict[Node, None]]:
        """The nodes that are made, or marked for re-inference, in this block; the caller clears the dictionary."""
        before, self._changes = self._changes, {}
        try:
            yield self._changes
        finally:
            self._changes = before

    @property
    def is_dirty(self) -> bool:
        """Whether a node is marked for re-inference."""
        return bool(self._dirty)

    def is_marked(self, node: Node) -> bool:
        """Whether a node is marked for re-inference."""
        return node in self._dirty

    @property
    def waiting(self) -> Node | None:
        """The first, innermost node that is marked for re-inference: `validate` begins or stopped there."""
        node = next((node for node in self.ordered() if node in self._dirty), None)
        inner = (body.waiting for body in node.bodies) if node is not None else iter(())
        return next((each for each in inner if each is not None), node)

    def validate(self) -> None:
        """Infer the types of the marked nodes again, and of nodes that depend on a change."""
        if not self._dirty:
            return
        for node in self.ordered():
            if node not in self._dirty:
                continue
            for output in self._inferred_anew(node):
                for use in output.uses:
                    self._dirty[use.node] = None
            self._dirty.pop(node, None)

    def validate_node(self, node: Node) -> None:
        """Infer one node immediately, if a rewrite needs its new type before the next `validate`."""
        for output in self._inferred_anew(node):
            for use in output.uses:
                self.touch(use.node)

    def _inferred_anew(self, node: Node) -> tuple[Value, ...]:
        """Infer the types of a node; its outputs if anything changed. Equal types stay, all or none."""
        start = fresh_symbols()
        types = node.infer_types()
        made = (start, fresh_symbols())
        renaming = Renaming(getattr(node, "symbols_made", (0, 0)), made) if made[1] > start else None
        for output, new in zip(node.outputs, types, strict=True):
            if not (output.type == new if renaming is None else same_type(output.type, new, renaming)):
                break
        else:
            return ()
        node.symbols_made = made
        for output, new in zip(node.outputs, types, strict=True):
            output.type = new
        return node.outputs

    # -- copying

    def clone(self) -> Graph:
        """A copy that shares the weights."""
        copy, _ = self.clone_with_map()
        return copy

    def __copy__(self) -> Graph:
        return self.clone()

    def __deepcopy__(self, _: Any) -> Graph:
        return self.clone()

    def __getstate__(self) -> tuple[Any, ...]:
        """For pickle: a body is pickled without its owner, weights of files with their content."""
        return state_of(self)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__()  # type: ignore[misc]
        restore(self, state)

    def clone_with_map(self) -> tuple[Graph, dict[Node, Node]]:
        """A copy, and the copy of each node."""
        copy = Graph(self.name)
        copy.rt_info = dict(self.rt_info)
        copy.remaining = self.remaining
        copy.sources = self.sources
        copy._scope = self._scope
        copies = copy_nodes(self, copy, {})
        copy.parameters = [copies[node] for node in self.parameters]  # type: ignore[misc]  # copies keep the class
        copy.results = [copies[node] for node in self.results]  # type: ignore[misc]  # likewise
        return copy, copies

    def inline(self, body: Graph, bindings: Sequence[Value]) -> list[Value]:
        """Copy the nodes of `body` into this graph; `bindings` replace its Parameters in order.

        Returns the values of its Results in order. Nodes that read a binding are marked for re-inference.
        """
        values = {p.outputs[0]: v for p, v in zip(body.parameters, bindings, strict=True)}
        copies = copy_nodes(body, self, values, skip=(*body.parameters, *body.results))
        for parameter in body.parameters:
            for use in parameter.outputs[0].uses:
                if use.node in copies:
                    self.touch(copies[use.node])
        return [values[r.inputs[0]] for r in body.results if r.inputs[0] is not None]

    def adopt(self, source: Graph, nodes: Collection[Node], values: dict[Value, Value]) -> None:
        """Copy `nodes` of `source` into this graph. `values` maps inputs to values here, and gets the outputs."""
        copy_nodes(source, self, values, skip=[node for node in source.ordered() if node not in nodes])


def _is_unread(node: Node) -> bool:
    return not node.is_used and not node.is_kept


def _origins_of(inputs: Iterable[Value | None]) -> Origins:
    return next((value.node.origins for value in inputs if value is not None and value.node.origins), ())
