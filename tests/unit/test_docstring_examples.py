"""The examples in module docstrings: their names exist, and their calls fit the signatures.

An example is an indented part of the docstring, or those lines of it that are Python. It does not run: `model` and
`folder` stand for anything. What can be decided without running it is checked:

- a function or class that it calls, and a class or constant that it reads, is a name of the module, a public name, or
  defined in one place of the packages, unless the example defines it
- the arguments of such a call fit the signature; `...` stands for any others
- an attribute of a module, of a class and of an instance exists; the class of an instance is known from the call that
  makes it, or from the annotation of the function that returns it
"""

import ast
import builtins
import contextlib
import importlib
import inspect
import re
import textwrap
import types
import typing
from collections import abc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import mo_loop
from mo_loop import ops, transforms
from tests import ROOT

from .test_structure import module_of_file

PACKAGES = ("mo_loop", "transforms")
FILES = [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]

OF_READERS = {
    "FuseGates": "a pass of an extension, which its author writes",
    "MyPass": "a pass of an extension, which its author writes",
    "Other": "another pass of an extension",
    "GeluFusion": "a pass like the one that the docstring of transforms/rewrite.py writes",
    "clamp": "a function of a formula",
}
"""Names that the packages do not have -> what they stand for."""

NAMESPACES: dict[types.ModuleType, typing.Collection[str]] = {
    mo_loop: {*mo_loop.__all__, "ops"},
    transforms: transforms.__all__,
    **{each: dir(each) for each in (builtins, ops, typing)},
}
"""Where a name may come from that its module does not have."""

ITERATED = (list, abc.Iterable, abc.Iterator, abc.Sequence, abc.Generator)

UNKNOWN = object()
"""The value of a name or an expression that the example does not show."""


class Instance(typing.NamedTuple):
    """An object of a class, as the value of an expression."""

    cls: type


class Several(typing.NamedTuple):
    """A tuple, as the value of an expression."""

    values: tuple[Any, ...]


def module_of(path: Path) -> str:
    return module_of_file(path.relative_to(ROOT).as_posix())


def examples(docstring: str) -> Iterator[ast.Module]:
    """The parts of a docstring that are indented and Python."""
    for block in re.findall(r"(?:^    .*\n?|^\n(?=    ))+", docstring, re.MULTILINE):
        lines = textwrap.dedent(block).splitlines()
        first = 0
        while first < len(lines):
            ends = range(len(lines), first, -1)
            end, tree = next(((end, tree) for end in ends if (tree := parsed(lines[first:end]))), (first + 1, None))
            if tree is not None:
                yield tree
            first = end


def parsed(lines: list[str]) -> ast.Module | None:
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError):
        return None


@cache
def places() -> dict[str, tuple[str, ...]]:
    """Name -> the modules that define it as a class, a function or a constant."""
    found: dict[str, tuple[str, ...]] = {}
    for path in FILES:
        for node in ast.parse(path.read_text("utf-8")).body:
            for name in _defined(node):
                found[name] = (*found.get(name, ()), module_of(path))
    return found


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [each.id for each in targets if isinstance(each, ast.Name)]


