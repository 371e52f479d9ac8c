"""Entry: the .xml and .bin of a model, and from what they were made; as JSON, in a folder and at a URL.

    entry_of(plain(entry)) == entry
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mo_loop.batch.fingerprint import Made
from mo_loop.batch.result import Cost, Facts
from mo_loop.batch.storage.stamps import Stamp


@dataclass(frozen=True, slots=True)
class Entry:
    """The .xml and .bin files of a model, and the facts and warnings of its conversion."""

    made: Made
    facts: Facts
    warnings: tuple[str, ...] = ()


def entry_of(found: Any) -> Entry | None:
    """The entry that `plain` made; None if it is not valid."""
    try:
        made, facts = found["made"], found["facts"]
        external = {str(name): _stamp(each) for name, each in made["external"].items()}
        source, xml, data = (_stamp(made[key]) for key in ("source", "xml", "bin"))
        flow = {str(kind): _whole(count) for kind, count in facts["control_flow"].items()}
        notes = tuple(map(str, found["warnings"]))
        return Entry(Made(str(made["options"]), source, external, xml, data), _facts(facts, flow), notes)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _facts(found: Mapping[str, Any], flow: Mapping[str, int]) -> Facts:
    cost = found.get("cost")
    return Facts(
        _whole(found["layers"]), flow,
        None if cost is None else Cost(float(cost["seconds"]), _whole(cost["memory"]), _whole(cost["peak"])),
    )  # fmt: skip


def _stamp(found: Mapping[str, Any]) -> Stamp:
    ranges = found.get("ranges")
    return Stamp(
        _whole(found["size"]), str(found["sha256"]), str(found.get("tag", "")),
        None if ranges is None else tuple((_whole(start), _whole(end)) for start, end in ranges),
    )  # fmt: skip


def _whole(found: Any) -> int:
    """A count or a size. ValueError for anything else: JSON also has 1e999, true and "3"."""
    if type(found) is not int or found < 0:
        raise ValueError(f"{found!r} is no count")
    return found


def _plain_stamp(each: Stamp) -> dict[str, Any]:
    found: dict[str, Any] = {"size": each.size, "sha256": each.sha256}
    if each.tag:
        found["tag"] = each.tag
    if each.ranges is not None:
        found["ranges"] = each.ranges
    return found


def _plain_facts(facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = {"layers": facts.layers, "control_flow": dict(facts.control_flow)}
    if facts.cost is not None:
        cost = facts.cost
        found["cost"] = {"seconds": round(cost.seconds, 3), "memory": cost.memory, "peak": cost.peak}
    return found


def plain(entry: Entry) -> dict[str, Any]:
    """The JSON that `entry_of` reads. dataclasses.asdict copies everything, which takes longer than the writing."""
    made = entry.made
    stamps = {"source": made.source, "xml": made.xml, "bin": made.bin}
    return {
        "made": {
            "options": made.options,
            **{key: _plain_stamp(each) for key, each in stamps.items()},
            "external": {name: _plain_stamp(each) for name, each in made.external.items()},
        },
        "facts": _plain_facts(entry.facts),
        "warnings": list(entry.warnings),
    }
