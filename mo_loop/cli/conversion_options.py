"""The options of a conversion, shared by all commands that convert models: the flags of the fields of ConvertOptions.

    @click.command()
    @conversion_options("input", "output")   # in addition to those for any model
    @click.pass_context
    def command(context: click.Context, ...) -> None:
        options = options_of(context)          # ConvertOptions
        plain_options(context)                 # the same as plain data, for a report or a hash

Options of commands that only read models, and readers of the texts of options, are here too.

The files that a conversion reads and writes are checked before it begins: a long one must not fail at its end.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mo_loop.batching.storage.locations import Location, is_url, location_of
from mo_loop.cli.flag_options import flags, key_of, made, values_of
from mo_loop.cli.pass_options import PassOptions, pass_choice
from mo_loop.conversion_limits import Limits
from mo_loop.errors import ConversionErrors, FileError, MoLoopError, UsageError
from mo_loop.options import ConvertOptions
from mo_loop.support.files import is_among, reason_of
from mo_loop.support.flags import IMAGES, flag, flags_of, masked, parts, unquoted

if TYPE_CHECKING:
    from mo_loop.transforms.config import PassConfig


F = TypeVar("F", bound=Callable[..., Any])


@contextmanager
def fetched(source: str) -> Iterator[str]:
    """The path of a model, or of an IR with its .bin; files at a URL are staged.

    Raises:
        FileError: an object cannot be read.
    """
    if not is_url(source):
        yield source
        return
    where = location_of(source)
    with _staged(where) as path, _errors_naming(path, where):
        yield path


@contextmanager
def opened(source: str) -> Iterator[str]:
    """The same, where standard input (`-`) is copied to a temporary file.

    Raises:
        FileError: standard input is a terminal, the disk has no space for the file, or an object cannot be read.
    """
    if source != "-":
        with fetched(source) as path:
            yield path
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise FileError(
            "standard input is not a model", why="it is a terminal", code="ML212",
            hint="write: mo-loop convert - -o model.xml < model.onnx",
        )
    with tempfile.TemporaryDirectory(prefix="mo-loop-") as folder:
        path = os.path.join(folder, "stdin")
        try:
            with open(path, "wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        except OSError as error:
            raise FileError(
                "standard input cannot be copied to a file", why=f"{folder}: {reason_of(error)}", code="ML212",
                hint="set TMPDIR to a folder with more space",
            ) from None
        yield path


@contextmanager
def _staged(where: Location) -> Iterator[str]:
    from mo_loop.batching.storage.scratch import Scratch
    from mo_loop.batching.storage.transfers import copied, staged

    if where.suffix not in (".xml", ".json", ".txt"):
        with staged(where, Scratch()) as here:
            yield str(here.path)
        return
    from mo_loop.batching.storage.stores import find

    files = [where]
    if where.suffix == ".xml" and find(data := where.with_suffix(".bin")) is not None:
        files.append(data)
    with copied(files, Scratch()) as paths:
        yield str(paths[0])


@contextmanager
def _errors_naming(path: str, where: Location) -> Iterator[None]:
    """Errors in the block name the URL instead of the local copy of the object."""
    try:
        yield
    except ConversionErrors:  # they name nodes, no files
        raise
    except MoLoopError as error:
        message, why, hint = (each.replace(path, str(where)) for each in (error.message, error.why, error.hint))
        raise error.at(message=message, why=why, hint=hint) from error.__cause__


@contextmanager
def opened_inputs(given: Iterable[str]) -> Iterator[list[tuple[str, str]]]:
    """Inputs of a comparison, FILE or NAME=FILE: the text with a local file, and the text to show. Errors as
    of `fetched`."""
    with ExitStack() as stack:
        found = []
        for text in given:
            name, equals, file = ("", "", text) if is_url(text) else text.partition("=")
            if not is_url(file):
                found.append((text, text))
                continue
            from mo_loop.batching.storage.scratch import Scratch
            from mo_loop.batching.storage.transfers import copied

            where = location_of(file)
            (path,) = stack.enter_context(copied([where], Scratch()))
            stack.enter_context(_errors_naming(str(path), where))
            found.append((f"{name}{equals}{path}", f"{name}{equals}{where}"))
        yield found


def named(source: str) -> str:
    """A model as the summary and the default name of the output have it: a URL without credentials."""
    return str(location_of(source)) if is_url(source) else source


def sources_of(model: str, path: str, read: Iterable[str]) -> tuple[str, ...]:
    """The files that were read: with a model at a URL, the URLs of their local copies; `path` is that of the model."""
    if not is_url(model):
        return tuple(read)
    base, folder = location_of(model).parent, os.path.realpath(os.path.dirname(path))
    return tuple((base / os.path.relpath(each, folder)).url for each in map(os.path.realpath, read))


def require_local(paths: Mapping[str, str | Iterable[str] | None]) -> None:
    """UsageError for a URL where only a local path is possible; `paths`: option -> FILE or NAME=FILE, or several."""
    for what, given in paths.items():
        texts = [given] if isinstance(given, str) else given or ()
        for url in (part for text in texts for part in (text, text.partition("=")[2]) if is_url(part)):
            raise UsageError(
                f"{what} {Location(url)} is a URL", why="only a local path is possible here", code="ML287",
                hint="copy the files to a local folder, or from there",
            )


def require_places(source: str, target: str, others: dict[str, str | None]) -> None:
    """Refuse files that cannot be written, or that are the same as another one or the model; `others`: flag -> file.

    Raises:
        UsageError: two files are the same, or the name of the output does not end in .xml.
        FileError: the folder cannot be written.
    """
    if not target.endswith(".xml"):
        raise UsageError(
            f"the output {os.path.basename(target)!r} does not end in .xml", why="the .bin gets the same name",
            hint="name it, for example, model.xml",
        )
    named(target)  # UsageError for a URL that is not valid
    written = {target: "-o", target[: -len(".xml")] + ".bin": "-o"}
    for each in written:
        if source != "-" and is_among(source, [each]):
            hint = "give an .onnx file: an IR needs no conversion" if source == target else "give another name"
            raise UsageError(f"the output {named(each)} is the model itself", why="the model would be lost", hint=hint)
        if not is_url(target) and os.path.exists(each) and not os.path.isfile(each):
            what = "a folder" if os.path.isdir(each) else "a device or a pipe"
            raise FileError(f"{each} cannot be written", why=f"it is {what}", hint="give another name", code="ML218")
    for name, file in others.items():
        if file is None or is_url(file):
            continue
        for other in (*written, *([] if source == "-" else [source])):
            if is_among(file, [other]):
                raise UsageError(
                    f"{name} {file} is a file of the conversion itself", why=f"{other} would be overwritten",
                    hint="give another name",
                )
        written[file] = name
        _require_folder(file, "ML219")
    if not is_url(target):
        _require_folder(target, "ML218")


def _require_folder(file: str, code: str) -> None:
    """FileError unless the folder of a file, or the lowest existing folder above it, can be written."""
    folder = os.path.dirname(os.path.abspath(file))
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        why, hint = f"{folder} is not a folder", "give another path"
    elif not os.access(folder, os.W_OK | os.X_OK):
        why, hint = f"{folder} is not writable: Permission denied", "give another path, or change the permissions"
    else:
        return
    raise FileError(f"{file} cannot be written", why=why, hint=hint, code=code)


def reading_options(command: F) -> F:
    """Add --allow-external and --limit to a command that only reads models."""
    text = flags_of(ConvertOptions)["limits"].help.replace("the conversion", "the command")
    return flags(ConvertOptions, "allow_external", "limits", is_argument=True, texts={"limits": text})(command)


def names(text: str | None) -> list[str] | None:
    """The names of `--output`, separated by commas; UsageError if there are none."""
    if text is None:
        return None
    found = [unquoted(each) for each in parts(text)]
    if not found:
        raise UsageError("--output has no name", why="a model needs an output", hint="name a tensor, or omit --output")
    return found


def frozen(texts: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The names and values of `--freeze`."""
    if not texts:
        return
    from mo_loop.frontend.input_text import value_of  # imports numpy, which the parent of a batch does not need

    yield from ((name, value_of(value)) for name, value in _pairs("--freeze", "name=value", texts))


