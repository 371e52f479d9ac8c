"""The operations as functions of values, as translators call them:

    from mo_loop.ops import functional as ops

    ops.Softmax(x, axis=-1)                         # the only output, a Value
    largest, places = ops.TopK11(x, 3, axis=0)      # all outputs, if there may be several

The function of a name makes the node of the class of that name in mo_loop.ops.
"""

from collections.abc import Callable
from typing import Any

from mo_loop import ops

_ANY_NUMBER = frozenset(("Loop", "TensorIterator", "If", "Scan", "Split", "VariadicSplit"))
"""Operations that may have one output or several: their function gives a tuple of one, too."""


def __getattr__(name: str) -> Callable[..., Any]:
    cls = getattr(ops, name)
    has_any_number = name in _ANY_NUMBER

    def function(*inputs: Any, **attributes: Any) -> Any:
        outputs = cls(*inputs, **attributes).outputs
        return outputs[0] if len(outputs) == 1 and not has_any_number else outputs

    globals()[name] = function
    return function
