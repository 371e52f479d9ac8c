"""The page docs/control-flow.md: what is said once, and the table of a run over all features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .features import GROUPS

Tally = Mapping[str, tuple[int, int]]

HEAD = """# Control flow

What ONNX's `Loop`, `Scan` and `If` can say, and what becomes of it. This page is written by
`python tools/fuzz_controlflow.py --docs docs/control-flow.md`: it generates random models, converts each, runs several
input sets in changing order on one compiled model (CPU device), and compares with ONNX Runtime.

## How the standard is read

- Trip count and condition are tensors of one element and any rank. A condition of integers is true where it is not 0.
- A trip count of 0 or below means no iteration, an omitted one no limit. What the body returns as its condition is
  heeded in every mode, with an omitted condition too: so ONNX Runtime and the exporters read the standard.
- Integers are of 32 bits in the runtime. A trip count from 2^31 - 1 on is no limit where the body can stop by itself;
  one above that which is known only at run time cannot be told from a smaller or a negative one.
- The rank of the iteration number and of the condition in a body is that which the body declares, else a scalar, or the
  rank of the condition that is given; without one, the rank of what the body returns.
- After no iterations a final value is the initial one, and a scan output has length 0. Its other dimensions are those
  that are known, else those that the body declares for its output, else 0.
- A name in a body means the innermost value of that name; that it hides an outer one is a warning, and an error in a
  strict conversion. Nodes may be listed in any order. Body inputs are bound by position.
- Branches of an If may differ in shape. Where they differ in rank, what reads the value moves into the branches.

## What is refused

| what | code |
|---|---|
| a body with another number of inputs or outputs than its node has; Scan inputs of different lengths | ML226 |
| a missing initial value, an unknown attribute, an output that the node does not have | ML227 |
| functions that call each other in a circle (the circle is printed) | ML228 |
| a trip count or condition that has several elements for certain | ML229 |
| a name that nothing defines, a circle of nodes | ML223, ML224 |
| a state whose element type changes, branches of different element types | ML239 |
| bodies nested deeper than 32 | ML312 |
| Scan over a tensor of unknown rank | ML314 |
| branches of different rank whose value leaves the graph, or is carried by a loop | ML315 |

The message names the node by its path through the bodies. A branch that is never taken may hold anything.

## What converts

"""


def page(results: Mapping[str, Tally], counts: Mapping[str, int], models: int, seed: int) -> str:
    """The whole page. `results` has one tally a converter, `counts` the models that have each feature."""
    names = list(results)
    lines = [
        f"{models} models of seed {seed}. A number is the share of the models with the feature, among others, that "
        "were converted, compiled, and gave the expected numbers in all inferences.",
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
    """The share over all models: every model has a depth."""
    depths = [pair for key, pair in tally.items() if key.startswith("depth ") and key[6:].isdigit()]
    return _share((sum(passed for passed, _ in depths), sum(total for _, total in depths)))
