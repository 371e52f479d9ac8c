"""Batches from and to URLs: what is written, what is up to date, faults, interruptions."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import struct
import subprocess
import threading
import time
from pathlib import Path

import onnx
import pytest

from mo_loop.errors import MoLoopError
from mo_loop.support import workers
from mo_loop.support.worker_process import Worker
from tests.cli.batches import batch, command, environment, good, processes, read, refused, statuses, trouble
from tests.cli.commands import ended
from tests.cluster.models import loads, numbers, with_external
from tests.cluster.s3_server import DENIED, Request, S3Server, Store


def fill(store: Store, folder: Path, count: int, prefix: str = "zoo") -> None:
    for number in range(count):
        store.put(f"{prefix}/d{number % 3}/m{number}.onnx", numbered(folder, number))


def numbered(folder: Path, number: int) -> Path:
    """A model with a number that is in both its .xml and its .bin."""
    return good(folder / f"{number}.onnx", number, name=f"n{number}")


def test_the_pairs_are_those_of_a_local_batch(store: Store, temporary: Path, tmp_path: Path) -> None:
    names = ["a.onnx", "deep/er/b.onnx"]
    for number, name in enumerate(names):
        store.put(f"zoo/{name}", good(tmp_path / "in" / name, number))
    store.put("zoo/.hidden/c.onnx", b"x")
    store.put("zoo/notes.txt", b"x")
    ended(batch(f"{store.url}/zoo/**", "-o", f"{store.url}/ir", "--report", f"{store.url}/out/report.json",
                "--junit", f"{store.url}/out/junit.xml", "--summary", tmp_path / "summary.md"))
    assert batch(tmp_path / "in", "-o", tmp_path / "ir").returncode == 0
    found = [key for key in store.names() if key.startswith("ir/")]
    assert found == ["ir/a.bin", "ir/a.xml", "ir/deep/er/b.bin", "ir/deep/er/b.xml"]
    assert all(store.read(key) == (tmp_path / key).read_bytes() for key in found)
    report = json.loads(store.read("out/report.json"))
    assert (report["root"], report["output"]) == (f"{store.url}/zoo", f"{store.url}/ir")
    assert [(each["name"], each["status"]) for each in report["models"]] == [(name, "converted") for name in names]
    assert b"<testsuites" in store.read("out/junit.xml") and (tmp_path / "summary.md").exists()
    assert list(temporary.rglob("room-*")) == []


def test_what_is_up_to_date_is_not_fetched(store: Store, tmp_path: Path) -> None:
    fill(store, tmp_path, 5)
    arguments = (f"{store.url}/zoo", "-o", f"{store.url}/ir", "--report", tmp_path / "report.json")
    assert batch(*arguments).returncode == 0
    store.forget()
    assert batch(*arguments).returncode == 0
    first = read(tmp_path / "report.json")
    assert set(statuses(tmp_path / "report.json").values()) == {"skipped"}
    assert [each.path.partition("?")[0] for each in store.requests()] == [f"/{store.name}"] * 4  # listings
    assert first["models"][0]["layers"] == 79 and first["models"][0]["control_flow"] == {"Loop": 1}
    assert first["models"][0]["sizes"]["bin"] == len(store.read("ir/d0/m0.bin"))

    store.put("zoo/d1/m1.onnx", good(tmp_path / "new.onnx", 100))  # another model
    store.put("ir/d2/m2.bin", b"damaged")  # another output
    store.delete("ir/d0/m3.xml")  # half a pair
    assert batch(*arguments).returncode == 0
    converted = {name for name, status in statuses(tmp_path / "report.json").items() if status == "converted"}
    assert converted == {"d1/m1.onnx", "d2/m2.onnx", "d0/m3.onnx"}
    assert len([key for key in store.names(hidden=True) if "/.mo-loop/" in key]) == 5  # one record for each model

    store.forget()
    assert batch(*arguments, "--strict").returncode == 0  # other options
    assert set(statuses(tmp_path / "report.json").values()) == {"converted"}
    assert batch(*arguments, "--strict", "--force").returncode == 0
    assert set(statuses(tmp_path / "report.json").values()) == {"converted"}


def test_external_data_is_looked_at(store: Store, tmp_path: Path) -> None:
    store.put("zoo/m.onnx", with_external(tmp_path, {"a": ("w/d.bin", 400_000, 100)}))
    store.put("zoo/w/d.bin", numbers(200_000))
    arguments = (f"{store.url}/zoo", "-o", f"{store.url}/ir", "--report", tmp_path / "report.json")
    for status in ("converted", "skipped"):
        store.forget()
        assert batch(*arguments).returncode == 0
        assert statuses(tmp_path / "report.json") == {"m.onnx": status}
        assert read(tmp_path / "report.json")["models"][0]["sizes"]["external"] == 800_000
    assert store.requests("GET", "/zoo/") == []  # the tag of the data is enough
    store.put("zoo/w/d.bin", numbers(200_000, 1))
    assert batch(*arguments).returncode == 0
    assert statuses(tmp_path / "report.json") == {"m.onnx": "converted"}


def test_models_at_urls_into_a_folder_and_back(store: Store, tmp_path: Path) -> None:
    fill(store, tmp_path, 2)
    for status in ("converted", "skipped"):
        done = batch(f"{store.url}/zoo", "-o", tmp_path / "ir", "--report", tmp_path / "report.json")
        assert done.returncode == 0 and set(statuses(tmp_path / "report.json").values()) == {status}
    assert (tmp_path / "ir/d1/m1.xml").exists()
    local = good(tmp_path / "in" / "local.onnx", 7)
    for status in ("converted", "skipped"):
        done = batch(tmp_path / "in", "-o", f"{store.url}/ir", "--report", tmp_path / "report.json")
        assert done.returncode == 0 and statuses(tmp_path / "report.json") == {"local.onnx": status}
    good(local, 8)
    done = batch(tmp_path / "in", "-o", f"{store.url}/ir", "--report", tmp_path / "report.json")
    assert statuses(tmp_path / "report.json") == {"local.onnx": "converted"}


def test_stores_without_tags_are_compared_by_hash(store: Store, tmp_path: Path) -> None:
    """file:// has no tags."""
    good(tmp_path / "in/m.onnx", 1)
    with_external(tmp_path / "in", {"a": ("d.bin", 400, 10)}, "e.onnx")
    (tmp_path / "in/d.bin").write_bytes(numbers(1000))
    arguments = (f"file://{tmp_path}/in", "-o", f"file://{tmp_path}/ir", "--report", tmp_path / "report.json")
    for wanted in ("converted", "skipped"):
        assert batch(*arguments).returncode == 0
        assert statuses(tmp_path / "report.json") == {"e.onnx": wanted, "m.onnx": wanted}
    good(tmp_path / "in/m.onnx", 2)  # of the same size
    data = bytearray(numbers(1000))
    data[0:4] = b"\0\0\0\0"  # not read by the model
    (tmp_path / "in/d.bin").write_bytes(data)
    assert batch(*arguments).returncode == 0
    assert statuses(tmp_path / "report.json") == {"e.onnx": "skipped", "m.onnx": "converted"}
    data[400:404] = b"\0\0\0\0"
    (tmp_path / "in/d.bin").write_bytes(data)
    assert batch(*arguments).returncode == 0
    assert statuses(tmp_path / "report.json") == {"e.onnx": "converted", "m.onnx": "skipped"}


