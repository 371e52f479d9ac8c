"""The output of mo-loop inspect --graph and --nodes, as lines of text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mo_loop.cli.graph_tree import tree
from mo_loop.cli.node_table import node_table
from mo_loop.cli.output import stdout_encoding, terminal_width
from mo_loop.look.inspection.contents import SCHEMA, VERSION, node_rows
from mo_loop.look.inspection.description import unknown
from mo_loop.look.inspection.skeleton import ControlNode, FunctionCall, Outline, Run, Skeleton, skeleton
from mo_loop.look.records.opening import opened
from mo_loop.look.records.structure import Structure
from mo_loop.support.process_memory import paused_collector


def graph_lines(
    path: str, file: str, form: str, depth: int | None, scope: str | None, operator: str | None,
    allowed: Sequence[str] = (),
) -> Iterator[str]:  # fmt: skip
    """The control flow of the model at `path`, which the user calls `file`."""
    with paused_collector():
        structure = _opened(path, scope, operator, allowed)
        found = replace(skeleton(structure), file=file)
    if scope is not None:
        first, *more = [each for each in found.outlines() if each.path == scope]
        found = replace(found, graph=first, functions=more)
    if depth is not None:
        found = _changed(found, [_cut(each, depth) for each in (found.graph, *found.functions)])
    if operator is not None:
        graph, *functions = [_only(each, operator) for each in (found.graph, *found.functions)]
        found = replace(found, graph=graph, functions=[each for each in functions if each.steps])
    if form == "json":
        return iter([json.dumps(found.as_json(), indent=1, ensure_ascii=False)])
    return tree(found, stdout_encoding(), terminal_width())


def node_lines(
    path: str, file: str, form: str, depth: int | None, scope: str | None, operator: str | None,
    allowed: Sequence[str] = (),
) -> Iterator[str]:  # fmt: skip
    """The nodes of the model at `path`, which the user calls `file`."""
    with paused_collector():
        structure = _opened(path, scope, operator, allowed)
    rows = node_rows(structure, scope, depth, operator)
    if form == "text":
        yield from node_table(rows)
        return
    head = {"schema": SCHEMA, "version": VERSION, "file": file, "format": structure.kind.lower()}
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "nodes": ['
    before = ""
    for row in rows:
        if before:
            yield f"{before},"
        before = json.dumps(row.as_json(), ensure_ascii=False)
    yield f"{before}]}}"


def _opened(path: str, scope: str | None, operator: str | None, allowed: Sequence[str]) -> Structure:
    """The structure of a model that has this scope and operator."""
    structure = opened(path, weights=False, allowed=allowed)
    if scope is not None:
        paths = [each.text for each in structure.scopes()]
        if scope not in paths:
            raise unknown("scope", scope, [each for each in paths if each])
    if operator is not None:
        operators = dict.fromkeys(item.operator for each in structure.scopes() for item in each.items)
        if operator not in operators:
            raise unknown("operator", operator, list(operators))
    return structure


def _changed(found: Skeleton, outlines: list[Outline]) -> Skeleton:
    return replace(found, graph=outlines[0], functions=outlines[1:])


def _cut(outline: Outline, depth: int) -> Outline:
    """A graph with `depth` levels of bodies; the bodies of the last level are without their steps."""
    steps = [
        replace(step, bodies=[_cut(body, depth - 1) if depth else replace(body, steps=[]) for body in step.bodies])
        if isinstance(step, ControlNode)
        else step
        for step in outline.steps
    ]
    return replace(outline, steps=steps)


def _only(outline: Outline, operator: str) -> Outline:
    """A graph with the nodes of one operator only, and the nodes with bodies around them."""
    steps: list[Run | ControlNode | FunctionCall] = []
    for step in outline.steps:
        if isinstance(step, ControlNode):
            bodies = [_only(body, operator) for body in step.bodies]
            if step.operator == operator or any(body.steps for body in bodies):
                steps.append(replace(step, bodies=bodies))
        elif isinstance(step, Run):
            count = step.operators.get(operator)
            steps += [Run(count, {operator: count})] if count else []
        elif step.operator == operator:
            steps.append(step)
    return replace(outline, steps=steps)
