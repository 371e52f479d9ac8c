"""The output of `mo-loop convert`: the summary, tables, warnings, errors and progress."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from onnx import numpy_helper

from mo_loop.api import convert_model, save_model
from mo_loop.cli.conversion_summary import MOST_ROWS, SLOWEST, Progress, TimeTable, _weights
from mo_loop.cli.output import safe, table
from mo_loop.printable import aligned, sized
from mo_loop.transforms.manager import Phase, Step
from tests.cli.commands import PLAIN, PROGRAM, PYTORCH, body, convert, ended, run, saved
from tests.harness import floats, parsed, with_weights

# -- The output of `mo-loop convert`: the summary, warnings, errors and progress


FLOW = """
main (float[3] x, int64 n) => (float[3] y) <int64 three = {3}, bool yes = {1}> {
  [known] a = Loop (three, "", x) <body = one (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
    d = Identity (c) t = Neg (s) }>
  [open] b = Loop (n, "", a) <body = two (int64 i2, bool c2, float[3] s2) => (bool d2, float[3] t2) {
    d2 = Identity (c2) t2 = Abs (s2) }>
  [settled] y = If (yes) <then_branch = p () => (float[3] q) { q = Exp (b) },
    else_branch = r () => (float[3] u) { [inner] u = Loop (n, "", b) <
      body = three_ (int64 i3, bool c3, float[3] s3) => (bool d3, float[3] t3) { d3 = Identity (c3) t3 = Neg (s3) }> }>
  [unread] z = Loop (n, "", x) <body = four (int64 i4, bool c4, float[3] s4) => (bool d4, float[3] t4) {
    d4 = Identity (c4) t4 = Neg (s4) }> }"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out" / "m.xml"


def as_json(*arguments: object) -> dict[str, Any]:
    done = ended(convert(*arguments, "--format", "json"))
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class TestControlFlow:
    def became(self, found: dict[str, Any]) -> dict[tuple[str, str], int]:
        return {(row["operator"], row["became"]): row["count"] for row in found["control_flow"]}

    @pytest.mark.keeps_loops
    def test_the_summary_counts_what_loops_and_branches_became(self, tmp_path: Path, target: Path) -> None:
        model = saved(parsed(FLOW), tmp_path)
        assert self.became(as_json(model, "-o", target, "--unroll", 4)) == {
            ("Loop", "unrolled ×3"): 1, ("Loop", "Loop"): 1, ("If", "decided"): 1, ("Loop", "not needed"): 2,
        }
        assert "2 Loop -> Loop, 1 If decided, 2 Loop not needed" in convert(model, "-o", target).stdout

    @pytest.mark.parametrize(("model", "wanted"), [
        ("loop_if_loop", {("Loop", "Loop"): 2, ("If", "If"): 1}), ("scan_dynamo", {("Scan", "Loop"): 1}),
        ("for_fixed", None), ("cnn", {}),
    ])
    @pytest.mark.keeps_loops
    def test_real_models(self, model: str, wanted: dict[tuple[str, str], int] | None, target: Path) -> None:
        found = self.became(as_json(PYTORCH / f"{model}.onnx", "-o", target, "--static"))  # no If of two forms
        if wanted is not None:
            assert found == wanted
        layers = re.findall(r'type="(Loop|TensorIterator|If)"', target.read_text())
        assert {became for _, became in found if became[0].isupper()} == set(layers)


