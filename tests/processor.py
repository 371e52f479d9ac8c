"""The instruction sets of this machine's processor, on which some errors of the runtime depend."""

from __future__ import annotations

import re
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def has_avx512() -> bool:
    """Whether the runtime finds AVX-512 here. Where Linux does not report it, it is taken not to be there."""
    flags = re.search(r"^flags\s*:(.*)$", CPUINFO.read_text("utf-8"), re.MULTILINE) if CPUINFO.exists() else None
    return flags is not None and "avx512f" in flags[1].split()
