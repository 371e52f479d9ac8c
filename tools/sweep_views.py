"""Run each operation on pieces of tensors and on parts of a Concat, on the GPU device and on the CPU, and compare.

    python tools/sweep_views.py                     # with the rules for the GPU device
    python tools/sweep_views.py --plain             # the graphs as they are
    python tools/sweep_views.py --only Tile,Less

A piece is a view of the whole tensor, and an operand of a Concat is written into the result of the Concat. A kernel
that does not know where its tensor begins computes with other elements. Each operation of sweep_views.txt is run behind
each view of `graphs`, with known and with unknown sizes; one model has all views of an operation, and where it does not
run, each view has a model of its own. A view is named if it differs from the CPU, or does not run; `direct` is the
operation of the model's input.
"""

import argparse
import math
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.graph import Graph
from mo_loop.ir.bin import Weights
from mo_loop.ir.xml import XmlWriter
from mo_loop.support.workers import Pool
from mo_loop.target import GPU, Target
from mo_loop.text import parse
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.last_check import last_check
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.pipelines import default_pipeline
from tools.runtimes import interpreter

LINES = Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()
OPERATIONS = [
    (name, text, [tuple(map(int, shape.split("x"))) for shape in shapes.split()])
    for name, text, shapes in (line.split(" | ") for line in LINES if not line.startswith("#"))
]


def graphs(text: str, shape: tuple[int, ...]) -> dict[str, str]:
    """View -> the lines of a graph in which the operation reads the data through it, with names of their own."""
    rank, last = len(shape), len(shape) - 1
    double, wide = (2 * shape[0], *shape[1:]), (*shape[:-1], 2 * shape[-1])
    half = "%q, %p = Split(%x, 0) {num_splits: 2}"
    of_half = "%q, %s = Split(%x, 0) {num_splits: 2}\n%p = "
    views: dict[str, tuple[tuple[int, ...], str]] = {
        "direct": (shape, ""),
        "Split of the first": (double, half),
        "Split of the last": (wide, f"%q, %p = Split(%x, {last}) {{num_splits: 2}}"),
        "Slice": (double, f"%p = Slice(%x, [{shape[0]}], [{double[0]}], [1], [0])"),
        "Slice from 1": (wide, f"%p = Slice(%x, [1], [{shape[-1] + 1}], [1], [{last}])"),
        "Squeeze of Split": ((2, *shape), of_half + "Squeeze(%s, [0])"),
        "Reshape of Split": ((2 * math.prod(shape),), of_half + f"Reshape(%s, {list(shape)})"),
        "part of Concat": (shape, "%o = Sin(%x)\n%p = Cos(%x)\n%j = Concat(%o, %p) {axis: 0}"),
        "part of last Concat": (shape, f"%o = Sin(%x)\n%p = Cos(%x)\n%j = Concat(%o, %p) {{axis: {last}}}"),
    }
    if rank > 1 and shape[0] == 1:
        views["Unsqueeze of Split"] = (2 * shape[1], *shape[2:]), of_half + "Unsqueeze(%s, [0])"
    *_, made = text.split("; ")
    if "%w" in text and shape[0] > 1 and not re.match("Concat|Gather|Scatter|MatMul|Conv|Logical|Select", made):
        views["row of Split"] = (2, *shape[1:]), half  # the other operand has more rows: the piece is broadcast
    is_scalar = rank == 1 and text.startswith("Reduce") and "keep_dims: false" in text
    if not is_scalar and not re.match("Less|Great|Equal|NotEqual|Logical|IsNaN|Convert|NonZero", made):
        views["into Concat"] = shape, ""  # with a tensor of the same type and rank
    return {view: _graph(view, text, shape, *parts, at) for at, (view, parts) in enumerate(views.items())}


def _graph(view: str, text: str, shape: tuple[int, ...], whole: tuple[int, ...], piece: str, at: int) -> str:
    *before, made = text.split("; ")
    outputs = "%y, %y2" if made.startswith(("Split", "TopK")) else "%y"
    inputs = {"%x": whole, "%w": (3, *shape[1:]) if view == "row of Split" else shape, "%i": shape}
    lines = [
        *(f"{name} = Parameter : f32{list(sizes)}" for name, sizes in inputs.items() if name == "%x" or name in text),
        *piece.splitlines(),
        *(line.replace("%p", "%p" if piece else "%x") for line in (*before, f"{outputs} = {made}")),
    ]
    if view == "into Concat":
        lines += ["%z = Tanh(%y)", "%j = Concat(%z, %y) {axis: 0}", "Result(%j)"]
    else:
        lines += [f"Result({each})" for each in (*(["%j"] if "%j" in piece else []), *outputs.split(", "))]
    return re.sub(r"%(\w+)", rf"%\g<1>_{at}", "\n".join(lines))


