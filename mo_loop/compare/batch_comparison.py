"""Comparing: compares the IR of each model of a batch with ONNX Runtime, a `mo_loop.batching.engine.IrComparison`."""

from dataclasses import dataclass, fields, replace
from typing import Any

from mo_loop.compare.verify_options import VerifyOptions, require_packages
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from mo_loop.support.flags import COMPARISON, FILES, flag


@dataclass(frozen=True)
class Comparing(VerifyOptions):
    """How the IR is compared with ONNX Runtime: the arguments of `mo_loop.verify`, with `limit` for all of it.

    With `strict` a model that cannot be compared fails.
    """

    inputs: tuple[str, ...] = flag(
        (), "Inputs for --verify. By default it generates inputs. Can be repeated.", FILES,
        "--input-data", "--inputs", "inputs", kind="path", metavar="FILE",
    )
    sets: int = flag(
        2, "The number of sets of inputs that --verify generates.", FILES, least=1, show_default=True, metavar="N"
    )
    limit: float = flag(
        300.0, "End the comparison of a model that takes longer.", COMPARISON, "--verify-timeout", kind="number",
        above=0, most=1e6, show_default=True, metavar="SECONDS", place=1,
    )
    strict: bool = flag(
        False, "With --verify: a model that cannot be compared is a failure too.", COMPARISON, "--verify-strict"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ir is not None or self.save is not None or self.dump is not None:
            raise UsageError("a batch has no ir, save and dump", why="they are those of one model", hint="verify it")

    def require(self) -> None:
        """InputError unless this machine can compare."""
        require_packages()

    def compare(self, source: str, ir: str, options: ConvertOptions) -> tuple[Any, int, str]:
        """Compare the IR of one model, converted with `options`: the report, the exit code, a text if they differ.

        NotComparableError if that is not possible.
        """
        from mo_loop.compare.results.report_formats import differences
        from mo_loop.compare.verifying import verified

        given = {each.name: getattr(self, each.name) for each in fields(VerifyOptions)}
        report = verified(source, VerifyOptions(**{**given, "ir": ir, "options": options}))
        return report.to_dict(), report.exit_code, "" if report.passed else differences(report)

    def with_inputs(self, inputs: tuple[str, ...]) -> "Comparing":
        """The same with other files of inputs."""
        return replace(self, inputs=inputs)
