"""Writes the page docs/control-flow.md: fixed text, and the tables of a run over all features."""

from collections.abc import Iterator, Mapping

from tests.texts import texts

from .features import GROUPS

Tally = Mapping[str, tuple[int, int]]

OURS = (
    "The models come from the project's own generator (`tests/fuzz/control_flow`). The shares compare converters on",
    "these models, and say nothing about models in use. For models by others, [models.md](models.md) has exported and",
    "packaged ones. `make conformance` runs the backend suite of ONNX: `tests/conformance/expectations.toml` names",
    "every case that does not pass, with the reason.",
)

HEAD = texts(__file__)["head"] + "\n"


def page(results: Mapping[str, Tally], counts: Mapping[str, int], models: int, seed: int) -> str:
    """The whole page. `results` has one tally per converter, `counts` the number of models with each feature."""
    names = list(results)
    lines = [
        f"There are {models} models of seed {seed}. Each number is the share of the models with a feature that were "
        "converted, compiled, and gave the expected numbers in all inferences.",
        "",
        *OURS,
        "",
        f"All models: {', '.join(f'{_name(name)} {_overall(results[name])}' for name in names)}.",
        "",
    ]
    for title, group in GROUPS.items():
        lines += [f"### {title}", "", f"| feature | models | {' | '.join(map(_name, names))} |"]
        lines += ["|---|--:|" + "--:|" * len(names), *_rows(group, results, counts), ""]
    return HEAD + "\n".join(lines)


def _rows(group: Mapping[str, str], results: Mapping[str, Tally], counts: Mapping[str, int]) -> Iterator[str]:
    for key, words in group.items():
        shares = " | ".join(_share(tally.get(key, (0, 0))) for tally in results.values())
        yield f"| {words} | {counts.get(key, 0)} | {shares} |"


def _name(converter: str) -> str:
    return {"ovc": "openvino.convert_model"}.get(converter, converter)


def _share(pair: tuple[int, int]) -> str:
    passed, total = pair
    return f"{100 * passed / total:.1f} %" if total else "-"


def _overall(tally: Tally) -> str:
    """The share of all models: every model has a depth."""
    depths = [pair for key, pair in tally.items() if key.startswith("depth ") and key[6:].isdigit()]
    return _share((sum(passed for passed, _ in depths), sum(total for _, total in depths)))
