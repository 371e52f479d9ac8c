"""The canonical order of ports."""

from __future__ import annotations

from collections.abc import Sequence

from mo_loop.graph import Graph
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import Control, If, Iteration, Loop
from mo_loop.ops.port_map import Concatenated, Final, Invariant, Merged, Sliced
from mo_loop.transforms.function_pass import FunctionPass

_INPUT_RANK = {Merged: 0, Sliced: 1, Invariant: 2}
_OUTPUT_RANK = {Final: 0, Concatenated: 1}


class PortRenumbering(FunctionPass):
    """ports in any order  ->  inputs: merged, sliced, invariant; outputs: final, concatenated; bodies likewise

    The trip count and the execution condition of a Loop come first. Ports of one kind keep their order.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, Iteration):
            moved = [_order_inputs(node), _order_outputs(node), _order_body(node)]
            changed = self._report(node, any(moved)) or changed
        for branch in self.candidates(graph, If):
            changed = self._report(branch, _order_branches(branch)) or changed
        return changed

    def _report(self, node: Control, moved: bool) -> bool:
        return self.accept(node) if moved else self.refuse(node, "its ports are in order already")


def _order_inputs(node: Iteration) -> bool:
    order = sorted(range(len(node.input_map)), key=lambda i: _INPUT_RANK[type(node.input_map[i])])
    if order == list(range(len(order))):
        return False
    first = node.first_data_port
    data = node.inputs[first:]
    node.input_map = tuple(node.input_map[i] for i in order)
    node.graph.set_inputs(node, [*node.inputs[:first], *(data[i] for i in order)])
    return True


def _order_outputs(node: Iteration) -> bool:
    order = sorted(range(len(node.output_map)), key=lambda i: _OUTPUT_RANK[type(node.output_map[i])])
    if order == list(range(len(order))):
        return False
    node.output_map = tuple(node.output_map[i] for i in order)
    node.graph.drop_outputs(node, order)
    return True


def _order_body(node: Iteration) -> bool:
    parameters: list[Parameter] = [entry.parameter for entry in node.input_map]
    results: list[Result] = [entry.result for entry in node.back_edges]
    results += [entry.result for entry in node.output_map]
    if isinstance(node, Loop):
        parameters = ([] if node.iteration is None else [node.iteration]) + parameters
        results = [node.condition, *results]
    return _reorder(node.body, parameters, results)


def _order_branches(node: If) -> bool:
    changed = False
    for body, side in ((node.then_body, "then"), (node.else_body, "else_")):
        parameters = [getattr(entry, side) for entry in node.input_map if getattr(entry, side) is not None]
        changed = _reorder(body, parameters, [getattr(entry, side) for entry in node.output_map]) or changed
    return changed


def _reorder(body: Graph, parameters: Sequence[Parameter], results: Sequence[Result]) -> bool:
    """Put the Parameters and Results of a body into the given order; those that no port map names come last."""
    before = (list(body.parameters), list(body.results))
    body.parameters[:] = dict.fromkeys([*parameters, *body.parameters])
    body.results[:] = dict.fromkeys([*results, *body.results])
    return before != (body.parameters, body.results)
