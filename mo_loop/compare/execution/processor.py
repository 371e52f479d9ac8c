"""The instructions with which the CPU device multiplies integers of 8 bits."""

from __future__ import annotations

import os
import re
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")

LIMIT = "ONEDNN_MAX_CPU_ISA"
"""The environment variable that limits the instructions, as the runtime reads it."""

_SETS = (("AVX512_CORE_VNNI", "avx512_vnni"), ("AVX2_VNNI", "avx_vnni"), ("AVX512_CORE", "avx512bw"), ("AVX2", "avx2"))


def instruction_set() -> str:
    """The best of the sets that matter for 8 bits: AVX512_CORE_VNNI, AVX2_VNNI, AVX512_CORE, AVX2, SSE41; empty where
    the system does not report it."""
    limit = os.environ.get(LIMIT, "").upper()
    if limit in ("SSE41", *(name for name, _ in _SETS)):
        return limit
    flags = processor_flags()
    return next((name for name, flag in _SETS if flag in flags), "SSE41") if flags is not None else ""


def processor_flags() -> list[str] | None:
    """The flags of the processor, without regard to the limit; None where the system does not report them."""
    text = CPUINFO.read_text("utf-8") if CPUINFO.exists() else ""
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return None if flags is None else flags[1].split()


def has_vnni() -> bool:
    """Whether sums of products of 8 bits do not saturate; also where the system does not report it."""
    return "VNNI" in (instruction_set() or "VNNI")
