"""Report: the results of a verification, for people and programs.

report.passed, report.exit_code           # whether every output agrees; 0, or 1 for a difference
report.sides[0].rows                      # one for each output and set of inputs
print(report)                             # mo_loop/compare/results/report_formats.py
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from mo_loop.compare.results.array_comparison import (
    ArrayComparison,
    Named,
    by_wanted_name,
    compare_all,
    flat,
    json_ready,
    tolerance_of_ends,
)
from mo_loop.compare.verify_options import VerifyOptions
from mo_loop.graph.types import name_of
from mo_loop.printable import PLAIN, ShownResult, Style

PASSED, DIFFERS = "passed", "differs"
NOT_DECIDED = "not decided"
"""The status of a side whose outputs differ, and of which a piece cannot be compared."""

NOT_RESHAPABLE = "not reshapable"
"""The status of a side whose IR cannot be given the sizes of `--sizes`."""

AGAINST = "against "
"""The beginning of the name of a side that is another converter."""

ENDED = {"crash": "crash", "timeout": "hang", "memory": "memory"}
"""How a process ended -> the status of a side."""

SCHEMA, VERSION = "mo-loop verify", 1
"""The name of the JSON schema, and its version."""


@dataclass(frozen=True)
class InputSet:
    """A set of inputs: "generated 0", or its file; the types of its arrays by input, and whether they were drawn."""

    name: str
    types: Mapping[str, str]

    @classmethod
    def of(cls, name: str, feeds: Mapping[str, Any]) -> "InputSet":
        """A set with these arrays."""
        return cls(name, {key: type_text(value) for key, value in feeds.items()})


@dataclass(frozen=True)
class Row:
    """One output for one set: the worst of the inferences with that set. `inference` counts them from 0.

    `step` is that of a sequence, counted from 1; 0 if the IR has no states, and a set is one inference.
    """

    set: int
    inference: int
    expected: str
    found: str
    result: ArrayComparison
    step: int = 0

    @property
    def output(self) -> str:
        """The name of the output."""
        return self.result.name


def rows_of(
    number: int, inference: int, expected: Named, found: Named, settings: VerifyOptions, notes: list[str],
    *, of_scale: bool = False,
) -> Iterator[Row]:
    """A row for each expected output of the set of this number; `notes` get the remarks that do not count as
    differences. With `of_scale` the absolute tolerance is relative to the largest number of an output."""
    wanted, found = flat(expected), flat(found)
    have, by_name = by_wanted_name(wanted, found), dict(wanted)
    tolerances = settings.tolerances
    if of_scale and not settings.has_tolerance:
        tolerances = {name: tolerance_of_ends(value) for name, value in wanted if isinstance(value, np.ndarray)}
    for result in compare_all(wanted, found, rtol=settings.rtol, atol=settings.atol, tolerances=tolerances):
        left, right = by_name.get(result.name), have.get(result.name)
        if result.kind == "shape" and np.size(np.asarray(left)) == np.size(np.asarray(right)) == 0:
            # ONNX Runtime writes 0 for dimensions that it cannot infer, if there was no iteration.
            notes.append(f"{result.name} is empty on both sides, and {result.message}")
            result = ArrayComparison(result.name)
        yield Row(number, inference, type_text(left), type_text(right), result)


def type_text(value: Any) -> str:
    """Element type and shape of an array, as the report spells them."""
    if isinstance(value, list):
        return f"list of {len(value)}"
    if value is None:
        return "none"
    array = np.asarray(value)
    return f"{name_of(array.dtype)}[{','.join(map(str, array.shape))}]"


def shape_in(text: str) -> list[int]:
    """The shape in a text of `type_text`."""
    return [int(size) for size in text.partition("[")[2].rstrip("]").split(",") if size]


@dataclass(frozen=True)
class Side:
    """The result of one IR: `name` has the converter and the precision.

    `status` is "passed", "differs", "not decided", "refused" (by its converter), "not reshapable", "not compilable",
    "fails" (at an inference), "crash", "hang" or "memory"; `message` has the details.
    """

    name: str
    status: str
    message: str = ""
    rows: tuple[Row, ...] = ()
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every output of every inference agrees."""
        return self.status == PASSED

    @property
    def is_peer(self) -> bool:
        """Whether this is the IR of another converter, which does not count."""
        return self.name.startswith(AGAINST)

    @property
    def first(self) -> Row | None:
        """The first row that differs, in the order of the inferences."""
        return min((row for row in self.rows if not row.result), key=lambda row: row.inference, default=None)

    @property
    def worst(self) -> list[Row]:
        """For each output the row that differs most, in the order of the outputs."""

        def badness(row: Row) -> tuple[bool, bool, int, float]:
            return not row.result, row.result.kind != "values", row.result.count, row.result.largest_abs

        worst = {row.output: row for row in sorted(reversed(self.rows), key=badness)}  # of equal ones the first
        return [worst[output] for output in dict.fromkeys(row.output for row in self.rows)]


