"""Let `verify` judge right models without given inputs: with each seed, on each OpenVINO release, all have to pass.

    python tools/check_verify.py                                    # the models below, seeds 0 to 4, three releases
    python tools/check_verify.py out/models swin --seeds 2          # the files of a folder, and the kinds named so
    python tools/check_verify.py --runtime 2024.6.0 --results found.jsonl

The models are the networks of tests/models/sources/registry_kinds.py and those of `FILES` below tests/models. What was
measured is kept in the file of --results, and a further run with this file continues where the last one ended. The exit
code is 1 if a model has no inputs, or is called wrong.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tests.fuzz.planted.verdicts import AGREES, ROUNDS
from tests.models.sources.registry_kinds import KINDS
from tools.runtimes import MAIN, interpreter

MODELS = Path(__file__).resolve().parents[1] / "tests" / "models"
FILES = {
    "classical": ("bins", "gaussian_process", "isolation_forest", "k_neighbors", "lightgbm", "one_hot", "pipeline",
                  "random_forest_binary", "svc_probability", "xgboost"),
    "pytorch": ("beam_search", "cnn_dynamo", "detection", "for_break", "greedy_attention", "lstm_packed",
                "transformer_decoder"),
    "pytorch_sequences": ("list_ctc", "list_window"),
    "tensorflow": ("attention", "conv_lstm", "ragged", "while_growing"),
    "transformers": ("bert", "clip_dynamo", "gpt2_step_dynamo", "llama_generate", "mamba_loop", "t5_step_dynamo",
                     "whisper_step_dynamo"),
}
"""Models of tests/models: tree ensembles, decoders with caches, loops, lengths."""


def main(arguments: list[str] | None = None) -> int:
    """Judge the models; 1 if one does not pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="files, folders with files, parts of names of kinds")
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 0 on")
    parser.add_argument("--runtime", action="append", metavar="RELEASE", help="releases; by default " + ", ".join(MAIN))
    parser.add_argument("--results", type=Path, metavar="FILE", help="lines of JSON with what was measured before")
    parser.add_argument("--verbose", "-v", action="store_true", help="print every verdict, not only the wrong ones")
    options = parser.parse_args(arguments)
    releases = {release: interpreter(release) for release in options.runtime or MAIN}
    known = _read(options.results)
    counts: dict[str, Counter[str]] = {release: Counter() for release in releases}
    with Pool("tests.fuzz.planted.verdicts:model_verdict", limit=900) as pool:
        for model in dict.fromkeys(_chosen(options.models)):
            for seed in range(options.seeds):
                for release, python in releases.items():
                    key = f"{Path(model).name} {seed} {release}"
                    if key not in known:
                        outcome = pool.call((model, seed, python))
                        found = outcome.value if outcome.ok else (outcome.status, outcome.message)
                        known[key] = (*found, round(outcome.seconds, 1))
                        if options.results:
                            with options.results.open("a") as file:
                                file.write(json.dumps([key, *known[key]]) + "\n")
                    verdict, text, _ = known[key]
                    counts[release][verdict] += 1
                    if options.verbose or verdict not in (AGREES, ROUNDS):
                        print(f"{key}: {verdict} {text}", flush=True)
    for release, found in counts.items():
        print(f"{release}: {', '.join(f'{count} {verdict}' for verdict, count in sorted(found.items()))}")
    return int(any(set(found) - {AGREES, ROUNDS} for found in counts.values()))


def _read(path: Path | None) -> dict[str, tuple[str, str, float]]:
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {key: tuple(found) for key, *found in lines}


def _chosen(names: list[str]) -> Iterator[str]:
    """Paths of files, and names of kinds."""
    if not names:
        yield from KINDS
        yield from (str(MODELS / folder / f"{name}.onnx") for folder, found in FILES.items() for name in found)
    for name in names:
        path = Path(name)
        if path.exists():
            yield from map(str, sorted(path.glob("*.onnx")) if path.is_dir() else [path])
        else:
            yield from (kind for kind in KINDS if name in kind)


if __name__ == "__main__":
    sys.exit(main())