class Example:
    """The check of the examples of one module: what their names are, and what is wrong with them."""

    def __init__(self, module: str) -> None:
        try:
            self.module = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name not in ("dask", "distributed", "fsspec"):
                raise
            pytest.skip(f"{error.name} is not installed (extra `cluster`)")
        self.known: dict[str, Any] = {}
        self.wrong: list[str] = []

    def check(self, tree: ast.Module) -> None:
        self.known |= dict.fromkeys(_bound(tree), UNKNOWN)
        for statement in tree.body:
            self.run(statement)

    def run(self, statement: ast.stmt) -> None:
        """Check a statement, then learn what its targets are."""
        parts = list(ast.iter_child_nodes(statement))
        for node in (each for part in parts if not isinstance(part, ast.stmt) for each in ast.walk(part)):
            self.visit(node)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self.take(statement)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            self.learn(statement.targets[0], self.value(statement.value))
        elif isinstance(statement, ast.For):
            self.learn(statement.target, _of_hint(_inner(self.hint(statement.iter))))
        elif isinstance(statement, ast.With):
            for item in statement.items:
                if item.optional_vars is not None:
                    self.learn(item.optional_vars, self.entered(item.context_expr))
        for part in parts:
            if isinstance(part, ast.stmt):
                self.run(part)

    def take(self, statement: ast.Import | ast.ImportFrom) -> None:
        with contextlib.suppress(ImportError, AttributeError):
            for alias in statement.names:
                whole = alias.name if isinstance(statement, ast.Import) else statement.module or ""
                if isinstance(statement, ast.Import):
                    self.known[alias.asname or alias.name] = importlib.import_module(whole)
                else:
                    self.known[alias.asname or alias.name] = getattr(importlib.import_module(whole), alias.name)
            return
        self.wrong.append(f"{ast.unparse(statement)} fails")

    def learn(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.known[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, Several):
            if len(target.elts) != len(value.values):
                self.wrong.append(f"{ast.unparse(target)} are {len(value.values)} values")
            for each, inner in zip(target.elts, value.values, strict=False):
                self.learn(each, inner)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and re.match("[A-Z][A-Za-z_]+", node.id):
            if self.named(node.id) is None:
                self.wrong.append(f"nothing is called {node.id}")
        elif isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if not _has(owner, node.attr):
                self.wrong.append(f"{ast.unparse(node.value)} has no {node.attr}")
        elif isinstance(node, ast.Call):
            self.call(node)

    def call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if re.match("[a-z_]{2,}", name) and self.named(name) is None:  # one letter is a function of a formula
            self.wrong.append(f"nothing is called {name}")
        problem = _unfit(self.value(node.func), node)
        if problem:
            self.wrong.append(f"{ast.unparse(node)}: {problem}")

    def named(self, name: str) -> Any:
        """The value of a name; UNKNOWN if the example or the reader says it, None if it is nothing."""
        if name in self.known:
            return self.known[name]
        if name in vars(self.module):
            return vars(self.module)[name]
        for where, names in NAMESPACES.items():
            if name in names:
                return getattr(where, name)
        if name in OF_READERS:
            return UNKNOWN
        modules = places().get(name, ())
        if len(modules) == 1:
            with contextlib.suppress(ModuleNotFoundError):
                return getattr(importlib.import_module(modules[0]), name, UNKNOWN)
        return UNKNOWN if modules else None

    def value(self, node: ast.expr) -> Any:
        """The value of an expression, as far as it is known."""
        if isinstance(node, ast.Name):
            found = self.named(node.id)
            return UNKNOWN if found is None else found
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(owner, Instance):
                found = inspect.getattr_static(owner.cls, node.attr, UNKNOWN)
                return types.MethodType(found, owner) if isinstance(found, types.FunctionType) else UNKNOWN
            return getattr(owner, node.attr, UNKNOWN) if isinstance(owner, type | types.ModuleType) else UNKNOWN
        return _of_hint(self.hint(node))

    def hint(self, node: ast.expr) -> Any:
        """The type that a call gives."""
        if not isinstance(node, ast.Call):
            return None
        function = self.value(node.func)
        return function if isinstance(function, type) else _result(function)

    def entered(self, node: ast.expr) -> Any:
        """The value that `with` binds: the object itself, or the value that a generator yields."""
        hint = self.hint(node)
        if not isinstance(hint, type):
            return _of_hint(_inner(hint))
        given = getattr(getattr(hint, "__enter__", None), "__annotations__", {}).get("return")
        return _of_hint(hint) if given in ("Self", hint.__name__) else UNKNOWN


def _result(function: Any) -> Any:
    with contextlib.suppress(NameError, TypeError, AttributeError):
        return typing.get_type_hints(inspect.unwrap(getattr(function, "__func__", function))).get("return")
    return None


def _of_hint(hint: Any) -> Any:
    """The value of an annotation: an instance of a class of the packages, also where it may be None, or a tuple."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        hint = next((each for each in typing.get_args(hint) if each is not types.NoneType), None)
    if typing.get_origin(hint) is tuple and ... not in typing.get_args(hint):
        return Several(tuple(map(_of_hint, typing.get_args(hint))))
    is_ours = isinstance(hint, type) and hint.__module__.partition(".")[0] == "mo_loop"
    return Instance(hint) if is_ours else UNKNOWN


def _inner(hint: Any) -> Any:
    """The type of the elements of an iterator, a generator or a list."""
    arguments = typing.get_args(hint)
    return arguments[0] if typing.get_origin(hint) in ITERATED and arguments else None


def _bound(tree: ast.Module) -> Iterator[str]:
    """The names that an example defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg


def _has(owner: Any, name: str) -> bool:
    if isinstance(owner, Instance):
        cls = owner.cls
        return hasattr(cls, name) or hasattr(cls, "__getattr__") or name in _fields(cls)
    return hasattr(owner, name) if isinstance(owner, type | types.ModuleType) else True


@cache
def _fields(cls: type) -> frozenset[str]:
    """The names that methods of a class set, and those that it annotates."""
    found: set[str] = set()
    for each in cls.__mro__:
        found |= getattr(each, "__annotations__", {}).keys()
        with contextlib.suppress(OSError, TypeError):
            found |= {*re.findall(r"\bself\.(\w+)", inspect.getsource(each))}
    return frozenset(found)


def _unfit(function: Any, call: ast.Call) -> str:
    """Why the arguments do not fit the signature; empty if they do, or if it has none."""
    try:
        signature = inspect.signature(function) if callable(function) else None
    except (ValueError, TypeError):
        return ""
    if signature is None:
        return ""
    given = [each for each in call.args if not _is_open(each)]
    keywords = [each.arg for each in call.keywords if each.arg is not None]
    is_whole = len(given) == len(call.args) and len(keywords) == len(call.keywords)
    bind = signature.bind if is_whole else signature.bind_partial
    try:
        bind(*given, **dict.fromkeys(keywords))
    except TypeError as error:
        return str(error)
    return ""


def _is_open(argument: ast.expr) -> bool:
    """Whether it stands for any number of arguments: `*x` or `...`."""
    return isinstance(argument, ast.Starred) or (isinstance(argument, ast.Constant) and argument.value is ...)


@cache
def found_in(path: Path) -> list[ast.Module]:
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")), clean=False)
    return list(examples(docstring or ""))


def may_have_examples(path: Path) -> bool:
    """Whether the docstring of a module has an indented line; to parse all files takes seconds in each process."""
    parts = path.read_text("utf-8").split('"""', 2)
    return len(parts) == 3 and "\n    " in parts[1]


@pytest.mark.parametrize("path", filter(may_have_examples, FILES), ids=module_of)
def test_the_example_of_a_module_is_true(path: Path) -> None:
    example = Example(module_of(path))
    for tree in found_in(path):
        example.check(tree)
    assert not example.wrong, "\n".join(example.wrong)


def wrong_in(docstring: str) -> list[str]:
    example = Example("mo_loop.origin")
    for tree in examples(docstring):
        example.check(tree)
    return example.wrong


@pytest.mark.parametrize(("text", "said"), [
    ("made_at_url(entry)", "nothing is called made_at_url"),
    ("Origins().path", ""),  # a type, of which nothing more is known
    ("[NoSuchPass, 1]", "nothing is called NoSuchPass"),
    ("Origin(('loop',), 'a', 'Add', 'y', 'more')", "too many positional arguments"),
    ("Origin(place='a')", "unexpected keyword argument"),
    ("made_for()", "missing a required argument: 'origins'"),
    ("made_for(...)", ""),
    ("made_for(*origins)", ""),
    ("made_for(..., origin=1)", "unexpected keyword argument 'origin'"),
    ("Origin().branch", "Origin() has no branch"),
    ("Origin.of(x)", "Origin has no of"),
    ("first = Origin()\n    first.of_node().branch", "first.of_node() has no branch"),
    ("with made_for(origins):\n        ops.Relu(x)", "ops has no Relu"),
    ("from mo_loop.origin import Orign", "from mo_loop.origin import Orign fails"),
    ("def made_at_url(entry): ...\n    made_at_url(entry)", ""),
    ("a table   of words that made_at_url(entry) is no part of", ""),
    ("words of a table\n    made_at_url(entry)\n    more words", "nothing is called made_at_url"),
])
def test_what_counts_as_wrong(text: str, said: str) -> None:
    found = "\n".join(wrong_in(f"A module.\n\n    {text}\n\nMore of it.\n"))
    assert said in found if said else not found


def test_what_is_iterated_and_entered_is_known() -> None:
    example = Example("mo_loop.batching.storage.stores")
    for text in ("for place, block, more in blocks(where, []): ...", "for where, found in listed(where): found.length"):
        example.check(ast.parse(text))
    assert example.wrong == ["(place, block, more) are 2 values", "found has no length"]
    example = Example("mo_loop.support.workers")
    example.check(ast.parse("with Pool('m:f') as pool:\n    pool.calls(1)"))
    assert example.wrong == ["pool has no calls"]


@pytest.mark.parametrize("name", OF_READERS)
def test_each_name_of_a_reader_is_in_an_example(name: str) -> None:
    assert name not in places()
    trees = [tree for path in FILES if may_have_examples(path) for tree in found_in(path)]
    assert any(isinstance(each, ast.Name) and each.id == name for tree in trees for each in ast.walk(tree))
