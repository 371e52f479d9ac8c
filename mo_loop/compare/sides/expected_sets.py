"""The sets of inputs of a verification, and the expected outputs for each: from files, or from ONNX Runtime.

    found = ExpectedSets(Path("model.onnx"), model, settings, notes, shapes_of(converted))
    found.sets, found.expected, found.oracle
    found.enlarge({0, 2}, Path("model.xml"))       # larger sizes in the place of two sets that OpenVINO refuses

Without given inputs, sets are generated that ONNX Runtime accepts, and whose values are the same in two runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mo_loop.compare.execution.isolated import Hosted, IsolatedError, brief, isolated
from mo_loop.compare.input_sets.accepted_sets import SetSearch, sizes_in
from mo_loop.compare.input_sets.generated import Generator, Known, sizes_text
from mo_loop.compare.input_sets.given import read_outputs, read_sets, take_outputs
from mo_loop.compare.oracle.checked_oracle import Oracle, UnstableError, misshapen_by
from mo_loop.compare.oracle.oracle import ONNX_RUNTIME
from mo_loop.compare.results.array_comparison import Named, compare_all, packed
from mo_loop.compare.results.report import Row, shape_in
from mo_loop.compare.results.verify_settings import F32, Feeds, VerifyOptions
from mo_loop.compare.sides.side_run import compiled, is_empty
from mo_loop.errors import InputError, NotComparableError
from mo_loop.frontend.model import OnnxModel

GIVEN = "the given outputs"
"""The source of expected values that come from files."""


class ExpectedSets:
    """`sets` are (name, arrays), `expected` their outputs, `oracle` is the source of them."""

    def __init__(
        self, source: Path, model: OnnxModel, settings: VerifyOptions, notes: list[str],
        shapes: Mapping[str, Sequence[Known] | None],
    ) -> None:  # fmt: skip
        """`source` is the file of `model`; `shapes` are those of the inputs of the IR.

        Raises:
            NotComparableError: ONNX Runtime does not run the model, and no outputs are given; or it accepts none
                of the generated sets, or never gives values twice.
            InputError: it does not accept the given sets.
        """
        self._source, self._model, self._settings, self._notes = source, model, settings, notes
        self.sets: list[tuple[str, Feeds]] = []
        self.expected: list[Named] = []
        self.oracle = GIVEN
        given = self._given_outputs() if settings.inputs else []
        oracle = self._hosted(is_needed=not given or not all(given))
        try:
            if settings.inputs:
                self._compute(oracle, given)
            elif oracle is not None:
                self._search = SetSearch(Generator(model, shapes, settings.seed), sizes_in(model))
                self._generate(oracle)
        finally:
            if oracle is not None:
                oracle.close()

    def _hosted(self, is_needed: bool = True) -> Hosted | None:
        """ONNX Runtime in a process; None if it does not run the model, and is not needed."""
        settings = self._settings
        try:
            libraries = [os.fspath(each) for each in settings.custom_ops]
            oracle = Hosted(Oracle, str(self._source), libraries, limit=settings.limit)
        except IsolatedError as error:
            if not is_needed:
                self._notes.append(f"ONNX Runtime does not run the model: {brief(error)}")
                return None
            raise NotComparableError(
                f"ONNX Runtime does not run {self._source}", why=brief(error), 
                hint="give the expected outputs (--expected FILE), or the library of its operators (--custom-ops LIB)",
            ) from None  # fmt: skip
        name, reason = oracle.facts
        if is_needed:
            self.oracle = name
        if reason:
            self._notes.append(f"the expected values are those of {name}: {reason}")
        return oracle

    # -- given sets

    def _given_outputs(self) -> list[dict[str, Any]]:
        """The outputs that files have for each set; empty if none of them has any."""
        self.sets = read_sets(self._settings.inputs, self._model)
        found = [take_outputs(name, feeds, self._model) for name, feeds in self.sets]
        if self._settings.expected:
            found = read_outputs(self._settings.expected, self._model, len(self.sets))
        return found if any(found) else []

    def _compute(self, oracle: Hosted | None, given: Sequence[Mapping[str, Any]]) -> None:
        """The expected outputs of the given sets: those of files, else those of ONNX Runtime."""
        sets, self.sets = self.sets, []
        for number, (name, feeds) in enumerate(sets):
            outputs = dict(given[number]) if given else {}
            computed: Named = []
            try:
                computed = oracle.run(feeds) if oracle is not None else []
            except IsolatedError as error:
                if unstable_text(error):
                    self._notes.append(f"{name} is left out: {unstable_text(error)}")
                    continue
                if not outputs:
                    raise self._of_sizes(InputError(
                        f"ONNX Runtime does not accept the inputs {name}", why=brief(error),
                        hint="check their shapes and types",
                    )) from None  # fmt: skip
                self._notes.append(f"ONNX Runtime does not run {name}: {brief(error)}")
            self._compare_oracle(name, outputs, computed)
            self.sets.append((name, feeds))
            rest = [(output, value) for output, value in computed if output not in outputs]
            self.expected.append([*outputs.items(), *rest])
        if not self.sets:
            raise NotComparableError(
                "no set of inputs can be compared", why=self._notes[-1],  hint="give other inputs"
            )

    def _of_sizes(self, error: InputError) -> InputError:
        """The error for inputs that ONNX Runtime refuses: with --sizes, their sizes are the first thing to question."""
        sizes = self._settings.sizes
        if not sizes:
            return error
        text = ",".join(f"{name}{sizes_text(each)}" for name, each in sizes.items())
        return error.at(
            message=f"ONNX Runtime does not run the model with the sizes {text}: the model itself cannot have them",
            hint="give sizes that fit the weights and constants of the model, or inputs: --input-data FILE.npz",
        )  # fmt: skip

    def _compare_oracle(self, name: str, outputs: Mapping[str, Any], computed: Named) -> None:
        """A note where ONNX Runtime itself gives other values than the files."""
        both = [(output, value) for output, value in computed if output in outputs]
        for result in compare_all([(each, outputs[each]) for each, _ in both], both) if both else ():
            if not result:
                self._notes.append(f"ONNX Runtime differs from the given outputs of {name}: {result}")

    # -- generated sets

    def _generate(self, oracle: Hosted) -> None:
        try:
            found = self._search.accepted(self._settings.sets, oracle.run)
        except NotComparableError as error:
            raise self._of_sizes(error) from None
        self.sets, self.expected, self._sizes = found.sets, found.expected, found.sizes
        self._note_missing(found.missing)

    def _note_missing(self, missing: Mapping[str, IsolatedError]) -> None:
        refused = []
        for name, error in missing.items():
            if unstable_text(error):
                self._notes.append(f"{name} is left out: {unstable_text(error)}")
            else:
                refused.append(name)
        if refused:
            text = ", ".join(refused)
            self._notes.append(f"ONNX Runtime does not accept these inputs, which were left out: {text}")

    def enlarge(self, refused: Iterable[int], target: Path) -> bool:
        """Replace generated sets that OpenVINO refuses by larger ones; returns whether any could be found.

        The sets that stay refused are as they were. Both runtimes run at once meanwhile.
        """
        numbers = [number for number in sorted(refused) if not is_empty(self.sets[number][1])]
        if self._settings.inputs or not numbers:
            return False
        oracle = self._hosted()
        assert oracle is not None
        changed = False
        try:
            ir = compiled(self._settings, target, F32)
            try:
                for number in numbers:
                    changed = self._enlarge(number, oracle, ir) or changed
            finally:
                ir.close()
        finally:
            oracle.close()
        return changed

    def _enlarge(self, number: int, oracle: Hosted, ir: Hosted) -> bool:
        known = {name for names in ir.facts[0] for name in names}
        for sizes, feeds in self._search.candidates(number, above=self._sizes[number]):
            try:
                expected = oracle.run(feeds)
                ir.run(packed(feeds, known))
            except IsolatedError as error:
                if error.status != "error":
                    return False
                continue
            self.sets[number] = (self.sets[number][0], feeds)
            self.expected[number], self._sizes[number] = expected, sizes
            self._search.fits(sizes)
            return True
        return False


    # -- values that are not ONNX's

    def leave_out_misshapen(self, differing: Iterable[Row]) -> bool:
        """Leave out the sets of these rows for which ONNX infers the shape that OpenVINO gives, and not that of ONNX
        Runtime; whether there are any."""
        shapes: dict[int, dict[str, list[int]]] = {}
        for row in differing if self.oracle == ONNX_RUNTIME else ():
            shapes.setdefault(row.set, {})[row.output] = shape_in(row.found)
        wrong: dict[int, str] = {}
        for number, other in shapes.items():
            feeds, expected = self.sets[number][1], self.expected[number]
            try:
                wrong[number] = isolated(misshapen_by, str(self._source), feeds, expected, other)
            except IsolatedError:  # the inference of onnx fails: the shapes may still be right
                continue
        kept = [number for number in range(len(self.sets)) if not wrong.get(number)]
        self._notes += [f"{self.sets[number][0]} is left out: {text}" for number, text in wrong.items() if text]
        changed = len(kept) < len(self.sets)
        self.sets = [self.sets[number] for number in kept]
        self.expected = [self.expected[number] for number in kept]
        return changed


def unstable_text(error: IsolatedError) -> str:
    """The sentence of an UnstableError; empty for another error."""
    return str(error).partition(": ")[2].partition("\n")[0] if error.error == UnstableError.__name__ else ""
