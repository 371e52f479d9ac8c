"""Which files of external data are read, which are refused, and that a file which changed is never written."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop.api import convert_model, read_model, save_model
from mo_loop.errors import ConversionErrors, FileError, MoLoopError
from mo_loop.frontend import model as model_file
from mo_loop.frontend.external_files import ExternalFiles
from mo_loop.frontend.onnx_graphs import external_files
from mo_loop.look.inspection.read import inspect
from tests.harness import raised, with_weights

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes need rights there")

WEIGHT = np.arange(2048, dtype=np.float32)
MODEL = "main (float[2048] x) => (float[2048] y) { y = Add (x, w) }"


def model(location: str, **entries: Any) -> onnx.ModelProto:
    """A model that adds WEIGHT, which it names as external data."""
    made = with_weights(MODEL, w=WEIGHT)
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return made


def saved(folder: Path, location: str = "w.data", name: str = "model.onnx", **entries: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(model(location, **entries).SerializeToString())
    return path


def test_a_name_that_the_locale_cannot_spell(tmp_path: Path) -> None:
    """It is not outside the folder of the model."""
    weights(tmp_path / "gewicht_ü.data")
    path = saved(tmp_path, "gewicht_ü.data")
    program = f"import mo_loop; mo_loop.convert_model({str(path)!r})"
    settings = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "utf-8"}
    command, environment = [sys.executable, "-c", program], os.environ | settings
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert "ML212" in done.stderr and "PYTHONUTF8=1" in done.stderr and "ML216" not in done.stderr


def weights(path: Path, data: bytes = WEIGHT.tobytes()) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def refusal(path: Path, **options: Any) -> MoLoopError:
    """The only error of a conversion."""
    (error,) = raised(ConversionErrors, convert_model, path, **options).errors
    return error


def assert_converts(path: Path, target: Path, **options: Any) -> None:
    """The weights arrive in the .bin."""
    save_model(convert_model(path, **options), target / "made.xml")
    assert WEIGHT.tobytes() in (target / "made.bin").read_bytes()


def allowed_by(error: MoLoopError) -> str:
    """The folder that the error names after --allow-external."""
    found = re.search(r"--allow-external (\S+)$", error.hint)
    assert found is not None, error
    return found[1]


class TestFolder:
    @pytest.mark.parametrize("location", ["w.data", "./w.data", "sub/../w.data", "sub/deep/w.data", "../model/w.data"])
    def test_files_below_the_folder_are_read(self, tmp_path: Path, location: str) -> None:
        folder = tmp_path / "model"
        weights(folder / "sub" / "deep" / "w.data")
        weights(folder / "w.data")
        assert_converts(saved(folder, location), tmp_path)

    def test_the_folder_may_be_a_link(self, tmp_path: Path) -> None:
        weights(tmp_path / "real" / "w.data")
        saved(tmp_path / "real")
        (tmp_path / "link").symlink_to("real")
        assert_converts(tmp_path / "link" / "model.onnx", tmp_path)

    @pytest.mark.parametrize("kind", ["inside", "folder", "loop", "back"])
    def test_a_link_is_refused(self, tmp_path: Path, kind: str) -> None:
        """A link to a file of the folder too: what it leads to can change at any time."""
        folder = tmp_path / "model"
        weights(folder / "real" / "w.data")
        location = {"folder": "link/w.data", "back": "out/model/real/w.data"}.get(kind, "w.data")
        if kind == "inside":
            (folder / "w.data").symlink_to("real/w.data")
        elif kind == "folder":
            (folder / "link").symlink_to("real")
        elif kind == "loop":
            (folder / "w.data").symlink_to("w.data")
        else:
            (folder / "out").symlink_to("..")
        error = refusal(saved(folder, location))
        assert error.code == ("ML272" if kind == "loop" else "ML271")
        if kind != "loop":
            assert allowed_by(error) == os.path.realpath(folder / "real")
            assert_converts(folder / "model.onnx", tmp_path, allow_external=allowed_by(error))

    @pytest.mark.parametrize("kind", ["link", "absolute", "above"])
    def test_a_file_outside_is_read_only_if_its_folder_is_allowed(self, tmp_path: Path, kind: str) -> None:
        outside = weights(tmp_path / "other" / "w.data")
        (tmp_path / "otherwise").mkdir()
        location = {"link": "w.data", "absolute": str(outside), "above": "../other/w.data"}[kind]
        path = saved(tmp_path / "model", location)
        if kind == "link":
            (path.parent / "w.data").symlink_to(outside)
        error = refusal(path)
        assert error.code == "ML216" and allowed_by(error) == os.path.realpath(outside.parent)
        assert refusal(path, allow_external=tmp_path / "otherwise").code == "ML216"
        assert_converts(path, tmp_path, allow_external=[outside.parent])
        assert_converts(path, tmp_path, allow_external=[tmp_path / "otherwise", allowed_by(error)])

    def test_a_second_name_is_refused(self, tmp_path: Path) -> None:
        """A hard link can be any file of the disk."""
        path = saved(tmp_path / "model")
        os.link(weights(tmp_path / "secret"), path.parent / "w.data")
        error = refusal(path)
        assert error.code == "ML271" and "2 names" in error.message
        assert_converts(path, tmp_path, allow_external=allowed_by(error))

    def test_the_folder_of_the_hint_is_quoted(self, tmp_path: Path) -> None:
        weights(tmp_path / "two words" / "w.data")
        assert refusal(saved(tmp_path / "model", "../two words/w.data")).hint.endswith("two words'")


class TestKinds:
    @pytest.fixture
    def socket_at(self) -> Iterator[Callable[[Path], None]]:
        opened = socket.socket(socket.AF_UNIX)
        yield lambda path: opened.bind(os.path.relpath(path))
        opened.close()

    @pytest.mark.parametrize("kind", ["a pipe", "a folder", "a socket"])
    @pytest.mark.parametrize("is_allowed", [False, True], ids=["plain", "allowed"])
    def test_other_files_are_refused_at_once(
        self, tmp_path: Path, kind: str, is_allowed: bool, socket_at: Callable[[Path], None],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Opening a pipe without a writer would wait forever."""
        path = saved(tmp_path / "model")
        place = path.parent / "w.data"
        monkeypatch.chdir(path.parent)  # the path of a socket is short
        {"a pipe": os.mkfifo, "a folder": os.mkdir, "a socket": socket_at}[kind](place)
        error = refusal(path, allow_external=[path.parent] if is_allowed else ())
        assert error.code == "ML272" and kind in error.message

    @pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="this system has no /proc")
    @pytest.mark.parametrize(
        ("location", "folder", "code"),
        [("/dev/zero", "/dev", "ML272"), ("/proc/self/mem", "/proc", "ML213"), ("/proc/self/maps", "/proc", "ML213")],
    )
    def test_files_of_the_system(self, tmp_path: Path, location: str, folder: str, code: str) -> None:
        path = saved(tmp_path / "model", location)
        assert refusal(path).code == "ML216"
        assert refusal(path, allow_external=folder).code == code  # their size is 0

    @pytest.mark.parametrize(
        "entries",
        [{"offset": 1 << 64}, {"offset": 10**40}, {"length": 10**90}, {"offset": "1" * 5000}, {"offset": "١٢"},
         {"offset": "1_0"}, {"offset": " 4"}, {"offset": "+4"}, {"offset": ""}],
        ids=lambda each: str(each)[:30],
    )
    def test_numbers_of_any_size(self, tmp_path: Path, entries: dict[str, Any]) -> None:
        weights(tmp_path / "w.data", bytes(1 << 15))
        assert refusal(saved(tmp_path, **entries)).code == "ML213"

    def test_strings_have_no_external_form(self, tmp_path: Path) -> None:
        made = model("w.data")
        made.graph.initializer[0].data_type = onnx.TensorProto.STRING
        weights(tmp_path / "w.data")
        (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
        assert refusal(tmp_path / "m.onnx").code == "ML225"


class TestCache:
    """The cache of Hugging Face: snapshots have links to blobs."""

    @pytest.fixture
    def snapshot(self, tmp_path: Path) -> Path:
        cache = tmp_path / "hub" / "models--someone--tiny"
        snapshot = cache / "snapshots" / "0123abc" / "onnx"
        snapshot.mkdir(parents=True)
        weights(cache / "blobs" / "aaaa", model("w.data").SerializeToString())
        weights(cache / "blobs" / "bbbb")
        (snapshot / "model.onnx").symlink_to("../../../blobs/aaaa")
        (snapshot / "w.data").symlink_to("../../../blobs/bbbb")
        return snapshot

    def test_links_to_its_blobs_are_followed(self, snapshot: Path, tmp_path: Path) -> None:
        assert_converts(snapshot / "model.onnx", tmp_path)
        assert [os.path.basename(each.path) for each in external_files(str(snapshot / "model.onnx"))] == ["bbbb"]

    @pytest.mark.parametrize("kind", ["elsewhere", "below blobs", "other cache", "above", "blobs is a link", "renamed"])
    def test_other_links_are_refused(self, snapshot: Path, tmp_path: Path, kind: str) -> None:
        cache, link = snapshot.parents[2], snapshot / "w.data"
        secret = weights(tmp_path / "secret" / "bbbb")
        if kind == "blobs is a link":
            (cache / "blobs").rename(tmp_path / "moved")
            (cache / "blobs").symlink_to(tmp_path / "moved")
        elif kind == "renamed":  # the form of a cache, but not its name
            cache = cache.rename(cache.with_name("tiny"))
            snapshot = cache / "snapshots" / "0123abc" / "onnx"
        elif kind == "above":
            weights(snapshot / "model.onnx.new", model("../w.data").SerializeToString())
            (snapshot / "model.onnx").unlink()
            (snapshot / "model.onnx.new").rename(snapshot / "model.onnx")
            link.rename(snapshot.parent / "w.data")
        else:
            places = {
                "elsewhere": secret, "below blobs": cache / "blobs" / "x" / "bbbb",
                "other cache": cache.with_name("models--other") / "blobs" / "bbbb",
            }
            weights(places[kind])
            link.unlink()
            link.symlink_to(places[kind])
        assert refusal(snapshot / "model.onnx").code == "ML216"


class TestChanges:
    """Files that change between reading and writing: nothing is written, and an older pair stays."""

    @pytest.mark.parametrize("kind", ["written", "replaced", "link", "gone", "pipe", "touched"])
    def test_external_data(self, tmp_path: Path, kind: str) -> None:
        path = saved(tmp_path / "model")
        data = weights(path.parent / "w.data")
        assert_changes_are_seen(path, data, kind, tmp_path)

    @pytest.mark.parametrize("kind", ["written", "replaced", "gone"])
    def test_weights_in_the_model_itself(self, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(model_file, "LARGE", 1000)
        made = with_weights(MODEL, w=WEIGHT)
        path = tmp_path / "model.onnx"
        path.write_bytes(made.SerializeToString())
        assert_changes_are_seen(path, path, kind, tmp_path)

    @pytest.mark.parametrize("kind", ["written", "replaced", "gone"])
    def test_the_weights_of_an_ir(self, tmp_path: Path, kind: str) -> None:
        weights(tmp_path / "w.data")
        save_model(convert_model(saved(tmp_path)), tmp_path / "ir.xml")
        assert_changes_are_seen(tmp_path / "ir.xml", tmp_path / "ir.bin", kind, tmp_path)

    def test_a_change_while_the_pair_is_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The file changes after its last byte was copied, and before the files are renamed."""
        import mo_loop.converted_model

        path = saved(tmp_path)
        data = weights(tmp_path / "w.data")
        write = mo_loop.converted_model.XmlWriter.write

        def late(*arguments: Any) -> None:
            write(*arguments)
            data.write_bytes(WEIGHT[::-1].tobytes())

        monkeypatch.setattr(mo_loop.converted_model.XmlWriter, "write", late)
        raised(FileError, save_model, convert_model(path), tmp_path / "made.xml", match=r"^ML270: ")
        assert sorted(each.name for each in tmp_path.iterdir()) == ["model.onnx", "w.data"]


def assert_changes_are_seen(path: Path, data: Path, kind: str, folder: Path) -> None:
    (folder / "made.xml").write_text("old")
    (folder / "made.bin").write_text("old")
    converted = read_model(path) if path.suffix == ".xml" else convert_model(path)
    copy = folder / "copy"
    copy.write_bytes(data.read_bytes())
    if kind == "written":
        with open(data, "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(b"abcd")
    elif kind == "touched":
        os.utime(data, ns=(1, 1))
    else:
        data.unlink()
        if kind == "replaced":
            copy.rename(data)
        elif kind == "link":
            data.symlink_to(copy)
        elif kind == "pipe":
            os.mkfifo(data)
    caught = raised(FileError, save_model, converted, folder / "made.xml")
    assert caught.code == "ML270" and data.name in caught.message
    assert (folder / "made.xml").read_text() == (folder / "made.bin").read_text() == "old"


def test_descriptors_are_closed(tmp_path: Path) -> None:
    fds = Path("/proc/self/fd")
    if not fds.exists():
        pytest.skip("this system has no list of open files")
    path = saved(tmp_path, "sub/w.data")
    weights(tmp_path / "sub" / "w.data")
    before = len(list(fds.iterdir()))
    convert_model(path)
    for location in ("gone.data", "sub", "sub/x/w.data"):
        raised(FileError, ExternalFiles(str(tmp_path)).at, location, "w")
    assert len(list(fds.iterdir())) == before


def test_inspect_tells_no_size_of_other_files(tmp_path: Path) -> None:
    secret = weights(tmp_path / "secret")
    path = saved(tmp_path / "model", "../secret")
    assert [each.size for each in inspect(path).external] == [None]
    allowed = inspect(path, allow_external=[str(tmp_path)])
    assert [each.size for each in allowed.external] == [secret.stat().st_size]
