"""The tensors at which a cut removes the strings of a model, as an option that can be pasted.

    with_cut(errors, model, cut)       # help: convert the part after the strings: --input 'ids[?,16],length[?]'

The first tensors of numbers that nodes with strings make, and that the outputs depend on, become inputs. What the user
gave for inputs of numbers stays in the option.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from mo_loop.errors import MoLoopError
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.declared_types import is_valid, with_inferred_types
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.node_order import NamesRead
from mo_loop.frontend.onnx_graphs import label
from mo_loop.preprocessing.per_input import split

_STRING = 8  # TensorProto.STRING


def with_cut(errors: Sequence[MoLoopError], model: OnnxModel, cut: Cut) -> list[MoLoopError]:
    """The errors; those of nodes with strings name the cut that removes the strings, if there is one."""
    refused = [_node_of(each) for each in errors]
    if not any(refused) or not is_valid(model):
        return [*errors]
    places, option = _Strings(model, cut).cut_after(set(refused))
    is_text = cut.given is None or isinstance(cut.given, str)
    way = f"--input {shlex.quote(option)}" if is_text else f"add {option} to the inputs"
    way = f"convert the part after the strings: {way}"
    found = zip(errors, refused, strict=True)
    return [each.at(hint=way) if option and name in places else each for each, name in found]


def _node_of(error: MoLoopError) -> str:
    """The name of the node of the main graph that an error is about, if it is about an operator or strings."""
    if error.origin is None or error.code not in ("ML302", "ML303"):
        return ""
    return error.origin.scope[0] if error.origin.scope else error.origin.node


class _Strings:
    """The nodes and types of the main graph."""

    def __init__(self, model: OnnxModel, cut: Cut) -> None:
        self._inputs: Collection[str] = cut.inputs or ()
        self._given = list(split(cut.given)) if isinstance(cut.given, str) else []
        self._model = model
        self._outputs = cut.outputs or [each.name for each in model.proto.graph.output]

    def cut_after(self, refused: Collection[str]) -> tuple[Collection[str], str]:
        """The names of those nodes that have strings, and the entries of --input that make them unnecessary; empty if
        strings reach an output, or no node is left."""
        graph, names = self._model.proto.graph, NamesRead()
        typed = with_inferred_types(self._model).proto.graph
        self._kinds = {each.name: _kind(each.type) for each in (*typed.input, *typed.value_info, *typed.output)}
        self._kinds |= {each.name: each.data_type for each in graph.initializer}
        reads = [names.of_node(node) for node in graph.node]
        start = [
            place for place, node in enumerate(graph.node)
            if label(node) in refused and any(map(self._is_string, (*reads[place], *node.output)))
        ]  # fmt: skip
        cuts, without = self._first_numbers(start, graph.node, reads) if start else (set(), set())
        used = self._needed(cuts, without, graph.node, reads)
        shapes = {each.name: each.type.tensor_type for each in (*typed.value_info, *typed.output)}
        new = [name for node in graph.node for name in node.output if name in used and name not in self._inputs]
        entries = [_entry(name, shapes[name]) for name in new]
        kept = [
            f"{_quoted(name)}{text}" if text.startswith(("[", "(")) else text
            for text, name in zip(self._given, self._inputs, strict=False) if not self._is_string(name)
        ]  # fmt: skip
        return {label(graph.node[place]) for place in start}, ",".join(kept + entries if entries else ())

    def _is_string(self, name: str) -> bool:
        return self._kinds.get(name) == _STRING

    def _first_numbers(
        self, start: Iterable[int], nodes: Sequence[Any], reads: Sequence[set[str]]
    ) -> tuple[set[str], set[int]]:
        """The tensors of numbers that follow these nodes without others between, and the nodes before them."""
        readers: dict[str, list[int]] = defaultdict(list)
        for place, each in enumerate(reads):
            for name in each:
                readers[name].append(place)
        cuts, pending = set[str](), list(start)
        without = set(pending)
        while pending:
            for name in nodes[pending.pop()].output:
                if self._kinds.get(name, _STRING) != _STRING:
                    cuts.add(name)
                    continue
                new = [place for place in readers[name] if place not in without]
                without.update(new)
                pending += new
        return cuts, without

    def _needed(
        self, cuts: set[str], without: Collection[int], nodes: Sequence[Any], reads: Sequence[set[str]]
    ) -> Collection[str]:
        """Those of the cuts on which the outputs depend; none if they depend on strings too, or on no node."""
        makers = {name: place for place, node in enumerate(nodes) for name in node.output}
        used, kept, pending = set[str](), set[int](), list(self._outputs)
        while pending:
            name = pending.pop()
            if name in cuts:
                used.add(name)
            elif self._is_string(name) or makers.get(name) in without:
                return ()
            elif name in makers and makers[name] not in kept and name not in self._inputs:
                kept.add(makers[name])
                pending += reads[makers[name]]
        return used if kept else ()


def _kind(type_: Any) -> int:
    """The number of the element type, also of a sequence; -1 where it is not known."""
    while type_.WhichOneof("value") in ("sequence_type", "optional_type"):
        type_ = getattr(type_, type_.WhichOneof("value")).elem_type
    return type_.tensor_type.elem_type or _STRING if type_.HasField("tensor_type") else -1


def _entry(name: str, type_: Any) -> str:
    """A tensor with its shape as --input spells it."""
    if not type_.HasField("shape"):
        return _quoted(name)
    dims = [str(each.dim_value) if each.HasField("dim_value") else "?" for each in type_.shape.dim]
    return f"{_quoted(name)}[{','.join(dims)}]"


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w./-]+", name) else f"'{name}'" if '"' in name else f'"{name}"'
