"""A conversion in memory that does not end at the first thing that stops it.

    conversion.run(model, cut, usage)
    conversion.errors       # all that stops it
    conversion.graph        # the finished graph; None where something stops it

Where a node cannot be translated, translation goes on behind it with what the model declares of its outputs, so that
one run finds what lies behind a failure too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mo_loop.errors import ConversionErrors, ExtensionError, MoLoopError, UnsupportedError, UsageError
from mo_loop.frontend.boundary import made_input, refused
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.declared_types import type_from
from mo_loop.frontend.input_text import InputEntry
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.translate import translate
from mo_loop.frontend.unsupported_operators import unsupported_operators
from mo_loop.frontend.utf8 import check_names_on_error, has_utf8_names, require_utf8_names
from mo_loop.graph import Graph
from mo_loop.graph.types import OptionalType, SequenceType
from mo_loop.last_check import failures, last_check
from mo_loop.ops.control import Loop
from mo_loop.renaming import rename_tensors

if TYPE_CHECKING:
    from mo_loop.diagnostics.onnx_checks import Usage
    from mo_loop.extensions import Extensions
    from mo_loop.preprocessing.preparation import Preprocessing
    from transforms.config import PassConfig


@dataclass
class Seen:
    """What can be seen while a conversion runs, and not afterwards: paths of nodes."""

    uncounted_loops: set[str] = field(default_factory=set)
    packed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Asked:
    """How a model is to be converted: the arguments of `convert_model` that are the same for each model."""

    added: Extensions
    prepared: Preprocessing
    config: PassConfig | None = None
    rename: Mapping[str, str] | None = None
    unroll: int = 0
    strict: bool = False
    packed: bool = False


class Conversion:
    """One conversion."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.errors: list[MoLoopError] = []
        self.graph: Graph | None = None
        self.seen = Seen()

    def run(self, model: OnnxModel, cut: Cut, usage: Usage, lost: Sequence[InputEntry] = ()) -> None:
        """Find `errors`, and make the `graph` if there are none. What is `lost` is taken to be an input.

        Raises:
            ExtensionError: an extension fails.
            UsageError: the cut does not fit the model.
        """
        with check_names_on_error(model.proto):
            self.errors += _at_the_boundary(model, cut, self._asked.packed)
            packed = self._asked.packed or bool(self.errors)  # to see what else there is
            if lost:
                cut = replace(cut, inputs={**{each.name: each for each in lost}, **(cut.inputs or {})})
            graph = self._translated(model, cut, packed)
            if graph is None and any(isinstance(error, UnsupportedError) for error in self.errors):
                places = {error.where for error in self.errors}
                others = unsupported_operators(model, self._asked.added.translators)
                self.errors += [each for each in others if each.where not in places and usage.is_needed(each.where)]
            if graph is None:
                return
            self._finish(graph, model)
            if not has_utf8_names(graph):
                require_utf8_names(model.proto)
        if not self.errors and not lost:
            self.graph = graph

    def _translated(self, model: OnnxModel, cut: Cut, packed: bool) -> Graph | None:
        """The graph as translated, None if something failed; `errors` grow."""
        asked = self._asked
        try:
            graph = translate(
                model, cut, asked.added.translators, strict=asked.strict, packed=packed, continue_after_failures=True
            )
            graph.sweep()
            found = failures(graph)
            if found:
                raise ConversionErrors(found)
        except MoLoopError as error:
            self.errors += _collectable(error)
            return None
        return graph

    def _finish(self, graph: Graph, model: OnnxModel) -> None:
        """The passes and the last check."""
        from transforms.config import PassConfig
        from transforms.manager import Manager
        from transforms.pipelines import default_pipeline
        from transforms.selection import Selection

        config = PassConfig()
        asked = self._asked
        if asked.config is not None:
            config.adopt(asked.config)
        config.explain("PackSequences")
        self.seen.uncounted_loops = {
            node.path for scope in graph.scopes() for node in scope.of(Loop) if not isinstance(node.count, int)
        }
        pipeline = asked.added.arranged(default_pipeline(asked.unroll))
        manager = Manager(asked.prepared.around(pipeline), config=config)
        Selection(manager, None)  # refuses names that no pass has
        try:
            manager.run(graph)
            last_check(graph)
            if asked.rename:
                rename_tensors(graph.clone(), asked.rename, model)
        except MoLoopError as error:
            self.errors += _collectable(error)
        said = (each for each in config.explanations if each.pass_name == "PackSequences")
        self.seen.packed = [each.node for each in said if each.outcome == "changed"]


def _collectable(error: MoLoopError) -> Iterable[MoLoopError]:
    """The errors in one; raised again if it is not about the model, or maybe comes of names that are no text."""
    if isinstance(error, ExtensionError | UsageError) or error.exit_code == 4:
        raise error
    return error.errors if isinstance(error, ConversionErrors) else (error,)


def _at_the_boundary(model: OnnxModel, cut: Cut, packed: bool) -> Iterator[MoLoopError]:
    """What cannot enter or leave the IR. Translation would end at the first."""
    scratch = Graph("inputs")
    for start in cut.parameters(model):
        if start.value is not None or start.if_needed:
            continue
        try:
            made_input(scratch, start.name, start.type, packed)
        except UnsupportedError as error:
            yield error
    if packed:
        return
    declared: dict[str, Any] = {entry.name: entry.type for entry in model.proto.graph.output}
    for name in cut.outputs or declared:
        if name in declared and declared[name].WhichOneof("value") in ("sequence_type", "optional_type"):
            type_ = type_from(declared[name], symbolic=True)
            if isinstance(type_, SequenceType | OptionalType):
                yield refused(f"the output {name!r}", "leave", type_, name)
