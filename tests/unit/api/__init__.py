"""Conversions from Python: arguments, extensions, limits, errors, results."""
