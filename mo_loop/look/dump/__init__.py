"""The graph at each step of a conversion, in files: the observer `Dumper` writes them, `read_dump` reads them."""

from mo_loop.look.dump.dumper import DEFAULT_FORMATS, Dumper
from mo_loop.look.dump.step_files import DEPTH, FORMATS
from mo_loop.look.records.node_link import Dump, DumpStep, read_dump

__all__ = ["DEFAULT_FORMATS", "DEPTH", "FORMATS", "Dump", "DumpStep", "Dumper", "read_dump"]
