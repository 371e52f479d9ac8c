"""StateEntry: an .xml and .bin and the sources of both; as JSON, in a folder and at a URL.

    entry_of(plain(entry)) == entry
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mo_loop.batching.result import Cost, Facts
from mo_loop.batching.storage.stamps import Stamp


@dataclass(frozen=True, slots=True)
class StateEntry:
    """The hash of the options, the stamps of the inputs and outputs of a conversion, its facts and warnings. Names of
    external files are relative to the model."""

    options: str
    source: Stamp
    external: Mapping[str, Stamp]
    xml: Stamp
    bin: Stamp
    facts: Facts
    warnings: tuple[str, ...] = ()


def entry_of(content: Any) -> StateEntry | None:
    """The entry that `plain` made; None if it is not valid."""
    try:
        made, facts = content["made"], content["facts"]
        external = {str(name): _stamp(stamp) for name, stamp in made["external"].items()}
        source, xml, data = (_stamp(made[key]) for key in ("source", "xml", "bin"))
        flow = {str(kind): _whole(count) for kind, count in facts["control_flow"].items()}
        warnings = tuple(map(str, content["warnings"]))
        return StateEntry(str(made["options"]), source, external, xml, data, _facts(facts, flow), warnings)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _facts(content: Mapping[str, Any], flow: Mapping[str, int]) -> Facts:
    cost = content.get("cost")
    return Facts(
        _whole(content["layers"]), flow,
        None if cost is None else Cost(float(cost["seconds"]), _whole(cost["memory"]), _whole(cost["peak"])),
    )  # fmt: skip


def _stamp(content: Mapping[str, Any]) -> Stamp:
    ranges = content.get("ranges")
    return Stamp(
        _whole(content["size"]), str(content["sha256"]), str(content.get("tag", "")),
        None if ranges is None else tuple((_whole(start), _whole(end)) for start, end in ranges),
    )  # fmt: skip


def _whole(number: Any) -> int:
    """A count or a size. ValueError for anything else: JSON also has 1e999, true and "3"."""
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} is no count")
    return number


def _plain_stamp(stamp: Stamp) -> dict[str, Any]:
    optional = {"tag": stamp.tag or None, "ranges": stamp.ranges}
    present = {key: value for key, value in optional.items() if value is not None}
    return {"size": stamp.size, "sha256": stamp.sha256, **present}


def _plain_facts(facts: Facts) -> dict[str, Any]:
    content: dict[str, Any] = {"layers": facts.layers, "control_flow": dict(facts.control_flow)}
    if facts.cost is not None:
        content["cost"] = facts.cost.as_json()
    return content


def plain(entry: StateEntry) -> dict[str, Any]:
    """The JSON that `entry_of` reads. dataclasses.asdict copies everything, which takes longer than the writing."""
    stamps = {"source": entry.source, "xml": entry.xml, "bin": entry.bin}
    return {
        "made": {
            "options": entry.options,
            **{key: _plain_stamp(stamp) for key, stamp in stamps.items()},
            "external": {name: _plain_stamp(stamp) for name, stamp in entry.external.items()},
        },
        "facts": _plain_facts(entry.facts),
        "warnings": list(entry.warnings),
    }
