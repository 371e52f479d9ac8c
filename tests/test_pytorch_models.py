"""Models as PyTorch writes them, each with all its sets of inputs on one compiled model."""

from __future__ import annotations

import pytest
from exported import Exported

from mo_loop import convert_model
from mo_loop.errors import ConversionErrors

PYTORCH, SEQUENCES = Exported("pytorch"), Exported("pytorch_sequences")

# What the converter has no answer to yet: it says so, and names the operator.
UNSUPPORTED = {"detection": "NonMaxSuppression", **dict.fromkeys(SEQUENCES.names, "Sequence")}


@pytest.mark.parametrize("folder", [PYTORCH, SEQUENCES], ids=["pytorch", "pytorch_sequences"])
def test_every_model_has_cases(folder: Exported) -> None:
    folder.check_listed()


@pytest.mark.parametrize("name", [name for name in PYTORCH.names if name not in UNSUPPORTED])
def test_model(name: str) -> None:
    """The numbers of ONNX Runtime, in the order of the cases and then in reverse."""
    PYTORCH.check(name)


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_unsupported_model(name: str) -> None:
    """Refused with the place and the name of every operator that is missing. Once supported: the right numbers."""
    folder = PYTORCH if name in PYTORCH.names else SEQUENCES
    try:
        convert_model(folder.path(name))
    except ConversionErrors as refused:
        assert refused.exit_code == 3
        assert {error.code for error in refused.errors} == {"ML302"}
        assert all(UNSUPPORTED[name] in error.message and error.where for error in refused.errors)
        return
    folder.check(name)
