"""The records of a batch whose outputs are at a URL: what `batch.storage.remote_state` keeps, made from an Entry.

The brief text of a record is what a report says about a model: `12.Loop1.If2._ms340._need92._peak125`: layers,
operations with bodies, and what the conversion took, in milliseconds and MiB. It begins with `_` where hashes alone do
not say that the model is up to date, or a warning has to be repeated.
"""

from __future__ import annotations

import re

from mo_loop.batch.fingerprint import Made, Stamp
from mo_loop.batch.result import Cost, Facts
from mo_loop.batch.state import Entry
from mo_loop.batch.storage.remote_state import Record, digest, owner_of
from mo_loop.batch.storage.stores import Info

_BRIEF = re.compile(r"\d+(\.[A-Za-z_]+\d+)*")
_LONGEST = 200
_PARTIAL = "_"
_COST = ("_ms", "_need", "_peak")


def record_of(name: str, entry: Entry, *, is_local: bool) -> Record:
    """The record of a conversion; `name` is that of the .xml below the prefix. A local model has its SHA-256 as tag."""
    made = entry.made
    tag = made.source.sha256 if is_local else made.source.tag
    is_whole = bool(tag and made.xml.tag and made.bin.tag) and not made.external and not entry.warnings
    inputs = inputs_hash(made.options, made.source.size, tag)
    outputs = outputs_hash(Info(made.xml.size, made.xml.tag), Info(made.bin.size, made.bin.tag))
    brief = _brief(entry.facts)
    return Record(owner_of(name), inputs, outputs, brief if is_whole or not brief else f"{_PARTIAL}{brief}")


def inputs_hash(options: str, size: int, tag: str) -> str:
    """The hash of options and model."""
    return digest(options, size, tag)


def outputs_hash(xml: Info, data: Info) -> str:
    """The hash of a pair."""
    return digest(xml.size, xml.tag, data.size, data.tag)


def entry_from(record: Record, options: str, source: Info, xml: Info, data: Info) -> Entry | None:
    """The entry of a record with a brief text, and of what the listings say; None if it has none."""
    facts = None if record.brief.startswith(_PARTIAL) else facts_from(record)
    if facts is None:
        return None
    stamps = (Stamp(each.size, "", each.tag) for each in (source, xml, data))
    made_source, made_xml, made_data = stamps
    return Entry(Made(options, made_source, {}, made_xml, made_data), facts)


def facts_from(record: Record) -> Facts | None:
    """What the brief text of a record says about its conversion; None if it says nothing."""
    brief = record.brief.removeprefix(_PARTIAL)
    if not _BRIEF.fullmatch(brief) or len(brief) > _LONGEST:
        return None
    layers, *more = brief.split(".")
    found = {each[1]: int(each[2]) for each in (re.fullmatch(r"(\D+)(\d+)", text) for text in more) if each is not None}
    took = [found.pop(name, None) for name in _COST]
    milliseconds, memory, peak = took
    if milliseconds is None or memory is None or peak is None:
        return Facts(int(layers), found)
    return Facts(int(layers), found, Cost(milliseconds / 1000, memory << 20, peak << 20))


def _brief(facts: Facts) -> str:
    parts = [str(facts.layers), *(f"{kind}{count}" for kind, count in facts.control_flow.items())]
    if facts.cost is not None:
        cost = facts.cost
        took = (round(cost.seconds * 1000), -(-cost.memory >> 20), -(-cost.peak >> 20))
        parts += [f"{name}{count}" for name, count in zip(_COST, took, strict=True)]
    text = ".".join(parts)
    return text if _BRIEF.fullmatch(text) and len(text) <= _LONGEST else ""
