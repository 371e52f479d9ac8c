"""Sequences on both sides of a comparison: lists in ONNX, pairs of tensors in the IR (`sequence_io="packed"`)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

import numpy as np

from mo_loop.compare.results.array_comparison import Named, NamedArray
from mo_loop.support.packed_sequences import pack_sequence, unpack_sequence


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
