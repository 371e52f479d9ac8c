"""Passes whose result is run: loops, recurrences, retyped bodies."""
