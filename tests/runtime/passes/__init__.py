"""Passes whose results run: loops, recurrences, types of bodies."""
