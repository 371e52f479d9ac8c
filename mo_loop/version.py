"""The version of mo_loop. Modules that `import mo_loop` loads take it from here."""

__version__ = "0.1.0"
