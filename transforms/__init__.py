"""The transformation library: passes over a `mo_loop.Graph`, and the engine that runs them.

    from transforms import Manager, MatcherPass, any_input, wrap_type

Each name loads its module on first use. The passes of a conversion are in `front`, `runtime`, `common` and
`preprocess`.
"""

from typing import TYPE_CHECKING

from mo_loop.support.lazy_names import lazy_names

if TYPE_CHECKING:
    from transforms.common.compress_float_constants import CompressFloatConstants as CompressFloatConstants
    from transforms.config import PassConfig as PassConfig
    from transforms.constant_folding import ConstantFolding as ConstantFolding
    from transforms.function_pass import FunctionPass as FunctionPass
    from transforms.manager import Manager as Manager
    from transforms.manager import Step as Step
    from transforms.pattern import Match as Match
    from transforms.pattern import Matcher as Matcher
    from transforms.pattern import Pattern as Pattern
    from transforms.pattern import any_input as any_input
    from transforms.pattern import any_of as any_of
    from transforms.pattern import any_order as any_order
    from transforms.pattern import constant as constant
    from transforms.pattern import optional as optional
    from transforms.pattern import repeated as repeated
    from transforms.pattern import wrap_type as wrap_type
    from transforms.pipelines import default_pipeline as default_pipeline
    from transforms.predicates import consumers_count as consumers_count
    from transforms.predicates import consumers_more_than as consumers_more_than
    from transforms.predicates import has_static_dims as has_static_dims
    from transforms.predicates import has_static_rank as has_static_rank
    from transforms.predicates import has_static_shape as has_static_shape
    from transforms.predicates import is_constant as is_constant
    from transforms.predicates import rank_equals as rank_equals
    from transforms.predicates import rank_more_than as rank_more_than
    from transforms.predicates import shape_equals as shape_equals
    from transforms.predicates import type_matches as type_matches
    from transforms.predicates import value_equals as value_equals
    from transforms.profile import Profile as Profile
    from transforms.replace import copy_runtime_info as copy_runtime_info
    from transforms.replace import eliminate as eliminate
    from transforms.replace import insert_after as insert_after
    from transforms.replace import insert_before as insert_before
    from transforms.replace import replace_node as replace_node
    from transforms.replace import replace_output as replace_output
    from transforms.replace import replace_output_update_name as replace_output_update_name
    from transforms.rewrite import BackwardGraphRewrite as BackwardGraphRewrite
    from transforms.rewrite import GraphRewrite as GraphRewrite
    from transforms.rewrite import MatcherPass as MatcherPass
    from transforms.validate import Validate as Validate
    from transforms.visualize import VisualizeTree as VisualizeTree

_NAMES = {
    "transforms.common.compress_float_constants": ("CompressFloatConstants",),
    "transforms.config": ("PassConfig",),
    "transforms.constant_folding": ("ConstantFolding",),
    "transforms.function_pass": ("FunctionPass",),
    "transforms.manager": ("Manager", "Step"),
    "transforms.pattern": (
        "Match", "Matcher", "Pattern", "any_input", "any_of", "any_order", "constant", "optional", "repeated",
        "wrap_type",
    ),
    "transforms.pipelines": ("default_pipeline",),
    "transforms.predicates": (
        "consumers_count", "consumers_more_than", "has_static_dims", "has_static_rank", "has_static_shape",
        "is_constant", "rank_equals", "rank_more_than", "shape_equals", "type_matches", "value_equals",
    ),
    "transforms.profile": ("Profile",),
    "transforms.replace": (
        "copy_runtime_info", "eliminate", "insert_after", "insert_before", "replace_node", "replace_output",
        "replace_output_update_name",
    ),
    "transforms.rewrite": ("BackwardGraphRewrite", "GraphRewrite", "MatcherPass"),
    "transforms.validate": ("Validate",),
    "transforms.visualize": ("VisualizeTree",),
}  # fmt: skip

__all__ = [name for names in _NAMES.values() for name in names]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(globals(), _NAMES)
