"""Comparing: how a batch compares the IR of a model with ONNX Runtime. It is not in task.py, which loads the batch."""

from __future__ import annotations

from dataclasses import dataclass

from mo_loop.support.flags import COMPARISON, FILES, flag


@dataclass(frozen=True)
class Comparing:
    """How the IR is compared with ONNX Runtime: the arguments of `mo_loop.verify`, and `seconds` for all of it.

    With `strict` a model that cannot be compared fails.
    """

    # fmt: off
    inputs: tuple[str, ...] = flag(
        (), "Inputs for --verify instead of generated ones. Can be repeated.", FILES,
        "--input-data", "--inputs", "inputs", kind="path", metavar="FILE",
    )
    sets: int = flag(
        2, "The number of generated sets of --verify.", FILES, least=1, show_default=True, metavar="N"
    )
    seed: int = flag(0, "The seed of these inputs.", FILES, least=0, show_default=True, metavar="N")
    rtol: float | None = flag(
        None, "The relative tolerance of --verify.", COMPARISON, kind="number", least=0, place=1
    )
    atol: float | None = flag(
        None, "The absolute tolerance of --verify.", COMPARISON, kind="number", least=0, place=1
    )
    seconds: float = flag(
        300.0, "Stop the comparison of a model that takes longer.", COMPARISON, "--verify-timeout", kind="number",
        above=0, most=1e6, show_default=True, metavar="SECONDS", place=1,
    )
    strict: bool = flag(
        False, "With --verify: a model that cannot be compared fails as well.", COMPARISON, "--verify-strict"
    )
    # fmt: on
