"""Features that older releases do not run: the first release that does, and the messages of a conversion."""

from __future__ import annotations

import warnings

import pytest

from mo_loop import convert_model
from mo_loop.api import Model
from mo_loop.errors import ConversionErrors, ConversionWarning
from mo_loop.look.diagnostics.examine import examine
from mo_loop.ops.base import Op
from mo_loop.options import ConvertOptions
from mo_loop.target import OLDEST, RELEASES, Target
from mo_loop.text import parse
from mo_loop.transforms.downgrade import CONSTANTS, CONVERSIONS, INPUTS, OPSETS, RETURNED_CONSTANTS, newer_uses
from tests.harness import parsed

OF_FLOAT8 = "main (float8e5m2[3] x) => (float[3] y) { y = Cast <to = 1> (x) }"
PLAIN = "main (float[3] x) => (float[3] y) { y = Neg (x) }"


def converted(text: str, target: str | None = None) -> tuple[Model, list[str]]:
    """The model, and the messages of its warnings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = convert_model(parsed(text), target=target)
    return model, [each.message.message for each in heard if isinstance(each.message, ConversionWarning)]


def recorded(model: Model) -> str:
    return str(model.graph.rt_info["converter"]["target"])


@pytest.mark.parametrize(("text", "found"), [
    (
        "%x = Parameter : f8e4m3[2]\n%y = Convert(%x) {destination_type: f32}\nResult(%y)",
        [("an input of f8e4m3", (2025, 0))]),
    (
        "%x = Parameter : f32[2]\n%y = Convert(%x) {destination_type: u2}\nResult(%y)",
        [("a conversion to u2", (2026, 4))]),
    ("""%c = Parameter : boolean[] %x = Parameter : f32[2]
        %y = If(%c, %x) {input_map: [Branched(%p, %q)], output_map: [Selected(@u, @v)]}
          then_body {
            %p = Parameter %u = Convert(%p) {destination_type: u2} Result(%u)
          }
          else_body {
            %q = Parameter %v = Convert(%q) {destination_type: u2} Result(%v)
          }
        Result(%y)""", [("a conversion to u2", (2026, 4))] * 2),
    ("%c = Constant [1, 0] : u4[2]\nResult(%c)", [("a returned constant of u4", (2026, 0))]),
    ("%c = Constant [1, 0] : u4[2]\n%y = Convert(%c) {destination_type: f32}\nResult(%y)", []),
    ("%x = Parameter : f16[2]\nResult(%x)", []),
])
def test_uses(text: str, found: list[tuple[str, tuple[int, int]]]) -> None:
    assert [(each.text, each.release) for each in newer_uses(parse(text))] == found


def test_an_operation_of_a_newer_opset_is_named() -> None:
    class Newest(Op, opset=16):
        def infer(self, x):
            return x

    graph = parse("%x = Parameter : f32[2]\nResult(%x)")
    Newest(graph.parameters[0].output)
    assert [(each.text, each.release) for each in newer_uses(graph)] == [("Newest of opset 16", (2026, 0))]


def test_the_oldest_release_has_every_operation_that_is_written() -> None:
    import mo_loop.ops

    known = [getattr(mo_loop.ops, name) for name in dir(mo_loop.ops)]
    operations = [each for each in known if isinstance(each, type) and issubclass(each, Op)]
    assert len(operations) > 100 and [each for each in operations if each.opset > OPSETS[OLDEST]] == []


def test_the_tables_name_releases() -> None:
    tables = (INPUTS, CONSTANTS, RETURNED_CONSTANTS, CONVERSIONS)
    assert {release for table in tables for release in table.values()} | set(OPSETS) <= set(RELEASES)


def test_the_default_target_becomes_what_runs_the_model() -> None:
    model, said = converted(OF_FLOAT8)
    assert said == ["an input of f8e5m2: only OpenVINO 2025.0 and later releases run the model"]
    assert recorded(model) == "2025.0-2026.4"


def test_a_target_that_does_not_run_the_model_is_refused() -> None:
    with pytest.raises(ConversionErrors, match=r"OpenVINO has it since 2025\.0, and the target is 2024\.6") as caught:
        converted(OF_FLOAT8, "2024.6")
    assert (caught.value.code, caught.value.exit_code) == ("ML326", 3)


@pytest.mark.parametrize(("text", "target"), [(OF_FLOAT8, "2025.0"), (PLAIN, None), (PLAIN, "2024.6")])
def test_nothing_is_said_where_all_of_the_target_runs_the_model(text: str, target: str | None) -> None:
    model, said = converted(text, target)
    assert (recorded(model), said) == (str(Target.parse(target)), [])


@pytest.mark.parametrize(("target", "code", "level"), [(None, "ML515", "warning"), ("2024.6", "ML326", "error")])
def test_check_says_it(target: str | None, code: str, level: str) -> None:
    report = examine(parsed(OF_FLOAT8), ConvertOptions(target=target))
    assert [(each.code, each.level) for each in report.diagnostics] == [(code, level)]
