"""Comparisons: arrays, rows, inputs that are made, messages of the runtimes."""
