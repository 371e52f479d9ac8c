"""Compare the rounding errors of a state in chunks with those of one step after the other, both against f64.

    python tools/chunk_errors.py                    a table, for factors a from 0 to 1
    python tools/chunk_errors.py --picture FILE     the same as a picture (SVG), for docs/loops.md

A state is a sum, S' = a S + k v, or follows the delta rule, S' = a S + b k (v - k S), with keys of length 1; y = q S'.
An error is the largest difference from the numbers of f64, divided by the largest of those. The exit code is 1 if that
of the chunks is more than 4 times that of the steps.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop import convert_model, save_model
from mo_loop.compare.execution.runtime import run_ir
from mo_loop.transforms.config import PassConfig

SIZE = 24
FACTORS = (0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0, "random")
LENGTHS = (100, 1_000, 10_000)
WORST = 4.0
UPDATES = {
    "sum": "u = Mul(k, v)",
    "delta rule": """
            c = Transpose(k)
            x = MatMul(c, s)
            d = Sub(v, x)
            r = Mul(d, b)
            u = Mul(k, r)""",
}
"""The part that a step adds to its state."""


@dataclass(frozen=True)
class Row:
    """The errors of both forms for factors of one kind."""

    update: str
    dtype: str
    length: int
    factor: Any
    steps: float
    chunks: float

    @property
    def ratio(self) -> float:
        return self.chunks / self.steps if self.steps else float(self.chunks > 0)


def rows(lengths: Sequence[int]) -> Iterator[Row]:
    """Measure all kinds."""
    with tempfile.TemporaryDirectory() as folder:
        for update, dtype in product(UPDATES, ("float", "float16")):
            forms = [_converted(update, dtype, Path(folder), whole) for whole in (False, True)]
            for length in lengths:
                sets = [_feeds(dtype, length, factor) for factor in FACTORS]
                computed = [run_ir(path, sets) for path in forms]
                for factor, feeds, *results in zip(FACTORS, sets, *computed, strict=True):
                    exact = _exact(update, feeds)
                    found = [dict(each)["ys"].astype(np.float64) for each in results]
                    errors = [float(np.abs(each - exact).max() / np.abs(exact).max()) for each in found]
                    yield Row(update, dtype, length, factor, *errors)


def _converted(update: str, dtype: str, folder: Path, in_chunks: bool) -> Path:
    import onnx.parser

    text = f"""<ir_version: 9, opset_import: ["": 18]>
        main ({dtype}[{SIZE},{SIZE}] h, {dtype}[T,1,{SIZE}] qs, {dtype}[T,{SIZE},1] ks, {dtype}[T,1,{SIZE}] vs,
              {dtype}[T,1,1] gs, {dtype}[T,1,1] bs) => ({dtype}[{SIZE},{SIZE}] last, {dtype}[T,1,{SIZE}] ys) {{
          last, ys = Scan <num_scan_inputs = 5, body = step ({dtype}[{SIZE},{SIZE}] s, {dtype}[1,{SIZE}] q,
              {dtype}[{SIZE},1] k, {dtype}[1,{SIZE}] v, {dtype}[1,1] g, {dtype}[1,1] b)
            => ({dtype}[{SIZE},{SIZE}] t, {dtype}[1,{SIZE}] y) {{
            m = Mul(s, g)
            {UPDATES[update]}
            t = Add(m, u)
            y = MatMul(q, t)
          }}>(h, qs, ks, vs, gs, bs) }}"""
    config = PassConfig()
    if not in_chunks:
        config.disable("VectorizeLoops", "ComputeBehindLoops", "ComputeBeforeLoops")
    path = folder / f"{update}{dtype}{in_chunks}.xml"
    save_model(convert_model(onnx.parser.parse_model(text), config=config), path)
    return path


def _feeds(dtype: str, length: int, factor: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(length)
    kind = np.float16 if dtype == "float16" else np.float32
    shapes = {"h": (SIZE, SIZE), "qs": (length, 1, SIZE), "ks": (length, SIZE, 1), "vs": (length, 1, SIZE)}
    feeds = {name: rng.standard_normal(shape) / 5 for name, shape in shapes.items()}
    feeds["ks"] /= np.linalg.norm(feeds["ks"], axis=1, keepdims=True)
    feeds["gs"] = rng.uniform(0, 1, (length, 1, 1)) if factor == "random" else np.full((length, 1, 1), factor)
    feeds["bs"] = rng.uniform(0, 1, (length, 1, 1))
    return {name: each.astype(kind) for name, each in feeds.items()}


def _exact(update: str, feeds: dict[str, np.ndarray]) -> np.ndarray:
    state, *sequences = (feeds[name].astype(np.float64) for name in ("h", "qs", "ks", "vs", "gs", "bs"))
    made = []
    for q, k, v, g, b in zip(*sequences, strict=True):
        state = g * state + k * (v if update == "sum" else b * (v - k.T @ state))
        made.append(q @ state)
    return np.stack(made)


def picture(found: Sequence[Row]) -> str:
    """A plot for each kind of update, one below the other."""
    width, height = 640, 300
    size = f"{width} {height * len(UPDATES)}"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-family="sans-serif"']
    parts[0] += ' font-size="11" fill="#888">'
    for at, update in enumerate(UPDATES):
        rows = [row for row in found if row.update == update]
        parts += [f'<g transform="translate(0,{height * at})">', *_plot(update, rows, width, height), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _plot(title: str, found: Sequence[Row], width: int, height: int) -> list[str]:
    """The errors in f32 by factor, one curve for each form and length, on a logarithmic scale."""
    left, top = 70, 20
    kept = [row for row in found if row.dtype == "float" and row.factor != "random"]
    shown = [max(each, 1e-9) for row in kept for each in (row.steps, row.chunks)]
    low, high = np.floor(np.log10(min(shown))), np.ceil(np.log10(max(shown)))
    factors = sorted({row.factor for row in kept})

    def place(row: Row, error: float) -> str:
        x = left + (width - left - 150) * factors.index(row.factor) / (len(factors) - 1)
        return f"{x:.0f},{top + (height - top - 40) * (high - np.log10(max(error, 1e-9))) / (high - low):.0f}"

    parts = [f'<text x="{left}" y="12">{title}</text>']
    for power in range(int(low), int(high) + 1):
        y = top + (height - top - 40) * (high - power) / (high - low)
        parts.append(f'<path d="M{left},{y:.0f}H{width - 150}" stroke="#8884"/>')
        parts.append(f'<text x="20" y="{y + 4:.0f}">1e{power}</text>')
    for at, factor in enumerate(factors):
        x = left + (width - left - 150) * at / (len(factors) - 1)
        parts.append(f'<text x="{x - 8:.0f}" y="{height - 20}">{factor:g}</text>')
    parts.append(f'<text x="{left + 160}" y="{height - 4}">factor of a step</text>')
    for number, length in enumerate(sorted({row.length for row in kept})):
        colour = ("#2a7", "#27c", "#c52")[number % 3]
        for name, dashes in (("steps", ""), ("chunks", ' stroke-dasharray="5 3"')):
            points = " ".join(place(row, getattr(row, name)) for row in kept if row.length == length)
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
            y = top + 20 + 34 * number + 15 * (name == "chunks")
            parts.append(f'<path d="M{width - 140},{y - 4}h20" stroke="{colour}" stroke-width="2"{dashes}/>')
            parts.append(f'<text x="{width - 115}" y="{y}">{name}, T = {length:,}</text>')
    return parts


def main(arguments: list[str] | None = None) -> int:
    """Measure and report; 1 if the chunks are less exact than the bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--picture", metavar="FILE", help="write a picture")
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS, help="numbers of steps")
    options = parser.parse_args(arguments)
    found = list(rows(options.lengths))
    print(f"| update | type | steps | factor | error of steps | error of chunks | ratio |\n{'|---' * 7}|")
    for row in found:
        kind = f"{row.update} | {row.dtype} | {row.length:,} | {row.factor}"
        print(f"| {kind} | {row.steps:.1e} | {row.chunks:.1e} | {row.ratio:.2f} |")
    if options.picture:
        Path(options.picture).write_text(picture(found), encoding="utf-8")
    worst = max(row.ratio for row in found)
    print(f"largest ratio {worst:.2f}, bound {WORST}")
    return int(worst > WORST)


if __name__ == "__main__":
    sys.exit(main())
