"""Add the operations that translators make of the cases of the ONNX backend test suite to the table of `mo-loop ops`.

    python tools/record_operations.py

The table is mo_loop/frontend/operations_made.json: for each operator and version the operations of the IR that its
translator makes. Operations that occur in no case are added by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conformance.cases import collect
from tests.conformance.operations_made import add_to_table, missing


def main() -> int:
    """Record the operations that are not listed, and print them."""
    found = missing(entry.sample.model for entry in collect(["node"]))
    add_to_table(found)
    for (name, since), made in found.items():
        print(f"{name} of version {since}: {', '.join(sorted(made))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
