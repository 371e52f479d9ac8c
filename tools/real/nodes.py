"""The nodes that the runtime makes of both IRs of a network, by type and precision, the layers that they fuse, and
their times."""

import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tools.measuring import OURS, PEER
from tools.real.pairs import SIDES, Task
from tools.real.processes import SideError, convert

INFERENCES, SLOWEST, NAMES = 15, 25, 3
NOT_EXECUTED = ("Const", "Input", "Output", "Parameter", "Result")
INTEGERS = ("i8", "u8", "i4", "u4")


@dataclass(frozen=True)
class Executed:
    """A node of the runtime's graph: `kernel` is its implementation, `originals` are the nodes of the IR in it."""

    name: str
    kind: str
    precision: str
    kernel: str
    originals: tuple[str, ...]
    milliseconds: float


def explain(task: Task) -> str:
    """The report for one network. A side that does not convert or run has a line instead."""
    compiled: dict[str, Any] = {}
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        for side in SIDES:
            try:
                compiled[side] = _compiled(side, Path(scratch, f"{side}.xml"), task)
            except (SideError, RuntimeError) as error:
                problems.append(f"{side}: {error}")
        found = executed(compiled)
    parts = [*problems, by_type(found.get(OURS, []), found.get(PEER, []))]
    parts += [f"{side}, slowest nodes\n{slowest(nodes)}" for side, nodes in found.items()]
    return "\n\n".join(parts)


def _compiled(side: str, xml: Path, task: Task) -> Any:
    from mo_loop.compare.execution.runtime import compile_ir

    convert(side, task.model, xml)
    compiled = compile_ir(xml, {**task.properties, "PERF_COUNT": True})
    compiled.run(task.feeds)
    return compiled


def executed(compiled: Mapping[str, Any]) -> dict[str, list[Executed]]:
    """For each side the nodes that the runtime executes, with the median time of several inferences in turn."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(INFERENCES):
        for side, each in compiled.items():
            each.again()
            for node in each.request.profiling_info:
                times[side, node.node_name].append(node.real_time.total_seconds() * 1e3)
    medians = {key: statistics.median(found) for key, found in times.items()}
    found = {}
    for side, each in compiled.items():
        nodes = [_node(node, side, medians) for node in each.model.get_runtime_model().get_ordered_ops()]
        found[side] = [node for node in nodes if node.kind not in NOT_EXECUTED]
    return found


def _node(node: Any, side: str, times: Mapping[tuple[str, str], float]) -> Executed:
    info = {key: str(value.astype(str)) for key, value in node.get_rt_info().items() if hasattr(value, "astype")}
    name = node.get_friendly_name()
    originals = tuple(filter(None, info.get("originalLayersNames", "").split(",")))
    kind, precision = info.get("layerType", node.get_type_name()), info.get("runtimePrecision", "")
    return Executed(name, kind, precision, info.get("primitiveType", ""), originals, times.get((side, name), 0.0))


# -- the report


@dataclass(frozen=True)
class Total:
    """Nodes of one type and precision: how many, how many nodes of the IR they compute, and their time."""

    count: int = 0
    originals: int = 0
    milliseconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.count:5} {self.originals:6} {self.milliseconds:9.3f}"


def totals(nodes: Iterable[Executed]) -> dict[tuple[str, str], Total]:
    """Nodes by type and precision."""
    sums: dict[tuple[str, str], Total] = {}
    for node in nodes:
        before = sums.get((node.kind, node.precision), Total())
        sums[node.kind, node.precision] = replace(
            before,
            count=before.count + 1,
            originals=before.originals + len(node.originals),
            milliseconds=before.milliseconds + node.milliseconds,
        )
    return sums


def by_type(ours: Sequence[Executed], peer: Sequence[Executed]) -> str:
    """Both sides, one line for a type and precision, the slowest first; then the sums."""
    first, second = totals(ours), totals(peer)

    def time(key: tuple[str, str]) -> float:
        return max(first.get(key, Total()).milliseconds, second.get(key, Total()).milliseconds)

    keys = sorted({*first, *second}, key=lambda key: (-time(key), key))
    heads = f"{'nodes':>5} {'of IR':>6} {'ms':>9}"
    lines = [f"{'':36} {OURS:>22}    {PEER:>22}", f"{'type':24} {'precision':11} {heads}    {heads}"]
    for key in keys:
        lines.append(f"{key[0]:24} {key[1]:11} {first.get(key, Total())}    {second.get(key, Total())}")
    lines.append(f"{'all':24} {'':11} {_sum(ours)}    {_sum(peer)}")
    lines.append(f"{'in integers':24} {'':11} {_sum(_in_integers(ours))}    {_sum(_in_integers(peer))}")
    return "\n".join(lines)


def _in_integers(nodes: Iterable[Executed]) -> list[Executed]:
    """Nodes whose kernel computes in integers, or reads them: its name ends with the type of its input."""
    return [node for node in nodes if node.precision.lower() in INTEGERS or node.kernel.lower().endswith(INTEGERS)]


def _sum(nodes: Sequence[Executed]) -> Total:
    originals = sum(len(node.originals) for node in nodes)
    return Total(len(nodes), originals, sum(node.milliseconds for node in nodes))


def slowest(nodes: Sequence[Executed], count: int = SLOWEST) -> str:
    """The slowest nodes, each with its kernel and the nodes of the IR that it computes."""
    lines = [f"{'ms':>9}  {'type':20} {'precision':9} {'kernel':28} computes"]
    for node in sorted(nodes, key=lambda each: -each.milliseconds)[:count]:
        names = ", ".join(node.originals[:NAMES]) or node.name
        more = f" and {len(node.originals) - NAMES} more" if len(node.originals) > NAMES else ""
        lines.append(
            f"{node.milliseconds:9.3f}  {node.kind:20} {node.precision:9} {node.kernel:28} {names}{more}".rstrip()
        )
    return "\n".join(lines)
