"""The whole command: the shortcut of convert, misspelt words, the version, --help, and completion."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from mo_loop import __version__, extensions
from mo_loop.cli import COMMANDS, SHELLS, main
from mo_loop.cli.flag_options import WHOLE, FlagOption, GroupedCommand, flags, made
from mo_loop.revision import commit
from mo_loop.support.flags import CONVERSION, GROUPS, RUN, flag
from tests.cli.commands import PLAIN, saved
from tests.harness import parsed

# -- The whole command: the shortcut of convert, misspelt words, the version, and the groups and width of --help


GROUPED = ("convert", "batch", "check", "verify", "reduce")


def mo_loop(*arguments: object, **settings: str | None) -> Result:
    return CliRunner(env=settings).invoke(main, [*map(str, arguments)])


def options_of(name: str) -> dict[str, click.Option]:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return {max(each.opts, key=len): each for each in command.params if isinstance(each, click.Option)}


class TestShortcut:
    def test_a_model_without_a_command_is_converted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        saved(parsed(PLAIN), tmp_path)
        saved(parsed(PLAIN), tmp_path, "plain")
        monkeypatch.chdir(tmp_path)
        for number, source in enumerate(("model.onnx", "plain", tmp_path / "model.onnx")):
            done = mo_loop(source, "-o", f"{number}.xml", "--compress-to-fp16")
            assert done.exit_code == 0, done.stderr
            assert (tmp_path / f"{number}.xml").is_file()


@pytest.mark.parametrize("arguments", [("-V",), ("--version",), ("convert", "-V"), ("convert", "--version")])
def test_version(arguments: tuple[str, ...]) -> None:
    assert mo_loop(*arguments).stdout == f"mo-loop, version {__version__} (commit {commit()})\n"


def test_the_short_help_has_the_options_that_people_use() -> None:
    text = mo_loop("convert", "--help").stdout
    shown = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", text.partition("Flags of mo")[0], re.MULTILINE))
    assert shown == {
        "--output-model", "--input", "--output", "--compress-to-fp16", "--layout", "--mean-values", "--quantization",
        "--target", "--device", "--dump", "--stateful", "--static",
        "--format", "--report", "--quiet", "--verbose", "--version", "--help-all", "--help",
    }
    assert "RANGE" not in text and "[x>" not in mo_loop("verify", "--help-all").stdout


@pytest.mark.parametrize(("variables", "is_coloured"), [
    ({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "0"}, False),
    ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
])
def test_colours_where_there_is_no_terminal(
    variables: dict[str, str], is_coloured: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = mo_loop("check", saved(parsed(PLAIN), tmp_path))
    assert ("\x1b[" in done.stdout) == is_coloured
    done = mo_loop("check", "--zzz")
    assert ("\x1b[" in done.stderr) == is_coloured


def test_errors_as_json_are_those_of_a_batch(tmp_path: Path) -> None:
    """All errors with their places; `error` is the first of them."""
    source = saved(parsed("main (float[2] x) => (float[2] y) { [a] t = odd.A (x) [b] u = odd.A (t) [c] y = odd.B (u) }",
                          odd=1), tmp_path)
    done = mo_loop("convert", source, "-o", tmp_path / "m.xml", "--format", "json")
    found = json.loads(done.stdout)
    report = tmp_path / "report.json"
    mo_loop("batch", source, "-o", tmp_path / "out", "--report", report)
    assert found["errors"] == json.loads(report.read_text())["models"][0]["errors"]
    assert [(each["code"], each["where"]) for each in found["errors"]] == [("ML302", ["a", "b"]), ("ML302", ["c"])]
    assert (found["ok"], found["exit_code"], done.exit_code) == (False, 3, 3)
    assert found["error"] == {**found["errors"][0], "where": "a"}


def help_of(name: str) -> str:
    """The output of --help-all in a process of its own, because a CliRunner sets a width."""
    command = main.get_command(click.Context(main), name)
    assert command is not None
    parent = click.Context(main, info_name="mo-loop", **main.context_settings)
    context = click.Context(command, info_name=name, parent=parent)
    context.meta[WHOLE] = True
    return command.get_help(context)


class TestHelp:
    @pytest.mark.parametrize("name", GROUPED)
    def test_every_option_is_in_a_group(self, name: str) -> None:
        assert "Other options" not in help_of(name)
        titles = [line.removesuffix(":") for line in help_of(name).splitlines() if line.removesuffix(":") in GROUPS]
        groups = {getattr(each, "group", None) for each in options_of(name).values()}
        assert titles == [title for title in GROUPS if title in groups]

    @pytest.mark.parametrize("name", COMMANDS)
    def test_the_short_help_fits_two_screens(self, name: str) -> None:
        short = CliRunner().invoke(main, [name, "--help"], terminal_width=80).output.splitlines()
        assert len(short) <= 85
        whole = CliRunner().invoke(main, ["help", name]).output
        assert whole.splitlines()[0].startswith("Usage: ") and f" {name}" in whole

    def test_the_first_option_may_be_one_of_convert(self, tmp_path: Path) -> None:
        done = CliRunner().invoke(main, ["--input_model", str(tmp_path / "none.onnx")])
        assert done.exit_code == 2 and "ML210" in done.output

    def test_every_command_has_quiet_and_verbose(self) -> None:
        for name in COMMANDS:
            if name not in ("completion", "help"):
                missing = {"--quiet", "--verbose", "--debug"} - options_of(name).keys()
                assert not missing, f"{name} needs @message_options(): {sorted(missing)}"

    def test_an_option_without_a_group_is_shown_last(self) -> None:
        made = GroupedCommand("made", params=[FlagOption(["--strict"], group=CONVERSION), click.Option(["--new"])])
        shown = made.get_help(click.Context(made)).split()
        assert shown.index("Other") < shown.index("--new") and shown.index("--strict") < shown.index("Other")

    def test_options_stand_by_place_and_then_as_declared(self) -> None:
        @dataclass
        class Asked:
            late: bool = flag(False, "Late.", RUN, place=1)
            first: int | None = flag(None, "First.", RUN, "-f", "--first", metavar="N", least=1)
            second: tuple[str, ...] = flag((), "Second.", RUN, metavar="NAME")
            off: bool = flag(True, "Off.", RUN, "--no-off")

        @click.command(cls=GroupedCommand)
        @flags(Asked, texts={"late": "Later."})
        @click.pass_context
        def command(context: click.Context) -> None:
            click.echo(made(context, Asked))

        run = CliRunner().invoke
        shown = run(command, ["--help-all"]).output
        places = [shown.index(each) for each in ("-f, --first N", "--second NAME", "--no-off", "--late", "Later.")]
        assert places == sorted(places)
        assert run(command, ["-f", "2", "--second", "a", "--second", "b"]).output.endswith(
            "Asked(late=False, first=2, second=('a', 'b'), off=False)\n"
        )
        assert run(command, ["-f", "0"]).exit_code == 2

    def test_the_flags_of_other_tools_are_shown(self) -> None:
        shown = help_of("convert")
        assert "Flags of mo and ovc" in shown and "--input_model" in shown and "--silent" in shown

    @pytest.mark.parametrize("name", GROUPED)
    def test_help_fits_the_terminal(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        widest = {}
        for width in (80, 110, 300):
            monkeypatch.setenv("COLUMNS", str(width))
            widest[width] = max(map(len, help_of(name).splitlines()))
        assert widest[80] <= 80 < widest[110] <= 110 < widest[300] <= 120

    @pytest.mark.parametrize("name", ["convert", "check"])
    def test_examples_with_shell_characters_are_quoted(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "300")
        quoted = " ".join(help_of(name).split()).split('"')
        assert "->" not in "".join(quoted[::2]) and "->" in "".join(quoted[1::2])


STARTED = """
import gc, os, sys, threading
collections = []
gc.callbacks.append(lambda when, info: collections.append(info["generation"]) if "numpy" in sys.modules else None)
from mo_loop.cli import COMMANDS, main
main(sys.argv[1:], standalone_mode=False)
print(collections, os.environ["OPENBLAS_NUM_THREADS"])
"""


class TestStart:
    """The part of a small conversion that is not the conversion."""

    @pytest.mark.parametrize("threads", ["", "3"])
    def test_no_collection_searches_the_imported_modules(self, tmp_path: Path, threads: str) -> None:
        model = saved(parsed(PLAIN), tmp_path)
        environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
        done = subprocess.run(
            [sys.executable, "-c", STARTED, "convert", str(model), "-o", str(tmp_path / "m.xml"), "--quiet"],
            capture_output=True, text=True, timeout=60,
            env=environment | ({"OPENBLAS_NUM_THREADS": threads} if threads else {}),
        )
        assert done.stdout.split() == ["[]", threads or "1"], done.stderr


# -- `mo-loop completion`: the script for a shell, and the answers to the shell


INSTALLED = Path(sys.executable).with_name("mo-loop")


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run([str(INSTALLED), *arguments], capture_output=True, text=True, env=environment, timeout=60)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_calls_the_command(shell: str) -> None:
    assert f"_MO_LOOP_COMPLETE={shell}_complete" in run("completion", shell).stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_accepts_the_script() -> None:
    script = run("completion", "bash").stdout
    found = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stderr) == (0, "")


def test_commands_are_completed() -> None:
    found = run(_MO_LOOP_COMPLETE="bash_complete", COMP_WORDS="mo-loop ", COMP_CWORD="1").stdout.split()
    assert {each.removeprefix("plain,") for each in found} == set(COMMANDS)


def test_options_are_completed() -> None:
    found = run(_MO_LOOP_COMPLETE="bash_complete", COMP_WORDS="mo-loop convert --out", COMP_CWORD="2").stdout.split()
    assert {"plain,--output", "plain,--output-model"} <= set(found)


# -- `mo-loop ops`


def test_operators_of_an_installed_package_are_listed_unless_plugins_are_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Entry:
        name, value = "mine", "package:register"

        def load(self) -> Any:
            return lambda given: given.translates("Thrice", domain="com.example")(lambda x: x * 3)

    monkeypatch.setattr(extensions, "installed", lambda path: (Entry(),))
    (found,) = json.loads(mo_loop("ops", "--how", "extension", "--format", "json").stdout)["operators"]
    assert (found["operator"], "installed package" in found["note"]) == ("Thrice", True)
    assert mo_loop("ops", "Thrice", "--no-plugins").exit_code == 2
