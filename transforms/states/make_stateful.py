"""Inputs that the caller fills with outputs become variables, and attention over caches becomes one operation."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mo_loop.errors import UsageError
from mo_loop.graph import Graph
from mo_loop.ops.linear import MatMul
from mo_loop.ops.recurrent import ReadValue
from mo_loop.transforms.function_pass import FunctionPass, argument
from mo_loop.transforms.states.pairing import BEAM_INDEX, Pair, find_pairs, given_pairs, variable_id


@dataclass(eq=False)
class MakeStateful(FunctionPass):
    """y, h' = f(x, h), where the caller passes h' as the next h  ->  h = ReadValue(0); y, h' = f(x, h); Assign(h')

    The pairs are those of `param_res_names` (name of an input -> name of the output that is its next value; an empty
    name: the input is not a state), and with `find` also those that transforms/states/pairing.py finds. The initial
    value is zeros, of length 0 along the axis that grows. The id of the variable is the names of the input and the
    output, joined. `pairs` are those of the last graph that was changed.

    With `beam_idx` the model gets an input of that name, i32 [?]: the caches are read through Gather(cache, beam_idx),
    so that the caller can reorder, repeat and drop sequences. Without pairs the model does not change.
    """

    bodies = "never"

    param_res_names: Mapping[str, str] = argument(dict, dict)
    find: bool = field(default=False, kw_only=True)
    beam_idx: bool = field(default=False, kw_only=True)
    pairs: "tuple[Pair, ...]" = field(default=(), init=False)

    def run_on_graph(self, graph: Graph) -> bool:
        if not self.find and not any(self.param_res_names.values()):
            return False
        # Conversions without this option do not load these modules.
        from mo_loop.transforms.states.rewriting import Rewriting, startable

        pairs = startable(graph, [pair for pair in self._pairs(graph) if not self.leaves(pair.parameter)])
        self.at = None
        has_states = bool(pairs) or graph.has(ReadValue)
        self.without_effect = "" if has_states else "no input is continued by an output: the model has no states"
        if not pairs:
            return False
        if self.beam_idx and any(BEAM_INDEX in (each.name, *each.output.names) for each in graph.parameters):
            raise UsageError(
                f"the model has an input {BEAM_INDEX!r} already", why="--beam-idx adds an input of that name",
                hint="omit --beam-idx, or rename the input of the model", code="ML202",
            )
        for pair, node in Rewriting(graph, pairs, BEAM_INDEX if self.beam_idx else "").run():
            self.accept(node, f"{pair.input} -> {pair.output}: {pair.evidence}")
        self.pairs = tuple(pairs)
        return True

    def _pairs(self, graph: Graph) -> "tuple[Pair, ...]":
        present = {node.variable_id for node in graph.of(ReadValue)}
        inputs = {name for each in graph.parameters for name in (each.name, *each.output.names)}
        given = {
            old: new for old, new in self.param_res_names.items()
            if not new or old in inputs or variable_id(old, new) not in present
        }
        if not self.find:
            return given_pairs(graph, given)
        pairs = find_pairs(graph, given)
        pairs.require_clear()
        return pairs.found


class FuseStatefulAttention(FunctionPass):
    """softmax(scale Q K^T + mask) V, K and V caches  ->  ScaledDotProductAttention(Q, K, V, mask, scale)

    A cache is a Concat(ReadValue, new) that is assigned to its variable. The CPU plugin keeps it inside the operation,
    and then appends in place instead of copying the past in every inference. It does so if the past is read through a
    Gather of whole sequences; caches without one get the Gather that changes nothing, by Range(0, batch). Repetitions
    of heads take the form that the plugin looks for: Unsqueeze, a bidirectional Broadcast, Reshape. openvino_genai does
    not make paged attention of a Multiply by ones in its place.

    The plugin would store such caches in 8 bits, whatever the precision of the computation is. The model has the option
    that keeps them in f32; a program that compiles it can choose another one.
    """

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        if not graph.has(ReadValue):
            return False
        from mo_loop.transforms.states.attention_form import AttentionWriter
        from mo_loop.transforms.states.cache_movements import caches_of
        from mo_loop.transforms.states.cached_attention import AttentionSearch

        caches = caches_of(graph)
        if not caches:
            return False
        search, form = AttentionSearch(caches), AttentionWriter(graph)
        changed = False
        for product in self.candidates(graph, MatMul):
            found = search.find(product)
            if isinstance(found, str):
                self.refuse(product, found)
            elif found is not None:
                form.replace(found)
                changed = self.accept(product)
        if changed:
            options = graph.rt_info.get("runtime_options", {})
            graph.rt_info["runtime_options"] = {"KV_CACHE_PRECISION": "f32", **options}
        return changed
