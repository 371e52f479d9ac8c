"""The work of a call as a number that neither other work of the machine nor its processor changes."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def executed_lines(call: Callable[[], T]) -> tuple[T, int]:
    """The result of a call, and the number of lines of Python that it executes in this thread.

    A line counts as often as it is executed, in a comprehension too. A function of C counts as a part of the line that
    calls it, so this does not show a scan of a list in C.
    """
    count = 0

    def trace(*_: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return call(), count
    finally:
        sys.settrace(before)
