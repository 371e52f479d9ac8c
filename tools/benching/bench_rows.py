"""The rows of the bench and their targets.

    ratio = ((ours - start) / units of ours) / ((peer [- start]) / units of the peer)

`start` is the time of a tiny conversion, for rows whose target is above start-up. `units` are the nodes of the model
for rows that compare the time of a node, otherwise those of the work.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from tools.benching.works import Model, Work, batch, convert, copy, ovc, shell_loop

TINY = convert(Model("chain", 3))
FUNCTIONS = Path(__file__).with_name("function_times.py")
FIRST_RESULTS = Path(__file__).with_name("first_results.py")
CLUSTER = Path(__file__).with_name("cluster_load.py")
CLUSTER_RATIO = 1.25
"""The CPU seconds of the workers of a cluster, of those of local workers."""

FIRST = (
    ("first-small", "48 exports", 1.0),  # compilation takes 70% of it, of which most does not depend on the IR
    ("first-loops", "22 exports with loops and branches", 1.65),  # several steps in an iteration, and guards
    ("first-large", "4 models of 3,000 nodes", 0.9),
)
BANNED = ("onnx", "numpy", "networkx", "lxml")
SHAPES = {
    "layers": "as transformer layers",
    "cnn": "as a CNN",
    "nests": "as Loops nested 3 deep",
    "body": "as one Loop",
}
DUMPED = {"dump-3k": ("chain", 3_000), "dump-30k": ("chain", 30_000), "dump-layers": ("layers", 1728)}


@dataclass(frozen=True)
class Row:
    """Two works whose ratio has a target.

    Args:
        target: the largest ratio.
        rounds: of runs in turns. The median of their ratios counts, with `every` the largest.
        start: the work whose time is subtracted from ours, and with `both` from the peer's.
        per_node: the times are divided by the nodes of the models.
        group: the rows of a group are measured in the same rounds, so that a work that several have runs once.
        full: whether the row is left to `--full`.
        memory: the largest peak memory as a ratio of the peer's.
        peak_mib: the largest peak memory.
        only_wall: CPU time does not measure the row: our side prints its wall time, or both do the same in another
            number of processes.
        banned: modules that our command must not import.
    """

    name: str
    what: str
    ours: Work
    peer: Work
    target: float
    rounds: int = 3
    start: Work | None = None
    both: bool = False
    per_node: bool = False
    group: str = ""
    full: bool = True
    memory: float = math.inf
    peak_mib: float = math.inf
    every: bool = False
    only_wall: bool = False
    banned: tuple[str, ...] = ()

    @property
    def works(self) -> list[Work]:
        return [work for work in (self.ours, self.peer, self.start) if work is not None]

    @property
    def is_heavy(self) -> bool:
        """Whether files of gigabytes are written: they are brought to the disk before the next run."""
        return self.ours.model is not None and self.ours.model.kind.startswith(("embedded", "external", "decoder"))


@dataclass(frozen=True)
class FunctionRow:
    """Two sides of a script, by default of function_times.py, of the name of the row. `needs` are packages without
    which the row is left out."""

    name: str
    what: str
    target: float
    rounds: int
    full: bool = True
    script: Path = FUNCTIONS
    needs: tuple[str, ...] = ()

    @property
    def lacks(self) -> list[str]:
        """The packages that are not installed."""
        return [name for name in self.needs if find_spec(name) is None]


def rows(decoder_gb: float = 8.0, external_gb: float = 4.0, compressed_gb: float = 4.0) -> list[Row | FunctionRow]:
    """All rows. The sizes are those of the largest models: of the decoder in f32, of the external weights, and of
    those that ovc compresses too."""
    return [*_short(), *_long(), *_heavy(decoder_gb, external_gb, compressed_gb)]


def _short() -> list[Row | FunctionRow]:
    """The rows of a minute."""
    click = Work("click", ("python", "-c", "import click"))
    said = {flag: Work("mo-loop", ("mo-loop", f"--{flag}")) for flag in ("help", "version")}
    chain, larger = Model("chain", 3_000), Model("chain", 30_000)
    return [
        *(
            Row(flag, f"mo-loop --{flag}", work, click, 1.3, 9, group="start", full=False, banned=BANNED)
            for flag, work in said.items()
        ),
        Row("tiny", "a model of 3 nodes", TINY, ovc(Model("chain", 3)), 0.9, 5, full=False),
        Row("chain-3k", "a chain of 3,000 nodes", convert(chain), ovc(chain), 0.45, 5, full=False),
        _growth("growth-30k", larger, "growth-30k", full=False),
        *_shapes(6_000, "6k", full=False),
        _workers(100, "batch-100", full=False),
        *(
            FunctionRow(name, f"conversion, compilation and first inference of {what}, of ovc's", target, 3,
                        full=False, script=FIRST_RESULTS)
            for name, what, target in FIRST
        ),
    ]


def _long() -> list[Row | FunctionRow]:
    medium, large = Model("chain", 30_000), Model("chain", 99_999)
    infer = Work("mo-loop", ("python", str(FUNCTIONS), "inference", "1", "{model}"), large, reports=True)
    return [
        Row("chain-30k", "a chain of 30,000 nodes", convert(medium), ovc(medium), 0.25),
        Row(
            "chain-100k", "a chain of 100,000 nodes (aim: 0.15)", convert(large), ovc(large), 0.20, memory=0.33,
            group="100k",
        ),
        Row(
            "inference", "infer 100,000 nodes, of ovc's conversion", infer, ovc(large), 0.05, group="100k",
            only_wall=True,
        ),
        _growth("growth-100k", large, "100k", full=True),
        *_shapes(30_000, "30k", full=True),
        _workers(500, "batch-workers", full=True),
        Row(
            "batch-ovc", "500 models, of a shell loop over ovc (20 measured)", batch(500, 2), shell_loop(500), 1 / 15,
            group="batch-workers", only_wall=True,
        ),
        FunctionRow("fusions", "25,000 fusions of three nodes, of a loop", 2.5, 4),
        FunctionRow("matchers", "40 matchers without a match, of one", 2.0, 7),
        FunctionRow("flat", "the pipeline a node, 100,000 of 3,000", 1.3, 3),
        FunctionRow(
            "cluster", "CPU of 5,000 models from S3 on two Dask workers, of local ones", CLUSTER_RATIO, 1,
            script=CLUSTER, needs=("distributed", "s3fs", "moto"),
        ),
        *(_dump(name, Model(*model)) for name, model in DUMPED.items()),
        _dump("dump-loops", Model("loops", 40)),
    ]


def _heavy(decoder_gb: float, external_gb: float, compressed_gb: float) -> list[Row | FunctionRow]:
    """Rows of weights, of a copy of the file above start-up."""
    embedded = Model("embedded", min(1.0, external_gb))
    whole, half = Model("decoder-f32", decoder_gb), Model("decoder-f16", decoder_gb / 2)
    external, compressed = Model("external", external_gb), Model("external", compressed_gb)
    halves = convert(compressed, "--compress-to-fp16")
    return [
        _copied("weights-1g", f"{embedded.size:.3g} GB of embedded weights", embedded, "{model}", 2.0),
        _copied("weights-4g", f"{external_gb:.3g} GB of external weights", external),
        Row(
            "weights-fp16", f"{compressed_gb:.3g} GB of external weights, compressed to f16",
            halves, ovc(compressed, compress=True), 0.4, 2, peak_mib=400,
        ),
        _copied("decoder-f32", f"a decoder as dynamo exports it, {decoder_gb:.3g} GB of f32", whole),
        _copied("decoder-f16", f"a decoder as dynamo exports it, {half.size:.3g} GB of f16", half),
    ]


def _copied(name: str, what: str, model: Model, file: str = "{data}", target: float = 1.2) -> Row:
    ours = convert(model)
    return Row(name, f"{what}, above start-up", ours, copy(model, file), target, start=TINY, peak_mib=250)


def _growth(name: str, model: Model, group: str, full: bool) -> Row:
    start, small = convert(Model("chain", 3), times=3), convert(Model("chain", 3_000), times=3)
    what = f"time a node of {round(model.size, -3):,.0f} in a chain, of 3,000"
    return Row(
        name, what, convert(model), replace(small, side="3,000 nodes"), 1.15,
        start=start, both=True, per_node=True, group=group, full=full,
    )


def _shapes(nodes: int, suffix: str, full: bool) -> Sequence[Row]:
    """Rows of the same number of nodes in other forms."""
    chain = replace(convert(Model("chain", nodes)), side="chain")
    return [
        Row(
            f"{kind}-{suffix}", f"time a node of {nodes:,} {what}, of the chain's",
            convert(Model(kind, 20_000 if (kind, nodes) == ("body", 30_000) else nodes)), chain, 1.3,
            start=TINY, both=True, per_node=True, group=f"shapes-{suffix}", full=full,
        )
        for kind, what in SHAPES.items()
    ]


def _workers(models: int, name: str, full: bool) -> Row:
    what = f"{models} models on two workers, of one"
    return Row(
        name, what, batch(models, 2), batch(models, 1), 1 / 1.8, group=name, full=full, every=full, only_wall=True
    )


def _dump(name: str, model: Model) -> Row:
    steps = ("--dump", "{out}", "--dump-format", "text,json")
    plain = convert(model)
    peer = Work("no dump", plain.command, model)
    return Row(name, f"a dump of {model.size:,.0f} of {model.kind}, of no dump", convert(model, *steps), peer, 2.0, 5)
