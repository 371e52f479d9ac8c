"""Variables of the main graph, also for nodes in a branch of If.

    read = variable.read(initial)        ReadValue(initial)             in a branch: an input of the If
    variable.assign(value)               Assign(value)                  in a branch: an output of the If

Types. The CPU device has no variables of 16 and 64 bits other than f16 and bf16: it computes those types in i32 and
f32, and so are they stored, with a Convert after the ReadValue and before the Assign. It computes f16, bf16 and
booleans in other types as well, and converts their variables by itself. Where the shape changes, that conversion
is moved into the ReadValue, and a reset keeps the old shape: such variables are stored in the other type, too.

The runtime has variables in the main graph alone. A state in a branch is read before the If and assigned after it; the
other branch returns it unchanged, so that it stays as it was where that branch runs.
"""

from mo_loop.errors import InternalError, UnsupportedError
from mo_loop.graph import types
from mo_loop.ops.port_map import Branched, Selected
from mo_loop.transforms.port_maps import add_input
from mo_loop.transforms.vocabulary import F, Graph, Parameter, Result, Value, is_static, ops

_STORED = dict.fromkeys((types.i64, types.u64, types.u32, types.i16, types.u16), types.i32) | {types.f64: types.f32}
"""Element types that the runtime has no variables of -> those in which it computes them."""

_STORED_IF_DYNAMIC = {types.f16: types.f32, types.bf16: types.f32, types.boolean: types.u8}
"""Element types that the runtime has no variables of whose shape can change."""


class GraphVariable:
    """One variable: `read` is called first and once, then `assign`, with values of the same graph."""

    def __init__(self, name: str, type_: types.TensorType, label: str = "") -> None:
        """`type_` is that of every value that the variable has; `label` is the name of its ReadValue if not `name`."""
        dtype = type_.dtype
        if dtype is None or dtype is types.string or type_.shape is None:
            raise UnsupportedError(f"a variable cannot be {type_}", code="ML350")
        self.name = name
        self.label = label or name
        self.type = type_
        stored = _STORED if is_static(type_.shape) else {**_STORED, **_STORED_IF_DYNAMIC}
        self._dtype, self._stored = dtype, stored.get(dtype, dtype)
        self._unchanged: dict[Graph, Value] = {}  # branch -> the state in the other branch of its If

    def read(self, initial: Value) -> Value:
        """The value of the variable; `initial` is its value before the first Assign, and after a reset."""
        branch = initial.graph
        owner = branch.owner
        if owner is None:
            read = F.ReadValue(initial.astype(self._stored), name=self.label, **self._attributes)
            return read.astype(self._dtype)
        if not isinstance(owner, ops.If):
            raise InternalError(f"a variable in the body of {owner!r}", where=owner.origin)
        outer = self.read(_made_outside(initial, owner))
        then, else_ = (Parameter(graph=body, type=self.type) for body in owner.bodies)
        add_input(owner, Branched(then, else_), outer)
        here, other = (then, else_) if branch is owner.then_body else (else_, then)
        self._unchanged[branch] = other.output
        return here.output

    def assign(self, value: Value) -> None:
        """Set the variable at the end of an inference."""
        branch = value.graph
        owner = branch.owner
        if owner is None:
            ops.Assign(value.astype(self._stored), **self._attributes)
            return
        assert isinstance(owner, ops.If)
        results = [Result(value), Result(self._unchanged[branch])]
        then, else_ = results if branch is owner.then_body else reversed(results)
        owner.output_map = (*owner.output_map, Selected(then, else_))
        self.assign(owner.graph.add_output(owner, self.type))

    @property
    def _attributes(self) -> dict[str, object]:
        return {"variable_id": self.name, "variable_type": self._stored, "variable_shape": self.type.dims}


def drop_unobserved(graph: Graph) -> None:
    """Remove the variables of the main graph on which no output depends, at once or in a later inference.

    The runtime does not read a model with a variable that nothing but its own Assign reads.
    """
    reads = {node.variable_id: node for node in graph.of(ops.ReadValue)}
    sinks = [node for node in graph if node.acts or (node.is_kept and not isinstance(node, Parameter))]
    observed = graph.ancestors(node for node in sinks if not isinstance(node, ops.Assign))
    waiting = graph.of(ops.Assign)
    while found := [node for node in waiting if reads.get(node.variable_id) in observed]:
        observed |= graph.ancestors(found)
        waiting = [node for node in waiting if node not in observed]
    for node in waiting:
        graph.remove(node)
    graph.sweep()


def _made_outside(value: Value, owner: ops.If) -> Value:
    """A value of a branch as a value of the graph around the If: the nodes that compute it are copied there."""
    body, outer = value.graph, owner.graph
    side = "then" if body is owner.then_body else "else_"
    values = {getattr(entry, side).output: given for entry, given in owner.fed if getattr(entry, side) is not None}
    if value not in values:
        given = set(values)
        outer.adopt(body, {each for each in body.ancestors([value.node]) if not isinstance(each, Parameter)}, values)
        for inner, copy in values.items():
            if inner not in given:
                copy.names = copy.origins = ()  # a name means one tensor
    return values[value]