class TestNumbers:
    def test_nodes_and_bytes_of_all_scopes(self, tmp_path: Path, target: Path) -> None:
        made = parsed(body("u = MatMul (s, w2) t = Tanh (u)"))
        made.graph.node[0].attribute[0].g.initializer.append(numpy_helper.from_array(floats(3, 3), "w2"))
        found = as_json(saved(made, tmp_path), "-o", target)
        assert found["operations"]["before"] == 4  # Loop, Identity, MatMul, Tanh
        layers = re.findall(r'<layer id="\d+" name="[^"]*" type="(\w+)"', target.read_text())
        assert found["operations"]["after"] == sum(each not in ("Const", "Parameter", "Result") for each in layers)
        assert found["weights"]["before"] == {"f32": 36} and found["weights"]["after"]["f32"] == 36
        for name, path in (("xml", target), ("bin", target.with_suffix(".bin"))):
            assert found[name] == {"path": str(path), "bytes": path.stat().st_size}
        assert found["inputs"] == [{"name": "x", "type": "f32[3]"}, {"name": "n", "type": "i64[]"}]
        assert found["version"] == 1 and found["ok"] is True and found["warnings"] == []
        assert sum(found["phases"].values()) <= found["seconds"]
        assert {"reading", "translating", "passes", "checking", "writing"} <= set(found["phases"])

    def test_sizes_that_may_change(self, plain: Path, tmp_path: Path, target: Path) -> None:
        """One line for a model whose sizes may all change; the restricted inputs of another one, and the number of
        those that are too many."""
        rows = convert(plain, "-o", target).stdout.splitlines()
        assert [row for row in rows if "may change" in row] == ["  sizes         all may change"]
        names = [f"x{number}" for number in range(MOST_ROWS + 2)]
        inputs = ", ".join(f"float[6,2] {name}" for name in names)
        pieces = " ".join(f"p{name} = SplitToSequence <axis = 0> ({name}) y{name} = ConcatFromSequence <axis = 0> "
                          f"(p{name})" for name in names)
        outputs = ", ".join(f"y{name}" for name in names)
        source = saved(parsed(f"main ({inputs}, float[3] z) => ({outputs}, u) {{ {pieces} u = Neg (z) }}"), tmp_path)
        rows = [row.strip() for row in convert(source, "-o", target).stdout.splitlines()]
        first = rows.index("sizes         x0[6,?]: ? may change, 6 is checked")
        assert rows[first + 1] == "x1[6,?]: ? may change, 6 is checked"
        assert rows[first + MOST_ROWS] == "and 3 more (--format json, mo-loop inspect)"
        assert as_json(source, "-o", target)["sizes"] == {**dict.fromkeys(names, "6,?"), "z": "?"}
        assert set(as_json(source, "-o", target, "--static")["sizes"].values()) == {"6,2", "3"}

    def test_sizes(self) -> None:
        assert [sized(n) for n in (0, 999, 1000, 999_949, 999_950, 4_200_000, 3 * 10**9)] == [
            "0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "4.2 MB", "3.0 GB",
        ]

    def test_the_default_is_lossless_and_the_summary_says_so(self, tmp_path: Path, target: Path) -> None:
        made = with_weights("main (float[N,64] x) => (float[N,64] y) { y = MatMul (x, w) }", w=floats(64, 64))
        done = convert(saved(made, tmp_path), "-o", target)
        assert "16.4 kB -> 16.4 kB, unchanged (f32 stays f32)" in done.stdout


    def test_weights_that_grow_are_not_unchanged(self) -> None:
        found = {"before": {"i8": 4_000_000}, "after": {"f32": 16_000_000}, "compressed": False}
        assert _weights(found, 16_000_000) == "4.0 MB -> 16.0 MB, larger"
        found = {"before": {"f32": 4_000_000, "i8": 4_000_000}, "after": {"f32": 20_000_000}, "compressed": False}
        assert _weights(found, 20_000_000) == "8.0 MB -> 20.0 MB, larger (f32 stays f32)"


