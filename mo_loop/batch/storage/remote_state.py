"""RemoteState: from what the outputs below a prefix were made; one small object for each model.

    state = RemoteState(Location("s3://ir"))
    state.load()                                             # one listing, no object is read
    found = state.find("vision/model.xml", inputs, outputs)  # a Record if the model is up to date, else None
    record = Record(owner_of("vision/model.xml"), inputs, outputs, brief)
    save(prefix, record, content, replaced=state.records("vision/model.xml"))

The name of an object answers whether a model is up to date:

    <prefix>/.mo-loop/<model>-<inputs>-<outputs>-<brief>.json

`model`, `inputs` and `outputs` are hashes: of the model's name; of the options, size and tag of the .onnx; of sizes and
tags of the .xml and .bin. `brief` is a few letters that a report needs, or empty: then the content has to be read and
the files of the model looked at, because there is external data, or a store without tags.

No object is ever changed, and no object belongs to two models, so that processes do not disturb each other: a name that
does not fit the outputs is of no use to anybody.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mo_loop.batch.storage.locations import Location
from mo_loop.batch.storage.stores import delete, listed, put, read_whole
from mo_loop.errors import StorageError
from mo_loop.support.disk_table import DiskTable

FOLDER = ".mo-loop"
FORMAT = 1

_NAME = re.compile(r"([0-9a-f]{32})-([0-9a-f]{24})-([0-9a-f]{24})-([A-Za-z0-9_.]*)\.json")


def digest(*facts: object, letters: int = 24) -> str:
    """A short hash of facts."""
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:letters]


def owner_of(name: str) -> str:
    """The hash of the name of a model."""
    return digest(name, letters=32)


@dataclass(frozen=True, slots=True)
class Record:
    """The name of one object: hashes of a model's name, its inputs and outputs, and a brief text (`[A-Za-z0-9_.]*`)."""

    owner: str
    inputs: str
    outputs: str
    brief: str = ""

    @classmethod
    def parse(cls, name: str) -> Record | None:
        """The record of an object's name; None if it is another object."""
        found = _NAME.fullmatch(name)
        return None if found is None else cls(*found.groups())

    def at(self, prefix: Location) -> Location:
        """The object below the prefix of the outputs."""
        return prefix / f"{FOLDER}/{self.owner}-{self.inputs}-{self.outputs}-{self.brief}.json"


class RemoteState:
    """The records below a prefix, as a listing finds them, on the local disk."""

    def __init__(self, prefix: Location) -> None:
        self.prefix = prefix
        self._table = DiskTable(
            "CREATE TABLE records (owner BLOB, inputs TEXT, outputs TEXT, brief TEXT); "
            "CREATE INDEX owners ON records (owner)"
        )

    def load(self) -> None:
        """Read the names of all records. StorageError if the store fails; a prefix that does not exist has none."""
        names = (Record.parse(where.name) for where, _ in listed(self.prefix / FOLDER, ".json", is_literal=True))
        self._table.run("DELETE FROM records")
        self._table.run_all(
            "INSERT INTO records VALUES (?, ?, ?, ?)",
            ((bytes.fromhex(each.owner), each.inputs, each.outputs, each.brief) for each in names if each is not None),
        )

    def records(self, name: str) -> list[Record]:
        """All records of a model."""
        owner = owner_of(name)
        rows = self._table.rows("SELECT inputs, outputs, brief FROM records WHERE owner = ?", bytes.fromhex(owner))
        return [Record(owner, *row) for row in rows]

    def find(self, name: str, inputs: str, outputs: str) -> Record | None:
        """The record of these inputs and outputs."""
        fitting = (each for each in self.records(name) if (each.inputs, each.outputs) == (inputs, outputs))
        return next(fitting, None)


def load_content(prefix: Location, record: Record) -> dict[str, Any] | None:
    """The content of a record; None if it is gone, damaged or of another format."""
    try:
        found = json.loads(read_whole(record.at(prefix)))
    except StorageError as error:
        if error.code != "ML282":
            raise
        return None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None


def save(prefix: Location, record: Record, content: dict[str, Any], replaced: Iterable[Record] = ()) -> None:
    """Write a record with its content (JSON), then remove those of the same model that it replaces."""
    put(record.at(prefix), (json.dumps({"format": FORMAT, **content}) + "\n").encode())
    for each in replaced:
        if each != record:
            delete(each.at(prefix))
