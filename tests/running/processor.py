"""The instruction sets on which the runtime runs here, on which some errors of it depend."""

import os
from collections.abc import Sequence

import pytest

from mo_loop.compare.execution.runtime import ISA_LIMIT as LIMIT
from mo_loop.compare.execution.runtime import processor_flags
from mo_loop.target import Processor

MAY_CRASH = "MVN, which the limit of the instructions may crash"
"""The last line in the log of a worker under a limit, if the model has an MVN: tests/running/limited_worker.py."""

OF_THE_LIMIT = (
    "bad combination", "evex is invalid", "primitive descriptor for the inner product", "descriptors list is empty",
    MAY_CRASH,
)
"""The first two are said where a kernel is assembled of instructions that do not fit together, the next two where there
is none for bf16 or compressed weights, which the runtime keeps because the processor has instructions for them."""

REFUSED = {Processor.SSE41: ("Unsupported operation of type: GroupNormalization",)}
"""Messages of refusals on a kind of processor: of an operation that OpenVINO's own front end makes."""

NO_LIMIT = "ALL"
"""The value of ONEDNN_MAX_CPU_ISA that allows all instructions."""


def processor(limit: str = "") -> Processor:
    """The kind of processor that the runtime finds here, within `limit` or ONEDNN_MAX_CPU_ISA; one with AVX2 where the
    system reports none."""
    limit, flags = (limit or os.environ.get(LIMIT, "")).upper(), processor_flags()
    if "avx512bw" in (flags or ()) and limit not in ("SSE41", "AVX", "AVX2", "AVX2_VNNI"):
        return Processor.AVX512_CORE
    has_avx2 = flags is None or "avx2" in flags
    return Processor.AVX2 if has_avx2 and limit not in ("SSE41", "AVX") else Processor.SSE41


def is_limited() -> bool:
    """Whether ONEDNN_MAX_CPU_ISA makes this processor one of another kind."""
    return processor() is not processor(NO_LIMIT)


def is_of_the_processor(message: str) -> bool:
    """Whether the runtime does not compute a model because of a known error of this kind of processor, or because of
    the limit alone: it chooses the kernels of TopK, MVN, Interpolate and DFT, and the types of products, by the
    processor, and the instructions in them by the limit. A processor that has no more instructions computes these."""
    known = OF_THE_LIMIT if is_limited() else ()
    return any(each in message for each in (*known, *REFUSED.get(processor(), ())))


def wrong_under(limit: Processor, layer: str) -> pytest.MarkDecorator:
    """Skip a test whose numbers are wrong under a limit alone, as an emulated processor of this kind shows."""
    reason = f"{layer} is wrong under ONEDNN_MAX_CPU_ISA={limit.name}, and right on such a processor"
    return pytest.mark.skipif(is_limited() and processor() is limit, reason=reason)


def fail_or_skip(bad: Sequence[str]) -> None:
    """AssertionError with the messages that are not of the processor; if all are, the test is skipped."""
    others = [each for each in bad if not is_of_the_processor(each)]
    assert not others, "\n".join(others)
    if bad:
        pytest.skip(f"not computed on {processor().value}, or under this limit: {bad[0]}")
