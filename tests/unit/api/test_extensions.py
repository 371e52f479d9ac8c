"""Passes and translators of the user: their places, their forms, and the messages if they are wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.cli import main
from mo_loop.errors import ConversionErrors, ExtensionError, UnsupportedError
from mo_loop.extensions import Extensions, collect_extensions
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.pattern import Match, any_input, wrap_type
from mo_loop.transforms.pipelines import PLACES, default_pipeline
from mo_loop.transforms.rewrite import GraphRewrite, MatcherPass
from mo_loop.transforms.selection import Placed, arranged
from tests import ROOT
from tests.harness import parsed, raised

EXAMPLE = ROOT / "docs" / "extension_example.py"

SCALE = "main (float[N] x) => (float[N] y) { [here] y = com.example.Scale <factor = 3.0> (x) }"
NEG = "main (float[N] x) => (float[N] y) { y = Neg (x) }"


def scale(text: str = SCALE, version: int = 1) -> Any:
    return parsed(text, **{"com.example": version})


def kinds(model: Any, **arguments: Any) -> list[str]:
    """The classes of a converted model's nodes, bodies included, without Parameters, Results and Constants."""
    converted = convert_model(model, **arguments)
    ends = (ops.Parameter, ops.Result, ops.Constant)
    return [type(n).__name__ for g in converted.graph.scopes() for n in g if not isinstance(n, ends)]


class NegToMultiply(MatcherPass):
    """-x  ->  x * -1"""

    x = any_input()
    pattern = wrap_type(ops.Negative, x)

    def matched(self, match: Match) -> bool:
        return self.replace(match, ops.Multiply(match[self.x], -1.0))


class First(FunctionPass):
    """Changes nothing."""

    def run_on_graph(self, graph: Any) -> bool:
        return False


class Second(First):
    """Changes nothing."""


# -- the example of the documentation

NESTED = """
main (float[3] x, float[3] w, int64 n) => (float[3] y) {
  y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
    d = Identity (c) a = com.example.Scale <factor = 0.5> (s)
    b = com.example.Repeat <times = 3, body = inner (float[3] p) => (float[3] q) { e = Sub (p, w) q = Mul (e, e) }> (a)
    g = Sigmoid (b) t = Mul (g, b)
  }> }"""