def joined(texts: Iterable[str]) -> Graph:
    """One graph of several: Parameters come first, and Results last."""
    lines = "\n".join(texts).splitlines()
    return parse("\n".join(sorted(lines, key=lambda line: ("Parameter" not in line, line.startswith("Result")))))


def write(text: str, path: Path, plain: bool) -> None:
    """The IR of a graph, after the rules for the GPU device or as it is."""
    graph = joined([text])
    if not plain:
        Manager(default_pipeline(target=Target(device=GPU)), config=PassConfig()).run(graph)
        last_check(graph)
    with open(path, "w", encoding="utf-8", newline="\n") as xml, open(path.with_suffix(".bin"), "wb") as data:
        XmlWriter(xml, Weights(data)).write(graph)


Task = tuple[str, str, tuple[int, ...], bool, bool]


def tasks(only: Iterable[str], plain: bool) -> list[Task]:
    """The operations, shapes and whether these are known; `only` has names, or first words of names."""
    return [
        (name, text, shape, known, plain)
        for name, text, shapes in OPERATIONS for shape in shapes for known in (True, False)
        if not only or name in only or re.split("[, ]", name)[0] in only
    ]


def judged(task: Task) -> dict[str, str]:
    """The differences from the CPU and the errors, by view."""
    _, text, shape, known, plain = task
    found = graphs(text, shape)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.xml")
        together = _differences(found, known, path, plain)
        if "" not in together:
            return together
        each = {view: _differences({view: lines}, known, path, plain) for view, lines in found.items()}
    return {view: next(iter(why.values())) for view, why in each.items() if why} or {"all together": together[""]}


def _differences(graphs: Mapping[str, str], known: bool, path: Path, plain: bool) -> dict[str, str]:
    """The differences of one model of these graphs, by view; an error by ""."""
    import openvino as ov  # that of the device

    core, text = ov.Core(), "\n".join(graphs.values())
    inputs = [line for line in text.splitlines() if "Parameter" in line]
    feeds = [_numbers(line, tuple(map(int, re.findall(r"\d+", line.split("[")[1])))) for line in inputs]
    if not known:
        for line in inputs:
            name, sizes = line.split("[")
            text = text.replace(line, name + "[" + re.sub(r"\d+", "?", sizes))
    results: list[list[np.ndarray]] = []
    try:
        for device, as_it_is in (("CPU", True), ("GPU", plain)):
            write(text, path, as_it_is)
            compiled = core.compile_model(str(path), device, {"INFERENCE_PRECISION_HINT": "f32"})
            results.append([np.array(each) for each in compiled(feeds).values()])
    except Exception as error:  # a row of the table
        return {"": str(error).strip().splitlines()[-1][:100]}
    owners = [view for view, lines in graphs.items() for one in lines.splitlines() if one.startswith("Result")]
    return {
        view: f"{ours.ravel()[:6]} instead of {theirs.ravel()[:6]}"
        for view, theirs, ours in zip(owners, *results, strict=True)
        if theirs.shape != ours.shape or not np.allclose(theirs, ours, 1e-3, 1e-4, equal_nan=True)
    }


def _numbers(line: str, sizes: tuple[int, ...]) -> np.ndarray:
    """Different small numbers from 0; of the indices %i at most the last of an axis."""
    numbers = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    if line.startswith("%i"):
        return np.indices(sizes)[-1][..., ::-1].astype(np.float32)
    return (numbers * 5 % 11 if line.startswith("%w") else numbers) / (1 if numbers.size < 20 else 8)


def main() -> int:
    """Print the rows with a difference; 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", action="store_true", help="without the rules")
    parser.add_argument("--only", default="", help="operations, separated by commas")
    options = parser.parse_args()
    listed, wrong = tasks([each for each in options.only.split(",") if each], options.plain), 0
    with Pool("tools.sweep_views:judged", limit=300, python=interpreter("gpu")) as pool:
        for outcome in pool.map(listed):
            name, _, shape, known, _ = outcome.task
            found = outcome.value if outcome.ok else {"all together": outcome.message}
            for view, why in found.items():
                print(f"{name} {list(shape)} {'known' if known else 'unknown'}: {view}: {why}", flush=True)
            wrong += bool(found)
    print(f"{len(listed)} rows, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
