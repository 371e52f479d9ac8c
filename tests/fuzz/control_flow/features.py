"""The features that the random models must have: each is in at least LEAST of them.

A feature is counted under its key while a model is generated; `GROUPS` describes the keys.
"""

from collections.abc import Iterator, Mapping

from tests.texts import texts

LEAST = 0.03
NESTED = 0.3
"""The least share of models with control flow in control flow."""

KINDS = ("Loop", "Scan", "If")
GROUPS: Mapping[str, Mapping[str, str]] = {
    group: {key: said or key for key, _, said in (line.partition(" | ") for line in text.splitlines())}
    for group, text in texts(__file__).items()
}


def features() -> Iterator[str]:
    """The keys of all features."""
    return (key for group in GROUPS.values() for key in group)


def rare(counts: Mapping[str, int], models: int) -> dict[str, float]:
    """The features that too few of the models have, each with its share."""
    shares = {key: counts.get(key, 0) / max(models, 1) for key in features()}
    return {key: share for key, share in shares.items() if share < (NESTED if key == "depth 2 and more" else LEAST)}
