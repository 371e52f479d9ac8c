"""Random configurations of single operators, compared with ONNX Runtime; tools/fuzz_ops.py runs any number of them."""

import functools
from typing import Any

import pytest

from mo_loop.options import QUANTIZATION
from tests.fuzz.operators.kernels import schema
from tests.fuzz.operators.known import AVOIDED, DEVIATIONS, KNOWN
from tests.fuzz.operators.table import FAMILIES, OPERATORS, operators_of, undescribed
from tests.fuzz.operators.trial import Missing, drawn, nodes_of
from tests.running.processor import fail_or_skip
from tools.fuzz_ops import MOST_SKIPPED, main, run, tasks_of, unexplained

SEED, COUNT, BATCH = 2026, 320, 20


@functools.cache
def every() -> list[str]:
    """All operators; asking for the kernels of each takes a while."""
    return [op for family in FAMILIES for op in operators_of(family)]


@pytest.mark.sweep(16)
@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_configurations(first: int) -> None:
    check(tasks_of(every(), SEED, COUNT)[first : first + BATCH])


def check(tasks: list[Any]) -> None:
    rows, skipped = run(tasks, "mo_loop", jobs=1, limit=120)
    assert len(skipped) <= max(2, 2 * MOST_SKIPPED * len(tasks)), [f"{each.name}: {each.skipped}" for each in skipped]
    assert len(rows) + len(skipped) == len(tasks)
    wrong = [f"{trial.name} {trial.facts}: {verdict.result} {verdict.message}" for trial, verdict in unexplained(rows)]
    fail_or_skip(wrong)


@functools.cache
def covering() -> list[tuple[int, int, str, None]]:
    """Configurations that give each optional input and attribute of an operator once, and leave it out once."""
    tasks = []
    for op in every():
        seen: set[tuple[int | str, bool]] = set()
        for index in range(40):
            try:
                (node,) = nodes_of(f"{op}/{SEED}/{index}/0", op, count=1)
            except Missing:
                continue
            ports = dict(enumerate(node.ports))
            inputs = enumerate(schema(op, node.opset).inputs)
            states = {(n, ports.get(n) is None) for n, each in inputs if each.option == each.option.Optional}
            states |= {(name, name in node.attributes) for name in schema(op, node.opset).attributes}
            if states - seen:
                tasks.append((SEED, index, op, None))
            seen |= states
    return tasks


@pytest.mark.sweep(32)
@pytest.mark.parametrize("part", range(32))
def test_inputs_and_attributes_that_are_given_and_left_out(part: int) -> None:
    check(covering()[part::32])


@pytest.mark.sweep(3)
@pytest.mark.parametrize("quantization", QUANTIZATION)
def test_quantised_operators_in_both_modes(quantization: str) -> None:
    """A single operator has the same numbers in both."""
    tasks = tasks_of(operators_of("quantization.quantization"), SEED + 1, 42)
    rows, skipped = run(tasks, "mo_loop", jobs=1, limit=120, arguments={"quantization": quantization})
    assert len(rows) > 35 and len(skipped) <= 2
    wrong = [f"{trial.name} {trial.facts}: {verdict.result} {verdict.message}" for trial, verdict in unexplained(rows)]
    fail_or_skip(wrong)


def test_a_name_gives_the_same_configuration_again() -> None:
    texts = ["Slice/2026/0/0", "Pad/2026/1/0", "Add/2026/2/0"]
    for text in texts:
        op = text.split("/")[0]
        facts, sample = drawn(text, text, op, None)
        again, same = drawn(text, text, op, None)
        assert str(facts) == str(again)
        assert sample.model == same.model


def test_every_operator_is_described() -> None:
    """These have numerical tests alone."""
    random = {"RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli", "Multinomial"}
    texts = {"RegexFullMatch", "StringSplit", "StringConcat", "StringNormalizer", "com.microsoft::Tokenizer"}
    assert undescribed() == {"Det", "BitCast", *random, *texts}
    assert all(callable(OPERATORS[op]) for op in every())


def test_tables_of_exceptions_name_operators_that_exist() -> None:
    named = [each.operators for each in (*KNOWN, *DEVIATIONS)] + [operators for operators, _, _ in AVOIDED]
    names = {name for operators in named for name in operators.split()} - {"*"}
    assert names <= set(every())


@pytest.mark.parametrize("option", ["--family=generation.greedy_search", "--operator=Relu,Loop"])
def test_a_family_or_an_operator_without_a_description_is_refused(option: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main([option])
    assert f"unknown {option[2:8]}" in capsys.readouterr().err
