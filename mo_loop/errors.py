"""The exceptions of mo_loop.

    MoLoopError
    ├── InputError         ML2xx  exit code 2   the model or the call is wrong
    │   ├── UsageError     ML20x                an argument is not valid
    │   ├── NotComparableError ML206            nothing with which an IR can be compared
    │   ├── FileError      ML21x, ML27x         a file is missing, unreadable, refused, or of another kind
    │   │   └── StorageError ML28x              the same of an object at a URL, or its store fails
    │   ├── ModelError     ML22x                the ONNX model breaks a rule of ONNX
    │   ├── TypeError_     ML23x                types or shapes that do not fit an operation
    │   ├── IrError        ML25x                an IR file breaks a rule of its format
    │   ├── ExtensionError ML26x                an extension of the user cannot be loaded or fails
    │   └── ClusterError   ML29x                the scheduler or a worker of a cluster
    ├── UnsupportedError   ML3xx  exit code 3   valid ONNX that cannot be expressed
    │   └── LimitError     ML34x, ML351         more than the limits of a conversion
    ├── ConversionErrors   (the worst of them)  several of the above at once, grouped
    └── InternalError      ML4xx  exit code 4   a bug of mo_loop

    ConversionWarning      ML5xx                an assumption about a model, or a note; the conversion continues

Codes are stable, so that scripts can use them; mo_loop/look/diagnostics/codes.py explains each. The message describes
the error. `origin` is the node or tensor of the model and `where` its path as text (`loop/step/add`), `why` is the
reason, `hint` what makes the conversion work, `during` the pass that found the error, if any. An error is immutable:
`error.at(origin, hint=...)` returns a new error with more details.

All of these can contain names of a model, which are untrusted. They are kept as they are, for reports that machines
read; as text (`str`) each is one line of printable characters, so that a name cannot look like a line of a log.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Self

from mo_loop.printable import printable

if TYPE_CHECKING:
    from mo_loop.origin import Origin


class MoLoopError(Exception):
    """The base class of all errors.

    `message` says what is wrong, `where` the place, `why` the reason, `hint` what to do. `code` ("ML302") keeps its
    meaning in all versions, and `exit_code` is that of the command line.
    """

    code = "ML000"
    exit_code = 4

    def __init__(
        self, message: str, *, where: Origin | str | None = None, why: str = "", hint: str = "", during: str = "",
        code: str | None = None,
    ) -> None:
        """`where` is the text of a place outside an ONNX model: a line of an extension, a layer of an IR."""
        super().__init__(message)
        self.message: Final = message
        self.origin: Final = None if isinstance(where, str) else where
        self.where: Final = where if isinstance(where, str) else where.path if where is not None else ""
        self.why: Final = why
        self.hint: Final = hint
        self.during: Final = during
        if code is not None:
            self.code = code

    def at(
        self, origin: Origin | str | None = None, *, message: str | None = None, why: str | None = None,
        hint: str | None = None, during: str | None = None,
    ) -> Self:
        """A new error of the same class and code with the given values replaced; it keeps the traceback and the cause.

        Raise it `from error.__cause__`; otherwise Python shows two errors.
        """
        cls = type(self)
        new = cls.__new__(cls)
        new.__dict__.update(self.__dict__)
        MoLoopError.__init__(
            new, self.message if message is None else message,
            where=self._place if origin is None else origin, why=self.why if why is None else why,
            hint=self.hint if hint is None else hint, during=self.during if during is None else during,
        )
        new.__cause__ = self.__cause__
        return new.with_traceback(self.__traceback__)

    @property
    def _place(self) -> Origin | str:
        return self.origin or self.where

    def __str__(self) -> str:
        return as_text(self.code, self.message, where=self.where, during=self.during, why=self.why, hint=self.hint)

    @property
    def first(self) -> MoLoopError:
        """The error itself; of a group the first one."""
        return self


class InputError(MoLoopError):
    """The model or the call is wrong."""

    code = "ML200"
    exit_code = 2


class UsageError(InputError):
    """An argument is not valid."""

    code = "ML201"


class NotComparableError(InputError):
    """There is nothing with which an IR can be compared: no inputs that both sides run, or no expected values."""

    code = "ML206"


class FileError(InputError):
    """A file is missing, unreadable, or of another kind."""

    code = "ML210"


class StorageError(FileError):
    """An object at a URL is missing or refused, or its store fails."""

    code = "ML286"


class ModelError(InputError):
    """The ONNX model breaks a rule of ONNX."""

    code = "ML220"


class TypeError_(InputError):
    """Types or shapes that do not fit an operation."""

    code = "ML230"


class ExtensionError(InputError):
    """An extension of the user cannot be loaded, or one of its passes or translators fails."""

    code = "ML260"


class ClusterError(InputError):
    """The scheduler or the workers of a cluster cannot be used, or are lost."""

    code = "ML290"


class IrError(InputError):
    """An IR file breaks a rule of its format."""

    code = "ML250"


class UnsupportedError(MoLoopError):
    """Valid ONNX that mo_loop cannot express in OpenVINO IR."""

    code = "ML300"
    exit_code = 3


class LimitError(UnsupportedError):
    """A model that makes a conversion do more than its limits allow (mo_loop/conversion_limits.py)."""

    code = "ML340"


class InternalError(MoLoopError):
    """A bug of mo_loop: its code breaks an invariant."""

    code = "ML400"
    exit_code = 4


class ConversionWarning(UserWarning):
    """An assumption of a conversion about the model. `origin` is the node or tensor, `where` its path as text."""

    def __init__(self, message: str, *, where: Origin, code: str) -> None:
        super().__init__(message)
        self.message: Final = message
        self.origin: Final = where
        self.where: Final = where.path
        self.code: Final = code

    def __str__(self) -> str:
        return printable(self.message)


class ConversionErrors(MoLoopError):
    """All errors that stop one conversion, grouped: equal errors of many nodes are one line with a count."""

    def __init__(self, errors: Iterable[MoLoopError]) -> None:
        self.errors: Sequence[MoLoopError] = tuple(_flat(errors))
        self.code = self.errors[0].code
        # The user has to repair a broken model first; only then does missing support matter.
        codes = {error.exit_code for error in self.errors}
        self.exit_code = 4 if 4 in codes else 2 if 2 in codes else 3
        super().__init__("\n".join(self.texts()), code=self.code)

    @property
    def first(self) -> MoLoopError:
        return self.errors[0]

    def at(
        self, origin: Origin | str | None = None, *, message: str | None = None, why: str | None = None,
        hint: str | None = None, during: str | None = None,
    ) -> Self:
        """The same errors after `at` of each; an error that has an origin keeps it."""
        each_at = [
            each.at(None if each.where else origin, message=message, why=why, hint=hint, during=during)
            for each in self.errors
        ]
        new = type(self)(each_at)
        new.__cause__ = self.__cause__
        return new.with_traceback(self.__traceback__)

    def texts(self) -> list[str]:
        """The text of each group."""
        groups: dict[tuple[str, str, str, str], list[str]] = {}
        for error in self.errors:
            groups.setdefault((error.code, error.message, error.why, error.hint), []).append(error.where)
        lines = []
        for (code, message, why, hint), places in groups.items():
            count = f" ({len(places)} times)" if len(places) > 1 else ""
            shown = [place for place in places if place][:5]
            more = f" and {len(places) - len(shown)} more" if shown and len(places) > len(shown) else ""
            lines.append(as_text(code, message + count, where=", ".join(shown) + more, why=why, hint=hint))
        return lines

    def __str__(self) -> str:
        return self.message


def as_text(code: str, message: str, *, where: str = "", during: str = "", why: str = "", hint: str = "") -> str:
    """An error as the command line prints it: one line for each part that is not empty."""
    parts = [f"{code}: {message}"]
    for name, text in (("where:", where), ("in:", during), ("why:", why), ("help:", hint)):
        if text:
            parts.append(f"  {name:6} {text}")
    return "\n".join(map(printable, parts))


def traceback_text(error: BaseException) -> str:
    """The traceback of `error` and of its causes, without a line break at the end; each message is one line."""
    entries = traceback.format_exception(error)
    return "\n".join(
        each.rstrip("\n") if each.startswith(_OWN_ENTRIES) else printable(each.rstrip("\n")) for each in entries
    )


_OWN_ENTRIES = ('  File "', "Traceback ", "\nThe above exception ", "\nDuring handling ", f"{__name__}.")
"""The beginnings of entries of a traceback whose line breaks Python or this module made."""


def error_of_numbers(error: Exception) -> TypeError_ | None:
    """The error for numbers of a model that cannot be represented, or computed with, or computed in the memory of this
    machine; None if `error` is not about that."""
    if isinstance(error, MemoryError):
        return TypeError_(f"its tensors do not fit into the memory: {error}".rstrip(": "), code="ML242")
    text = str(error)
    if isinstance(error, ZeroDivisionError) or (isinstance(error, ValueError) and text.startswith(_OF_FLOATS)):
        return TypeError_(f"no computation is possible with its numbers: {text}", code="ML235")
    if isinstance(error, OverflowError) or (isinstance(error, ValueError) and text.startswith(_OF_NUMPY)):
        return TypeError_(f"a number or a size is too large: {text}", code="ML242")
    return None


_OF_FLOATS = ("math domain", "cannot convert float NaN")
"""The beginnings of Python's messages about numbers that an operation does not take."""

