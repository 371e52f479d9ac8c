"""`mo-loop batch`: its arguments, where the pairs are written, and its flags."""

import os
import sys
from pathlib import Path

import pytest

from .batches import batch, files_in, good, read, refused, statuses, trouble
from .commands import assert_fails, ended, run

PAIR = ("xml", "bin")


def pairs(*names: str) -> list[str]:
    """The files of an output folder with the pairs of these names and the state file."""
    return sorted([".mo-loop.json", *(f"{name}.{kind}" for name in names for kind in PAIR)])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Models in folders, and a file that is not a model."""
    for number, name in enumerate(("one", "sub/two", "sub/deep/three", "other/four", ".hidden/five", "sub/._six")):
        good(tmp_path / "models" / f"{name}.onnx", number)
    (tmp_path / "models" / "README.txt").write_text("no model")
    return tmp_path


# -- what is converted, and where to


def test_output_folders_mirror_input_folders(tree: Path) -> None:
    done = ended(batch("models", "-o", "out", cwd=tree))
    assert files_in(tree / "out") == pairs("one", "sub/two", "sub/deep/three", "other/four")
    assert done.stdout == f"out: 4 models: 4 converted, {done.stdout.split(', ')[-1]}"


def test_batch_writes_what_convert_writes(tree: Path) -> None:
    assert batch("models", "-o", "out", cwd=tree).returncode == 0
    assert run("models/sub/two.onnx", "-o", "single/two.xml", cwd=tree).returncode == 0
    for kind in PAIR:
        assert (tree / f"out/sub/two.{kind}").read_bytes() == (tree / f"single/two.{kind}").read_bytes()


@pytest.mark.parametrize(("given", "expected"), [
    (["models/s*/**/*.onnx"], ["sub/two", "sub/deep/three"]),
    (["models/sub/two.onnx", "models/other"], ["sub/two", "other/four"]),
    (["models/sub/._six.onnx"], ["._six"]),
], ids=lambda value: " ".join(value))
def test_files_folders_and_globs(given: list[str], expected: list[str], tree: Path) -> None:
    ended(batch(*given, "-o", "out", "-j", 2, cwd=tree))
    assert files_in(tree / "out") == pairs(*expected)


def test_a_plan_converts_nothing(tree: Path) -> None:
    arguments = ("models", "-o", "out", "--plan", "-j", 2)
    done = batch(*arguments, cwd=tree)
    assert done.returncode == 0 and not (tree / "out").exists()
    first, time, memory = done.stdout.splitlines()
    assert first.startswith("out: 4 models, ") and "0 up to date, 4 to convert" in first
    assert time.endswith("with 2 workers (by size; --baseline REPORT improves it)")
    assert memory.startswith("memory  median ") and ", at most " in memory
    batch("models", "-o", "out", "--report", "report.json", cwd=tree)
    assert "4 up to date, 0 to convert" in batch(*arguments, cwd=tree).stdout
    good(tree / "models/one.onnx", 9)
    done = batch(*arguments, "--baseline", "report.json", cwd=tree)
    assert "3 up to date, 1 to convert" in done.stdout and "(1 of 1 by the earlier report)" in done.stdout
    assert "0 up to date, 4 to convert" in batch(*arguments, "--force", cwd=tree).stdout


def test_a_file_that_lists_models(tree: Path) -> None:
    (tree / "list.txt").write_text("\ufeff# models of today\n\n  models/one.onnx  \nmodels/s*/*.onnx\n# end\n", "utf-8")
    assert batch("@list.txt", "models/other", "-o", "out", cwd=tree).returncode == 0
    assert files_in(tree / "out") == pairs("one", "sub/two", "other/four")


def test_a_list_from_standard_input(tree: Path) -> None:
    assert batch("@-", "-o", "out", cwd=tree, typed="models/one.onnx\n#models/sub\n").returncode == 0
    assert files_in(tree / "out") == pairs("one")


def test_brackets_in_a_file_name_are_not_a_pattern(tmp_path: Path) -> None:
    good(tmp_path / "a[1].onnx")
    assert batch("a[1].onnx", "-o", "out", cwd=tmp_path).returncode == 0
    assert files_in(tmp_path / "out") == pairs("a[1]")


@pytest.mark.skipif(sys.platform != "linux", reason="names that are not UTF-8")
def test_names_of_any_bytes(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    model = good(tmp_path / "model.onnx").read_bytes()
    os.remove(tmp_path / "model.onnx")
    names = [b"a b", b"line\nbreak", b"\xff\xfe", "größe".encode(), b"-x", b"esc\x1b[31m", b"[red]"]
    for name in names:
        Path(os.fsdecode(folder + b"/in/" + name + b".onnx")).parent.mkdir(exist_ok=True)
        Path(os.fsdecode(folder + b"/in/" + name + b".onnx")).write_bytes(model)
    reports = ("--report", "r.json", "--junit", "j.xml", "--summary", "s.md")
    done = ended(batch("in", "-o", "out", *reports, cwd=tmp_path))
    found = {os.fsencode(path.name) for path in (tmp_path / "out").glob("*.xml")}
    assert found == {name + b".xml" for name in names}
    assert "\x1b" not in done.stderr and done.stderr.count("\n") == len(names)
    assert "\x1b" not in (tmp_path / "j.xml").read_text() + (tmp_path / "s.md").read_text()
    assert set(statuses(tmp_path / "r.json").values()) == {"converted"}


# -- what is refused before anything runs


@pytest.mark.parametrize(("given", "said"), [
    (["nothing.onnx"], "nothing.onnx does not exist"),
    (["models/*.pb"], "there is no .onnx file in models/*.pb"),
    (["models/one.onnx", "empty"], "there is no .onnx file in empty"),
    (["@no.txt"], "the list no.txt cannot be read"), (["@empty.txt"], "there is no model"),
    (["@nested.txt"], "names the list @empty.txt"),
    (["models/one.onnx", "models/one.pb"], "one.onnx and one.pb would both be written to out/one.xml"),
    (["clash"], "needs a folder in the place of an output"), (["pipe"], "neither a file nor a folder"),
    (["models", "--timeout", "0"], "--timeout"), (["models", "--memory", "lots"], "'lots' is not a size"),
    (["models", "--memory", f"{'9' * 400}G"], "is not a size"),
    (["models", "-j", "0"], "--jobs"),
    (["models", "--extension", "no.py"], "the extension no.py cannot be read"),
    (["models", "--disable-pass", "NoSuchPass"], "NoSuchPass"),
    (["models", "--mean-values", "[1,red]"], "red"),
    (["models", "--layout", "nchw", "--source-layout", "nhwc"], "--layout cannot be combined"),
    ([], "PATH"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_bad_usage(given: list[str], said: str, tree: Path) -> None:
    (tree / "empty").mkdir()
    (tree / "empty.txt").write_text("# nothing\n")
    (tree / "nested.txt").write_text("@empty.txt\n")
    os.mkfifo(tree / "pipe")
    good(tree / "models" / "one.pb")
    good(tree / "clash" / "a.onnx")
    good(tree / "clash" / "a.xml" / "b.onnx")
    done = batch(*given, "-o", "out", cwd=tree)
    assert_fails(done, said)
    assert not (tree / "out").exists()


def test_what_is_no_file_fails_and_the_others_are_converted(tree: Path) -> None:
    """Nobody writes to the pipe, and the device has no end."""
    os.mkfifo(tree / "models" / "pipe.onnx")
    (tree / "models" / "device.onnx").symlink_to("/dev/zero")
    done = ended(batch("models", "-o", "out", cwd=tree), 1)
    assert "pipe.onnx is a pipe, not a model" in done.stderr and "device.onnx is a device, not" in done.stderr
    assert files_in(tree / "out") == pairs("one", "sub/two", "sub/deep/three", "other/four")


def test_standard_output_is_not_a_folder(tree: Path) -> None:
    done = ended(batch("models", "-o", "-", cwd=tree), 2)
    assert "-o - is not possible" in done.stderr and "help:  name a folder: -o ir" in done.stderr
    assert not (tree / "-").exists()


def test_an_output_folder_that_is_a_file(tree: Path) -> None:
    (tree / "out").write_text("kept")
    done = batch("models", "-o", "out", cwd=tree)
    assert_fails(done)
    assert batch("models", "-o", "out/below", cwd=tree).returncode == 2 and (tree / "out").read_text() == "kept"


def test_pairs_beside_the_models_do_not_replace_external_data(tmp_path: Path) -> None:
    """The .bin of one model would replace the weights of another."""
    good(tmp_path / "a.onnx")
    (tmp_path / "a.bin").write_bytes(b"weights")
    assert "can be the weights of one" in ended(batch(".", "-o", ".", cwd=tmp_path), 2).stderr
    assert (tmp_path / "a.bin").read_bytes() == b"weights"
    os.remove(tmp_path / "a.bin")
    assert batch(".", "-o", ".", cwd=tmp_path).returncode == 0
    assert batch(".", "-o", ".", "--force", cwd=tmp_path).returncode == 0


# -- flags


def test_options_of_conversion_apply(tmp_path: Path) -> None:

    from tests.harness import floats, with_weights

    from .batches import saved

    model = with_weights("m (float[1,64] x) => (float[1,64] y) { y = MatMul (x, w) }", w=floats(64, 64))
    saved(model, tmp_path / "in" / "m.onnx")
    assert batch("in", "-o", "full", cwd=tmp_path).returncode == 0
    assert batch("in", "-o", "half", "--compress-to-fp16", cwd=tmp_path).returncode == 0
    full, half = ((tmp_path / name / "m.bin").stat().st_size for name in ("full", "half"))
    assert full >= 64 * 64 * 4 and half < 0.52 * full


def test_which_passes_run(tmp_path: Path) -> None:
    good(tmp_path / "m.onnx")
    done = ended(batch("m.onnx", "-o", "out", "--disable-pass", "GuardTripCounts", cwd=tmp_path))
    assert "GuardTripCounts did not run" in done.stderr
    whole = batch("m.onnx", "-o", "whole", cwd=tmp_path)
    assert whole.returncode == 0 and (tmp_path / "out/m.xml").read_bytes() != (tmp_path / "whole/m.xml").read_bytes()


def test_other_models_are_converted_after_a_failure(tree: Path) -> None:
    refused(tree / "models" / "odd.onnx")
    (tree / "models" / "text.onnx").write_text("no model at all")
    done = batch("models", "-o", "out", "--report", "r.json", "--keep-going", cwd=tree)
    assert done.returncode == 1 and files_in(tree / "out") == pairs("one", "sub/two", "sub/deep/three", "other/four")
    assert "failed odd.onnx: ML302: " in done.stderr and "failed text.onnx: ML214: " in done.stderr
    assert "6 models: 4 converted, 2 failed" in done.stdout and "Traceback" not in done.stderr
    codes = {each["name"]: each["exit_code"] for each in read(tree / "r.json")["models"]}
    assert (codes["odd.onnx"], codes["text.onnx"], codes["one.onnx"]) == (3, 2, 0)


def test_fail_fast_starts_no_other_model(tmp_path: Path) -> None:
    refused(tmp_path / "in" / "a.onnx")
    for number in range(5):
        good(tmp_path / "in" / f"b{number}.onnx", number)
    ended(batch("in", "-o", "out", "-j", 1, "--fail-fast", "--report", "r.json", cwd=tmp_path), 1)
    found = statuses(tmp_path / "r.json")
    assert found.pop("a.onnx") == "failed"
    assert list(found.values()).count("converted") <= 1 and "cancelled" in found.values()
    assert read(tmp_path / "r.json")["totals"]["cancelled"] == list(found.values()).count("cancelled")


def test_quiet(tmp_path: Path) -> None:
    good(tmp_path / "a.onnx")
    done = batch("a.onnx", "-o", "out", "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    refused(tmp_path / "b.onnx")
    done = batch("*.onnx", "-o", "out", "-q", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("failed b.onnx: ML302: ")


def test_one_line_per_model_if_stderr_is_not_a_terminal(tree: Path) -> None:
    done = batch("models", "-o", "out", cwd=tree)
    lines = done.stderr.splitlines()
    assert [line[:5] for line in lines] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]
    assert all(" converted " in line for line in lines)
    assert all(" up to date " in line for line in batch("models", "-o", "out", cwd=tree).stderr.splitlines())


def test_long_errors_are_cut_on_the_screen(tmp_path: Path) -> None:
    from tests.harness import parsed

    from .batches import saved

    nodes = " ".join(f"y{number} = Unheard{number} (x)" for number in range(9))
    outputs = ", ".join(f"float[3] y{number}" for number in range(9))
    saved(parsed(f"m (float[3] x) => ({outputs}) {{ {nodes} }}"), tmp_path / "m.onnx")
    done = batch("m.onnx", "-o", "out", "--report", "r.json", cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.count("\n") <= 8 and "more lines" in done.stderr
    (model,) = read(tmp_path / "r.json")["models"]
    assert len(model["errors"]) == 9


def test_an_option_that_does_not_concern_a_model(tmp_path: Path) -> None:
    """It is an error of convert; the other models of a batch may need it."""
    from tests.harness import parsed

    from .batches import saved

    state = "main (float[2] x, float[2] h0) => (float[2] y, float[2] hN) { hN = Add (x, h0) y = Neg (hN) }"
    saved(parsed(state), tmp_path / "in" / "state.onnx")
    saved(parsed("main (float[2] x) => (float[2] y) { y = Neg (x) }"), tmp_path / "in" / "plain.onnx")
    done = ended(batch("in", "-o", "out", "--stateful", cwd=tmp_path))
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert "--stateful has no effect: no input is continued by an output" in line and "plain.onnx" in line
    assert "ReadValue" in (tmp_path / "out" / "state.xml").read_text()


def test_equal_warnings_are_printed_once_with_their_models(tmp_path: Path) -> None:
    from tests.harness import parsed

    from .batches import GOOD, saved

    text = GOOD.format(name="m", number=1).replace("float[3] s", "float[3] x").replace("Mul (s,", "Mul (x,")
    for name in ("a", "b", "c"):
        saved(parsed(text), tmp_path / f"{name}.onnx")
    done = ended(batch("*.onnx", "-o", "out", "--report", "r.json", cwd=tmp_path))
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert line.endswith("'x' hides an outer value of that name (a.onnx and 2 more)")
    assert done.stderr.count(", 1 warning\n") == 3
    again = batch("*.onnx", "-o", "out", "--report", "again.json", cwd=tmp_path)
    assert line in again.stderr, "what is up to date still has its warnings"
    assert read(tmp_path / "again.json")["totals"]["warnings"] == 3


def test_sizes_for_the_memory_limit(tmp_path: Path) -> None:
    good(tmp_path / "m.onnx")
    for text, size in (("4G", 4 << 30), ("1.5gib", 3 << 29), ("3000MB", 3000 << 20), ("4294967296", 4 << 30)):
        ended(batch("m.onnx", "-o", "out", "--force", "--memory", text, "--report", "r.json", cwd=tmp_path))
        assert read(tmp_path / "r.json")["memory"] == size


@pytest.mark.skipif(sys.platform != "linux", reason="memory limits")
def test_memory_too_small_for_a_worker(tmp_path: Path) -> None:
    good(tmp_path / "m.onnx")
    done = batch("m.onnx", "-o", "out", "--memory", "1M", cwd=tmp_path)
    assert_fails(done, "a larger --memory")
    assert files_in(tmp_path / "out") == []


def test_an_extension_that_exits_fails_the_model(tmp_path: Path) -> None:
    good(tmp_path / "m.onnx")
    (tmp_path / "e.py").write_text(
        trouble(tmp_path).read_text().replace('if graph.name == "hang"', "raise SystemExit(3)\n        if 0")
    )
    done = batch("m.onnx", "-o", "out", "--extension", "e.py", "--report", "r.json", cwd=tmp_path)
    assert done.returncode == 1 and statuses(tmp_path / "r.json") == {"m.onnx": "failed"}
    assert "SystemExit" in done.stderr