class TestStreams:

    def test_verbose(self, plain: Path, target: Path) -> None:
        done = convert(plain, "-o", target, "-v")
        titles, *rows = done.stderr.splitlines()
        assert titles.split() == ["s", "share", "nodes", "memory"]
        parts = [row for row in rows if not row.startswith(" ")]
        assert [row.split()[0] for row in parts] == [
            "start-up", "reading", "translating", "passes", "checking", "writing", "other", "all",
        ]
        times = [float(row.split()[1]) for row in parts]
        assert sum(times[:-1]) == pytest.approx(times[-1], abs=0.01)
        inner = [row.split() for row in rows if row.startswith(" ")]
        assert len(inner) == SLOWEST + 1 and inner[-1][1] == "others"
        # The time between two passes belongs to their phase alone; on a machine with other work it is long.
        assert float(inner[-1][2]) + sum(float(row[1]) for row in inner[:-1]) <= times[3] + 0.01
        assert all(row.endswith(" MB") for row in parts if not row.startswith("other"))
        assert done.stdout.startswith(str(target))

    def test_verbose_shows_the_nodes_before_and_after_a_pass(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("mo_loop.cli.conversion_summary.SLOWEST", 1000)
        times, steps = TimeTable(), list[Step | Phase]()
        convert_model(parsed(FLOW), observers=[times, steps.append])
        shown = {(name.strip(), nodes) for name, _, _, nodes, *_ in times.lines(1.0)}
        numbers = {(each.name, each.nodes_before, each.nodes_after) for each in steps if isinstance(each, Step)}
        changed = {(name, f"{before} -> {after}") for name, before, after in numbers if before != after}
        assert changed and changed <= shown

    def test_verbose_shows_the_table_after_an_error(self, plain: Path, target: Path) -> None:
        done = convert(plain, "-o", target, "-v", "--output", "qq")
        table, error, _ = done.stderr.partition("error: ")
        assert [row.split()[0] for row in table.splitlines()] == ["s", "start-up", "reading", "other", "all"]
        assert error and done.returncode == 2

    def test_verbose_where_the_system_does_not_tell_the_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("mo_loop.cli.conversion_summary.peak_memory", lambda: 0)
        times = TimeTable()
        convert_model(parsed(PLAIN), observers=[times])
        assert {len(line) for line in times.lines(1.0)} == {4} and times.lines(1.0)[0] == ("", "s", "share", "nodes")

    def test_a_stdout_that_cannot_encode_it(self, tmp_path: Path, target: Path) -> None:
        model = saved(parsed(FLOW), tmp_path)
        done = run(model, "-o", target, "--unroll", 4, env={**os.environ, "PYTHONIOENCODING": "ascii"})
        assert done.returncode == 0 and "unrolled" in done.stdout


SLOW = """
import time
from mo_loop.transforms.function_pass import FunctionPass

class Slow(FunctionPass):
    def run_on_graph(self, graph):
        time.sleep(1.6)

def register(extensions):
    extensions.add_pass(Slow, at="start")
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
class TestTerminal:
    def on_terminal(self, *arguments: object, **environment: str) -> tuple[int, str]:
        """The exit code and the output of both streams on a terminal."""
        import pty

        ours, theirs = pty.openpty()
        try:
            command = [str(PROGRAM), "convert", *map(str, arguments)]
            known = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
            settings = {**known, "TERM": "xterm", **environment}
            process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=settings)
            os.close(theirs)
            shown = b""
            while True:
                try:
                    piece = os.read(ours, 4096)
                except OSError:  # the command has ended
                    break
                if not piece:
                    break
                shown += piece
            return process.wait(timeout=60), shown.decode()
        finally:
            os.close(ours)

    def test_progress_is_shown_and_erased(self, plain: Path, target: Path, tmp_path: Path) -> None:
        (tmp_path / "slow.py").write_text(SLOW)
        code, shown = self.on_terminal(plain, "-o", target, "--extension", tmp_path / "slow.py")
        assert code == 0
        line, _, rest = shown.rpartition("\x1b[2K")  # the last line is erased
        assert re.search(r"passes \d s", line)
        assert "\x1b[?25h" in shown[shown.rindex("\x1b[?25l") :], "the cursor is shown again"
        assert "operations" in rest and not re.search(r"passes \d s", rest)

    def test_no_progress_with_quiet_or_in_a_pipe(self, plain: Path, target: Path, tmp_path: Path) -> None:
        (tmp_path / "slow.py").write_text(SLOW)
        flags = (plain, "-o", target, "--extension", tmp_path / "slow.py")
        assert self.on_terminal(*flags, "-q")[1] == "" and convert(*flags).stderr == ""

    def test_short_conversions_show_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        with Progress(after=600) as progress:
            assert progress._thread.is_alive()
        assert stream.getvalue() == "" and not progress._thread.is_alive()

    def test_colours(self, plain: Path, target: Path) -> None:
        colour = re.compile(r"\x1b\[[\d;]*m")  # a slow machine shows progress, which begins with another sequence
        wrong = (plain, "-o", target, "--output", "qq")
        assert "\x1b[31m" in self.on_terminal(*wrong)[1]
        assert not colour.search(self.on_terminal(*wrong, NO_COLOR="1")[1])
        assert "\x1b[1m" in self.on_terminal(plain, "-o", target)[1]
        assert not colour.search(self.on_terminal(plain, "-o", target, NO_COLOR="1")[1])
        assert "\x1b[" not in convert(plain, "-o", target).stdout


def test_bytes_written_so_far(tmp_path: Path) -> None:
    """The progress line while weights are copied."""
    made = with_weights("main (float[N,64] x) => (float[N,64] y) { y = MatMul (x, w) }", w=floats(64, 64))
    progress = Progress()
    assert progress.line(0) == "starting 0 s"
    model = convert_model(made, observers=[progress])
    assert progress.line(2) == "checking 2 s"
    save_model(model, tmp_path / "m.xml", observers=[progress])
    assert re.fullmatch(r"writing 3 s, 16\.4 kB of 16\.4 kB, [\d.]+ [kMG]?B/s", progress.line(3))


# -- Tables: whole lines in a pipe, the width of the terminal on a terminal


LONG = "some words that are longer than the terminal is wide"
ROWS = [("name", "count", "text"), ("first", "7", LONG), ("b", "12", "")]


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert aligned(ROWS, right=(1,), indent="  ").splitlines() == [
        "  name   count  text", "  first      7  some words that are longer than the terminal is wide",
        "  b         12",
    ]


def test_a_pipe_gets_one_whole_line_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", "30")
    assert table(ROWS, right=(1,)) == aligned(ROWS, right=(1,))


@pytest.mark.parametrize("no_colour", ["", "1"])
def test_a_terminal_gets_its_width_and_every_word(monkeypatch: pytest.MonkeyPatch, no_colour: str) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    for name, value in (("COLUMNS", "30"), ("TERM", "xterm"), ("NO_COLOR", no_colour)):
        monkeypatch.setenv(name, value)
    shown = safe(table(ROWS, right=(1,), indent="  "))
    assert ("\x1b[" in shown) is not bool(no_colour)
    plain = [line.rstrip() for line in re.sub(r"\x1b\[\d*m", "", shown).splitlines()]
    assert plain[0] == "  name   count  text" and plain[1].startswith("  first      7  some words")
    assert all(len(line) <= 30 for line in plain)
    assert " ".join(" ".join(line[16:] for line in plain[1:-1]).split()) == LONG


def test_a_terminal_gets_a_table_without_titles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert table([("x", "f32[3]")], indent="  ", heads=False) == "  x  f32[3]"


@pytest.mark.parametrize("arguments", [("convert", "--help"), ("check", "--codes"), ("ops", "Relu")])
def test_a_pipe_needs_no_rich(arguments: tuple[str, ...]) -> None:
    program = (
        "import sys; from mo_loop.cli import main; main(sys.argv[1:], standalone_mode=False); "
        "sys.exit(3 if 'rich' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
