"""Extensions: passes and translators of operators that a user adds to one conversion.

    def register(extensions):                                    # in file.py: mo-loop convert --extension file.py
        extensions.add_pass(FuseGates, before="LoopToTI")
        extensions.translates("Gate", domain="com.example")(gate)

    convert_model("model.onnx", extensions=["file.py"])          # the same from Python; see docs/passes.md

There is no global state: the extensions of one conversion do not exist for the next. A file that is given as an
extension is executed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from mo_loop.errors import ExtensionError, extension_failed, line_of
from mo_loop.frontend.context import Body as Body
from mo_loop.frontend.context import Context as Context
from mo_loop.frontend.translators import CustomTranslators, described, require_operator
from mo_loop.support.files import reason_of

if TYPE_CHECKING:
    from importlib import metadata

    from mo_loop.transforms.function_pass import FunctionPass
    from mo_loop.transforms.selection import Placed

GROUP = "mo_loop.passes"
"""The group of entry points with which installed packages extend every conversion; each names a `register`."""

F = TypeVar("F", bound=Callable[..., Any])
Extension: TypeAlias = "str | os.PathLike[str] | ModuleType | Extensions | Callable[[Extensions], Any]"
"""A source of passes and translators: the path of a Python file, a module with a function `register`, or such a
function, and Extensions."""


class Extensions:
    """The passes and translators that extensions add to a conversion, in the order of registration."""

    def __init__(self, origin: str = "an extension") -> None:
        """`origin` is the name of the extension in error messages."""
        self.origin = origin
        self.passes: list[Placed] = []
        self.translators = CustomTranslators()

    def add_pass(
        self, new: FunctionPass | type[FunctionPass], *, before: str | type[FunctionPass] = "",
        after: str | type[FunctionPass] = "", at: str = "",
    ) -> None:
        """Add a pass before or after one of the pipeline, or `at` one of its places, which docs/passes.md lists.

        Args:
            new: a class (each conversion makes an instance of its own, without arguments) or an instance, of any kind
                of pass: FunctionPass, MatcherPass, GraphRewrite, Manager.

        Raises:
            ExtensionError: `new` is not a pass, or not exactly one place is given.
        """
        from mo_loop.transforms.config import name_of
        from mo_loop.transforms.function_pass import FunctionPass
        from mo_loop.transforms.selection import Placed

        if not isinstance(new, FunctionPass) and not (isinstance(new, type) and issubclass(new, FunctionPass)):
            raise ExtensionError(
                f"{self.origin} adds {new!r}, which is not a pass", code="ML263",
                hint="a pass derives from FunctionPass or MatcherPass, or is a GraphRewrite or a Manager",
            )
        place = [before, after, at]
        if sum(bool(each) for each in place) != 1 or not all(isinstance(each, str | type) for each in place):
            raise ExtensionError(
                f"{self.origin} does not name one place for {name_of(new)}", code="ML263",
                hint="give one of before=, after= (the name or class of a pass) and at=",
            )
        self.passes.append(Placed(new, name_of(before), name_of(after), name_of(at), self.origin, _caller()))

    def translates(self, op: str, *, domain: str = "", since: int = 1) -> Callable[[F], F]:
        """Register the decorated function for the operator `op` of a domain from its version `since` on.

        Positional parameters of the function are the inputs of the operator, keyword-only ones its attributes with
        their defaults. It is used instead of a function of the model, and of the translator of mo_loop. ExtensionError
        if the signature is not valid.
        """
        require_operator(op, domain, since)

        def register(function: F) -> F:
            self.translators.add(domain, described(op, since, function, self.origin))
            return function

        return register

    def update(self, other: Extensions) -> None:
        """Add the passes and translators of `other`."""
        self.passes.extend(other.passes)
        self.translators.update(other.translators)

    def arranged(self, pipeline: list[FunctionPass]) -> list[FunctionPass]:
        """The passes of `pipeline` with these inserted. ExtensionError for a place that does not exist."""
        if not self.passes:
            return pipeline
        from mo_loop.transforms.selection import arranged

        return arranged(pipeline, self.passes)


def collect_extensions(given: Any = (), *, plugins: bool = True) -> Extensions:
    """The extensions of one conversion: those of installed packages, unless `plugins` is False, then those in `given`.

    Args:
        given: paths of Python files, modules with a function `register`, such functions, Extensions; or one of these.

    Raises:
        ExtensionError: one of them cannot be loaded, or registers an object of the wrong kind.
    """
    everything = Extensions()
    for entry in installed(tuple(sys.path)) if plugins else ():
        everything.update(_of_entry_point(entry))
    for each in given if isinstance(given, list | tuple) else () if given is None else (given,):
        everything.update(_of(each))
    return everything


def _of(given: Any) -> Extensions:
    if isinstance(given, Extensions):
        return given
    if isinstance(given, str | os.PathLike):
        path = Path(given)
        return _of_module(_loaded(path), str(path))
    if isinstance(given, ModuleType):
        return _of_module(given, given.__name__)
    if callable(given) and not isinstance(given, type):
        return _registered(given, getattr(given, "__module__", None) or "an extension")
    raise ExtensionError(
        f"{given!r} is not an extension",
        code="ML260",
        hint="give a path, a module, a function `register`, or Extensions, to which passes are added by `add_pass`",
    )


def _of_module(module: ModuleType, origin: str) -> Extensions:
    register = getattr(module, "register", None)
    if not callable(register):
        raise ExtensionError(
            f"{origin} has no function `register`", code="ML263",
            hint="write: def register(extensions): extensions.add_pass(MyPass, at='start')",
        )
    return _registered(register, origin)


def _registered(register: Callable[[Extensions], Any], origin: str) -> Extensions:
    found = Extensions(origin)
    with _blamed_on(origin, "registering"):
        register(found)
    return found


def _loaded(path: Path) -> ModuleType:
    """The file as a new module. It is in sys.modules while it is executed, and not afterwards."""
    try:
        source = path.read_bytes()
    except FileNotFoundError:
        raise ExtensionError(f"the file {path} does not exist", code="ML261", hint="check the path") from None
    except OSError as error:
        raise ExtensionError(f"{path} cannot be read: {reason_of(error)}", code="ML261") from None
    try:
        code = compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ExtensionError(f"{path} is not Python: {said}", where=f"{path}{line}", code="ML262") from error
    module = ModuleType(f"mo_loop_extension_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look up their module in sys.modules
    try:
        with _blamed_on(str(path), "loading"):
            exec(code, module.__dict__)
    finally:
        sys.modules.pop(module.__name__, None)  # another thread may load a file of the same name
    return module


@contextmanager
def _blamed_on(origin: str, doing: str) -> Iterator[None]:
    """Turn an exception in the block into an ExtensionError that names a line of the extension's file."""
    try:
        yield
    except ExtensionError as error:
        raise error.at(error.where or line_of(error)) from error.__cause__
    except (Exception, SystemExit) as error:
        raise extension_failed(doing, origin, error, "ML262") from error


