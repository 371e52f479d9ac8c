"""Models that are brought to the local disk: the ranges that are fetched, the rules of names, the room on the disk."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from mo_loop.batching.storage.locations import Info, Location
from mo_loop.batching.storage.scratch import Scratch
from mo_loop.batching.storage.stores import info
from mo_loop.batching.storage.transfers import staged
from mo_loop.errors import FileError, StorageError, UsageError
from tests.cli.batches import good
from tests.cluster.models import numbers, with_external
from tests.cluster.s3_server import Request, S3Server, Store
from tests.harness import raised

MB = 1 << 20


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(str(tmp_path / "scratch"))


def left(scratch: Scratch) -> list[str]:
    return sorted(path.name for path in Path(scratch.folder or "").iterdir())


def fetched(requests: list[Request]) -> int:
    """The bytes that requests with ranges asked for."""
    total = 0
    for each in requests:
        start, _, end = each.range.removeprefix("bytes=").partition("-")
        total += int(end) - int(start) + 1
    return total


def test_a_model_is_a_local_file_of_its_name(store: Store, scratch: Scratch, tmp_path: Path) -> None:
    store.put("a/m.onnx", good(tmp_path / "m.onnx"))
    with staged(Location(f"{store.url}/a/m.onnx"), scratch) as here:
        assert here.path.name == "m.onnx" and here.path.read_bytes() == store.read("a/m.onnx")
        assert here.source.info == info(Location(f"{store.url}/a/m.onnx"))
    assert left(scratch) == []


def test_a_model_that_a_listing_knows_costs_one_request(store: Store, scratch: Scratch, tmp_path: Path) -> None:
    store.put("m.onnx", good(tmp_path / "m.onnx"))
    where = Location(f"{store.url}/m.onnx")
    known = info(where)
    store.forget()
    with staged(where, scratch, known=known):
        assert [each.method for each in store.requests()] == ["GET"]


def test_only_the_ranges_that_the_model_reads_are_fetched(store: Store, scratch: Scratch, tmp_path: Path) -> None:
    tensors = {"a": ("w/d.bin", 4 * MB, 1000), "b": ("w/d.bin", 12 * MB, 2000), "c": ("w/d.bin", 12 * MB + 8000, 10)}
    store.put("z/m.onnx", with_external(tmp_path, tensors))
    data = numbers(4 * MB)
    store.put("z/w/d.bin", data)
    with staged(Location(f"{store.url}/z/m.onnx"), scratch) as here:
        local = here.path.parent / "w/d.bin"
        assert local.stat().st_size == len(data) == 16 * MB
        assert local.stat().st_blocks * 512 < MB  # the file is sparse
        content = local.read_bytes()
        for _, offset, count in tensors.values():
            assert content[offset : offset + 4 * count] == data[offset : offset + 4 * count]
        assert here.external["w/d.bin"].ranges == ((4 * MB, 4 * MB + 4000), (12 * MB, 12 * MB + 8040))
    requests = store.requests("GET", "d.bin")
    assert len(requests) == 2 and fetched(requests) == 4000 + 8040


def test_large_ranges_are_fetched_in_blocks(store: Store, scratch: Scratch, tmp_path: Path) -> None:
    store.put("m.onnx", with_external(tmp_path, {"a": ("d.bin", 0, 5 * MB)}))
    store.put("d.bin", numbers(5 * MB))
    with staged(Location(f"{store.url}/m.onnx"), scratch) as here:
        assert (here.path.parent / "d.bin").read_bytes() == store.read("d.bin")
    assert len(store.requests("GET", "d.bin")) == 3


@pytest.mark.parametrize(
    "location", ["../d.bin", "/etc/hostname", "a/../../d.bin", "s3://other/d.bin", "C:/d.bin", "a\\..\\d.bin", "a//b"]
)
def test_external_data_outside_the_folder_is_refused(
    location: str, store: Store, scratch: Scratch, tmp_path: Path
) -> None:
    store.put("z/m.onnx", with_external(tmp_path, {"a": (location, 0, 10)}))
    store.put("d.bin", numbers(10))
    store.forget()
    with pytest.raises(FileError) as caught, staged(Location(f"{store.url}/z/m.onnx"), scratch):
        pass
    assert caught.value.code == "ML216"
    assert all("m.onnx" in each.path for each in store.requests())
    assert left(scratch) == []


def test_external_data_that_is_missing_is_left_to_the_conversion(
    store: Store, scratch: Scratch, tmp_path: Path
) -> None:
    store.put("m.onnx", with_external(tmp_path, {"a": ("d.bin", 0, 10)}))
    with staged(Location(f"{store.url}/m.onnx"), scratch) as here:
        assert here.external == {}


@pytest.mark.parametrize("name", ["d.bin", "m.onnx"])
def test_a_file_that_changes_while_it_is_read(
    name: str, store: Store, server: S3Server, scratch: Scratch, tmp_path: Path
) -> None:
    store.put("m.onnx", with_external(tmp_path, {"a": ("d.bin", 0, 10)}))
    store.put("d.bin", numbers(10))
    other = with_external(tmp_path, {"z": ("d.bin", 0, 10)}, "other.onnx")

    def change(request: Request) -> None:
        if request.method == "GET" and "d.bin" in request.path:
            store.put(name, numbers(10, 1) if name == "d.bin" else other)

    server.before(change)
    with pytest.raises(FileError) as caught, staged(Location(f"{store.url}/m.onnx"), scratch):
        pass
    assert caught.value.code == "ML270" and name in caught.value.message
    assert left(scratch) == []


def test_a_model_that_was_replaced_after_it_was_listed_is_read_anew(
    store: Store, scratch: Scratch, tmp_path: Path
) -> None:
    store.put("m.onnx", good(tmp_path / "m.onnx"))
    where = Location(f"{store.url}/m.onnx")
    for size in (10, 100000):
        with staged(where, scratch, known=Info(size, "old")) as here:
            assert here.path.read_bytes() == store.read("m.onnx") and here.source.info == info(where)


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/", "s3://bucket/a/.."])
def test_a_url_without_the_name_of_a_file(url: str, scratch: Scratch) -> None:
    with pytest.raises(UsageError, match="is not the URL of a file"), staged(Location(url), scratch):
        pass


@pytest.mark.parametrize("suffix", [".onnx", ""])
def test_a_name_that_is_too_long_for_a_file(suffix: str, store: Store, scratch: Scratch, tmp_path: Path) -> None:
    key = f"{'ü' * 300}{suffix}"
    store.put(key, good(tmp_path / "m.onnx"))
    with staged(Location(f"{store.url}/{key}"), scratch) as here:
        assert here.path.read_bytes() == store.read(key) and here.path.suffix == suffix


class TestRoom:
    def test_a_model_above_the_limit_is_refused(self, store: Store, tmp_path: Path) -> None:
        store.put("m.onnx", with_external(tmp_path, {"a": ("d.bin", 0, MB)}))
        store.put("d.bin", numbers(MB))
        store.forget()
        scratch = Scratch(str(tmp_path / "scratch"), 3 * MB)
        with pytest.raises(StorageError) as caught, staged(Location(f"{store.url}/m.onnx"), scratch):
            pass
        assert caught.value.code == "ML285" and "--scratch" in caught.value.hint
        assert store.requests("GET", "d.bin") == [] and left(scratch) == []

    def test_outputs_need_the_room_of_the_model_and_its_data(self, store: Store, tmp_path: Path) -> None:
        path = with_external(tmp_path, {"a": ("d.bin", 0, MB)})
        store.put("m.onnx", path)
        store.put("d.bin", numbers(MB))
        needed = 2 * (path.stat().st_size + 4 * MB)
        for room, is_enough in ((needed, True), (needed - 1, False)):
            scratch = Scratch(str(tmp_path / "scratch"), room)
            with (
                nullcontext() if is_enough else pytest.raises(StorageError, match="ML285"),
                staged(Location(f"{store.url}/m.onnx"), scratch, with_outputs=True),
            ):
                pass

    def test_others_wait_until_there_is_room(self, tmp_path: Path) -> None:
        scratch = Scratch(str(tmp_path / "scratch"), 100)
        running, most = 0, 0
        lock = threading.Lock()

        def use() -> None:
            nonlocal running, most
            with scratch.room("a model", 40):
                with lock:
                    running += 1
                    most = max(most, running)
                time.sleep(0.05)
                with lock:
                    running -= 1

        threads = [threading.Thread(target=use) for _ in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(30)
        assert most == 2 and left(scratch) == []

    def test_models_with_external_data_never_wait_for_each_other(self, store: Store, tmp_path: Path) -> None:
        """Each has its .onnx already and needs the rest of the room for its data."""
        for number in range(3):
            store.put(f"{number}/m.onnx", with_external(tmp_path, {"a": ("d.bin", 0, 200_000)}))
            store.put(f"{number}/d.bin", numbers(200_000, number))
        scratch = Scratch(str(tmp_path / "scratch"), 900_000)
        done: list[int] = []

        def stage(number: int) -> None:
            with staged(Location(f"{store.url}/{number}/m.onnx"), scratch) as here:
                time.sleep(0.1)
                assert (here.path.parent / "d.bin").stat().st_size == 800_000
                done.append(number)

        threads = [threading.Thread(target=stage, args=(number,)) for number in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
        assert sorted(done) == [0, 1, 2] and left(scratch) == []

    def test_what_a_killed_process_left_is_removed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        scratch = Scratch(str(tmp_path / "scratch"), 100)
        code = (
            "import sys, time; from mo_loop.batching.storage.scratch import Scratch\n"
            "with Scratch(sys.argv[1], 100).room('m', 90) as room:\n"
            "    (room.folder / 'file').write_text('x'); print('ready', flush=True); time.sleep(60)"
        )
        with subprocess.Popen([sys.executable, "-c", code, str(scratch.folder)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            assert len(left(scratch)) == 1
            os.kill(process.pid, signal.SIGKILL)
        monkeypatch.setattr("mo_loop.batching.storage.scratch.LONGEST_WAIT", 0.0)
        with scratch.room("n", 90) as room:
            assert left(scratch) == [room.folder.name]

    def test_the_folder_of_somebody_else_is_not_used(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        (tmp_path / f"mo-loop-scratch-{os.getuid()}").symlink_to(tmp_path)
        with pytest.raises(FileError, match="belongs to another user"):
            Scratch().resolved()

    def test_without_locks_a_process_counts_its_own_rooms(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("mo_loop.support.files.try_lock", lambda _: None)
        (tmp_path / "room-1-x").mkdir()
        (tmp_path / "room-1-x" / "bytes").write_text("90")
        monkeypatch.setattr("mo_loop.batching.storage.scratch.LONGEST_WAIT", 0.1)
        scratch = Scratch(str(tmp_path), 100)
        with scratch.room("m", 60) as room:
            assert room.grow(90) and not room.grow(110)
            with scratch.room("the batch", 0), pytest.raises(StorageError) as caught, scratch.room("n", 20):
                pass
        assert caught.value.code == "ML285" and "there is no space for n" in str(caught.value)

    def test_a_folder_that_cannot_be_used(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").write_text("x")
        assert raised(FileError, Scratch(str(tmp_path / "file" / "scratch")).resolved).code == "ML219"
        Scratch(str(tmp_path / "file" / "scratch")).clean()
        with Scratch(str(tmp_path / "scratch"), 100).room("m", 10) as room:
            def full(*_: object) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            monkeypatch.setattr(Path, "write_text", full)
            assert raised(FileError, room.grow, 20, match="No space left").code == "ML219"
