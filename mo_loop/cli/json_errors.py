"""Errors as a JSON object on stdout, beside the message on stderr, where a command was asked for JSON.

{"version": 1, "ok": false, "exit_code": 2, "error": {...},
 "errors": [{"code": "ML230", "message": "...", "where": ["loop/node"], "why": "", "hint": "", "exit_code": 2}]}

`errors` are as in the report of a batch; `error` is the first of them, with one place as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click

from mo_loop.cli.output import show
from mo_loop.errors import MoLoopError

VERSION = 1


@contextmanager
def errors_as_json(wanted: bool) -> Iterator[None]:
    """Print an error in the block as JSON on stdout as well."""
    try:
        yield
    except click.ClickException:
        raise
    except Exception as error:
        if wanted:
            show(json.dumps(_failure(error), indent=1))
        raise


def _failure(error: Exception) -> dict[str, Any]:
    from mo_loop.batch.result import errors_of

    errors = [asdict(each) for each in errors_of(error)]
    first = {**errors[0], "where": next(iter(errors[0]["where"]), "")}
    exit_code = error.exit_code if isinstance(error, MoLoopError) else 4
    return {"version": VERSION, "ok": False, "exit_code": exit_code, "error": first, "errors": errors}
