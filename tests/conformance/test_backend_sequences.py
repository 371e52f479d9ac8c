"""Every case of the ONNX backend suite on sequences and optionals; those that are inputs or outputs are packed."""

import pytest

from mo_loop.compare.execution.isolated import isolated
from tests.conformance.cases import Entry, collect
from tests.conformance.expectations import differences, read
from tests.running.samples import judge

PATTERN = "equence|ptional|^test_loop.*seq|^test_if_(seq|opt)|^test_identity_(seq|opt)"
MODULES = "sequence|optional|^(if|loop|identity)"
CASES = list(collect(["node", "simple"], PATTERN, MODULES))
EXPECTED = read()


def test_the_suite_has_cases() -> None:
    packed = [entry for entry in CASES if entry.sample.arguments]
    assert (len(CASES) - len(packed), len(packed)) >= (13, 29)


@pytest.mark.parametrize("entry", CASES, ids=lambda entry: entry.name)
def test_case(entry: Entry) -> None:
    verdict = isolated(judge, ("mo_loop", entry.sample))
    assert list(differences(EXPECTED, {entry.name: verdict})) == []