@dataclass(frozen=True, repr=False)
class Report(ShownResult):
    """One verification.

    `model` and `ir` are paths, `ir` empty if the model was converted for it. `oracle` is the source of the expected
    values. `sides[0]` is the IR that is verified, in f32; the others are its device's other precision, and other
    converters. `tolerance` is (relative, absolute), None for the usual one of each type. `notes` are sentences
    about limits of the comparison. `defaults` is the run with the defaults of the device, `pieces` the answer of
    the pieces, where they were compared. `layers` and `passes` are the answers of `--layers` and `--passes`,
    `cause` says in a sentence why outputs differ, `page` is the path of the page of `--dump`, `sizes` are those
    that inputs were given as text. Where the IR has states, a set is a sequence, `steps` are the numbers of steps
    of the sequences, and `order` has the sequences as they ran, each from a reset.
    """

    model: str
    ir: str
    oracle: str
    device: str
    sets: tuple[InputSet, ...]
    order: tuple[int, ...]
    sides: tuple[Side, ...]
    tolerance: tuple[float | None, float | None] = (None, None)
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    layers: Any = None
    passes: Any = None
    page: str = ""
    steps: tuple[int, ...] = ()
    cause: str = ""
    sizes: Mapping[str, str] = field(default_factory=dict)
    pieces: Any = None
    defaults: Any = None

    @property
    def verdict(self) -> str:
        """"agrees", "differs" or "not decided"; a side that does not run differs."""
        return "agrees" if self.passed else NOT_DECIDED if self.status == NOT_DECIDED else DIFFERS

    @property
    def inferences(self) -> int:
        """The number of inferences of each side."""
        return sum(self.steps[number] for number in self.order) if self.steps else len(self.order)

    @property
    def passed(self) -> bool:
        """Whether the IR agrees, in every requested precision. Another converter does not count."""
        return self.status == PASSED

    @property
    def exit_code(self) -> int:
        """0, or 1 for a difference."""
        return 0 if self.passed else 1

    @property
    def status(self) -> str:
        """The status of the first side that did not pass, else "passed"."""
        return next((side.status for side in self.sides if not side.passed and not side.is_peer), PASSED)

    def __bool__(self) -> bool:
        return self.passed

    def text(self, style: Style = PLAIN) -> str:
        """The text that `mo-loop verify` prints."""
        from mo_loop.compare.results.report_formats import as_text

        return as_text(self, style.table)

    def _brief(self) -> str:
        from mo_loop.compare.results.report_formats import title

        return f"{self.model}: {title(self)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON. Differences that are not finite are strings."""
        found = {
            "schema": SCHEMA, "version": VERSION, "passed": self.passed, "status": self.status,
            "verdict": self.verdict, "exit_code": self.exit_code, "model": self.model, "ir": self.ir,
            "oracle": self.oracle, "device": self.device,
            "tolerance": {"rtol": self.tolerance[0], "atol": self.tolerance[1]}, "notes": list(self.notes),
            "versions": dict(self.versions), "seconds": round(self.seconds, 3),
            "sets": [asdict(each) for each in self.sets], "order": list(self.order),
            "sides": [_side(each) for each in self.sides],
        }
        if self.steps:
            found |= {"steps": list(self.steps), "inferences": self.inferences}
        for name in ("layers", "passes", "pieces", "defaults"):
            if (answer := getattr(self, name)) is not None:
                found[name] = answer if isinstance(answer, str) else answer.as_json()
        given = {"cause": self.cause, "sizes": dict(self.sizes), "page": self.page}
        return found | {name: value for name, value in given.items() if value}


def _side(side: Side) -> dict[str, Any]:
    found = {
        "name": side.name, "status": side.status, "message": side.message, "seconds": round(side.seconds, 3),
        "rows": [_row(each) for each in side.rows],
    }
    row = side.first
    if row is not None and row.step:  # of an IR with states
        keys = "set", "step", "output", "inference"
        found["first_difference"] = {key: getattr(row, key) for key in keys}
    return found


def _row(row: Row) -> dict[str, Any]:
    result = row.result
    found: dict[str, Any] = json_ready({
        "output": row.output, "set": row.set, "inference": row.inference, "expected": row.expected, "found": row.found,
        "kind": result.kind, "message": result.message, "largest_abs": result.largest_abs,
        "largest_rel": result.largest_rel, "mean_abs": result.mean_abs, "cosine": result.cosine, "snr": result.snr,
        "top1": result.top1, "beyond": result.count, "size": result.size,
        "worst": result.worst, "values": result.pair,
    })
    return found | ({"step": row.step} if row.step else {})
