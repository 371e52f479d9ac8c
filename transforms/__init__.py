"""The transformation library: passes over a `mo_loop.Graph`, and the engine that runs them.

    from mo_loop.transforms import Manager, MatcherPass, any_input, wrap_type

Each name loads its module on first use. The passes of a conversion are in `front`, `loops`, `states`, `low_precision`,
`preprocess`, `common` and `runtime`.
"""

from typing import TYPE_CHECKING

from mo_loop.support.lazy_names import lazy_names

if __name__ != "mo_loop.transforms":  # a checkout is on the path, and transforms is not the reader's own
    raise ImportError(f"import mo_loop.transforms, not {__name__}")

if TYPE_CHECKING:
    from mo_loop.transforms.common.simplification import ConstantFolding as ConstantFolding
    from mo_loop.transforms.config import PassConfig as PassConfig
    from mo_loop.transforms.function_pass import FunctionPass as FunctionPass
    from mo_loop.transforms.low_precision.compress_weights import CompressFloatConstants as CompressFloatConstants
    from mo_loop.transforms.manager import Manager as Manager
    from mo_loop.transforms.manager import Step as Step
    from mo_loop.transforms.manager import Validate as Validate
    from mo_loop.transforms.pattern import Match as Match
    from mo_loop.transforms.pattern import Matcher as Matcher
    from mo_loop.transforms.pattern import Pattern as Pattern
    from mo_loop.transforms.pattern import any_input as any_input
    from mo_loop.transforms.pattern import any_of as any_of
    from mo_loop.transforms.pattern import any_order as any_order
    from mo_loop.transforms.pattern import constant as constant
    from mo_loop.transforms.pattern import optional as optional
    from mo_loop.transforms.pattern import repeated as repeated
    from mo_loop.transforms.pattern import wrap_type as wrap_type
    from mo_loop.transforms.pipelines import default_pipeline as default_pipeline
    from mo_loop.transforms.predicates import consumers_count as consumers_count
    from mo_loop.transforms.predicates import consumers_more_than as consumers_more_than
    from mo_loop.transforms.predicates import has_static_dims as has_static_dims
    from mo_loop.transforms.predicates import has_static_rank as has_static_rank
    from mo_loop.transforms.predicates import has_static_shape as has_static_shape
    from mo_loop.transforms.predicates import is_constant as is_constant
    from mo_loop.transforms.predicates import rank_equals as rank_equals
    from mo_loop.transforms.predicates import rank_more_than as rank_more_than
    from mo_loop.transforms.predicates import shape_equals as shape_equals
    from mo_loop.transforms.predicates import type_matches as type_matches
    from mo_loop.transforms.predicates import value_equals as value_equals
    from mo_loop.transforms.profile import Profile as Profile
    from mo_loop.transforms.replace import copy_runtime_info as copy_runtime_info
    from mo_loop.transforms.replace import eliminate as eliminate
    from mo_loop.transforms.replace import insert_after as insert_after
    from mo_loop.transforms.replace import insert_before as insert_before
    from mo_loop.transforms.replace import replace_node as replace_node
    from mo_loop.transforms.replace import replace_output as replace_output
    from mo_loop.transforms.replace import replace_output_update_name as replace_output_update_name
    from mo_loop.transforms.rewrite import BackwardGraphRewrite as BackwardGraphRewrite
    from mo_loop.transforms.rewrite import GraphRewrite as GraphRewrite
    from mo_loop.transforms.rewrite import MatcherPass as MatcherPass
    from mo_loop.transforms.visualize import VisualizeTree as VisualizeTree

_NAMES = {
    "mo_loop.transforms.low_precision.compress_weights": ("CompressFloatConstants",),
    "mo_loop.transforms.config": ("PassConfig",),
    "mo_loop.transforms.common.simplification": ("ConstantFolding",),
    "mo_loop.transforms.function_pass": ("FunctionPass",),
    "mo_loop.transforms.manager": ("Manager", "Step", "Validate"),
    "mo_loop.transforms.pattern": (
        "Match", "Matcher", "Pattern", "any_input", "any_of", "any_order", "constant", "optional", "repeated",
        "wrap_type",
    ),
    "mo_loop.transforms.pipelines": ("default_pipeline",),
    "mo_loop.transforms.predicates": (
        "consumers_count", "consumers_more_than", "has_static_dims", "has_static_rank", "has_static_shape",
        "is_constant", "rank_equals", "rank_more_than", "shape_equals", "type_matches", "value_equals",
    ),
    "mo_loop.transforms.profile": ("Profile",),
    "mo_loop.transforms.replace": (
        "copy_runtime_info", "eliminate", "insert_after", "insert_before", "replace_node", "replace_output",
        "replace_output_update_name",
    ),
    "mo_loop.transforms.rewrite": ("BackwardGraphRewrite", "GraphRewrite", "MatcherPass"),
    "mo_loop.transforms.visualize": ("VisualizeTree",),
}

__all__ = [name for names in _NAMES.values() for name in names]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(globals(), _NAMES)
