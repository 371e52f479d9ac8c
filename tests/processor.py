"""The instruction sets on which the runtime runs here, on which some errors of it depend."""

from __future__ import annotations

import re

from mo_loop.compare.execution.processor import CPUINFO, instruction_set


def has_avx512() -> bool:
    """Whether the runtime finds AVX-512 here, within ONEDNN_MAX_CPU_ISA. Where Linux does not report it, it is taken
    not to be there."""
    flags = re.search(r"^flags\s*:(.*)$", CPUINFO.read_text("utf-8"), re.MULTILINE) if CPUINFO.exists() else None
    is_allowed = instruction_set() not in ("SSE41", "AVX2", "AVX2_VNNI")
    return is_allowed and flags is not None and "avx512f" in flags[1].split()