def renamed(texts: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The old and new names of `--rename`."""
    yield from ((old, unquoted(new)) for old, new in _pairs("--rename", "old=new", texts))


def state_pairs(texts: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The inputs and outputs of `--stateful-pair`; an output may be empty."""
    pairs = _pairs("--stateful-pair", "in=out", texts, may_be_empty=True)
    yield from ((first, unquoted(last)) for first, last in pairs)


def _pairs(flag: str, form: str, texts: tuple[str, ...], *, may_be_empty: bool = False) -> Iterator[tuple[str, str]]:
    """The texts before and after the last `=` outside quotes; UsageError if one is missing or a name occurs twice."""
    known: set[str] = set()
    for text in texts:
        place = masked(text).rfind("=")
        name, value = unquoted(text[: max(place, 0)].strip()), text[place + 1 :].strip()
        if not name or not (value or may_be_empty):
            why = "the name, the value or the = is missing"
            raise UsageError(f"{flag} {text!r} cannot be understood", why=why, hint=f"write {flag} {form}")
        if name in known:
            raise UsageError(f"{flag} names {name!r} twice", why="only one of the two can be used", hint="name it once")
        known.add(name)
        yield name, value


OF_ONE_MODEL = ("input", "output", "freeze", "rename")
"""The options that only commands with one model have, and the tables of `batch --config`."""


@dataclass(frozen=True)
class BothLayouts:
    """The two sides of the arrow in --layout, as the Model Optimizer has them."""

    source_layout: str | None = flag(
        None, "The left side of the arrow in --layout: the layout of the model.", IMAGES, metavar="TEXT"
    )
    target_layout: str | None = flag(
        None, "The right side of the arrow in --layout: the layout in the IR.", IMAGES, metavar="TEXT"
    )


def conversion_options(
    *of_model: str, without: Sequence[str] = (), of_passes: Callable[[Any], Any] = pass_choice, **texts: str
) -> Callable[[F], F]:
    """Add the options to a command `without` some, of `OF_ONE_MODEL` only the given ones, and those `of_passes`;
    `texts` are other texts for --help."""
    common = [name for name in flags_of(ConvertOptions) if name not in (*OF_ONE_MODEL, *without)]

    def decorated(command: F) -> F:
        return flags(ConvertOptions, *of_model, *common, texts=texts)(flags(BothLayouts)(of_passes(command)))

    return decorated


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "output": names,
    "freeze": lambda texts: dict(frozen(texts)),
    "rename": lambda texts: dict(renamed(texts)),
    "plugins": lambda is_off: not is_off,
    "stateful_pairs": lambda texts: dict(state_pairs(texts)) or None,
    "limits": lambda texts: Limits.parse(texts) if texts else None,
}
"""Field -> its value, from that of its option; the others are the same."""