def test_a_list_and_a_baseline_at_urls(store: Store, tmp_path: Path) -> None:
    fill(store, tmp_path, 3)
    store.put("zoo/bad.onnx", refused(tmp_path / "bad.onnx"))
    store.put("list.txt", f"# two\n{store.url}/zoo/d1/m1.onnx\n{store.url}/zoo/bad.onnx\n".encode())
    arguments = (f"@{store.url}/list.txt", "-o", f"{store.url}/ir", "--report", f"{store.url}/report.json")
    assert batch(*arguments).returncode == 1
    assert store.names() == [
        "ir/d1/m1.bin", "ir/d1/m1.xml", "list.txt", "report.json", "zoo/bad.onnx", "zoo/d0/m0.onnx", "zoo/d1/m1.onnx",
        "zoo/d2/m2.onnx",
    ]
    assert batch(*arguments, "--baseline", f"{store.url}/report.json").returncode == 0


def test_a_plan_converts_nothing(store: Store, tmp_path: Path) -> None:
    fill(store, tmp_path, 4)
    arguments = (f"{store.url}/zoo", "-o", f"{store.url}/ir")
    done = batch(*arguments, "--plan")
    assert done.returncode == 0 and "4 models" in done.stdout and "4 to convert" in done.stdout
    assert not [key for key in store.names() if key.startswith("ir/")] and store.requests("PUT") == []
    batch(*arguments, "--report", f"{store.url}/report.json")
    store.put("zoo/d0/m0.onnx", good(tmp_path / "m.onnx", 50))
    done = batch(*arguments, "--plan", "--report", f"{store.url}/report.json")
    assert "3 up to date, 1 to convert" in done.stdout and "1 of 1 by the earlier report" in done.stdout


