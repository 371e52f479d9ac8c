"""The flags of the Model Optimizer (`mo`) and of `ovc`, and the options here that do the same.

    mo  --input_model m.onnx --output_dir out --data_type FP16      mo-loop convert the same
    ovc m.onnx --output_model out/m.xml --compress_to_fp16=False    mo-loop convert the same

A command of the class `LegacyFlagsCommand` takes them: underscores become dashes, and the table has the equivalent of
every flag here.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import click

from mo_loop.batching.storage.locations import Location, is_url
from mo_loop.cli.flag_options import GroupedCommand
from mo_loop.cli.output import message, reported
from mo_loop.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
_KEY = "mo_loop.cli.legacy_flags"


class LegacyFlag(NamedTuple):
    """A flag of mo or ovc; `ours` is the flag that does the same here, empty if there is none, and `why` the reason.

    `is_refused` ones end the command; others without an equal are passed over with a note. `act` takes the value of a
    flag that is written otherwise here; one that `is_switch` may have the value True or False.
    """

    name: str
    ours: str
    why: str = ""
    act: "Callable[[_Rewriting, str, str | None], None] | None" = None
    is_switch: bool = False
    is_refused: bool = False


@dataclass
class LegacyFlags:
    """Values of flags of mo and ovc that are combined with other options."""

    output_dir: str | None = None
    model_name: str | None = None
    input_shape: str | None = None
    is_called_as_mo: bool = False

    @classmethod
    def of(cls, context: click.Context) -> "LegacyFlags":
        found: LegacyFlags = context.meta.setdefault(_KEY, cls())
        return found


class LegacyFlagsCommand(GroupedCommand):
    """A command that takes the flags of mo and ovc as well."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {name for each in self.get_params(ctx) for name in (*each.opts, *each.secondary_opts)}
        with reported("--debug" in args):
            args = _Rewriting(own, LegacyFlags.of(ctx)).run(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The groups, and the names of the flags of mo and ovc here."""
        super().format_options(ctx, formatter)
        with formatter.section("Flags of mo and ovc, with underscores or dashes"):
            renamed = (flag for flag in TABLE if flag.ours and flag.ours != flag.name.replace("_", "-"))
            formatter.write_dl([(flag.name, flag.ours) for flag in renamed])


class _Rewriting:
    """Arguments of mo and ovc to our own; `own` are the flags of the command."""

    def __init__(self, own: set[str], legacy: LegacyFlags) -> None:
        self._own = own
        self._legacy = legacy
        self._left: list[str] = []
        self._made: list[str] = []
        self._half: dict[bool, str] = {}
        self._notes: list[str] = []

    def run(self, args: list[str]) -> list[str]:
        self._left = list(args)
        while self._left:
            argument = self._left.pop(0)
            if argument == "--":
                self._made += [argument, *self._left]
                break
            if argument.startswith("-") and argument != "-":
                self._flag(argument)
            else:
                self._made.append(argument)
        for note in self._notes if not {"-q", "--quiet"} & set(self._made) else ():
            message("note", note)
        return self._made

    def _flag(self, argument: str) -> None:
        written, equals, value = argument.partition("=")
        name = _SHORT.get(written, written) if written not in self._own else written
        name = name.replace("_", "-") if name.startswith("--") else name
        flag = _BY_NAME.get(name)
        if flag is not None and flag.act is not None:
            flag.act(self, written, value if equals else None)
        elif name in self._own:
            self._made.append(name + equals + value)
        elif flag is None:
            self._made.append(argument)
        elif flag.is_refused:
            raise UsageError(f"{written} is not supported", why=flag.why, hint="leave it out")
        else:
            self._switch(name, value if equals else None)
            self._notes.append(f"{written} has no effect: {flag.why}")

    def value(self, written: str, value: str | None) -> str:
        """The value of a flag, which is the next argument if none follows a `=`."""
        if value is None and not self._left:
            raise UsageError(f"{written} has no value", hint=f"write {written} VALUE")
        return self._left.pop(0) if value is None else value

    def _switch(self, name: str, value: str | None) -> bool:
        """The value of a flag that may be followed by True or False."""
        if value is None and _BY_NAME[name].is_switch and self._left:
            is_value = self._left[0].lower() in (*_TRUE[:1], *_FALSE[:1])
            value = self._left.pop(0) if is_value else None
        if value is not None and value.lower() not in (*_TRUE, *_FALSE):
            raise UsageError(f"{name}={value} is neither True nor False", hint=f"write {name}, or {name}=False")
        return value is None or value.lower() in _TRUE

    def input_model(self, written: str, value: str | None) -> None:
        self._legacy.is_called_as_mo = True
        self._made.append(self.value(written, value))

    def freeze(self, written: str, value: str | None) -> None:
        from mo_loop.preprocessing import split

        for entry in split(self.value(written, value)):
            name, arrow, frozen = entry.partition("->")
            if not arrow:
                raise UsageError(f"{entry!r} has no value", hint=f"write {written} 'name->value'")
            self._made += ["--freeze", f"{name.strip()}={frozen.strip()}"]

    def compress(self, written: str, value: str | None) -> None:
        self._store_half(written if value is None else f"{written}={value}", self._switch("--compress-to-fp16", value))

    def data_type(self, written: str, value: str | None) -> None:
        name = self.value(written, value)
        if name.lower() not in ("fp16", "half", "fp32", "float"):
            raise UsageError(
                f"{written} {name} is not possible", why="weights are stored as they are, or f32 ones as f16",
                hint="FP16 and half compress, FP32 and float do not",
            )
        self._store_half(f"{written} {name}", name.lower() in ("fp16", "half"))

    def _store_half(self, written: str, wanted: bool) -> None:
        self._half[wanted] = written
        if len(self._half) == 2:
            both = f"{self._half[True]} and {self._half[False]}"
            why = "one selects f16, the other f32"
            raise UsageError(f"{both} contradict each other", why=why, hint="give one of them")
        if wanted and "--compress-to-fp16" not in self._made:
            self._made.append("--compress-to-fp16")

    def log_level(self, written: str, value: str | None) -> None:
        level = self.value(written, value).upper()
        if level not in ("CRITICAL", "ERROR", "WARN", "WARNING", "INFO", "DEBUG", "NOTSET"):
            raise UsageError(f"{written} {level} is not a level", hint="ERROR, WARNING, INFO or DEBUG")
        self._made += {"INFO": ["--verbose"], "DEBUG": ["--debug"]}.get(level, [])

    def framework(self, written: str, value: str | None) -> None:
        name = self.value(written, value)
        if name.lower() != "onnx":
            raise UsageError(f"{written} {name} is not supported", why=_OTHERS, hint="export the model to ONNX")
        self._notes.append(f"{written} has no effect: {_ONE_FRAMEWORK}")

    def keep(self, attribute: str, written: str, value: str | None) -> None:
        """Keep a value that is combined with other options."""
        setattr(self._legacy, attribute, self.value(written, value))

    def switch_on(self, ours: str, name: str, value: str | None) -> None:
        """Write our own flag, unless the value is False."""
        if self._switch(name, value):
            self._made.append(ours)


def _kept(name: str, ours: str, why: str) -> LegacyFlag:
    return LegacyFlag(name, ours, why, lambda each, *given: each.keep(name.removeprefix("--"), *given))


def _switch(name: str, ours: str) -> LegacyFlag:
    flag = name.replace("_", "-")
    return LegacyFlag(name, ours, act=lambda each, _, value: each.switch_on(ours, flag, value), is_switch=True)


def _ignored(why: str, *names: str) -> Iterator[LegacyFlag]:
    yield from (LegacyFlag(name, "", why, is_switch=True) for name in names)


def _refused(why: str, *names: str) -> Iterator[LegacyFlag]:
    yield from (LegacyFlag(name, "", why, is_refused=True) for name in names)


_OTHERS = "it is for models of other frameworks: mo-loop reads only ONNX"
_ONE_FRAMEWORK = "mo-loop reads only ONNX"
_GONE = "it had no effect in the last versions of mo"

TABLE: tuple[LegacyFlag, ...] = (
    LegacyFlag("--input_model", "MODEL", "-m and -w as well", _Rewriting.input_model),
    _kept("--output_dir", "-o DIR/", "with --input_model, -o is a folder too, as for mo"),
    LegacyFlag("--output_model", "-o", "a folder, or a name, to which .xml is added"),
    _kept("--model_name", "-o DIR/NAME.xml", "-n as well"),
    LegacyFlag("--input", "--input"),
    LegacyFlag("--output", "--output"),
    _kept("--input_shape", "--input 'x[1,3,224,224]'", "one shape for each name of --input, or for each input"),
    LegacyFlag("--freeze_placeholder_with_value", "--freeze x=1", "'a->1,b->True'", _Rewriting.freeze),
    LegacyFlag(
        "--compress_to_fp16", "--compress-to-fp16", "=True and =False as well; here the default is False",
        _Rewriting.compress, is_switch=True,
    ),
    LegacyFlag(
        "--data_type", "--compress-to-fp16", "FP16 and half compress, FP32 and float do not", _Rewriting.data_type,
    ),
    LegacyFlag("--layout", "--layout"),
    LegacyFlag("--source_layout", "--source-layout"),
    LegacyFlag("--target_layout", "--target-layout"),
    LegacyFlag("--mean_values", "--mean-values"),
    LegacyFlag("--scale_values", "--scale-values"),
    LegacyFlag("--scale", "--scale", "-s as well"),
    _switch("--reverse_input_channels", "--reverse-input-channels"),
    LegacyFlag("--batch", "--batch", "-b as well"),
    LegacyFlag("--transform", "--transform", "LowLatency2 and MakeStateful; not Pruning"),
    LegacyFlag("--extension", "--extension", "a Python file for mo-loop, not a library of OpenVINO"),
    _switch("--silent", "--quiet"),
    LegacyFlag("--verbose", "--verbose"),
    LegacyFlag(
        "--log_level", "--verbose, --debug", "INFO is --verbose, DEBUG is --debug, all others are the default",
        _Rewriting.log_level,
    ),
    LegacyFlag("--framework", "", _ONE_FRAMEWORK, _Rewriting.framework),
    _switch("--static_shape", "--static"),
    *_ignored("it is the default", "--keep_shape_ops"),
    *_ignored("there is one front end", "--use_legacy_frontend", "--use_new_frontend"),
    *_ignored("a progress line is shown on a terminal", "--progress", "--stream_output"),
    *_ignored("large weights are never completely in memory", "--share_weights"),
    *_ignored(_GONE, "--disable_fusing", "--disable_resnet_optimization"),
    LegacyFlag("--finegrain_fusing", "", _GONE),
    LegacyFlag("--move_to_preprocess", "", _GONE),
    *_refused(
        "the runtime applies its own transformations: use openvino.passes on the converted IR",
        "--transformations_config",
    ),
    *_refused("extensions of mo do not work here; docs/passes.md describes the extensions that do", "--extensions"),
    *_refused("inputs and outputs keep the layout of the model: --layout changes it", "--disable_nhwc_to_nchw"),
    *_refused("only older versions of IR have it", "--generate_deprecated_IR_V7", "--generate_deprecated_IR_V2"),
    *_refused(
        _OTHERS,
        "--saved_model_dir", "--saved_model_tags", "--input_meta_graph", "--input_checkpoint", "--input_model_is_text",
        "--tensorboard_logdir", "--tensorflow_custom_layer_libraries", "--tensorflow_custom_operations_config_update",
        "--tensorflow_use_custom_operations_config", "--tensorflow_object_detection_api_pipeline_config",
        "--input_proto", "--caffe_parser_path", "--disable_omitting_optional", "--enable_flattening_nested_params",
        "--input_symbol", "--nd_prefix_name", "--pretrained_model_name", "--save_params_from_nd",
        "--legacy_mxnet_model", "--enable_ssd_gluoncv", "--counts", "--remove_output_softmax", "--remove_memory",
        "--example_input", "--dynamo",
    ),
)
"""Every flag of mo and ovc."""

_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
_SHORT = {"-m": "--input-model", "-w": "--input-model", "-n": "--model-name", "-s": "--scale", "-b": "--batch"}
_BY_NAME = {flag.name.replace("_", "-"): flag for flag in TABLE}


# -- flags that depend on each other


def target_of(source: str, given: str | None, legacy: LegacyFlags) -> str:
    """The .xml to write. A folder gets the name of the model, a name without an ending gets .xml.

    A bucket without a name in it is a folder: s3://ir means s3://ir/. UsageError for contradictions, for standard
    output, and where nothing names the file.
    """
    if given is not None and is_url(given) and "/" not in Location(given).rest:
        given = f"{given}/"
    if given == "-":
        raise UsageError(
            "-o - is not possible", why="an IR is two files, the .xml and the .bin: both cannot go to standard output",
            hint="name the file: -o model.xml",
        )
    if given is not None and (legacy.output_dir is not None or legacy.model_name is not None):
        other = "--output_dir" if legacy.output_dir is not None else "--model_name"
        if legacy.output_dir is not None or given.endswith(".xml"):
            why = "both say where the model goes"
            raise UsageError(f"-o {given} and {other} contradict each other", why=why, hint="give one of them")
    stem = legacy.model_name or os.path.splitext(os.path.basename(source))[0]
    if source == "-" and legacy.model_name is None and (given is None or not given.endswith(".xml")):
        raise UsageError("the output has no name", why="standard input has no name", hint="give -o name.xml")
    if given is None:
        return os.path.join(legacy.output_dir or "", f"{stem}.xml")
    is_folder = given.endswith(("/", os.sep)) or os.path.isdir(given)
    if is_folder and not given.endswith(".xml"):
        return os.path.join(given, f"{stem}.xml")
    if not given.endswith(".xml") and (legacy.is_called_as_mo or legacy.model_name is not None):
        return os.path.join(given, f"{stem}.xml")
    return given if os.path.splitext(given)[1] else f"{given}.xml"


def with_shapes(inputs: str | None, shapes: str | None) -> str | None:
    """`--input` with the shapes of `--input_shape`: one for each name, or for each input where none is named.

    UsageError when there are more or fewer, or a name has a shape already.
    """
    if shapes is None:
        return inputs
    from mo_loop.preprocessing import split

    listed = list(split(shapes))
    if any(not each.startswith(("[", "(")) for each in listed):
        raise UsageError(f"--input_shape {shapes} is not a list of shapes", hint="write [1,3,224,224] or [1,3],[1,5]")
    if inputs is None:
        return ",".join(listed)
    names = list(split(inputs))
    if len(names) != len(listed):
        raise UsageError(
            f"the numbers of names in --input ({len(names)}) and of shapes in --input_shape ({len(listed)}) differ",
            hint="give one shape for each name, in the same order",
        )
    for name in names:
        if "[" in name.partition("->")[0] or "(" in name.partition("->")[0]:
            raise UsageError(f"--input gives {name} a shape, and so does --input_shape", hint="give one of them")
    parts = ((name[: _end(name)], shape, name[_end(name) :]) for name, shape in zip(names, listed, strict=True))
    return ",".join(name + shape + rest for name, shape, rest in parts)


def _end(entry: str) -> int:
    """The end of the name of an entry of `--input`."""
    return min([place for place in (entry.find("{"), entry.find("->")) if place >= 0], default=len(entry))
