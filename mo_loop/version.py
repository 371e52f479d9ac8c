"""The version of mo_loop, which an IR records: it is the same for all commits before the release.

`import mo_loop` loads this module; mo_loop/revision.py finds the commit.
"""

__version__ = "0.2.0.dev0"
