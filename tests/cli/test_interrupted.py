"""`mo-loop convert` ended by Ctrl-C, SIGTERM or a full disk: no partial files, and the old pair is unchanged."""

import os
import shutil
import signal as signals
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import parsed

from . import commands
from .commands import assert_clear, assert_fails, assert_untouched, ended, run, saved

if sys.platform == "win32":
    pytest.skip("signals and limits are those of POSIX", allow_module_level=True)

import resource

WHILE_WRITING = """
import os, signal
from mo_loop.ir.xml import XmlWriter

layer = XmlWriter._layer
written = []

def stopping(self, *arguments):
    layer(self, *arguments)
    written.append(arguments)
    if len(written) == 3:
        folder = os.environ["FOLDER"]
        assert any(name.endswith(".tmp") for name in os.listdir(folder)), "nothing is being written"
        os.kill(os.getpid(), getattr(signal, os.environ["SIGNAL"]))

XmlWriter._layer = stopping

def register(extensions):
    pass
"""

WHILE_CONVERTING = """
import os, signal
from mo_loop.transforms.function_pass import FunctionPass

class Stopping(FunctionPass):
    def run_on_graph(self, graph):
        os.kill(os.getpid(), getattr(signal, os.environ["SIGNAL"]))

def register(extensions):
    extensions.add_pass(Stopping, at="start")
"""


@pytest.fixture
def weighty(tmp_path: Path) -> Path:
    return commands.weighty(tmp_path, 600)


def answering_ctrl_c() -> None:
    """A shell starts background commands with SIGINT ignored, which every child inherits."""
    signals.signal(signals.SIGINT, signals.SIG_DFL)


