"""Conversion: one conversion of a model, with its steps reading -> translating -> passes -> last check.

    record, profile = Record(), Profile()
    conversion = Conversion(ConvertOptions(input="x[1,3,224,224]"), [record, profile, Dumper("steps")])
    graph = conversion.run("model.onnx")

The conversion makes these objects from its options:

    extensions, plugins                   -> Extensions: passes and translators          mo_loop/extensions.py
    layout, mean_values, ..., batch       -> Preprocessing: passes, and the batch size   mo_loop/preprocessing/
    input, output, freeze                 -> Cut: where the model begins and ends        mo_loop/frontend/cut.py
    unroll, config                        -> the passes of transforms/pipelines.py, and which of them run

`manager` is the pipeline, and only this module assembles it:

    passes of Preprocessing  [ passes of transforms/pipelines.py and of Extensions ]  RecordLayouts

`run` calls the observers with a Phase (transforms/manager.py) at the beginning and the end of each part of the
conversion, and with a Step after every pass. Times (Profile), files of each step (Dumper), the summary (Record),
the check of invariants and the stop after a pass are observers:

    Phase("reading")       subject, at the end: the OnnxModel
    Phase("translating")   graph, at the end: the translated graph
    Phase("passes")        subject: the Manager; before its end: Step(ConstantFolding), Step(UnrollLoops), ...
    Phase("renaming")      only with `rename`; subject: old name -> new name
    Phase("checking")      the last check
    Phase("compressing")   of save_model; subject, at the end: the counts of compressed constants
    Phase("writing")       of save_model; subject: the Weights, which count the bytes written so far

An observer with a method `failed` is called with the exception that ends the conversion, or the writing.

A conversion raises the errors of the first part that has any. With `collect` it continues as far as it can and keeps
all `errors`; `mo-loop check` (mo_loop/look/diagnostics/examine.py) uses this.
"""

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from mo_loop import text_library
from mo_loop.conversion_info import conversion_info
from mo_loop.conversion_limits import Limits, limited
from mo_loop.errors import (
    ConversionErrors,
    ConversionWarning,
    ExtensionError,
    MoLoopError,
    TypeError_,
    UnsupportedError,
    UsageError,
)
from mo_loop.extensions import collect_extensions
from mo_loop.frontend.boundary import InputSizes, attempted, boundary_errors
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.model import OnnxModel, check_names_on_error, has_utf8_names, load, require_utf8_names
from mo_loop.frontend.onnx_graphs import graph_protos, has_tensor
from mo_loop.frontend.refusals import unsupported_operators, with_cut
from mo_loop.frontend.scope import Doubts
from mo_loop.frontend.translate import translate
from mo_loop.graph import Graph
from mo_loop.graph.inference_cache import forget
from mo_loop.graph.renaming import rename_tensors
from mo_loop.options import ConvertOptions
from mo_loop.preparation import Preprocessing, flag_of, state_passes, with_other_outputs
from mo_loop.printable import first_few
from mo_loop.support.process_memory import paused_collector
from mo_loop.target import shown
from mo_loop.transforms.downgrade import newer_uses
from mo_loop.transforms.last_check import failures, last_check, outputs_without
from mo_loop.transforms.manager import Manager, Observer, Phase, check_invariants, stop_after

CHECK_PASSES = False
"""Whether invariants are checked after each pass if the argument `check_passes` is not given. The tests set it."""


