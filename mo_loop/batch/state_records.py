"""The records of a batch whose outputs are at a URL: what `mo_loop.storage.remote_state` keeps, made from an Entry.

The brief text of a record is what a report says about a model: `12.Loop1.If2`, layers and operations with bodies. It is
empty where hashes alone do not say that the model is up to date, or a warning has to be repeated.
"""

from __future__ import annotations

import re

from mo_loop.batch.fingerprint import Made, Stamp
from mo_loop.batch.result import Facts
from mo_loop.batch.state import Entry
from mo_loop.storage.remote_state import Record, digest, owner_of
from mo_loop.storage.stores import Info

_BRIEF = re.compile(r"\d+(\.[A-Za-z_]+\d+)*")
_LONGEST = 200


def record_of(name: str, entry: Entry, *, is_local: bool) -> Record:
    """The record of a conversion; `name` is that of the .xml below the prefix. A local model has its SHA-256 as tag."""
    made = entry.made
    tag = made.source.sha256 if is_local else made.source.tag
    is_whole = bool(tag and made.xml.tag and made.bin.tag) and not made.external and not entry.warnings
    inputs = inputs_hash(made.options, made.source.size, tag)
    outputs = outputs_hash(Info(made.xml.size, made.xml.tag), Info(made.bin.size, made.bin.tag))
    return Record(owner_of(name), inputs, outputs, _brief(entry.facts) if is_whole else "")


def inputs_hash(options: str, size: int, tag: str) -> str:
    """The hash of options and model."""
    return digest(options, size, tag)


def outputs_hash(xml: Info, data: Info) -> str:
    """The hash of a pair."""
    return digest(xml.size, xml.tag, data.size, data.tag)


def entry_from(record: Record, options: str, source: Info, xml: Info, data: Info) -> Entry | None:
    """The entry of a record with a brief text, and of what the listings say; None if it has none."""
    if not _BRIEF.fullmatch(record.brief) or len(record.brief) > _LONGEST:
        return None
    layers, *flow = record.brief.split(".")
    found = (re.fullmatch(r"(\D+)(\d+)", each) for each in flow)
    facts = Facts(int(layers), {each[1]: int(each[2]) for each in found if each is not None})
    stamps = (Stamp(each.size, "", each.tag) for each in (source, xml, data))
    made_source, made_xml, made_data = stamps
    return Entry(Made(options, made_source, {}, made_xml, made_data), facts)


def _brief(facts: Facts) -> str:
    text = ".".join([str(facts.layers), *(f"{kind}{count}" for kind, count in facts.control_flow.items())])
    return text if _BRIEF.fullmatch(text) and len(text) <= _LONGEST else ""
