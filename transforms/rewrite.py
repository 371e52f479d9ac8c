"""Rewriting by patterns.

    class HSwishFusion(MatcherPass):
        \"\"\"x * HSigmoid(x)  ->  HSwish(x)\"\"\"

        x = any_input()
        gate = wrap_type(ops.HSigmoid, x, when=consumers_count(1))
        pattern = any_order(ops.Multiply, x, gate)

        def matched(self, match) -> bool:
            return self.replace(match, ops.HSwish(match[self.x]))     # moves uses, names, rt_info

    HSwishFusion().run(graph)                                         # the whole graph, bodies included
    HSwishFusion().run_on_node(node)                                  # one node
    GraphRewrite([HSwishFusion(), GeluFusion()]).run(graph)           # both in one traversal

`GraphRewrite` visits each node once, producers first, and tries the matchers whose root can have the class of the node
and whose inputs can have the classes of its producers. They are cached for each combination of classes, so the cost of
a node does not grow with the number of matchers. The first callback that returns True ends the visit of a node. The
nodes that it made or changed are visited next, by the matchers after it, if the traversal does not come to them later;
all matchers visit those given to `register_new_node`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, ClassVar

from mo_loop.conversion_limits import Budget, budget
from mo_loop.errors import InternalError
from mo_loop.graph import Graph, Node
from mo_loop.graph.dimension import Assumption
from mo_loop.ops.base import Result
from mo_loop.origin import all_of, current
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.function_pass import FunctionPass, blamed
from mo_loop.transforms.matcher import Match, Matcher, Pattern, Trace
from mo_loop.transforms.replace import copy_runtime_info, replace_node

Callback = Callable[[Match], bool]
Passes = tuple["MatcherPass", ...]
Key = type[Node] | tuple[type[Node] | None, ...]


class MatcherPass(FunctionPass):
    """One pattern and one callback, which returns True when it replaced the root.

    A class states its `pattern`, and `matched` is the callback; or its constructor calls `register_matcher`.
    """

    pattern: ClassVar[Pattern | None] = None

    _matcher: Matcher | None = None
    _callback: Callback | None = None
    _new: Sequence[Node] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "pattern" in cls.__dict__:  # once: a conversion makes two hundred of these passes
            cls._matcher = None if cls.pattern is None else _matcher_of(cls.__name__, cls.pattern)

    def matched(self, match: Match) -> bool:
        """Rewrite a match; True if the root was replaced."""
        raise NotImplementedError

    def register_matcher(self, pattern: Pattern, callback: Callback, *, contained: bool = False) -> None:
        """Set the pattern and the callback. A pass has one matcher.

        If a node outside the match reads an inner value, that value stays, in addition to the replacement. With
        `contained` such a match is refused.
        """
        if self._matcher is not None:
            raise InternalError(f"{self.name} registers a second matcher; a MatcherPass has one")
        self._matcher = _matcher_of(self.name, pattern, contained=contained)
        self._callback = callback

    @property
    def matcher(self) -> Matcher:
        if self._matcher is None:
            raise InternalError(f"{self.name} registered no matcher: call register_matcher in __init__")
        return self._matcher

    def match(self, node: Node) -> Match | None:
        """The match with `node` as its root, or None. Changes nothing."""
        return self.matcher.match(node)

    def run_on_node(self, node: Node) -> bool:
        """Match `node`, and call back unless a veto protects it; True if the callback replaced it."""
        self._at = node
        matcher, config = self.matcher, self.config
        trace: Trace | None = None
        if config.is_watched:
            explained = config.explains(self)
            trace = Trace() if explained or (config.listener is not None and config.listener.wants(self)) else None
        match = matcher.match(node, trace)
        if match is None:
            if trace is not None and (explained or trace.depth):
                self.refuse(node, trace.reason, trace.depth)
            return False
        if config.has_vetoes and self.is_vetoed(node):
            return False
        decisions = self.decisions
        # Without `made_for`, which takes longer: most rules refuse most of their candidates.
        outer = current.set(node.origins if matcher.is_single else all_of(each.origins for each in match.nodes))
        try:
            done = (self._callback or self.matched)(match)
        finally:
            current.reset(outer)
        if done:
            self.accept(node)
        elif trace is not None and self.decisions == decisions:  # the callback may have given a better reason
            self.refuse(node, "the pattern matched, but the callback changed nothing", len(match.nodes))
        return done

    def run_on_graph(self, graph: Graph) -> bool:
        return GraphRewrite([self], config=self.config).run_passes(graph, [self])

    # -- for callbacks

    def register_new_node(self, node: Any) -> Any:
        """Have all matchers visit `node` next, not only those after this one; returns it.

        Several nodes are given in topological order.
        """
        self._new = (*self._new, node)
        return node

    @property
    def has_new_nodes(self) -> bool:
        return bool(self._new)

    def take_new_nodes(self) -> Sequence[Node]:
        """The nodes that callbacks registered since the last call."""
        new, self._new = self._new, ()
        return new

    def replace(self, match: Match, replacement: Any, *, also: Sequence[Node] = ()) -> bool:
        """Replace the root of `match` by `replacement` (a node, a value, or a value for each output); always True.

        Uses, tensor names and the friendly name move. The rt_info of the matched nodes goes to the replacement and to
        the nodes in `also`, the inner nodes of a larger replacement. Nodes that are no longer read are removed.
        """
        matched = match.nodes
        fresh = [*also, replacement] if isinstance(replacement, Node) else [*also]
        copy_runtime_info(matched, fresh)
        replace_node(match.root, replacement)
        return True


def _matcher_of(name: str, pattern: Pattern, *, contained: bool = False) -> Matcher:
    if any(issubclass(cls, Result) for cls in pattern.root_types() or ()):
        raise InternalError(f"{name}: a pattern matches a value, and a Result has no output")
    return Matcher(pattern, contained=contained)


class GraphRewrite(FunctionPass):
    """Several matchers in one traversal, producers first.

    Its own `bodies` determines when bodies are visited; a matcher whose `bodies` is `never` does not run in them.
    """

    def __init__(self, passes: Iterable[MatcherPass] = (), *, config: PassConfig | None = None) -> None:
        self.passes: list[MatcherPass] = []
        self._last: Dispatch | None = None
        if config is not None:
            self.use(config)
        for each in passes:
            self.add_matcher(each)

    def add_matcher(self, each: MatcherPass) -> MatcherPass:
        """Register a matcher; those registered first run first."""
        each.matcher  # noqa: B018  # raises here for a pass without a matcher, not during a run
        self.passes.append(each)
        if self._config is not None:  # else with the first use of `config`, or in that of a Manager
            each.use(self._config)
        return each

    def run_on_graph(self, graph: Graph) -> bool:
        passes = self.config.enabled_of(self.passes)
        if graph.owner is not None:
            passes = [each for each in passes if each.bodies != "never"]
        return self.run_passes(graph, passes)

    def run_passes(self, graph: Graph, passes: Sequence[MatcherPass]) -> bool:
        """Run `passes`, in this order, on the nodes of one graph; True if anything changed."""
        dispatch = self._dispatch(passes)
        if not any(map(dispatch.of_class, graph.classes)):
            return False
        return Traversal(graph, dispatch, tuple(self.start(graph))).run()

    def _dispatch(self, passes: Sequence[MatcherPass]) -> Dispatch:
        """The dispatch of the previous graph, if it has the same passes: bodies are many, and small."""
        explain = self.config.is_watched and any(
            self.config.listener is not None or self.config.explains(each) for each in passes
        )
        if self._last is None or self._last.explain != explain or self._last.passes != list(passes):
            self._last = Dispatch(passes, explain)
        return self._last

    def start(self, graph: Graph) -> Iterable[Node]:
        """The nodes in the order of the visit."""
        return graph.ordered()


def passes_in(*files: Mapping[str, Any]) -> tuple[type[MatcherPass], ...]:
    """The matchers with a pattern of some files, given by their global names, in their order."""
    own = (each for names in files for each in names.values() if getattr(each, "__module__", "") == names["__name__"])
    return tuple(each for each in own if isinstance(each, type) and issubclass(each, MatcherPass) and each.pattern)


class BackwardGraphRewrite(GraphRewrite):
    """Several matchers in one traversal, consumers first."""

    def start(self, graph: Graph) -> Iterable[Node]:
        return reversed(graph.ordered())


class Traversal:
    """One traversal of `nodes`, a snapshot of those of `graph`."""

    def __init__(self, graph: Graph, dispatch: Dispatch, nodes: Sequence[Node]) -> None:
        self.graph = graph
        self.dispatch = dispatch
        self.nodes = nodes
        self._at = 0

    @cached_property
    def _places(self) -> dict[Node, int]:
        return {node: place for place, node in enumerate(self.nodes)}

    def run(self) -> bool:
        """Visit the nodes; True if anything changed."""
        changed = False
        within = budget()
        of, beginning = self.dispatch.of, self.dispatch.beginning
        with self.graph.recorded() as changes:
            for at, node in enumerate(self.nodes):
                candidates = of(node)
                if not candidates:  # most nodes
                    continue
                passes = beginning(node, candidates)
                first = next(passes, None)
                if first is not None:
                    self._at = at
                    changed = self._visit(node, chain((first,), passes), changes, within) or changed
        return changed

    def _visit(
        self, node: Node, passes: Iterator[MatcherPass], changes: dict[Node, None], within: Budget
    ) -> bool:
        """One node, and then those that its rewriting made or changed."""
        changed = False
        pending: list[tuple[Node, Iterator[MatcherPass]]] = [(node, passes)]
        while pending:
            node, passes = pending.pop()
            within.check_time()
            for each in passes:
                if node not in self.graph:  # an earlier rewriting dropped it
                    break
                changes.clear()
                try:
                    done = each.run_on_node(node)
                except Assumption:  # the conversion begins again
                    raise
                except Exception as error:
                    raise blamed(error, each)  # noqa: B904  # an error of another kind becomes its cause
                if done or each.has_new_nodes:
                    # The traversal comes to the others later.
                    found = {new: each for new in changes if done and self._places.get(new, -1) <= self._at}
                    later = (found | dict.fromkeys(each.take_new_nodes())).items()
                    for new, before in reversed(later):
                        pending.append((new, self.dispatch.beginning(new, self.dispatch.source_of(before, new))))
                if done:
                    changed = True
                    break
        return changed


class Dispatch:
    """The `passes` that may match a node, by its class and those of its first two producers."""

    def __init__(self, passes: Sequence[MatcherPass], explain: bool = False) -> None:
        """With `explain`, passes give the reason why they leave a node, so each runs on every root that it can have."""
        self.passes = list(passes)
        self.explain = explain
        self._places = {each: place for place, each in enumerate(self.passes)}
        self._shared = {} if explain else _places_of(tuple([each.matcher for each in self.passes]))
        self._found: dict[Key, Passes] = {}

    def beginning(self, node: Node, candidates: Iterable[MatcherPass]) -> Iterator[MatcherPass]:
        """Those of the passes that accept the node as their root when they are requested, or that have to give the
        reason why they do not."""
        outputs = node.outputs
        for each in candidates:
            begins = each.matcher.begins
            for value in outputs:
                if self.explain or begins(value):
                    yield each
                    break

    def of_class(self, cls: type[Node]) -> Passes:
        """The passes whose root can have this class."""
        found = self._found.get(cls)
        return self._searched(cls, self.passes, lambda each: _has_root(each, cls)) if found is None else found

    def of(self, node: Node) -> Passes:
        """The passes to run, in the order of their registration."""
        # Most nodes need one lookup; the next one follows only if a pass can still match.
        cls = type(node)
        candidates = self._found.get(cls)
        if candidates is None:
            candidates = self.of_class(cls)
        inputs = node.inputs
        if not candidates or not inputs:
            return candidates
        producers = [None if value is None else type(value.node) for value in inputs[:2]]
        key = (cls, *producers)
        found = self._found.get(key)
        if found is None:
            found = self._searched(key, candidates, lambda each: _may_match(each, cls, producers))
        return found

    def _searched(self, key: Key, among: Iterable[MatcherPass], accepts: Callable[[MatcherPass], bool]) -> Passes:
        places = self._shared.get(key)
        if places is None:
            places = self._shared[key] = tuple([self._places[each] for each in among if accepts(each)])
        found = self._found[key] = tuple([self.passes[place] for place in places])
        return found

    def source_of(self, before: MatcherPass | None, node: Node) -> list[MatcherPass]:
        """The passes of `of(node)` that are registered after a pass, or all."""
        place = -1 if before is None else self._places[before]
        return [each for each in self.of(node) if self._places[each] > place]


@lru_cache(64)
def _places_of(matchers: tuple[Matcher, ...]) -> dict[Key, tuple[int, ...]]:
    """Class of a node, or this and those of its first two producers -> the places of the matchers that can match there,
    as far as they are found: the passes of one conversion are made of the same classes as those of the next."""
    return {}


def _has_root(each: MatcherPass, cls: type[Node]) -> bool:
    roots = each.matcher.pattern.root_types()
    return roots is None or not roots.isdisjoint(cls.__mro__)  # a conversion asks a hundred rules for each class


def _may_match(each: MatcherPass, cls: type[Node], producers: Sequence[type[Node] | None]) -> bool:
    # A pass that is explained runs on every candidate root: it gives a more precise reason.
    return each.config.explains(each) or each.matcher.pattern.may_match(cls, producers)
