"""Advice in errors of a conversion: options to give, to change or to omit."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mo_loop.errors import InternalError, MoLoopError, UnsupportedError
from mo_loop.options import ConvertOptions
from mo_loop.support.flags import parts


def flag_of(name: str, options: ConvertOptions) -> tuple[str, str]:
    """The option that requests a pass, and the advice if it has no effect. InternalError if it is not known."""
    if name == "UnrollLoops":
        return f"--unroll {options.unroll}", "--explain-pass UnrollLoops gives the reasons; give a larger number"
    if name == "LowLatency2":
        return "--transform LowLatency2", "give the sequence one step (--input), or LowLatency2[sequence_length=1]"
    if name == "MakeStateful":
        return "--stateful" if options.stateful else f"--transform {name}", "name the pairs (--stateful-pair IN=OUT)"
    raise InternalError(f"{name} changed nothing, and flag_of in mo_loop/conversion_advice.py names no option for it")


def with_other_outputs(errors: Sequence[MoLoopError], names: Sequence[str]) -> list[MoLoopError]:
    """The errors, with the option that converts the outputs of these `names`, which depend on no error."""
    if not names:
        return list(errors)
    listed = ",".join(each if parts(each) == [each] else f'"{each}"' for each in names)
    way = f"convert the other outputs alone: --output {shlex.quote(listed)}"
    return [
        each.at(hint=f"{each.hint}; or {way}" if each.hint else way) if isinstance(each, UnsupportedError) else each
        for each in errors
    ]