def test_the_example_on_the_command_line(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(scale(NESTED).SerializeToString())
    target = tmp_path / "model.xml"
    done = CliRunner().invoke(main, ["convert", str(source), "-o", str(target), "--extension", str(EXAMPLE)])
    assert done.exit_code == 0, done.stderr
    assert 'type="Swish"' in target.read_text("utf-8")
    plain = CliRunner().invoke(main, ["convert", str(source), "-o", str(target)])
    assert plain.exit_code == 3 and "com.example::Scale" in plain.stderr and "--extension" in plain.stderr


# -- translators


def test_no_translator_for_an_old_version_or_a_domain_not_imported() -> None:
    def register(extensions: Extensions) -> None:
        extensions.translates("Scale", domain="com.example", since=5)(lambda x, *, factor: x)

    old = raised(ConversionErrors, convert_model, scale(), extensions=register)
    assert "from version 5 on, and the model imports version 1" in str(old)
    missing = raised(ConversionErrors, convert_model, parsed(SCALE), extensions=register)
    assert "does not import the domain" in str(missing)


def test_an_operator_of_onnx_is_overridden_for_one_conversion() -> None:
    def register(extensions: Extensions) -> None:
        extensions.translates("Neg", domain="ai.onnx", since=13)(lambda x: ops.Abs(x))

    model = parsed(NEG)
    assert kinds(model, extensions=register) == ["Abs"] and kinds(model) == ["Negative"]
    assert kinds(parsed(NEG, opset=12), extensions=register) == ["Negative"]


def test_the_later_of_two_translators_holds() -> None:
    first, second = Extensions(), Extensions()
    first.translates("Neg")(lambda x: ops.Abs(x))
    second.translates("Neg")(lambda x: ops.Exp(x))
    assert kinds(parsed(NEG), extensions=[first, second]) == ["Exp"]
    assert kinds(parsed(NEG), extensions=[second, first]) == ["Abs"]


def test_nodes_that_nothing_needs_are_not_translated() -> None:
    def register(extensions: Extensions) -> None:
        extensions.translates("Scale", domain="com.example")(lambda x, *, factor: 1 / 0)

    unused = "main (float[N] x) => (float[N] y) { z = com.example.Scale <factor = 3.0> (x) y = Neg (x) }"
    assert kinds(scale(unused), extensions=register) == ["Negative"]


def test_only_what_nothing_translates_is_listed() -> None:
    two = "main (float[N] x) => (float[N] y) { a = com.example.Scale <factor = 3.0> (x) y = com.example.Odd (a) }"
    found = raised(ConversionErrors, convert_model, scale(two), extensions=EXAMPLE)
    assert len(found.errors) == 1 and "com.example::Odd" in str(found)


def test_a_translator_may_refuse() -> None:
    def refuse(x: Any, *, factor: float) -> Any:
        raise UnsupportedError("factors are not supported")

    def register(extensions: Extensions) -> None:
        extensions.translates("Scale", domain="com.example")(refuse)

    found = raised(ConversionErrors, convert_model, scale(), extensions=register)
    assert found.exit_code == 3 and found.errors[0].where == "here"


def test_attributes_are_held_against_the_signature() -> None:
    """Also if annotations are not text, as without `from __future__ import annotations`."""

    def translator(x, *, factor):  # type: ignore[no-untyped-def]
        return x

    translator.__annotations__["factor"] = int

    def register(extensions: Extensions) -> None:
        extensions.translates("Scale", domain="com.example")(translator)

    with pytest.raises(ConversionErrors, match="'factor' is not of the kind int") as found:
        convert_model(scale(), extensions=register)
    assert f"{__file__}:" in str(found.value)


@pytest.mark.parametrize("header", ["", "from __future__ import annotations\n"])
def test_ranges_and_forms_of_an_extension(header: str, tmp_path: Path) -> None:
    """Whether annotations are text or not."""
    text = (
        "from mo_loop import ops\n"
        "from mo_loop.ops.ranges import AboveZero, Vector\n"
        "def register(extensions):\n"
        "    @extensions.translates('Scale', domain='com.example')\n"
        "    def scale(x: Vector, *, factor: AboveZero):\n"
        "        return x * factor\n"
    )
    file = tmp_path / "scale.py"
    file.write_text(header + text)
    assert kinds(scale(), extensions=[str(file)]) == ["Multiply"]
    negative = "main (float[N] x) => (float[N] y) { y = com.example.Scale <factor = -3.0> (x) }"
    with pytest.raises(ConversionErrors, match=r"the attribute 'factor' is -3\.0, and its range is"):
        convert_model(scale(negative), extensions=[str(file)])
    matrix = "main (float[N, 2] x) => (float[N, 2] y) { y = com.example.Scale <factor = 3.0> (x) }"
    raised(ConversionErrors, convert_model, scale(matrix), extensions=[str(file)], match="must be of rank 1")


def signature_error(function: Any) -> str:
    found = raised(ExtensionError, Extensions().translates("Scale", domain="com.example"), function)
    assert found.code == "ML263"
    return str(found)


def test_wrong_signatures() -> None:
    def keywords(x: Any, **rest: Any) -> Any: ...
    def default(x: Any, y: Any = 3) -> Any: ...
    def flag(x: Any, *, on: bool) -> Any: ...
    def node(x: Any, node: Any) -> Any: ...

    assert "**rest" in signature_error(keywords) and f"{__file__}:" in signature_error(keywords)
    assert "input y has a default" in signature_error(default)
    assert "annotated as bool; wanted is one of int, float" in signature_error(flag)
    assert "keyword-only" in signature_error(node) and "not a function" in signature_error(3)


def test_no_operator() -> None:
    """At once, also if a decorator is written without its arguments."""
    for op, domain, since in (
        ("", "", 1), (raising, "", 1), ("A", None, 1), ("A", "", 0), ("A", "", "1"), ("A", "", True),
    ):
        with pytest.raises(ExtensionError, match="ML263"):
            Extensions().translates(op, domain=domain, since=since)  # type: ignore[arg-type]


def raising(x: Any, *, factor: float) -> Any:
    return {}["gone"]  # type: ignore[var-annotated]


def misusing(x: Any, *, factor: float) -> Any:
    return ops.Softmax(x, axes=factor)


def elsewhere(x: Any, *, factor: float) -> Any:
    return ops.Parameter(graph=type(x.graph)("other"), dtype=x.dtype, shape=()).output


@pytest.mark.parametrize(("translator", "said"), [
    (raising, "raised KeyError: 'gone'"),
    (misusing, "raised ML400: SoftMax has no attribute axes"),
    (elsewhere, "belongs to another graph"),
    (lambda x, *, factor: 3, "returned 3, which is not a value of the graph"),
    (lambda x, *, factor: None, "returned nothing for the output 'y', 1 in all"),
    (lambda x, *, factor: (), "returned nothing for the output 'y', 0 in all"),
])
def test_faulty_translators(translator: Any, said: str) -> None:
    def register(extensions: Extensions) -> None:
        extensions.translates("Scale", domain="com.example")(translator)

    error = raised(ExtensionError, convert_model, scale(), extensions=register)
    assert (error.code, error.exit_code, error.where) == ("ML266", 2, "here")
    assert error.message.startswith("com.example::Scale (opset 1): the translator of Scale of ")
    assert said in error.message and f"{__file__}:" in error.hint


# -- places of passes


def order(*placed: Placed, pipeline: Any = None) -> list[str]:
    return [each.name for each in arranged(default_pipeline() if pipeline is None else pipeline, placed)]


def test_every_place_there_is() -> None:
    names = [each.name for each in default_pipeline()]
    assert order(Placed(First, at="start")) == ["First", *names] and list(PLACES) == ["start", "lowered", "end"]
    lowered = order(Placed(First, at="lowered"))
    assert lowered.index("ScanLowering") < lowered.index("First") < lowered.index("GuardTripCounts")
    end = order(Placed(First, at="end"))
    last = ["First", "IsolateParameters", "CompressWeights", "LowerBarriers", "KeepIntegersPrecise", "WriteSizes",
            "PortRenumbering"]
    assert end[end.index("First") :] == last


def test_order_is_that_of_the_extensions() -> None:
    a, b, c = (type(name, (First,), {}) for name in "ABC")
    pipeline = [a(), b(), c()]
    placed = [Placed(each, **{place: "B"}) for place in ("before", "after") for each in (First, Second)]
    assert order(*placed, pipeline=pipeline) == ["A", "First", "Second", "B", "First", "Second", "C"]
    start = [Placed(First, at="start"), Placed(Second, at="start")]
    assert order(*start)[:2] == ["First", "Second"]
    assert order(start[0], Placed(Second, before="First"))[:2] == ["Second", "First"]


def test_a_pass_that_stands_twice() -> None:
    """`before` is before the first one, `after` is after the last one."""
    pipeline = [First(), Second(), First()]
    third = type("Third", (First,), {})
    assert order(Placed(third, before="First"), pipeline=pipeline) == ["Third", "First", "Second", "First"]
    assert order(Placed(third, after="First"), pipeline=pipeline) == ["First", "Second", "First", "Third"]


def test_a_place_within_a_pass_is_beside_it() -> None:
    pipeline = [GraphRewrite([NegToMultiply()]), Manager([First()])]
    assert order(Placed(Second, before="First"), pipeline=pipeline) == ["GraphRewrite", "Second", "Manager"]
    assert order(Placed(Second, after="NegToMultiply"), pipeline=pipeline) == ["GraphRewrite", "Second", "Manager"]


@pytest.mark.parametrize(("place", "said"), [
    ({"before": "LoopToTi"}, "did you mean 'LoopToTI'?"), ({"after": "Zzzz"}, "transforms/pipelines.py"),
    ({"at": "strat"}, "did you mean 'start'?"), ({"at": "zzzz"}, "the places are start, lowered, end"),
])
def test_no_such_place(place: dict[str, str], said: str) -> None:
    extensions = Extensions("mine")
    extensions.add_pass(First, **place)
    found = raised(ExtensionError, convert_model, parsed(NEG), extensions=extensions)
    assert (found.code, found.exit_code) == ("ML264", 2)
    assert said in found.hint and "mine puts First" in found.message
    assert found.where.startswith(f"{__file__}:")


@pytest.mark.parametrize("place", [{}, {"at": "start", "before": "LoopToTI"}, {"at": 3}, {"before": First()}])
def test_not_one_place(place: dict[str, Any]) -> None:
    raised(ExtensionError, Extensions().add_pass, First, **place, match="does not name one place for First")


@pytest.mark.parametrize("nonsense", ["First", 3, None, int, Match])
def test_no_pass(nonsense: Any) -> None:
    raised(ExtensionError, Extensions().add_pass, nonsense, at="start", match="which is not a pass")


# -- what may be given


@pytest.mark.parametrize("given", [
    NegToMultiply, NegToMultiply(), GraphRewrite([NegToMultiply()]), Manager([First(), NegToMultiply()]),
], ids=["class", "instance", "GraphRewrite", "Manager"])
def test_kinds_of_passes(given: Any) -> None:
    extensions = Extensions()
    extensions.add_pass(given, at="start")
    for _ in range(2):  # an instance can be used again
        assert kinds(parsed(NEG), extensions=extensions) == ["Multiply"]


def test_a_class_is_made_anew_for_every_conversion() -> None:
    made: list[FunctionPass] = []

    class Counting(First):
        def __init__(self) -> None:
            made.append(self)

    extensions = Extensions()
    extensions.add_pass(Counting, at="end")
    for _ in range(2):
        convert_model(parsed(NEG), extensions=extensions)
    assert len(set(made)) == 2


def test_forms_of_extensions(tmp_path: Path) -> None:
    def register(extensions: Extensions) -> None:
        extensions.add_pass(NegToMultiply, at="start")

    module = ModuleType("given")
    module.register = register  # type: ignore[attr-defined]
    file = tmp_path / "given.py"
    file.write_text(f"from {__name__} import NegToMultiply\ndef register(e): e.add_pass(NegToMultiply, at='start')\n")
    whole = Extensions()
    register(whole)
    for form in (register, module, file, str(file), whole, [file], (register, whole)):
        assert kinds(parsed(NEG), extensions=form) == ["Multiply"]
    for form in (None, (), []):
        assert kinds(parsed(NEG), extensions=form) == ["Negative"]
    for nonsense in (3, NegToMultiply, NegToMultiply(), {"a": 1}):
        raised(ExtensionError, convert_model, parsed(NEG), extensions=[nonsense], match=r"ML260.* is not an extension")


def test_a_file_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "@dataclass\nclass Setting:\n    size: int = 3\n"
        "def register(extensions): assert Setting().size == 3\n"
    )
    before = set(sys.modules)
    collect_extensions(file)
    assert set(sys.modules) - before <= {"dataclasses"} and [path.name for path in tmp_path.iterdir()] == ["own.py"]
    file.write_text("def register(extensions): raise ValueError('the second content')\n")
    raised(ExtensionError, collect_extensions, file, match="the second content")


