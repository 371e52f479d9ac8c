"""Attention over caches becomes one operation."""

from __future__ import annotations

from mo_loop.graph import Graph
from mo_loop.ops.linear import MatMul
from mo_loop.ops.recurrent import ReadValue
from mo_loop.transforms.function_pass import FunctionPass


class FuseStatefulAttention(FunctionPass):
    """softmax(scale Q K^T + mask) V, K and V caches  ->  ScaledDotProductAttention(Q, K, V, mask, scale)

    A cache is Concat(ReadValue, new) that is assigned to its variable again. The CPU plugin keeps it inside the
    operation, and then appends in place instead of copying the past in every inference. It does so if the past is read
    through a Gather of whole sequences; caches without one get the Gather that changes nothing, by Range(0, batch).
    Repetitions of heads take the form that the plugin looks for: Unsqueeze, a bidirectional Broadcast, Reshape.
    openvino_genai does not make paged attention of a Multiply by ones in its place.

    The plugin would store such caches in 8 bits, whatever the precision of the computation is. The model has the option
    that keeps them in f32; a program that compiles it can choose another one.
    """

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        if not graph.has(ReadValue):
            return False
        from mo_loop.transforms.states.attention_form import AttentionWriter
        from mo_loop.transforms.states.cached_attention import AttentionSearch
        from mo_loop.transforms.states.caches import caches_of

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
