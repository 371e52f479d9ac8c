"""The function of workers that are kept for other tests: it runs any function, so one process serves all pools."""

import os
from contextlib import suppress
from pkgutil import resolve_name
from typing import Any


def run(task: tuple[str, str, Any]) -> Any:
    """In the worker: run a function, given as "module:name", with a task, in this folder."""
    folder, function, argument = task
    with suppress(FileNotFoundError):  # a process that had been started in it would continue
        os.chdir(folder)
    return resolve_name(function)(argument)