class Watch(threading.Thread):
    """Looks at all visible pairs again and again: an .xml has its .bin, and both are of the same model.

    Pairs that were compared, by their tags, are not read again.
    """

    def __init__(self, store: Store, folder: Path) -> None:
        super().__init__(daemon=True)
        self.store, self.folder = store, folder
        self.rounds = 0
        self.known: set[tuple[str, str | None, str | None]] = set()
        self.faults: list[str] = []
        self.over = threading.Event()
        folder.mkdir()

    def run(self) -> None:
        while not self.over.wait(0.02):
            tags = self.store.tags()
            for key, tag in tags.items():
                if key.endswith(".xml") and (key, tag, tags.get(f"{key[:-4]}.bin")) not in self.known:
                    self.look(key)
            self.rounds += 1

    def look(self, key: str) -> None:
        gone = self.store.client.exceptions.ClientError
        try:
            xml = self.store.read(key)
        except gone:
            return  # it was removed after it was listed
        try:
            data = self.store.read(f"{key[:-4]}.bin")
        except gone as error:
            self.faults.append(f"{key}: {error}")
            return
        try:
            if self.store.read(key) == xml:
                self.compare(key, xml, data)
        except gone:
            return

    def compare(self, key: str, xml: bytes, data: bytes) -> None:
        """The .bin was there while the .xml was."""
        self.known.add((key, *(f'"{hashlib.md5(each).hexdigest()}"' for each in (xml, data))))
        try:
            loads(xml, data, self.folder)
        except MoLoopError as error:
            self.faults.append(f"{key}: {error}")
        found = re.search(rb'<net name="n(\d+)"', xml)
        if found is None or struct.pack("<fff", 1.0, 2.0, int(found[1])) not in data:
            self.faults.append(f"{key}: the .bin is of another model")

    def end(self) -> None:
        self.over.set()
        self.join(30)
        assert self.faults == [] and self.rounds > 1


def test_every_tenth_request_fails(store: Store, server: S3Server, tmp_path: Path) -> None:
    fill(store, tmp_path, 30)
    watch = Watch(store, tmp_path / "watch")
    watch.start()
    server.fail_every(10)
    arguments = (f"{store.url}/zoo", "-o", f"{store.url}/ir", "-j", 2, "--report", tmp_path / "report.json")
    for number in (0, 100):  # again with other weights: pairs are replaced
        for place, key in enumerate(models(store)):
            store.put(key, numbered(tmp_path, number + place))
        ended(batch(*arguments))
        assert list(statuses(tmp_path / "report.json").values()) == ["converted"] * 30
    watch.end()
    assert len([key for key in store.names() if key.startswith("ir/")]) == 60


def models(store: Store) -> list[str]:
    return [key for key in store.names() if key.endswith(".onnx")]


def test_two_batches_at_once(store: Store, tmp_path: Path) -> None:
    fill(store, tmp_path, 12)
    watch = Watch(store, tmp_path / "watch")
    watch.start()
    reports = [tmp_path / f"report{number}.json" for number in range(2)]
    running = [
        subprocess.Popen(
            [*command(), "batch", f"{store.url}/zoo", "-o", f"{store.url}/ir", "-j", "1", "--report", str(report)],
            env=environment(), stderr=subprocess.PIPE, text=True,
        )
        for report in reports
    ]
    for each in running:
        assert each.wait(120) == 0, each.stderr and each.stderr.read()
    watch.end()
    for report in reports:
        assert set(statuses(report).values()) <= {"converted", "skipped"} and len(statuses(report)) == 12
    store.forget()
    batch(f"{store.url}/zoo", "-o", f"{store.url}/ir", "--report", reports[0])
    assert set(statuses(reports[0]).values()) == {"skipped"}
    assert store.requests("GET", ".onnx") == []


