"""Environment variables that set options: those of OpenVINO and those of mo_loop. The library ignores them.

A value is on (1, true, on, yes), off (0, false, off, no, empty), or other text for some variables. An option on the
command line takes precedence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mo_loop.errors import UsageError

ON = ("1", "true", "on", "yes")
OFF = ("", "0", "false", "off", "no")


@dataclass(frozen=True)
class EnvironmentVariable:
    """A variable and the option that it sets: `option=value` if the variable is on.

    `text` is the option that gets a value which is neither on nor off; with `also`, `option` is then set as well.
    A variable `of_pictures` is ignored if no pictures are made.
    """

    name: str
    option: str
    value: Any = True
    text: str = ""
    also: bool = False
    of_pictures: bool = False


VARIABLES = (
    EnvironmentVariable("OV_ENABLE_PROFILE_PASS", "profile", text="profile_json"),
    EnvironmentVariable("NGRAPH_PROFILE_PASS_ENABLE", "profile"),
    EnvironmentVariable("OV_ENABLE_VISUALIZE_TRACING", "visualize", ".", text="visualize_after", also=True),
    EnvironmentVariable("NGRAPH_ENABLE_VISUALIZE_TRACING", "visualize", ".", text="visualize_after", also=True),
    EnvironmentVariable("OV_VISUALIZE_TREE_OUTPUT_SHAPES", "visualize_shapes", of_pictures=True),
    EnvironmentVariable("NGRAPH_VISUALIZE_TREE_OUTPUT_SHAPES", "visualize_shapes", of_pictures=True),
    EnvironmentVariable("OV_VISUALIZE_TREE_OUTPUT_TYPES", "visualize_types", of_pictures=True),
    EnvironmentVariable("NGRAPH_VISUALIZE_TREE_OUTPUT_TYPES", "visualize_types", of_pictures=True),
    EnvironmentVariable("MO_LOOP_CHECK_PASSES", "check_passes"),
)


def wanted(environment: Mapping[str, str]) -> Iterator[tuple[EnvironmentVariable, str, Any]]:
    """The options that the variables set: (variable, option, value).

    Raises:
        UsageError: a value is neither on nor off, and the variable accepts no other text.
    """
    for variable in VARIABLES:
        text = environment.get(variable.name, "").strip()
        if text.lower() in OFF:
            continue
        if text.lower() in ON or not variable.text:
            if text.lower() not in ON:
                raise UsageError(f"{variable.name}={text} is neither on nor off", hint="set it to 1 or 0, or unset it")
            yield variable, variable.option, variable.value
            continue
        yield variable, variable.text, text
        if variable.also:
            yield variable, variable.option, variable.value
