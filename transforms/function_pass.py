"""The base class of all passes.

    class DropEmptyLoops(FunctionPass):
        \"\"\"a Loop of 0 iterations  ->  its initial values\"\"\"
        bodies = "first"                            # bodies before the graph that holds them

        kinds = (ops.Loop,)                         # each that no veto protects; run_on_graph for other walks

        def rewrite(self, loop):
            if loop.count != 0:
                return self.refuse(loop, "it may run")      # False, and a line for --explain-pass
            ...
            return self.accept(loop)                        # True, and counted

`run` visits the graph and its bodies in the order of `bodies` and returns whether anything changed. Types may be stale
afterwards: the Manager infers them after each pass that changed something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, fields, replace
from typing import Any, ClassVar, Literal, TypeVar

from mo_loop.errors import ExtensionError, InternalError, MoLoopError, UnsupportedError, UsageError, extension_failed
from mo_loop.graph import Graph, Node
from mo_loop.origin import current, made_for
from mo_loop.target import Gap
from mo_loop.transforms.config import Explanation, PassConfig

N = TypeVar("N", bound=Node)
P = TypeVar("P", bound="FunctionPass")


class FunctionPass:
    """A pass over a whole graph.

    `bodies` determines when the bodies of control-flow nodes are visited: `first` (before the graph that has them),
    `last` (after it) or `never` (the pass visits them itself, or only changes the top level). A pass that is not
    `enabled_by_default` runs only if its PassConfig enables it.
    """

    bodies: ClassVar[Literal["first", "last", "never"]] = "first"
    kinds: ClassVar[tuple[type[Node], ...]] = ()
    """The classes of the nodes that the pass rewrites one by one."""
    enabled_by_default: bool = True

    avoids: ClassVar[tuple[Gap, ...]] = ()
    """The errors of the runtime that the pass avoids."""
    instead: ClassVar[str] = ""
    """The operations that the pass writes instead, for gaps that have no `form` of their own."""

    passes: Sequence[FunctionPass] = ()
    """The passes that this one contains."""

    origin: str = ""
    """The extension that the pass comes from; empty for those of this library."""
    matches: int = 0
    """The number of places that it has changed so far, if it counts them."""
    decisions: int = 0
    """The number of candidates that it has accepted or refused so far."""

    without_effect: str = ""
    """The reason why a pass that an option requests changed nothing; empty if it changed something, or was not
    requested."""

    _at: Node | None = None
    _config: PassConfig | None = None
    _is_own: bool = False

    @property
    def name(self) -> str:
        return type(self).__name__

    @classmethod
    def gaps(cls) -> tuple[Gap, ...]:
        """The gaps that the pass avoids, each with its name and the operations that it writes instead."""
        return tuple(replace(gap, rule=cls.__name__, form=gap.form or cls.instead) for gap in cls.avoids)

    @property
    def at(self) -> Node | None:
        """The candidate that the pass examines: new nodes get its origins, and errors name it."""
        return self._at

    @at.setter
    def at(self, node: Node | None) -> None:
        self._at = node
        current.set(() if node is None else node.origins)

    @property
    def config(self) -> PassConfig:
        """The configuration of the pipeline; one of its own for a pass that runs alone."""
        if self._config is None:
            self._config, self._is_own = PassConfig(), True
            for each in self.passes:
                each.use(self._config)
        return self._config

    def walk(self) -> Iterator[FunctionPass]:
        """The pass, and all that it contains."""
        yield self
        for inner in self.passes:
            yield from inner.walk()

    def use(self, config: PassConfig) -> None:
        """Use `config`, which adopts the settings of this pass, here and in the passes that this one contains."""
        if self._is_own and self._config is not None:
            config.adopt(self._config)
            self._is_own = False
        self._config = config
        for each in self.passes:
            each.use(config)

    def run_on_graph(self, graph: Graph) -> bool:
        """Rewrite one graph, by default each candidate of `kinds`; True if anything changed."""
        if not self.kinds:
            raise NotImplementedError
        return any([self.rewrite_each(graph, kind, self.rewrite) for kind in self.kinds])

    def rewrite(self, node: Any) -> bool:
        """Rewrite one candidate; True if it changed, which `accept` and `refuse` record."""
        raise NotImplementedError

    def run(self, graph: Graph) -> bool:
        """Rewrite the graph and its bodies; True if anything changed."""
        if self.is_idle(graph):
            return False
        changed = False
        with made_for(()):
            if self.bodies == "first":
                changed = self._run_on_bodies(graph)
            changed = self.run_on_graph(graph) or changed
            if self.bodies == "last":
                changed = self._run_on_bodies(graph) or changed
        return changed

    def is_idle(self, graph: Graph) -> bool:
        """Whether no node of a graph without bodies is one that the pass rewrites."""
        cls = type(self)
        if not self.kinds or cls.run_on_graph is not FunctionPass.run_on_graph or cls.run is not FunctionPass.run:
            return False
        return not self.origin and not graph.has(*self.kinds) and not graph.nodes_with_bodies()

    def _run_on_bodies(self, graph: Graph) -> bool:
        changed = False
        for node in graph.nodes_with_bodies():
            if node in graph:
                for body in node.bodies:
                    changed = self.run(body) or changed
        return changed

    @classmethod
    def arguments(cls) -> dict[str, type]:
        """The arguments that `--transform` gives, with the types of their values: the fields made by `argument`."""
        return {each.name: each.metadata["kind"] for each in fields(cls) if "kind" in each.metadata}  # type: ignore[arg-type]

    # -- candidates, refusals and changes

    def candidates(self, graph: Graph, kind: type[N]) -> Iterator[N]:
        """The nodes of a class that are still in the graph and that no veto protects."""
        for node in graph.of(kind):
            if node in graph and not self.leaves(node):
                yield node
        self.at = None

    def rewrite_each(self, graph: Graph, kind: type[N], rewrite: Callable[[N], bool]) -> bool:
        """Call `rewrite` with every candidate of a class; True if it returned True for any."""
        changed = False
        for node in self.candidates(graph, kind):
            changed = rewrite(node) or changed
        return changed

    def leaves(self, node: Node) -> bool:
        """Whether a veto of the configuration protects `node`, which becomes the current candidate."""
        self._at = node
        current.set(node.origins)
        return self.is_vetoed(node)

    def is_vetoed(self, node: Node) -> bool:
        """Whether a veto of the configuration protects `node` from this pass."""
        reason = self.config.vetoed(self, node)
        if reason:
            self._record(node, "vetoed", reason)
        return bool(reason)

    def refuse(self, node: Node, reason: str, depth: int = 0) -> Literal[False]:
        """Record why a candidate is not changed, if this pass is explained; always False."""
        self._record(node, "refused", reason, depth)
        return False

    def accept(self, node: Node, reason: str = "") -> Literal[True]:
        """Count a candidate as changed; always True. A pass with several kinds of results gives the reason."""
        self.matches += 1
        self._record(node, "changed", reason)
        return True

    def _record(
        self, node: Node, outcome: Literal["changed", "refused", "vetoed"], reason: str = "", depth: int = 0
    ) -> None:
        self.decisions += 1
        config = self.config
        if config.listener is not None:
            config.listener.hear(self, node, outcome, reason)
        if config.explains(self):
            config.record(Explanation(self.name, node.path, outcome, reason, depth, node.origin))


class NodePass(FunctionPass):
    """each node of `kinds`  ->  the node after `change`"""

    def change(self, node: Any) -> str:
        """Change one candidate; returns the reason why it stays as it is, or nothing."""
        raise NotImplementedError

    def rewrite(self, node: Node) -> bool:
        reason = self.change(node)
        return self.refuse(node, reason) if reason else self.accept(node)


def argument(default: Any, kind: type) -> Any:
    """A field of a pass that is a dataclass, which `--transform Pass[name=value]` sets to a value of type `kind`."""
    made = default if callable(default) else lambda: default
    return field(default_factory=made, metadata={"kind": kind})


def named_pass(base: type[P], name: str, what: str | None, **members: Any) -> type[P]:
    """The pass of class `base` with a name, a docstring and members; it is in the module of `base`."""
    return type(name, (base,), {"__doc__": what, "__module__": base.__module__, **members})


def pass_with(base: type[P], method: str, **members: Any) -> Callable[[Callable[[Any], Any]], type[P]]:
    """A decorator: the pass of class `base` whose `method` is a function, with its name and docstring."""

    def made(function: Callable[[Any], Any]) -> type[P]:
        own = {"__module__": function.__module__, method: staticmethod(function)}
        return named_pass(base, function.__name__, function.__doc__, **members, **own)

    return made


def node_pass(
    kinds: tuple[type[Node], ...], instead: str = "", *avoids: Gap, bodies: str = "first"
) -> Callable[[Callable[[Any], str]], type[NodePass]]:
    """A decorator: the NodePass whose `change` is a function, with the name of the function."""
    return pass_with(NodePass, "change", kinds=kinds, instead=instead, avoids=avoids, bodies=bodies)


def blamed(error: Exception, each: FunctionPass) -> MoLoopError:
    """The error with the pass that raised it and the candidate that it examined.

    An unexpected error is a bug of this library, or of the extension that the pass comes from. An error of such a pass
    stays as it is only if it reports wrong usage or an unsupported model.
    """
    raised = error
    if each.origin and not isinstance(error, UnsupportedError | UsageError | ExtensionError):
        error = extension_failed(f"the pass {each.name}", each.origin, error, "ML265")
    elif not isinstance(error, MoLoopError):
        error = InternalError(f"{type(error).__name__}: {error}")
    if error is not raised:
        error.__cause__ = raised
    origin = None if error.where or each.at is None else each.at.origin
    return error.at(origin, during=error.during or f"the pass {each.name}")
