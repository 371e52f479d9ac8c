"""Models as PyTorch writes them, each with all its sets of inputs on one compiled model."""

from __future__ import annotations

import pytest
from exported import Exported

from mo_loop import convert_model
from mo_loop.errors import ConversionErrors

PYTORCH, SEQUENCES = Exported("pytorch"), Exported("pytorch_sequences")


@pytest.mark.parametrize("folder", [PYTORCH, SEQUENCES], ids=["pytorch", "pytorch_sequences"])
def test_every_model_has_cases(folder: Exported) -> None:
    folder.check_listed()


@pytest.mark.parametrize("name", PYTORCH.names)
def test_model(name: str) -> None:
    """The numbers of ONNX Runtime, in the order of the cases and then in reverse."""
    PYTORCH.check(name)


@pytest.mark.parametrize("name", SEQUENCES.names)
def test_model_with_sequences(name: str) -> None:
    """Refused with the name and the place of every operator on sequences; a model that is taken has to be right."""
    try:
        convert_model(SEQUENCES.path(name))
    except ConversionErrors as refused:
        assert refused.exit_code == 3
        assert {error.code for error in refused.errors} == {"ML302"}
        assert all("Sequence" in error.message and error.where for error in refused.errors)
    else:
        SEQUENCES.check(name)
