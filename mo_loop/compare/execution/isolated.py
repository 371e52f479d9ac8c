"""Calls functions that run native code in a worker process: a crash or a hang ends only the worker.

    found = isolated(run_ir, "model.xml", [{"x": x}])

    compiled = Hosted(compile_ir, "model.xml")          # an object in the worker
    compiled.run({"x": x})
    compiled.close()

The worker of `isolated` is kept for the next call, and replaced after a crash or a hang. That of a Hosted makes the
object once and keeps it; after a crash or a hang, the next call makes it again. `brief` shortens an error to its
essential part.
"""

import functools
import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

from mo_loop.support.workers import Pool

LIMIT = 120.0
T = TypeVar("T")


class IsolatedError(Exception):
    """The function raised, crashed or did not end in time; `status` and `error`, the class of the exception, are those
    of the worker's `Outcome`, `message` is the text without the traceback, which ends with it."""

    def __init__(self, text: str, status: str, error: str = "", message: str = "") -> None:
        super().__init__(text)
        self.status, self.error, self.message = status, error, message or text


def isolated(function: Callable[..., T], *arguments: Any, limit: float = LIMIT, python: str | None = None) -> T:
    """`function(*arguments)` in the worker, for at most `limit` seconds. The function is one of a module's own.

    `python` is another interpreter for it.
    """
    outcome = _pool(python).call((function, arguments, os.getcwd()), limit)
    if not outcome.ok:
        said = f"{outcome.status} {outcome.stage}: {outcome.message}"
        text = f"{function.__qualname__}: {said}\n{outcome.detail}"
        message = outcome.message if outcome.status == "error" else said
        raise IsolatedError(text, outcome.status, outcome.error, message)
    result: T = outcome.value
    return result


def serve(task: tuple[Any, ...]) -> Any:
    """The function of the worker, called with a function, its arguments and, maybe, the folder of the caller.

    Paths are those of the caller, which may have changed its folder since the worker was started.
    """
    function, arguments, *folder = task
    if folder:
        os.chdir(folder[0])
    return function(*arguments)


SERVE = f"{__name__}:serve"
"""The function of the workers."""


class Hosted:
    """An object in a worker process, with a method `run`. `make(*arguments)` creates it; `facts` is its attribute of
    that name."""

    def __init__(
        self, make: Callable[..., Any], *arguments: Any, pool: Pool | None = None, limit: float = LIMIT,
        python: str | None = None,
    ) -> None:
        """`make` is a function or class of a module. The process is one of its own, with `limit` and `python` as those
        of `isolated`, or that of a `pool`, in which objects replace each other.

        Raises IsolatedError if the object cannot be made, or the process crashes or exceeds `limit` seconds.
        """
        self._owns_pool = pool is None
        self._pool = Pool(SERVE, limit=limit, python=python) if pool is None else pool
        self._make = _create, (make, arguments)
        self._is_lost = False
        self.facts = self._call(self._make)

    def run(self, feeds: Any) -> Any:
        """One call of its `run`. Raises IsolatedError if it fails, or the process crashes or exceeds the limit."""
        return self.call("run", feeds)

    def call(self, method: str, *arguments: Any) -> Any:
        """One call of another method of it, likewise."""
        return self._call((_run, (method, *arguments)))

    def close(self) -> None:
        """End the worker, unless it is that of a pool: another object can take its place."""
        if self._owns_pool:
            self._pool.close()

    def _call(self, task: Any) -> Any:
        outcome = self._pool.call(self._make if self._is_lost else task)
        if self._is_lost and outcome.ok:  # the process that had the object ended with the call before
            self._is_lost = False
            outcome = self._pool.call(task)
        if not outcome.ok:
            self._is_lost = self._is_lost or outcome.status != "error"
            raise IsolatedError(outcome.message, outcome.status, outcome.error)
        return outcome.value


_made: list[Any] = []
"""The object of a worker."""