# -- faulty files, as the command line reports them


FAULTY: dict[str, tuple[str | bytes, list[str]]] = {
    "syntax error": ("x = 1\ndef register(:\n", ["ML262", "is not Python", "where: FILE:2"]),
    "an ONNX file": (b"\x08\x0a\x12\x00\x00", ["ML262", "is not Python"]),
    "not UTF-8": (b"x = '\xff\xfe'\n", ["ML262", "is not Python"]),
    "raises": ("x = 1\ny = x / 0\n", ["ML262", "ZeroDivisionError", "FILE:2", "fault is in the extension"]),
    "missing import": ("import nothing_of_that_name\n", ["ML262", "ModuleNotFoundError", "FILE:1"]),
    "exits": ("import sys\nsys.exit(0)\n", ["ML262", "SystemExit", "FILE:2"]),
    "no register": ("x = 1\n", ["ML263", "has no function `register`", "def register(extensions)"]),
    "register is no function": ("register = 3\n", ["ML263", "has no function `register`"]),
    "register without parameter": ("def register(): pass\n", ["ML262", "TypeError"]),
    "register raises": ("def register(e):\n    e.add(3)\n", ["ML262", "AttributeError", "FILE:2"]),
    "registers nonsense": ("def register(e):\n    e.add_pass(3, at='end')\n", ["ML263", "is not a pass", "FILE:2"]),
    "wrong signature": (
        "def f(x, **more): ...\ndef register(e):\n    e.translates('A')(f)\n", ["ML263", "**more", "where: FILE:1"]),
    "unknown place": (
        "from mo_loop.transforms.front.loop_to_ti import LoopToTI as P\n"
        "def register(e):\n    e.add_pass(P, before='LoopTI')\n",
        ["ML264", "'LoopTI'", "did you mean 'LoopToTI'?", "where: FILE:3"]),
}

