"""The vocabulary of translators: the names that nearly every one of them needs.

    from mo_loop.frontend.vocabulary import Context, ModelError, Value, ops, translates

The ranges of attributes and the forms of inputs are in mo_loop/ops/ranges.py.
"""

from mo_loop.errors import ModelError, UnsupportedError
from mo_loop.frontend.context import Body, Context
from mo_loop.frontend.registry import Attributes, one_to_one, translates
from mo_loop.frontend.schemas import MICROSOFT
from mo_loop.graph import Graph, Value
from mo_loop.ops import functional as ops

__all__ = (
    "MICROSOFT", "Attributes", "Body", "Context", "Graph", "ModelError", "UnsupportedError", "Value", "one_to_one",
    "ops", "translates",
)
