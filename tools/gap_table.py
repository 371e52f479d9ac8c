"""GAPS: every known error of OpenVINO's devices, with what avoids it.

A pass states in `avoids` the errors that it avoids, a family of translators in `AVOIDS`, and so does the last check.
"""

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

from mo_loop.frontend.registry import FAMILIES
from mo_loop.target import Gap
from mo_loop.transforms import last_check
from mo_loop.transforms.last_check import NOT_AVOIDED
from mo_loop.transforms.pipelines import avoided_gaps


def _collected() -> Iterator[Gap]:
    yield from avoided_gaps()
    for family in FAMILIES:
        yield from getattr(import_module(f"mo_loop.frontend.ops.{family}"), "AVOIDS", ())
    yield from (replace(gap, rule="last check") for gap in last_check.AVOIDS)
    yield from NOT_AVOIDED


GAPS = tuple(_collected())
"""Those of passes in the order in which they run, then those of translators, then those that nothing avoids."""