def _create(make: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    _made[:] = []
    _made.append(make(*arguments))
    return getattr(_made[0], "facts", None)


def _run(method: str, *arguments: Any) -> Any:
    return getattr(_made[0], method)(*arguments)


@functools.cache
def _pool(python: str | None = None) -> Pool:
    return Pool(SERVE, limit=LIMIT, python=python)


def brief(error: BaseException) -> str:
    """The essential part of a message, as one line without the call sites of native exceptions.

    Of a group of errors, the parts with their codes.
    """
    parts = getattr(error, "errors", [error] if hasattr(error, "exit_code") else None)
    if parts:
        return " | ".join(dict.fromkeys(f"{part.code}: {part.message}" for part in parts))
    # The message of an error in a worker process begins with its class.
    if hasattr(error, "status"):
        return essential(getattr(error, "message", str(error)))
    return essential(f"{type(error).__name__}: {error}")


_SIGNATURE = r"(?:[\w:<>*&]+ ){0,3}\S+::\S+\([^()]*\)(?: const)?"
_CALL_SITE = re.compile(rf"(?:Check '.*' failed at )?(?:/\S+|\bsrc/\S+)\.(?:cc|cpp|h|hpp):\d+:?(?: {_SIGNATURE})?\s*")
_PREFIX = re.compile(r"(?:RuntimeError|onnxruntime\.capi\.\S+?|^mo_loop\.[\w.]+Error): +")
_OF_ONNX_RUNTIME = re.compile(r"\[ONNXRuntimeError\] : \d+ : \w+ : ")
_NODE = re.compile(r"Non-zero status code returned while running (\S+) node\. Name:'(.*?)' Status Message: ")
_PLACE = re.compile(r"^[\w/]+\.(?:h|cc):\d+ \w+ ")
_FILE = re.compile(r"Load model from (.*?) failed: ?")
_SIZE = re.compile(r"Got invalid dimensions for input: (.*?) for the following indices")
_RANK = re.compile(r"Invalid rank for input: (.*?) Got: (\d+) Expected: (\d+)")
_TYPE = re.compile(r"Unexpected input data type. Actual: \((.*?)\) , expected: \((.*?)\)$")
_NOT_ESSENTIAL = ("Exception from src", "Check '", "While validating", "where:", "in:", "help:")


def essential(text: str) -> str:
    """The first line of a message and its last two, each once, without files of C++ and the names of other parts.

    An error of ONNX Runtime becomes a sentence about the input, the node or the file.
    """
    text = _PREFIX.sub("", text, count=1)
    if code := _OF_ONNX_RUNTIME.match(text):
        return _sentence(" ".join(_CALL_SITE.sub("", text[code.end() :]).split()))[:400]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(_NOT_ESSENTIAL)] or lines
    found = dict.fromkeys(_CALL_SITE.sub("", re.sub("^why: +", "", line)).rstrip() for line in kept[:1] + kept[1:][-2:])
    return " | ".join(found)[:400]


def _sentence(text: str) -> str:
    """A message of ONNX Runtime, after its code, as a sentence."""
    if found := _SIZE.match(text):
        name, places = found[1], re.findall(r"index: (\d+) Got: (\d+) Expected: (\d+)", text)
        return "; ".join(
            f"the input {name} has the size {got} in dimension {place}, and the model declares {expected}"
            for place, got, expected in places
        )
    if found := _RANK.match(text):
        plural = "s" * (found[2] != "1")
        return f"the input {found[1]} has {found[2]} dimension{plural}, and the model declares {found[3]}"
    if found := _TYPE.match(text):
        return f"an input is of the type {_type(found[1])}, and the model declares {_type(found[2])}"
    if _NODE.match(text):
        nodes = []
        while found := _NODE.match(text):  # that of a body comes after the one that has the body
            nodes.append(f"the node {found[2]} ({found[1]})" if found[2] else f"the operator {found[1]}")
            text = text[found.end() :]
        inner = " in ".join(reversed(nodes))
        return f"{inner} fails: {_PLACE.sub('', text)}"
    if found := _FILE.match(text):
        return f"ONNX Runtime does not load {os.path.basename(found[1])}: {text[found.end() :]}"
    return f"ONNX Runtime reports: {text}"


def _type(text: str) -> str:
    """The name of an element type in place of `tensor(double)`."""
    name = text.removeprefix("tensor(").removesuffix(")")
    return {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16"}.get(
        name, re.sub(r"^(u?)int", lambda found: found[1] or "i", name)
    )
