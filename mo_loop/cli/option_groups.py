"""The groups of options in --help and in docs/cli.md."""

from __future__ import annotations

import click

GROUPS = {
    "Inputs and outputs": (
        "--output-model", "--output-dir", "--if", "--inputs", "--sets", "--steps", "--seed", "--save",
        "--input", "--output", "--freeze", "--rename", "--sequence-io", "--allow-external",
        "--mapping", "--durable",
    ),
    "Preparation of images": (
        "--layout", "--source-layout", "--target-layout", "--mean-values", "--scale-values", "--scale",
        "--reverse-input-channels", "--batch",
    ),
    "Conversion": (
        "--compress-to-fp16", "--unroll", "--target", "--quantization", "--strict", "--limit", "--extension",
        "--no-plugins",
    ),
    "States": ("--transform", "--stateful", "--stateful-pair", "--beam-idx"),
    "Comparison": (
        "--verify", "--verify-strict", "--expected", "--custom-ops", "--rtol", "--atol", "--tolerance", "--layers",
        "--layers-memory", "--call-timeout", "--device", "--precision", "--against", "--verify-timeout",
    ),
    "Run": (
        "--config", "--scheduler", "--jobs", "--timeout", "--trial-timeout", "--memory", "--scratch", "--keep-going",
        "--force", "--plan",
    ),
    "Passes and debugging": (
        "--passes", "--disable-pass", "--enable-pass", "--stop-after", "--explain-pass", "--profile", "--profile-json",
        "--dump", "--dump-format", "--dump-after", "--dump-around", "--dump-depth", "--visualize", "--visualize-after",
        "--visualize-shapes", "--visualize-types", "--check-passes", "--debug",
    ),
    "Reports and messages": (
        "--format", "--level", "--codes", "--report", "--junit", "--summary", "--baseline", "--quiet", "--verbose",
        "--version", "--help",
    ),
}  # fmt: skip
"""Title -> the options in their order."""


class GroupedCommand(click.Command):
    """A command whose --help lists its options below the titles of `GROUPS`, and all others last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups."""
        for title, records in self.groups(ctx).items():
            with formatter.section(title):
                formatter.write_dl(records)

    def groups(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Title -> the options and their texts."""
        options = {name: each for each in self.get_params(ctx) for name in each.opts if name.startswith("--")}
        placed: set[str] = set()
        found: dict[str, list[click.Parameter]] = {}
        for title, names in (*GROUPS.items(), ("Other options", tuple(options))):
            found[title] = []
            for name in names:
                if name in options and not placed.intersection(options[name].opts):  # an alias stands with its option
                    placed.update(options[name].opts)
                    found[title].append(options[name])
        shown = {title: [each.get_help_record(ctx) for each in options] for title, options in found.items()}
        return {title: kept for title, records in shown.items() if (kept := [each for each in records if each])}