@pytest.mark.parametrize("text", [WHILE_WRITING, WHILE_CONVERTING], ids=["writing", "converting"])
@pytest.mark.parametrize(("signal", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_signals(text: str, signal: str, code: int, weighty: Path, old_pair: Path, tmp_path: Path) -> None:
    extension = tmp_path / "stop.py"
    extension.write_text(text)
    environment = {**os.environ, "SIGNAL": signal, "FOLDER": str(old_pair.parent)}
    done = run(weighty, "-o", old_pair, "--extension", extension, env=environment, preexec_fn=answering_ctrl_c)
    assert done.returncode == code, done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr
    assert done.stderr.endswith("nothing was changed\n") and done.stderr.count("\n") == 1
    assert_untouched(old_pair)


def test_the_copy_of_standard_input_is_removed(weighty: Path, old_pair: Path, tmp_path: Path) -> None:
    extension = tmp_path / "stop.py"
    extension.write_text(WHILE_CONVERTING)
    spool = tmp_path / "spool"
    spool.mkdir()
    environment = {**os.environ, "SIGNAL": "SIGTERM", "TMPDIR": str(spool)}
    with open(weighty, "rb") as model:
        done = run("-", "-o", old_pair, "--extension", extension, stdin=model, env=environment)
    assert done.returncode == 143 and list(spool.iterdir()) == []
    assert_untouched(old_pair)


def small_files() -> None:
    """No file larger than 100 kB, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def test_a_full_disk(weighty: Path, old_pair: Path) -> None:
    done = run(weighty, "-o", old_pair, preexec_fn=small_files)
    assert_fails(done, "ML218", "cannot be written", kept=old_pair)


ON_A_SMALL_DISK = """
import os, subprocess, sys
from pathlib import Path

model, folder = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
pair = [Path(folder, name) for name in ("m.xml", "m.bin")]
for path in pair:
    path.write_bytes(b"old")
done = subprocess.run(
    [sys.executable, "-m", "mo_loop", "convert", model, "-o", str(pair[0])], stderr=subprocess.PIPE, text=True
)
assert done.returncode == 2, done
assert "ML218" in done.stderr and "No space left on device" in done.stderr, done.stderr
assert "Traceback" not in done.stderr, done.stderr
assert sorted(os.listdir(folder)) == ["m.bin", "m.xml"], os.listdir(folder)
assert [path.read_bytes() for path in pair] == [b"old", b"old"]
print("held")
"""


def can_mount() -> bool:
    """Whether a process here may mount a file system of its own."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    return not subprocess.run([*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode


OWN_MOUNTS = ("unshare", "--user", "--map-root-user", "--mount")


@pytest.mark.skipif(not can_mount(), reason="mounts need Linux with user namespaces")
def test_a_full_file_system(weighty: Path, tmp_path: Path) -> None:
    """One of 1 MB, which the weights of 1.4 MB fill."""
    (tmp_path / "small").mkdir()
    command = [*OWN_MOUNTS, sys.executable, "-c", ON_A_SMALL_DISK, weighty, tmp_path / "small"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "held\n", done.stderr


def test_a_full_disk_for_standard_input(weighty: Path, old_pair: Path) -> None:
    with open(weighty, "rb") as model:
        done = run("-", "-o", old_pair, stdin=model, preexec_fn=small_files)
    assert_fails(done, "standard input cannot be copied to a file", "TMPDIR", kept=old_pair)


class TestStandardInput:
    def test_the_same_files(self, weighty: Path, tmp_path: Path) -> None:
        """The temporary folder is empty afterwards."""
        spool = tmp_path / "spool"
        spool.mkdir()
        with open(weighty, "rb") as model:
            piped = run("-", "-o", tmp_path / "a.xml", stdin=model, env={**os.environ, "TMPDIR": str(spool)})
        assert piped.returncode == 0, piped.stderr
        assert list(spool.iterdir()) == [] and (spool.parent / "a.bin").exists()
        assert run(weighty, "-o", tmp_path / "b.xml").returncode == 0
        for ending in (".xml", ".bin"):
            assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()

    @pytest.mark.parametrize(("content", "said"), [(b"", "stdin is empty"), (b"PK\x03\x04aaaa", "a zip archive")])
    def test_content_that_is_not_a_model(self, content: bytes, said: str, tmp_path: Path) -> None:
        done = ended(run("-", "-o", tmp_path / "m.xml", input=content, text=False), 2)
        assert_clear(done.stderr.decode())
        assert said in done.stderr.decode()

    @pytest.mark.parametrize("flags", [[], ["-o", "out/"], ["-o", "out"]])
    def test_the_output_needs_a_name(self, flags: list[str], tmp_path: Path) -> None:
        done = run("-", *flags, input="", cwd=tmp_path)
        assert done.returncode == 2 and "give -o name.xml" in done.stderr
        assert_clear(done.stderr)
        assert list(tmp_path.iterdir()) == []


def test_the_model_is_not_overwritten(tmp_path: Path) -> None:
    """Under any name, and by any path."""
    made = parsed("main (float[3] x) => (float[3] y) { y = Neg (x) }")
    model = saved(made, tmp_path, "m.bin")
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    content = model.read_bytes()
    for source, target in ((model, tmp_path / "m.xml"), (model, tmp_path / "link" / "m.xml")):
        done = run(source, "-o", target)
        assert done.returncode == 2 and "is the model itself" in done.stderr
        assert_clear(done.stderr)
    saved(made, tmp_path, "n.xml")
    assert run(tmp_path / "n.xml", "-o", tmp_path / "n.xml").returncode == 2
    assert model.read_bytes() == content and (tmp_path / "n.xml").read_bytes() == content
    assert not (tmp_path / "m.xml").exists() and not (tmp_path / "n.bin").exists()


def test_the_output_path_is_checked_first(tmp_path: Path) -> None:
    """Before the model is read, which does not even exist here."""
    (tmp_path / "file").write_text("kept")
    done = run(tmp_path / "gone.onnx", "-o", tmp_path / "file" / "m.xml")
    assert done.returncode == 2 and "ML218" in done.stderr and "is not a folder" in done.stderr
