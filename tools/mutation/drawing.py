"""A sample of all mutants that cosmic-ray can make."""

from __future__ import annotations

import ast
import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmic_ray.commands.init import init
from cosmic_ray.modules import find_modules
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import WorkItem


@dataclass(frozen=True)
class Mutant:
    """One small change of one module. `id` follows from the changed line and its function, not from their place,
    so that most ids stay the same when other code changes."""

    id: str
    module: str
    item: WorkItem

    @property
    def line(self) -> int:
        return int(self.item.mutations[0].start_pos[0])

    def applied(self, code: str) -> str:
        """The code of the module with the change."""
        (mutation,) = self.item.mutations
        operator = get_operator(mutation.operator_name)(**mutation.operator_args)
        changed = mutate_code(code, operator, mutation.occurrence)
        assert changed is not None
        return str(changed)


def draw(root: Path, packages: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """`count` of the mutants of the packages below `root`, those whose numbers made of the seed are the smallest."""
    found = [mutant for mutant in _all(root, packages) if not _is_in_unused_annotation(root, mutant)]
    return sorted(found, key=lambda each: _hash(seed, each.id))[:count]


def _all(root: Path, packages: Sequence[str]) -> Iterator[Mutant]:
    database = WorkDB(":memory:", WorkDB.Mode.create)
    with chdir(root):
        init(sorted(find_modules([Path(each) for each in packages])), database, {})
        items = database.work_items
    database.close()
    seen: Counter[tuple[Any, ...]] = Counter()
    lines: dict[str, list[str]] = {}
    for item in items:
        (mutation,) = item.mutations
        module = os.fspath(mutation.module_path)
        if module not in lines:
            lines[module] = (root / module).read_text("utf-8").splitlines()
        text = lines[module][mutation.start_pos[0] - 1].strip()
        key = (mutation.operator_name, mutation.definition_name, text)
        seen[key] += 1
        yield Mutant(_hash(*key, seen[key])[:10], module, item)


def _hash(*parts: Any) -> str:
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()


def _is_in_unused_annotation(root: Path, mutant: Mutant) -> bool:
    """Whether the change is in an annotation that nothing evaluates: it has no effect."""
    path = root / mutant.module
    spans = _UNUSED.get(path)
    if spans is None:
        spans = _UNUSED[path] = list(_unused_annotations(ast.parse(path.read_text("utf-8"))))
    start = tuple(mutant.item.mutations[0].start_pos)
    return any(first <= start < last for first, last in spans)


_UNUSED: dict[Path, list[tuple[tuple[int, int], tuple[int, int]]]] = {}


def _unused_annotations(tree: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The places of annotations of functions that no decorator reads, in modules that do not evaluate them."""
    if not any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or any(isinstance(each, ast.Call) for each in node.decorator_list):
            continue
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        inside = [each.annotation for each in ast.walk(node) if isinstance(each, ast.AnnAssign)]
        for annotation in (node.returns, *(each.annotation for each in arguments if each), *inside):
            if annotation is not None:
                end = (annotation.end_lineno or 0, annotation.end_col_offset or 0)
                yield (annotation.lineno, annotation.col_offset), end
