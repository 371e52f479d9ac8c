"""Add the operations that translators make to the table of `mo-loop ops`.

    python tools/record_operations.py
    python tools/record_operations.py attention.multi_head_attention # random configurations of this family only

The models are the cases of the ONNX backend test suite, and random configurations of ONNX Runtime's own operators.

The table is mo_loop/frontend/operations_made.json: for each operator and version the operations of the IR that its
translator makes. Operations that occur in no case are added by hand.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tests.conformance.cases import collect
from tests.conformance.operations_made import add_to_table, missing
from tests.fuzz.operators.table import FAMILIES, operators_of
from tools.fuzz_ops import tasks_of

SEED, EACH = 1, 24


def main() -> int:
    """Record the operations that are not listed, and print them."""
    families = sys.argv[1:] or [each for each in FAMILIES if any("com.microsoft::" in op for op in operators_of(each))]
    models = [] if sys.argv[1:] else [entry.sample.model for entry in collect(["node"])]
    found = missing([*models, *_random(families)])
    add_to_table(found)
    for (name, since), made in found.items():
        print(f"{name} of version {since}: {', '.join(sorted(made))}")
    return 0


def _random(families: Iterable[str]) -> Iterator[bytes]:
    """Random configurations of the operators of some families."""
    operators = [op for family in families for op in operators_of(family)]
    with Pool("tests.fuzz.operators.trial:oracle", jobs=2, limit=60) as pool:
        for outcome in pool.map(tasks_of(operators, SEED, EACH * len(operators))):
            if outcome.ok and outcome.value.sample is not None:
                yield outcome.value.sample.model


if __name__ == "__main__":
    sys.exit(main())
