"""The costs of the rules against errors of the runtime: operations added, bytes written, and time of an inference.

    python tools/rule_costs.py                       # all rules; writes tests/runtime/rule_costs.json
    python tools/rule_costs.py GuardTripCounts ...   # these, the others stay as they are

Every exported model (tests/models) is converted with all rules, and once more without each rule that changes it. Both
are compiled twice for the installed release, and the four run in turn on the largest inputs (tools/timing.py). A model
that is wrong or fails without the rule is counted and not timed. docs/runtime.md has the results as a table.

Bytes are those of the outputs of all operations, without views, constants, inputs and outputs: what the added ones
write in one inference, the operations of a body in one iteration. A dimension that the inputs do not determine counts
as 1.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.api import convert_model, save_model
from mo_loop.errors import ConversionWarning
from mo_loop.graph import Graph, Node
from mo_loop.graph.dimension import Dim, Dimension
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.control import Control
from mo_loop.ops.views import Reshape, Squeeze, Unsqueeze
from mo_loop.support.workers import Pool
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.pipelines import RULES
from mo_loop.transforms.runtime import local
from tests.models.exported import Exported
from tests.runtime.probing import probes
from tools.gap_table import GAPS
from tools.timing import alternated

FILE = Path(__file__).resolve().parents[1] / "tests" / "runtime" / "rule_costs.json"
FOLDERS = ("pytorch", "pytorch_sequences", "tensorflow", "transformers")
ROUNDS = 15

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Cost:
    """The operations, bytes and time that a rule adds to one model.

    `ratio` is the shortest time with it by that without it; None if the model is wrong without it.
    """

    operations: int
    bytes: int
    ratio: float | None


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write the file; always 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="the rules to measure, by default all")
    options = parser.parse_args(arguments)
    known = names()
    if unknown := [each for each in options.rules if each not in known]:
        parser.error(f"no rule is called {', '.join(unknown)}")
    wanted = options.rules or known
    warnings.simplefilter("ignore", ConversionWarning)
    costs: dict[str, list[Cost]] = {rule: [] for rule in wanted}
    with Pool("mo_loop.compare.execution.isolated:serve", limit=300.0) as pool, tempfile.TemporaryDirectory() as folder:
        for rule, path, feeds in changes(wanted):
            costs[rule].append(measured(rule, path, feeds, pool, Path(folder)))
    found = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    found.update({rule: {"on_probes": on_probes(rule), **summed(costs[rule])} for rule in wanted})
    rows = {rule: found[rule] for rule in known if rule in found}
    FILE.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return 0


def names() -> list[str]:
    """The names of all rules that a conversion for any device runs, in the order in which they run."""
    rules = [each for each in (*RULES, *local.RULES) if each is not local.LocalRules]
    return [each.__name__ for each in rules if not each.avoids or not all(gap.alone for gap in each.avoids)]


def changes(rules: Sequence[str]) -> Iterator[tuple[str, Path, Arrays]]:
    """Every exported model with each of the rules that changes it, and its largest inputs."""
    for folder in FOLDERS:
        models = Exported(folder)
        for name in models.names:
            config = PassConfig()
            config.explain(*rules)
            convert_model(models.path(name), config=config)
            changed = {each.pass_name for each in config.explanations if each.outcome == "changed"}
            feeds = models.models[name].largest
            yield from ((rule, models.path(name), feeds) for rule in rules if rule in changed)


def measured(rule: str, source: Path, feeds: Arrays, pool: Pool, folder: Path) -> Cost:
    """The cost of the rule in one model. What runs without the rule may crash, so it runs in the pool."""
    config = PassConfig()
    config.disable(rule)
    both = convert_model(source), convert_model(source, config=config)
    paths = folder / "with.xml", folder / "without.xml"
    for model, path in zip(both, paths, strict=True):
        save_model(model, path)
    outcome = pool.call((alternated, (*paths, feeds, ROUNDS)))
    operations = _operations(both[0].graph) - _operations(both[1].graph)
    made, saved = _added(both[0].graph, both[1].graph), _added(both[1].graph, both[0].graph)
    written = _bytes(made, _sizes(both[0].graph, feeds)) - _bytes(saved, _sizes(both[1].graph, feeds))
    return Cost(operations, written, outcome.value if outcome.ok else None)


def _operations(graph: Graph) -> int:
    return sum(1 for _ in _computing(graph))


def _added(graph: Graph, other: Graph) -> Iterator[Node]:
    """The operations of a graph that the other one does not have for the same nodes of the model."""
    there = Counter((type(node), node.origin) for node in _computing(other))
    for node in _computing(graph):
        key = (type(node), node.origin)
        if there[key] <= 0:
            yield node
        there[key] -= 1


def _bytes(nodes: Iterable[Node], sizes: Mapping[Any, int]) -> int:
    writing = (node for node in nodes if not isinstance(node, Control | Reshape | Squeeze | Unsqueeze))
    types = [each.type for node in writing for each in node.outputs]
    return sum(_size(type_, sizes) for type_ in types if isinstance(type_, TensorType))


def _sizes(graph: Graph, feeds: Arrays) -> dict[Any, int]:
    """The symbols in the shapes of the inputs, and their sizes."""
    found: dict[Any, int] = {}
    for parameter in graph.parameters:
        shape = feeds[parameter.name].shape if parameter.name in feeds else ()
        dims = zip(parameter.output.type.dims, shape, strict=bool(shape))
        found.update((dim.symbol, size) for dim, size in dims if isinstance(dim, Dim))
    return found


def _size(type_: TensorType, sizes: Mapping[Any, int]) -> int:
    assert type_.dtype is not None
    return type_.dtype.size_of(math.prod(max(_length(dim, sizes), 0) for dim in type_.shape or ()))


def _length(dim: Dimension, sizes: Mapping[Any, int]) -> int:
    if isinstance(dim, int):
        return dim
    if any(symbol not in sizes for symbol in dim.symbols()):
        return 1
    return dim.const + sum(factor * sizes[symbol] for symbol, factor in dim.terms)


def _computing(graph: Graph) -> Iterator[Node]:
    """All nodes of the graph and its bodies but constants, Parameters and Results."""
    for scope in graph.scopes():
        yield from (node for node in scope if not isinstance(node, Constant | Parameter | Result))


# -- the results


def on_probes(rule: str) -> float | None:
    """The operations that the rule adds to the probes of its gaps, on average; None if no graph shows them."""
    known = probes()
    own = [known[gap.id] for gap in GAPS if gap.rule == rule and gap.id in known and not known[gap.id].onnx]
    if not own:
        return None
    return round(statistics.mean(_operations(each.avoided()) - _operations(each.avoided(rule)) for each in own), 1)


def summed(costs: Iterable[Cost]) -> dict[str, Any]:
    """The costs of one rule in all models that it changes."""
    costs = list(costs)
    ratios = [each.ratio for each in costs if each.ratio is not None]
    return {
        "models": len(costs),
        "operations": _mean_and_most([each.operations for each in costs]),
        "bytes": _mean_and_most([each.bytes for each in costs]),
        "timed": len(ratios),
        "ratio": round(statistics.geometric_mean(ratios), 3) if ratios else None,
        "largest_ratio": round(max(ratios), 3) if ratios else None,
    }


def _mean_and_most(numbers: Sequence[int]) -> list[int]:
    return [round(statistics.mean(numbers)), max(numbers)] if numbers else []


if __name__ == "__main__":
    sys.exit(main())