def _caller() -> str:
    """`file:line` of the nearest caller outside this file."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


# -- installed packages


@cache
def installed(path: tuple[str, ...]) -> tuple[metadata.EntryPoint, ...]:
    """The entry points of the group in the packages on `path` (sys.path), by package and name.

    The result is cached for the process. importlib.metadata takes a tenth of the time of a small conversion to load, so
    it is asked only if a file may name the group.
    """
    if not _may_name_the_group(path):
        return ()
    from importlib import metadata

    return tuple(sorted(metadata.entry_points(group=GROUP), key=lambda entry: (_package(entry), entry.name)))


def _may_name_the_group(path: tuple[str, ...]) -> bool:
    """Whether metadata in one of the folders contains the name, or may lie elsewhere: in an archive, or by a finder."""
    if any(finder is not PathFinder and hasattr(finder, "find_distributions") for finder in sys.meta_path):
        return True
    for folder in path:
        try:
            names = os.listdir(folder or ".")
        except FileNotFoundError:
            continue
        except OSError:
            return True
        if folder.lower().endswith(".egg"):
            return True
        for name in names:
            if name.lower().endswith((".dist-info", ".egg-info")):
                with suppress(OSError), open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    if GROUP.encode() in file.read():
                        return True
    return False


def _package(entry: metadata.EntryPoint) -> str:
    dist = getattr(entry, "dist", None)
    return "an unknown package" if dist is None else str(dist.name)


def _of_entry_point(entry: metadata.EntryPoint) -> Extensions:
    origin = f"the installed package {_package(entry)} (entry point {entry.name!r})"
    try:
        register = entry.load()
    except (Exception, SystemExit) as error:
        hint = f"it refers to {entry.value}; update or remove {_package(entry)}, or use --no-plugins"
        raise extension_failed("loading", origin, error, "ML267").at(hint=hint) from error
    if not callable(register):
        raise ExtensionError(
            f"{origin} names {entry.value}, which is not a function `register`", code="ML267",
            hint=f"update or remove {_package(entry)}, or use --no-plugins",
        )
    return _registered(register, origin)