PASSES: dict[str, tuple[str, str, list[str]]] = {  # base and content of a pass, what is said of it
    "a pass that wants arguments": ("FunctionPass", "def __init__(self, size): ...", ["TypeError"]),
    "a pass that raises": (
        "FunctionPass", "def run_on_graph(self, graph):\n        for node in self.candidates(graph, ops.Negative):\n"
        "            node.nothing", ["AttributeError", "where: y", "FILE:6", "fault is in the extension"]),
    "a pass without run_on_graph": ("FunctionPass", "pass", ["NotImplementedError"]),
    "a matcher without a pattern": ("MatcherPass", "pass", ["registered no matcher"]),
    "a callback that raises": (
        "MatcherPass", "pattern = wrap_type(ops.Negative)\n    def matched(self, match): return match[None]",
        ["KeyError", "where: y", "FILE:5"]),
    "a pass in a Manager that raises": (
        "FunctionPass", "def run_on_graph(self, graph): return 1 / 0", ["ZeroDivisionError", "FILE:4"]),
    "a graph that is not whole": (
        "FunctionPass", "def run_on_graph(self, graph):\n        graph.results.append(graph.results[0])\n"
        "        return True", ["violates its invariants"]),
    "types that do not fit": (
        "FunctionPass", "def run_on_graph(self, graph):\n"
        "        ops.Add(graph.parameters[0], ops.Constant([1, 2], graph=graph))", ["FILE:5"]),
}

