"""Options of click from the fields of dataclasses (mo_loop/support/flags.py), and their groups in --help.

    @click.command(cls=GroupedCommand)
    @flags(BatchFlags)
    @click.pass_context
    def command(context: click.Context) -> None:
        asked = made(context, BatchFlags)
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import click

from mo_loop.cli import show_version
from mo_loop.cli.output import ENDINGS, ReportFile, tell
from mo_loop.conversion_limits import BYTES, amount
from mo_loop.support.files import is_among
from mo_loop.support.flags import COMMON, GROUPS, IMAGES, PASSES, REPORTS, STATES, Flag, flags_of

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Read = Callable[[click.Parameter, Any], Any]


class ByteSize(click.ParamType):
    """A number of bytes: 4G, 512M, 1.5GiB. K, M, G and T are powers of 1024."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes."""
        if isinstance(value, int):
            return value
        return amount(value, BYTES) or self.fail(f"{value!r} is not a size; write, for example, 4G", param, ctx)


KINDS: dict[str, Callable[[], Any]] = {
    "number": lambda: click.FLOAT, "path": click.Path, "file": lambda: click.Path(dir_okay=False),
    "folder": lambda: click.Path(file_okay=False), "size": ByteSize,
}
"""The types of values that are not plain text."""


class FlagOption(click.Option):
    """An option below the title `group` of --help, after those with a lower `place`."""

    def __init__(self, *args: Any, group: str = "", place: int = 0, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.group, self.place = group, place

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Without the range of a number, of which an error tells."""
        found = super().get_help_extra(ctx)
        found.pop("range", None)
        return found


def option(*names: str, group: str, **settings: Any) -> Callable[[F], F]:
    """An option of one command."""
    return click.option(*names, cls=FlagOption, group=group, **settings)


def _timed(context: click.Context, _: click.Parameter, is_given: bool) -> None:
    """At the end of the command, print its time, and the versions that a report of an error needs."""
    if is_given:
        from importlib.metadata import PackageNotFoundError, version

        start = time.monotonic()

        def end() -> None:
            versions = []
            for name in ("mo_loop", "onnx", "openvino", "onnxruntime"):
                with suppress(PackageNotFoundError):
                    versions.append(f"{name} {version(name)}")
            tell(f"{time.monotonic() - start:.2f} s, {', '.join(versions)}")

        context.call_on_close(end)


verbose_option = option(
    "-v", "--verbose", group=REPORTS, is_flag=True, expose_value=False, callback=_timed,
    help="Show the time and the versions of the packages on stderr.",
)
debug_option = option("--debug", group=PASSES, place=2, is_flag=True, help="Show the traceback of an error.")
version_option = option(
    "-V", "--version", group=REPORTS, is_flag=True, expose_value=False, is_eager=True, callback=show_version,
    help="Show the version and the commit, and exit.",
)


def message_options(quiet: str = "Print only errors.") -> Callable[[F], F]:
    """The options --quiet, of which `quiet` is the help, --verbose and --debug."""
    shorter = option("-q", "--quiet", group=REPORTS, is_flag=True, help=quiet)
    return lambda command: shorter(verbose_option(debug_option(command)))


def report_text(*forms: str, also: str = " as well") -> str:
    """The help of --report, where its file may have these formats or JSON."""
    if not forms:
        return f"Write the report to FILE{also}, as JSON."
    named = [f"{_SPELLED[form]} ({ending})" for ending, form in ENDINGS.items() if form in forms]
    return f"Write the report to FILE{also}. Its ending chooses the format: {', '.join(named)}, or else JSON."


_SPELLED = {"markdown": "Markdown", "sarif": "SARIF", "junit": "JUnit XML"}


def format_option(*forms: str, what: str = "The format of the report on stdout.") -> Callable[[F], F]:
    """The options --format, whose default is the first form, and --report (mo_loop/cli/output.py)."""
    shown = option(
        "--format", "form", type=click.Choice(forms), help=what, default=forms[0], show_default=True, group=REPORTS
    )
    others = [form for form in ENDINGS.values() if form in forms]
    kinds = " or ".join(["JSON", *map(_SPELLED.__getitem__, others)])

    def checked(_: click.Context, parameter: click.Parameter, place: str | None) -> ReportFile | None:
        found = None if place is None else ReportFile.of(place)
        if found is not None and found.form not in forms:
            raise click.BadParameter(f"a report of this command is {kinds}, not {found.form}", param=parameter)
        return found

    written = option(
        "--report", "report_file", type=click.Path(dir_okay=False), callback=checked, metavar="FILE", group=REPORTS,
        help=report_text(*others),
    )
    return lambda command: shown(written(command))


def flags(
    cls: type, *fields: str, read: Read | None = None, is_argument: bool = False,
    texts: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """The options of the fields of `cls`, all that have a flag or those of these names.

    `made` and `values_of` give their values, as `read` makes them from those of click; with `is_argument` they are
    arguments of the command instead. `texts` are other texts for --help, by field.
    """
    known = flags_of(cls)

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        kept = value if read is None else read(parameter, value)
        context.meta.setdefault(_place(cls), {})[parameter.name] = kept

    def decorated(command: F) -> F:
        for field in reversed(fields or tuple(known)):
            each = known[field]
            text = (texts or {}).get(field, each.help)
            names = each.names or (f"--{field.replace('_', '-')}",)
            settings = _settings(each, is_pair="/" in names[0])
            settings |= {} if is_argument else {"expose_value": False, "callback": keep}
            command = option(*names, group=each.group, place=each.place, help=text, **settings)(command)
        return command

    return decorated


def _settings(made: Flag, is_pair: bool) -> dict[str, Any]:
    """The arguments of `click.option` for a flag; `is_pair` if one name switches it on and another one off."""
    given = dict(made.settings)
    least, above, most, choices, kind = (given.pop(key, None) for key in ("least", "above", "most", "choices", "kind"))
    if isinstance(made.default, bool):
        return given | ({"default": made.default} if is_pair else {"is_flag": True})
    if isinstance(made.default, tuple):
        given.setdefault("multiple", True)
    elif made.default is not None:
        given["default"] = made.default
    if choices is not None:
        given["type"] = click.Choice(choices)
    elif least is not None or above is not None:
        ranged = click.FloatRange if kind == "number" else click.IntRange
        given["type"] = ranged(above if least is None else least, most, min_open=least is None)
    elif kind is not None:
        given["type"] = KINDS[kind]()
    return given


def made(context: click.Context, cls: type[T], **others: Any) -> T:
    """`cls` with the values that the command line has for its fields, and the values of `others`."""
    values = values_of(context, cls)
    found = {field: values.get(key_of(field, each), each.default) for field, each in flags_of(cls).items()}
    return cls(**found, **others)


def values_of(context: click.Context, cls: type) -> dict[str, Any]:
    """The values of the options of `cls`, by the names that click has for them."""
    found: dict[str, Any] = context.meta.get(_place(cls), {})
    return found


def key_of(field: str, flag: Flag) -> str:
    """The name that click has for the option of a field."""
    longest = max(flag.names, key=len, default=field).partition("/")[0]
    named = [each for each in flag.names if not each.startswith("-")]
    return named[0] if named else longest.lstrip("-").replace("-", "_")


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


WHOLE = "mo_loop.cli.help_all"
"""The key in the meta of a context whose help has all options."""

_LONG = (IMAGES, STATES, PASSES)
"""Groups of --help-all alone."""


def _help_all(context: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given and not context.resilient_parsing:
        context.meta[WHOLE] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


_HELP_ALL = FlagOption(
    ["--help-all"], group=REPORTS, place=0, is_flag=True, is_eager=True, expose_value=False, callback=_help_all,
    help="Show all options and exit.",
)


_WRITTEN = {"--report", "--junit", "--summary"}
"""Options with a file that a command writes at its end."""


def _files_of(ctx: click.Context) -> Iterator[tuple[click.Parameter, str]]:
    """The paths of a command line, each with its parameter."""
    values = dict(ctx.params)
    for kept in ctx.meta.values():
        values |= kept if isinstance(kept, dict) else {}
    for each in ctx.command.params:
        given = values.get(each.name or "") if isinstance(each.type, click.Path) else None
        given = given.place if isinstance(given, ReportFile) else given
        for text in (given,) if isinstance(given, str) else given or ():
            yield each, text.partition("=")[2] or text


class GroupedCommand(click.Command):
    """A command whose --help lists its options below the titles of their groups.

    It refuses a report in a file that it has for something else, which would be lost.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """BadParameter if a report is to be written to the file of an argument or of another option."""
        rest = super().parse_args(ctx, args)
        files = list(_files_of(ctx))
        for written, report in files:
            for other, file in files if _WRITTEN & set(written.opts) else ():
                # A batch may replace the report that it was compared with.
                if other is not written and "--baseline" not in other.opts and is_among(report, [file]):
                    name = other.opts[0] if isinstance(other, click.Option) else str(other.metavar)
                    raise click.BadParameter(f"{report} is the file of {name}, which would be lost", ctx, written)
        return rest

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """With --help-all, where --help leaves options out."""
        found = super().get_params(ctx)
        return [*found, _HELP_ALL] if any(getattr(each, "place", 0) for each in found) else found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups: all options after --help-all, else the most used ones."""
        whole, shown = self.groups(ctx), self.groups(ctx, is_short=not ctx.meta.get(WHOLE))
        for title, records in shown.items():
            with formatter.section(title):
                formatter.write_dl(records)
        left = sum(map(len, whole.values())) - sum(map(len, shown.values()))
        if left:
            formatter.write(f"\n{left} more options: {ctx.command_path} --help-all\n")

    def groups(self, ctx: click.Context, *, is_short: bool = False) -> dict[str, list[tuple[str, str]]]:
        """Title -> the options and their texts; --help is the last of the reports, others without a group come last.

        If `is_short`, only those of place 0, of images, states and passes those of place COMMON, and the first sentence
        of each text.
        """
        found: dict[str, list[tuple[int, click.Parameter]]] = {title: [] for title in (*GROUPS, "Other options")}
        for each in self.get_params(ctx):
            title = REPORTS if "--help" in each.opts else "Other options"
            title = getattr(each, "group", title)
            is_hidden = is_short and getattr(each, "place", 0) > (COMMON if title in _LONG else 0)
            if isinstance(each, click.Option) and not is_hidden:
                found[title].append((getattr(each, "place", 3), each))
        shown = {
            title: [each.get_help_record(ctx) for _, each in sorted(options, key=lambda pair: pair[0])]
            for title, options in found.items()
        }
        cut = _first_sentence if is_short else str
        kept = {title: [(name, cut(text)) for name, text in filter(None, records)] for title, records in shown.items()}
        return {title: records for title, records in kept.items() if records}


def _first_sentence(text: str) -> str:
    """The first sentence of a help text, with the default."""
    text, bracket, default = text.partition("  [")
    sentence, stop, _ = text.partition(". ")
    return sentence + stop.strip() + bracket + default