def options_of(context: click.Context, **changed: Any) -> ConvertOptions:
    """The options of the command of `context`; `changed` are texts instead of those of the command line.

    UsageError for flags that exclude each other, and for extensions and folders at URLs.
    """
    given = values_of(context, ConvertOptions)
    require_local({"--extension": given["extension"], "--allow-external": given["allow_external"]})
    known = {field: key_of(field, each) for field, each in flags_of(ConvertOptions).items()}
    values = {field: given[key] for field, key in known.items() if key in given} | changed
    values = {field: _READERS[field](value) if field in _READERS else value for field, value in values.items()}
    values["layout"] = layout_of(values["layout"], made(context, BothLayouts))
    return ConvertOptions(config=_config(made(context, PassOptions)), **values)


def plain_options(context: click.Context) -> dict[str, Any]:
    """The values of the options by name, the same for the same flags. Extensions are paths, without their content."""
    passes, given = made(context, PassOptions), values_of(context, ConvertOptions)
    images = [key_of(field, each) for field, each in flags_of(ConvertOptions).items() if each.group == IMAGES]
    return {
        **{key: value for key, value in given.items() if key not in images},
        "disable_pass": passes.disable_pass, "enable_pass": passes.enable_pass,
        "preprocessing": {**{key: given[key] for key in images}, **values_of(context, BothLayouts)},
    }


def _config(passes: PassOptions) -> "PassConfig | None":
    """The configuration of the passes. None, without loading anything, if no option is about passes."""
    if not passes.disable_pass and not passes.enable_pass:
        return None
    from mo_loop.transforms.config import PassConfig

    config = PassConfig()
    config.disable(*passes.disable_pass)
    config.enable(*passes.enable_pass)
    return config


def layout_of(layout: str | None, sides: BothLayouts) -> Any:
    """The layouts of `--layout`, or of the two other flags together: name -> (source, target).

    UsageError for flags that exclude each other.
    """
    if sides == BothLayouts():
        return layout
    if layout is not None:
        hint = 'write --layout "nhwc->nchw"'
        raise UsageError("--layout cannot be combined with --source-layout or --target-layout", hint=hint)
    source = _entries(sides.source_layout, "--source-layout")
    target = _entries(sides.target_layout, "--target-layout")
    named = [bool(each[0][0]) for each in (source, target) if each]
    if len(set(named)) > 1 or (not named[0] and len({len(each) for each in (source, target) if each}) > 1):
        raise UsageError(
            "--source-layout and --target-layout are for other inputs", why="layouts without a name are those of the "
            "inputs in their order", hint="give both the same number of layouts, or name them: x(nhwc),y(nc)",
        )
    if not named[0]:
        sources: list[str | None] = [layout for _, layout in source] or [None] * len(target)
        targets: list[str | None] = [layout for _, layout in target] or sources
        return list(zip(sources, targets, strict=True))
    before, after = dict(source), dict(target)
    return {name: (before.get(name), after.get(name, before.get(name))) for name in {**before, **after}}


def _entries(text: str | None, flag: str) -> tuple[tuple[str, str], ...]:
    """The names and the layouts; without names those of the inputs in their order."""
    from mo_loop.preprocessing import PARENTHESES, PerInput

    return () if text is None else PerInput.of(text, PARENTHESES, str, flag).entries
