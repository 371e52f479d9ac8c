"""The cost of a cluster: a batch of models on an S3 server with two Dask workers, against the local batch of the same.

    python tools/load_cluster.py                    5,000 models; CPU seconds of the workers, and memory of the planner
    python tools/load_cluster.py --models 500       a minute
    python tools/load_cluster.py --cluster-only     without the local batch, for a profile

The workers of the cluster, with all processes that they start, may use RATIO of the CPU seconds of the worker processes
of the local batch: the start of the Dask workers does not count, their work for Dask does. Every model must be
converted by both. Before, batches of 1,000 and 100,000 models are planned on simulated listings, up to the first model
that would be submitted; the large one may use PLANNER bytes, and FLAT times as many as the small one. The exit code is
1 if one of these does not hold. Linux alone. The row `cluster` of tools/bench.py is the same ratio, and tests/cluster
has the plans.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.benching.bench_rows import CLUSTER_RATIO
from tools.benching.cluster_load import MODELS, local, on_cluster, planner, stored


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both parts; 0 if everything holds, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--cluster-only", action="store_true", help="without the local batch")
    options = parser.parse_args(arguments)
    found = planner() + both(options.models, options.cluster_only)
    for each in found:
        print(f"error: {each}")
    return int(bool(found))


def both(count: int, is_cluster_only: bool) -> list[str]:
    """The violated limits of the batches."""
    with stored(count) as (folder, store):
        there = on_cluster(folder, store, count)
        if is_cluster_only:
            return []
        here = local(folder, store, count)
    print(f"CPU seconds of the workers: {there:.1f} on the cluster, {here:.1f} locally, {there / here:.2f}")
    return [f"the cluster uses {there / here:.2f} of the CPU"] * (there > CLUSTER_RATIO * here)


if __name__ == "__main__":
    sys.exit(main())
