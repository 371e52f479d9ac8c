"""Files that ONNX Runtime's optimisers and quantisers write; tools/check_optimised.py checks all of them."""

import pytest

from tests import MODELS
from tests.models import fused
from tests.models.optimised import BUILT, EXPLAINED, PASSED, REFUSED, Row, checked
from tests.models.optimising import VARIANTS, WHOLE_RANGE
from tests.models.sources.exporting.inputs import read_cases
from tests.running.processor import fail_or_skip

CASES = (("transformers", "bert", "extended"), ("transformers", "bert_dynamo", "qdq extended"),
         ("transformers", "gpt2_dynamo", "dynamic extended"), ("transformers", "llama_dynamo", "extended"),
         ("transformers", "mamba_loop", "signed"), ("transformers", "t5_encoder", "dynamic"),
         ("transformers", "vit_dynamo", "qoperator extended"), ("pytorch", "cnn", "qoperator"),
         *(("fused", name, "") for name in fused.MODELS), ("fused", "gpt2", "dynamic"),
         ("transformers", "t5_encoder", "s8"), ("pytorch", "lstm", "u8_by_channel"),
         ("pytorch", "cnn", "s8_by_channel"), ("tensorflow", "attention", "u8"), ("fused", "llama", "qdq extended"))


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("folder", "name", "variant"), CASES, ids=["-".join(each) for each in CASES])
def test_file(folder: str, name: str, variant: str) -> None:
    row = checked(("mo_loop", folder if folder == BUILT else str(MODELS / folder), name, variant))
    fail_or_skip([] if row.status == PASSED else [str(row)])


def test_a_layout_of_one_machine_is_refused_with_what_to_do() -> None:
    row: Row = checked(("mo_loop", str(MODELS / "pytorch"), "cnn", "all"))
    assert row.status == REFUSED and "com.microsoft.nchwc" in row.text and "export it again" in row.text


def test_every_explained_failure_names_a_model_and_a_variant() -> None:
    names = {name for folder in ("transformers", "pytorch") for name in read_cases(MODELS / folder / "cases.toml")}
    assert {name for name, _ in EXPLAINED} <= names
    assert {variant for _, variant in EXPLAINED} <= {*VARIANTS, *WHOLE_RANGE}
