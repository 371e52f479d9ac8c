"""The file of `mo-loop batch --config`, and the work for each model.

    # mo-loop.toml: the keys are the flags
    jobs = 4
    target = "2026.4"
    verify = true

    [[models]]
    match = "vision/*"
    input = "x[1,3,224,224]"
    rtol = 1e-2

The keys at the top are defaults of the flags of the command. A table `models` has options of the models whose names
match; a later table takes precedence over earlier ones, a flag of the command line over the file.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from mo_loop.batching.batch_options import read_bytes
from mo_loop.batching.engine import Work
from mo_loop.batching.fingerprint import of_options
from mo_loop.batching.plan import Planned
from mo_loop.batching.storage.locations import masked, place_of
from mo_loop.cli.conversion_options import OF_ONE_MODEL, conversion_options, options_of, plain_options, require_local
from mo_loop.cli.flag_options import flags, made, option, values_of
from mo_loop.cli.output import reported
from mo_loop.compare.batch_comparison import Comparing
from mo_loop.errors import FileError, UsageError
from mo_loop.printable import did_you_mean
from mo_loop.support.flags import COMPARISON, RUN

F = TypeVar("F", bound=Callable[..., Any])
MODELS, MATCH = "models", "match"
_ENTRIES = "mo_loop.cli.batch_config"


def config_option(command: F) -> F:
    """Add --config to the command, before all options that it gives defaults to."""
    return option(
        "--config", group=RUN, type=click.Path(dir_okay=False), metavar="FILE", is_eager=True, expose_value=False,
        callback=_read,
        help="A TOML file with options: keys as the flags, and tables [[models]] with a glob `match` and the options "
        "of these models.",
    )(command)


def comparing_options(command: F) -> F:
    """Add the options of the comparison with ONNX Runtime."""
    verify = option(
        "--verify", group=COMPARISON, is_flag=True,
        help="Compare each IR with ONNX Runtime, on generated inputs. A model whose numbers differ fails, and its "
        "files are not written; one that cannot be compared is reported as not verified.",
    )
    texts = {
        "seed": "The seed of the inputs that --verify generates.", "rtol": "The relative tolerance of --verify.",
        "atol": "The absolute tolerance of --verify.",
    }
    return verify(flags(Comparing, "inputs", "sets", *texts, "limit", "strict", texts=texts)(command))


def comparing_values(context: click.Context) -> dict[str, Any]:
    """The values of these options, by their names."""
    return {"verify": context.params["verify"], **values_of(context, Comparing)}


@click.command()
@comparing_options
@conversion_options(*OF_ONE_MODEL)
def _of_one_model(**_: Any) -> None:
    """The options of one model; the command is never called, but click reads and checks its options."""


class WorkByModel:
    """The work for each model, from the flags and the file."""

    def __init__(self, context: click.Context) -> None:
        """UsageError if an option of a table is not valid."""
        self._entries: list[tuple[Sequence[str], dict[str, Any]]] = context.meta.get(_ENTRIES, [])
        self._common = dict(_values(context))
        self._made: dict[tuple[int, ...], Work] = {}
        for places in ((), *((place,) for place in range(len(self._entries)))):
            self._of(places)  # a wrong option is an error of the command, not of each model

    def __call__(self, model: Planned) -> Work:
        """The work for this model."""
        return self._of(tuple(place for place in range(len(self._entries)) if self._matches(place, model)))

    def without_models(self, models: Iterable[Planned]) -> list[str]:
        """The patterns of the file that match none of the models."""
        unused = set(range(len(self._entries)))
        for each in models if unused else ():
            unused -= {place for place in unused if self._matches(place, each)}
            if not unused:
                break
        return [", ".join(self._entries[place][0]) for place in sorted(unused)]

    def files(self) -> list[str]:
        """The files that the work with any model needs besides the model: extensions, inputs of comparisons."""
        found: list[str] = []
        for each in self._made.values():
            found += [*each.options.extension_sources, *(each.comparing.inputs if each.comparing else ())]
        return list(dict.fromkeys(found))

    def _matches(self, place: int, model: Planned) -> bool:
        return any(fnmatchcase(model.name, pattern) for pattern in self._entries[place][0])

    def _of(self, places: tuple[int, ...]) -> Work:
        if places not in self._made:
            given = dict(self._common["defaults"])
            for place in places:
                given.update(self._entries[place][1])
            self._made[places] = _work({**given, **self._common["flags"]})
        return self._made[places]


def _values(context: click.Context) -> Iterator[tuple[str, dict[str, Any]]]:
    """The options of models: those of the file or defaults, and those of the command line."""
    plain = plain_options(context)
    values = {**plain, **plain["preprocessing"], **comparing_values(context)}
    known = {each.name for each in _of_one_model.params}
    kept = {name: value for name, value in values.items() if name in known and value is not None}
    typed = {name for name in kept if context.get_parameter_source(name) == ParameterSource.COMMANDLINE}
    yield "flags", {name: value for name, value in kept.items() if name in typed}
    yield "defaults", {name: value for name, value in kept.items() if name not in typed}


def _work(values: dict[str, Any]) -> Work:
    with _of_one_model.make_context("models", [], default_map=values) as context:
        comparing = made(context, Comparing)
        # Their names are part of what is up to date: temporary copies would not do.
        require_local({"--input-data": comparing.inputs})
        options = options_of(context)
        facts = {**plain_options(context), **comparing_values(context)}
    del facts["extension"]  # their contents count
    digest = of_options(facts, options.extension_sources, plugins=options.plugins)
    return Work(options, digest, comparing if facts["verify"] else None)


# -- the file


def _read(context: click.Context, _: click.Parameter, file: str | None) -> None:
    """Make the keys of the file the defaults of the command, and keep its tables of models."""
    if file is None:
        return
    with reported(debug=False):  # click calls this before the command begins
        content = _content(file)
        file = masked(file)  # errors name it
        entries = content.pop(MODELS, [])
        context.default_map = dict(_options(content, context.command.params, file))
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            raise _wrong(file, f"{MODELS} is not a list of tables", "write [[models]] before each")
        context.meta[_ENTRIES] = [_entry(each, place, file) for place, each in enumerate(entries)]


def _entry(entry: dict[str, Any], place: int, file: str) -> tuple[list[str], dict[str, Any]]:
    """The patterns and the options of a table."""
    where = f"{file}, table {place + 1} of [[{MODELS}]]"
    match = entry.pop(MATCH, None)
    patterns = [match] if isinstance(match, str) else match
    if not patterns or not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
        raise _wrong(where, f"it has no {MATCH}", 'write match = "folder/*.onnx"')
    return patterns, dict(_options(entry, _of_one_model.params, where))


def _content(file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(read_bytes(place_of(file)).decode("utf-8"))
    except FileNotFoundError:
        raise FileError(f"the file {file} does not exist", code="ML210", hint="check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{file} cannot be read", why=str(error), code="ML212") from None
    except tomllib.TOMLDecodeError as error:
        raise _wrong(file, str(error), "write the file as TOML") from None


def _options(
    content: Mapping[str, Any], parameters: Sequence[click.Parameter], where: str
) -> Iterator[tuple[str, Any]]:
    """The names of parameters and their values; the keys are flags without their dashes."""
    known: dict[str, tuple[click.Parameter, bool]] = {}
    for each in parameters:
        for names, is_on in ((each.opts, True), (each.secondary_opts, False)):
            known.update({name.lstrip("-"): (each, is_on) for name in names if name.startswith("--")})
    for key, value in content.items():
        name = key.replace("_", "-")
        if name not in known or name in ("config", "help"):
            raise _wrong(where, f"there is no option {key!r}", did_you_mean(name, known, "the keys are flags"))
        parameter, is_on = known[name]
        assert parameter.name is not None
        yield parameter.name, _value(parameter, value if is_on or not isinstance(value, bool) else not value)


def _value(parameter: click.Parameter, value: Any) -> Any:
    if parameter.multiple:
        return value if isinstance(value, list) else [value]
    is_text = isinstance(value, list) or (isinstance(value, float | int) and not isinstance(value, bool)
                                          and parameter.type is click.STRING)
    return json.dumps(value) if is_text else value


def _wrong(where: str, why: str, hint: str) -> UsageError:
    return UsageError(f"{where}: the configuration is not valid", why=why, hint=hint)
