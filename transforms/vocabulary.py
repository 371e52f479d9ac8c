"""The vocabulary of passes: the names that nearly every one of them needs.

    from mo_loop.transforms.vocabulary import FunctionPass, Gap, Graph, Value, ops

Patterns and their predicates are in pattern.py and predicates.py, replacement is in replace.py.
"""

from mo_loop import ops
from mo_loop.graph import Graph, Node, Use, Value
from mo_loop.graph.shape import is_static
from mo_loop.ops.base import Constant, Identity, Op, Parameter, Result
from mo_loop.target import Gap
from mo_loop.transforms.function_pass import FunctionPass, node_pass
from mo_loop.transforms.operands import behind, integers, order_of

__all__ = (
    "Constant", "FunctionPass", "Gap", "Graph", "Identity", "Node", "Op", "Parameter", "Result", "Use", "Value",
    "behind", "integers", "is_static", "node_pass", "ops", "order_of",
)  # fmt: skip
