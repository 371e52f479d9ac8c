"""Configurations that do not pass, each with its reason; and those whose expected values are not ONNX Runtime's.

`KNOWN` is the table of the first: entries of `mo_loop.frontend.operators`, whose texts are those of the
operator table, with the condition as a test of the facts, and the result. `DEVIATIONS` is the table of the second:
where ONNX Runtime deviates from the text of ONNX, the reference evaluator of the onnx package computes the expected
values. `AVOIDED` lists the configurations that are not drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mo_loop.compare.oracle.checked_oracle import SHAPE, row
from mo_loop.frontend.operators import LIMITS
from tests.running.samples import CRASH, FAILED, NOT_COMPILABLE, REFUSED, WRONG
from tests.texts import texts

Test = Callable[[Any], bool]


@dataclass(frozen=True)
class Known:
    """A known failure: the name of an entry of `LIMITS`, its condition as a test of the facts, and the result."""

    name: str
    holds: Test
    results: tuple[str, ...]
    always: bool = False
    """Whether it fails for all values."""

    @property
    def operators(self) -> str:
        return LIMITS[self.name].operators

    @property
    def condition(self) -> str:
        return LIMITS[self.name].condition

    @property
    def reason(self) -> str:
        return LIMITS[self.name].reason

    def explains(self, facts: Any, result: str) -> bool:
        """Whether it explains the result of a configuration."""
        return result in self.results and self.applies(facts)

    def applies(self, facts: Any) -> bool:
        return (self.operators == "*" or facts.op in self.operators.split()) and self.holds(facts)


@dataclass(frozen=True)
class Deviation:
    """A deviation of ONNX Runtime from ONNX."""

    operators: str
    condition: str
    holds: Test
    reason: str
    shapes: bool = False
    """Whether ONNX Runtime is right unless the shapes differ."""

    @classmethod
    def of(cls, id: str, condition: str, holds: Test) -> Deviation:
        """A row of `ORACLE_ERRORS`."""
        error = row(id)
        return cls(" ".join(error.operators), condition, holds, error.sentence, shapes=error.shows == SHAPE)


def _at_run_time(facts: Any, *ports: int) -> bool:
    """Whether one of the inputs is not a constant."""
    return any(facts.given[port] not in ("constant", "node", "absent") for port in ports if port < len(facts.given))


def _filters(facts: Any) -> tuple[int, ...]:
    ports = {"QLinearConv": (3, 5), "ConvInteger": (1, 3)}.get(facts.op.rpartition("::")[2], (1,))
    return tuple(port for port in ports if port < len(facts.dims))


def _infinite_doubles(facts: Any) -> bool:
    of_nothing = ("ReduceMax", "ReduceMin", "ReduceLogSum", "ReduceLogSumExp")
    found = "infinite" in facts.notes or (facts.op in of_nothing and "empty" in facts.notes)
    return found and ("float64" in facts.types or facts.attributes.get("to") == 11)


def _to_small_floats(facts: Any) -> bool:
    target = facts.types[-1] if facts.op != "Cast" else ""
    return "float8" in target or facts.attributes.get("to") in (17, 19)


def _to_four_bits(facts: Any) -> bool:
    return facts.attributes.get("to") in (21, 22) or (facts.op == "CastLike" and facts.types[1] in ("int4", "uint4"))


def _has_one_query(facts: Any) -> bool:
    return any(given != "absent" for given in facts.given[3:5]) and any(sizes[0][-2] == 1 for sizes in facts.shapes)


def _empty_batch(facts: Any) -> bool:
    return any(shapes[0][0] == 0 for shapes in facts.shapes)


KNOWN: tuple[Known, ...] = (
    Known("strings", lambda f: "string" in f.types, (REFUSED,)),
    Known("infinite doubles", _infinite_doubles, (WRONG,)),
    Known("wide integers", lambda f: "large" in f.notes and not {"int64", "uint64", "uint32"}.isdisjoint(f.types),
          (WRONG,)),
    Known("small floats", _to_small_floats, (WRONG,)),
    Known("integer division", lambda f: "large" in f.notes and "int32" in f.types, (WRONG,)),
    Known(
        "reducing no integers", lambda f: "empty" in f.notes and f.types[0] in ("int64", "uint64", "uint32"), (WRONG,)
    ),
    Known("empty products",
          lambda f: any(shapes[0][0 if f.attributes.get("transA") else 1] == 0 for shapes in f.shapes),
          (WRONG, NOT_COMPILABLE)),
    Known("transposed products of nothing", lambda f: "empty" in f.notes, (WRONG, NOT_COMPILABLE)),
    Known("no regions", lambda f: any(shapes[1][0] == 0 for shapes in f.shapes), (WRONG,)),
    Known("unknown lengths", lambda f: "unknown length" in f.notes, (REFUSED,)),
    Known("unknown depth", lambda f: f.dims[1][-1] is None, (REFUSED,), always=True),
    Known("squeezing unknown sizes", lambda f: len(f.types) == 1 and "axes" not in f.attributes and None in f.dims[0],
          (REFUSED, WRONG)),
    Known("samples by region", lambda f: f.attributes.get("mode") == "max" and not f.attributes.get("sampling_ratio"),
          (REFUSED,), always=True),
    Known("NaN beside bounds", lambda f: "nan" in f.notes, (WRONG,)),
    Known("absent bounds",
          lambda f: "infinite" in f.notes and (f.since < 11 or len(f.given) < 3 or "absent" in f.given), (WRONG,)),
    Known("unknown filters", lambda f: any(None in f.dims[port] for port in _filters(f)), (REFUSED,)),
    Known("far slices", lambda f: "large" in f.notes and _at_run_time(f, 1, 2), (WRONG,)),
    Known("empty batches", _empty_batch, (WRONG, NOT_COMPILABLE, FAILED)),
    Known("no steps", lambda f: any(shapes[0][0] == 0 for shapes in f.shapes), (WRONG, CRASH, NOT_COMPILABLE)),
    Known("no channels", lambda f: any(shapes[1] == (0,) for shapes in f.shapes), (NOT_COMPILABLE, CRASH)),
    Known("places without padding",
          lambda f: len(f.outputs) > 1 and str(f.attributes.get("auto_pad")).startswith("SAME") and None in f.dims[0],
          (REFUSED,)),
    Known("one hidden unit", lambda f: f.attributes.get("hidden_size") == 1, (NOT_COMPILABLE,)),
    Known("mean of nothing", lambda f: "empty" in f.notes, (WRONG,)),
    Known("training on nothing", lambda f: "empty" in f.notes and f.attributes.get("training_mode") == 1, (WRONG,)),
)

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation.of("causal-attention-of-one-query", "is_causal with one query, and a mask or a past, until opset 24",
                 lambda f: f.since < 25 and f.attributes.get("is_causal") == 1 and _has_one_query(f)),
    Deviation("Attention", "qk_matmul_output_mode 2, until opset 24",
              lambda f: f.since < 25 and f.attributes.get("qk_matmul_output_mode") == 2,
              "hidden scores have the lowest finite number added instead of -inf"),
    Deviation.of("saturating-products", "8-bit integers", lambda f: True),
    Deviation.of("grid-of-one-pixel", "align_corners", lambda f: f.attributes.get("align_corners") == 1),
    Deviation("Col2Im", "other tensors than images", lambda f: f.shapes[0][1] != (2,), "elements land in other places"),
    Deviation.of("reduction-of-nothing", "no elements", lambda f: "empty" in f.notes),
    Deviation("Cast CastLike", "from a float to 4 bits", lambda f: "float" in f.types[0] and _to_four_bits(f),
              "ONNX cuts the fraction off, ONNX Runtime rounds"),
    Deviation("Dropout", "the mask until opset 11", lambda f: f.since < 12 and len(f.outputs) > 1,
              "nothing is dropped, so all is true; ONNX Runtime says false"),
    Deviation.of("product-over-nothing", "sums over nothing", lambda f: "empty" in f.notes),
    Deviation("Sign", "NaN", lambda f: "nan" in f.notes, "NaN has no sign; ONNX Runtime says 0"),
)

AVOIDED = [line.split(" | ") for line in texts(__file__)["avoided"].splitlines()]
"""Configurations that are not drawn: the operators, the condition, the reason."""


def deviation(facts: Any) -> Deviation | None:
    """The entry for which the reference evaluator computes the expected values."""
    return next((each for each in DEVIATIONS if facts.op in each.operators.split() and each.holds(facts)), None)


def known(facts: Any, result: str) -> Known | None:
    """The entry that explains the result of a configuration."""
    return next((each for each in KNOWN if each.explains(facts, result)), None)
