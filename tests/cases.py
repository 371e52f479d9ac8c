"""Tests as texts: models and graphs whose IR computes what ONNX Runtime or an expression computes.

`test_NAME.txt` has tests of the module `test_NAME.py` next to it, which calls `read_cases`:

    # case gather of other types                            a test; a sentence below describes it
    @ keeps_loops                                           a mark of pytest
    every op = Abs | Neg; dynamic = False | True            a row for each combination; `pairs`: every two values meet
    rows shape, axis = (3, 4), 0 | (2, 4), -2               a row for each tuple
    uses tmp_path                                           fixtures of pytest
    p = ints(0, 2)                                          a value
    Gather-11,13 <axis = axis> (x = floats(*shape), p)      a model for each opset: attributes, inputs in their order
    $op-13 (x = p); dynamic = dynamic, expected = [-p]      options of `check_node`
    Pad-2 <mode = "mirror"> (x); refused = "mode"           an error that has this text
    y = Abs-13 (x); for x in (p, -p); if axis               repeated, left out; `y` is the expected result
    assert y[0] == 1                                        a check of that
    model-18 = main (float[N] x) => (float[N] y) { ... }    a model in the text form of ONNX, with $op and other values
    graph-ir = %x = Parameter : f32[2] ...                  a graph of the IR in its text form
    text = %x = Parameter : f32[2]                          such a text, or another one, which follows `|`
    check(model, {"x": floats(2)})                          a check of tests/harness.py, of the module, or of a value

A section `# text NAME` has no test: a module reads it with `texts(__file__)` of tests/texts.py.

Values are expressions of Python, with the names of the module, such as its own functions, those of tests/harness.py and
of mo_loop/errors.py, `ops`, `ConvertOptions`, and numpy as `np`. A row can have a word that is not such a name: a text.
A line that begins with spaces continues the one above.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mo_loop import errors, ops
from mo_loop.options import ConvertOptions
from tests import harness
from tests.harness import every, node_model, pairs, refusal
from tests.texts import SECTION

NODE = re.compile(r"(?:(\*?\w+(?:, \w+)*) = )?([\w.]*\$?\w+)-([\w, ]+?)(?: <(.*?)>)? \((.*)")
MODEL = re.compile(r"(\w+)(?:-(\w+(?: [\w.]+=\d+)*))? = (\w+ *\(.*=>.*)", re.DOTALL)
TEXT = re.compile(r"(\w+)(-ir)? = (?:\|\n)?((?<=\n).*|%.*)", re.DOTALL)
CALL = re.compile(r"([a-z_]\w*)\((.*)")
VALUE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


def read_cases(module: dict[str, Any]) -> None:
    """Add the tests of the text next to a module, `test_NAME.txt`, to the module, whose names are given."""
    path = Path(module["__file__"]).with_suffix(".txt")
    above, *parts = SECTION.split(path.read_text("utf-8"))
    line = above.count("\n") + 2
    for kind, title, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if kind == "case":
            name = "test_" + re.sub(r"[^A-Za-z0-9]", "_", title)
            if name in module:
                raise ValueError(f"{path}:{line}: the module has {name}")
            test = _made(list(_whole_lines(body, line)), path, module)
            test.__name__, test.__module__ = name, module["__name__"]
            module[name] = test
        line += body.count("\n") + 1


def refuse_node(operator: str, inputs: Any, attributes: Any, *, refused: str, **options: Any) -> None:
    """The conversion of a model of one node fails with an error that has the text `refused`, a pattern."""
    assert re.search(refused, text := str(refusal(node_model(operator, inputs, attributes, **options)))), text


def filled(text: str, names: dict[str, Any]) -> str:
    """The text with the values of the names that follow a `$`: `$name`, or `${name}` before a letter."""
    return VALUE.sub(lambda found: str(names[found[1] or found[2]]), text)


OWN = vars(errors) | vars(harness)
OWN |= {"ops": ops, "ConvertOptions": ConvertOptions, "refuse_node": refuse_node, "filled": filled}
CONSTANTS = {"None": None, "True": True, "False": False, "NEWEST": harness.NEWEST}


def _whole_lines(text: str, first: int) -> Iterator[tuple[int, str]]:
    """The lines with those that continue them, and the number of each in its file."""
    begins = re.finditer(r"^\S.*(?:\n[ \t]+\S.*)*", text, re.MULTILINE)
    return ((first + text.count("\n", 0, each.start()), each[0]) for each in begins)


def _made(lines: list[tuple[int, str]], path: Path, module: dict[str, Any]) -> Callable[..., None]:
    """The test of a case."""
    program = [""] * (lines[-1][0] if lines else 0)
    marks: list[pytest.MarkDecorator] = []
    fixtures: list[str] = []
    for number, text in lines:
        line = re.sub(r"\n\s*", " ", text)
        kind, _, rest = line.partition(" ")
        kind = "" if rest.startswith("= ") else kind
        if kind in ("every", "pairs"):
            parts = (each.partition(" = ") for each in rest.split("; "))
            rows = {name: list(_listed(values, module)) for name, _, values in parts}
            marks.append((every if kind == "every" else pairs)(**rows))
        elif kind == "rows":
            titles, _, values = rest.partition(" = ")
            marks.append(pytest.mark.parametrize(titles.split(", "), list(_tuples(values, module))))
        elif kind == "uses":
            fixtures += rest.split(", ")
        elif kind == "@":
            is_own = rest.partition("(")[0] in module
            marks.append(eval(rest if is_own else f"pytest.mark.{rest}", {"pytest": pytest} | module))
        elif statement := _statement(text, line, module):
            program[number - 1] = statement
        elif marks or any(program):
            raise ValueError(f"{path}:{number}: not a row, a mark, a value, a model or a check: {line}")
    if not any(program):
        raise ValueError(f"{path}:{lines[0][0] if lines else 1}: a case without a value, a model or a check")
    # The names of the file and of the line: an error shows them.
    code = compile("\n".join(program), str(path), "exec")

    titles = [name for mark in marks if mark.name == "parametrize" for name in mark.args[0]]

    def test(**given: Any) -> None:
        row = {name: _value(given[name], module | CONSTANTS) for name in titles}
        exec(code, OWN | module | given | row)

    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in (*titles, *fixtures)]
    test.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    for mark in marks:
        test = mark(test)
    return test


def _statement(text: str, line: str, module: dict[str, Any]) -> str:
    """The statement of Python that a line means, nothing if it is a description; `text` has its line breaks."""
    if found := NODE.fullmatch(line):
        return _node(*found.groups())
    try:
        statement = ast.parse(line).body[0]
    except SyntaxError:
        statement = ast.Pass()
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    if is_call or isinstance(statement, ast.Assign | ast.AugAssign | ast.Assert):
        return line
    if found := TEXT.fullmatch(text):
        value = f"filled({found[3]!r}, globals())"
        return f"{found[1]} = parse({value})" if found[2] else f"{found[1]} = {value}"
    if found := MODEL.fullmatch(text):
        version, *domains = (found[2] or "18").split()
        imports = {name: int(of) for name, of in (each.split("=") for each in domains)}
        return f"{found[1]} = parsed(filled({found[3]!r}, globals()), {version}, **{imports})"
    if (found := CALL.fullmatch(line)) and (found[1] in module or found[1] in OWN):
        end = len(line) - len(tail := split(found[2])[1])
        return f"[{line[:end]} for _ in (0,) {tail.replace('; ', ' ')}]"
    return ""


def _listed(text: str, names: dict[str, Any]) -> Iterator[str]:
    """The texts of the values of a parameter: `*NAME` is a list of the module."""
    for each in text.split(" | "):
        yield from (_written(value, names) for value in eval(each[1:], names)) if each.startswith("*") else [each]


def _tuples(text: str, names: dict[str, Any]) -> Iterator[list[str]]:
    for each in text.split(" | "):
        if each.startswith("*"):
            yield from ([_written(value, names) for value in row] for row in eval(each[1:], names))
        else:
            yield split(each)[0]


def _written(value: Any, names: dict[str, Any]) -> str:
    is_word = isinstance(value, str) and value.isidentifier() and value not in names
    return value if is_word else f"np.{value.__name__}" if isinstance(value, type) else repr(value)


def _value(text: str, names: dict[str, Any]) -> Any:
    return text if text.isidentifier() and text not in names else eval(text, OWN | names)


def _node(names: str | None, operator: str, opsets: str, attributes: str | None, rest: str) -> str:
    inputs, rest = split(rest)
    options, *tail = rest.removeprefix("; ").split("; ")
    if options.startswith(("for ", "if ")):
        options, tail = "", [options, *tail]
    given = ((each, *each.partition(" = ")) for each in inputs)
    named = ", ".join(each if each.startswith("**") else f"{name!r}: {value or name}" for each, name, _, value in given)
    function = "refuse_node" if "refused = " in options else "check_node"
    title = VALUE.sub(r"{\1}", "::".join(operator.rpartition(".")[::2]).removeprefix("::"))
    call = f"{function}(f{title!r}, {{{named}}}, dict({attributes or ''}), opset=opset_, {options})"
    loop = " ".join([f"for opset_ in ({opsets},)", *tail])
    return f"[[{names}]] = [{call} {loop}]" if names else f"[{call} {loop}]"


def split(text: str) -> tuple[list[str], str]:
    """The parts of a list that a bracket or the end of the text closes, and what follows the bracket."""
    parts, depth, quote = [""], 0, ""
    for place, sign in enumerate(text):
        quote = ("" if sign == quote else quote) if quote else sign if sign in "\"'" else ""
        depth += (sign in "([{") - (sign in ")]}") if not quote else 0
        if depth < 0:
            return [each.strip() for each in parts if each.strip()], text[place + 1 :]
        if sign == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += sign
    return [each.strip() for each in parts if each.strip()], ""