for name, (base, content, said) in PASSES.items():
    added = "Manager([P()])" if "Manager" in name else "P"
    text = (
        "from mo_loop import ops\nfrom mo_loop.transforms import FunctionPass, Manager, MatcherPass, wrap_type\n"
        f"class P({base}):\n    {content}\ndef register(e): e.add_pass({added}, at='end')\n"
    )
    FAULTY[name] = text, ["ML265", "the pass P of FILE", *said]


@pytest.mark.parametrize("name", FAULTY)
def test_faulty_files(name: str, tmp_path: Path) -> None:
    content, said = FAULTY[name]
    file = tmp_path / "faulty.py"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = convert_on_command_line(tmp_path, "--extension", str(file))
    assert done.exit_code == 2, done.stderr
    assert done.stderr.startswith("error: ML26") and "Traceback" not in done.stderr
    assert "bug of mo-loop" not in done.stderr
    missing = [each for each in said if each.replace("FILE", str(file)) not in done.stderr]
    assert not missing, done.stderr


def test_no_file(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "gone.py", "does not exist"), (tmp_path, "cannot be read")):
        done = convert_on_command_line(tmp_path, "--extension", str(path))
        assert done.exit_code == 2 and done.stderr.startswith("error: ML261") and said in done.stderr


def test_the_traceback_on_request(tmp_path: Path) -> None:
    file = tmp_path / "faulty.py"
    file.write_text(str(FAULTY["a pass that raises"][0]))
    done = convert_on_command_line(tmp_path, "--extension", str(file), "--debug")
    assert done.exit_code == 2 and f'File "{file}", line 6' in done.stderr