def test_two_batches_with_different_options(store: Store, tmp_path: Path) -> None:
    """The last of them wins for each model, and no .xml stays with the .bin of the other."""
    fill(store, tmp_path, 8)
    variants = []
    for number, flags in enumerate(((), ("--compress-to-fp16",))):
        assert batch(f"{store.url}/zoo", "-o", tmp_path / f"local{number}", *flags).returncode == 0
        variants.append((tmp_path / f"local{number}", flags))
    running = [
        subprocess.Popen(
            [*command(), "batch", f"{store.url}/zoo", "-o", f"{store.url}/ir", "-j", "1", "-q", *flags],
            env=environment(), stderr=subprocess.PIPE, text=True,
        )
        for _, flags in variants
    ]
    for each in running:
        assert each.wait(120) == 0, each.stderr and each.stderr.read()
    for key in store.names():
        if key.endswith(".xml"):
            pair = (store.read(key), store.read(f"{key[:-4]}.bin"))
            inner = key.removeprefix("ir/")[:-4]
            local = [folder / inner for folder, _ in variants]
            assert pair in [tuple(Path(f"{each}{end}").read_bytes() for end in (".xml", ".bin")) for each in local], key


def test_a_worker_that_is_killed_while_it_uploads(
    store: Store, server: S3Server, temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed between the .bin and the .xml: the old .xml is gone, and nothing else is to be seen."""
    monkeypatch.setattr(workers, "Worker", Worker)  # not one that tests keep, which has another folder
    store.put("zoo/m.onnx", good(tmp_path / "m.onnx", 1))
    arguments = (f"{store.url}/zoo", "-o", f"{store.url}/ir", "--report", tmp_path / "report.json")
    assert batch(*arguments).returncode == 0
    store.put("zoo/m.onnx", good(tmp_path / "m.onnx", 2))

    def kill(request: Request) -> None:
        if request.method == "PUT" and request.path.endswith("m.xml"):
            for pid in processes(str(temporary)):
                if b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.3)

    server.before(kill)
    server.fail_when(lambda request: request.method == "PUT" and request.path.endswith("m.xml"), DENIED, "403 No")
    assert batch(*arguments).returncode == 1
    assert statuses(tmp_path / "report.json") == {"m.onnx": "crash"}
    assert [key for key in store.names() if key.endswith(".xml")] == []
    assert list(temporary.rglob("room-*")) == []
    server.mend()
    assert batch(*arguments).returncode == 0
    assert statuses(tmp_path / "report.json") == {"m.onnx": "converted"}


def test_a_pair_whose_bin_was_removed(store: Store, server: S3Server, tmp_path: Path) -> None:
    """The old .xml is removed before the new .bin is put, so it is never next to it."""
    store.put("zoo/m.onnx", good(tmp_path / "m.onnx", 1))
    assert batch(f"{store.url}/zoo", "-o", f"{store.url}/ir").returncode == 0
    store.delete("ir/m.bin")
    store.put("zoo/m.onnx", good(tmp_path / "m.onnx", 2))
    seen: list[list[str]] = []

    def look(request: Request) -> None:
        if request.method == "PUT" and request.path.endswith("ir/m.bin"):
            seen.append(store.names())

    server.before(look)
    assert batch(f"{store.url}/zoo", "-o", f"{store.url}/ir").returncode == 0
    assert len(seen) == 1 and "ir/m.xml" not in seen[0]


def test_an_existing_name_comes_before_a_glob(store: Store, tmp_path: Path) -> None:
    for number, key in enumerate(("zoo/a[1].onnx", "zoo/a1.onnx", "v[1]/m.onnx", "v1/m.onnx")):
        store.put(key, good(tmp_path / "m.onnx", number))
    (tmp_path / "list.txt").write_text(f"{store.url}/zoo/a[1].onnx\n")
    report = tmp_path / "report.json"
    for given, output, names in (
        (f"@{tmp_path}/list.txt", "ir[1]", ["a[1].onnx"]), (f"{store.url}/zoo/a[12].onnx", "ir", ["a1.onnx"]),
        (f"{store.url}/v[1]", "ir", ["m.onnx"]),
    ):
        assert batch(given, "-o", f"{store.url}/{output}", "--report", report).returncode == 0
        assert list(statuses(report)) == names
    assert {"ir[1]/a[1].xml", "ir[1]/a[1].bin", "ir/a1.xml"} <= set(store.names())
    assert read(report)["root"] == f"{store.url}/v[1]"
    batch(f"@{tmp_path}/list.txt", "-o", f"{store.url}/ir[1]", "--report", report)
    assert statuses(report) == {"a[1].onnx": "skipped"}


def test_a_configuration_at_a_url(store: Store, tmp_path: Path) -> None:
    fill(store, tmp_path, 1)
    store.put("c.toml", f'report = "{store.url}/report.json"\n'.encode())
    assert batch(f"{store.url}/zoo", "-o", tmp_path / "ir", "--config", f"{store.url}/c.toml").returncode == 0
    assert "report.json" in store.names()
    done = batch(f"{store.url}/zoo", "-o", tmp_path / "ir", "--config", f"{store.url}/none.toml")
    assert done.returncode == 2 and "ML282" in done.stderr


def test_a_signed_url_is_shown_nowhere(store: Store, tmp_path: Path) -> None:
    """Neither in names of files nor in what they hold."""
    store.put("zoo/model.onnx", good(tmp_path / "m.onnx"))
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "*"}
    store.client.put_bucket_policy(
        Bucket=store.name, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    )
    signed = store.client.generate_presigned_url("get_object", Params={"Bucket": store.name, "Key": "zoo/model.onnx"})
    assert "Signature=" in signed
    (tmp_path / "list.txt").write_text(signed)
    for given, output in ((signed, tmp_path / "out/ir"), (f"@{tmp_path}/list.txt", f"{store.url}/ir")):
        done = ended(batch(given, "-o", output, "--report", tmp_path / "out/r.json", "--junit", tmp_path / "out/j.xml",
                           "--summary", tmp_path / "out/s.md"))
        assert statuses(tmp_path / "out/r.json") == {"model.onnx": "converted"}
        assert "Signature" not in done.stdout + done.stderr
    assert {"ir/model.xml", "ir/model.bin"} <= set(store.names())
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) >= 6  # reports, pair and state
    assert not [path for path in files if b"Signature" in str(path).encode() + path.read_bytes()]
    assert not [key for key in store.names(hidden=True) if b"Signature" in key.encode() + store.read(key)]


def test_ctrl_c_keeps_what_is_finished(store: Store, temporary: Path, tmp_path: Path) -> None:
    fill(store, tmp_path, 3)
    store.put("zoo/z/slow.onnx", good(tmp_path / "slow.onnx", 9, name="slow"))
    running = subprocess.Popen(
        [*command(), "batch", f"{store.url}/zoo", "-o", f"{store.url}/ir", "-j", "1", "--report",
         str(tmp_path / "report.json"), "--extension", str(trouble(tmp_path))],
        env=environment(), stderr=subprocess.PIPE, text=True,
    )
    end = time.monotonic() + 60
    # The one worker has answered for the other models when it begins with the slow one.
    while not (tmp_path / "trouble-began").exists() and time.monotonic() < end:
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130
    found = statuses(tmp_path / "report.json")
    assert found.pop("z/slow.onnx") == "cancelled" and set(found.values()) == {"converted"}
    assert list(temporary.rglob("room-*")) == []


class TestErrors:
    def test_a_bucket_that_is_missing(self, store: Store, tmp_path: Path) -> None:
        good(tmp_path / "m.onnx")
        for arguments in (("s3://nothing-here/**", "-o", tmp_path / "ir"), (tmp_path, "-o", "s3://nothing-here/ir")):
            done = batch(*arguments)
            assert done.returncode == 2 and "ML282" in done.stderr and "Traceback" not in done.stderr
            assert "s3://nothing-here" in done.stderr

    def test_a_bucket_that_vanishes(self, store: Store, server: S3Server, tmp_path: Path) -> None:
        fill(store, tmp_path, 3)
        gone = b"<Error><Code>NoSuchBucket</Code><Message>The bucket does not exist</Message></Error>"
        server.fail_when(lambda request: request.method == "PUT" and ".mo-loop" not in request.path, gone, "404 Gone")
        ended(batch(f"{store.url}/zoo", "-o", f"{store.url}/ir", "--report", tmp_path / "report.json"), 1)
        assert {each["errors"][0]["code"] for each in read(tmp_path / "report.json")["models"]} == {"ML282"}
        server.mend()
        assert batch(f"{store.url}/zoo", "-o", f"{store.url}/ir").returncode == 0

    def test_credentials_that_are_refused(self, store: Store, server: S3Server, tmp_path: Path) -> None:
        server.fail_when(lambda _: True, DENIED, "403 Forbidden")
        done = batch(f"{store.url}/zoo", "-o", tmp_path / "ir")
        assert done.returncode == 2 and "ML281" in done.stderr and "AWS_ACCESS_KEY_ID" in done.stderr
        assert "Traceback" not in done.stderr

    def test_credentials_are_shown_nowhere(self, store: Store, tmp_path: Path) -> None:
        done = batch("s3://AKIAKEY:TOPSECRET@zoo/**", "-o", tmp_path / "ir", "--debug")
        assert done.returncode == 2 and "ML287" in done.stderr
        assert "TOPSECRET" not in done.stdout + done.stderr and "AKIAKEY" not in done.stdout + done.stderr
        done = batch("s3://AKIAKEY:TOP/SECRET@zoo/**", "-o", tmp_path / "ir", "--debug")
        assert done.returncode == 2 and "ML287" in done.stderr and "SECRET@" not in done.stdout + done.stderr

    def test_local_models_and_urls_in_one_batch(self, store: Store, tmp_path: Path) -> None:
        fill(store, tmp_path, 1)
        assert "run one batch for each" in ended(batch(tmp_path, f"{store.url}/zoo", "-o", tmp_path / "ir"), 2).stderr

    def test_the_memory_of_this_process(self, store: Store, tmp_path: Path) -> None:
        assert "ML287" in ended(batch(good(tmp_path / "m.onnx"), "-o", "memory://ir"), 2).stderr

    def test_weights_of_the_model_are_not_overwritten(self, store: Store, tmp_path: Path) -> None:
        store.put("zoo/m.onnx", with_external(tmp_path, {"a": ("m.bin", 0, 10)}, "m.onnx"))
        store.put("zoo/m.bin", numbers(10))
        store.put("zoo/m.xml", b"<net/>")
        done = batch(f"{store.url}/zoo", "-o", f"{store.url}/zoo", "--report", tmp_path / "report.json")
        assert done.returncode == 1 and store.read("zoo/m.bin") == numbers(10)
        assert "weights of the model itself" in read(tmp_path / "report.json")["models"][0]["errors"][0]["message"]

    def test_weights_of_another_model_are_not_overwritten(self, store: Store, tmp_path: Path) -> None:
        """a.bin is external data of b.onnx: as in a folder, nothing is converted."""
        store.put("zoo/a.onnx", good(tmp_path / "w/a.onnx", 1))
        store.put("zoo/b.onnx", with_external(tmp_path / "w", {"t": ("a.bin", 0, 100)}, "b.onnx"))
        store.put("zoo/a.bin", numbers(100))
        (tmp_path / "w/a.bin").write_bytes(numbers(100))
        local = f"file://{tmp_path}/w"
        pairs = [(f"{store.url}/zoo", f"{store.url}/zoo/"), (f"{store.url}/**", store.url), (local, local)]
        for models, outputs in [*pairs, (tmp_path / "w", local), (local, tmp_path / "w")]:
            done = batch(models, "-o", outputs)
            assert done.returncode == 2 and "a.onnx would overwrite it" in done.stderr, (models, outputs)
        assert store.read("zoo/a.bin") == (tmp_path / "w/a.bin").read_bytes() == numbers(100)
        store.put("zoo/a.xml", b"<net/>")  # now it is a pair of an earlier conversion
        assert "would overwrite it" not in batch(f"{store.url}/zoo", "-o", f"{store.url}/zoo", "--plan").stderr

    def test_a_bin_that_a_killed_worker_left_beside_models(self, store: Store, tmp_path: Path) -> None:
        """An earlier batch has converted the model there, so the .bin does not belong to another one."""
        store.put("zoo/m.onnx", good(tmp_path / "in/m.onnx", 1))
        local = f"file://{tmp_path}/in"
        for folder in (f"{store.url}/zoo", local):
            assert batch(folder, "-o", folder).returncode == 0
        store.delete("zoo/m.xml")
        (tmp_path / "in/m.xml").unlink()
        for folder in (f"{store.url}/zoo", local):
            done = batch(folder, "-o", folder)
            assert done.returncode == 0 and "1 converted" in done.stderr + done.stdout, done.stderr

    def test_a_key_that_is_no_path_costs_one_model(self, store: Store, tmp_path: Path) -> None:
        for key in ("zoo/d//n.onnx", "zoo/d/n.onnx"):
            store.put(key, good(tmp_path / "m.onnx"))
        for folder in (f"{store.url}/ir", tmp_path / "ir"):
            done = batch(f"{store.url}/zoo", "-o", folder, "--report", tmp_path / "r.json")
            assert done.returncode == 1 and statuses(tmp_path / "r.json") == {
                "d//n.onnx": "failed", "d/n.onnx": "converted"
            }
            assert "2 models" in batch(f"{store.url}/zoo", "-o", folder, "--plan").stdout

    def test_a_name_that_is_too_long_costs_one_model(self, store: Store, tmp_path: Path) -> None:
        names = [f"{'n' * 300}.onnx", "short.onnx"]
        for name in names:
            store.put(f"zoo/{name}", good(tmp_path / "m.onnx"))
        done = batch(f"{store.url}/zoo", "-o", tmp_path / "ir", "--report", tmp_path / "r.json")
        found = statuses(tmp_path / "r.json")
        assert done.returncode == 1 and [found[name] for name in names] == ["failed", "converted"]
        done = batch(f"{store.url}/zoo", "-o", f"{store.url}/ir", "--report", tmp_path / "r.json")
        assert done.returncode == 0 and f"ir/{'n' * 300}.xml" in store.names()

    @pytest.mark.parametrize("given", ["--inputs {}/i.npz", "--inputs x={}/i.npy", "--extension {}/e.py"])
    def test_options_that_stay_local(self, given: str, store: Store, tmp_path: Path) -> None:
        fill(store, tmp_path, 1)
        done = batch(f"{store.url}/zoo", "-o", tmp_path / "ir", "--verify", *given.format(store.url).split())
        assert done.returncode == 2 and "ML287" in done.stderr and not (tmp_path / "ir").exists()

    def test_a_chain_of_urls(self, store: Store, tmp_path: Path) -> None:
        fill(store, tmp_path, 1)
        done = batch(f"{store.url}/zoo", "-o", f"simplecache::{store.url}/ir", cwd=tmp_path)
        assert done.returncode == 2 and "ML287" in done.stderr and not list(tmp_path.glob("simplecache*"))

    def test_a_model_that_needs_more_disk_than_there_may_be(self, store: Store, tmp_path: Path) -> None:
        fill(store, tmp_path, 1)
        done = batch(f"{store.url}/zoo", "-o", f"{store.url}/ir", "--scratch", "100", "--report", tmp_path / "r.json")
        assert done.returncode == 1 and read(tmp_path / "r.json")["models"][0]["errors"][0]["code"] == "ML285"

    def test_a_report_that_cannot_be_written(self, store: Store, tmp_path: Path) -> None:
        fill(store, tmp_path, 1)
        done = batch(f"{store.url}/zoo", "-o", f"{store.url}/ir", "--report", "s3://nothing-here/report.json")
        assert done.returncode == 2 and "ML282" in done.stderr
        assert "ir/d0/m0.xml" in store.names()


def test_the_numbers_are_compared_before_the_upload(store: Store, tmp_path: Path) -> None:
    store.put("zoo/m.onnx", with_external(tmp_path, {"a": ("d.bin", 4000, 100)}))
    store.put("zoo/d.bin", numbers(2000))
    ended(batch(f"{store.url}/zoo", "-o", f"{store.url}/ir", "--verify", "--report", tmp_path / "report.json"))
    assert read(tmp_path / "report.json")["models"][0]["comparison"]["passed"]
    assert onnx.load_model_from_string(store.read("zoo/m.onnx"))


@pytest.mark.parametrize("name", ["a b+ü&=%20.onnx", "q?x#y.onnx"])
def test_names_with_any_letters(name: str, store: Store, tmp_path: Path) -> None:
    store.put(f"zoo/{name}", good(tmp_path / "m.onnx"))
    ended(batch(f"{store.url}/zoo", "-o", f"{store.url}/ir"))
    assert f"ir/{name[:-5]}.xml" in store.names()
