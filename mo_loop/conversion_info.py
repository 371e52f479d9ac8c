"""conversion_info: the converter, its version and the options of a conversion, as the IR records them.

    graph.rt_info.update(conversion_info(ConvertOptions(input="x[1,3]", strict=True)))

    <converter><name value="mo_loop" /><version value="0.2.0" /><target value="2024.6-2026.4" /></converter>
    <conversion_parameters><input value="x[1,3]" /><strict value="True" /></conversion_parameters>

ovc writes `conversion_parameters` in the same place. Only options that differ from their default are recorded. Folders
of files and times are not: the same model and options give the same bytes on every machine.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from mo_loop.graph.types import name_of
from mo_loop.options import ConvertOptions
from mo_loop.version import __version__

_SHOWN = 16
"""The largest number of elements of an array that is recorded by its values."""


def conversion_info(options: ConvertOptions) -> dict[str, Any]:
    """The entries of the model's rt_info."""
    parameters: dict[str, str] = {}
    for option in fields(ConvertOptions):
        value = getattr(options, option.name)
        if option.name == "config":
            named = {} if value is None else {"disable_pass": value.disabled, "enable_pass": value.enabled}
            parameters |= {key: ",".join(names) for key, names in named.items() if names}
        elif option.name == "extensions":
            given = value if isinstance(value, list | tuple) else [value]
            # A file by its name without the folder, a module or function by its name.
            names = [os.path.basename(each) if isinstance(each, str | os.PathLike)
                     else str(getattr(each, "__name__", type(each).__name__)) for each in given]
            parameters |= {"extensions": ",".join(names)} if names else {}
        elif option.name == "transform":
            parameters |= {"transform": ",".join(map(str, value))} if value else {}
        elif value is option.default or not option.metadata.get("recorded", True):
            continue  # save_model records the compression, the target is next to the version, others change nothing
        elif _text(value) not in (_text(option.default), "", "[]"):
            parameters[option.name] = _text(value)
    info: dict[str, Any] = {
        "converter": {"name": "mo_loop", "version": __version__, "target": str(options.releases)},
        "conversion_parameters": parameters,
    }
    if options.quantization == "exact":
        # The plugin quantises activations before compressed weights by default, also if it is to compute in f32.
        info["runtime_options"] = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    return info


def _text(value: Any) -> str:
    """A value as text; for other objects the class, because their address differs in each run."""
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_text(each)}" for key, each in value.items())
    if isinstance(value, np.ndarray):
        return _text(value.tolist()) if value.size <= _SHOWN else f"{name_of(value.dtype)}{list(value.shape)}"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, str | int | float | np.generic):
        return str(value)
    return "?" if value is None else type(value).__name__


def size_rows(sizes: Mapping[str, str]) -> list[str]:
    """Which sizes of inputs may change, as rows of text, from the entry that the pass WriteSizes makes: a row for each
    input with a checked size, and one for all others; none if no input has a size.

    >>> size_rows({"x": "?,3,?,?", "h": "6,8", "n": "", "ids": "?,?"})
    ['x[?,3,?,?]: ? may change, 3 is checked', 'h[6,8]: 6, 8 are checked', 'all others may change']
    >>> size_rows({"x": "?,?"}), size_rows({"x": "2,3"})
    (['all may change'], ['none may change'])
    """
    listed = {name: text.split(",") for name, text in sizes.items() if text}
    if listed and all(each.isdecimal() for parts in listed.values() for each in parts):
        return ["none may change"]
    rows = []
    for name, parts in listed.items():
        checked = [each for each in dict.fromkeys(parts) if each not in ("?", "...")]
        if checked:
            free = "? may change, " if "?" in parts else ""
            are = "is" if len(checked) == 1 else "are"
            rows.append(f"{name}[{sizes[name]}]: {free}{', '.join(checked)} {are} checked")
    if len(rows) < len(listed):
        rows.append("all others may change" if rows else "all may change")
    return rows
