"""The OpenVINO release on which the tests run the IR: the installed one, or that of MO_LOOP_RUNTIME."""

from __future__ import annotations

import os
from importlib.metadata import version

from mo_loop.target import Release
from mo_loop.target import version as numbers
from tests.processor import processor
from tools.gap_table import GAPS
from tools.runtimes import VARIABLE, release_of

RELEASE = release_of(os.environ.get(VARIABLE, "")) or version("openvino").partition("-")[0]
BY_ID = {gap.id: gap for gap in GAPS}


def runs(first: Release) -> bool:
    """Whether the release is `first` or a later one."""
    return numbers(RELEASE)[:2] >= first


def has_gap(name: str) -> bool:
    """Whether the release has an error of docs/runtime.md on this processor."""
    return BY_ID[name].is_in(RELEASE, processor())
