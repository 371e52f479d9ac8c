"""The outputs of one inference and the expected ones: a row for each. A sequence is a list in ONNX, and a pair of
tensors in the IR (`sequence_io="packed"`)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from mo_loop.compare.results.array_comparison import (
    ArrayComparison,
    Named,
    NamedArray,
    by_wanted_name,
    compare_all,
    tolerance_of_ends,
)
from mo_loop.compare.results.report import Row
from mo_loop.compare.results.verify_settings import VerifyOptions
from mo_loop.graph.types import name_of
from mo_loop.support.packed_sequences import pack_sequence, unpack_sequence


def rows_of(
    number: int, inference: int, expected: Named, found: Named, settings: VerifyOptions, notes: list[str],
    *, of_scale: bool = False,
) -> Iterator[Row]:  # fmt: skip
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


def packed(feeds: Mapping[str, Any], known: Container[str]) -> dict[str, Any]:
    """The arrays for an IR with inputs of these names: a sequence `s` becomes `s.data` and `s.shapes`."""
    found: dict[str, Any] = {}
    for name, value in feeds.items():
        if isinstance(value, list) and f"{name}.data" in known:
            found[f"{name}.data"], found[f"{name}.shapes"] = pack_sequence(value)
        else:
            found[name] = value
    return found


def unpacked(found: Named, expected: Named) -> Named:
    """The outputs of an IR, with the lists of packed sequences."""
    have = dict(found)
    names = [name for name, value in expected if isinstance(value, list) and f"{name}.data" in have]
    if not names:
        return found
    lists = {}
    for name, value in expected:
        if name in names:
            scalars = bool(value) and np.ndim(value[0]) == 0
            lists[name] = unpack_sequence(have[f"{name}.data"], have[f"{name}.shapes"], scalars=scalars)
    rest = [(name, value) for name, value in found if name.rpartition(".")[0] not in names]
    return [*lists.items(), *rest]


def flat(named: Iterable[NamedArray]) -> Named:
    """The arrays; of a list its elements and its length, of an absent optional nothing."""
    found: Named = []
    for name, value in named:
        if value is None:
            continue
        if not isinstance(value, list):
            found.append((name, value))
            continue
        found.append((f"length of {name}", np.asarray(len(value))))
        found += [(f"{name}[{place}]", each) for place, each in enumerate(value)]
    return found