class Conversion:
    """The conversion of one model."""

    def __init__(
        self, options: ConvertOptions | None = None, observers: Iterable[Observer] = (), *,
        stop_after: str | None = None, check_passes: bool | None = None, collect: bool = False,
        is_one_of_many: bool = False,
    ) -> None:
        """`collect` keeps errors about the model in `errors` instead of raising the first ones.

        Args:
            options: how the model is converted.
            observers: called, one after the other, with each Phase and each Step.
            stop_after: the name of the last pass to run. For debugging: the runtime needs the later passes.
            check_passes: check the invariants of the graph after every pass that changes it; slow.
            is_one_of_many: the options are those of many models: one without effect on this model is a warning.

        Raises:
            UsageError: an option is not valid for any model.
            ExtensionError: an extension cannot be loaded.
        """
        self.options = options or ConvertOptions()
        self.observers = list(observers)
        self.errors: list[MoLoopError] = []
        self._doubts = Doubts()
        self._has_run = False
        self._limits = Limits.of(self.options.limits)
        self._stop_after = stop_after
        self._check_passes = CHECK_PASSES if check_passes is None else check_passes
        self._collect = collect
        self._is_one_of_many = is_one_of_many
        self._preprocessing = Preprocessing.of(self.options)
        self._extensions = collect_extensions(self.options.extensions, plugins=self.options.plugins)

    @cached_property
    def manager(self) -> Manager:
        """The pipeline. ExtensionError if an extension adds a pass at a place that does not exist."""
        from mo_loop.transforms.pipelines import default_pipeline

        options = self.options
        passes = default_pipeline(
            options.unroll, options.releases, options.quantization, state_passes(options), options.exact_order
        )
        return Manager(self._preprocessing.around(self._extensions.arranged(passes)), config=options.config)

    @cached_property
    def skipped(self) -> Sequence[str]:
        """The names of default passes that do not run; UsageError for names that no pass has."""
        if self.options.config is None and self._stop_after is None:
            return ()
        from mo_loop.transforms.selection import Selection

        return Selection(self.manager, self._stop_after).skipped

    def run(self, source: Any) -> Graph:
        """The graph of `source` (a path, bytes, or an `onnx.ModelProto`), ready to be written.

        Raises:
            InputError: the file, the model or an option is wrong.
            UnsupportedError: the IR cannot express a part of the model; several errors are one ConversionErrors.
        """
        _ = self.manager, self.skipped  # names of passes are checked before the model is read
        with paused_collector(), told_of_failures(self.observers), limited(self._limits):
            with phase("reading", self.observers) as reading:
                model = reading.subject = load(
                    source, self.options.allowed_folders, self.options.external_data_dir, lists_in_file=True
                )
            graph = self.convert(model)
        if graph is None:
            raise ConversionErrors(self.errors)
        return graph

    def cut(self, model: OnnxModel) -> Cut:
        """The inputs and outputs at which the conversion of `model` begins and ends; UsageError for names that it does
        not have."""
        options = self.options
        with self._named_before_renaming():
            cut = Cut.of(model, options.input, options.output, options.freeze)
            self._preprocessing.require_inputs(model, cut)
        return self._preprocessing.of_batch(cut)

    def convert(self, model: OnnxModel, cut: Cut | None = None) -> Graph | None:
        """The graph of a loaded model; None if there are `errors`, which is possible only with `collect`.

        With `collect` it still raises errors that are not about the model: UsageError, ExtensionError, InternalError.
        """
        with check_names_on_error(model.proto), limited(self._limits) as used:
            with self._collected():
                used.check_time()
                for count in (len(model.proto.graph.node), sum(len(each.node) for each in model.proto.functions)):
                    if count > used.limits.nodes:  # the bodies are read only for the advice
                        used.check_nodes(sum(len(each.node) for each in graph_protos(model.proto)))
            sizes = InputSizes(all_fixed=self.options.fixes_sizes)
            try:
                graph = None if self.errors else attempted(partial(self._attempt, model, cut), sizes)
            finally:
                self._doubts.warn()
            if graph is None:
                return None
            if not has_utf8_names(graph):
                require_utf8_names(model.proto)
            graph.remaining = used.remaining
            graph.sources = (*([] if model.path is None else [model.path]), *model.files.opened)
        return None if self.errors else graph

    # -- the parts

    def _attempt(self, model: OnnxModel, cut: Cut | None, sizes: InputSizes) -> Graph | None:
        """The graph; None if there are errors and `collect` is set. Assumption if it must assume more of `sizes`."""
        forget()  # the types that are kept have the sizes of the attempt before
        self.errors, self._doubts = [], Doubts(self.options.strict)
        for name in ("manager", "skipped") if self._has_run else ():  # passes keep what they found
            self.__dict__.pop(name, None)
        graph = self._translated(model, cut, sizes)
        if graph is None:
            return None
        with self._collected():
            self._run_passes(graph)
            if self.options.rename:
                self._require_no_state_renamed(self.options.rename)
                with phase("renaming", self.observers, graph, self.options.rename):
                    # Diagnostics use the names of the model, so they read a graph without the new names.
                    renamed = graph.clone() if self._collect else graph
                    rename_tensors(renamed, self.options.rename, partial(has_tensor, model))
            with phase("checking", self.observers, graph):
                self._check(graph, model, cut)
                self._check_target(graph)
                self._check_sums(graph)
                text_library.note(graph)
        return None if self.errors else graph

    def _translated(self, model: OnnxModel, cut: Cut | None, sizes: InputSizes) -> Graph | None:
        """The translated graph; None if there are errors and `collect` is set."""
        options = self.options
        with self._collected(), self._named_before_renaming():
            with phase("translating", self.observers) as translating:
                cut = self.cut(model) if cut is None else cut
                packed = options.is_packed
                if self._collect:
                    self.errors += boundary_errors(model, cut, packed)
                    packed = packed or bool(self.errors)  # translation stops at the first of them
                graph = translating.graph = translate(
                    model, cut, self._extensions.translators, doubts=self._doubts, packed=packed,
                    continue_after_failures=self._collect, sizes=sizes,
                )
                graph.rt_info = {**conversion_info(options), **graph.rt_info}
            graph.sweep()
            errors = failures(graph)
            if errors:
                errors = self._completed(errors, model, cut)
                raise ConversionErrors(with_other_outputs(errors, outputs_without(graph)))
            return graph
        assert cut is not None
        self.errors = self._completed(self.errors, model, cut)
        return None

    def _run_passes(self, graph: Graph) -> None:
        manager, _ = self.manager, self.skipped
        self._has_run = True
        manager.observers = list(self.observers)
        if self._check_passes:
            manager.observers.append(check_invariants)
            if self.options.config is None and not self._extensions.passes:
                from mo_loop.transforms.pipelines import check_rules

                manager.observers.append(check_rules(self.options.releases))
        if self._stop_after is not None:  # after the observers that need the last step
            manager.observers.append(stop_after(self._stop_after, manager.passes))
        with phase("passes", self.observers, graph, manager), self._named_before_renaming():
            manager.run(graph)
            if self._stop_after is not None:  # the IR has no Barriers, and a run that ends early leaves some
                from mo_loop.transforms.runtime.lower_barriers import LowerBarriers

                LowerBarriers().run(graph)
                graph.validate()
        self._require_effects(graph)

    def _require_effects(self, graph: Graph) -> None:
        """UsageError if an option requests a pass that changed nothing."""
        for each in self.manager.passes:
            if not each.without_effect:
                continue
            flag, hint = flag_of(each.name, self.options)
            if not self._is_one_of_many:
                raise UsageError(f"{flag} has no effect", why=each.without_effect, hint=f"{hint}, or omit it")
            text = f"{flag} has no effect: {each.without_effect}"
            warnings.warn(ConversionWarning(text, where=graph.origin, code="ML523"), stacklevel=2)

    def _require_no_state_renamed(self, names: Mapping[str, str]) -> None:
        """UsageError if `names` has an input or output that became a state, and so left the interface."""
        made = [each for each in self.manager.passes if each.name == "MakeStateful"]
        for pair in (pair for each in made for pair in getattr(each, "pairs", ())):
            for name in (pair.input, pair.output):
                if name in names:
                    raise UsageError(
                        f"--rename {name}={names[name]} has no effect",
                        why=f"the input {pair.input!r} and the output {pair.output!r} became the state "
                        f"{pair.variable_id!r}", code="ML202",
                        hint=f'omit it, or keep the input (--stateful-pair "{pair.input}=")',
                    )

    def _check(self, graph: Graph, model: OnnxModel, cut: Cut | None) -> None:
        """The last check. A skipped pass can be the cause of an error, so the errors name the skipped passes."""
        try:
            last_check(graph)
        except ConversionErrors as found:
            if not self.skipped:
                raise ConversionErrors(with_cut(found.errors, model, cut or self.cut(model))) from None
            hint = f"passes that did not run: {first_few(self.skipped, 5)}"
            errors = [error.at(hint=f"{error.hint}; {hint}" if error.hint else hint) for error in found.errors]
            raise ConversionErrors(errors) from None

    def _check_target(self, graph: Graph) -> None:
        """Refuse features that a release of the target does not run. The default target is narrowed instead, with
        warnings."""
        target = self.options.releases
        newer = [each for each in newer_uses(graph) if each.release > target.oldest]
        if newer and self.options.target is not None:
            raise ConversionErrors(
                UnsupportedError(
                    f"{each.text}: OpenVINO has it since {shown(each.release)}, and the target is {target}",
                    where=each.origin, code="ML326", hint=f"give --target {shown(each.release)}, or a later release",
                )
                for each in newer
            )
        for each in sorted(newer, key=lambda each: each.release, reverse=True):  # the first is the new target
            text = f"{each.text}: only OpenVINO {shown(each.release)} and later releases run the model"
            warnings.warn(ConversionWarning(text, where=each.origin, code="ML515"), stacklevel=2)
        if newer:
            graph.rt_info["converter"]["target"] = str(replace(target, oldest=max(each.release for each in newer)))

    def _check_sums(self, graph: Graph) -> None:
        """Warn of layers that some processors compute less exactly; `mo-loop check`, which collects, lists them."""
        from mo_loop.ops.linear import MatMul
        from mo_loop.ops.quantization import FakeQuantize

        if self._collect or not any(scope.has(MatMul, FakeQuantize) for scope in graph.scopes()):
            return
        from mo_loop.transforms.low_precision.weights import rounding_warning, warning_of

        for warning in filter(None, (warning_of(graph), rounding_warning(graph))):
            warnings.warn(warning, stacklevel=2)

    # -- errors

    @contextmanager
    def _collected(self) -> Iterator[None]:
        """With `collect`, add errors about the model that the block raises to `errors`."""
        try:
            yield
        except MoLoopError as error:
            if not self._collect or isinstance(error, ExtensionError | UsageError) or error.exit_code == 4:
                raise
            self.errors += error.errors if isinstance(error, ConversionErrors) else [error]

    @contextmanager
    def _named_before_renaming(self) -> Iterator[None]:
        """Errors of the block that name a tensor as --rename does also contain its name in other options."""
        try:
            yield
        except UsageError as error:
            names = (self.options.rename or {}).items()
            old = next((old for old, new in names if repr(new) in error.message), None)
            if old is None:
                raise
            hint = f"--rename comes last: the other options name tensors as the ONNX model does, {old!r}"
            raise error.at(hint=hint) from None

    def _completed(self, errors: list[MoLoopError], model: OnnxModel, cut: Cut) -> list[MoLoopError]:
        """`errors`; if one is an unsupported operator, the errors of all unsupported operators of the model as well.

        If shapes from the options do not fit, the hint gives the declared types; for strings, the cut after them.
        """
        if any(isinstance(error, UnsupportedError) for error in errors):
            places = {error.origin for error in errors}
            others = unsupported_operators(model, self._extensions.translators)
            errors = [*errors, *(error for error in others if error.origin not in places)]
        declared = cut.changed_shapes(model)
        why, hint = cut.why_changed, f"the model declares {declared}"
        return with_cut([
            error.at(why=why, hint=hint) if declared and isinstance(error, TypeError_) and not error.hint else error
            for error in errors
        ], model, cut)


@contextmanager
def phase(name: str, observers: Sequence[Observer], graph: Graph | None = None, subject: Any = None) -> Iterator[Phase]:
    """Call `observers` when a part of a conversion begins, and when the block ends without an exception."""
    event = Phase(name, graph, subject)
    for observer in observers:
        observer(event)
    start = time.perf_counter()
    yield event
    event.seconds = time.perf_counter() - start
    for observer in observers:
        observer(event)


@contextmanager
def told_of_failures(observers: Sequence[Observer]) -> Iterator[None]:
    """Call the method `failed` of those observers that have one if the block raises an exception."""
    try:
        yield
    except BaseException as error:
        for observer in observers:
            failed = getattr(observer, "failed", None)
            if failed is not None:
                failed(error)
        raise
