"""The instruction sets on which the runtime runs here, on which some errors of it depend."""

from __future__ import annotations

from mo_loop.compare.execution.processor import instruction_set, processor_flags


def lacks_kernels_of_limit(message: str) -> bool:
    """Whether the runtime refuses TopK because ONEDNN_MAX_CPU_ISA limits it to SSE41: it chooses the kernel by the
    processor then, and its parts by the limit. A processor that has no more (one without AVX) compiles TopK."""
    return "bad combination" in message and instruction_set() == "SSE41" and "avx" in (processor_flags() or ())


def has_avx512() -> bool:
    """Whether the runtime finds AVX-512 here, within ONEDNN_MAX_CPU_ISA. Where Linux does not report it, it is taken
    not to be there."""
    is_allowed = instruction_set() not in ("SSE41", "AVX2", "AVX2_VNNI")
    return is_allowed and "avx512f" in (processor_flags() or ())
