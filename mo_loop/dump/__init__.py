"""The graph at each step of a conversion, in files: `Dumper` is an observer that writes them."""

from mo_loop.dump.dumper import DEFAULT_FORMATS, FORMATS, Dumper

__all__ = ["DEFAULT_FORMATS", "FORMATS", "Dumper"]
