"""Records of a batch whose outputs are at a URL, and the plan of one. No store is needed: listings are simulated."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from mo_loop.batching.engine import Work
from mo_loop.batching.estimates import Earlier
from mo_loop.batching.outputs import Outputs
from mo_loop.batching.plan import Planned, planned
from mo_loop.batching.result import Cost, Facts, StateEntry, StateRecord, entry_of, plain
from mo_loop.batching.storage import stores
from mo_loop.batching.storage.locations import Info, Location, Stamp
from mo_loop.batching.storage.scratch import Scratch
from mo_loop.batching.storage.stores import is_glob
from mo_loop.batching.url_state import (
    entry_from,
    facts_from,
    inputs_hash,
    outputs_hash,
    owner_of,
    record_of,
)
from mo_loop.errors import StorageError, UsageError
from mo_loop.options import ConvertOptions
from tests.costs import least_peak

FACTS = Facts(12, {"If": 2, "Loop": 1})
ENTRY = StateEntry("options", Stamp(9, "aa", "s"), {}, Stamp(3, "bb", "x"), Stamp(4, "cc", "b"), FACTS)


def test_a_record_says_what_a_report_needs() -> None:
    record = record_of("a/m.xml", ENTRY, is_local=False)
    assert record.brief == "12.If2.Loop1" and StateRecord.parse(record.at(Location("s3://ir")).name) == record
    found = entry_from(record, "options", Info(9, "s"), Info(3, "x"), Info(4, "b"))
    assert found is not None and found.facts == ENTRY.facts and found.bin.size == 4


def test_a_record_says_what_the_conversion_took() -> None:
    """Seconds in milliseconds, memory in MiB: for the plan and the memory of the next conversion."""
    cost = Cost(0.3404, (90 << 20) + 1, 125 << 20)
    record = record_of("a/m.xml", replace(ENTRY, facts=replace(ENTRY.facts, cost=cost)), is_local=False)
    assert record.brief == "12.If2.Loop1._ms340._need91._peak125"
    assert StateRecord.parse(record.at(Location("s3://ir")).name) == record
    assert facts_from(record) == Facts(12, {"If": 2, "Loop": 1}, Cost(0.34, 91 << 20, 125 << 20))


@pytest.mark.parametrize("brief", ["", "x", "1..2", "Loop1", "1.Loop", "9" * 300])
def test_a_brief_text_of_somebody_else_is_not_used(brief: str) -> None:
    assert entry_from(StateRecord("a", "b", "c", brief), "options", Info(9), Info(3), Info(4)) is None


@pytest.mark.parametrize("entry", [
    replace(ENTRY, warnings=("w",)), replace(ENTRY, external={"d": Stamp(1, "d", "t")}),
    replace(ENTRY, source=Stamp(9, "aa")), replace(ENTRY, bin=Stamp(4, "cc")),
], ids=["warning", "external", "source without a tag", "output without a tag"])
def test_where_hashes_are_not_enough_the_content_is_read(entry: StateEntry) -> None:
    record = record_of("a/m.xml", entry, is_local=False)
    assert entry_from(record, "options", Info(9, "s"), Info(3, "x"), Info(4, "b")) is None
    assert facts_from(record) == entry.facts


def test_every_fact_changes_the_record() -> None:
    others = [
        replace(ENTRY, options="others"), replace(ENTRY, source=Stamp(9, "aa", "t")),
        replace(ENTRY, xml=Stamp(3, "", "y")), replace(ENTRY, bin=Stamp(5, "cc", "b")),
    ]
    records = {record_of("m.xml", entry, is_local=False) for entry in [ENTRY, *others]}
    assert len({(each.inputs, each.outputs) for each in records}) == 5


@pytest.mark.parametrize("name", ["", "x.json", "a-b-c-d.json", f"{'0' * 32}-{'1' * 24}-{'2' * 24}-a/b.json"])
def test_other_objects_are_no_records(name: str) -> None:
    assert StateRecord.parse(name) is None


def test_the_content_of_a_record() -> None:
    ranged = replace(ENTRY, external={"w/d.bin": Stamp(100, "d", "t", ((0, 5), (9, 12)))})
    assert entry_of(plain(ranged)) == ranged


@pytest.mark.parametrize("size", ["1e999", "true", '"3"', "-1", "1.0"])
def test_a_number_that_is_no_count_is_not_used(size: str) -> None:
    text = json.dumps(plain(ENTRY))
    assert entry_of(json.loads(text)) == ENTRY
    for changed in (text.replace('"size": 9', f'"size": {size}'), text.replace('"layers": 12', f'"layers": {size}')):
        assert changed != text and entry_of(json.loads(changed)) is None


# -- a plan of many models


def listing(count: int) -> dict[str, list[tuple[Location, Info]]]:
    """The listings of models, outputs and records of `count` models, all up to date."""
    found: dict[str, list[tuple[Location, Info]]] = {"s3://zoo/**": [], "s3://ir": [], "s3://ir/.mo-loop": []}
    for number in range(count):
        name = f"f{number % 7}/m{number}"
        source, xml, data = Info(10, f"s{number}"), Info(20, f"x{number}"), Info(30, f"b{number}")
        record = StateRecord(owner_of(f"{name}.xml"), inputs_hash("o", 10, source.tag), outputs_hash(xml, data), "3")
        found["s3://zoo/**"].append((Location(f"s3://zoo/{name}.onnx"), source))
        found["s3://ir"] += [(Location(f"s3://ir/{name}.bin"), data), (Location(f"s3://ir/{name}.xml"), xml)]
        found["s3://ir/.mo-loop"].append((record.at(Location("s3://ir")), Info(5, "r")))
    return found


def test_a_time_without_a_zone_is_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"mtime": datetime.now(UTC).replace(tzinfo=None)}
    monkeypatch.setattr(stores, "_below", lambda folder: [(".mo-loop-0123456789abcdef.part", entry)])
    with ExitStack() as stack:
        stack.callback(time.tzset)  # after the variable is as before
        stack.enter_context(monkeypatch.context()).setenv("TZ", "UTC-9")
        time.tzset()
        ((_, age),) = stores.drafts(Location("sftp://host/ir"))
    assert 0 <= age < 600


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[Location, Info]]]:
    """The listings of the stores; a test fills them."""
    contents: dict[str, list[tuple[Location, Info]]] = {}

    def listed(where: Location, ending: str = "", *, is_literal: bool = False) -> Iterator[tuple[Location, Info]]:
        return iter(() if is_literal and is_glob(where) else contents[where.url])

    for module in ("url_state", "storage.stores"):  # the first import of url_state takes the other one
        monkeypatch.setattr(f"mo_loop.batching.{module}.listed", listed)
    return contents


def current(count: int, simulate: dict[str, list[tuple[Location, Info]]], tmp_path: Path) -> Iterator[Planned]:
    """The models that are up to date."""
    plan = planned(["s3://zoo/**"], Location("s3://ir"))
    assert len(plan.models) == count and plan.root == Location("s3://zoo")
    outputs = Outputs(Location("s3://ir/"), Scratch(str(tmp_path)))
    work = Work(ConvertOptions(), "o")
    return (each for each in plan.models if outputs.current(each, work) is not None)


def test_listings_alone_say_what_is_up_to_date(
    simulate: dict[str, list[tuple[Location, Info]]], tmp_path: Path
) -> None:
    simulate.update(listing(20))
    assert len(list(current(20, simulate, tmp_path))) == 20
    simulate["s3://zoo/**"][3] = (Location("s3://zoo/f3/m3.onnx"), Info(10, "new"))
    simulate["s3://ir"][8] = (Location("s3://ir/f4/m4.bin"), Info(30, "new"))
    del simulate["s3://ir"][11]  # f5/m5.xml
    del simulate["s3://ir/.mo-loop"][6]
    left = {each.name for each in current(20, simulate, tmp_path)}
    assert {f"f{number % 7}/m{number}.onnx" for number in range(20)} - left == {
        "f3/m3.onnx", "f4/m4.onnx", "f5/m5.onnx", "f6/m6.onnx"
    }


def test_records_say_what_a_conversion_took(
    simulate: dict[str, list[tuple[Location, Info]]], tmp_path: Path
) -> None:
    """Also for another version of the model: its memory is declared before it is converted again."""
    simulate.update(listing(2))
    record = StateRecord(owner_of("f1/m1.xml"), "0" * 24, "1" * 24, "_9.Loop1._ms2000._need100._peak200")
    simulate["s3://ir/.mo-loop"] = [(record.at(Location("s3://ir")), Info(5, "r"))]
    plan = planned(["s3://zoo/**"], Location("s3://ir"))
    outputs = Outputs(Location("s3://ir/"), Scratch(str(tmp_path)))
    assert [outputs.earlier(each) for each in plan.models] == [None, Earlier(10, 0, 9, 1, 2.0, 100 << 20, 200 << 20)]


def test_the_memory_of_a_plan_does_not_grow(simulate: dict[str, list[tuple[Location, Info]]], tmp_path: Path) -> None:
    """Names, sizes and tags are on disk. The simulated listings themselves do not count."""
    def peak(count: int, bound: int = 0) -> int:
        simulate.clear()
        simulate.update(listing(count))
        return least_peak(partial(count_current, count), bound)

    def count_current(count: int) -> None:
        assert sum(1 for _ in current(count, simulate, tmp_path)) == count

    bound = peak(500) + (500 << 10)  # less than 120 bytes for a model
    assert peak(5000, bound) < bound


@pytest.mark.parametrize(("given", "text"), [
    (["s3://zoo/**", "models"], "run one batch for each"),
    (["s3://zoo/**", "s3://other/**"], "no common prefix"),
    (["s3://empty/**"], "there is no .onnx object"),
])
def test_urls_that_make_no_plan(
    given: list[str], text: str, simulate: dict[str, list[tuple[Location, Info]]]
) -> None:
    simulate.update({**listing(1), "s3://other/**": [(Location("s3://other/a.onnx"), Info(1))], "s3://empty/**": []})
    with pytest.raises(UsageError, match=text):
        planned(given, Location("s3://ir"))


@pytest.mark.parametrize("key", ["../m.onnx", "a//m.onnx", "a/../../m.onnx"])
def test_keys_that_are_no_paths(key: str, simulate: dict[str, list[tuple[Location, Info]]], tmp_path: Path) -> None:
    """Those in hidden folders are skipped; another one costs that model alone."""
    keys = (key, "m.onnx")
    simulate["s3://zoo/**"] = [(Location(f"s3://zoo/{each}"), Info(1)) for each in keys]
    simulate["s3://ir"] = simulate["s3://ir/.mo-loop"] = []
    for outputs in (Outputs(tmp_path, Scratch()), Outputs(Location("s3://ir"), Scratch())):
        for model in planned(["s3://zoo/**"], outputs.place).models:
            if model.name == "m.onnx":
                outputs.prepare(model)
                continue
            assert model.name == key and outputs.current(model, Work(ConvertOptions(), "o")) is None
            with pytest.raises(StorageError, match="no name for its outputs"):
                outputs.prepare(model)
