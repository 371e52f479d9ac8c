"""Measure text generation with states, and with caches as inputs and outputs.

    python tools/export_real.py cached                    makes the decoders (needs torch and transformers)
    python tools/bench_states.py                          GPT-2, LLaMA, T5 and Whisper, from out/real
    python tools/bench_states.py llama --threads 1        those whose names contain one of these
    python tools/bench_states.py --markdown FILE          the table as Markdown, too

Numbers: 64 greedy tokens after a prompt of 16. `difference` is that of the scores with states from those with explicit
caches, the largest one as a part of the largest score; `from ONNX Runtime` that of the first 8 tokens. Target: 1e-4.

Speed: the cache holds 512 tokens, then single tokens follow, all sides in turn in one process. A column gives the
median over all steps of the time of the other side divided by that of ours with states:

    explicit       our IR without states, output tensors passed back as inputs without a copy; target at least 1.2
    ovc            openvino.convert_model and openvino.passes.MakeStateful; target at least 1.0 within the noise
    states again   our IR with states, compiled once more: this part of a ratio is noise
    beam_idx       our IR with states and beam_idx
    ovc, Gather    ovc's IR with beam_idx, as optimum-intel makes it
    u8 cache       our IR with the plugin's default KV_CACHE_PRECISION, and the difference of its scores

All others keep the caches in f32 (KV_CACHE_PRECISION), because the plugin rounds them to u8 otherwise, also with
INFERENCE_PRECISION_HINT=f32. `fused` counts layers that are attention with the cache inside. The exit code is 1 if a
target is missed.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tests.models.sources.exporting.inputs import read_cases
from tests.models.sources.real_models.rows import CACHED
from tools.measuring import NO_TELEMETRY
from tools.states.decoders import CROSS
from tools.states.speed import AGAIN, BEAMS, EXPLICIT, OURS, PEER, PEER_BEAMS, SMALL, Row, Task

EXPORTED = Path(__file__).resolve().parents[1] / "out" / "real"
DIFFERENCE, FASTER, PEER_FASTER = 1e-4, 1.2, 1.0
SHOWN = (EXPLICIT, PEER, AGAIN, BEAMS, PEER_BEAMS, SMALL)


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """The decoders of a folder whose names contain one of those asked for."""
    cases = read_cases(options.folder / "cases.toml") if (options.folder / "cases.toml").exists() else {}
    for name in CACHED:
        if name in cases and (not options.names or any(part in name for part in options.names)):
            feeds = cases[name].sets[0]
            cross = {key: array[:1] for key, array in feeds.items() if CROSS in key}
            yield Task(
                name, options.folder / f"{name}.onnx", cross, options.context, options.steps, options.rounds,
                options.threads,
            )


def judge(row: Row) -> None:
    """Compare a row with the targets: sets `missed`."""
    noise = abs(row.faster[AGAIN] - 1)
    if max(row.difference, row.difference_from_onnx) > DIFFERENCE:
        row.missed.append("numbers")
    if row.faster[EXPLICIT] < FASTER:
        row.missed.append(f"not {FASTER} times as fast as {EXPLICIT}")
    if row.faster.get(PEER, np.inf) < PEER_FASTER - noise:
        row.missed.append(f"slower than {PEER}")


HEAD = ["decoder", "fused", "difference", "from ONNX Runtime", "with u8 cache", "tokens/s", *SHOWN]


def cells(row: Row) -> list[str]:
    """The cells of a row."""
    if row.problem:
        return [row.name, *["-"] * (len(HEAD) - 1)]
    numbers = [f"{each:.1e}" for each in (row.difference, row.difference_from_onnx, row.difference_small)]
    ratios = [f"{row.faster[side]:.2f}" if side in row.faster else "-" for side in SHOWN]
    return [row.name, str(row.fused), *numbers, f"{1 / row.seconds[OURS]:.0f}", *ratios]


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned text, and what was missed."""
    lines = [HEAD, *map(cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    text = ["  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines]
    text += [f"{row.name}: {side}: {why}" for row in rows for side, why in row.refused.items()]
    missed = [f"{row.name}: {', '.join(row.missed)}" for row in rows if row.missed]
    return "\n".join([*text, *(missed or ["all targets are met"])])


def markdown(rows: Sequence[Row]) -> str:
    """The rows as a table of Markdown."""
    lines = [HEAD, ["---", *["--:"] * (len(HEAD) - 1)], *map(cells, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure and report; 1 if a target is missed or nothing is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names of decoders; default: all")
    parser.add_argument("--folder", type=Path, default=EXPORTED, help="where the decoders are (out/real)")
    parser.add_argument("--context", type=int, default=512, help="tokens in the cache (512)")
    parser.add_argument("--steps", type=int, default=24, help="steps after them (24)")
    parser.add_argument("--rounds", type=int, default=3, help="how often the cache is filled and the steps follow (3)")
    parser.add_argument("--threads", type=int, default=2, help="threads of an inference (2)")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one decoder (900)")
    parser.add_argument("--markdown", type=Path, help="write the table to this file as Markdown")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    with Pool("tools.states.speed:measure", jobs=1, limit=options.limit, env=NO_TELEMETRY) as pool:
        for outcome in pool.map(tasks(options)):
            if outcome.ok:
                judge(outcome.value)
                rows.append(outcome.value)
            else:
                problem = f"{outcome.stage}: {outcome.message}".partition("\n")[0][:120]
                rows.append(Row(outcome.task.name, problem, missed=[problem]))
            print("  ".join(cells(rows[-1])), file=sys.stderr, flush=True)
    if not rows:
        print(f"no decoder in {options.folder}: tools/export_real.py cached makes them", file=sys.stderr)
        return 1
    if options.markdown:
        options.markdown.write_text(markdown(rows), encoding="utf-8")
    print(table(rows))
    return int(any(row.missed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
