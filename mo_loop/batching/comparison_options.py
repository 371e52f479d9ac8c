"""Comparing: how a batch compares the IR of a model with ONNX Runtime. It is not in task.py, which loads the batch."""

from __future__ import annotations

from dataclasses import dataclass, fields

from mo_loop.compare.results.verify_settings import VerifyOptions
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from mo_loop.support.flags import COMPARISON, FILES, flag


@dataclass(frozen=True)
class Comparing(VerifyOptions):
    """How the IR is compared with ONNX Runtime: the arguments of `mo_loop.verify`, with `limit` for all of it.

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
    limit: float = flag(
        300.0, "Stop the comparison of a model that takes longer.", COMPARISON, "--verify-timeout", kind="number",
        above=0, most=1e6, show_default=True, metavar="SECONDS", place=1,
    )
    strict: bool = flag(
        False, "With --verify: a model that cannot be compared fails as well.", COMPARISON, "--verify-strict"
    )
    # fmt: on

    def for_model(self, ir: str, options: ConvertOptions) -> VerifyOptions:
        """The arguments of `verify` for one model."""
        given = {each.name: getattr(self, each.name) for each in fields(VerifyOptions)}
        return VerifyOptions(**{**given, "ir": ir, "options": options})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ir is not None or self.save is not None or self.dump is not None:
            raise UsageError("a batch has no ir, save and dump", why="they are those of one model", hint="verify it")
