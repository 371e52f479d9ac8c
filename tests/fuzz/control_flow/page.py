"""Writes the page docs/control-flow.md: fixed text, and the tables of a run over all features."""

from collections.abc import Iterator, Mapping

from .features import GROUPS

Tally = Mapping[str, tuple[int, int]]

OURS = (
    "The models come from the project's own generator (`tests/fuzz/control_flow`). The shares compare converters on",
    "these models, and say nothing about models in use. For models by others, [models.md](models.md) has exported and",
    "packaged ones. `make conformance` runs the backend suite of ONNX: `tests/conformance/expectations.toml` names",
    "every case that does not pass, with the reason.",
)

HEAD = """# Control flow

This page describes how `Loop`, `Scan` and `If` of ONNX are interpreted and converted, with results on random models.
`python tools/fuzz_controlflow.py --docs docs/control-flow.md` writes it: the tool converts each model, runs several
input sets in changing order on one compiled model (CPU device), and compares with ONNX Runtime.

## Interpretation of the standard

- Trip count and condition are tensors of one element and any rank. An integer condition is true if it is not 0.
- A trip count of 0 or below means no iteration; without a trip count the number of iterations is unlimited. The
  condition that the body returns is always used, also if the initial condition is omitted, as in ONNX Runtime and the
  exporters.
- Integers have 32 bits in the runtime. A trip count of 2^31 - 1 or more has no effect if the body can end the loop. If
  such a trip count is known only at run time, it cannot be distinguished from a smaller or a negative one.
- The iteration number and the condition have the rank that the body declares. Without a declaration the iteration
  number is a scalar, and the condition has the rank of the initial condition, or else of the one that the body returns.
- After zero iterations a final value is the initial value, and a scan output has length 0. Its other dimensions are
  the known ones, else those that the body declares for its output, else 0.
- A name in a body means the innermost value of that name. A name that hides an outer value is a warning, with
  `--strict` an error. Nodes can be listed in any order. Body inputs are bound by position.
- Branches of an If can differ in shape. If they differ in rank, the nodes that read the value move into the branches.
- The rank of a state can differ between iterations, by at most 4 axes, such as `[3]` and `[2,3]`. The rank of an output
  of If can differ by leading axes of size 1, such as `[]` and `[1]`. The IR gives such a value its widest rank, with
  leading axes of size 1. An operator can read it if it broadcasts, reshapes or reduces the value, if its axes count
  from the end, or if ONNX has it for the widest rank alone, such as `Transpose`. A model output of this kind has the
  declared rank, or else the widest one, in every run; ONNX Runtime gives the rank of the last value, and a warning
  reports it.
- The initial value of a state may be too small for a branch that runs only later. The branch is checked with the later
  sizes of the state.

## Refused models

| what | code |
|---|---|
| a body whose number of inputs or outputs is not that of its node; Scan inputs of different lengths | ML226 |
| a missing initial value, an unknown attribute, an output that the node does not have | ML227 |
| functions that call each other in a cycle (the message shows the cycle) | ML228 |
| a trip count or condition that is known to have several elements | ML229 |
| a name that nothing defines, a cycle of nodes | ML223, ML224 |
| a state whose element type changes, branches of different element types | ML239 |
| bodies nested deeper than 32 | ML312 |
| Scan over a tensor of unknown rank | ML314 |
| branches whose ranks differ by more than axes of size 1, in an output of the model or a state of a loop | ML315 |
| an operator, such as Shape, whose result depends on a rank that can differ by axes of size 1 | ML328 |

The message names the node by its path through the bodies. A branch that is never executed is not checked.

## Results on random models

"""


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
