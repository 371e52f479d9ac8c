"""ConvertFirst in the whole conversion: no later pass makes what the rule replaces. Its graphs are in tests/golden."""

import pytest

from mo_loop import convert_model, ops
from tests import MODELS

KINDS = (
    ops.Add, ops.Multiply, ops.Maximum, ops.Minimum, ops.Equal, ops.NotEqual, ops.SquaredDifference, ops.Less,
    ops.LessEqual, ops.Greater, ops.GreaterEqual, ops.FloorMod, ops.Mod, ops.Power,
)


@pytest.mark.parametrize("name", [
    "transformers/bert", "transformers/llama_generate", "tensorflow/fold", "tensorflow/gru_masked",
    "tensorflow/while_growing", "pytorch/for_fixed", "pytorch_sequences/list_cat_ragged",
])
def test_no_convert_from_integers_is_second(name: str) -> None:
    found = []
    for graph in convert_model(MODELS / f"{name}.onnx").graph.scopes():
        for node in (each for each in graph if isinstance(each, KINDS)):
            x, second = (each.node for each in node.operands)
            if not isinstance(second, ops.Convert) or second.output.only_use is None:
                continue
            source, to = second.operands[0], second.destination_type
            widens = not source.dtype.is_float and (to.is_float or source.dtype.bits < min(to.bits, 32))
            equal = isinstance(x, ops.Convert) and x.operands[0].dtype is source.dtype
            if widens and not equal and not isinstance(source.node, ops.Constant):
                found.append(f"{node}: {source.dtype} -> {to}")
    assert found == []
