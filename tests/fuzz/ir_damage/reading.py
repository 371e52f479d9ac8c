"""The use of a damaged pair: the steps of a user with a model that was read."""

import json
import tempfile
from functools import cache
from pathlib import Path

from mo_loop.api import Model
from mo_loop.errors import MoLoopError
from tests.fuzz.ir_damage.ir_damaging import Pair


class WrittenWrongly(Exception):
    """The reader refuses what the writer has written, or finds another model in it."""


def use(pair: Pair) -> None:
    """Read a pair, inspect it, save it, compare both, and make a page of it.

    The inspection accepts more files than the reader: an error of it with the code of a refusal is dropped.

    Raises:
        MoLoopError: the pair is refused, or a step fails.
        WrittenWrongly: what was saved is another model.
    """
    from mo_loop.api import read_model, save_model
    from mo_loop.look.differences.comparing import diff
    from mo_loop.look.inspection.read import inspect
    from mo_loop.look.viewing import view

    path, saved = (_folder() / name for name in ("model.xml", "saved.xml"))
    pair.write(path)
    try:
        json.dumps(inspect(path).to_dict())
    except MoLoopError as error:
        if error.exit_code == 4:
            raise
    model = read_model(path)
    repr(model)
    save_model(model, saved)
    try:
        difference = diff(path, saved)
    except MoLoopError as error:
        raise WrittenWrongly(str(error)) from error
    if difference and (_is_named(model) or diff(path, saved, ignore="names")):
        raise WrittenWrongly(str(difference))
    view(path)


def _is_named(model: Model) -> bool:
    """Whether every layer has a name of its own; the writer gives one to the others."""
    scopes = [[node.name for node in scope] for scope in model.graph.scopes()]
    return all("" not in names and len(set(names)) == len(names) for names in scopes)


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def _folder() -> Path:
    """An empty folder: one for the process, because it takes longer to remove a folder than to read a small model."""
    folder = Path(_scratch().name)
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            each.rmdir()
        else:
            each.unlink()
    return folder
