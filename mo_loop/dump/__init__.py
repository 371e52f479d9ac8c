"""Pictures and pages of graphs, step by step: `Dumper` writes what a graph looked like after each step."""

from mo_loop.dump.writer import Dumper

__all__ = ["Dumper"]
