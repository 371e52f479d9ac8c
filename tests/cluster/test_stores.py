"""Objects in stores: S3, the memory of this process, local files as URLs."""

from __future__ import annotations

import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mo_loop.batching.storage import filesystems, stores
from mo_loop.batching.storage.locations import Location
from mo_loop.batching.storage.transfers import StaleUploads, upload_pair
from mo_loop.errors import StorageError
from tests.cluster.s3_server import DENIED, S3Server, Store
from tests.harness import raised


@pytest.fixture(params=["s3", "memory", "file"])
def base(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> Location:
    """A prefix in each kind of store."""
    if request.param == "s3":
        return Location(f"{store.url}/base")
    return Location(f"file://{tmp_path}/base" if request.param == "file" else f"memory://{tmp_path.name}/base")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting between attempts."""
    monkeypatch.setattr(filesystems, "FIRST_WAIT", 0.0)


def names(where: Location, ending: str = "") -> list[str]:
    return sorted(each.name for each, _ in stores.listed(where, ending))


def test_an_object_is_put_found_read_and_removed(base: Location) -> None:
    where = base / "a b/ü.bin"
    assert stores.find(where) is None
    put = stores.put(where, b"0123456789")
    assert put == stores.info(where) and put.size == 10
    assert bool(put.tag) is (base.scheme == "s3")
    assert stores.read(where, 2, 5) == b"234" and stores.read_whole(where) == b"0123456789"
    stores.put(where, b"other")
    assert stores.info(where).size == 5
    stores.delete(where)
    stores.delete(where)
    assert stores.find(where) is None


def test_an_object_that_does_not_exist(base: Location) -> None:
    for call in (stores.info, stores.read_whole):
        caught = raised(StorageError, call, base / "none")
        assert caught.code == "ML282" and str(base / "none") in str(caught)


def test_an_empty_object(base: Location) -> None:
    stores.put(base / "empty", b"")
    assert stores.info(base / "empty").size == 0 and stores.read_whole(base / "empty", 0) == b""


def test_listings(base: Location) -> None:
    for name in ("one.onnx", "two.ONNX", "text.txt", "deep/er/three.onnx", "deep/four.onnx"):
        stores.put(base / name, b"x")
    assert names(base, ".onnx") == names(base / "**", ".onnx") == ["four.onnx", "one.onnx", "three.onnx", "two.ONNX"]
    assert names(base / "*.onnx", ".onnx") == ["one.onnx"]
    assert names(base / "deep/*", ".onnx") == ["four.onnx"]
    assert names(base / "deep/", ".onnx") == names(base / "deep", ".onnx") == ["four.onnx", "three.onnx"]
    assert names(base / "**/t*.onnx") == ["three.onnx"]
    assert names(base / "nothing") == []


def test_pages_of_a_listing(store: Store) -> None:
    store.put_many(f"many/{number:04}.onnx" for number in range(2100))
    assert len(names(Location(f"{store.url}/many"))) == 2100
    assert len(store.requests("GET", "list-type=2")) == 3


def test_a_change_is_seen_at_once(base: Location) -> None:
    assert names(base) == []
    stores.put(base / "new", b"x")
    assert names(base) == ["new"]


def test_a_large_file_goes_in_parts(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "WHOLE", 1 << 20)
    monkeypatch.setattr(stores, "_PARTS", {"s3": {"chunksize": 5 << 20}})
    (tmp_path / "large").write_bytes(bytes(range(256)) * (44 << 10))
    put = stores.put_file(Location(f"{store.url}/large"), tmp_path / "large")
    assert put.size == 11 << 20 and store.read("large") == (tmp_path / "large").read_bytes()
    assert len(store.requests("PUT", "partNumber")) == 3


def test_an_upload_in_parts_that_fails_leaves_nothing(
    store: Store, server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    monkeypatch.setattr(stores, "WHOLE", 1 << 20)
    monkeypatch.setattr(stores, "_PARTS", {"s3": {"chunksize": 5 << 20}})
    (tmp_path / "m.bin").write_bytes(b"x" * (11 << 20))
    (tmp_path / "m.xml").write_text("<net/>")
    server.fail_when(lambda request: "partNumber=2" in request.path, DENIED, "403 Forbidden")
    assert raised(StorageError, upload_pair, tmp_path / "m.xml", Location(f"{store.url}/m.xml")).code == "ML281"
    assert (store.names(), store.uploads()) == ([], [])


def test_uploads_in_parts_of_killed_processes_are_ended(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those of a target: the others are of other programs."""
    for key in ("ir/a.bin", "ir/a.onnx", "other/a.bin", "ir/b.bin"):
        store.client.create_multipart_upload(Bucket=store.name, Key=key)
    prefix = Location(store.url)
    monkeypatch.setattr("mo_loop.batching.storage.transfers.STALE", 1e12)  # the server reports that all of them are old
    StaleUploads(prefix).end(prefix / "ir/a.xml")
    assert len(store.uploads()) == 4
    monkeypatch.setattr("mo_loop.batching.storage.transfers.STALE", -1.0)
    StaleUploads(prefix).end(prefix / "ir/a.xml")
    assert sorted(store.uploads()) == ["ir/a.onnx", "ir/b.bin", "other/a.bin"]


def test_two_processes_that_write_one_file(tmp_path: Path) -> None:
    """Each has a draft of its own, so that a reader sees one of the contents whole."""
    where, contents = Location(f"file://{tmp_path}/m.bin"), [letter * (1 << 20) for letter in (b"A", b"B")]
    stores.put(where, contents[0])
    seen: set[bytes] = set()
    with ThreadPoolExecutor(2) as threads:
        writing = [threads.submit(lambda each=each: [stores.put(where, each) for _ in range(20)]) for each in contents]
        while not all(each.done() for each in writing):
            seen.add((tmp_path / "m.bin").read_bytes())
    assert [each.exception() for each in writing] == [None, None] and seen <= set(contents)
    assert [path.name for path in tmp_path.iterdir()] == ["m.bin"]


def test_drafts_of_killed_processes_are_removed(tmp_path: Path) -> None:
    old, new, other = (tmp_path / f".mo-loop-{letter * 16}.part" for letter in "abz")
    for each in (old, new, other):
        each.write_text("x")
    for each in (old, other):
        os.utime(each, (0, 0))
    StaleUploads(Location(f"file://{tmp_path}"))
    assert sorted(tmp_path.iterdir()) == [new, other]


def test_a_store_that_is_down_gives_its_own_error(monkeypatch: pytest.MonkeyPatch, impatient: None) -> None:
    """Also where the draft cannot be removed."""

    class Down:
        def pipe_file(self, *_: object) -> None:
            raise ConnectionResetError("down")

        rm_file = pipe_file

    monkeypatch.setattr(stores, "filesystem_of", lambda _: (Down(), "/a/m.bin"))
    assert raised(StorageError, stores.put, Location("sftp://host/a/m.bin"), b"x").code == "ML283"


def test_keys_are_kept_exactly(store: Store) -> None:
    """a//d and a/d, [1] and 1, a::b are names of their own."""
    for key in ("q//d.bin", "q/d.bin", "/r.bin", "x[1]/d.bin", "x1/d.bin", "q/a::b.bin"):
        store.put(key, key.encode())
        assert stores.read_whole(Location(f"{store.url}/{key}")) == key.encode()
    where = Location(f"{store.url}/q//m.onnx")
    stores.put(where.parent / "e.bin", b"x")
    stores.put(where.with_suffix(".xml"), b"x")
    assert {"q//e.bin", "q//m.xml"} <= set(store.names())
    found = {each.url for each, _ in stores.listed(Location(f"{store.url}/q/"))}
    assert found == {f"{store.url}/q/{name}" for name in ("/d.bin", "d.bin", "a::b.bin", "/e.bin", "/m.xml")}
    found = {each.url for each, _ in stores.listed(Location(f"{store.url}/q//"))}
    assert found == {f"{store.url}/q//{name}" for name in ("d.bin", "e.bin", "m.xml")}
    assert [each.url for each, _ in stores.listed(Location(f"{store.url}/x[1]"), is_literal=True)] == [
        f"{store.url}/x[1]/d.bin"
    ]


def test_many_objects_are_asked_for_at_once(store: Store, server: S3Server) -> None:
    lock, running, most = threading.Lock(), 0, 0

    def slow(_: object) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with lock:
            running -= 1

    for number in range(0, 40, 2):
        store.put(f"{number}.onnx", b"x" * number)
    server.before(slow)
    found = stores.find_all([Location(f"{store.url}/{number}.onnx") for number in range(40)])
    assert [each and each.size for each in found] == [None if number % 2 else number for number in range(40)]
    assert most > 4


def test_faults_that_pass_are_tried_again(store: Store, server: S3Server) -> None:
    server.fail_every(3)
    for number in range(9):
        stores.put(Location(f"{store.url}/{number}"), b"x" * number)
    assert [stores.info(Location(f"{store.url}/{number}")).size for number in range(9)] == list(range(9))


def test_throttled_until_the_end(store: Store, server: S3Server, tmp_path: Path, impatient: None) -> None:
    """botocore tries again, and `called` once more; no third layer multiplies that, nor is a pair begun twice."""
    server.fail_when(lambda request: request.method == "PUT")
    for name in ("m.xml", "m.bin"):
        (tmp_path / name).write_text("x")
    caught = raised(StorageError, upload_pair, tmp_path / "m.xml", Location(f"{store.url}/m.xml"), is_new=True)
    assert caught.code == "ML284" and "too busy" in str(caught)
    assert len(store.requests("PUT")) == 8


def test_a_permanent_fault_is_not_tried_again(store: Store, server: S3Server) -> None:
    server.fail_when(lambda request: request.method == "PUT", DENIED, "403 Forbidden")
    caught = raised(StorageError, stores.put, Location(f"{store.url}/x"), b"x")
    assert caught.code == "ML281" and "AWS_ACCESS_KEY_ID" in str(caught)
    assert len(store.requests("PUT")) == 1


def test_no_credentials(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    s3fs.S3FileSystem.clear_instance_cache()
    try:
        assert raised(StorageError, stores.info, Location(f"{store.url}/x")).code == "ML281"
    finally:
        s3fs.S3FileSystem.clear_instance_cache()


def test_a_store_that_cannot_be_reached(
    store: Store, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    import s3fs

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    s3fs.S3FileSystem.clear_instance_cache()
    try:
        assert raised(StorageError, stores.info, Location(f"{store.url}/x")).code == "ML283"
    finally:
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.parametrize(("url", "package"), [("gs://b/m.onnx", "gcsfs"), ("abfs://c@a.net/m.onnx", "adlfs")])
def test_a_package_that_is_not_installed(url: str, package: str) -> None:
    caught = raised(StorageError, stores.info, Location(url))
    assert caught.code == "ML280" and f"pip install fsspec {package}" in str(caught)


def test_a_scheme_that_nobody_knows() -> None:
    caught = raised(StorageError, stores.info, Location("nothing://b/m.onnx"))
    assert caught.code == "ML280" and "'nothing'" in str(caught)


class TestPairs:
    def put(self, tmp_path: Path, target: Location, text: str) -> None:
        (tmp_path / "m.xml").write_text(text)
        (tmp_path / "m.bin").write_text(f"weights of {text}")
        upload_pair(tmp_path / "m.xml", target)

    def test_a_pair_is_put_and_replaced(self, base: Location, tmp_path: Path) -> None:
        for text in ("one", "two"):
            self.put(tmp_path, base / "m.xml", text)
            assert stores.read_whole(base / "m.xml") == text.encode()
            assert stores.read_whole(base / "m.bin") == f"weights of {text}".encode()
        assert names(base) == ["m.bin", "m.xml"]

    def test_the_order(self, store: Store, tmp_path: Path) -> None:
        self.put(tmp_path, Location(f"{store.url}/m.xml"), "one")
        changes = [(each.method, each.path.rpartition(".")[2]) for each in store.requests() if each.method != "HEAD"]
        assert changes == [("DELETE", "xml"), ("PUT", "bin"), ("PUT", "xml")]

    def test_a_new_pair_removes_nothing(self, store: Store, tmp_path: Path) -> None:
        for text, wanted in (("one", ["PUT", "PUT", "HEAD"]), ("two", ["PUT", "DELETE", "PUT", "PUT", "HEAD"])):
            (tmp_path / "m.xml").write_text(text)
            (tmp_path / "m.bin").write_text(f"weights of {text}")
            store.forget()
            upload_pair(tmp_path / "m.xml", Location(f"{store.url}/m.xml"), is_new=True)
            assert [each.method for each in store.requests()] == wanted
            assert (store.read("m.xml"), store.read("m.bin")) == (text.encode(), f"weights of {text}".encode())

    def test_a_bin_of_another_process_is_noticed(self, store: Store, server: S3Server, tmp_path: Path) -> None:
        """Another process replaces the .bin between the two puts: the pair is put again."""
        times: list[str] = []

        def interfere(request: object) -> None:
            if getattr(request, "method", "") == "PUT" and str(getattr(request, "path", "")).endswith(".xml"):
                times.append("put")
                if len(times) == 1:
                    store.put("m.bin", b"of somebody else")

        server.before(interfere)
        self.put(tmp_path, Location(f"{store.url}/m.xml"), "mine")
        assert (store.read("m.xml"), store.read("m.bin")) == (b"mine", b"weights of mine")
        assert len(times) == 2


def test_everything_that_a_task_carries_can_be_pickled() -> None:
    from mo_loop.batching.engine import Remote
    from mo_loop.batching.result import StateRecord
    from mo_loop.batching.storage.locations import Info
    from mo_loop.batching.storage.scratch import Scratch

    records = (StateRecord("a", "b", "c"),)
    remote = Remote(Scratch(None, 5), Info(3, "tag"), Location("s3://ir"), "m.xml", True, records)
    assert pickle.loads(pickle.dumps(remote)) == remote
