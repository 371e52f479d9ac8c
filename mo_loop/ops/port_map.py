"""The entries of port maps, which connect a control-flow operation with its bodies.

A port map refers to Parameter and Result nodes of the body; ids exist only in the file. `input_map` has an entry for
each data input, `output_map` one for each output:

    Invariant(p)              the whole tensor, the same in every iteration
    Merged(p, r)              the initial value of a state; result r is its next value (a back edge)
    Sliced(p, axis, ...)      piece number i of the tensor in iteration i
    Final(r)                  the value of r in the last iteration
    Concatenated(r, axis)     the values of r of all iterations, concatenated along an axis
    Branched(p, q)            what the parameters of both branches of an If receive
    Selected(r, q)            the value of r or q, of the branch that runs
"""

from dataclasses import dataclass

from mo_loop.ops.base import Parameter, Result


@dataclass(frozen=True)
class Invariant:
    """The whole tensor, the same in every iteration."""

    parameter: Parameter


@dataclass(frozen=True)
class Merged:
    """The initial value of a state whose next value is `result`."""

    parameter: Parameter
    result: Result


@dataclass(frozen=True)
class Sliced:
    """Piece number i of the tensor in iteration i. A stride below 0 runs backwards (start -1, end 0)."""

    parameter: Parameter
    axis: int
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1


@dataclass(frozen=True)
class Final:
    """The value of `result` in the last iteration."""

    result: Result


@dataclass(frozen=True)
class Concatenated:
    """The values of `result` of all iterations, concatenated along `axis`; with a negative stride in reverse order.

    `declared` has the dimensions of the whole that are known only from the declaration in the model, -1 for others. An
    output after zero iterations has these dimensions.
    """

    result: Result
    axis: int
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1
    declared: tuple[int, ...] = ()


@dataclass(frozen=True)
class Branched:
    """An input of If: the Parameter that receives it in each branch, None if the branch does not read it."""

    then: Parameter | None
    else_: Parameter | None


@dataclass(frozen=True)
class Selected:
    """An output of If: its Result in each branch."""

    then: Result
    else_: Result