def convert_on_command_line(folder: Path, *arguments: str) -> Any:
    source = folder / "model.onnx"
    source.write_bytes(parsed(NEG).SerializeToString())
    return CliRunner().invoke(main, ["convert", str(source), "-o", str(folder / "model.xml"), *arguments])


def test_a_pass_that_forgets_to_say_that_it_changed_something() -> None:
    """Types are inferred all the same."""

    class Transposing(First):
        def run_on_graph(self, graph: Any) -> bool:
            for node in graph.of(ops.Negative):
                graph.set_input(node, 0, ops.Unsqueeze(node.inputs[0], 0).output)
            return None  # type: ignore[return-value]

    extensions = Extensions()
    extensions.add_pass(Transposing, at="end")
    converted = convert_model(parsed(NEG), extensions=extensions)
    assert str(converted.graph.results[0].value.type) == "f32[1,N]"


# -- installed packages


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Install a package with an entry point."""

    def add(name: str, source: str, value: str | None = None, entry: str = "main") -> None:
        folder = tmp_path / f"path_of_{name}"
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[mo_loop.passes]\n{entry} = {value or f'{name}:register'}\n")
        (folder / f"{name}.py").write_text(source)
        monkeypatch.syspath_prepend(folder)

    return add


PLUGIN = f"from {__name__} import NegToMultiply\ndef register(e): e.add_pass(NegToMultiply, at='start')\n"


def test_an_installed_package_takes_part(install: Callable[..., None], tmp_path: Path) -> None:
    assert kinds(parsed(NEG)) == ["Negative"]
    install("plugin_that_works", PLUGIN)
    assert kinds(parsed(NEG)) == ["Multiply"] and kinds(parsed(NEG), plugins=False) == ["Negative"]
    assert convert_on_command_line(tmp_path).exit_code == 0
    assert 'type="Negative"' not in (tmp_path / "model.xml").read_text("utf-8")
    assert convert_on_command_line(tmp_path, "--no-plugins").exit_code == 0
    assert 'type="Negative"' in (tmp_path / "model.xml").read_text("utf-8")


def test_installed_packages_come_first_and_by_name(install: Callable[..., None]) -> None:
    source = "from {0} import {1}\ndef register(e): e.add_pass({1}, at='start')\n"
    install("plugin_z", source.format(__name__, "First"))
    install("plugin_a", source.format(__name__, "Second"))
    found = collect_extensions(lambda extensions: extensions.add_pass(NegToMultiply, at="start"))
    assert [each.each.__name__ for each in found.passes] == ["Second", "First", "NegToMultiply"]  # type: ignore[union-attr]


@pytest.mark.parametrize(("source", "value", "said"), [
    ("1 / 0\n", None, ["ML267", "ZeroDivisionError", "--no-plugins"]),
    ("x = 1\n", None, ["ML267", "AttributeError", "--no-plugins"]),
    ("x = 1\n", "no_such_module:register", ["ML267", "ModuleNotFoundError", "no_such_module:register"]),
    ("register = 3\n", None, ["ML267", "not a function `register`", "--no-plugins"]),
    ("def register(e):\n    raise KeyError('k')\n", None, ["ML262", "KeyError"]),
    ("def register(e):\n    e.add_pass(3, at='end')\n", None, ["ML263", "is not a pass"]),
])
def test_a_broken_package(
    source: str, value: str | None, said: list[str], install: Callable[..., None], tmp_path: Path
) -> None:
    name = f"plugin_broken_{abs(hash((source, value)))}"
    install(name, source, value)
    done = convert_on_command_line(tmp_path)
    assert done.exit_code == 2
    assert [each for each in (*said, name, "entry point 'main'") if each not in done.stderr] == [], done.stderr
    assert convert_on_command_line(tmp_path, "--no-plugins").exit_code == 0