_OF_NUMPY = ("array is too big", "Maximum allowed")
"""The beginnings of numpy's messages about sizes beyond 64 bits."""


def extension_failed(what: str, origin: str, error: BaseException, code: str) -> ExtensionError:
    """The error for `what` of the extension `origin`, which raised `error`. It names the line in that file."""
    said = f"{error.code}: {error.message}" if isinstance(error, MoLoopError) else f"{type(error).__name__}: {error}"
    line = line_of(error)
    return ExtensionError(
        f"{what} of {origin} raised {said}", where=error._place if isinstance(error, MoLoopError) else None, code=code,
        hint=f"{f'it happened at {line}; ' if line else ''}the fault is in the extension (--debug shows the traceback)",
    )


def line_of(error: BaseException) -> str:
    """`file:line`: the first file outside mo_loop in the traceback of `error`, and its last line there."""
    foreign = ""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        own = frame.f_globals.get("__name__", "").partition(".")[0] == "mo_loop"
        if not foreign and not own and not file.startswith("<frozen"):
            foreign = file
        if file == foreign:
            found = f"{file}:{line}"
    return found


def _flat(errors: Iterable[MoLoopError]) -> Iterator[MoLoopError]:
    for error in errors:
        if isinstance(error, ConversionErrors):
            yield from error.errors
        else:
            yield error
