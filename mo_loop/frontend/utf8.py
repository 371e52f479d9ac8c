"""Finds names in a model that are not UTF-8: protobuf returns such a string as bytes and raises no error.

A check of every string of a large model would take a tenth of the conversion time. So the graph is checked instead,
and the strings of the model only after an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mo_loop.errors import ModelError, MoLoopError
from mo_loop.graph import Graph

_MESSAGE, _STRING = 11, 9  # FieldDescriptor.TYPE_*


@contextmanager
def check_names_on_error(proto: Any) -> Iterator[None]:
    """Turn an unexpected error in the block into a ModelError if a name of the model is not UTF-8."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, MoLoopError) or error.exit_code == 4:
            require_utf8_names(proto)
        raise


def require_utf8_names(proto: Any) -> None:
    """Raise ModelError if a string of the message is not UTF-8."""
    for found in _strings(proto):
        if isinstance(found, bytes):
            raise ModelError(f"the name {found!r} is not UTF-8 text", hint="the file may be damaged: copy it again")


def has_utf8_names(graph: Graph) -> bool:
    """Whether all names in a graph and its bodies are str."""
    for scope in graph.scopes():
        names = [scope.name, *(text for pair in scope.rt_info.get("framework", {}).items() for text in pair)]
        for node in scope.ordered():
            names.append(node.name)
            for value in node.outputs:
                names.extend(value.names)
        try:
            "".join(names)  # a fifth of the time of a question for each name
        except TypeError:
            return False
    return True


def _strings(message: Any) -> Iterator[Any]:
    for field, value in message.ListFields():
        repeated = not hasattr(value, "ListFields") and not isinstance(value, str | bytes | int | float)
        if field.type == _STRING:
            yield from value if repeated else (value,)
        elif field.type == _MESSAGE:
            for each in value if repeated else (value,):
                yield from _strings(each)
