"""The options of a command in --help, in groups.

A command of the class `GroupedCommand` shows its options below the titles of `GROUPS`; those that no group names come
last.
"""

from __future__ import annotations

import click

GROUPS = {
    "Inputs and outputs": (
        "--output-model", "--output-dir", "--input", "--output", "--freeze", "--rename", "--sequence-io", "--mapping",
    ),
    "Preparation of images": (
        "--layout", "--source-layout", "--target-layout", "--mean-values", "--scale-values", "--scale",
        "--reverse-input-channels", "--batch",
    ),
    "Conversion": ("--compress-to-fp16", "--unroll", "--strict", "--extension", "--no-plugins"),
    "Run": ("--jobs", "--timeout", "--memory", "--keep-going", "--force"),
    "Passes and debugging": (
        "--passes", "--disable-pass", "--enable-pass", "--stop-after", "--explain-pass", "--profile", "--profile-json",
        "--dump", "--dump-format", "--visualize", "--visualize-after", "--visualize-shapes", "--visualize-types",
        "--check-passes", "--debug",
    ),
    "Reports and messages": (
        "--format", "--level", "--codes", "--report", "--junit", "--summary", "--baseline", "--quiet", "--verbose",
        "--version", "--help",
    ),
}  # fmt: skip
"""Title -> the options in their order."""


class GroupedCommand(click.Command):
    """A command with its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups."""
        left = {name: each for each in self.get_params(ctx) for name in each.opts if name.startswith("--")}
        for title, names in GROUPS.items():
            _write(title, [left.pop(name) for name in names if name in left], ctx, formatter)
        _write("Other options", list(left.values()), ctx, formatter)


def _write(title: str, options: list[click.Parameter], ctx: click.Context, formatter: click.HelpFormatter) -> None:
    records = [record for each in options if (record := each.get_help_record(ctx)) is not None]
    if records:
        with formatter.section(title):
            formatter.write_dl(records)
